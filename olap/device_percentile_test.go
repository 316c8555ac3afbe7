package olap

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// TestPercentilesOnDevice selects percentiles of many values on a device: in one pass and in many.
func TestPercentilesOnDevice(t *testing.T) {
	defer func(was int64) { radixCounters = was }(radixCounters)
	o := newOnPlainDevice()
	emulator := emulated(t)
	for seed, n := range []int{1, 2, 63, 64, 65, 1023, 1024, 1025, 9000} {
		w := floatWorld(t, rand.New(rand.NewPCG(uint64(seed), 17)), n)
		for i := range 24 {
			radixCounters = []int64{1 << 18, 1, 100}[i%3]
			o.runner = o.device
			if i == 4 && n > 60 && n < 1025 {
				o.runner = emulator
			}
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true}
			switch w.r.IntN(4) {
			case 0:
				q.Group = []plan.Expr{w.named("g")}
			case 1:
				q.Group = []plan.Expr{w.named("g"), call(plan.OpGt, vector.Bool, w.named("i"), plan.Const{Datum: vector.Datum{Type: vector.TypeOf(vector.Int8)}})}
			case 2:
				q.Group = []plan.Expr{w.named("n")} // of many values
			}
			of := []plan.Expr{w.named("f"), call(plan.OpCast, vector.Float8, w.named("i")), call(plan.OpCast, vector.Float8, w.named("n"))}[w.r.IntN(3)]
			for range 1 + w.r.IntN(3) {
				f := plan.PercentileCont
				if w.r.IntN(2) == 0 {
					f = plan.PercentileDisc
				}
				a := plan.AggregateCall{Func: f, Arg: of, T: of.Type(), Desc: w.r.IntN(3) == 0,
					Fraction: plan.Const{Datum: vector.Float([]float64{0, 1, 0.5, 0.25, 0.99, w.r.Float64()}[w.r.IntN(6)])}}
				if w.r.IntN(4) == 0 {
					a.Filter = call(plan.OpLt, vector.Bool, w.named("n"), plan.Const{Datum: vector.Datum{Type: vector.NumericType(2), I: 5000}})
				}
				q.Aggs = append(q.Aggs, a)
			}
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
	if o.used*4 < o.answered*3 || o.device.ops[program.OpShift] < o.used || o.device.ops[plan.OpIn] < 20 || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries; not: %v", o.used, o.answered, o.fallbacks)
	}
}
