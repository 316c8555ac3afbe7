package proxy

import (
	"bytes"
	"strings"
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
// Roles may lack the right to run the gate: EXECUTE on a built-in function, SELECT on a
// catalog, USAGE on pg_catalog. Where an error undoes nothing, or is undone by a savepoint,
// the statement is forwarded. In a block the gate runs inside of a savepoint unless it has
// passed since the last statement that may have called functions. Once the engine knows that
// something has been revoked (Decision.GateMayFail), or the session has revoked something,
// the gate runs in these two ways only.
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
	case "REVOKE", "REVOKE ROLE":
		s.revokes = true
	case "SET":
		if s.unclear { // the role, perhaps, behind a function that has revoked something
			clear(s.gateSafe[:])
		}
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
func (s *session) gateReady(k reply) {
	s.block = s.status
	if k&(replyKind|replyOwn) == replyQuery && s.done < s.batchedQuery {
		// From PostgreSQL 17 on, T may be the implicit block of the batch that the Query
		// stands in, where SAVEPOINT fails.
		s.block = 0
	}
	if s.status == 'I' {
		s.gateTransactionEnds()
	}
}

// unsettled reports that how the gate is to be run depends on answers to come.
func (s *session) unsettled() bool {
	form, _ := s.step.decision.Gate()
	return s.queue.executes > 0 || !s.gateSafe[form] && s.sent != s.done
}

// gateMayFail reports that the session's role may lack a right that the gate needs.
func (s *session) gateMayFail(d engine.Decision) bool { return s.revokes || d.GateMayFail() }

// settled goes on with an Execute once everything before it has been answered.
func (s *session) settled() {
	t := s.step
	t.settling = false
	if t.standsIn != nil {
		switch {
		case s.status == 'E':
			t.cancelled = false // the Execute fails by itself
			s.release("")
		case s.functionsFind() != t.standsIn: // it went with its transaction
			s.release("")
		default:
			s.toServer.add(s.standIn(nil, t.standsIn))
		}
		return
	}
	switch p := t.portal; {
	case s.status != 'E' && s.gateBarred(t.decision, p):
		s.release(plan.ReasonPrivilege)
	case s.status == 'E':
		t.cancelled = false // the Execute fails by itself
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
	form, params := s.step.decision.Gate()
	use := gateParsed
	if !anew {
		use = s.gateUse(form)
	}
	s.step.form = form
	s.step.gate = engine.Gate{Sent: time.Now()}
	s.step.guarded = s.block == 'T' && (use != gateBound || s.gateMayFail(s.step.decision))
	if s.step.guarded {
		b = s.command(b, savepointSQL)
	}
	b = s.gateOf(b, form, params, use == gateParsed)
	if s.step.guarded {
		b = s.command(b, releaseSQL)
	}
	return b
}

// refusedFor is how long a session does without gates after one that it may not run: each
// leaves an error in the server's log.
const refusedFor = 10 * time.Second

// gateBarred reports that no gate may be run for an Execute of p (a Query, where p is
// nil): the last one was refused, or this one may be and an error would show.
func (s *session) gateBarred(d engine.Decision, p *portal) bool {
	return !s.refused.IsZero() && time.Since(s.refused) < refusedFor ||
		s.gateMayFail(d) && s.queue.executes == 0 && s.block != 'T' && s.undoes(p)
}

// gateRefused reports that an error in answer to a message of kind k says that the
// session's role may not run the gate, which the step can bear.
func (t *step) gateRefused(k reply, code string) bool {
	if k&replyOwn == 0 || !t.free && !t.guarded || t.cancelling || t.undoing || t.standsIn != nil || t.simple && t.head == nil {
		return false
	}
	switch k & replyKind {
	case replyParse, replyBind, replyExecute:
		return strings.HasPrefix(code, "42") || code == noSuchSchema
	}
	return false
}

// ungate forwards the statement of a step whose gate was refused. The server has failed
// the block, if there is one.
func (s *session) ungate() {
	t := s.step
	s.refused = time.Now()
	switch {
	case !t.simple:
		// An error of what leads back stands for that of the Execute, and the client's Sync ends
		// what the server ignores because of it.
		s.skipping = false
		s.own(replySync)
		s.toServer.add(s.undoGate(appendEmpty(nil, wire.Sync)))
	case t.guarded:
		// The server would ignore the Query, too, where a cancel request or a timeout hits what
		// leads back: no Sync of the client's would come.
		t.undoing, t.failed, t.refused = true, false, false
		b := s.undoGate(nil)
		s.own(replySync)
		s.toServer.add(appendEmpty(b, wire.Sync))
		return
	default:
		s.toServer.add(s.undoGate(nil))
	}
	s.release(plan.ReasonPrivilege)
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
		!t.retried && !t.cancelling && t.check == nil && t.standsIn == nil
}

// regate makes up for a missing gate: what leads back to where the step was.
func (s *session) regate(b []byte) []byte {
	s.step.retried = true
	return s.undoGate(b)
}

// undoGate leads back to where the step was before its gate, which has failed.
func (s *session) undoGate(b []byte) []byte {
	t := s.step
	s.gateThere(t.form, false)
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
