package olap

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/catalog"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// floatWorld is a table of an integer, a numeric and a double, of a group each.
func floatWorld(t testing.TB, r *rand.Rand, n int) *world {
	store := newStore(t, 1024)
	columns := []catalog.Column{{Name: "g", Type: vector.TypeOf(vector.Int4)}, {Name: "i", Type: vector.TypeOf(vector.Int8)},
		{Name: "n", Type: vector.NumericType(2)}, {Name: "f", Type: vector.TypeOf(vector.Float8)}}
	var rows [][]vector.Datum
	for range n {
		row := []vector.Datum{{Type: columns[0].Type, I: r.Int64N(7)}, {Type: columns[1].Type, I: r.Int64N(2_000_001) - 1_000_000},
			{Type: columns[2].Type, I: r.Int64N(20_001) - 10_000}, vector.Float(math.Round((r.Float64()-0.5)*1e6) / 64)}
		for c := range row {
			if c > 0 && r.IntN(9) == 0 {
				row[c] = vector.Null(columns[c].Type)
			}
		}
		rows = append(rows, row)
	}
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "t0", Columns: columns}
	return &world{r: r, tables: []*randomTable{{meta, rows, load(t, store, meta, rows)}}}
}

// named is a column of the table.
func (w *world) named(name string) plan.Expr {
	columns := w.tables[0].meta.Columns
	c := slices.IndexFunc(columns, func(c catalog.Column) bool { return c.Name == name })
	return plan.Column{Column: c, T: columns[c].Type}
}

// double is a random expression of doubles. Quotients of columns, whose size nobody knows, are no sums of a device's.
func (w *world) double(depth int) plan.Expr {
	if depth == 0 || w.r.IntN(5) == 0 {
		switch w.r.IntN(4) {
		case 0:
			return plan.Const{Datum: vector.Float([]float64{0, 1, -2.5, 0.1, 1e10, 1.0 / 3}[w.r.IntN(6)])}
		case 1:
			return w.named("f")
		case 2:
			return call(plan.OpCast, vector.Float8, w.named("i"))
		}
		return call(plan.OpCast, vector.Float8, w.named("n"))
	}
	a := w.double(depth - 1)
	if w.r.IntN(4) == 0 {
		return call(plan.OpDiv, vector.Float8, a, plan.Const{Datum: vector.Float([]float64{3, -0.7, 1e5}[w.r.IntN(3)])})
	}
	return call(plan.OpAdd+plan.Op(w.r.IntN(3)), vector.Float8, a, w.double(depth-1))
}

// TestDoublesOnDevice computes doubles on a device: in conditions, sums, least and greatest values, and groups.
func TestDoublesOnDevice(t *testing.T) {
	o := newOnPlainDevice()
	emulator := emulated(t)
	for seed, n := range []int{1, 63, 64, 65, 1023, 1024, 1025, 3000} {
		w := floatWorld(t, rand.New(rand.NewPCG(uint64(seed), 8)), n)
		for i := range 40 {
			o.runner = o.device
			if i == 0 && n > 60 && n < 1025 {
				o.runner = emulator
			}
			a, b := w.double(3), w.double(2)
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true, Group: []plan.Expr{w.named("g")}}
			if i%4 == 1 {
				q.Group = []plan.Expr{b}
			}
			if i%3 == 1 {
				q.Filter = []plan.Expr{call(plan.OpGt+plan.Op(w.r.IntN(2)), vector.Bool, a, b)}
			}
			q.Aggs = []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}, {Func: plan.Sum, Arg: a, T: a.Type()},
				{Func: plan.Avg, Arg: b, T: b.Type()}, {Func: plan.Min, Arg: a, T: a.Type()}, {Func: plan.Max, Arg: b, T: b.Type()}}
			for i, k := range q.Group {
				q.Output = append(q.Output, plan.Key{Index: i, T: k.Type()})
			}
			for i, a := range q.Aggs {
				q.Output = append(q.Output, plan.Agg{Index: i, T: a.T})
			}
			o.check(t, fmt.Sprintf("%d rows, query %d", n, i), w, q)
		}
	}
	o.log(t)
	for op := program.OpFloatOf; op <= program.OpFloatDiv; op++ {
		if o.device.ops[op] < 20 {
			t.Errorf("operation %d was met %d times", op, o.device.ops[op])
		}
	}
	if o.used*2 < o.answered || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries; not: %v", o.used, o.answered, o.fallbacks)
	}
}
