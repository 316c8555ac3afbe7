package olap

import (
	"math"
	"slices"

	"pgaccel/gpu/program"
)

// steps lowers the pipeline's steps. What a column costs a device is its words, whatever is
// asked of it: program.TuningFor, which knows their widths, puts most steps in another order.
// Rows are multiplied after all that is decided of them alone; a device that finds rows leaves that to
// who reads them.
func (l *lowering) steps() {
	list, rows := l.p.steps, l.prog.Sink.Kind == program.SinkBitmap
	if rows {
		list = list[:l.p.fanned]
	} else if l.p.many >= 0 {
		list = slices.Clone(list)
		i := slices.IndexFunc(list, func(s step) bool { return s.kind == program.StepProbe && s.probe == l.p.many })
		multiplies := list[i]
		copy(list[i:], list[i+1:l.p.fanned])
		list[l.p.fanned-1] = multiplies
	}
	for i := range list {
		switch s := &list[i]; {
		case s.kind == program.StepRange && s.n == nil:
			l.no(fallbackEmpty)
		case s.derived:
			// The lookup that it follows from says more.
		case s.kind == program.StepProbe && l.p.probes[s.probe].lut.left && (rows || s.probe != l.p.many):
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
	to := program.Step{Kind: s.kind, Risky: s.risky, Permille: permille(s.share)}
	switch {
	case s.kind == program.StepProbe:
		to.Index = l.lookup(s.probe)
	case s.kind == program.StepBits && s.onNull:
		to.Kind, to.Node = program.StepFilter, l.passing(s)
	case s.kind == program.StepBits:
		to.Node, to.Index = l.node(s.n), len(l.q.Bits)
		set := s.set
		if s.match == nil && set.Size == 0 {
			set = l.p.x.setOfTable(s.n.lo, s.table)
		}
		l.q.Bits = append(l.q.Bits, program.Bits{Set: set, Match: s.match})
	case s.kind == program.StepRange:
		to.Node, to.Index = l.node(s.n), len(l.q.Ranges)
		l.q.Ranges = append(l.q.Ranges, program.Range{Lo: s.lo, Hi: s.hi})
	default:
		to.Node = l.node(s.n)
	}
	if any := s.intervals(); any != nil && !s.risky {
		c := indexable{s: s, step: to, any: any}
		for _, x := range any {
			c.nodes = append(c.nodes, l.node(x.n))
		}
		l.indexable = append(l.indexable, c)
	}
	l.prog.Steps = append(l.prog.Steps, to)
}

// passing returns a node that is true for the values that pass a StepBits, and for null.
func (l *lowering) passing(s *step) int {
	t := &table{TableData: program.TableData{Lo: s.n.lo, Values: make([]int64, len(s.table)), OnNull: 1}}
	for i, v := range s.table {
		t.Values[i] = int64(v)
	}
	return l.node(&node{kind: nodeTable, args: []*node{s.n}, tab: t, hi: 1})
}
