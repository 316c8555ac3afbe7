package pushdown

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// Functions that return rows for an array or a document: unnest(column), jsonb_array_elements(column). Where they read
// rows beside them these are not joined by the value, but by its image: each distinct one is expanded once (unnest.go).

// setFunctions are those of documents, and unnest.
var setFunctions = map[string]bool{"unnest": true, "jsonb_array_elements": true, "jsonb_array_elements_text": true,
	"jsonb_object_keys": true, "jsonb_each": true, "jsonb_each_text": true}

// setFunction analyses a call of one of setFunctions. s is what it sees.
func (a *analyzer) setFunction(name string, f *pg.FuncCall, s *scope) *plan.ProjectSet {
	if len(f.Args) != 1 {
		fail(plan.ReasonFunction, name+"() in this form")
	}
	x := &plan.ProjectSet{Number: a.nextOutput()}
	var v value
	subs := a.own(func() {
		if name == "unnest" {
			v = a.literalArray(f.Args[0], s)
		}
		if v.e == nil {
			v = a.expr(f.Args[0], s)
		}
	})
	if v.unknown() || v.param > 0 {
		fail(plan.ReasonType, name+"() of a value without a type")
	}
	switch k := v.kind(); {
	case name == "unnest" && k.IsArray():
		x.Func = sqlfn.Unnest(a.elementType(v.e))
	case name != "unnest" && k == vector.JSONB:
		text := vector.TypeOf(vector.Text)
		text.Collation, _ = a.defaultCollation()
		x.Func = sqlfn.SetOfJSONB(name, text)
	default:
		fail(plan.ReasonType, name+"() of "+k.String())
	}
	a.addCalls([]uint32{x.Func.OID})
	x.Arg = a.image(v.e)
	x.Input = a.attach(&plan.Values{Rows: [][]plan.Expr{nil}}, subs)
	return x
}

// image is the image of a value (sqlfn.Image).
func (a *analyzer) image(e plan.Expr) plan.Expr {
	t := vector.TypeOf(vector.Bytea)
	if c, ok := e.(plan.Const); ok {
		c.Datum.Type = t
		return c
	}
	return a.sized(&plan.Call{Op: plan.OpFunc, Func: sqlfn.Image(e.Type().Kind), Args: []plan.Expr{e}, T: t})
}

// elementType is the type of an array's elements.
func (a *analyzer) elementType(array plan.Expr) vector.Type {
	t := vector.TypeOf(array.Type().Kind.Element())
	switch {
	case t.Kind == vector.Numeric:
		return vector.NumericType(vector.VaryingScale)
	case !t.Kind.IsText():
		return t
	}
	if t.Collation = a.collationWithin(array); t.Collation.OID == 0 {
		t.Collation, _ = a.defaultCollation()
	}
	return t
}

// collationWithin is the collation of the elements of an array of text: a column's, or that of the arguments it is
// computed of, as of all text; none of constants.
func (a *analyzer) collationWithin(array plan.Expr) (coll vector.Collation) {
	switch x := array.(type) {
	case plan.Const:
		return coll
	case *plan.Call:
		for _, e := range x.Args {
			if k := e.Type().Kind; k.IsArray() && k.Element().IsText() {
				coll = mergeCollations(coll, a.collationWithin(e))
			} else if k.IsText() {
				coll = mergeCollations(coll, e.Type().Collation)
			}
		}
		return coll
	}
	return a.elementCollation(array.Type())
}

// literalArray is an array that is written as a literal of a type; it has no expression where it is anything else.
func (a *analyzer) literalArray(n *pg.Node, s *scope) (v value) {
	c := n.GetTypeCast()
	if _, literal := c.GetArg().GetAConst().GetVal().(*pg.A_Const_Sval); !literal || len(c.TypeName.GetArrayBounds()) != 1 {
		return v
	}
	names := nameList(c.TypeName.Names)
	if k := typeNames[names[len(names)-1]]; k != vector.Invalid && k != vector.BPChar && sqltype.Of(k) != nil {
		return typed(a.constantArray(n, k, s))
	}
	return v
}

// setFunctionItem is a call of one of setFunctions in FROM.
func (a *analyzer) setFunctionItem(name string, f *pg.FuncCall, r *pg.RangeFunction) (*plan.ProjectSet, *rel) {
	x := a.setFunction(name, f, &scope{outer: a.lateral})
	item := &rel{name: name, scalar: len(x.Func.Columns) == 1 && !r.Ordinality}
	if r.Alias != nil {
		name = r.Alias.Aliasname
	}
	for i, t := range x.Func.Columns {
		c := col{name: name, e: plan.Output{Of: x.Number, Index: i, T: t}}
		if x.Func.Names != nil {
			c.name = x.Func.Names[i]
		}
		item.cols = append(item.cols, c)
	}
	if r.Ordinality {
		n := x.Ordinality()
		item.cols = append(item.cols, col{name: "ordinality", e: plan.Output{Of: x.Number, Index: n, T: x.Types()[n]}})
	}
	return x, item
}

// setCall is the one call of a function that returns rows in a select list, or in ORDER BY and GROUP BY.
type setCall struct {
	allowed bool
	n       *pg.Node
	rows    *plan.ProjectSet
}

// callsInList reports whether a select list has a call of such a function, sub-selects aside.
func callsInList(targets []*pg.Node, such func(name string) bool) (calls bool) {
	for _, n := range targets {
		syntax.Walk(n, func(n *pg.Node) bool {
			if names := nameList(n.GetFuncCall().GetFuncname()); len(names) > 0 {
				calls = calls || such(names[len(names)-1])
			}
			return !calls && n.GetSubLink() == nil
		})
	}
	return calls
}

// setTarget analyses a function that returns rows where the server expands the rows of FROM by it (ProjectSet in
// nodeProjectSet.c). Of several it takes a row each at a time: here there is one, which may be written again.
func (a *analyzer) setTarget(name string, f *pg.FuncCall, s *scope) plan.Expr {
	c, n := &a.block.setCall, &pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}
	switch {
	case !c.allowed || f.FuncVariadic || f.AggStar || f.AggDistinct || f.AggFilter != nil || f.Over != nil || len(f.AggOrder) > 0:
		fail(plan.ReasonFunction, name+"()")
	case c.n == nil:
		c.allowed = false // within it
		outer := a.noAggs
		a.noAggs = "aggregate in " + name + "()"
		c.rows = a.setFunction(name, f, s)
		a.noAggs = outer
		if len(c.rows.Func.Columns) > 1 {
			fail(plan.ReasonShape, name+"() outside of FROM")
		}
		c.allowed, c.n = true, n
		a.note(c.rows, a.at, "")
	case !sameSyntax(c.n, n):
		fail(plan.ReasonShape, "several functions that return rows")
	}
	return plan.Output{Of: c.rows.Number, T: c.rows.Func.Columns[0]}
}

// expand joins the rows of the block with those of the function that its select list calls.
func (a *analyzer) expand(q *query, c *clauses, s *scope, grouped, distinct, cut bool) {
	number := func(x *plan.ProjectSet) plan.Order {
		n := x.Ordinality()
		return plan.Order{Expr: plan.Output{Of: x.Number, Index: n, T: x.Types()[n]}}
	}
	if x, only := s.rows.(*plan.ProjectSet); only && cut && !grouped && !distinct && len(c.order) == 0 && len(c.on) == 0 {
		c.order = append(c.order, number(x)) // as the server reads them
	}
	x := a.block.setCall.rows
	if x == nil {
		return
	}
	y := plan.OwnYields(x)
	a.at = a.block.setCall.n
	switch {
	case len(a.windows) > 0 || len(c.on) > 0:
		fail(plan.ReasonShape, "a function that returns rows, beside a window function or DISTINCT ON")
	case grouped && !slices.ContainsFunc(c.keys, y.ReadBy):
		fail(plan.ReasonShape, "a function that returns rows, over groups")
	case !grouped && !distinct && len(c.order) > 0 && !slices.ContainsFunc(c.order, func(o plan.Order) bool { return y.ReadBy(o.Expr) }):
		c.order = append(c.order, number(x)) // it expands rows that are sorted
	}
	q.rows = &plan.Join{Kind: plan.Inner, Left: q.rows, Right: x, Lateral: true}
}

// projectSet unnests a function over values of the rows around it, which are the domain.
func (u *unnesting) projectSet(x *plan.ProjectSet) (l lifted, ok bool) {
	if l, ok = u.below(x.Input); !ok || u.domain == nil {
		return l, false
	}
	c := *x
	c.Input, c.Arg = l.rows, u.over(x.Arg)
	n := len(c.Types())
	c.Keep = append(u.overAll(x.Keep), l.keys...)
	rejects := map[int]bool{}
	for i, e := range u.outer {
		rejects[i] = u.intern.same(e, x.Arg)
	}
	return lifted{rows: &c, keys: keysAt(x.Number, n, l.keys), rejects: rejects}, true
}

// expectedElements is a guess at the rows of a function for one value.
const expectedElements = 8

// setFunctionRelation makes the relation of the rows of a function.
func (a *analyzer) setFunctionRelation(x *plan.ProjectSet) plan.Source {
	block := a.star(&plan.Project{Input: x.Input, Exprs: x.Args()})
	meta := &catalog.Table{Name: x.Func.Name, Rows: expectedRows(block) * expectedElements}
	for i, t := range x.Types() {
		name := "ordinality"
		switch n := x.Ordinality(); {
		case i > n:
			name = "key"
		case i < n && x.Func.Names != nil:
			name = x.Func.Names[i]
		case i < n:
			name = x.Func.Name
		}
		meta.Columns = append(meta.Columns, catalog.Column{Name: name, Type: t, NotNull: i == x.Ordinality()})
	}
	return plan.Source{Meta: meta, Relation: &plan.Relation{Meta: meta, Blocks: []*plan.Star{block}, ProjectSet: x}}
}
