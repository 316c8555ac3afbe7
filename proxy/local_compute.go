package proxy

import (
	"context"
	"fmt"
	"runtime/debug"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
)

// computing is the stage of a local execution that is with the engine.
type computing struct {
	passive
	execution *execution
	gate      *gateRun
	head      []byte     // for the client, before the rows
	finishing *finishing // of which the engine looks at the second gate; else nil
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
	seen     *engine.Seen // what the engine is to look for in the gate, in place of computing; nil to compute
}

// run computes. A panic in it is an error, which forwards.
func (x *execution) run() (batch *vector.Batch, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if x.seen != nil {
		return nil, x.decision.Unchanged(x.ctx, x.gate, x.seen)
	}
	return x.decision.Execute(x.ctx, x.tx, x.gate, x.fields, x.params)
}

// gateAnswered takes note of a gate that the server has run, and reports whether the local
// execution goes on.
func (s *session) gateAnswered(g *gateRun) bool {
	s.record(spanGate, g.answer.Sent)
	s.gatePrepared[g.form] = true
	s.batch.repeatable = engine.GateRepeatable(g.answer.Rows)
	s.schemas = engine.GateSchemas(g.answer.Rows)
	s.settings.ByteaOutput = engine.GateByteaOutput(g.answer.Rows)
	if s.local.cancelled {
		s.cancelOnServer(nil)
		return false
	}
	if g.constants != nil && !g.readConstants(s.settings.ClientEncoding != "UTF8") {
		s.forward(plan.ReasonType)
		return false
	}
	if zone, style, intervals, encoding, ok := engine.GateSettings(g.answer.Rows); !ok || zone != s.settings.TimeZone ||
		style != s.settings.DateStyle || s.settings.IntervalStyle != "" && intervals != s.settings.IntervalStyle || encoding != s.settings.ClientEncoding {
		// An earlier statement of the same pipeline has changed it, and the server has
		// not reported that yet.
		s.forward(plan.ReasonSettings)
		return false
	}
	return true
}

// compute has the engine compute, unless it has already, or the statement is to be checked.
// head is for the client, before the rows.
func (s *session) compute(g *gateRun, fields []engine.Field, params []vector.Datum, head []byte) {
	x := s.local
	if g.malformed {
		s.forward(plan.ReasonDescription)
		return
	}
	if x.sampled && engine.CanShadow(g.answer.Rows) {
		s.beginCheck(g, fields, params)
		return
	}
	if x.speculation != nil && !s.ending {
		if batch, ok := x.speculation.Take(g.answer, fields, params); ok {
			s.answer(g, batch, fields, head)
			return
		}
		g.answer.Ahead = x.speculation
	}
	if f := x.decision.Finish(); f != nil && f.Reads {
		g.answer.Seen = &engine.Seen{}
	}
	e := &execution{decision: x.decision, tx: &s.tx, gate: g.answer, fields: fields, params: params}
	e.ctx, e.cancel = context.WithCancel(s.traced())
	x.stage, s.execution = &computing{execution: e, gate: g, head: head}, e
}

// takeSpeculation returns what is to be begun beside the gate: nil for nothing. The driver
// runs it beside the session, and asks before it can have the gate's answer.
func (s *session) takeSpeculation() engine.Speculation {
	x := s.local
	if x == nil || !x.eager {
		return nil
	}
	x.eager = false
	x.speculation = x.decision.Speculate(s.traced(), &s.tx, func(planned []uint32) ([]vector.Datum, bool) {
		p := x.portal
		if p == nil {
			return nil, false
		}
		if p.s.haveParams {
			planned = p.s.params
		}
		return p.decode(planned, nil, s.settings.ClientEncoding != "UTF8")
	})
	return x.speculation
}

// dropSpeculation ends what was begun, unless it was of use.
func (s *session) dropSpeculation() {
	if s.local != nil && s.local.speculation != nil {
		s.local.speculation.Drop()
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
	var c *computing
	if s.local != nil {
		c, _ = s.local.stage.(*computing)
	}
	switch {
	case c == nil || c.execution != x || s.over:
		batch.Release()
	case s.ending:
		batch.Release()
		s.local.stage = passive{}
	case s.local.cancelled:
		batch.Release()
		s.cancelOnServer(nil)
	case err != nil:
		s.notify(err)
		s.queue.at.refusedBy(err)
		s.forward("") // the engine has counted it
	case c.finishing != nil:
		c.finishing.unchanged(s)
	default:
		s.answer(c.gate, batch, x.fields, c.head)
	}
	s.show()
}
