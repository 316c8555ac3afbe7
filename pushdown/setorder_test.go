package pushdown

import (
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestEqualitiesOfANest: conditions compared with true, one in the other, take no more than
// one look each.
func TestEqualitiesOfANest(t *testing.T) {
	a := &analyzer{}
	column := plan.Column{T: vector.TypeOf(vector.Int4)}
	yes := plan.Const{Datum: vector.Datum{Type: boolType, I: 1}}
	var e plan.Expr = &plan.Call{Op: plan.OpNe, Args: []plan.Expr{column, column}, T: boolType}
	for range 60 {
		e = &plan.Call{Op: plan.OpEq, Args: []plan.Expr{e, yes}, T: boolType}
	}
	if n := len(a.equatedBy(e)); n != 61 {
		t.Errorf("%d equalities, want 61", n)
	}
}
