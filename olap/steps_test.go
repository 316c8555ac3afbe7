package olap

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"pgaccel/gpu/program"
)

// TestTruths compares what is made of a table of truth values, chunk by chunk: a byte for each, their set, and
// the numbers of those that are true.
func TestTruths(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := &execution{opt: Options{Workers: 3}, memory: new(atomic.Int64), room: 1 << 40}
	for _, n := range append([]int{buildChunk - 1, buildChunk, buildChunk + 1, 5*buildChunk + 63}, edgeLengths...) {
		for _, nulls := range []bool{false, true} {
			tab := &table{TableData: program.TableData{Values: make([]int64, n)}}
			if nulls {
				tab.Nulls = make([]uint8, n)
			}
			var want []uint32
			truths := make([]uint8, n)
			for i := range n {
				tab.Values[i] = int64(r.IntN(2)) * 7
				if nulls {
					tab.Nulls[i] = uint8(r.IntN(2))
				}
				if tab.Values[i] != 0 && (!nulls || tab.Nulls[i] == 0) {
					truths[i] = 1
					want = append(want, uint32(i))
				}
			}
			if got := x.truths(tab); !slices.Equal(got, truths) {
				t.Fatalf("%d, nulls %v: truths differ", n, nulls)
			}
			if got := x.numbersOf(truths); !slices.Equal(got, want) {
				t.Fatalf("%d, nulls %v: %d numbers of %d", n, nulls, len(got), len(want))
			}
			s := x.setOfTable(-3, truths)
			if s.Lo != -3 || s.Size != int64(n) {
				t.Fatalf("%d: %d, %d", n, s.Lo, s.Size)
			}
			for i, v := range truths {
				if s.Bits[i>>6]>>(i&63)&1 != uint64(v) {
					t.Fatalf("%d: bit %d", n, i)
				}
			}
		}
	}
}

// TestOrderEncoded: of steps over encoded columns that one comes first after which few rows are left, unless it is dear.
func TestOrderEncoded(t *testing.T) {
	for _, c := range []struct {
		steps []step // in the order of what they remove for their cost
		first int    // bound of the one that is to come first
	}{
		{[]step{{share: 0.2, cost: 0.9, hi: 0}, {share: 0.03, cost: 1.2, hi: 1}}, 1},
		{[]step{{share: 0.05, cost: 0.9, hi: 0}, {share: 0.03, cost: 2, hi: 1}}, 0},
		{[]step{{share: 0.01, cost: 0.7, hi: 0}, {share: 0.03, cost: 1.2, hi: 1}, {share: 0.9, cost: 0.7, hi: 2}}, 0},
		{[]step{{share: 0.9, cost: 0.7, hi: 0}, {share: 0.9, cost: 0.7, hi: 1}, {share: 0.05, cost: 1.2, hi: 2}}, 2},
	} {
		n := &node{kind: nodeColumn}
		p := &pipeline{steps: []step{{kind: program.StepFilter, risky: true}}}
		for _, s := range c.steps {
			s.kind, s.n = program.StepRange, n
			p.steps = append(p.steps, s)
		}
		p.steps = append(p.steps, step{kind: program.StepFilter, share: 0.0001, cost: 0.1})
		p.orderEncoded()
		if got := int(p.steps[1].hi); got != c.first || !p.steps[0].risky || p.steps[len(p.steps)-1].kind != program.StepFilter {
			t.Errorf("%v: %d comes first, not %d", c.steps, got, c.first)
		}
	}
}
