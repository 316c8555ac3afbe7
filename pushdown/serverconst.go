package pushdown

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// An expression over no rows that is not folded here, because it depends on the session or the
// moment, or is not known, is left to the server: it computes the value in the client's session,
// for each execution, behind the gate. The value acts as a parameter's of that type. What is asked
// is the expression as it is written, with the schema of every name, so that no function of a user's
// runs; the gate says that the statement's names mean the same. The types are a guess, which the
// server's answer is checked against (engine/bind.go).

// constantExpr analyses an expression over no rows: here where that is possible, which with
// unsettled is only where the session's settings do not matter, else by the server. Where neither is
// it is taken apart.
func (a *analyzer) constantExpr(n *pg.Node, s *scope) value {
	before := a.notes()
	utc, iso, intervals, monetary := a.needsUTC, a.needsISO, a.needsIntervals, a.needsMonetary
	a.needsUTC, a.needsISO, a.needsIntervals, a.needsMonetary = false, false, false, false
	a.whole = true
	v, refused := caughtValue(func() value { return a.exprOf(n, s) })
	a.whole = false
	if matters := a.needsUTC || a.needsISO || a.needsIntervals || a.needsMonetary; refused == nil && !(matters && a.unsettled) {
		a.settled = a.settled || matters
		a.needsUTC, a.needsISO, a.needsIntervals, a.needsMonetary = a.needsUTC || utc, a.needsISO || iso, a.needsIntervals || intervals, a.needsMonetary || monetary
		return v
	}
	a.restore(before)
	a.at = n
	a.needsUTC, a.needsISO, a.needsIntervals, a.needsMonetary = utc, iso, intervals, monetary
	if e, ok := a.serverConst(n); ok {
		return typed(e)
	}
	return a.exprOf(n, s)
}

// caughtValue returns what f does, or the refusal with which it ends.
func caughtValue(f func() value) (v value, refused *plan.Forward) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *plan.Forward:
			refused = p
		default:
			panic(p)
		}
	}()
	return f(), nil
}

// notes are what an analysis of an expression over no rows notes beside it.
type notes struct {
	params    []vector.Type
	declared  []bool
	functions []string
	oids      []uint32
	called    map[string]bool
	equated   [][2]vector.Kind
	negated   bool
	constants []plan.Expr
}

func (a *analyzer) notes() notes {
	return notes{slices.Clone(a.params), slices.Clone(a.declared), slices.Clone(a.functions), slices.Clone(a.oids), maps.Clone(a.called),
		slices.Clone(a.equated), a.negated, slices.Clone(a.constants)}
}

func (a *analyzer) restore(n notes) {
	a.params, a.declared, a.functions, a.oids, a.called, a.equated, a.negated, a.constants = n.params, n.declared, n.functions, n.oids, n.called, n.equated, n.negated, n.constants
}

// overNoRows reports whether n is an operator, a cast, a function or a value of the session over
// nothing but constants and parameters, and more than a literal of a type.
func overNoRows(n *pg.Node) bool {
	switch x := n.GetNode().(type) {
	case *pg.Node_TypeCast:
		return x.TypeCast.Arg.GetAConst() == nil && withoutRows(n)
	case *pg.Node_AExpr, *pg.Node_FuncCall, *pg.Node_SqlvalueFunction:
		return withoutRows(n)
	}
	return false
}

func withoutRows(n *pg.Node) bool {
	all := func(nodes ...*pg.Node) bool {
		return !slices.ContainsFunc(nodes, func(n *pg.Node) bool { return n != nil && !withoutRows(n) })
	}
	switch x := n.GetNode().(type) {
	case *pg.Node_AConst, *pg.Node_ParamRef, *pg.Node_SqlvalueFunction:
		return true
	case *pg.Node_TypeCast:
		return all(x.TypeCast.Arg)
	case *pg.Node_NamedArgExpr:
		return all(x.NamedArgExpr.Arg)
	case *pg.Node_AExpr:
		return x.AExpr.Kind == pg.A_Expr_Kind_AEXPR_OP && all(x.AExpr.Rexpr, x.AExpr.Lexpr)
	case *pg.Node_FuncCall:
		f := x.FuncCall
		names := nameList(f.Funcname)
		if len(names) == 0 || sqlfn.IsAggregate(names[len(names)-1]) || !hasOnlyArguments(f) {
			return false
		}
		return all(f.Args...)
	}
	return false
}

// serverConst leaves an expression over no rows to the server. ok is false where its type, or all
// of what it calls, is not known.
func (a *analyzer) serverConst(n *pg.Node) (e plan.Expr, ok bool) {
	w := serverWriter{a: a, params: maps.Clone(a.serverParams)}
	x, ok := w.write(n)
	kind := typeNames[x.kind]
	if !ok || x.enum == nil && (kind == vector.Invalid || kind == vector.BPChar) {
		return nil, false
	}
	t := vector.TypeOf(kind)
	if x.enum != nil {
		t = vector.EnumType(x.enum.OID)
	}
	if kind == vector.Numeric {
		t.Scale = vector.VaryingScale
		if x.scaled {
			t.Scale = x.scale
		}
	}
	for _, name := range w.functions {
		if a.cat.Shadowed[name] {
			fail(plan.ReasonShadowed, name+"()")
		}
		if i, found := slices.BinarySearch(a.functions, name); !found {
			a.functions = slices.Insert(a.functions, i, name)
		}
	}
	for _, symbol := range w.operators {
		a.operator(symbol)
	}
	a.takeParams(&w)
	return a.asked(x.sql, t), true
}

// takeParams notes the parameters of what has been written for the server.
func (a *analyzer) takeParams(w *serverWriter) {
	a.serverParams = w.params
	for n := range w.params {
		for len(a.params) < n {
			a.params, a.declared = append(a.params, vector.Type{}), append(a.declared, false)
		}
	}
}

// serverParamTypes returns plan.Deps.ServerParams.
func (a *analyzer) serverParamTypes() []uint32 {
	if len(a.serverParams) == 0 {
		return nil
	}
	oids := make([]uint32, len(a.params))
	for n, oid := range a.serverParams {
		oids[n-1] = oid
	}
	return oids
}

// asked returns the constant of an expression: one for all that are written alike.
func (a *analyzer) asked(sql string, t vector.Type) plan.Expr {
	return a.askedFor(plan.ServerConst{SQL: sql, T: t})
}

func (a *analyzer) askedFor(x plan.ServerConst) plan.Expr {
	i := slices.IndexFunc(a.server, func(c plan.ServerConst) bool { return c.SQL == x.SQL && c.T == x.T && c.Array == x.Array })
	if i < 0 {
		i = len(a.server)
		x.Index = i
		a.server = append(a.server, x)
	}
	return a.server[i]
}

// serverExpr is an expression as it is asked for. kind is the name of its type, "unknown" of a
// literal without one.
type serverExpr struct {
	sql, kind string
	literal   *string
	scaled    bool
	scale     int16 // of a numeric
	enum      *catalog.Enum
}

// isText reports whether || takes it as text: literals without a type are.
func (x serverExpr) isText() bool { return x.kind == "text" || x.literal != nil && x.kind == "unknown" }

// serverWriter writes an expression for the server.
type serverWriter struct {
	a         *analyzer
	functions []string // called without a schema
	operators []string // likewise
	params    map[int]uint32
}

// param writes a parameter that is cast: one that the client has declared no type for is of that type.
// ok is false where it occurs with two.
func (w *serverWriter) param(n int, kind string) (sql string, ok bool) {
	oid := uint32(oidInterval)
	if k := typeNames[kind]; k != vector.Invalid {
		oid = sqltype.OID(k)
	}
	return w.paramOf(n, oid)
}

// paramOf is param for a type by its OID.
func (w *serverWriter) paramOf(n int, oid uint32) (sql string, ok bool) {
	if n <= len(w.a.declared) && w.a.declared[n-1] {
		oid = w.a.paramOIDs[n-1]
	}
	if have, met := w.params[n]; n < 1 || n > 65535 || met && have != oid {
		return "", false
	}
	if w.params == nil {
		w.params = map[int]uint32{}
	}
	w.params[n] = oid
	return fmt.Sprintf("$%d", n), true
}

const oidInterval = 1186

func (w *serverWriter) write(n *pg.Node) (x serverExpr, ok bool) {
	switch n := n.GetNode().(type) {
	case *pg.Node_AConst:
		return writeConstant(n.AConst)
	case *pg.Node_TypeCast:
		return w.cast(n.TypeCast)
	case *pg.Node_SqlvalueFunction:
		return sessionValue(n.SqlvalueFunction)
	case *pg.Node_FuncCall:
		return w.function(n.FuncCall)
	case *pg.Node_AExpr:
		return w.operation(n.AExpr)
	}
	return x, false
}

// quoteLiteral writes a string so that it is read alike whatever standard_conforming_strings is.
func quoteLiteral(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		quoted = "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

func writeConstant(c *pg.A_Const) (serverExpr, bool) {
	if c.Isnull {
		return serverExpr{sql: "NULL", kind: "unknown"}, true
	}
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		return serverExpr{sql: fmt.Sprintf("(%d)", v.Ival.GetIval()), kind: "int4"}, true
	case *pg.A_Const_Fval:
		if text := v.Fval.GetFval(); strings.ContainsAny(text, ".eE") {
			return serverExpr{sql: "(" + text + ")", kind: "numeric"}, true
		}
	case *pg.A_Const_Boolval:
		return serverExpr{sql: fmt.Sprint(v.Boolval.GetBoolval()), kind: "bool"}, true
	case *pg.A_Const_Sval:
		s := v.Sval.GetSval()
		return serverExpr{sql: quoteLiteral(s), kind: "unknown", literal: &s}, true
	}
	return serverExpr{}, false
}

// sessionValues are the types of CURRENT_DATE and the like.
var sessionValues = map[pg.SQLValueFunctionOp]struct{ sql, kind string }{
	pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:        {"CURRENT_DATE", "date"},
	pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:   {"CURRENT_TIMESTAMP", "timestamptz"},
	pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N: {"CURRENT_TIMESTAMP", "timestamptz"},
	pg.SQLValueFunctionOp_SVFOP_LOCALTIME:           {"LOCALTIME", "time"},
	pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:         {"LOCALTIME", "time"},
	pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:      {"LOCALTIMESTAMP", "timestamp"},
	pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:    {"LOCALTIMESTAMP", "timestamp"},
}

func sessionValue(f *pg.SQLValueFunction) (serverExpr, bool) {
	v, ok := sessionValues[f.Op]
	if strings.HasSuffix(f.Op.String(), "_N") {
		v.sql += fmt.Sprintf("(%d)", f.Typmod)
	}
	return serverExpr{sql: v.sql, kind: v.kind}, ok
}

// cast writes a cast. A literal must mean the same whatever the settings are: the server reads the
// statement's when it parses that, and these in each execution.
func (w *serverWriter) cast(c *pg.TypeCast) (serverExpr, bool) {
	if e := w.a.enumNamed(c.TypeName); e != nil {
		return w.enum(c, e)
	}
	names := nameList(c.TypeName.GetNames())
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if len(names) != 1 || !serverTypes[names[0]] || len(c.TypeName.ArrayBounds) > 0 || c.TypeName.Setof || c.TypeName.PctType {
		return serverExpr{}, false
	}
	var mods []string
	for _, n := range c.TypeName.Typmods {
		v, ok := n.GetAConst().GetVal().(*pg.A_Const_Ival)
		if !ok {
			return serverExpr{}, false
		}
		mods = append(mods, fmt.Sprint(v.Ival.GetIval()))
	}
	t := "pg_catalog." + names[0]
	if len(mods) > 0 {
		t += "(" + strings.Join(mods, ",") + ")"
	}
	var x serverExpr
	var ok bool
	if r := c.Arg.GetParamRef(); r != nil {
		x.sql, ok = w.param(int(r.Number), names[0])
	} else {
		x, ok = w.write(c.Arg)
	}
	if !ok {
		return x, false
	}
	if x.literal != nil {
		checkLiteral(*x.literal, names[0])
	}
	return serverExpr{sql: x.sql + "::" + t, kind: names[0]}, true
}

func (w *serverWriter) function(f *pg.FuncCall) (x serverExpr, ok bool) {
	names := nameList(f.Funcname)
	name := names[len(names)-1]
	switch {
	case len(names) == 1:
		w.functions = append(w.functions, name)
	case len(names) != 2 || names[0] != "pg_catalog":
		return x, false
	}
	var args []serverExpr
	var written []string
	named := false
	for _, n := range f.Args {
		label := ""
		if arg := n.GetNamedArgExpr(); arg != nil {
			n, label, named = arg.Arg, arg.Name+" => ", true
		}
		var e serverExpr
		if r := n.GetParamRef(); r != nil && name == "make_interval" {
			if e.kind = "int4"; label == "secs => " || len(args) == 6 {
				e.kind = "float8"
			}
			e.sql, ok = w.param(int(r.Number), e.kind)
			e.sql += "::pg_catalog." + e.kind
		} else {
			e, ok = w.write(n)
		}
		if !ok {
			return x, false
		}
		args, written = append(args, e), append(written, label+e.sql)
	}
	kind := "interval"
	if name == "make_interval" {
		if slices.ContainsFunc(args, func(e serverExpr) bool { return e.kind == "unknown" }) {
			return x, false
		}
	} else if kind, ok = resolveServer(name, args); !ok || named {
		return x, false
	}
	x = serverExpr{sql: `pg_catalog."` + name + `"(` + strings.Join(written, ", ") + ")", kind: kind}
	if name == "extract" && args[0].literal != nil {
		field := strings.ToLower(*args[0].literal)
		if x.scaled = field != "julian"; field == "epoch" && args[1].kind != "date" || field == "second" {
			x.scale = 6
		}
	}
	return x, true
}

func (w *serverWriter) operation(o *pg.A_Expr) (x serverExpr, ok bool) {
	names := nameList(o.Name)
	symbol := names[len(names)-1]
	switch {
	case len(names) == 1:
		w.operators = append(w.operators, symbol)
	case len(names) != 2 || names[0] != "pg_catalog":
		return x, false
	}
	r, ok := w.write(o.Rexpr)
	if !ok {
		return x, false
	}
	operator := " OPERATOR(pg_catalog." + symbol + ") "
	if o.Lexpr == nil {
		kind, ok := serverCalls[symbol+"("+r.kind+")"]
		return serverExpr{sql: "(" + operator[1:] + r.sql + ")", kind: kind}, ok
	}
	l, ok := w.write(o.Lexpr)
	if !ok {
		return x, false
	}
	if symbol == "||" && (l.isText() || r.isText()) && (l.isText() || serverTypes[l.kind]) && (r.isText() || serverTypes[r.kind]) {
		return serverExpr{sql: "(" + l.sql + operator + r.sql + ")", kind: "text"}, true // textcat, anytextcat and textanycat
	}
	// One without a type is of the other's, if there is such an operator (binary_oper_exact in
	// parse_oper.c).
	for _, pair := range [2][2]*serverExpr{{&l, &r}, {&r, &l}} {
		if open, other := pair[0], pair[1]; open.kind == "unknown" {
			if _, exact := serverCalls[symbol+"("+other.kind+","+other.kind+")"]; !exact {
				return x, false
			}
			if open.literal != nil {
				checkLiteral(*open.literal, other.kind)
			}
			open.kind = other.kind
		}
	}
	kind, ok := resolveServer(symbol, []serverExpr{l, r})
	return serverExpr{sql: "(" + l.sql + operator + r.sql + ")", kind: kind}, ok
}
