package olap

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgaccel/catalog"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// cutWorld is a table of n rows: id is unique, others have nulls.
func cutWorld(t testing.TB, r *rand.Rand, n int) *world {
	text := textType(vector.Text, collC, -1)
	columns := []catalog.Column{{Name: "id", Type: vector.TypeOf(vector.Int4)}, {Name: "g", Type: vector.TypeOf(vector.Int4)}, {Name: "i", Type: vector.TypeOf(vector.Int8)},
		{Name: "n", Type: vector.NumericType(2)}, {Name: "f", Type: vector.TypeOf(vector.Float8)}, {Name: "s", Type: text}}
	var rows [][]vector.Datum
	for id := range n {
		row := []vector.Datum{{Type: columns[0].Type, I: int64(id)}, {Type: columns[1].Type, I: r.Int64N(3)}, {Type: columns[2].Type, I: r.Int64N(1<<40) - 1<<39},
			{Type: columns[3].Type, I: r.Int64N(20_001) - 10_000}, vector.Float((r.Float64() - 0.5) * 1e6), {Type: text, Str: fmt.Sprint(r.IntN(1 + n/3))}}
		for c := range row {
			if c > 1 && r.IntN(9) == 0 {
				row[c] = vector.Null(columns[c].Type)
			}
		}
		rows = append(rows, row)
	}
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "t0", Columns: columns}
	return &world{r: r, tables: []*randomTable{{meta, rows, load(t, newStore(t, 1024), meta, rows)}}}
}

// TestCutOnDevice has a device leave the rows that may be among the first: of keys of every type, both directions,
// nulls first and last, ties at the cut, in one pass and in many.
func TestCutOnDevice(t *testing.T) {
	defer func(a, b int64) { radixCounters, cutCandidates = a, b }(radixCounters, cutCandidates)
	o := newOnPlainDevice()
	emulator := emulated(t)
	for seed, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1024, 1025, 3000} {
		w := cutWorld(t, rand.New(rand.NewPCG(uint64(seed), 23)), n)
		for i := range 20 {
			radixCounters = []int64{1 << 18, 1, 100}[i%3]
			cutCandidates = []int64{1, 20}[w.r.IntN(2)]
			o.runner = o.device
			if i == 4 && n > 60 && n < 1025 {
				o.runner = emulator
			}
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}}
			sum := call(plan.OpAdd, vector.Int8, call(plan.OpMul, vector.Int8, w.named("i"), plan.Const{Datum: vector.Int(vector.Int8, 3)}), w.named("i"))
			keys := []plan.Expr{w.named("g"), w.named("i"), w.named("n"), w.named("f"), w.named("s"), sum}
			for range 1 + w.r.IntN(4) {
				q.Order = append(q.Order, plan.Order{Expr: keys[w.r.IntN(len(keys))], Desc: w.r.IntN(2) == 0, NullsFirst: w.r.IntN(2) == 0})
			}
			if w.r.IntN(3) > 0 { // else rows that tie look alike
				q.Order = append(q.Order, plan.Order{Expr: w.named("id"), Desc: w.r.IntN(2) == 0})
				q.Output = []plan.Expr{w.named("s"), w.named("f")}
			}
			for _, k := range q.Order {
				q.Output = append(q.Output, k.Expr)
			}
			if w.r.IntN(3) == 0 {
				q.Filter = []plan.Expr{call(plan.OpLt, vector.Bool, w.named("n"), plan.Const{Datum: vector.Datum{Type: vector.NumericType(2), I: 5000}})}
			}
			q.Limit = plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(12)+1)}
			if w.r.IntN(4) == 0 {
				q.Offset = plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(9))}
			}
			if w.r.IntN(9) == 0 {
				q.Limit = plan.Const{Datum: vector.Int(vector.Int8, int64(n)+w.r.Int64N(3))}
			}
			o.check(t, fmt.Sprintf("%d rows, query %d", n, i), w, q)
		}
	}
	o.log(t)
	if o.used*2 < o.answered || o.device.sinks[program.SinkGroups] < o.used || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries; not: %v", o.used, o.answered, o.fallbacks)
	}
}
