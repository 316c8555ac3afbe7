package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
)

// scope is what expressions see: relations by name, and columns by plain name in
// the order of `*`.
type scope struct {
	rels []*rel
	cols []col
	rows plan.Rel // of the FROM items
	// outer is what a sub-select sees of the query around it.
	outer *scope
}

// rel is one FROM item with its columns.
type rel struct {
	name   string
	schema string // empty where the item has an alias or is no table
	cols   []col
	scalar bool // a function of one value: its name stands for that, too
}

// col is a named value: a column of a table or an output of a derived table.
type col struct {
	name   string
	e      plan.Expr
	refuse *plan.Forward // why it cannot be read; nil where it can
	// The column whose right is needed: of tables, or of views; named is false where there is none.
	named, view   bool
	table, column int
}

// use marks a column as mentioned and returns its value.
func (a *analyzer) use(c col) plan.Expr {
	a.mention(c)
	if c.refuse != nil {
		panic(c.refuse)
	}
	return c.e
}

// mention records that the statement names a column: SELECT on it is needed.
func (a *analyzer) mention(c col) {
	if !c.named {
		return
	}
	of := a.tables
	if c.view {
		of = a.views
	}
	t := &of[c.table]
	if at, found := slices.BinarySearch(t.Columns, c.column); !found {
		t.Columns = slices.Insert(t.Columns, at, c.column)
	}
}

// find looks a name of one to three parts up.
func (s *scope) find(name []string) col {
	field := name[len(name)-1]
	from := s.cols
	if len(name) > 1 {
		r := s.relation(name[:len(name)-1])
		if r == nil && s.outer != nil {
			return s.outer.find(name)
		} else if r == nil {
			fail(plan.ReasonShape, "reference to an unknown relation")
		}
		from = r.cols
	}
	found := -1
	for i := range from {
		if from[i].name == field {
			if found >= 0 {
				fail(plan.ReasonShape, "ambiguous column name")
			}
			found = i
		}
	}
	if found >= 0 {
		return from[found]
	}
	if systemColumns[field] {
		fail(plan.ReasonShape, "system column "+field)
	}
	if len(name) == 1 {
		if r := s.scalarItem(name); r != nil {
			return r.cols[0]
		}
	}
	if len(name) == 1 && s.outer != nil {
		return s.outer.find(name)
	}
	if len(name) == 1 && s.relation(name) != nil {
		fail(plan.ReasonShape, "whole-row reference")
	}
	fail(plan.ReasonShape, unknownColumn)
	return col{}
}

// scalarItem returns the function of one value that a plain name means; nil where it is a column's of a query
// around, or means something else.
func (s *scope) scalarItem(name []string) *rel {
	for o := s; o != nil; o = o.outer {
		if o.has(name[0]) {
			return nil
		}
	}
	for o := s; o != nil; o = o.outer {
		if r := o.relation(name); r != nil {
			if r.scalar {
				return r
			}
			return nil
		}
	}
	return nil
}

// has reports whether a plain name is a column's.
func (s *scope) has(name string) bool {
	return slices.ContainsFunc(s.cols, func(c col) bool { return c.name == name })
}

// relation finds a relation by name, or by schema and name.
func (s *scope) relation(name []string) *rel {
	var found *rel
	for _, r := range s.rels {
		if r.name != name[len(name)-1] || len(name) > 1 && (r.schema == "" || r.schema != name[0]) || len(name) > 2 {
			continue
		}
		if found != nil {
			fail(plan.ReasonShape, "ambiguous relation name")
		}
		found = r
	}
	return found
}

var systemColumns = map[string]bool{"ctid": true, "xmin": true, "xmax": true, "cmin": true, "cmax": true, "tableoid": true}

// from analyses a FROM list.
func (a *analyzer) from(items []*pg.Node) *scope {
	// What LATERAL items see besides those before them is what a sub-select does.
	around := a.lateral
	a.lateral = a.outer
	defer func() { a.lateral = around }()
	s := &scope{outer: a.outer}
	if len(items) == 0 {
		s.rows = &plan.Values{Rows: [][]plan.Expr{nil}}
		a.note(s.rows, a.at, "SELECT without FROM")
		return s
	}
	before, seen := a.counted(), a.lateral
	for _, n := range items {
		between := a.counted()
		a.lateral = &scope{outer: seen, rels: s.rels, cols: s.cols}
		a.attempt(func() {
			t := a.fromItem(n)
			s.rels = append(s.rels, t.rels...)
			s.cols = append(s.cols, t.cols...)
			if s.rows == nil {
				s.rows = t.rows
				return
			}
			lateral := readsAny(t.rows, func(e plan.Expr) bool { return before.has(e, between) })
			s.rows = &plan.Join{Kind: plan.Inner, Left: s.rows, Right: t.rows, Lateral: lateral}
		})
	}
	a.lateral = seen
	a.stop()
	return s
}

func (a *analyzer) fromItem(n *pg.Node) *scope {
	outer := a.at
	a.at = n
	s := a.fromItemOf(n)
	a.at = outer
	return s
}

func (a *analyzer) fromItemOf(n *pg.Node) *scope {
	switch x := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		if c := a.cte(x.RangeVar); c != nil {
			return a.readCTE(c, x.RangeVar)
		}
		return a.table(x.RangeVar)
	case *pg.Node_RangeSubselect:
		return a.derived(x.RangeSubselect)
	case *pg.Node_JoinExpr:
		return a.join(x.JoinExpr)
	case *pg.Node_RangeTableSample:
		fail(plan.ReasonShape, "TABLESAMPLE")
	case *pg.Node_RangeFunction:
		return a.functionItem(x.RangeFunction)
	}
	fail(plan.ReasonShape, "a FROM item of this form")
	return nil
}

// table adds a table reference.
func (a *analyzer) table(r *pg.RangeVar) *scope {
	// A name with a database in front means the session's own: the server, which describes the statement,
	// refuses any other (RangeVarGetRelidExtended in namespace.c).
	if r.Schemaname == "pg_catalog" || r.Schemaname == "information_schema" {
		fail(plan.ReasonNoTable, "system catalog")
	}
	meta := chooseTable(a.cat.Lookup(r.Schemaname, r.Relname), a.cat.SearchPath)
	if meta == nil {
		fail(plan.ReasonNoTable, r.Relname+" is not among the tables that --accelerate chooses, and no view over them")
	}
	if !r.Inh && meta.Parts != nil {
		fail(plan.ReasonShape, "ONLY of a partitioned table") // which has no rows of its own
	}
	ref := catalog.QuoteIdentifier(r.Relname)
	if r.Schemaname != "" {
		ref = catalog.QuoteIdentifier(r.Schemaname) + "." + ref
	}
	to := plan.Table{Meta: meta, Ref: ref}
	if v := a.inView; v != nil {
		to.Ref, to.Role = "", v.role
	}
	if meta.View != nil {
		return a.view(to, r)
	}
	if len(a.tables) == plan.MaxTables {
		a.tooLarge("more tables than a plan holds")
	}
	t := len(a.tables)
	a.tables, a.refs = append(a.tables, to), append(a.refs, a.written(r))
	item := &rel{name: meta.Name, schema: meta.Schema}
	for i := range meta.Columns {
		item.cols = append(item.cols, baseColumn(meta, t, i))
	}
	return a.named(item, r.Alias, &plan.Scan{Table: t})
}

// baseColumn is column c of table t.
func baseColumn(meta *catalog.Table, t, c int) col {
	m := &meta.Columns[c]
	b := col{name: m.Name, named: true, table: t, column: c}
	switch {
	case m.Unsupported != "":
		b.refuse = &plan.Forward{Reason: plan.ReasonType, Detail: "column " + m.Name + ": " + m.Unsupported}
	default:
		b.e = plan.Column{Table: t, Column: c, T: m.Type}
	}
	return b
}

// chooseTable picks the table that an unqualified name most likely means; the gate
// asks the session what it really means.
func chooseTable(found []*catalog.Table, path []string) *catalog.Table {
	for _, schema := range path {
		if i := slices.IndexFunc(found, func(t *catalog.Table) bool { return t.Schema == schema }); i >= 0 {
			return found[i]
		}
	}
	if i := slices.IndexFunc(found, func(t *catalog.Table) bool { return t.Schema == "public" }); i >= 0 {
		return found[i]
	}
	if len(found) > 0 {
		return found[0]
	}
	return nil
}

// named applies `AS alias (names)`.
func (a *analyzer) named(r *rel, alias *pg.Alias, rows plan.Rel) *scope {
	if alias != nil {
		r.name, r.schema = alias.Aliasname, ""
		names := nameList(alias.Colnames)
		if len(names) != len(alias.Colnames) || len(names) > len(r.cols) {
			fail(plan.ReasonShape, "column aliases")
		}
		for i, n := range names {
			r.cols[i].name = n
		}
	}
	return &scope{rels: []*rel{r}, cols: r.cols, rows: rows}
}

// where returns the rows of s for which a condition is true.
func (a *analyzer) where(n *pg.Node, s *scope) plan.Rel {
	if n == nil {
		return s.rows
	}
	saved, rows := a.noAggs, a.rows
	a.noAggs, a.rows = "aggregate in WHERE or ON", true
	var conds []plan.Expr
	subs := a.own(func() { conds = a.conditions(n, s, a.condition) })
	a.noAggs, a.rows = saved, rows
	out := a.attach(s.rows, subs)
	if len(conds) > 0 {
		out = &plan.Filter{Input: out, Conds: conds}
	}
	return out
}

// conditions analyses the conjuncts of a condition, but for those that taken, if there is one,
// takes.
func (a *analyzer) conditions(n *pg.Node, s *scope, taken func(*pg.Node, *scope) bool) (conds []plan.Expr) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_AND_EXPR {
		for _, x := range b.Args {
			conds = append(conds, a.conditions(x, s, taken)...)
		}
		return conds
	}
	a.attempt(func() {
		if taken == nil || !taken(n, s) {
			e := a.boolean(n, s)
			if conds = conjuncts(nil, e); taken == nil && readsAggregate(e) && slices.ContainsFunc(conds, func(c plan.Expr) bool { _, is := c.(plan.Const); return is }) {
				// A comparison of an aggregate that is true for no value (sum(i) = 1.5): no condition on rows.
				conds = []plan.Expr{e}
			}
		}
	})
	return conds
}

// conjuncts appends the operands of AND, however nested.
func conjuncts(dst []plan.Expr, e plan.Expr) []plan.Expr {
	if c, ok := e.(*plan.Call); ok && c.Op == plan.OpAnd {
		for _, x := range c.Args {
			dst = conjuncts(dst, x)
		}
		return dst
	}
	return append(dst, e)
}

var joinKinds = map[pg.JoinType]plan.JoinKind{pg.JoinType_JOIN_INNER: plan.Inner, pg.JoinType_JOIN_LEFT: plan.Left,
	pg.JoinType_JOIN_RIGHT: plan.Left, pg.JoinType_JOIN_FULL: plan.Full}

// noteJoin notes where a join comes from.
func (a *analyzer) noteJoin(rows *plan.Join, j *pg.JoinExpr) {
	if rows.Kind != plan.Full {
		a.note(rows, j, "")
		return
	}
	outer := a.at
	a.at = a.text.Keyword(pg.Token_FULL)
	a.note(rows, a.at, "FULL JOIN")
	a.at = outer
}

// join analyses JOIN. A right join is a left join of the right side to the left one.
func (a *analyzer) join(j *pg.JoinExpr) *scope {
	kind, ok := joinKinds[j.Jointype]
	if !ok {
		fail(plan.ReasonShape, "a join of this kind")
	}
	var l, r *scope
	side := func(to **scope, n *pg.Node, nullable bool) {
		a.attempt(func() {
			if nullable {
				*to = a.nullable(n)
			} else {
				*to = a.fromItem(n)
			}
		})
	}
	before, seen := a.counted(), a.lateral
	side(&l, j.Larg, j.Jointype == pg.JoinType_JOIN_RIGHT || kind == plan.Full)
	if l != nil {
		a.lateral = &scope{outer: seen, rels: l.rels, cols: l.cols}
	}
	between := a.counted()
	side(&r, j.Rarg, kind != plan.Inner && j.Jointype != pg.JoinType_JOIN_RIGHT)
	a.lateral = seen
	a.stop()
	both := &scope{outer: a.outer, rels: slices.Concat(l.rels, r.rels), cols: slices.Concat(l.cols, r.cols)}
	saved := a.noAggs
	a.noAggs = "aggregate in WHERE or ON"
	behind := a.counted()
	var on []plan.Expr
	var subs []subselect
	if names := usingNames(j, l, r); len(names) > 0 {
		on = a.using(j, names, l, r, both)
	} else if j.Quals != nil {
		subs = a.own(func() { on = a.conditions(j.Quals, both, a.condition) })
	}
	a.noAggs = saved
	rows := &plan.Join{Kind: kind, Left: l.rows, Right: r.rows, On: on}
	from, to := before, between // the left side's
	if j.Jointype == pg.JoinType_JOIN_RIGHT {
		rows.Left, rows.Right = r.rows, l.rows
		from, to = between, behind
	}
	both.rows = rows
	if len(subs) > 0 {
		both.rows = a.onSubselects(rows, subs)
	}
	rows.Lateral = readsAny(rows.Right, func(e plan.Expr) bool { return from.has(e, to) })
	a.noteJoin(rows, j)
	if j.Alias != nil {
		return a.named(&rel{cols: slices.Clone(both.cols)}, j.Alias, both.rows)
	}
	return both
}

// onSubselects joins the sub-selects in ON: to the rows of an inner join, which have to pass the conditions
// then, or to the side of an outer join that can be missing.
func (a *analyzer) onSubselects(j *plan.Join, subs []subselect) plan.Rel {
	switch j.Kind {
	case plan.Inner:
		on := j.On
		j.On = nil
		rows := a.attach(j, subs)
		if len(on) > 0 {
			rows = &plan.Filter{Input: rows, Conds: on}
		}
		return rows
	case plan.Left:
		j.Right = a.attach(j.Right, subs)
		return j
	}
	a.at = subs[0].at
	fail(plan.ReasonShape, subs[0].name+" in ON of a full join")
	return nil
}

// unknownColumn is why a name is refused that no relation has.
const unknownColumn = "a column that the catalog does not know"
