package olap

import (
	"context"
	"sync/atomic"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestWords compares what several goroutines compute of a domain of words with what one does, values,
// nulls and errors.
func TestWords(t *testing.T) {
	leaf := plan.Column{T: vector.TypeOf(vector.Int8)}
	number := func(n int64) plan.Expr { return plan.Const{Datum: vector.Datum{Type: leaf.T, I: n}} }
	quotient := &plan.Call{Op: plan.OpDiv, T: leaf.T, Args: []plan.Expr{number(1 << 20), leaf}} // fails at 0
	for _, size := range []int64{1, 63, 64, 127, 128, 129, 511, 512, 513, 2*wordPiece - 1, 2 * wordPiece, 2*wordPiece + 1, 5*wordPiece + 3} {
		table := func(workers int) *node {
			x := &execution{ctx: context.Background(), memory: new(atomic.Int64), opt: Options{Workers: workers, Eager: workers > 1}}
			c := &compiler{p: &pipeline{x: x}}
			arg := &node{t: leaf.T, lo: -size / 2, hi: -size/2 + size - 1, nullable: true}
			if ahead := c.tabulateWords(quotient, arg); (ahead != nil) != (workers > 1 && size >= min(2*wordPiece, eagerRows)) {
				t.Fatalf("%d values, %d workers: computed ahead: %v", size, workers, ahead != nil)
			}
			n, err := c.tabulate(quotient, leaf, arg)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		want, got := table(1), table(3)
		if got.lo != want.lo || got.hi != want.hi || got.risky != want.risky || got.nullable != want.nullable || got.tab.OnNullNull != want.tab.OnNullNull {
			t.Errorf("%d values: %+v, want %+v", size, got, want)
		}
		for i, v := range want.tab.Values {
			if got.tab.Values[i] != v || want.tab.Faults != nil && got.tab.Faults[i] != want.tab.Faults[i] {
				t.Fatalf("%d values: the %d. is %d, want %d", size, i, got.tab.Values[i], v)
			}
		}
	}
}
