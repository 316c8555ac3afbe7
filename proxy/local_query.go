package proxy

import (
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// runningPrefix is the stage of a Query of several statements, of which the last one may be
// answered here: the server runs those before it, whose errors are the client's.
type runningPrefix struct {
	passive
	broke bool // the client has seen an error; ReadyForQuery follows
}

// beginPrefix runs the statements before the last one.
func (s *session) beginPrefix(prefix, sql string, d engine.Decision, before *[]byte) {
	s.relayQuery()
	s.local = &localExecution{simple: true, decision: d, sql: sql, started: time.Now(), stage: &runningPrefix{}}
	*before = appendQuery(*before, prefix)
}

func (p *runningPrefix) failed(*session, reply, []byte) action {
	p.broke = true
	return relay
}

func (p *runningPrefix) ready(s *session, k reply) action {
	if p.broke || s.status == 'E' {
		s.tell(false)
		s.finish()
		return relay
	}
	if reason := s.gateBarred(nil); reason != "" {
		s.forward(reason)
	} else if s.local.cursor == nil {
		s.toServer.add(s.gateQuery(nil))
	} else if s.block != 'T' {
		s.forward(plan.ReasonNotSelect)
	} else {
		s.toServer.add(s.gateDeclare(nil, &gatingDeclare{}, false))
	}
	return swallow
}

// gatingQuery is the stage of a Query while the server describes its result and runs its gate.
type gatingQuery struct {
	gateRun
	notices []byte // said while the server analysed the statement
	ended   batchError
}

// batchError is the error, if any, with which a batch of pgaccel's for a Query has ended.
type batchError uint8

const (
	noError         batchError = iota
	hiddenError                // the client does not see it: the server will say it again
	gateGone                   // the gate was deallocated
	gateRefused                // the session's role may not run the gate
	gateUncertain              // the server has an error for a constant
	gateUndescribed            // the server refuses the SELECT of a COPY's rows
	shownError                 // the client has seen it
)

// beginQuery begins with a Query that may be answered here.
func (s *session) beginQuery(sql string, d engine.Decision, dst *[]byte) {
	s.local = &localExecution{simple: true, decision: d, sql: sql, copy: d.Copy(), explain: d.Explain(), started: time.Now()}
	*dst = s.gateQuery(*dst)
}

// gateQuery asks the server to describe a Query's result and to run the gate.
func (s *session) gateQuery(b []byte) []byte {
	x := s.local
	s.sample()
	if cancelled, cause := s.implicit.takeCancel(); cancelled {
		return s.cancelBatch(b, cause)
	}
	g := &gatingQuery{gateRun: gateRun{free: !s.undoes(nil), constants: constantsOf(x.decision, nil)}}
	x.stage, x.eager = g, !x.sampled
	return s.queryBatch(b, g, false)
}

// queryBatch is one write and one round trip. Closing the unnamed statement and portal is what
// a Query does by itself.
func (s *session) queryBatch(b []byte, g *gatingQuery, anew bool) []byte {
	if s.local.describesItself() {
		b = s.describeText(b, s.local.sql, nil)
	}
	b = s.gateBatch(b, &g.gateRun, anew)
	b = appendNamed(b, wire.Close, 'S', "")
	b = appendNamed(b, wire.Close, 'P', "")
	s.own(replyClose)
	s.own(replyClose)
	s.own(replySync)
	s.cache.forgetStatement("")
	s.cache.forgetPortal("")
	s.setView("", nil)
	return appendEmpty(b, wire.Sync)
}

// holdsNotices returns where what the server warns of amid the answer to a message of kind first is kept, as it would
// say that again if the statement were forwarded; nil where a notice is for the client at once.
func (s *session) holdsNotices(first reply, owed bool) *[]byte {
	if s.local == nil || !owed || first&replyOwn == 0 {
		return nil
	}
	if g, ok := s.local.stage.(*gatingQuery); ok && g.head == nil {
		return &g.notices
	}
	if f := s.finishing(); f != nil && !f.begun {
		return &f.notices
	}
	return nil
}

func (g *gatingQuery) failed(s *session, k reply, body []byte) action {
	code := string(wire.ErrorField(body, 'C'))
	undescribed := s.local.explain != nil && s.local.explain.SQL == "" // all is the gate's
	switch {
	case g.undescribed(k, code):
		g.ended = gateUndescribed
	case (g.head != nil || undescribed) && g.uncertain(k, code):
		g.ended = gateUncertain
	case (g.head != nil || undescribed) && g.refused(k, code):
		g.ended = gateRefused
	case g.guarded && g.gone(k, code): // the block has failed only up to the savepoint
		g.ended = gateGone
	case s.endsQuery(code):
		g.ended = shownError
		if g.head == nil && s.local.describesItself() { // a position in the client's text
			return relay
		}
		return s.relayOwn(body)
	case g.bearable() && !g.retried && code == noSuchStatement:
		g.ended = gateGone
	default:
		g.ended = hiddenError
	}
	return swallow
}

// endsQuery reports whether an error in answer to a message of pgaccel's ends a Query, too:
// the transaction has failed or, outside of one, the client has cancelled or the wait for a
// lock has ended.
func (s *session) endsQuery(code string) bool {
	return s.status != 'I' && !s.implicit.open() || code == queryCanceled || code == lockNotAvailable || code == deadlockDetected
}

func (g *gatingQuery) ready(s *session, k reply) action {
	if k&replyOwn == 0 {
		return relay
	}
	switch g.ended {
	case shownError:
		return s.queryOver()
	case gateGone: // somebody has deallocated it
		b := s.undoGate(nil, &g.gateRun)
		again := &gatingQuery{gateRun: g.gateRun}
		again.retried, again.description = true, description{}
		s.local.stage = again
		s.toServer.add(s.queryBatch(b, again, true))
	case gateRefused:
		s.refused = time.Now()
		s.ungateQuery(&g.gateRun, plan.ReasonPrivilege)
	case gateUncertain:
		s.ungateQuery(&g.gateRun, plan.ReasonEvaluation)
	case gateUndescribed:
		s.ungateQuery(&g.gateRun, plan.ReasonDescription)
	case hiddenError:
		s.gatePrepared[g.form] = false
		s.forward(plan.ReasonDescription)
	default:
		if !s.gateAnswered(&g.gateRun) {
			break
		}
		if s.local.explain != nil {
			s.computeExplain(&g.gateRun, nil, explainHead(g.notices, s.local.explain.TypeOID))
			break
		}
		if g.unfit || g.head == nil {
			s.forward(plan.ReasonDescription)
			break
		}
		switch {
		case s.local.cursor != nil:
			s.computeCursor(&g.gateRun, g.notices)
		case s.local.copy != nil:
			s.computeCopy(&g.gateRun, g.notices)
		case !s.local.describesItself():
			if !g.writable() {
				s.forward(plan.ReasonDescription)
				break
			}
			s.compute(&g.gateRun, nil, nil, g.notices)
		default:
			s.compute(&g.gateRun, g.fields, nil, append(g.notices, g.head...))
		}
	}
	return swallow
}

// queryOver ends a Query at the ReadyForQuery behind an error that the client has seen.
func (s *session) queryOver() action {
	s.tell(false)
	s.finish()
	if s.implicit.open() {
		s.toServer.add(s.commitImplicit(nil))
		return swallow
	}
	return relay
}

// ungateQuery forwards a Query whose gate, or a constant behind it, was an error. The server has
// failed the block, if there is one.
func (s *session) ungateQuery(g *gateRun, reason plan.Reason) {
	b := s.undoGate(nil, g)
	if !g.guarded {
		s.forward(reason)
		return
	}
	// The server would ignore the Query, too, where a cancel request or a timeout hits what
	// leads back: no Sync of the client's would come.
	s.local.stage = &undoingGate{reason: reason}
	s.own(replySync)
	s.toServer.add(appendEmpty(b, wire.Sync))
}

// undoingGate is the stage of a Query whose gate, or a constant behind it, was an error, while the server goes back to
// where it was before.
type undoingGate struct {
	passive
	reason plan.Reason
	over   bool // the client has seen an error; ReadyForQuery follows
}

func (u *undoingGate) failed(s *session, _ reply, body []byte) action {
	if !s.endsQuery(string(wire.ErrorField(body, 'C'))) {
		return swallow
	}
	u.over = true
	return s.relayOwn(body)
}

func (u *undoingGate) ready(s *session, k reply) action {
	if u.over {
		return s.queryOver()
	}
	s.forward(u.reason)
	return swallow
}
