package olap

import (
	"context"
	"reflect"
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
			x := &execution{ctx: context.Background(), memory: new(atomic.Int64), room: 1 << 40, opt: Options{Workers: workers, Eager: workers > 1}}
			c := &compiler{p: &pipeline{x: x}}
			arg := &node{t: leaf.T, lo: -size / 2, hi: -size/2 + size - 1, nullable: true}
			if next := c.tabulateWords(quotient, arg); (next != nil) != (workers > 1 && size >= min(2*wordPiece, eagerRows)) {
				t.Fatalf("%d values, %d workers: computed ahead: %v", size, workers, next != nil)
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

// TestMap compares a table of a function of words with what tabulateOver makes of it, values, nulls and errors.
func TestMap(t *testing.T) {
	functions := map[string]func(int64) (int64, error){
		"some fail": func(w int64) (int64, error) {
			if w%7 == 3 {
				return 0, errNumeric
			}
			return 1000 - 3*w, nil
		},
		"none fail": func(w int64) (int64, error) { return w / 60, nil },
		"all fail":  func(int64) (int64, error) { return 0, errNumeric },
	}
	for name, f := range functions {
		for _, size := range []int64{1, 63, 64, 127, 128, 129, 511, 512, 513, 70000} {
			for _, nullable := range []bool{false, true} {
				x := &execution{ctx: context.Background(), memory: new(atomic.Int64), room: 1 << 40}
				c := &compiler{p: &pipeline{x: x}}
				arg := &node{kind: nodeColumn, t: vector.TypeOf(vector.Timestamp), lo: -size / 2, hi: -size/2 + size - 1, nullable: nullable}
				n := &node{kind: nodeMap, t: vector.TypeOf(vector.Int8), args: []*node{arg}, f: f}
				got, err := c.tabulateMap(arg, n.t, n.words())
				if err != nil {
					t.Fatal(err)
				}
				want, err := c.tabulateOver(arg, n.t, n.unary())
				if err != nil {
					t.Fatal(err)
				}
				if got.lo != want.lo || got.hi != want.hi || got.risky != want.risky || got.nullable != want.nullable ||
					(got.tab.err == nil) != (want.tab.err == nil) || !reflect.DeepEqual(got.tab.TableData, want.tab.TableData) {
					t.Errorf("%s, %d values, nullable %v: %+v of %+v, want %+v of %+v", name, size, nullable, got, got.tab.err, want, want.tab.err)
				}
			}
		}
	}
}

// TestChanges compares what is computed where a comparison may change with what is for each word.
func TestChanges(t *testing.T) {
	kinds := []vector.Type{vector.TypeOf(vector.Int8), vector.TypeOf(vector.Date), vector.NumericType(2)}
	for _, kind := range kinds {
		leaf := plan.Column{T: kind}
		word := func(w int64) plan.Expr { return plan.Const{Datum: vector.WordValue(w, kind).Datum(kind)} }
		null := plan.Const{Datum: vector.Datum{Type: kind, Null: true}}
		call := func(op plan.Op, args ...plan.Expr) *plan.Call {
			return &plan.Call{Op: op, T: vector.TypeOf(vector.Bool), Args: args}
		}
		between := func(lo, hi int64) *plan.Call {
			return call(plan.OpAnd, call(plan.OpGe, leaf, word(lo)), call(plan.OpLe, leaf, word(hi)))
		}
		for name, e := range map[string]*plan.Call{
			"ranges":      call(plan.OpOr, between(-3, 5), between(5, 9), between(70, 200)),
			"less":        call(plan.OpOr, call(plan.OpLt, leaf, word(0)), call(plan.OpGt, leaf, word(20))),
			"flipped":     call(plan.OpOr, call(plan.OpLt, word(3), leaf), call(plan.OpGe, word(-2), leaf)),
			"points":      call(plan.OpOr, call(plan.OpEq, leaf, word(1)), call(plan.OpNot, call(plan.OpNe, leaf, word(7)))),
			"list":        call(plan.OpIn, leaf, word(-63), word(2), word(3), word(64), word(1000)),
			"list, null":  call(plan.OpIn, leaf, word(2), null),
			"null":        call(plan.OpOr, call(plan.OpLt, leaf, null), call(plan.OpGt, leaf, word(4))),
			"is null":     call(plan.OpOr, call(plan.OpIsNull, leaf), between(0, 1)),
			"beyond":      call(plan.OpOr, between(-5000, -4000), between(4000, 5000)),
			"of one less": call(plan.OpOr, between(-1000, -1), between(1, 1000)),
		} {
			for _, size := range []int64{1, 2, 63, 64, 127, 128, 129, 511, 512, 513, 3000} {
				arg := &node{t: kind, lo: -size / 2, hi: -size/2 + size - 1, nullable: true}
				at, ok := changes(e, arg)
				if !ok || len(at) > 20 {
					t.Fatalf("%s: %v, %v", name, at, ok)
				}
				x := &execution{ctx: context.Background(), memory: new(atomic.Int64), room: 1 << 40, opt: Options{Workers: 1}}
				n, err := (&compiler{p: &pipeline{x: x}}).tabulate(e, leaf, arg)
				if err != nil {
					t.Fatal(err)
				}
				v := newWordEnv(arg)
				for i, got := range n.tab.Values {
					want := v.of(e, arg.lo+int64(i))
					if want.err != nil || want.value.Null != (n.tab.Nulls != nil && n.tab.Nulls[i] != 0) || !want.value.Null && want.value.I != got {
						t.Fatalf("%s, %v, %d words: %d is %d, want %+v", name, kind, size, arg.lo+int64(i), got, want)
					}
				}
			}
		}
		if _, ok := changes(call(plan.OpEq, call(plan.OpNeg, leaf), word(1)), &node{t: kind, lo: 0, hi: 9}); ok {
			t.Error("a calculation is taken for the column")
		}
	}
	if _, ok := changes(&plan.Call{Op: plan.OpLt, Args: []plan.Expr{plan.Column{T: kinds[2]}, plan.Const{Datum: vector.Datum{Type: vector.NumericType(3), I: 2005}}}},
		&node{t: kinds[2], lo: 0, hi: 900}); ok {
		t.Error("2.005 is no word of two places")
	}
}
