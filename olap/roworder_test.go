package olap

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// orderColumn makes a column of n rows of any kind that rows can be ordered by. Few values
// make ties, many and far ones more bits than an integer has.
func orderColumn(r *rand.Rand, n int) rcol {
	span := []int64{1, 2, 50, 1 << 20, 1 << 40, math.MaxInt64}[r.IntN(6)]
	value := func() int64 { return r.Int64N(span) - r.Int64N(span) }
	c := rcol{t: vector.TypeOf(vector.Int8)}
	switch r.IntN(6) {
	case 0:
		c.t = vector.TypeOf(vector.Float8)
		for range n {
			f := float64(value()) / 8
			if r.IntN(20) == 0 {
				f = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[r.IntN(4)]
			}
			c.v = append(c.v, int64(math.Float64bits(f)))
		}
	case 1:
		c.t = vector.NumericType(vector.VaryingScale)
		scales, large := r.IntN(3), r.IntN(3) == 0
		for range n {
			d := vector.Decimal{Unscaled: vector.Int128Of(value()), Scale: 2}
			if scales == 0 {
				d.Scale = int16(r.IntN(4))
			}
			if large {
				d.Unscaled.Hi += r.Int64N(3)
			}
			c.dec = append(c.dec, d)
		}
	case 2:
		c.t = vector.TypeOf(vector.Text)
		c.t.Collation = vector.Collation{OID: 950, C: true, Deterministic: true}
		list := make([]string, 1+r.IntN(300))
		for i := range list {
			list[i] = fmt.Sprint(r.IntN(1000))
		}
		c.dict = listDict(list, c.t)
		for range n {
			c.v = append(c.v, r.Int64N(int64(len(list))))
		}
	case 3:
		c.t = vector.TypeOf(vector.Text)
		c.t.Collation = vector.Collation{OID: 950, C: true, Deterministic: true}
		for range n {
			c.str = append(c.str, fmt.Sprint(value()))
		}
	default:
		for range n {
			c.v = append(c.v, value())
		}
	}
	if r.IntN(3) == 0 {
		c.nulls = make([]uint8, n)
		for i := range c.nulls {
			if c.nulls[i] = uint8(r.IntN(4) / 3); c.nulls[i] != 0 && c.dict != nil {
				c.v[i] = math.MinInt64 // a code that there is not
			}
		}
	}
	return c
}

// TestRowOrder compares the order by integers with that by columns.
func TestRowOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	whole, part, none := 0, 0, 0
	for turn := range 1000 {
		n := []int{2, 3, 40, 63, 64, 127, 128, 129, 511, 512, 513, 700}[r.IntN(12)]
		x := &execution{ctx: t.Context(), q: &plan.Star{}, opt: Options{MemoryLimit: 1 << 30}, memory: new(atomic.Int64), room: 1 << 30}
		var cols []rcol
		for range 1 + r.IntN(4) {
			cols = append(cols, orderColumn(r, n))
			x.q.Order = append(x.q.Order, plan.Order{Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0})
		}
		compare, err := ordering(cols, x.q.Order)
		if err != nil {
			t.Fatal(err)
		}
		o, err := x.order(cols, n)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case o.keys == nil:
			none++
		case o.whole:
			whole++
		default:
			part++
		}
		for range 100 {
			a, b := uint32(r.IntN(n)), uint32(r.IntN(n))
			if got, want := o.rows(a, b), compare(a, b); cmp.Compare(got, 0) != cmp.Compare(want, 0) {
				t.Fatalf("turn %d: rows %d and %d: %d, want %d", turn, a, b, got, want)
			}
		}
		var rows []uint32
		for i := range uint32(n) {
			if r.IntN(8) > 0 {
				rows = append(rows, i)
			}
		}
		want := slices.Clone(rows)
		slices.SortStableFunc(want, compare)
		parted := slices.Clone(rows)
		if o.sort(rows); !slices.Equal(rows, want) {
			t.Fatalf("turn %d: %d rows in another order", turn, len(rows))
		}
		if len(parted) == 0 {
			continue
		}
		x.opt.Workers = 1 + r.IntN(5)
		if o.sortParted(parted); !slices.Equal(parted, want) {
			t.Fatalf("turn %d: %d rows in another order by %d goroutines", turn, len(parted), x.opt.Workers)
		}
	}
	if whole < 50 || part < 50 || none < 50 {
		t.Errorf("%d orders in an integer, %d in part, %d not at all", whole, part, none)
	}
}

// TestStrings compares the strings of a result with those of its dictionary, one by one.
func TestStrings(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	typ := vector.TypeOf(vector.Text)
	for _, codes := range []int{1, 7, writtenCodes, writtenCodes + 1, 1000, 20000} {
		for _, n := range []int{1, 40, 3000} {
			list := make([]string, codes)
			for i := range list {
				list[i] = fmt.Sprint(i)[:r.IntN(2)+len(fmt.Sprint(i))-1]
			}
			c := rcol{t: typ, dict: listDict(list, typ), nulls: make([]uint8, n)}
			for i := range n {
				c.v = append(c.v, r.Int64N(int64(codes)))
				if c.nulls[i] = uint8(r.IntN(5) / 4); c.nulls[i] != 0 {
					c.v[i] = -1
				}
			}
			var rows []uint32
			for range n {
				rows = append(rows, uint32(r.IntN(n)))
			}
			got, _ := c.write(rows, typ)
			for i, row := range rows {
				want := ""
				if !c.null(row) {
					want = list[c.v[row]]
				}
				if got.Strs[i] != want || got.IsNull(i) != c.null(row) {
					t.Fatalf("%d codes, %d rows: row %d is %q, want %q", codes, n, i, got.Strs[i], want)
				}
			}
		}
	}
}
