package proxy

import (
	"bytes"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// The gate is prepared once in a session, since to parse and plan it costs ten times
// what it costs to run. Whether it is still there is known for sure only until the
// server has run a statement of the client that may call functions: one of them, or of
// a trigger, a view or a default, could DEALLOCATE it. From then on it is run in a way
// that bears its absence:
//
//	outside of a block, where the batch has done nothing yet   an error undoes nothing: a
//	                                                           Sync of pgaccel's, the client's
//	                                                           Bind again, and the gate anew
//	in a block                                                 inside of a savepoint
//	elsewhere                                                  closed and parsed anew
//
// Where that hangs on what is on its way, the step settles first: it waits until the
// server has answered everything before it.
type gateUse uint8

const (
	gateBound gateUse = iota
	gateGuarded
	gateParsed
)

const (
	savepointSQL  = "SAVEPOINT pgaccel_gate"
	releaseSQL    = "RELEASE SAVEPOINT pgaccel_gate"
	rollbackToSQL = "ROLLBACK TO SAVEPOINT pgaccel_gate"
)

// harmlessTags end statements that call no functions. (COMMIT calls triggers that were
// deferred, if other statements came before it.)
var harmlessTags = [][]byte{[]byte("BEGIN"), []byte("COMMIT"), []byte("ROLLBACK"), []byte("SAVEPOINT"),
	[]byte("RELEASE"), []byte("SET"), []byte("SHOW"), []byte("START TRANSACTION")}

// gateEnded takes the tag of a statement of the client's into account.
func (s *session) gateEnded(tag []byte) {
	harmless := false
	for _, h := range harmlessTags {
		harmless = harmless || bytes.Equal(tag, h)
	}
	if !harmless {
		s.doubtGate()
	}
	switch string(tag) {
	case "BEGIN", "START TRANSACTION":
		s.block = 'T'
	case "COMMIT":
		s.gateTransactionEnds()
		s.block = 0
	case "ROLLBACK", "PREPARE TRANSACTION": // ROLLBACK TO SAVEPOINT, too
		s.block = 0
	}
}

// doubtGate notes that a statement may have called functions.
func (s *session) doubtGate() {
	clear(s.gateSafe[:])
	s.unclear = true
}

// gateTransactionEnds notes that deferred triggers may have run.
func (s *session) gateTransactionEnds() {
	if s.unclear {
		clear(s.gateSafe[:])
		s.unclear = false
	}
}

// gateThere notes whether the gate of a form is there.
func (s *session) gateThere(form engine.GateForm, there bool) {
	s.gatePrepared[form], s.gateSafe[form] = there, there
}

// gateReady takes a ReadyForQuery into account.
func (s *session) gateReady() {
	if s.block = s.status; s.status == 'I' {
		s.gateTransactionEnds()
	}
}

// unsettled reports that how the gate is to be run depends on answers to come.
func (s *session) unsettled() bool {
	form, _ := s.step.st.Gate()
	return s.gatePrepared[form] && (s.queue.executes > 0 || !s.gateSafe[form] && s.sent != s.done)
}

// settled goes on with an Execute once everything before it has been answered.
func (s *session) settled() {
	t := s.step
	t.settling = false
	switch p := t.portal; {
	case s.status == 'E':
		s.release("")
	case p.needsTypes() && s.known.statements[p.s.name] != p.s:
		s.release(plan.ReasonParameter)
	default:
		s.toServer.add(s.executeBatch(nil))
	}
}

// undoes reports whether an error in the batch of an Execute of p (a Query, where p is
// nil) would undo anything but the Bind of p.
func (s *session) undoes(p *portal) bool {
	switch {
	case s.block != 'I':
		return true
	case p == nil:
		return false
	}
	return s.queue.sent != s.batch.sent || s.queue.bound != s.batch.bound+1 || p.batch != s.sent || s.sent != s.done
}

// gateUse says how to run the gate for the step.
func (s *session) gateUse(form engine.GateForm) gateUse {
	switch {
	case !s.gatePrepared[form]:
		return gateParsed
	case s.gateSafe[form] || s.step.free:
		return gateBound
	case s.block == 'T':
		return gateGuarded
	}
	return gateParsed
}

// gateBatch runs the gate for the step, prepared anew or as gateUse says.
func (s *session) gateBatch(b []byte, anew bool) []byte {
	form, params := s.step.st.Gate()
	use := gateParsed
	if !anew {
		use = s.gateUse(form)
	}
	s.step.form = form
	s.step.gate = engine.Gate{Sent: time.Now()}
	s.step.guarded = use == gateGuarded
	if use == gateGuarded {
		b = s.command(b, savepointSQL)
	}
	b = s.gateOf(b, form, params, use == gateParsed)
	if use == gateGuarded {
		b = s.command(b, releaseSQL)
	}
	return b
}

// gateOf runs the gate of a statement.
func (s *session) gateOf(b []byte, form engine.GateForm, params []string, prepare bool) []byte {
	gateName := gateNames[form]
	if prepare {
		b = appendNamed(b, wire.Close, 'S', gateName)
		b = appendParse(b, gateName, form.SQL(), nil)
		s.own(replyClose)
		s.own(replyParse)
	}
	b = appendBind(b, gateName, gateName, params)
	b = appendExecute(b, gateName, 0)
	b = appendNamed(b, wire.Close, 'P', gateName)
	s.own(replyBind)
	s.own(replyExecute)
	s.own(replyClose)
	return b
}

// gateGone reports that an error in answer to a message of kind k says that somebody
// has deallocated the gate, which the step can bear.
func (t *step) gateGone(k reply, code string) bool {
	return k&replyOwn != 0 && k&replyKind == replyBind && code == noSuchStatement && (t.free || t.guarded) &&
		!t.retried && !t.cancelling && t.check == nil
}

// regate makes up for a missing gate: what leads back to where the step was, and the
// gate anew.
func (s *session) regate(b []byte) []byte {
	t := s.step
	s.gateThere(t.form, false)
	t.retried = true
	if t.guarded {
		b = s.command(b, rollbackToSQL)
		b = s.command(b, releaseSQL)
	} else if t.portal != nil {
		b = append(b, t.portal.message...)
		s.own(replyBind)
	}
	return b
}

// regateExecute does so in a batch, whose rest the server would skip.
func (s *session) regateExecute() {
	s.skipping = false
	s.own(replySync)
	b := s.regate(appendEmpty(nil, wire.Sync))
	s.toServer.add(appendEmpty(s.gateBatch(b, true), wire.Flush))
}

// command runs a command of pgaccel's that takes no parameters.
func (s *session) command(b []byte, sql string) []byte {
	b = appendNamed(b, wire.Close, 'P', wrapName) // where the last attempt failed
	b = appendNamed(b, wire.Close, 'S', wrapName)
	b = appendParse(b, wrapName, sql, nil)
	b = appendBind(b, wrapName, wrapName, nil)
	b = appendExecute(b, wrapName, 0)
	b = appendNamed(b, wire.Close, 'P', wrapName)
	b = appendNamed(b, wire.Close, 'S', wrapName)
	for _, k := range []reply{replyClose, replyClose, replyParse, replyBind, replyExecute, replyClose, replyClose} {
		s.own(k)
	}
	return b
}
