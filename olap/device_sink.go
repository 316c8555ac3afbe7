package olap

import (
	"pgaccel/gpu/program"
	"pgaccel/vector"
)

// groups lowers a grouping: its digits and accumulators. accOf says which of the program's
// accumulators is each of the grouper's; -1 for those that stay as they are.
func (l *lowering) groups(by *grouping) (accOf []int) {
	sink := &l.prog.Sink
	sink.Kind = program.SinkGroups
	for i := range by.axes {
		a, part := &by.axes[i], &by.pack.parts[i]
		switch {
		case a.node != nil:
			l.digit(l.node(a.node), part)
		case a.codeOf != nil:
			l.digit(l.out(outKey{probe: a.probe, of: a}), part)
		default:
			l.digit(l.entry(a.probe), part)
		}
	}
	l.q.Groups = by.pack.card
	for i := range by.g.accs {
		a := &by.g.accs[i]
		if a.kind == accZeros && l.noZeros(a.arg) {
			accOf = append(accOf, -1)
			continue
		}
		if a.kind > program.AccMax {
			l.no("aggregate")
			return nil
		}
		to := program.Acc{Kind: a.kind, Arg: -1, Filter: -1}
		if a.filter != nil {
			to.Filter = l.node(a.filter)
		}
		if a.kind != program.AccRows {
			to.Arg = l.node(a.arg)
		}
		accOf = append(accOf, len(sink.Accs))
		sink.Accs = append(sink.Accs, to)
	}
	return accOf
}

// digit adds a digit to the number that the sink makes.
func (l *lowering) digit(node int, part *part) {
	l.prog.Sink.Digits = append(l.prog.Sink.Digits, program.Digit{Node: node, Nullable: part.nullable})
	l.q.Digits = append(l.q.Digits, program.DigitData{Lo: part.lo, Stride: part.stride})
}

// noZeros reports whether zone maps prove that there is nothing for accZeros to remember:
// no zero and no NaN.
func (l *lowering) noZeros(n *node) bool {
	if n.kind != nodeColumn {
		return false
	}
	for _, seg := range l.p.tab.Segments {
		c := &seg.Columns[n.col]
		if c.Min <= c.Max && (c.Min <= 0 && c.Max >= 0 || c.Max >= vector.NaNKey) {
			return false
		}
	}
	return true
}

// place decides where groups are kept.
func (l *lowering) place(by *grouping, shared int, memory int64, rows float64) {
	words := 1
	for _, a := range l.prog.Sink.Accs {
		words += a.Kind.Words()
	}
	bytes := float64(8 * words)
	card := float64(by.pack.card)
	sink := &l.prog.Sink
	l.q.Expect = uint64(max(min(by.expect, rows, card), 1))
	switch {
	case by.pack.card == 0:
		l.no("groups")
	case len(by.axes) == 0:
		sink.Place = program.PlaceSingle
	case card*bytes <= l.sharedLeft(float64(shared)):
		sink.Place = program.PlaceShared
	case card*bytes <= float64(memory)/8 && (card <= deviceDense || card <= 8*float64(l.q.Expect)):
		sink.Place = program.PlaceGlobal
	default:
		sink.Place = program.PlaceHash
		if most := float64(memory) / 4 / (2 * (bytes + 8)); float64(l.q.Expect) > most {
			l.q.Expect = uint64(max(most, 1))
		}
	}
}

// sharedLeft returns what is left for groups of a block's shared memory: lookups that most
// rows are probed with had better be there, too, and what the kernel needs itself. Most of
// the bitmaps are small; they do not take more than half of it.
func (l *lowering) sharedLeft(shared float64) float64 {
	staged, share := 0.0, 1.0
	for _, s := range l.prog.Steps {
		if s.Kind == program.StepProbe && share > 1.0/8 && l.prog.Lookups[s.Index].Kind != program.LookupHash {
			staged += float64(l.q.Lookups[s.Index].Size) / 8
		}
		share *= float64(s.Permille) / 1000
	}
	return shared - shared/8 - min(staged, shared/2)
}

// deviceDense is the number of groups up to which an array in device memory costs less to
// be cleared and gathered than a hash table costs to be filled.
const deviceDense = 1 << 22
