package bitmapidx

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// rowsOf decodes an answer as a device does: each part's bins one after the other.
func rowsOf(x *Index, a Answer) []uint64 {
	dst := make([]uint64, (x.rows+63)/64)
	chunks := chunksOf(x.rows)
	for _, p := range a.Parts {
		from := p.From
		for i, chunk := p.From, 0; i < p.To; i++ {
			if w := x.Words()[i]; w&fillFlag != 0 {
				chunk += int(w & runMask)
			} else {
				chunk++
			}
			if chunk == chunks {
				or(dst, x.Words()[from:i+1])
				from, chunk = i+1, 0
			}
		}
		if from != p.To {
			panic("a part ends within a bin")
		}
	}
	if a.Not {
		not(dst, x.rows)
	}
	return dst
}

func TestAnswer(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	nots := 0
	for name, make := range columns {
		for _, n := range []int{1, 62, 63, 64, 126, 127, 1000, 4099} {
			values, nulls := make(rng, n)
			x := build(values, nulls, options{1 + rng.IntN(9), 1 + rng.IntN(9)}, nil)
			check := func(what string, a Answer, want func(v int64) bool) {
				rows := rowsOf(x, a)
				maybe := rows
				if a.Exact {
					maybe = nil
				}
				checkRows(t, fmt.Sprintf("%s, %d rows, %s", name, n, what), values, nulls, rows, maybe, want)
				if a.Not {
					nots++
				}
			}
			for range 20 {
				lo, hi := values[rng.IntN(n)], values[rng.IntN(n)]
				lo, hi = lo+rng.Int64N(3)-1, hi+rng.Int64N(3)-1
				check("range", x.RangeAnswer(lo, hi), func(v int64) bool { return lo <= v && v <= hi })
				in := []int64{lo, hi, values[rng.IntN(n)]}[:1+rng.IntN(3)]
				check("in", x.InAnswer(in), func(v int64) bool { return slices.Contains(in, v) })
			}
		}
	}
	if nots == 0 {
		t.Error("no answer is of the bins outside")
	}
}
