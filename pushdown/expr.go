package pushdown

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// analyzer plans one statement.
type analyzer struct {
	cat      *catalog.Catalog
	tables   []plan.Table    // in order of appearance; the driving table is chosen last
	refs     []proto.Message // how each is written
	views    []plan.Table    // likewise
	inView   *inView         // whose definition is being analysed; nil for the statement's own text
	sides    []*plan.Project // of outer joins, which can be missing, and outputs of blocks that may fail
	optional map[int]bool    // tables whose rows an outer join makes null
	*block                   // that is being analysed
	outer    *scope          // what a sub-select sees of the queries around it
	// qualified says that an operator was written OPERATOR(pg_catalog.X), which of citext is that of text.
	qualified bool
	lateral   *scope // what a LATERAL item of FROM sees: those before it, and outer
	ctes      *cte   // the WITH queries that are seen, the last one first
	counters
	places map[plan.Rel]place
	// relations are the sources that stars compute, numbered behind tables, and computed those of
	// plans that several operators share.
	relations []plan.Source
	computed  map[*plan.Project]plan.Source

	params   []vector.Type // kind Invalid where not known yet
	declared []bool        // the client gave the type

	groupingZero bool // there is a GROUPING() without grouping sets

	needsUTC bool
	namesUTC bool
	// sessionZone and zones are those of plan.Deps.
	sessionZone, readsZone bool
	zones                  []string
	casedIn                []uint32 // plan.Deps.Cased
	needsISO               bool
	needsIntervals         bool
	needsMonetary          bool
	enums                  []uint32 // types whose labels matter
	functions              []string // plan.Deps.Functions
	oids                   []uint32 // plan.Deps.Calls
	called                 map[string]bool
	equated                [][2]vector.Kind // operands of =
	negated                bool             // a condition is, or may be, under NOT
	intern                 *interner
	sizes                  map[*plan.Call]int    // calls in the tree below
	operators              map[*plan.Project]int // in the tree below, of a plan that is shared
	constants              []plan.Expr           // plan.Star.Constants
	server                 []plan.ServerConst    // plan.Deps.ServerConsts
	// serverParams are the parameters that occur there, by number: the OIDs of their types.
	serverParams map[int]uint32
	paramOIDs    []uint32 // that the client has declared
	whole        bool     // an expression over no rows is tried as a whole
	// settled is true once one was computed for certain settings of the session; with unsettled none is.
	settled, unsettled bool
	built              int // calls made so far

	refused []Refusal
	noted   int          // how often one was noted, the same ones too
	since   int          // noted when the innermost attempt began
	enough  bool         // is refused: nothing more is looked for
	text    *syntax.Text // the statement
	// at is the innermost syntax that is being analysed, nil between clauses: where a
	// refusal's position is.
	at proto.Message
}

// block is what is known of one SELECT while it is analysed: one aggregation at most.
type block struct {
	inside     counters        // what was counted before it
	windows    []*plan.Window  // likewise
	windowDefs []*pg.Node      // of the WINDOW clause
	usedDefs   map[string]bool // of windowDefs, by name: those that are read
	keyLinks   []*keyLink      // of GROUP BY
	keySubLink bool            // a key is written with a sub-select, in GROUP BY or in the output that it names
	setCalls   setCalls
	subselects []subselect // of expressions over its rows, which are not joined yet
	number     int         // of the aggregation, once something refers to it, from 1; 0 before
	aggs       []plan.AggregateCall
	sorted     []*plan.Window // the aggregates over sorted rows
	aggIndex   map[aggKey]int
	// noAggs says where we are if aggregates are not allowed there; empty where they are.
	noAggs string
	// sets is true with grouping sets, whose keys may be null though their columns are not;
	// rows is true where an expression is over rows all the same, as in WHERE and in
	// aggregates. grouping is true once GROUPING() was seen.
	sets, rows, grouping bool
	setKeys              []groupKey // of grouping sets
	// joinsDone is true once all outer joins are known.
	joinsDone bool
	// joined is true where rows of what is in FROM may be left out by more than conditions on them.
	joined bool
}

// value is an expression whose type may still be open: a string constant, NULL or
// a parameter takes the type that its surroundings ask for (type unknown in
// PostgreSQL). e is nil exactly then.
type value struct {
	e     plan.Expr
	text  *string // string constant
	null  bool    // NULL
	param int     // $param, 1 and up
}

func typed(e plan.Expr) value { return value{e: e} }

func (v value) unknown() bool { return v.e == nil }

// kind is Invalid while the type is open.
func (v value) kind() vector.Kind {
	if v.e == nil {
		return vector.Invalid
	}
	return v.e.Type().Kind
}

var boolType = vector.TypeOf(vector.Bool)

func (a *analyzer) not(e plan.Expr) plan.Expr { return a.call(plan.OpNot, boolType, e) }

// operator fails where an operator of that symbol exists outside pg_catalog.
func (a *analyzer) operator(symbol string) {
	if a.cat.Shadowed[symbol] {
		fail(plan.ReasonShadowed, "operator "+symbol)
	}
}

// expr analyses an expression over the names of s.
func (a *analyzer) expr(n *pg.Node, s *scope) value {
	outer := a.at
	a.at = n
	var v value
	if !a.whole && overNoRows(n) {
		v = a.constantExpr(n, s)
	} else {
		v = a.exprOf(n, s)
	}
	a.at = outer
	return v
}

func (a *analyzer) exprOf(n *pg.Node, s *scope) value {
	switch x := n.GetNode().(type) {
	case *pg.Node_AConst:
		return a.constant(x.AConst)
	case *pg.Node_ColumnRef:
		return typed(a.columnRef(x.ColumnRef, s))
	case *pg.Node_ParamRef:
		return a.param(int(x.ParamRef.Number))
	case *pg.Node_AExpr:
		return a.aexpr(x.AExpr, s)
	case *pg.Node_BoolExpr:
		return typed(a.boolExpr(x.BoolExpr, s))
	case *pg.Node_NullTest:
		return typed(a.nullTest(x.NullTest, s))
	case *pg.Node_BooleanTest:
		return typed(a.booleanTest(x.BooleanTest, s))
	case *pg.Node_CaseExpr:
		return typed(a.caseExpr(x.CaseExpr, s))
	case *pg.Node_CoalesceExpr:
		return typed(a.coalesce(x.CoalesceExpr, s))
	case *pg.Node_TypeCast:
		return typed(a.typeCast(x.TypeCast, s))
	case *pg.Node_FuncCall:
		return typed(a.funcCall(x.FuncCall, s))
	case *pg.Node_CollateClause:
		return a.collate(x.CollateClause, s)
	case *pg.Node_SubLink:
		return a.subLink(n, s)
	case *pg.Node_GroupingFunc:
		return typed(a.groupingFunc(x.GroupingFunc, s))
	case *pg.Node_SqlvalueFunction:
		name := strings.ToLower(strings.TrimPrefix(x.SqlvalueFunction.Op.String(), "SVFOP_"))
		fail(plan.ReasonFunction, name)
	case *pg.Node_MinMaxExpr:
		return typed(a.minMax(x.MinMaxExpr, s))
	case *pg.Node_RowExpr:
		fail(plan.ReasonShape, "row constructor")
	case *pg.Node_AArrayExpr:
		fail(plan.ReasonType, "array")
	case *pg.Node_AIndirection:
		return typed(a.subscripts(x.AIndirection, s))
	case *pg.Node_SetToDefault:
		fail(plan.ReasonShape, "DEFAULT")
	}
	fail(plan.ReasonShape, "an expression of this form")
	return value{}
}

// boolean analyses a condition.
func (a *analyzer) boolean(n *pg.Node, s *scope) plan.Expr {
	v := a.expr(n, s)
	if !v.unknown() && v.kind() != vector.Bool {
		fail(plan.ReasonType, "a condition that is not boolean")
	}
	return a.resolve(v, boolType)
}

func (a *analyzer) boolExpr(b *pg.BoolExpr, s *scope) plan.Expr {
	args := make([]plan.Expr, len(b.Args))
	for i, x := range b.Args {
		args[i] = a.boolean(x, s)
	}
	switch b.Boolop {
	case pg.BoolExprType_AND_EXPR:
		return a.call(plan.OpAnd, boolType, args...)
	case pg.BoolExprType_OR_EXPR:
		return a.call(plan.OpOr, boolType, args...)
	}
	a.negated = true
	return a.not(args[0])
}

func (a *analyzer) nullTest(t *pg.NullTest, s *scope) plan.Expr {
	v := a.expr(t.Arg, s)
	if v.param > 0 {
		fail(plan.ReasonParameter, "type of a parameter tested for NULL")
	}
	op := plan.OpIsNull
	if t.Nulltesttype == pg.NullTestType_IS_NOT_NULL {
		op = plan.OpIsNotNull
	}
	return a.call(op, boolType, a.fixedScale(a.resolve(v, vector.TypeOf(vector.Text))))
}

func (a *analyzer) booleanTest(t *pg.BooleanTest, s *scope) plan.Expr {
	arg := a.boolean(t.Arg, s)
	switch t.Booltesttype {
	case pg.BoolTestType_IS_TRUE:
		return a.call(plan.OpIsTrue, boolType, arg)
	case pg.BoolTestType_IS_NOT_TRUE:
		return a.not(a.call(plan.OpIsTrue, boolType, arg))
	case pg.BoolTestType_IS_FALSE:
		return a.call(plan.OpIsFalse, boolType, arg)
	case pg.BoolTestType_IS_NOT_FALSE:
		return a.not(a.call(plan.OpIsFalse, boolType, arg))
	case pg.BoolTestType_IS_UNKNOWN:
		return a.call(plan.OpIsNull, boolType, arg)
	}
	return a.call(plan.OpIsNotNull, boolType, arg)
}

// caseExpr analyses both forms. The result type is the common type of the results,
// ELSE first (transformCaseExpr).
func (a *analyzer) caseExpr(c *pg.CaseExpr, s *scope) plan.Expr {
	var subject value
	if c.Arg != nil {
		if subject = a.expr(c.Arg, s); subject.unknown() {
			subject = typed(a.resolve(subject, vector.TypeOf(vector.Text)))
		}
		a.operator("=")
	}
	var whens []plan.Expr
	results := make([]value, 1, len(c.Args)+1)
	for _, n := range c.Args {
		w := n.GetCaseWhen()
		if w == nil {
			fail(plan.ReasonShape, "CASE")
		}
		if c.Arg != nil {
			whens = append(whens, a.compare(plan.OpEq, subject, a.expr(w.Expr, s)))
		} else {
			whens = append(whens, a.boolean(w.Expr, s))
		}
		results = append(results, a.expr(w.Result, s))
	}
	results[0] = value{null: true}
	if c.Defresult != nil {
		results[0] = a.expr(c.Defresult, s)
	}
	out, t := a.commonResults(results)
	if slices.ContainsFunc(whens, mayBeConstant) {
		stableArms(results, t)
	}
	args := make([]plan.Expr, 0, 2*len(whens)+1)
	for i, w := range whens {
		args = append(args, w, out[i+1])
	}
	return a.call(plan.OpCase, t, append(args, out[0])...)
}

func (a *analyzer) coalesce(c *pg.CoalesceExpr, s *scope) plan.Expr {
	vals := make([]value, len(c.Args))
	for i, n := range c.Args {
		vals[i] = a.expr(n, s)
	}
	out, t := a.commonResults(vals)
	if slices.ContainsFunc(out[:len(out)-1], func(e plan.Expr) bool { return !readsRows(e) }) {
		stableArms(vals, t)
	}
	if first := ownScale(out[0]); a.neverNull(first) && first.Type().Collation == t.Collation {
		if !readsRows(first) {
			stableModifiers([]plan.Expr{a.call(plan.OpCoalesce, t, out...)})
		}
		return first
	}
	return a.call(plan.OpCoalesce, t, out...)
}

// neverNull reports whether e is a NOT NULL column that no outer join and no grouping
// set makes null, or a constant.
func (a *analyzer) neverNull(e plan.Expr) bool {
	switch x := e.(type) {
	case plan.Const:
		return !x.Null
	case plan.Column:
		if a.sets && !a.rows || a.outside(x) {
			return false
		}
		return a.joinsDone && !a.optional[x.Table] && a.tables[x.Table].Meta.Columns[x.Column].NotNull
	}
	return false
}

// nullIf is CASE WHEN x = y THEN NULL ELSE x END; its type is that of the implied
// operator's left operand.
func (a *analyzer) nullIf(x, y value) plan.Expr {
	a.operator("=")
	shown := x.e
	x, y, t := a.operands(x, y)
	a.callsOperator("=", x.kind(), y.kind())
	if shown == nil {
		shown = x.e
	}
	eq := a.compareTyped(plan.OpEq, x.e, y.e, t)
	// Operators across types exist within integers, floats and moments: there x
	// stays as it is. Otherwise it is cast, a numeric keeping its own decimals.
	res, xk, yk := shown, x.kind(), y.kind()
	switch {
	case xk.IsInt() && yk.IsInt(), xk.IsFloat(), category(xk) == 'D':
	case t.Kind == vector.Numeric:
		res = a.toNumeric(res)
	default:
		res = a.cast(res, t)
	}
	if xk == vector.CIDR {
		fail(plan.ReasonType, "NULLIF of cidr") // it is inet: what = compares
	}
	out := res.Type()
	if out.Kind.IsText() { // of both, though only one is shown
		out.Collation = mergeCollations(x.e.Type().Collation, y.e.Type().Collation)
	}
	return a.call(plan.OpCase, out, eq, plan.Const{Datum: vector.Null(out)}, res)
}

func (a *analyzer) collate(c *pg.CollateClause, s *scope) value {
	name := nameList(c.Collname)
	if len(name) == 2 && name[0] == "pg_catalog" {
		name = name[1:]
	}
	if len(name) != 1 || name[0] != "C" && name[0] != "POSIX" {
		fail(plan.ReasonCollation, "COLLATE "+strings.Join(name, "."))
	}
	e := a.resolve(a.expr(c.Arg, s), vector.TypeOf(vector.Text))
	if !e.Type().Kind.IsText() {
		fail(plan.ReasonCollation, "COLLATE on a value that is not text")
	}
	t := e.Type()
	t.Collation = vector.Bytewise
	return typed(a.call(plan.OpCast, t, e))
}

// param returns a reference to $n. A parameter of no declared type takes the type
// of its first use; a second use must agree, because what PostgreSQL infers then
// depends on the order in which it looks at the clauses.
func (a *analyzer) param(n int) value {
	if n < 1 || n > 65535 {
		fail(plan.ReasonParameter, "parameter number")
	}
	for len(a.params) < n {
		a.params, a.declared = append(a.params, vector.Type{}), append(a.declared, false)
	}
	if a.declared[n-1] {
		t := a.params[n-1]
		if t.Kind == vector.Invalid {
			fail(plan.ReasonType, "declared type of a parameter")
		}
		a.needsMonetary = a.needsMonetary || t.Kind == vector.Money
		return typed(plan.Param{Index: n - 1, T: t})
	}
	return value{param: n}
}

// resolve gives an open value the type t; others are returned as they are.
func (a *analyzer) resolve(v value, t vector.Type) plan.Expr {
	t.Typmod = -1
	a.needsMonetary = a.needsMonetary || v.e == nil && t.Kind == vector.Money
	switch {
	case v.e != nil:
		return v.e
	case v.null:
		return plan.Const{Datum: vector.Null(t)}
	case t.Kind == vector.Opaque && !isCitext(t) && (!sqltype.IsOpaqueInterval(t) || v.param == 0):
		fail(plan.ReasonType, "a value of an opaque type")
	case v.text != nil:
		if t.Kind == vector.TimestampTZ {
			return a.momentLiteral(*v.text, t)
		}
		return a.parseLiteral(*v.text, t)
	}
	if t.Kind == vector.Enum {
		a.noteEnum(t.Collation.OID)
	}
	p := &a.params[v.param-1]
	if t.Kind.IsText() {
		t.Collation = vector.Collation{}
	}
	switch {
	case t.Varying():
		// A value of any scale: it can be compared, but the plan knows nothing of it.
	case t.Kind == vector.Invalid:
		fail(plan.ReasonParameter, "type of a parameter")
	}
	if p.Kind == vector.Invalid {
		*p = t
	}
	if p.Kind != t.Kind || p.Scale != t.Scale || t.Kind.IsMany() && !sameOfMany(*p, t) {
		fail(plan.ReasonParameter, "a parameter used with two types")
	}
	return plan.Param{Index: v.param - 1, T: *p}
}

// columnRef finds a column by name.
func (a *analyzer) columnRef(r *pg.ColumnRef, s *scope) plan.Expr {
	var name []string
	for _, f := range r.Fields {
		str := f.GetString_()
		if str == nil {
			fail(plan.ReasonShape, "whole-row reference")
		}
		name = append(name, str.Sval)
	}
	return a.use(s.find(name))
}

// nameList returns the parts of a qualified name; nil where a part is no name.
func nameList(nodes []*pg.Node) []string {
	var out []string
	for _, n := range nodes {
		s := n.GetString_()
		if s == nil {
			return nil
		}
		out = append(out, s.Sval)
	}
	return out
}
