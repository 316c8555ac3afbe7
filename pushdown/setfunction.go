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

// Functions that return rows for an array or a document: unnest(column), jsonb_array_elements(column), or several, a row
// of each at a time. Where they read rows beside them these are not joined by the values, but by their images: each
// distinct one is expanded once (unnest.go).

// setFunctions are those of documents, and unnest.
var setFunctions = map[string]bool{"unnest": true}

func init() {
	for _, of := range []string{"json", "jsonb"} {
		for _, f := range []string{"_array_elements", "_array_elements_text", "_object_keys", "_each", "_each_text"} {
			setFunctions[of+f] = true
		}
	}
}

// newProjectSet returns the rows of no function yet, over no rows.
func (a *analyzer) newProjectSet() *plan.ProjectSet {
	return &plan.ProjectSet{Number: a.nextOutput(), Input: &plan.Values{Rows: [][]plan.Expr{nil}}}
}

// addSetCall analyses a call of one of setFunctions, which x has the rows of. s is what it sees.
func (a *analyzer) addSetCall(x *plan.ProjectSet, name string, f *pg.FuncCall, s *scope) {
	if !hasOnlyArguments(f) || len(f.Args) != 1 {
		fail(plan.ReasonFunction, name+"() in this form")
	}
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
	var fn *sqlfn.SetFunction
	if k := v.kind(); name == "unnest" && k.IsArray() {
		fn = sqlfn.Unnest(a.elementType(v.e))
	} else if name != "unnest" {
		text := vector.TypeOf(vector.Text)
		text.Collation, _ = a.defaultCollation()
		fn = sqlfn.SetOfDocument(name, text)
	}
	switch {
	case fn == nil || fn.Arg != v.kind():
		fail(plan.ReasonType, name+"() of "+v.kind().String())
	case fn.Arg == vector.JSON && a.cat.OtherEncoding: // which an escape may be no character of
		fail(plan.ReasonCollation, "json in a database whose encoding is not UTF8")
	}
	a.addCalls([]uint32{fn.OID})
	x.Calls = append(x.Calls, plan.SetCall{Func: fn, Arg: a.image(v.e)})
	x.Input = a.attach(x.Input, subs)
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

// setFunctionItem makes a FROM item of calls of setFunctions: one, or those of ROWS FROM.
func (a *analyzer) setFunctionItem(calls []*pg.FuncCall, r *pg.RangeFunction) (*plan.ProjectSet, *rel) {
	x, item := a.newProjectSet(), &rel{}
	for _, f := range calls {
		name := a.functionName(f.Funcname)
		if !setFunctions[name] {
			fail(plan.ReasonShape, name+"() in ROWS FROM")
		}
		if item.name == "" {
			item.name = name
		}
		a.addSetCall(x, name, f, &scope{outer: a.lateral})
	}
	names, types := x.ColumnNames(), x.Types()
	if len(calls) == 1 && x.Calls[0].Func.Names == nil && r.Alias != nil { // chooseScalarFunctionAlias in parse_relation.c
		names[0] = r.Alias.Aliasname
	}
	if r.Ordinality {
		names = append(names, "ordinality")
	}
	for i, name := range names {
		item.cols = append(item.cols, col{name: name, e: plan.Output{Of: x.Number, Index: i, T: types[i]}})
	}
	item.scalar = len(names) == 1
	return x, item
}

// setCalls are the calls of functions that return rows in a select list, or in ORDER BY and GROUP BY.
type setCalls struct {
	allowed bool
	written []*pg.Node
	rows    *plan.ProjectSet // of them, in this order
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

// setTarget analyses a function that returns rows where the server expands the rows of FROM by all of these at once
// (ProjectSet in nodeProjectSet.c). One that is written again has the same rows.
func (a *analyzer) setTarget(name string, f *pg.FuncCall, s *scope) plan.Expr {
	c, n := &a.block.setCalls, &pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}
	if !c.allowed {
		fail(plan.ReasonFunction, name+"()")
	}
	i := slices.IndexFunc(c.written, func(w *pg.Node) bool { return sameSyntax(w, n) })
	if i < 0 {
		if c.rows == nil {
			c.rows = a.newProjectSet()
			a.note(c.rows, a.at, "")
		}
		c.allowed = false // within it
		outer := a.noAggs
		a.noAggs = "aggregate in " + name + "()"
		a.addSetCall(c.rows, name, f, s)
		a.noAggs = outer
		i = len(c.written)
		if len(c.rows.Calls[i].Func.Columns) > 1 {
			fail(plan.ReasonShape, name+"() outside of FROM")
		}
		c.allowed, c.written = true, append(c.written, n)
	}
	return plan.Output{Of: c.rows.Number, Index: i, T: c.rows.Calls[i].Func.Columns[0]}
}

// expand joins the rows of the block with those of the functions that its select list calls. Its other expressions the
// server computes for rows, too, for which the functions return none: one that may fail is left to it.
func (a *analyzer) expand(q *query, c *clauses, s *scope, outputs []plan.Expr, grouped, distinct, cut bool) {
	number := func(x *plan.ProjectSet) plan.Order {
		n := x.Ordinality()
		return plan.Order{Expr: plan.Output{Of: x.Number, Index: n, T: x.Types()[n]}}
	}
	if x, only := s.rows.(*plan.ProjectSet); only && cut && !grouped && !distinct && len(c.order) == 0 && len(c.on) == 0 {
		c.order = append(c.order, number(x)) // as the server reads them
	}
	x := a.block.setCalls.rows
	if x == nil {
		return
	}
	y := plan.OwnYields(x)
	a.at = a.block.setCalls.written[0]
	computed := slices.Clone(c.keys)
	if !grouped {
		computed = append(computed, outputs...)
		for _, o := range c.order {
			computed = append(computed, o.Expr)
		}
	}
	switch {
	case slices.ContainsFunc(computed, func(e plan.Expr) bool { return mayFail(e) && !y.ReadBy(e) }):
		fail(plan.ReasonShape, "an expression that may fail, beside a function that returns rows")
	case len(a.windows) > 0 || len(c.on) > 0:
		fail(plan.ReasonShape, "a function that returns rows, beside a window function or DISTINCT ON")
	case grouped && !allRead(x, c.keys):
		fail(plan.ReasonShape, "a function that returns rows, over groups")
	case !grouped && !distinct && len(c.order) > 0 && !slices.ContainsFunc(c.order, func(o plan.Order) bool { return y.ReadBy(o.Expr) }):
		c.order = append(c.order, number(x)) // it expands rows that are sorted
	}
	q.rows = &plan.Join{Kind: plan.Inner, Left: q.rows, Right: x, Lateral: true}
}

// allRead reports whether some of these expressions reads each call of x.
func allRead(x *plan.ProjectSet, es []plan.Expr) bool {
	read := map[int]bool{}
	for _, e := range es {
		plan.Walk(e, func(e plan.Expr) bool {
			if o, ok := e.(plan.Output); ok && o.Of == x.Number {
				read[o.Index] = true
			}
			return true
		})
	}
	return len(read) == len(x.Calls)
}

// projectSet unnests functions over values of the rows around it, which are the domain.
func (u *unnesting) projectSet(x *plan.ProjectSet) (l lifted, ok bool) {
	if l, ok = u.below(x.Input); !ok || u.domain == nil {
		return l, false
	}
	c := x.WithArgs(append(u.overAll(x.Args()), l.keys...))
	c.Input = l.rows
	n := len(x.Types())
	rejects := map[int]bool{}
	for i, e := range u.outer {
		rejects[i] = len(x.Calls) == 1 && u.intern.same(e, x.Calls[0].Arg)
	}
	return lifted{rows: c, keys: keysAt(x.Number, n, l.keys), rejects: rejects}, true
}

// expectedElements is a guess at the rows of a function for one value.
const expectedElements = 8

// setFunctionRelation makes the relation of the rows of a function.
func (a *analyzer) setFunctionRelation(x *plan.ProjectSet) plan.Source {
	block := a.star(&plan.Project{Input: x.Input, Exprs: x.Args()})
	meta := &catalog.Table{Name: x.Calls[0].Func.Name, Rows: expectedRows(block) * expectedElements}
	names := append(x.ColumnNames(), "ordinality")
	for i, t := range x.Types() {
		name := "key"
		if i < len(names) {
			name = names[i]
		}
		meta.Columns = append(meta.Columns, catalog.Column{Name: name, Type: t, NotNull: i == x.Ordinality()})
	}
	return plan.Source{Meta: meta, Relation: &plan.Relation{Meta: meta, Blocks: []*plan.Star{block}, ProjectSet: x}}
}
