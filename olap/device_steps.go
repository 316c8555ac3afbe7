package olap

import (
	"math"
	"slices"

	"pgaccel/gpu/program"
)

// steps lowers the pipeline's steps, in the order that suits a device: there a column
// costs what its words do, whatever is asked of it.
func (l *lowering) steps() {
	todo := make([]int, 0, len(l.p.steps))
	for i := range l.p.steps {
		s := &l.p.steps[i]
		switch {
		case s.kind == stepRange && s.n == nil:
			l.no(fallbackEmpty)
		case s.kind == stepRange && s.derived:
			// The lookup that it follows from says more.
		case s.kind == stepProbe && l.p.probes[s.probe].lut.left:
			// All pass; who needs the entry looks it up.
		default:
			todo = append(todo, i)
		}
	}
	var done uint64
	read := map[int]bool{}
	for len(todo) > 0 && l.why == "" {
		done = l.p.withLeft(done)
		best, least := -1, 0.0
		for k, i := range todo {
			s := &l.p.steps[i]
			if s.needs&^done != 0 {
				continue
			}
			cost := l.stepCost(s, read) / max(1-s.share, 0.01)
			if s.risky {
				cost = 0
			}
			if best < 0 || cost < least {
				best, least = k, cost
			}
		}
		s := &l.p.steps[todo[best]]
		todo = slices.Delete(todo, best, best+1)
		if s.kind == stepProbe {
			done |= 1 << uint(s.probe)
		}
		l.p.stepColumns(s, func(col int) { read[col] = true })
		l.step(s)
	}
}

// withLeft adds to a set of probes those for left joins whose keys it suffices to compute.
func (p *pipeline) withLeft(done uint64) uint64 {
	for range p.probes { // one may hang on another
		for i, b := range p.probes {
			if b.lut.left && b.needs()&^done == 0 {
				done |= 1 << uint(i)
			}
		}
	}
	return done
}

// stepColumns calls f with the columns of the table that a step reads.
func (p *pipeline) stepColumns(s *step, f func(col int)) {
	var visit func(n *node)
	visit = func(n *node) {
		if n.kind == nodeColumn {
			f(n.col)
		}
		for _, a := range n.args {
			visit(a)
		}
	}
	if s.kind == stepProbe {
		for _, o := range p.probes[s.probe].outer {
			visit(o)
		}
		return
	}
	visit(s.n)
}

// stepCost estimates what a step costs a row on a device, in bits of columns: those that
// have been read by other steps come again for little.
func (l *lowering) stepCost(s *step, read map[int]bool) float64 {
	cost := 1.0
	l.p.stepColumns(s, func(col int) {
		if !read[col] {
			cost += float64(columnOnDevice(l.p.tab, col).width)
		} else {
			cost++
		}
	})
	switch s.kind {
	case stepProbe:
		b := l.p.probes[s.probe].lut
		switch {
		case b.kind == lookupHash:
			cost += 64
		case b.size > deviceStaged:
			cost += 16 // the bitmap does not fit a block's shared memory
		default:
			cost += 2
		}
	case stepFilter:
		cost += 2
	}
	return cost
}

// deviceStaged is about the number of keys of which a bitmap fits a block's shared memory
// beside others.
const deviceStaged = 1 << 20

// shares returns a share in eighths, and in thousandths of few values: an execution with
// other constants had better be the same program.
func shares(share float64) (eighths uint8, permille uint16) {
	share = min(max(share, 0), 1)
	eighths = uint8(math.Round(8 * share))
	if share >= 0.1 {
		return eighths, 125 * uint16(max(eighths, 1))
	}
	least := 1.0 / 256
	for least*math.Sqrt2 < share {
		least *= 2
	}
	return eighths, uint16(math.Round(1000 * least))
}

func (l *lowering) step(s *step) {
	to := program.Step{Risky: s.risky}
	to.Share, to.Permille = shares(s.share)
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
	d := program.TableData{Lo: s.n.lo, Values: make([]int64, len(s.table)), OnNull: 1}
	for i, v := range s.table {
		d.Values[i] = int64(v)
	}
	n := program.Node{Op: program.OpTable, Args: []int{l.node(s.n)}, Index: len(l.prog.Tables)}
	l.prog.Tables = append(l.prog.Tables, program.Table{})
	l.q.Tables = append(l.q.Tables, d)
	return l.add(n)
}
