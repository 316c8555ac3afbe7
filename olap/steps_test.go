package olap

import (
	"math/rand/v2"
	"testing"

	"pgaccel/gpu/program"
)

// TestSetOfTable compares the set of a table with its bytes.
func TestSetOfTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range edgeLengths {
		table := make([]uint8, n)
		for i := range table {
			table[i] = uint8(r.IntN(2))
		}
		s := setOfTable(-3, table)
		if s.Lo != -3 || s.Size != int64(n) {
			t.Fatalf("%d: %d, %d", n, s.Lo, s.Size)
		}
		for i, v := range table {
			if s.Bits[i>>6]>>(i&63)&1 != uint64(v) {
				t.Fatalf("%d: bit %d", n, i)
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
