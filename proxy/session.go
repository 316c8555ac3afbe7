package proxy

import (
	"context"
	"strings"
	"time"

	"pgaccel/engine"
	"pgaccel/wire"
)

// session is one conversation between a client and its server, without any I/O: a
// driver feeds it the bytes of either side in pieces of any size (client, server),
// runs the execution that it asks for (takeExecution, executed), and writes what it
// puts out (toClient, toServer, more). It is not safe for concurrent use, and it
// never waits.
//
// Tracking is exact or given up: on anything that is not understood, the session is
// relayed without a look from there on (stopTracking), and nothing is accelerated any more.
type session struct {
	engine   engine.Decider // nil relays everything
	database *Database
	observer Observer
	info     *sessionInfo
	ctx      context.Context // parent of executions
	opaque   bool            // no look at any byte once the session has begun
	clamped  bool            // a newer protocol was asked for than is known here

	toClient, toServer out
	key                []byte // BackendKeyData's process id and key, once it came
	started            bool   // the first ReadyForQuery passed
	asked              bool   // the server has asked for credentials
	unasked            bool   // the server has let the client in without
	login              login
	held               *budget // of what is held of messages until they are whole
	reserved           int     // bytes of it, for the message of the client at hand
	ending             bool    // the server has sent a FATAL error
	terminating        bool    // pgaccel ends the session
	toldTerminated     bool    // and has said so, or cannot
	over               bool    // the connections are closed
	broken             bool    // own messages are in a stream that cannot be followed: close
	endReason          string  // why it ends, for the log
	log                *connectionLog
	rest               struct {
		client, server int  // bytes to come of a message whose head has been dealt with
		swallow        bool // not to be relayed, of the server's
	}

	// shown is what show last found.
	shown struct {
		sent   uint64    // replies.sent
		active time.Time // since when something runs
		local  bool      // and some of that here
		begun  uint64    // replies.sent then
	}
	watch watch
	slow  *statementLog // nil for none
	texts texts
	// unwritten is a statement that ends once the driver has written what more has put out.
	unwritten unwritten

	queue    replies
	status   byte   // of the last ReadyForQuery: I, T or E
	sent     uint64 // messages that ReadyForQuery answers
	done     uint64 // ReadyForQuery received for them
	commands uint64 // statements of the client's that may have changed settings or ended portals
	inBatch  bool   // extended messages have been sent since the last Sync or Query
	answered bool   // the client's next message has been: an error of what had to be done before it
	skipping bool   // the server ignores everything up to the client's next Sync
	copyIn   bool   // the server reads CopyData
	copySync bool   // and has ignored a Sync since

	cache    statementCache
	settings wire.TextSettings
	foreign  bool // application_name is that of postgres_fdw
	// knownAt is replies.sent when settings were last known: at a ReadyForQuery behind which nothing
	// was on its way. The server reports no change before.
	knownAt uint64
	// modeNamed says that the client has named pgaccel.mode.
	modeNamed   bool
	setsWrongly bool // it has set a setting of pgaccel's wrongly
	showing     bool // the Query that runs stands for a SHOW of one
	// schemas are those of the session's search_path, as its last gate has shown.
	schemas string
	// gatePrepared says that the gate was prepared in this session. It may be gone again.
	gatePrepared [engine.GateForms]bool
	// refused is when the session's role was last found not to have the right to run the gate.
	refused time.Time
	// placeholderFailed says that SQL has run the placeholder of a portal.
	placeholderFailed bool
	// block is status as far as it follows from the statements run since, 0 where it
	// does not.
	block byte
	// batchedQuery is the number, among the messages that ReadyForQuery answers, of the last
	// Query that was sent in the middle of a batch, without a Sync before it.
	batchedQuery uint64
	batch        batch
	local        *localExecution
	tx           engine.Transaction
	execution    *execution // to be started by the driver
	planning     *planning  // of the client's next message
	// share draws whether an execution is checked; nil checks none.
	share    func() bool
	implicit implicitTransaction
	// views are the prepared statements over the schema pgaccel, by name.
	views    map[string]*engine.View
	asking   *asking
	prepares bool // the client has prepared statements by SQL
	changes  struct {
		batch  uint64 // sent, at the last message that changed views
		any    bool   // there was one
		waited bool   // the client's bytes wait for its answer, or an error that stands for it
	}
	checks []*check // to be computed by the driver
	// lookahead are the client's bytes at hand from the message being decided on.
	lookahead []byte
	notice    []byte // for the client, in front of the server's next row
	ahead     []byte // for the client, before the server's message at hand or instead of it
}

// batch is what is known of the messages since the last Sync or Query.
type batch struct {
	sent, bound uint64 // replies.sent and bound at its beginning
	kept        uint64 // Binds in it whose messages are kept
	repeatable  bool   // a gate has run in it whose transaction has one snapshot
}

// lookLimit is the largest message in bytes that is held to be looked at; larger
// ones are relayed as they come.
const lookLimit = 1 << 20

func newSession(ctx context.Context, d engine.Decider, o Observer) *session {
	s := &session{engine: d, observer: o, ctx: ctx, opaque: d == nil, info: newSessionInfo()}
	s.settings.ExtraFloatDigits, s.settings.Monetary = 1, "C" // else the gate refuses
	s.settings.Zones, _ = d.(wire.Zones)
	s.watch.engine, _ = d.(engine.Watcher)
	s.queue.push(replyStartup)
	s.sent = 1
	return s
}

// startup looks at the settings of the startup packet.
func (s *session) startup(list []wire.StartupParameter) {
	s.info.startup(list)
	for _, p := range list {
		if p.Name == "replication" && isReplication(p.Value) {
			s.opaque = true
		}
		if strings.Contains(strings.ToLower(p.Name+"="+p.Value), modeSetting) {
			s.modeNamed = true
		}
	}
}

const modeSetting = "pgaccel.mode"

// out is what a call of the machine wants written to one side, in order. The parts
// refer to the bytes given in or to memory that nobody changes; they are valid until
// the next call.
type out struct{ parts [][]byte }

func (o *out) add(b []byte) {
	if len(b) == 0 {
		return
	}
	if n := len(o.parts); n > 0 {
		// A run of relayed messages stays one part.
		if last := o.parts[n-1]; cap(last) > len(last) && &last[:len(last)+1][len(last)] == &b[0] {
			o.parts[n-1] = last[:len(last)+len(b)]
			return
		}
	}
	o.parts = append(o.parts, b)
}

// action is what becomes of a message.
type action uint8

const (
	relay   action = iota
	swallow        // done with, nothing is relayed
	wait           // not without the rest of the message
)

// blocked reports that client bytes wait for an event of another side.
func (s *session) blocked() bool {
	return s.local != nil || s.asking != nil || s.planning.underWay() || s.changes.waited || s.implicit.busy() || s.login.waits() && !s.started
}

// stopTracking has everything relayed without a look from here on.
func (s *session) stopTracking() {
	if s.settling() != nil {
		s.toServer.add(s.local.original) // nothing of pgaccel's is on its way
		s.local = nil
	}
	if s.local != nil || s.asking != nil || s.implicit.stage != implicitNone && s.implicit.stage != implicitDeclined {
		s.broken = true
	}
	s.asking, s.planning, s.changes.any, s.changes.waited = nil, nil, false, false
	s.abandon()
	s.opaque, s.started = true, true
	s.cache.forgetPortals()
	s.queue, s.cache, s.views = replies{}, statementCache{}, nil
}

// client takes bytes from the client and returns how many it has done with. The
// others are to be given again, with more behind them or after another event.
func (s *session) client(b []byte) int {
	if s.terminating {
		return len(b)
	}
	at, run := 0, 0
	for at < len(b) {
		if s.opaque {
			at = len(b)
			break
		}
		if s.rest.client > 0 {
			n := min(s.rest.client, len(b)-at)
			at, s.rest.client = at+n, s.rest.client-n
			continue
		}
		if s.blocked() || len(b)-at < wire.HeaderLen {
			break
		}
		typ, total, ok := wire.Header(b[at:])
		if !ok || s.queue.len() > repliesMax {
			s.stopTracking()
			continue
		}
		message := b[at:min(at+total, len(b))]
		var before []byte
		s.lookahead = b[at:]
		do := s.fromClient(typ, message, total, &before)
		if do == wait {
			break
		}
		s.planning = nil
		if s.local == nil && s.asking == nil {
			s.queue.at = nil
		}
		s.releaseHeld()
		if do == swallow || len(before) > 0 {
			s.toServer.add(b[run:at])
			s.toServer.add(before)
			run = at
		}
		if do == swallow {
			at += total
			run = at
			continue
		}
		s.rest.client = total
	}
	s.lookahead = nil
	s.toServer.add(b[run:at])
	s.show()
	return at
}

// server takes bytes from the server, likewise.
func (s *session) server(b []byte) int {
	if s.terminating {
		return s.serverLeaving(b)
	}
	at, run := 0, 0
	for at < len(b) {
		if s.rest.server > 0 {
			n := min(s.rest.server, len(b)-at)
			if s.rest.swallow {
				s.toClient.add(b[run:at])
				run = at + n
			}
			at, s.rest.server = at+n, s.rest.server-n
			continue
		}
		if s.opaque && s.started {
			at = len(b)
			break
		}
		if len(b)-at < wire.HeaderLen {
			break
		}
		typ, total, ok := wire.Header(b[at:])
		if !ok {
			s.stopTracking()
			continue
		}
		do := relay
		if s.opaque {
			do = s.beforeStart(typ, b[at:min(at+total, len(b))], total)
		} else if k, owed := s.queue.first(); typ != wire.DataRow || !owed || k&replyOwn != 0 || s.checking() != nil {
			do = s.fromServer(typ, b[at:min(at+total, len(b))], total)
		}
		if s.notice != nil && s.local == nil && do != wait {
			s.noticed(typ)
		}
		if do == wait {
			if total > lookLimit {
				s.stopTracking()
				continue
			}
			break
		}
		if s.clamped && typ == wire.Authentication {
			// The server agreed to 3.2 where the client had asked for more.
			s.clamped = false
			s.ahead = append([]byte{wire.NegotiateProtocolVersion, 0, 0, 0, 12, 0, 3, 0, 2, 0, 0, 0, 0}, s.ahead...)
		}
		if s.ahead != nil {
			s.toClient.add(b[run:at])
			s.toClient.add(s.ahead)
			run, s.ahead = at, nil
		}
		if st := s.settling(); st != nil && s.queue.len() == 0 {
			st.settled(s)
		}
		s.rest.server, s.rest.swallow = total, do == swallow
	}
	s.toClient.add(b[run:at])
	s.show()
	return at
}

func (s *session) backendKey(message []byte, total int) action {
	if total > 1<<10 {
		return relay
	}
	if len(message) < total {
		return wait
	}
	s.key = append([]byte(nil), message[wire.HeaderLen:]...)
	return relay
}
