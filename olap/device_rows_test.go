package olap

import (
	"math/rand/v2"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/vector"
)

// TestRowsFoundOnDevice reads a column with nulls by expressions that were compiled before a device has found rows of some
// segments, and after: both have the bounds of all rows (race runs it with invariants).
func TestRowsFoundOnDevice(t *testing.T) {
	i8 := vector.TypeOf(vector.Int8)
	key := []catalog.Index{{Name: "key", Columns: []int{0}, Unique: true}}
	metas := []*catalog.Table{
		{OID: 1, Schema: "public", Name: "fact", Indexes: key, Columns: []catalog.Column{{Name: "id", Type: i8, NotNull: true}, {Name: "k", Type: i8}}},
		{OID: 2, Schema: "public", Name: "dim", Indexes: key, Columns: []catalog.Column{{Name: "id", Type: i8, NotNull: true}, {Name: "r", Type: i8}}},
	}
	w := &world{r: rand.New(rand.NewPCG(1, 1))}
	for at, meta := range metas {
		var rows [][]vector.Datum
		for id := range int64(3000) {
			second := vector.Int(vector.Int8, id*int64(at+1))
			if id%9 == int64(at) {
				second = vector.Null(i8)
			}
			rows = append(rows, []vector.Datum{vector.Int(vector.Int8, id), second})
		}
		w.tables = append(w.tables, &randomTable{meta, rows, load(t, newStore(t, 1024), meta, rows)})
	}
	of := func(table, column int) plan.Expr { return plan.Column{Table: table, Column: column, T: i8} }
	q := &plan.Star{Tables: []plan.Source{{Meta: metas[0]}, {Meta: metas[1], Table: 1}},
		Joins: []plan.StarJoin{{Table: 1, Kind: plan.Left, Outer: []plan.Expr{of(0, 1)}, Key: []int{0}}},
		Filter: []plan.Expr{call(plan.OpGe, vector.Bool, of(0, 0), plan.Const{Datum: vector.Int(vector.Int8, 1100)}),
			call(plan.OpLt, vector.Bool, of(0, 0), plan.Const{Datum: vector.Int(vector.Int8, 1300)})},
		Output: []plan.Expr{of(0, 0), of(1, 1), call(plan.OpMod, vector.Int8, of(0, 1), plan.Const{Datum: vector.Int(vector.Int8, 7)})}}
	o := newOnPlainDevice()
	o.check(t, "rows of one segment", w, q)
	if o.used == 0 {
		t.Errorf("no device was asked: %v", o.fallbacks)
	}
}
