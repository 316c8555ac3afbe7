package proxy

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
	"pgaccel/wire"
)

// step is one statement on its way to be answered here. While there is one, the
// session takes no more from the client. It goes through these stages, each of which
// may end in release, after which the server answers as if nothing had been:
//
//	prefix      the statements before it are run by the server (RouteSplit)
//	collecting  the server describes the result and runs the gate; the engine may have
//	            begun to compute, on what the gate is expected to say
//	executing   the engine computes, in a goroutine of the driver
//	sending     rows go to the client as fast as it takes them
//	cancelling  the client has cancelled; the server is made to say so
//
// or, for one that is checked (shadow.go), the server answers while the step lasts.
type step struct {
	simple   bool            // a Query; else an Execute
	decision engine.Decision // that it follows; nil for a portal that goes on
	sql      string          // of a Query
	portal   *portal         // of an Execute
	max      int32           // its limit of rows, 0 for none
	original []byte          // the client's message
	started  time.Time

	prefix   bool
	form     engine.GateForm // of the gate
	gate     engine.Gate
	notices  []byte // said while the server analysed the statement
	fields   []engine.Field
	head     []byte  // RowDescription for the client
	unfit    bool    // something that came cannot be dealt with
	settling bool    // waits for the answers to all messages before it
	free     bool    // an error of the gate's undoes nothing that is not easily done again
	guarded  bool    // the gate runs inside of a savepoint
	retried  bool    // the gate was prepared anew
	refused  bool    // the session's role may not run the gate
	undoing  bool    // the gate of a Query or of a check was refused, and is being undone
	failed   bool    // an error that the client does not see
	code     string  // its SQLSTATE
	relayed  bool    // an error that the client has seen; ReadyForQuery follows
	resume   bool    // a portal goes on
	standsIn *portal // in whose place the stand-in is being put
	replaced bool    // the portal that is to go on is another one by now

	eager     bool               // ahead is to be asked for
	ahead     engine.Speculation // begun while the gate is under way; nil for none
	execution *execution

	sending  bool
	headSent bool
	answer   *answer
	first    int // row at which this Execute begins
	end      int // and before which it ends

	cancelled  bool
	cancelling bool
	cause      []byte // the server's error that has cancelled it; nil for a cancel request

	sampled bool   // to be checked, if it can be answered here
	check   *check // the server answers, under watch
}

// execution is what the engine computes, outside of the machine.
type execution struct {
	decision engine.Decision
	tx       *engine.Transaction
	ctx      context.Context
	cancel   context.CancelFunc
	gate     engine.Gate
	fields   []engine.Field
	params   []vector.Datum
}

// run computes. A panic in it is an error, which forwards.
func (x *execution) run() (batch *vector.Batch, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return x.decision.Execute(x.ctx, x.tx, x.gate, x.fields, x.params)
}

// own notes a message of pgaccel's; the answer will be swallowed.
func (s *session) own(k reply) { s.queue.push(k | replyOwn) }

// beginPrefix runs the statements before the last one.
func (s *session) beginPrefix(prefix, sql string, d engine.Decision, before *[]byte) {
	s.relayQuery()
	s.step = &step{simple: true, prefix: true, decision: d, sql: sql, started: time.Now()}
	*before = appendQuery(*before, prefix)
}

// beginSimple asks the server to describe a Query's result and to run the gate.
func (s *session) beginSimple(sql string, d engine.Decision, dst *[]byte) {
	s.step = &step{simple: true, decision: d, sql: sql, started: time.Now()}
	s.sample()
	if s.step.cancelled {
		*dst = s.cancelBatch(*dst)
		return
	}
	s.step.free, s.step.eager = !s.undoes(nil), !s.step.sampled
	*dst = s.simpleBatch(*dst, false)
}

// simpleBatch is one write and one round trip. Closing the unnamed statement and
// portal is what a Query does by itself.
func (s *session) simpleBatch(b []byte, anew bool) []byte {
	b = appendNamed(b, wire.Close, 'S', queryName)
	b = appendParse(b, queryName, s.step.sql, nil)
	b = appendNamed(b, wire.Describe, 'S', queryName)
	b = appendNamed(b, wire.Close, 'S', queryName)
	s.own(replyClose)
	s.own(replyParse)
	s.own(replyStatement)
	s.own(replyClose)
	b = s.gateBatch(b, anew)
	b = appendNamed(b, wire.Close, 'S', "")
	b = appendNamed(b, wire.Close, 'P', "")
	s.own(replyClose)
	s.own(replyClose)
	s.own(replySync)
	s.known.forgetStatement("")
	s.known.forgetPortal("")
	s.setView("", nil)
	return appendEmpty(b, wire.Sync)
}

// sample decides whether the step just begun is to be checked: what stands in a block,
// be it one that was opened for that.
func (s *session) sample() {
	t := s.step
	t.cancelled, t.cause = s.wrap.cancelled, s.wrap.cause
	s.wrap.uncancelled()
	t.sampled = s.wrap.stage == wrapOpen || s.share != nil && s.status == 'T' && t.max == 0 && s.share() && t.decision.Comparable()
}

// beginExecute asks for what is not known yet of an Execute's statement, and runs
// the gate, inside the client's batch: with Flush, never Sync.
func (s *session) beginExecute(p *portal, d engine.Decision, message []byte, rows int32, dst *[]byte) {
	s.step = &step{decision: d, portal: p, max: rows, original: append([]byte(nil), message...), started: time.Now()}
	s.sample()
	if s.step.cancelled {
		*dst = s.cancelBatch(*dst)
		return
	}
	if s.step.settling = s.unsettled(); s.step.settling {
		*dst = appendEmpty(*dst, wire.Flush)
		return
	}
	*dst = s.executeBatch(*dst)
}

// executeBatch is what beginExecute asks.
func (s *session) executeBatch(b []byte) []byte {
	p := s.step.portal
	st := p.s
	// A Describe that fails where Execute would not, or with another error, would show.
	// The portal's fails exactly where Execute does.
	if p.needsTypes() {
		b = appendNamed(b, wire.Describe, 'S', st.name)
		s.queue.pushRef(replyStatement|replyOwn, ref{statement: st})
		st.sentForType, st.sentForRow = true, true
	} else if !st.haveFields && !st.sentForRow {
		b = appendNamed(b, wire.Describe, 'P', p.name)
		s.queue.pushRef(replyPortal|replyOwn, ref{statement: st})
		st.sentForRow = true
	}
	s.step.free = !s.undoes(p)
	s.step.eager = !s.step.sampled
	return appendEmpty(s.gateBatch(b, false), wire.Flush)
}

// beginResume goes on with a portal whose first rows were sent from here.
func (s *session) beginResume(p *portal, message []byte, rows int32, dst *[]byte) {
	s.step = &step{portal: p, max: rows, resume: true, original: bytes.Clone(message), started: time.Now()}
	p.answer.busy = true
	if s.queue.len() == 0 && p.serial == s.commands && p.answer.reported == s.settings {
		s.send(p.answer)
		return
	}
	// The portal may have gone with its transaction: the server knows, and its
	// answers to earlier messages come first. If it has, the server skips what follows.
	b := appendNamed(*dst, wire.Describe, 'P', p.name)
	s.own(replyPortal)
	for _, sql := range writingSettings {
		b = s.command(b, sql)
	}
	*dst = appendEmpty(b, wire.Flush)
}

func (t *step) gateRow(body []byte) {
	if t.cancelling {
		return
	}
	row, ok := readRow(body)
	if !ok {
		t.unfit = true
		return
	}
	t.gate.Rows = append(t.gate.Rows, row)
}

// described takes the description of a Query's result.
func (t *step) described(typ byte, message []byte) {
	body := message[wire.HeaderLen:]
	if t.resume { // only asked whether the portal is there
		t.replaced = t.portal.head != nil && !isStandIn(body)
		return
	}
	switch typ {
	case wire.ParameterDescription:
		if len(body) != 2 || body[0] != 0 || body[1] != 0 {
			t.unfit = true
		}
	case wire.NoData:
		t.unfit = true
	case wire.RowDescription:
		fields, ok := readFields(body)
		t.unfit = t.unfit || !ok
		t.fields, t.head = fields, append([]byte(nil), message...)
	}
}

// holdsNotices says that what the server warns of now it would say again if the
// Query were forwarded.
func (t *step) holdsNotices(first reply, owed bool) bool {
	return t.simple && owed && first&replyOwn != 0 && t.head == nil && !t.cancelling
}

// stepReady deals with a ReadyForQuery, to the message of kind k.
func (s *session) stepReady(k reply) action {
	t := s.step
	switch {
	case t.check != nil:
		return s.checkReady(k)
	case t.relayed:
		s.tell(false)
		s.finish()
		if s.wrap.stage == wrapOpen {
			s.toServer.add(s.closeWrap(nil))
			return swallow
		}
		return relay
	case k&replyOwn == 0:
		if !t.prefix {
			return relay
		}
		if t.failed {
			s.tell(false)
			s.finish()
			return relay
		}
		if s.status == 'E' {
			s.tell(false)
			s.finish()
			return relay
		}
		if reason := s.gateBarred(nil); reason != "" {
			s.release(reason)
			return swallow
		}
		started, cancelled := t.started, t.cancelled
		var b []byte
		s.beginSimple(t.sql, t.decision, &b)
		s.step.original, s.step.started, s.step.cancelled = appendQuery(nil, t.sql), started, cancelled
		s.toServer.add(b)
	case t.cancelling:
		s.release(plan.ReasonInternalError)
	case t.failed && t.code == noSuchStatement && !t.retried && (t.free || t.guarded):
		// Somebody has deallocated the gate.
		t.failed = false
		t.head, t.fields, t.notices = nil, nil, nil
		s.toServer.add(s.simpleBatch(s.regate(nil), true))
	case t.failed && t.refused:
		s.ungate()
	case t.undoing: // the server is where it was before the gate
		s.release(plan.ReasonPrivilege)
	case t.failed:
		s.gatePrepared[t.form] = false
		s.release(plan.ReasonDescription)
	default:
		s.collected()
	}
	return swallow
}

// stepFailed deals with an error in answer to a message of kind k. What the server
// skips because of it has been taken off the queue.
func (s *session) stepFailed(k reply, body []byte) action {
	t := s.step
	code := string(wire.ErrorField(body, 'C'))
	switch {
	case t.check != nil && t.gateRefused(k, code):
		s.unconfirmed(false)
		return swallow
	case t.check != nil:
		return s.checkFailed(body)
	case t.prefix:
		t.failed = true
		return relay
	case t.gateGone(k, code) && !t.simple:
		s.regateExecute()
		return swallow
	case t.gateRefused(k, code) && !t.simple:
		s.ungate()
		return swallow
	case t.gateRefused(k, code):
		t.refused = true
	case t.gateGone(k, code) && t.guarded:
	case t.cancelling:
		if t.simple {
			t.relayed = true
		} else {
			s.block = 0
			s.tell(false)
			s.finish()
		}
		switch {
		case t.cause != nil:
			s.ahead = t.cause
			return swallow
		case code != queryCanceled:
			s.ahead = wire.AppendError(nil, canceledError)
			return swallow
		}
		return relay
	case !t.simple:
		if t.resume && k&replyOwn != 0 {
			s.known.forgetPortal(t.portal.name) // it went with its transaction
		}
		if t.standsIn != nil && k&replyOwn != 0 {
			s.known.forgetPortal(t.standsIn.name)
		}
		s.block = 0
		do := s.relayOwn(k, body)
		s.tell(false)
		s.finish()
		return do
	case s.status != 'I' && s.wrap.stage != wrapOpen || code == queryCanceled || code == lockNotAvailable || code == deadlockDetected:
		// The transaction has failed; in I, the client has cancelled or the wait for a
		// lock has ended. A Query would have come to the same.
		t.relayed = true
		return s.relayOwn(k, body)
	}
	t.failed, t.code = true, code
	return swallow
}

// relayOwn relays an error in answer to a message of pgaccel's, of kind k. A position in
// a text that is not the client's means nothing to it.
func (s *session) relayOwn(k reply, body []byte) action {
	t := s.step
	if k&replyOwn == 0 || t.simple && t.head == nil || wire.ErrorField(body, 'P') == nil {
		return relay
	}
	s.ahead = wire.AppendMessage(nil, wire.ErrorResponse, withoutPosition(body))
	return swallow
}

// withoutPosition returns the fields of an error but for P.
func withoutPosition(fields []byte) (out []byte) {
	for len(fields) > 1 {
		end := bytes.IndexByte(fields, 0) + 1
		if end == 0 {
			break
		}
		if fields[0] != 'P' {
			out = append(out, fields[:end]...)
		}
		fields = fields[end:]
	}
	return append(out, 0)
}

// SQLSTATEs.
const (
	queryCanceled    = "57014"
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
	noSuchStatement  = "26000"
	noSuchSchema     = "3F000"
)

// collected is called when the server has answered all own messages of a step.
func (s *session) collected() {
	t := s.step
	if t.check != nil {
		s.confirmed()
		return
	}
	if t.cancelling {
		s.release(plan.ReasonInternalError)
		return
	}
	if t.standsIn != nil {
		if t.portal == nil {
			s.release("")
		} else {
			s.send(t.portal.answer)
		}
		return
	}
	if t.resume && t.replaced {
		s.known.forgetPortal(t.portal.name)
		s.release("")
		return
	}
	if t.resume {
		s.readOn()
		return
	}
	s.gatePrepared[t.form] = true
	s.batch.repeatable = engine.GateRepeatable(t.gate.Rows)
	if t.cancelled {
		s.cancelOnServer()
		return
	}
	if zone, style, encoding, ok := engine.GateSettings(t.gate.Rows); !ok || zone != s.settings.TimeZone ||
		style != s.settings.DateStyle || encoding != s.settings.ClientEncoding {
		// An earlier statement of the same pipeline has changed it, and the server has
		// not reported that yet.
		s.release(plan.ReasonSettings)
		return
	}
	var params []vector.Datum
	if p := t.portal; p != nil {
		if !p.s.haveFields || p.dead || p.s.dead {
			s.release(plan.ReasonDescription)
			return
		}
		t.fields = p.s.fields
		if len(p.values) > 0 {
			var ok bool
			if params, ok = p.decode(p.s.params, s.settings.ClientEncoding != "UTF8"); !ok || !p.s.haveParams {
				s.release(plan.ReasonParameter)
				return
			}
		}
	}
	if t.unfit || t.simple && t.head == nil {
		s.release(plan.ReasonDescription)
		return
	}
	if t.sampled && engine.CanShadow(t.gate.Rows) {
		s.beginCheck(params)
		return
	}
	if t.ahead != nil && !s.ending {
		if batch, ok := t.ahead.Take(t.gate, t.fields, params); ok {
			s.answer(batch)
			return
		}
		t.gate.Ahead = t.ahead
	}
	x := &execution{decision: t.decision, tx: &s.tx, gate: t.gate, fields: t.fields, params: params}
	x.ctx, x.cancel = context.WithCancel(s.ctx)
	t.execution, s.execution = x, x
}

// takeSpeculation returns what is to be begun, once the gate is on its way: nil for
// nothing. The driver runs it beside the session.
func (s *session) takeSpeculation() engine.Speculation {
	t := s.step
	if t == nil || !t.eager {
		return nil
	}
	t.eager = false
	t.ahead = t.decision.Speculate(s.ctx, &s.tx, func(planned []uint32) ([]vector.Datum, bool) {
		p := t.portal
		if p == nil {
			return nil, false
		}
		if p.s.haveParams {
			planned = p.s.params
		}
		return p.decode(planned, s.settings.ClientEncoding != "UTF8")
	})
	return t.ahead
}

// dropSpeculation ends what was begun, unless it was of use.
func (s *session) dropSpeculation() {
	if s.step != nil && s.step.ahead != nil {
		s.step.ahead.Drop()
	}
}

// takeExecution returns an execution to be started, once.
func (s *session) takeExecution() *execution {
	x := s.execution
	s.execution = nil
	return x
}

// executed gives the session what an execution came to.
func (s *session) executed(x *execution, batch *vector.Batch, err error) {
	x.cancel()
	t := s.step
	if t == nil || t.execution != x || s.over {
		batch.Release()
		return
	}
	t.execution = nil
	switch {
	case s.ending:
		batch.Release()
	case t.cancelled:
		batch.Release()
		s.cancelOnServer()
	case err != nil:
		s.release("") // the engine has counted it
	default:
		s.answer(batch)
	}
}

// release lets the server answer. A reason other than "" is counted. A cancel request that
// has come meanwhile may have found the server idle, and is for the client's statement.
func (s *session) release(reason plan.Reason) {
	t := s.step
	if t.cancelled && !t.cancelling {
		s.cancelOnServer()
		return
	}
	if reason != "" && t.decision != nil {
		t.decision.Forwarded(reason)
	}
	if s.wrap.stage == wrapOpen && t.simple && s.status != 'T' {
		// Describing has failed, and the block with it: without one, then.
		s.toServer.add(s.wrapBatch(nil, rollbackSQL, replySync))
		s.wrap = wrap{}
	}
	s.pass()
	s.tell(false)
	s.finish()
}

// pass passes the client's message on.
func (s *session) pass() {
	t := s.step
	if t.simple {
		s.relayQuery()
		if t.original == nil {
			t.original = appendQuery(nil, t.sql)
		}
	} else {
		if t.portal != nil {
			t.portal.forwarded = true
		}
		s.queue.push(replyExecute)
	}
	if t.decision != nil {
		s.queue.timed(t.decision, time.Now())
	}
	s.toServer.add(t.original)
	if t.simple && s.wrap.stage == wrapOpen {
		s.toServer.add(s.closeWrap(nil))
	}
}

// tell tells the observer who answers.
func (s *session) tell(accelerated bool) {
	if s.step.decision != nil {
		s.observer.Answered(accelerated, time.Since(s.step.started))
	}
}

// finish ends the step.
func (s *session) finish() {
	if s.step.simple && s.status == 'I' {
		s.tx.End() // no ReadyForQuery of the server's will say that it is over
	}
	s.dropSpeculation()
	s.step.letGo(&s.known)
	s.step = nil
}
