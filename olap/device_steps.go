package olap

import (
	"math"

	"pgaccel/gpu/program"
)

// steps lowers the pipeline's steps. What a column costs a device is its words, whatever is
// asked of it: program.TuningFor, which knows their widths, puts most steps in another order.
func (l *lowering) steps() {
	for i := range l.p.steps {
		switch s := &l.p.steps[i]; {
		case s.kind == stepRange && s.n == nil:
			l.no(fallbackEmpty)
		case s.derived:
			// The lookup that it follows from says more.
		case s.kind == stepProbe && l.p.probes[s.probe].lut.left:
			// All pass; who needs the entry looks it up.
		default:
			l.step(s)
		}
	}
}

// permille returns a share in thousandths, of few values: an execution with other constants had
// better be the same program.
func permille(share float64) uint16 {
	if share = min(max(share, 0), 1); share >= 0.1 {
		return 125 * uint16(max(math.Round(8*share), 1))
	}
	least := 1.0 / 256
	for least*math.Sqrt2 < share {
		least *= 2
	}
	return uint16(math.Round(1000 * least))
}

func (l *lowering) step(s *step) {
	to := program.Step{Risky: s.risky, Permille: permille(s.share)}
	switch s.kind {
	case stepRange:
		to.Kind, to.Node, to.Index = program.StepRange, l.node(s.n), len(l.q.Ranges)
		l.q.Ranges = append(l.q.Ranges, program.Range{Lo: s.lo, Hi: s.hi})
	case stepTable:
		if s.onNull {
			to.Kind, to.Node = program.StepFilter, l.passing(s)
			break
		}
		to.Kind, to.Node, to.Index = program.StepBits, l.node(s.n), len(l.q.Bits)
		set := s.set
		if set.Size == 0 {
			set = setOfTable(s.n.lo, s.table)
		}
		l.q.Bits = append(l.q.Bits, program.Bits{Lo: set.Lo, Size: set.Size, Words: set.Bits})
	case stepProbe:
		to.Kind, to.Index = program.StepProbe, l.lookup(s.probe)
	case stepFilter:
		to.Kind, to.Node = program.StepFilter, l.node(s.n)
	}
	l.prog.Steps = append(l.prog.Steps, to)
}

// passing returns a node that is true for the values that pass a stepTable, and for null.
func (l *lowering) passing(s *step) int {
	t := &table{TableData: program.TableData{Lo: s.n.lo, Values: make([]int64, len(s.table)), OnNull: 1}}
	for i, v := range s.table {
		t.Values[i] = int64(v)
	}
	return l.node(&node{kind: nodeTable, args: []*node{s.n}, tab: t, hi: 1})
}
