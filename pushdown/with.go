package pushdown

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/plan"
	"pgaccel/syntax"
)

// cte is a WITH query where its name is seen.
type cte struct {
	def    *pg.CommonTableExpr
	outer  *cte // what its own text sees, and who does not find this name: those before it
	reads  int  // how often its name is read, at least
	shared *plan.Project
	cols   []col // of shared
}

// with makes the names of a WITH clause known. in is what may read them.
func (a *analyzer) with(w *pg.WithClause, in *pg.SelectStmt) {
	if w.Recursive {
		a.at = w
		fail(plan.ReasonShape, "WITH RECURSIVE")
	}
	reads, dead := map[string]int{}, map[string]int{}
	countReads(in, reads)
	for _, n := range w.Ctes {
		def := n.GetCommonTableExpr()
		if def.GetCtequery().GetSelectStmt() == nil {
			a.at = n
			fail(plan.ReasonNotSelect, "WITH a statement that writes")
		}
		// To its own text and to those before it the name means another thing.
		own := map[string]int{}
		countReads(def, own)
		for name, n := range own {
			reads[name] -= n
		}
		if reads[def.Ctename] == 0 { // the server does not even plan it (SS_process_ctes)
			countReads(def, dead)
			continue
		}
		a.ctes = &cte{def: def, outer: a.ctes, reads: reads[def.Ctename]}
	}
	for c := a.ctes; c != nil && len(dead) > 0; c = c.outer {
		if n := dead[c.def.Ctename]; n > 0 && n >= c.reads { // that one it does plan, and may fail
			a.at = c.def
			fail(plan.ReasonShape, "a WITH query that only unread ones read")
		}
	}
}

// countReads counts the places at which WITH queries of a name may be read.
func countReads(part any, reads map[string]int) {
	syntax.Walk(part, func(x *pg.Node) bool {
		if r := x.GetRangeVar(); r != nil && r.Schemaname == "" {
			reads[r.Relname]++
		}
		return true
	})
}

// cte returns the WITH query that a name in FROM means, nil for none.
func (a *analyzer) cte(r *pg.RangeVar) *cte {
	if r.Schemaname != "" || r.Catalogname != "" {
		return nil
	}
	for c := a.ctes; c != nil; c = c.outer {
		if c.def.Ctename == r.Relname {
			return c
		}
	}
	return nil
}

// readCTE is a WITH query in FROM: a derived table where it is read once, as PostgreSQL's planner
// decides it (SS_process_ctes in subselect.c), else one that is computed once.
func (a *analyzer) readCTE(c *cte, r *pg.RangeVar) *scope {
	alias := r.Alias
	if alias == nil {
		alias = &pg.Alias{Aliasname: r.Relname}
	}
	seen := a.ctes
	a.ctes = c.outer
	var s *scope
	if m := c.def.Ctematerialized; m == pg.CTEMaterialize_CTEMaterializeNever || m == pg.CTEMaterialize_CTEMaterializeDefault && c.reads == 1 {
		s = a.subquery(c.def.Ctequery.GetSelectStmt(), &pg.Alias{Aliasname: c.def.Ctename, Colnames: c.def.Aliascolnames})
	} else {
		s = a.shared(c, r)
	}
	a.ctes = seen
	return a.named(&rel{cols: s.cols}, alias, s.rows)
}

// shared is a WITH query that is computed once.
func (a *analyzer) shared(c *cte, r *pg.RangeVar) *scope {
	if c.shared == nil {
		outer := a.outer
		a.outer = nil // what is computed once reads nothing of a query around it
		q := a.query(c.def.Ctequery.GetSelectStmt(), false)
		a.outer = outer
		p := &plan.Project{Input: q.rows}
		c.cols = q.cols()
		for i := range c.cols {
			if e := c.cols[i].e; e != nil {
				c.cols[i].e = plan.Output{Index: len(p.Exprs), T: e.Type()}
				p.Exprs = append(p.Exprs, e)
			}
		}
		c.shared = p
	}
	s := a.share(a.nextOutput(), c.def.Ctename, c.shared)
	a.note(s, r, "")
	item := &rel{}
	for _, x := range c.cols {
		if o, ok := x.e.(plan.Output); ok {
			o.Of = s.Number
			x.e = o
		}
		item.cols = append(item.cols, x)
	}
	return a.named(item, &pg.Alias{Aliasname: c.def.Ctename, Colnames: c.def.Aliascolnames}, s)
}
