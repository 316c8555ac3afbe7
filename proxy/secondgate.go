package proxy

import (
	"context"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// Where others have committed between the gate and what is behind a rest that reads tables, the gate is run again. If that lets the statement
// pass, and its snapshot sees of the copied tables what the execution has seen, so has every snapshot between: the answer is that of the
// moment that the rest's snapshot is of. The tables that are not copied were asked for behind the rest, amid whose locks they cannot become
// others.

// read says which tables that are not copied the gate has found.
func (f *finishing) read() string {
	list := f.gate.answer.Constants
	if len(list) == 0 || list[len(list)-1].Null {
		return ""
	}
	return list[len(list)-1].Str
}

// settled reports whether the rest is known to have seen what the execution has.
func (f *finishing) settled() bool {
	return f.second == nil && (!f.reads || f.behind == engine.GateSnapshot(f.gate.answer.Rows))
}

// runSecondGate runs the gate again or, if that has been, has the engine look at what it says.
func (f *finishing) runSecondGate(s *session) {
	x := s.local
	if second := f.second; second != nil {
		if !s.gateAnswered(second) {
			return
		}
		if second.malformed {
			s.forward(plan.ReasonDescription)
			return
		}
		e := &execution{decision: x.decision, tx: &s.tx, gate: second.answer, seen: f.gate.answer.Seen}
		e.ctx, e.cancel = context.WithCancel(s.traced())
		x.stage, s.execution = &computing{execution: e, gate: second, finishing: f}, e
		return
	}
	f.second = &gateRun{free: f.gate.free}
	if x.simple {
		f.second.free = !s.undoes(nil)
	}
	b := s.gateBatch(nil, f.second, false)
	f.gate.guarded, f.gate.free = f.second.guarded, f.second.free
	if x.simple {
		s.own(replySync)
		s.toServer.add(appendEmpty(b, wire.Sync))
		return
	}
	s.toServer.add(appendEmpty(b, wire.Flush))
}

// unchanged ends the statement whose tables are.
func (f *finishing) unchanged(s *session) {
	simple := s.local.simple
	out := f.end(s)
	if simple {
		out = appendReady(out, s.status)
	}
	s.toClient.add(out)
}
