package plan

import (
	"errors"
	"fmt"
	"testing"

	"pgaccel/sqlfn"
	"pgaccel/vector"
)

var int4 = vector.TypeOf(vector.Int4)

func call(op Op, args ...Expr) *Call { return &Call{Op: op, Args: args, T: int4} }

func TestBindReplacesEveryParameter(t *testing.T) {
	p := Param{Index: 0, T: int4}
	q := &Star{
		Joins:   []StarJoin{{Outer: []Expr{p}, On: []Expr{call(OpGt, Column{Table: 1, T: int4}, p)}}},
		Filter:  []Expr{call(OpEq, Column{T: int4}, p)},
		Group:   []Expr{call(OpAdd, Column{T: int4}, p)},
		Aggs:    []AggregateCall{{Func: Sum, Arg: p, Filter: p}},
		Having:  []Expr{p},
		Output:  []Expr{p},
		Order:   []Order{{Expr: p}},
		Limit:   p,
		Grouped: true,

		Constants: []Expr{&Call{Op: OpNeg, Args: []Expr{p}, T: vector.TypeOf(vector.Int4)}},
	}
	b := q.Bind([]vector.Datum{vector.Int(vector.Int4, 7)}, nil, Rules{})
	params := func(q *Star) (n int) {
		count := func(e Expr) {
			Walk(e, func(x Expr) bool {
				if _, ok := x.(Param); ok {
					n++
				}
				return true
			})
		}
		for _, list := range [][]Expr{q.Filter, q.Group, q.Having, q.Output, q.Joins[0].Outer, q.Joins[0].On, q.Constants,
			{q.Aggs[0].Arg, q.Aggs[0].Filter, q.Order[0].Expr, q.Limit}} {
			for _, e := range list {
				count(e)
			}
		}
		return n
	}
	if n := params(b); n != 0 {
		t.Errorf("%d parameters are left", n)
	}
	if n := params(q); n != 11 {
		t.Errorf("the query itself has changed: %d parameters, want 11", n)
	}
	if c := b.Filter[0].(*Call).Args[1].(Const); c.I != 7 {
		t.Errorf("bound %+v", c)
	}
	if b.Offset != nil {
		t.Errorf("an offset appeared: %v", b.Offset)
	}
}

func TestRewriteSharesWhatStays(t *testing.T) {
	left := call(OpNeg, Column{Table: 1, T: int4})
	e := call(OpAdd, left, Column{Table: 2, T: int4})
	if same := Rewrite(e, func(x Expr) Expr { return x }); same != Expr(e) {
		t.Error("rewriting nothing made a copy")
	}
	moved := Rewrite(e, func(x Expr) Expr {
		if c, ok := x.(Column); ok && c.Table == 2 {
			c.Table = 3
			return c
		}
		return x
	}).(*Call)
	if moved.Args[0] != Expr(left) || moved.Args[1].(Column).Table != 3 || e.Args[1].(Column).Table != 2 {
		t.Errorf("%v, from %v", moved.Args, e.Args)
	}
	if got := Tables(moved); got != 1<<1|1<<3 {
		t.Errorf("tables %b", got)
	}
}

func TestAddsFloats(t *testing.T) {
	double := Column{T: vector.TypeOf(vector.Float8)}
	for _, c := range []struct {
		a    AggregateCall
		want bool
	}{
		{AggregateCall{Func: CountStar}, false}, {AggregateCall{Func: Count, Arg: double}, false}, {AggregateCall{Func: Max, Arg: double}, false},
		{AggregateCall{Func: Sum, Arg: Column{T: int4}}, false}, {AggregateCall{Func: PercentileCont, Arg: double}, false},
		{AggregateCall{Func: Sum, Arg: double}, true}, {AggregateCall{Func: sqlfn.AggregateNamed("stddev_samp"), Arg: Column{T: vector.TypeOf(vector.Float4)}}, true},
	} {
		if got := (&Star{Aggs: []AggregateCall{{Func: CountStar}, c.a}}).AddsFloats(); got != c.want {
			t.Errorf("%+v: %v", c.a, got)
		}
	}
}

func TestReasonOf(t *testing.T) {
	f := &Forward{Reason: ReasonTies, Detail: "LIMIT 5"}
	if got := ReasonOf(fmt.Errorf("while sorting: %w", f)); got != ReasonTies {
		t.Error(got)
	}
	if got := ReasonOf(errors.New("disk on fire")); got != ReasonInternalError {
		t.Error(got)
	}
}
