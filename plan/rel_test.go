package plan

import (
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/vector"
)

// TestValidate: each tree breaks one rule.
func TestValidate(t *testing.T) {
	boolean, numeric := vector.TypeOf(vector.Bool), vector.NumericType(2)
	tables := []Table{
		{Meta: &catalog.Table{Columns: []catalog.Column{{Name: "n", Type: int4}, {Name: "b", Type: boolean}, {Name: "hidden", Type: int4}}}, Columns: []int{0, 1}},
		{Meta: &catalog.Table{Columns: []catalog.Column{{Name: "m", Type: numeric}}}, Columns: []int{0}},
	}
	n, b, m := Column{T: int4}, Column{Column: 1, T: boolean}, Column{Table: 1, T: numeric}
	one := Const{vector.Int(vector.Int4, 1)}
	call := func(op Op, typ vector.Type, args ...Expr) Expr { return &Call{Op: op, T: typ, Args: args} }
	scan, other := &Scan{}, &Scan{Table: 1}
	count := AggregateCall{Func: CountStar, T: vector.TypeOf(vector.Int8)}
	groups := &Aggregate{Input: scan, Keys: []Expr{n, b}, Sets: []uint64{3, 1}, Aggs: []AggregateCall{count}}
	key, agg := Key{T: int4}, Agg{T: vector.TypeOf(vector.Int8)}
	project := func(in Rel, es ...Expr) Rel { return &Project{Input: in, Exprs: es} }
	filter := func(in Rel, es ...Expr) Rel { return &Filter{Input: in, Conds: es} }
	both := &Join{Left: scan, Right: other}
	byN := &Project{Input: scan, Exprs: []Expr{n}}
	for _, c := range []struct {
		want string // a part of the error; empty where there is none
		tree Rel
	}{
		{"", project(&Limit{Input: &Sort{Input: filter(groups, call(OpGt, boolean, agg, one)), By: []Order{{Expr: key}}}, Count: one}, key, agg, &Grouping{Keys: []int{1}, T: int4})},
		{"", project(&Join{Kind: Left, Left: scan, Right: filter(other, call(OpEq, boolean, m, Const{vector.Null(numeric)})), On: []Expr{b}}, n, m)},
		{"", project(scan, Param{T: int4})},
		{"", project(&Aggregate{Number: 1, Input: groups, Aggs: []AggregateCall{{Func: Sum, Arg: agg, T: numeric}}}, Agg{Of: 1, T: numeric})},
		{"", project(&Join{Kind: Left, Left: scan, Right: &Project{Number: 1, Input: other, Exprs: []Expr{m}}}, n, Output{Of: 1, T: numeric})},
		{"derived table 1 is not below", project(scan, Output{Of: 1, T: int4})},
		{"not below", project(&Project{Number: 1, Input: scan, Exprs: []Expr{n}}, n)},
		{"output 1 of 1", project(&Project{Number: 1, Input: scan, Exprs: []Expr{n}}, Output{Of: 1, Index: 1, T: int4})},
		{"output 0 of 1", project(&Project{Number: 1, Input: other, Exprs: []Expr{m}}, Output{Of: 1, T: vector.NumericType(3)})},
		{"derived table 1 is there twice", &Join{Left: &Project{Number: 1, Input: scan, Exprs: []Expr{n}}, Right: &Project{Number: 1, Input: other, Exprs: []Expr{m}}}},
		{"", project(&Join{Left: &Shared{Number: 1, Plan: byN}, Right: &Shared{Number: 2, Plan: byN}}, Output{Of: 1, T: int4}, Output{Of: 2, T: int4})},
		{"derived table 1 is there twice", &Join{Left: &Shared{Number: 1, Plan: byN}, Right: &Shared{Number: 1, Plan: byN}}},
		{"not below", project(&Shared{Number: 1, Plan: byN}, n)},
		{"is an input by position", &Shared{Number: 1, Plan: &Project{Number: 2, Input: scan}}},
		{"without an input", &Shared{Number: 1}},
		{"", project(&SetOp{Number: 1, Left: byN, Right: &Project{Input: &Values{Number: 2, Rows: [][]Expr{{one}}}, Exprs: []Expr{Output{Of: 2, T: int4}}}}, Output{Of: 1, T: int4})},
		{"rows of 1 and 2", &SetOp{Number: 1, Left: byN, Right: &Project{Input: other, Exprs: []Expr{one, one}}}},
		{"types integer and numeric.2", &SetOp{Number: 1, Left: byN, Right: &Project{Input: other, Exprs: []Expr{m}}}},
		{"is an input by position", &SetOp{Number: 1, Left: byN, Right: &Project{Number: 3, Input: other, Exprs: []Expr{one}}}},
		{"table reference 0 is there twice", &SetOp{Number: 1, Left: byN, Right: &Project{Input: scan, Exprs: []Expr{n}}}},
		{"", project(&Values{Rows: [][]Expr{nil}}, one)},
		{"without a row", project(&Values{}, one)},
		{"rows of 1 and 0", project(&Values{Number: 1, Rows: [][]Expr{{one}, {}}}, one)},
		{"types integer and boolean", project(&Values{Number: 1, Rows: [][]Expr{{one}, {Const{vector.Null(boolean)}}}}, one)},
		{"not below", &Values{Number: 1, Rows: [][]Expr{{n}}}},
		{"", project(&Join{Kind: Semi, Left: scan, Right: other, On: []Expr{call(OpEq, boolean, n, n), call(OpIsNull, boolean, m)}}, n)},
		{"not below", project(&Join{Kind: Semi, Left: scan, Right: other}, m)},
		{"not below", project(&Join{Kind: NotIn, Left: scan, Right: other}, m)},
		{"", project(&Join{Kind: Mark, Number: 1, Left: scan, Right: other}, n, Output{Of: 1, T: boolean})},
		{"not below", project(&Join{Kind: Mark, Number: 1, Left: scan, Right: other}, m)},
		{"mark join with number 0", &Join{Kind: Mark, Left: scan, Right: other}},
		{"inner join with number 1", &Join{Number: 1, Left: scan, Right: other}},
		{"", project(&Join{Kind: Single, Left: scan, Right: filter(&Aggregate{Input: other}, b), Lateral: true}, n)},
		{"not below", project(&Join{Kind: Single, Left: scan, Right: filter(other, b)}, n)},
		{"not below", project(&Join{Left: filter(scan, call(OpIsNull, boolean, m)), Right: other, Lateral: true}, n)},
		{"", project(&Window{Number: 1, Input: scan, Func: WindowAggregate, Agg: count, Partition: []Expr{n}, Order: []Order{{Expr: b}}}, n, Output{Of: 1, T: count.T})},
		{"output 0 of 1", project(&Window{Number: 1, Input: scan, Func: Rank}, Output{Of: 1, T: int4})},
		{"window without a number", &Window{Input: scan}},
		{"not below", &Window{Number: 1, Input: scan, Partition: []Expr{m}}},
		{"not below", &Window{Number: 1, Input: scan, Order: []Order{{Expr: m}}}},
		{"not below", &Window{Number: 1, Input: scan, Func: WindowAggregate, Agg: AggregateCall{Func: Count, Arg: m, T: count.T}}},
		{"that is none", &Window{Number: 1, Input: scan, Agg: count, Func: Rank}},
		{"sum: argument", &Window{Number: 1, Input: scan, Func: WindowAggregate, Agg: AggregateCall{Func: Sum, T: numeric}}},
		{"not over a window", &Window{Number: 1, Input: scan, Func: WindowAggregate, Agg: AggregateCall{Func: Count, Arg: n, Distinct: true, T: count.T}}},
		{"not below", project(scan, m)},
		{"not below", project(groups, n)},
		{"aggregation 0 is not below", project(scan, key)},
		{"aggregation 0 is not below", project(&Aggregate{Number: 1, Input: groups}, agg)},
		{"not mentioned", project(scan, Column{Column: 2, T: int4})},
		{"is there twice", project(&Join{Left: scan, Right: scan}, n)},
		{"aggregation 0 is there twice", project(&Join{Left: groups, Right: &Aggregate{Input: other}}, key)},
		{"table reference 2", project(&Scan{Table: 2}, one)},
		{"has type integer", filter(scan, n)},
		{"has type integer", &Join{Left: scan, Right: other, On: []Expr{n}}},
		{"=: operands", filter(both, call(OpEq, boolean, n, m))},
		{"and: an operand", filter(scan, call(OpAnd, boolean, b, n))},
		{"case: no ELSE", project(scan, call(OpCase, int4, b, one))},
		{"case: argument 0", project(scan, call(OpCase, int4, n, one, one))},
		{"coalesce: an argument", project(scan, call(OpCoalesce, int4, b))},
		{"no operator", project(scan, call(OpInvalid, int4, n))},
		{"without a type", project(scan, Column{})},
		{"$1 has two types", project(scan, Param{T: boolean})},
		{"key 2 of 2", project(groups, Key{Index: 2, T: int4})},
		{"aggregate 1 of 1", project(groups, Agg{Index: 1, T: count.T})},
		{"GROUPING()", project(groups, &Grouping{Keys: []int{2}, T: int4})},
		{"grouping sets", &Aggregate{Input: scan, Keys: []Expr{n, b}, Sets: []uint64{1, 1}}},
		{"sum: argument", &Aggregate{Input: scan, Aggs: []AggregateCall{{Func: Sum, T: numeric}}}},
		{"max: DISTINCT", &Aggregate{Input: scan, Aggs: []AggregateCall{{Func: Max, Arg: n, Distinct: true, T: int4}}}},
		{"percentile_disc: a fraction", &Aggregate{Input: scan, Aggs: []AggregateCall{{Func: PercentileDisc, Arg: n, T: int4}}}},
		{"FILTER has type integer", &Aggregate{Input: scan, Aggs: []AggregateCall{{Func: CountStar, Filter: n, T: count.T}}}},
		{"limit of type boolean", &Limit{Input: scan, Count: Const{vector.Null(boolean)}}},
		{"without an input", filter(nil, b)},
	} {
		err := Validate(c.tree, tables, []vector.Type{int4})
		switch {
		case err == nil && c.want != "":
			t.Errorf("%s\nno error; want %q", Format(c.tree, tables), c.want)
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("got %q, want %q", err, c.want)
		}
	}
}

// TestTreeOfStar: what a star says is in its tree, which is valid.
func TestTreeOfStar(t *testing.T) {
	meta := &catalog.Table{Columns: []catalog.Column{{Name: "k", Type: int4}, {Name: "b", Type: vector.TypeOf(vector.Bool)}}}
	table := Table{Meta: meta, Ref: "t", Columns: []int{0, 1}}
	k, b := Column{T: int4}, Column{Table: 1, Column: 1, T: vector.TypeOf(vector.Bool)}
	q := &Star{
		Tables:  []Source{{Meta: meta}, {Meta: meta, Table: 1}},
		Joins:   []StarJoin{{Table: 1, Kind: Left, Outer: []Expr{k}, Key: []int{0}, On: []Expr{b}}},
		Filter:  []Expr{b},
		Grouped: true, Group: []Expr{k}, Aggs: []AggregateCall{{Func: CountStar, T: vector.TypeOf(vector.Int8)}},
		Having: []Expr{&Call{Op: OpIsNull, T: vector.TypeOf(vector.Bool), Args: []Expr{Key{T: int4}}}},
		Output: []Expr{Key{T: int4}, Agg{T: vector.TypeOf(vector.Int8)}},
		Order:  []Order{{Expr: Key{T: int4}, Desc: true, NullsFirst: true}}, Offset: Const{vector.Int(vector.Int8, 2)},
	}
	want := `project key1.0, agg1.0
  limit offset bigint:2
    sort by key1.0 desc nulls first
      filter isnull(key1.0)
        aggregate 1 by t0.k: count(*) -> bigint
          filter t1.b
            left join on =(t0.k, t1.k), t1.b
              scan t0 t
              scan t1 t
`
	if got := Format(q.Tree(), []Table{table, table}); got != want {
		t.Errorf("got\n%s", got)
	}
	if err := Validate(q.Tree(), []Table{table, table}, nil); err != nil {
		t.Error(err)
	}
	names := 0
	WalkRel(q.Tree(), func(r Rel) bool {
		names++
		_, aggregate := r.(*Aggregate)
		return !aggregate
	})
	if names != 5 {
		t.Errorf("%d operators down to the aggregation", names)
	}
}
