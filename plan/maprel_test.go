package plan

import (
	"testing"

	"pgaccel/vector"
)

// TestMapRel: each expression is replaced, in all operators, and what was there stays as it was.
func TestMapRel(t *testing.T) {
	t4 := vector.TypeOf(vector.Int4)
	column := func(c int) Expr { return Column{Table: 0, Column: c, T: t4} }
	eq := func(a, b Expr) Expr { return &Call{Op: OpEq, Args: []Expr{a, b}, T: vector.TypeOf(vector.Bool)} }
	both := &Project{Exprs: []Expr{column(7)}, Input: &Series{Number: 2, Input: &Values{Rows: [][]Expr{{column(8)}}}, From: column(9), To: column(10), T: t4}}
	tree := &Project{Number: 1, Exprs: []Expr{column(0)}, Input: &Limit{
		Per: []Expr{column(1)}, Count: column(11), Input: &Sort{By: []Order{{Expr: column(2)}}, Input: &Window{
			Number: 3, Func: Lag, Arg: column(3), Partition: []Expr{column(4)}, Order: []Order{{Expr: column(5)}},
			Input: &Aggregate{Keys: []Expr{column(6)}, Aggs: []AggregateCall{{Func: Max, Arg: column(12), Filter: eq(column(13), column(14)), T: t4}},
				Input: &Join{On: []Expr{eq(column(15), column(16))}, Left: &Filter{Conds: []Expr{eq(column(17), column(18))}, Input: &Scan{}},
					Right: &SetOp{Number: 4, Left: both, Right: both}}}}}}}
	read := func(r Rel) (columns map[int]int) {
		columns = map[int]int{}
		WalkRel(r, func(r Rel) bool {
			Exprs(r, func(e Expr) {
				Walk(e, func(x Expr) bool {
					if c, ok := x.(Column); ok {
						columns[c.Column]++
					}
					return true
				})
			})
			return true
		})
		return columns
	}
	before := read(tree)
	copies := 0
	mapped := MapRel(tree, func(e Expr) Expr {
		return Rewrite(e, func(x Expr) Expr {
			if c, ok := x.(Column); ok {
				c.Column += 100
				return c
			}
			return x
		})
	}, func(from, to Rel) { copies++ })
	after := read(mapped)
	if len(before) != 19 || len(after) != len(before) || copies == 0 {
		t.Fatalf("%d columns before, %d after, %d copies", len(before), len(after), copies)
	}
	for c, n := range before {
		if after[c+100] != n {
			t.Errorf("column %d is read %d times, its replacement %d times", c, n, after[c+100])
		}
	}
	for c, n := range read(tree) {
		if before[c] != n {
			t.Errorf("column %d of what was mapped has changed", c)
		}
	}
}
