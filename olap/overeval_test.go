package olap

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

func TestOverEval(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 41))
	whole, num := vector.TypeOf(vector.Int8), vector.Type{Kind: vector.Numeric, Scale: vector.VaryingScale, Typmod: -1}
	text := textType(vector.Text, collC, -1)
	cents := vector.NumericType(2)
	sum := plan.Agg{Index: 1, T: cents}
	key, agg, name := plan.Key{Index: 0, T: whole}, plan.Agg{Index: 0, T: num}, plan.Key{Index: 1, T: text}
	half := plan.Const{Datum: vector.Datum{Type: num, Num: vector.Decimal{Unscaled: vector.Int128Of(5), Scale: 1}}}
	product := &plan.Call{Op: plan.OpMul, T: num, Args: []plan.Expr{half, agg}}
	// A limit with so many decimals that words of its scale do not hold the sums.
	limit := func(scale int16) plan.Expr {
		return call(plan.OpGt, vector.Bool, sum, plan.Const{Datum: vector.Datum{Type: vector.NumericType(scale), Num: vector.Decimal{Unscaled: vector.Int128Of(1 << 61), Scale: scale}}})
	}
	fails := call(plan.OpDiv, vector.Int8, integer(1), key)
	fails.Args[0] = plan.Const{Datum: vector.Int(vector.Int8, 1)}
	exprs := []plan.Expr{
		product, fails, call(plan.OpGt, vector.Bool, key, plan.Const{Datum: vector.Int(vector.Int8, 3)}), limit(2), limit(4), limit(12), limit(22),
		call(plan.OpAdd, vector.Int8, key, plan.Const{Datum: vector.Int(vector.Int8, 7)}),
		call(plan.OpGt, vector.Bool, product, agg),
		&plan.Call{Op: plan.OpCase, T: text, Args: []plan.Expr{
			call(plan.OpGt, vector.Bool, key, plan.Const{Datum: vector.Int(vector.Int8, 3)}), name, plan.Const{Datum: vector.Datum{Type: text, Str: "few"}}}},
		call(plan.OpLt, vector.Bool, name, plan.Const{Datum: vector.Datum{Type: text, Str: "b"}}),
	}
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, overPiece, 2*overPiece - 1, 2 * overPiece, 2*overPiece + 1, 5*overPiece + 3} {
		keys, aggs, names, sums := &rcol{t: whole}, &rcol{t: num}, &rcol{t: text, dict: listDict([]string{"a", "b", "é"}, text)}, &rcol{t: cents}
		zero := n
		if n > 0 && r.IntN(2) == 0 {
			zero = r.IntN(n)
		}
		for i := range n {
			keys.push(vector.Value{I: int64(r.IntN(9)) + 1, Null: r.IntN(9) == 0})
			if i == zero {
				keys.v[i], keys.nulls[i] = 0, 0
			}
			aggs.push(vector.Value{Num: vector.Decimal{Unscaled: vector.Int128Of(int64(r.Uint64()) >> 20), Scale: int16(r.IntN(5))}, Null: r.IntN(9) == 0})
			names.v = append(names.v, int64(r.IntN(3)))
			sums.v, sums.nulls = append(sums.v, int64(r.Uint64())>>r.IntN(40)), append(sums.nulls, uint8(b2i(r.IntN(9) == 0)))
		}
		cols := map[plan.Expr]*rcol{key: keys, agg: aggs, name: names, sum: sums}
		o := &overview{x: &execution{ctx: t.Context(), opt: Options{Workers: 3}, memory: new(atomic.Int64), room: 1 << 40, relations: map[*plan.Relation]*relation{}}, n: n, cols: cols}
		for i, e := range exprs {
			at := uint32(0)
			plain := &env{leaf: func(x plan.Expr) (vector.Value, error) { return cols[x].at(at), nil }, dicts: []*dict{names.dict}}
			want := rcol{t: e.Type()}
			var wantErr error
			for ; int(at) < n && wantErr == nil; at++ {
				var v vector.Value
				if v, wantErr = plain.eval(e); wantErr == nil {
					want.push(v)
				}
			}
			got, err := o.computed(e)
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("expression %d of %d groups: %v instead of %v", i, n, err, wantErr)
			}
			for k := uint32(0); err == nil && k < uint32(n); k++ {
				if got.at(k) != want.at(k) {
					t.Fatalf("expression %d of group %d of %d: %v instead of %v", i, k, n, got.at(k), want.at(k))
				}
			}
		}
	}
}
