package olap

import (
	"math/rand/v2"
	"testing"

	"pgaccel/vector"
)

// TestQuotients compares quotients of columns of words with the tree that is evaluated a row at a
// time, the sums of computed decimals with those of codes.
func TestQuotients(t *testing.T) {
	w := newRelationWorld(t, rand.New(rand.NewPCG(4, 11)), 3000, 1024)
	for _, c := range []struct {
		sql   string
		known bool
	}{
		{"select g, sum(n / 7.5) from fact group by g", true},
		{"select g, sum(7.5 / (n + 1000)) from fact group by g", true},
		{"select g, sum((n - 1) / (n + 1000)) from fact group by g", true},
		{"select g, sum(n / 7.5 + 1) from fact group by g", false},
		{"select g, sum(n / (n / 3 + 1000)) from fact group by g", false},
	} {
		x := w.execution(t, c.sql, Options{Workers: 1}, func(x *execution) error { return x.begin() })
		p, lowered, err := x.prepareFor(0, append(x.q.Group, x.q.Aggs[0].Arg), make([]bool, 2), false)
		if err != nil {
			t.Fatal(c.sql, err)
		}
		n, err := p.c.compile(lowered[1])
		if err != nil {
			t.Fatal(c.sql, err)
		}
		if a := (&acc{kind: accDecimalSum, arg: n}); !a.computed() {
			t.Fatalf("%s: the argument is interned", c.sql)
		}
		worker := newWorker(p)
		worker.seg = p.tab.Segments[0]
		for _, rows := range []int{1, 63, 64, 65, 127, 128, 1023, 1024} {
			worker.begin(0, rows)
			vals, nulls := worker.decimals(n)
			if known, err := worker.rows(n, 0).quotients(make([]vector.Decimal, rows), make([]uint8, rows)); known != c.known || err != nil {
				t.Fatalf("%s: known is %v, %v", c.sql, known, err)
			}
			computed, coded := &decimalSums{}, &decimalSums{dict: n.dict}
			computed.grow(1)
			coded.grow(1)
			for i, null := range nulls {
				if null == 0 {
					computed.plus(0, vals[i], 1)
				}
			}
			v := worker.tree(n, 0)
			coded.add(nil, (&state{}).sparse(v))
			if worker.err != nil || computed.sum[0] != coded.sum[0] || computed.n[0] != coded.n[0] {
				t.Fatalf("%s, %d rows: %v of %d instead of %v of %d (%v)", c.sql, rows, computed.sum, computed.n, coded.sum, coded.n, worker.err)
			}
		}
	}
}

// sparse returns the values that are not null.
func (s *state) sparse(v vec) []int64 {
	_, v = s.withoutNulls(nil, v)
	return v.v
}
