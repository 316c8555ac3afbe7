package proxy

import (
	"strings"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// The gate is prepared once in a session, since to parse and plan it costs ten times
// what it costs to run. It may fail: a statement of the client's, or a function, may have
// deallocated it, and a role may lack the right to run it (EXECUTE on a built-in function,
// SELECT on a catalog, USAGE on pg_catalog), which another session may revoke at any moment.
// So it is run only where its error can be undone:
//
//	in a transaction block                               inside of a savepoint
//	outside, where the server has run nothing of the     an error undoes Binds, which are sent
//	batch, which is one transaction                      again behind a Sync of pgaccel's
//
// Elsewhere the statement is forwarded. Behind an error a missing gate is prepared, and run
// again; where the role may not run it, the statement is forwarded. The savepoint costs the
// server 10 to 20 microseconds of processor time, where the gate costs 45.
//
// Where it hangs on what is on its way whether there is a block, the step settles first: it
// waits until the server has answered everything before it.

const (
	savepointSQL  = "SAVEPOINT pgaccel_gate"
	releaseSQL    = "RELEASE SAVEPOINT pgaccel_gate"
	rollbackToSQL = "ROLLBACK TO SAVEPOINT pgaccel_gate"
)

// gateEnded takes the tag of a statement of the client's into account.
func (s *session) gateEnded(tag []byte) {
	switch string(tag) {
	case "BEGIN", "START TRANSACTION":
		s.block = 'T'
	case "COMMIT", "ROLLBACK", "PREPARE TRANSACTION": // AND CHAIN and ROLLBACK TO SAVEPOINT, too
		s.block = 0
	}
}

// gateReady takes a ReadyForQuery into account.
func (s *session) gateReady(k reply) {
	s.block = s.status
	if k&(replyKind|replyOwn) == replyQuery && s.done < s.batchedQuery {
		// From PostgreSQL 17 on, T may be the implicit block of the batch that the Query
		// stands in, where SAVEPOINT fails.
		s.block = 0
	}
}

// unsettled reports that how the gate is to be run depends on answers to come.
func (s *session) unsettled() bool {
	return s.queue.executes > 0 || s.block == 0 && s.sent != s.done
}

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
	case s.status == 'E':
		t.cancelled = false // the Execute fails by itself
		s.release("")
	case s.gateBarred(p) != "":
		s.release(s.gateBarred(p))
	case p.needsTypes() && s.known.statements[p.s.name] != p.s:
		s.release(plan.ReasonParameter)
	default:
		s.toServer.add(s.executeBatch(nil))
	}
}

// undoes reports whether an error in the batch of an Execute of p (a Query, where p is
// nil) would undo anything but Binds that can be sent again.
func (s *session) undoes(p *portal) bool {
	switch {
	case s.block != 'I':
		return true
	case p == nil:
		return false
	}
	return s.queue.sent != s.batch.sent || s.batch.repeatable || p.batch != s.sent ||
		s.queue.bound-s.batch.bound != s.batch.kept || s.known.doubted > s.sent
}

// gateBatch runs the gate for the step, and prepares it where it is not or may not be there.
func (s *session) gateBatch(b []byte, anew bool) []byte {
	form, params := s.step.decision.Gate()
	s.step.form = form
	s.step.gate = engine.Gate{Sent: time.Now()}
	s.step.guarded = s.block == 'T'
	if s.step.guarded {
		b = s.command(b, savepointSQL)
	}
	b = s.gateOf(b, form, params, anew || !s.gatePrepared[form])
	if s.step.guarded {
		b = s.command(b, releaseSQL)
	}
	return b
}

// refusedFor is how long a session does without gates after one that it may not run: each
// leaves an error in the server's log.
const refusedFor = 10 * time.Second

// gateRecentlyRefused reports that the session does without gates.
func (s *session) gateRecentlyRefused() bool {
	return !s.refused.IsZero() && time.Since(s.refused) < refusedFor
}

// gateBarred says why no gate may be run for an Execute of p (a Query, where p is nil): the
// last one was refused, or an error would show. It is "" where one may be, perhaps once the
// step has settled.
func (s *session) gateBarred(p *portal) plan.Reason {
	switch {
	case s.gateRecentlyRefused():
		return plan.ReasonPrivilege
	case !s.unsettled() && s.block != 'T' && s.undoes(p):
		return plan.ReasonNotSelect
	}
	return ""
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
	s.gatePrepared[t.form] = false
	if t.guarded {
		b = s.command(b, rollbackToSQL)
		b = s.command(b, releaseSQL)
	} else if t.portal != nil {
		for _, p := range s.known.boundIn(s.sent) {
			if p.head != nil {
				b = s.bindStandIn(b, p)
				continue
			}
			b = append(b, p.message...)
			s.own(replyBind)
		}
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
