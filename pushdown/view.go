package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"pgaccel/plan"
	"pgaccel/syntax"
)

// inView is a view whose definition is being analysed.
type inView struct {
	at   *pg.RangeVar // where the statement names it, or the view that reads it
	role uint32       // whose rights count for what it reads
}

// written is where syntax stands in the statement: a view's is where the statement names it.
func (a *analyzer) written(at proto.Message) proto.Message {
	if a.inView != nil {
		return a.inView.at
	}
	return at
}

// view analyses a view in FROM: a derived table that sees nothing of the statement around it.
// Its columns need the rights on the view, and what it reads those that it reads it with: all
// columns that it names, whether the statement reads them or not.
func (a *analyzer) view(to plan.Table, r *pg.RangeVar) *scope {
	v := to.Meta.View
	if v.Barrier {
		// An error that only the hidden rows cause would show what is in them.
		fail(plan.ReasonShape, "view with security_barrier")
	}
	sel, _ := syntax.Parse(v.Definition).Select()
	if sel == nil {
		fail(plan.ReasonShape, "a view whose definition cannot be read")
	}
	n := len(a.views)
	a.views = append(a.views, to)
	in, outer, lateral, ctes := a.inView, a.outer, a.lateral, a.ctes
	a.inView = &inView{at: r, role: v.Role}
	if in != nil {
		a.inView.at = in.at
	}
	a.outer, a.lateral, a.ctes = nil, nil, nil
	s := a.subquery(sel, nil)
	a.inView, a.outer, a.lateral, a.ctes = in, outer, lateral, ctes
	if len(s.cols) != len(to.Meta.Columns) {
		fail(plan.ReasonShape, "a view whose definition cannot be read")
	}
	item := &rel{name: to.Meta.Name, schema: to.Meta.Schema}
	for i, c := range s.cols {
		c.name, c.named, c.view, c.table, c.column = to.Meta.Columns[i].Name, true, true, n, i
		item.cols = append(item.cols, c)
	}
	return a.named(item, r.Alias, s.rows)
}
