package olap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestTopOnDevice has a device leave out groups that HAVING does, and that are not among the first by an aggregate: with ties
// at the cut, of few and of many groups, by a key in either direction or by whatever settles them.
func TestTopOnDevice(t *testing.T) {
	o := newOnPlainDevice()
	emulator := emulated(t)
	for seed, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1024, 1025, 3000} {
		w := cutWorld(t, rand.New(rand.NewPCG(uint64(seed), 29)), n)
		o.device.limits = deviceLimits[seed%2]
		for i := range 20 {
			o.runner = o.device
			if i == 4 && n > 60 && n < 1025 {
				o.runner = emulator
			}
			group := []plan.Expr{w.named("g"), w.named("id"), // of which no two are the same
				w.named("s"), w.named("n"), call(plan.OpMod, vector.Int4, w.named("id"), plan.Const{Datum: vector.Int(vector.Int4, 200)})}[w.r.IntN(5)]
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true, Group: []plan.Expr{group}}
			sum := plan.AggregateCall{Func: plan.Sum, Arg: w.named("id"), T: vector.TypeOf(vector.Int8)}
			q.Aggs = []plan.AggregateCall{sum,
				{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)},
				{Func: plan.Count, Arg: w.named("i"), T: vector.TypeOf(vector.Int8)},
				{Func: plan.Min, Arg: w.named("id"), T: vector.TypeOf(vector.Int4)},
				{Func: plan.Max, Arg: w.named("id"), T: vector.TypeOf(vector.Int4)},
				{Func: plan.Max, Arg: w.named("i"), T: vector.TypeOf(vector.Int8)}, // may be null
				{Func: plan.Avg, Arg: w.named("id"), T: vector.NumericType(-1)},
			}
			q.Aggs = q.Aggs[:1+w.r.IntN(6+w.r.IntN(2))]
			q.Order = []plan.Order{{Expr: plan.Agg{Index: w.r.IntN(len(q.Aggs))}, Desc: w.r.IntN(2) == 0, NullsFirst: w.r.IntN(2) == 0}, {Expr: plan.Key{T: group.Type()}, Desc: w.r.IntN(2) == 0}}
			by := q.Order[0].Expr.(plan.Agg)
			by.T = q.Aggs[by.Index].T
			q.Order[0].Expr = by
			q.Output = []plan.Expr{by, q.Order[1].Expr}
			if w.r.IntN(3) == 0 {
				q.Output, q.Order = []plan.Expr{q.Output[1], q.Output[0]}, q.Order[:1]
			}
			if w.r.IntN(5) == 0 {
				q.Order = q.Order[len(q.Order)-1:]
			}
			for range w.r.IntN(3) {
				k := w.r.IntN(len(q.Aggs))
				over := plan.Expr(plan.Agg{Index: k, T: q.Aggs[k].T})
				ops := []plan.Op{plan.OpEq, plan.OpNe, plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe}
				constant := plan.Expr(plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(int64(2+k*n)))})
				if q.Aggs[k].T.Kind == vector.Numeric {
					constant = plan.Const{Datum: vector.Datum{Type: vector.NumericType(-1), Num: vector.Decimal{Unscaled: vector.Int128Of(w.r.Int64N(20) * 5), Scale: 1}}}
				}
				args := []plan.Expr{over, constant}
				if w.r.IntN(2) == 0 {
					slices.Reverse(args)
				}
				q.Having = append(q.Having, call(ops[w.r.IntN(len(ops))], vector.Bool, args...))
			}
			if w.r.IntN(3) == 0 {
				q.Filter = []plan.Expr{call(plan.OpLt, vector.Bool, w.named("n"), plan.Const{Datum: vector.Datum{Type: vector.NumericType(2), I: 5000}})}
			}
			q.Limit = plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(30)+1)}
			if w.r.IntN(4) == 0 {
				q.Offset = plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(9))}
			}
			o.check(t, fmt.Sprintf("%d rows, query %d", n, i), w, q)
		}
	}
	o.log(t)
	if o.used*4 < o.answered*3 || o.device.tops < o.used/3 || o.device.tops == o.used || o.device.thens < o.device.tops/4 ||
		o.device.having < o.used/5 || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries, of %d the first groups, %d by a digit, of %d those of HAVING; not: %v", o.used, o.answered, o.device.tops, o.device.thens, o.device.having, o.fallbacks)
	}
}

// TestTopCountsOnDevice has a device leave out groups that are not among the first by how many different values they have: groups without
// a value among them, of which there may be too many to be left out.
func TestTopCountsOnDevice(t *testing.T) {
	o := newOnPlainDevice()
	emulator := emulated(t)
	for seed, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1024, 1025, 3000} {
		w := cutWorld(t, rand.New(rand.NewPCG(uint64(seed), 37)), n)
		for i := range 16 {
			o.runner = o.device
			if i == 4 && n > 60 && n < 1025 {
				o.runner = emulator
			}
			group := []plan.Expr{w.named("g"), w.named("s"), w.named("n"), call(plan.OpMod, vector.Int4, w.named("id"), plan.Const{Datum: vector.Int(vector.Int4, 200)})}[w.r.IntN(4)]
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true, Group: []plan.Expr{group}}
			distinct := plan.AggregateCall{Func: plan.Count, Arg: []plan.Expr{w.named("i"), w.named("id"), w.named("n")}[w.r.IntN(3)], T: vector.TypeOf(vector.Int8), Distinct: true}
			if w.r.IntN(4) == 0 {
				distinct.Filter = call(plan.OpLt, vector.Bool, w.named("n"), plan.Const{Datum: vector.Datum{Type: vector.NumericType(2), I: 3000}})
			}
			q.Aggs = []plan.AggregateCall{distinct}
			if w.r.IntN(5) == 0 {
				q.Aggs = append(q.Aggs, plan.AggregateCall{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)})
			}
			q.Order = []plan.Order{{Expr: plan.Agg{T: distinct.T}, Desc: w.r.IntN(4) > 0}, {Expr: plan.Key{T: group.Type()}, Desc: w.r.IntN(2) == 0}}
			for k := range q.Aggs {
				q.Output = append(q.Output, plan.Agg{Index: k, T: q.Aggs[k].T})
			}
			q.Output = append(q.Output, q.Order[1].Expr)
			if w.r.IntN(3) == 0 {
				q.Order = q.Order[:1]
			}
			q.Limit = plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(30)+1)}
			if w.r.IntN(4) == 0 {
				q.Offset = plan.Const{Datum: vector.Int(vector.Int8, w.r.Int64N(9))}
			}
			o.check(t, fmt.Sprintf("%d rows, query %d", n, i), w, q)
		}
	}
	o.log(t)
	if o.used*4 < o.answered*3 || o.device.topCounts < o.used/4 || o.device.topCounts == o.used || o.device.asked-o.used < o.device.topCounts/5 || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device computed %d of %d queries in %d programs, of %d the first counts; not: %v", o.used, o.answered, o.device.asked, o.device.topCounts, o.fallbacks)
	}
}
