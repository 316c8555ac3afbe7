package proxy

import (
	"bytes"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
	"pgaccel/wire"
)

// beginExecute begins with an Execute that may be answered here.
func (s *session) beginExecute(p *portal, d engine.Decision, message []byte, rows int32, dst *[]byte) {
	s.local = &localExecution{decision: d, explain: d.Explain(), portal: p, max: rows, original: append([]byte(nil), message...), started: time.Now()}
	if s.local.copy = d.Copy(); s.local.copy != nil {
		s.local.max = 0 // it runs to its end
	}
	s.sample()
	if cancelled, cause := s.implicit.takeCancel(); cancelled {
		*dst = s.cancelBatch(*dst, cause)
		return
	}
	if s.unsettled() {
		s.local.stage = &settling{}
		*dst = appendEmpty(*dst, wire.Flush)
		return
	}
	*dst = s.gateExecute(*dst)
}

// executeFailed ends an Execute with an error that the client sees.
func (s *session) executeFailed(k reply, body []byte) action {
	s.block = 0
	do := relay
	if k&replyOwn != 0 {
		do = s.relayOwn(body)
	}
	s.tell(false)
	s.finish()
	return do
}

// settling is the stage of an Execute that waits until the server has answered everything
// before it. Nothing of pgaccel's is on its way for it.
type settling struct {
	passive
	replace *portal // to be replaced by a placeholder then; nil: the gate is run
}

// settling reports whether the local execution, if there is one, settles.
func (s *session) settling() *settling {
	if s.local == nil {
		return nil
	}
	st, _ := s.local.stage.(*settling)
	return st
}

func (*settling) failed(s *session, k reply, body []byte) action { return s.executeFailed(k, body) }

// settled goes on with an Execute once everything before it has been answered.
func (st *settling) settled(s *session) {
	x := s.local
	p := x.portal
	switch {
	case s.status == 'E':
		x.cancelled = false // the Execute fails by itself
		s.forward("")
	case st.replace != nil && s.functionsFind() != st.replace: // it went with its transaction
		s.forward("")
	case st.replace != nil:
		s.toServer.add(s.replacePortal(nil, st.replace, nil))
	case s.gateBarred(p) != "":
		s.forward(s.gateBarred(p))
	case p.needsTypes() && s.cache.statements[p.s.name] != p.s:
		s.forward(plan.ReasonParameter)
	default:
		s.toServer.add(s.gateExecute(nil))
	}
}

// gatingExecute is the stage of an Execute while the server runs its gate.
type gatingExecute struct {
	gateRun
}

// gateExecute asks for what is not known yet of an Execute's statement, and runs the gate,
// inside the client's batch: with Flush, never Sync.
func (s *session) gateExecute(b []byte) []byte {
	x := s.local
	p := x.portal
	st := p.s
	// A Describe that fails where Execute would not, or with another error, would show.
	// The portal's fails exactly where Execute does.
	if p.needsTypes() {
		b = appendNamed(b, wire.Describe, 'S', st.name)
		s.queue.pushRef(replyStatement|replyOwn, ref{statement: st})
		st.sentForType, st.sentForRow = true, true
	} else if !st.haveFields && !st.sentForRow && x.describesItself() && x.cursor == nil {
		b = appendNamed(b, wire.Describe, 'P', p.name)
		s.queue.pushRef(replyPortal|replyOwn, ref{statement: st})
		st.sentForRow = true
	}
	g := &gatingExecute{gateRun: gateRun{free: !s.undoes(p)}}
	if x.stage = g; x.cursor == nil {
		g.constants, x.eager = constantsOf(x.decision, p), !x.sampled
	}
	return appendEmpty(s.gateBatch(b, &g.gateRun, false), wire.Flush)
}

func (g *gatingExecute) failed(s *session, k reply, body []byte) action {
	code := string(wire.ErrorField(body, 'C'))
	undescribed := g.undescribed(k, code)
	switch {
	case g.gone(k, code):
		// Again in the batch, whose rest the server would skip.
		s.skipping = false
		s.own(replySync)
		again := &gatingExecute{gateRun: g.gateRun}
		s.local.stage, s.local.ledBack = again, true
		again.retried, again.description = true, description{}
		b := s.undoGate(appendEmpty(nil, wire.Sync), &g.gateRun)
		s.toServer.add(appendEmpty(s.gateBatch(b, &again.gateRun, true), wire.Flush))
	case undescribed, g.uncertain(k, code), g.refused(k, code):
		reason := plan.ReasonEvaluation
		if undescribed {
			reason = plan.ReasonDescription
		} else if !g.uncertain(k, code) {
			reason, s.refused = plan.ReasonPrivilege, time.Now()
		}
		// An error of what leads back stands for that of the Execute, and the client's Sync ends
		// what the server ignores because of it.
		s.skipping = false
		s.own(replySync)
		s.toServer.add(s.undoGate(appendEmpty(nil, wire.Sync), &g.gateRun))
		s.forward(reason)
	default:
		return s.executeFailed(k, body)
	}
	return swallow
}

func (g *gatingExecute) answered(s *session) {
	if !s.gateAnswered(&g.gateRun) {
		return
	}
	p := s.local.portal
	if s.local.cursor != nil {
		s.declare(engine.GateSnapshot(g.answer.Rows))
		return
	}
	if s.local.copy != nil {
		if p.dead || len(p.values) > 0 {
			s.forward(plan.ReasonDescription)
			return
		}
		s.computeCopy(&g.gateRun, nil)
		return
	}
	if !p.s.haveFields && s.local.describesItself() || p.dead || p.s.dead || s.local.writes() && !g.writable() {
		s.forward(plan.ReasonDescription)
		return
	}
	var params []vector.Datum
	if len(p.values) > 0 {
		var unread []bool
		ok := true
		if g.constants != nil {
			unread, ok = g.constants.Unread, typed(g.constants, p.s.params)
		}
		if ok {
			params, ok = p.decode(p.s.params, unread, s.settings.ClientEncoding != "UTF8")
		}
		if !ok || !p.s.haveParams {
			s.forward(plan.ReasonParameter)
			return
		}
	}
	if s.local.explain != nil {
		s.computeExplain(&g.gateRun, params, nil)
		return
	}
	if s.local.writes() {
		s.compute(&g.gateRun, nil, params, nil)
		return
	}
	s.compute(&g.gateRun, p.s.fields, params, nil)
}

// reopening is the stage of an Execute of a portal whose first rows were sent from here, while
// the server says whether it has it still, and which settings hold.
type reopening struct {
	passive
	rows     [][]*string // answers to writingSettings
	replaced bool        // the portal of that name is another one by now
}

// beginReopen goes on with a portal whose first rows were sent from here.
func (s *session) beginReopen(p *portal, message []byte, rows int32, dst *[]byte) {
	s.local = &localExecution{portal: p, max: rows, original: bytes.Clone(message), started: time.Now(), answer: p.answer}
	p.answer.busy = true
	if s.queue.len() == 0 && p.serial == s.commands && p.answer.reported == s.settings {
		s.send(nil)
		return
	}
	// The portal may have gone with its transaction: the server knows, and its
	// answers to earlier messages come first. If it has, the server skips what follows.
	s.local.stage = &reopening{}
	b := appendNamed(*dst, wire.Describe, 'P', p.name)
	s.own(replyPortal)
	for _, sql := range writingSettings {
		b = s.command(b, sql)
	}
	*dst = appendEmpty(b, wire.Flush)
}

func (r *reopening) described(s *session, _ byte, message []byte) {
	r.replaced = s.local.portal.head != nil && !isPlaceholder(message[wire.HeaderLen:])
}

func (r *reopening) row(body []byte) {
	if row, ok := readRow(body); ok {
		r.rows = append(r.rows, row)
	}
}

func (r *reopening) failed(s *session, k reply, body []byte) action {
	if k&replyOwn != 0 {
		s.cache.forgetPortal(s.local.portal.name) // it went with its transaction
	}
	return s.executeFailed(k, body)
}

// answered sends more rows of the portal. Settings that the client has changed since the last
// ones hold from here on, as in Postgres, which runs the output functions row by row. Those
// that pgaccel cannot write under end the statement: another snapshot's rows may be others,
// so that the server cannot go on with it.
func (r *reopening) answered(s *session) {
	p := s.local.portal
	if r.replaced {
		s.cache.forgetPortal(p.name)
		s.forward("")
		return
	}
	a := p.answer
	a.reported = s.settings
	if a.batch != nil {
		if err := a.encode(s.settingsOf(r.rows)); err != nil {
			s.cancelOnServer(wire.AppendError(nil, wire.ErrorFields{Severity: "ERROR", Code: "0A000",
				Message: "pgaccel cannot go on with portal \"" + p.name + "\": " + err.Error(),
				Hint:    "Set it back, or read the portal to its end before it is changed."}))
			return
		}
	}
	s.send(nil)
}
