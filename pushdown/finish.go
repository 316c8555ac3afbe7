package pushdown

import (
	_ "embed"
	"fmt"
	"regexp"
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

// A statement that is refused is answered nevertheless where one part of it reads all the tables and can
// be planned by itself: that part, the core, is computed here, and the server runs the rest in the client's
// session, over the core's rows, which are parameters:
//
//	text   SELECT region, exp(sum(x)) FROM sales WHERE day > $1 GROUP BY region ORDER BY 2
//	core   SELECT region, sum(x) FROM sales WHERE day > $1 GROUP BY region
//	rest   SELECT rows.c1 AS region, exp(rows.c2) AS exp FROM (SELECT ... unnest($2), unnest($3) ...) rows ORDER BY 2
//
// A core is, the largest first, a SELECT as it stands; the groups of one; the rows of its FROM and WHERE. Names,
// operators and types of the rest mean what they do in the statement, since the server resolves them for
// arguments of the same types. The rest reads no copied tables, and calls none but built-in functions
// that neither write nor read any: unless it reads others (finishothers.go) it may run under another snapshot than the gate's.

// Finish is what the server runs over a core's rows.
type Finish struct {
	// SQL is the rest. The client's parameters are $1 to $Params, the core's columns those behind: arrays.
	SQL    string
	Params int
	// Cuts says that the rest has a LIMIT: of rows that its order leaves equal it takes the first by their values.
	Cuts bool
	// Ordered says that the rest depends on the order of the core's rows.
	Ordered bool
	// Reads says that the rest reads tables: it has to see what the core has seen. The core's last constant, whose text Others is, is null
	// where it must not be run, and the same behind it if it has read those tables.
	Reads  bool
	Others string
	// Grouped says that the statement groups its rows, at the top: none of them is one of a table.
	Grouped bool
	// Columns are the core's, as arrays.
	Columns []FinishColumn
	// Of a statement that writes rows Select is what returns them, and Rows what does so in the rest; else both are "".
	Select, Rows string
	// Core is the core's text.
	Core string
}

// FinishColumn is how a column of the core becomes an array.
type FinishColumn struct {
	OID            uint32 // its type
	Text           bool   // its values are written as text, else in binary format
	Element, Array uint32 // the types of the array
}

// Arrays are the types of the arrays.
func (f *Finish) Arrays() []uint32 {
	types := make([]uint32, len(f.Columns))
	for i, c := range f.Columns {
		types[i] = c.Array
	}
	return types
}

// finishCallsText has the built-in functions that the rest may call. TestFinishCalls compares it with a server's catalog. A line is
//
//	name kinds
//
// where kinds are letters: a for aggregates, w for window functions, s for those that return sets, f for others.
//
//go:embed finishcalls.txt
var finishCallsText string

var finishCalls = func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(finishCallsText) {
		name, kinds, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		m[name] = kinds
	}
	return m
}()

// maxParams is how many parameters a statement may have.
const maxParams = 65535

// maxCores and maxCoreBytes bound how many parts of a statement are planned, and their texts together.
const (
	maxCores     = 24
	maxCoreBytes = 32 << 10
)

// finisher looks for the core of a statement.
type finisher struct {
	cat       *catalog.Catalog
	paramOIDs []uint32
	params    int // of the client: the number of the last one
	tries     int
	bytes     int // of their texts
	core      Statement
	coreText  string
	columns   []FinishColumn
	cuts      bool // the rest has a LIMIT
	ordered   bool // and depends on the order of the core's rows
	opaque    bool // the core may have columns of opaque types, which not all clients' encodings let be written
	others    []*otherTable
	ctes      map[string]bool // names of common table expressions
	// identities is text of SQL that says which tables these are.
	identities string
}

// Finishable reports whether a part of a statement that Plan has refused may be left to the server.
func (s *Statement) Finishable(text *syntax.Text) bool {
	switch s.Forward.Reason {
	case plan.ReasonNotSelect:
		if text.Written() == nil {
			return false
		}
	case plan.ReasonShadowed, plan.ReasonInternalError:
		return false
	}
	// How the server describes these depends on constants, which are columns of the core's in what it is left.
	return !slices.ContainsFunc(s.Refused, func(r Refusal) bool { return r.Forward.Reason == plan.ReasonDescription })
}

// PlanFinish is Plan for a statement that Plan has refused, or that writes the rows of a SELECT: the Statement is that of its core. finish is
// nil where there is none.
func PlanFinish(text *syntax.Text, paramOIDs []uint32, cat *catalog.Catalog) (core Statement, finish *Finish) {
	tree, sel := text.Tree()
	if sel == nil || sel.IntoClause != nil || len(text.SQL) > maxCoreBytes {
		return Statement{}, nil
	}
	if hasLimit(sel) && callsInList(sel.TargetList, func(name string) bool { return strings.Contains(finishCalls[name], "s") }) {
		return Statement{}, nil // the server cuts the rows of each row in the order in which a function returns them
	}
	writes := text.Written() != nil
	f := &finisher{cat: cat, paramOIDs: paramOIDs, params: len(paramOIDs), opaque: true}
	if !f.readsCopied(sel, nil) {
		return Statement{}, nil
	}
	syntax.Walk(sel, func(n *pg.Node) bool {
		f.params = max(f.params, int(n.GetParamRef().GetNumber()))
		return true
	})
	f.ctes = cteNames(sel)
	grouped := sel.Op == pg.SetOperation_SETOP_NONE && (len(sel.GroupClause) > 0 || sel.HavingClause != nil || aggregated(sel))
	before, ok := deparse(sel)
	if !ok || strings.Contains(before, namePrefix) {
		return Statement{}, nil
	}
	// INSERT gives constants without a type that of their column.
	if !f.block(sel, !writes, tree.GetInsertStmt() != nil, nil) || f.readsCopied(sel, nil) || !f.orderInsensitive(sel) {
		return Statement{}, nil
	}
	if f.cuts && slices.ContainsFunc(f.core.Star.Output, func(e plan.Expr) bool { return e.Type().Kind == vector.Opaque }) {
		return Statement{}, nil // not all of them have an order, or equal values that are the same
	}
	reads := f.readsOther(sel, nil)
	var names []string
	names, ok = f.restNames(sel)
	if !ok || len(f.core.Deps.ServerConsts) > 0 && readsClock(sel) { // which may be of two transactions
		return Statement{}, nil
	}
	called, ok := f.columnsOnly(sel)
	if !ok || slices.ContainsFunc(called, func(name string) bool { return f.cat.Shadowed[strings.ToLower(name)] }) || reads && (writes || !f.takesOthers(sel)) {
		return Statement{}, nil
	}
	if f.params+len(f.columns) > maxParams {
		return Statement{}, nil
	}
	finish = &Finish{Params: f.params, Cuts: f.cuts, Ordered: f.ordered, Reads: reads, Others: f.identities, Grouped: grouped, Columns: f.columns, Core: f.coreText}
	if finish.SQL, ok = deparseStatement(tree); !ok {
		return Statement{}, nil
	}
	if writes {
		finish.Select = before
		finish.Rows, _ = deparse(sel)
	}
	f.core.Deps.Functions = slices.Compact(slices.Sorted(slices.Values(slices.Concat(f.core.Deps.Functions, names, called))))
	return f.core, finish
}

// block looks for the core, which reads all copied tables, in sel, and puts its rows in its place. names are those of the common table
// expressions that sel may name. Where it is typed from outside, as an arm of UNION is, constants without a type have none yet.
func (f *finisher) block(sel *pg.SelectStmt, top, outside bool, names map[string]bool) bool {
	switch {
	case f.spent() || !f.readsCopied(sel, names):
		return false
	case f.readsOther(sel, names):
		if !namesAny(sel, names) && plainBlock(sel) && f.joined(sel) {
			return true
		}
	case !top && !namesAny(sel, names) && !(outside && untyped(sel)) && f.whole(sel):
		return true
	case !namesAny(sel, names) && plainBlock(sel) && (f.groups(sel) || f.rows(sel)):
		return true
	}
	names = withNames(sel, names)
	var reading []*pg.SelectStmt
	for _, child := range subqueries(sel) {
		if f.readsCopied(child, names) {
			reading = append(reading, child)
		}
	}
	return len(reading) == 1 && f.block(reading[0], false, reading[0] == sel.Larg || reading[0] == sel.Rarg, names)
}

// untyped reports whether an output of sel is a constant without a type, or a parameter, which may have none.
func untyped(sel *pg.SelectStmt) bool {
	if sel.Larg != nil {
		return untyped(sel.Larg) || untyped(sel.Rarg)
	}
	return slices.ContainsFunc(sel.TargetList, func(n *pg.Node) bool {
		v := n.GetResTarget().GetVal()
		c := v.GetAConst()
		return v.GetParamRef() != nil || c != nil && (c.Isnull || c.GetSval() != nil)
	})
}

// plainBlock reports whether sel has a FROM of its own and nothing that the server has to see with the rows: the order of grouping sets depends
// on what PostgreSQL before version 18 takes for fixed by conditions.
func plainBlock(sel *pg.SelectStmt) bool {
	return sel.Op == pg.SetOperation_SETOP_NONE && len(sel.FromClause) > 0 && len(sel.LockingClause) == 0 && sel.IntoClause == nil &&
		!(len(sel.SortClause) > 0 && hasSets(sel.GroupClause))
}

// subqueries are the SELECTs that a SELECT consists of, one level down.
func subqueries(sel *pg.SelectStmt) (all []*pg.SelectStmt) {
	if sel.Larg != nil {
		all = append(all, sel.Larg, sel.Rarg)
	}
	walkBlock(sel, func(n *pg.Node) bool {
		if s := n.GetSelectStmt(); s != nil {
			all = append(all, s)
			return false
		}
		return true
	})
	return all
}

// walkBlock is syntax.Walk over a SELECT but for the arms of a set operation.
func walkBlock(sel *pg.SelectStmt, visit func(*pg.Node) bool) {
	for _, part := range []any{sel.WithClause, sel.DistinctClause, sel.TargetList, sel.FromClause, sel.WhereClause, sel.GroupClause, sel.HavingClause,
		sel.WindowClause, sel.ValuesLists, sel.SortClause, sel.LimitOffset, sel.LimitCount, sel.LockingClause} {
		syntax.Walk(part, visit)
	}
}

// withNames adds the names of a SELECT's common table expressions.
func withNames(sel *pg.SelectStmt, names map[string]bool) map[string]bool {
	if sel.WithClause == nil {
		return names
	}
	all := map[string]bool{}
	for name := range names {
		all[name] = true
	}
	for _, n := range sel.WithClause.Ctes {
		all[n.GetCommonTableExpr().GetCtename()] = true
	}
	return all
}

// namesAny reports whether sel names one of the common table expressions around it; where one of
// its own has the name, too, it is taken for that.
func namesAny(sel *pg.SelectStmt, names map[string]bool) (does bool) {
	syntax.Walk(sel, func(n *pg.Node) bool {
		r := n.GetRangeVar()
		does = does || r != nil && r.Schemaname == "" && names[r.Relname]
		return !does
	})
	return does
}

// plan plans sel as the core.
func (f *finisher) plan(sel *pg.SelectStmt) bool {
	st, sql, ok := f.planned(sel)
	if !ok || st.Star == nil || readsDomain(st.Deps.Tables) {
		return false
	}
	f.core, f.coreText = st, sql
	return true
}

// spent reports whether no other core is planned: who has one to offer need not make it, from copies of the statement.
func (f *finisher) spent() bool { return f.tries == maxCores || f.bytes > maxCoreBytes }

// planned plans sel, if that is not too much.
func (f *finisher) planned(sel *pg.SelectStmt) (st Statement, sql string, ok bool) {
	if f.spent() {
		return st, "", false
	}
	if sql, ok = deparse(sel); !ok {
		return st, "", false
	}
	f.tries++
	f.bytes += len(sql)
	return planPart(syntax.ParsePart(sql), f.paramOIDs, f.params, f.cat), sql, true
}

// readsDomain reports whether a column of a domain is read: what the server makes of the core's rows is over
// the type below, which pg_typeof and CREATE TABLE AS tell apart.
func readsDomain(tables []plan.Table) bool {
	return slices.ContainsFunc(tables, func(t plan.Table) bool {
		return slices.ContainsFunc(t.Columns, func(c int) bool { return t.Meta.Columns[c].Domain })
	})
}

// whole takes sel as it stands for the core.
func (f *finisher) whole(sel *pg.SelectStmt) bool {
	if !f.plan(sel) {
		return false
	}
	rows, ok := f.rowSet(f.core.Names)
	if ok {
		proto.Reset(sel)
		proto.Merge(sel, rows)
	}
	return ok
}

// RowSet is what makes the rows of a result again on a server, with columns of these names; nil where that is not
// possible, or not certain: once it has come to that nothing else has the rows. tables are those that it reads.
func RowSet(q *plan.Star, names []string, tables []plan.Table, cat *catalog.Catalog) *Finish {
	f := &finisher{cat: cat, core: Statement{Star: q, Names: names}}
	if readsDomain(tables) || !f.mayNameEnums(tables) {
		return nil
	}
	sql, ok := f.rowText(names)
	if !ok {
		return nil
	}
	return &Finish{SQL: sql, Columns: f.columns}
}

// mayNameEnums reports whether who names the tables may name the enums of the core's rows: that takes USAGE on
// the schema, which to read a column of one does not.
func (f *finisher) mayNameEnums(tables []plan.Table) bool {
	return !slices.ContainsFunc(f.core.Star.Output, func(e plan.Expr) bool {
		t := e.Type()
		if t.Kind != vector.Enum {
			return false
		}
		enum := f.cat.Enum(t.Collation.OID)
		return enum == nil || !slices.ContainsFunc(tables, func(t plan.Table) bool { return t.Ref != "" && t.Meta.Schema == enum.Schema })
	})
}

// rowSet is a SELECT of the core's rows, with columns of these names.
func (f *finisher) rowSet(names []string) (*pg.SelectStmt, bool) {
	sql, ok := f.rowText(names)
	if !ok {
		return nil, false
	}
	tree, err := pg.Parse(sql)
	if err != nil {
		return nil, false
	}
	return tree.Stmts[0].Stmt.GetSelectStmt(), true
}

func (f *finisher) rowText(names []string) (sql string, ok bool) {
	var columns, arrays, aliases []string
	f.columns = nil
	for i, e := range f.core.Star.Output {
		alias := fmt.Sprintf("c%d", i+1)
		c, expr, ok := f.asArray(e.Type(), "r."+alias)
		if !ok {
			return "", false
		}
		f.columns = append(f.columns, c)
		columns = append(columns, expr+" AS "+catalog.QuoteIdentifier(names[i]))
		arrays, aliases = append(arrays, fmt.Sprintf("pg_catalog.unnest($%d)", f.params+1+i)), append(aliases, alias)
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM ROWS FROM (" + strings.Join(arrays, ", ") + ") AS r(" + strings.Join(aliases, ", ") + ")", true
}

// asArray says how a column of a type becomes an array, and what makes its value again of an element.
func (f *finisher) asArray(t vector.Type, element string) (c FinishColumn, value string, ok bool) {
	oid := sqltype.OIDOf(t)
	c = FinishColumn{OID: oid, Element: oid, Array: sqltype.ArrayOID(t)}
	text := func(typeName string) {
		c.Text, c.Element, c.Array = true, sqltype.OIDText, sqltype.ArrayOID(vector.TypeOf(vector.Text))
		element += "::" + typeName
	}
	switch {
	case t.Kind == vector.Enum:
		e := f.cat.Enum(t.Collation.OID)
		if e == nil {
			return c, "", false
		}
		text(catalog.QuoteIdentifier(e.Schema) + "." + catalog.QuoteIdentifier(e.Name))
	case t.Kind.IsArray() && t.Kind.Element().IsText(): // whose elements' collation no type of ours says
		return c, "", false
	case t.Kind.IsArray(): // an array of arrays is another thing
		text("pg_catalog." + sqltype.Of(t.Kind).Name)
	case c.Array == 0, t.Kind == vector.Name, t.Kind == vector.Interval && t.Typmod >= 0, t.Kind == vector.Opaque && (!f.opaque || slices.Contains(unlikeArrays, oid)):
		return c, "", false
	default:
		element += modifier(t)
	}
	if !t.Kind.IsText() {
		return c, element, true
	}
	switch t.Collation.OID {
	case 0, defaultCollation:
		return c, element, true
	case cCollation:
		return c, element + ` COLLATE pg_catalog."C"`, true
	}
	return c, "", false
}

// unlikeArrays are opaque types whose columns elements of arrays do not stand for, as names, which have a collation, do not: XML,
// which is read again.
var unlikeArrays = []uint32{142}

// modifier is the cast that gives elements the modifier of their type: they fit it.
func modifier(t vector.Type) string {
	if t.Typmod < 0 {
		return ""
	}
	switch name := "::pg_catalog." + sqltype.Of(t.Kind).Name; t.Kind {
	case vector.Numeric:
		precision, scale := sqltype.NumericModifier(t.Typmod)
		return fmt.Sprintf("%s(%d,%d)", name, precision, scale)
	case vector.Varchar, vector.BPChar:
		return fmt.Sprintf("%s(%d)", name, t.Typmod-4)
	case vector.Time, vector.Timestamp, vector.TimestampTZ, vector.Bit, vector.VarBit:
		return fmt.Sprintf("%s(%d)", name, t.Typmod)
	}
	return ""
}

// restNames returns the names of the functions that the rest calls without a schema; ok is false where it is
// not sure that it reads nothing: it calls others than finishCalls, or names a type or an operator that is
// not built in.
func (f *finisher) restNames(rest *pg.SelectStmt) (names []string, ok bool) {
	ok = true
	operator := func(list []*pg.Node) {
		_, name, named := builtinName(list)
		ok = ok && (len(list) == 0 || named && !f.cat.Shadowed[name])
	}
	syntax.Walk(rest, func(n *pg.Node) bool {
		switch x := n.GetNode().(type) {
		case *pg.Node_FuncCall:
			schema, name, named := builtinName(x.FuncCall.Funcname)
			ok = ok && named && finishCalls[name] != "" && !f.cat.Shadowed[name]
			if schema == "" {
				names = append(names, name)
			}
		case *pg.Node_TypeCast:
			ok = ok && f.knownType(x.TypeCast.TypeName)
		case *pg.Node_ColumnDef:
			ok = ok && f.knownType(x.ColumnDef.TypeName)
		case *pg.Node_XmlSerialize, *pg.Node_JsonFuncExpr, *pg.Node_JsonTable, *pg.Node_JsonObjectConstructor, *pg.Node_JsonArrayConstructor,
			*pg.Node_JsonArrayQueryConstructor, *pg.Node_JsonObjectAgg, *pg.Node_JsonArrayAgg, *pg.Node_JsonParseExpr, *pg.Node_JsonScalarExpr,
			*pg.Node_JsonSerializeExpr: // types and aggregates of their own
			ok = false
		case *pg.Node_AExpr:
			operator(x.AExpr.Name)
		case *pg.Node_SubLink:
			operator(x.SubLink.OperName)
		case *pg.Node_SortBy:
			operator(x.SortBy.UseOp)
		}
		return ok
	})
	slices.Sort(names)
	return slices.Compact(names), ok
}

// readsClock reports whether sel has a value that depends on when its transaction began.
func readsClock(sel *pg.SelectStmt) (reads bool) {
	syntax.Walk(sel, func(n *pg.Node) bool {
		switch x := n.GetNode().(type) {
		case *pg.Node_SqlvalueFunction:
			reads = reads || nameValues[x.SqlvalueFunction.Op] == ""
		case *pg.Node_FuncCall:
			_, name, _ := builtinName(x.FuncCall.Funcname)
			reads = reads || slices.Contains(clockFunctions, name) || name == "age" && len(x.FuncCall.Args) == 1
		case *pg.Node_AConst:
			reads = reads || clockLiteral.MatchString(x.AConst.GetSval().GetSval())
		}
		return !reads
	})
	return reads
}

var (
	clockFunctions = []string{"now", "transaction_timestamp", "statement_timestamp"}
	clockLiteral   = regexp.MustCompile(`(?i)\b(now|today|tomorrow|yesterday)\b`)
)

// builtinName splits the name of what is built in; ok is false for one of another schema.
func builtinName(list []*pg.Node) (schema, name string, ok bool) {
	names := nameList(list)
	switch {
	case len(names) == 1 && len(list) == 1:
		return "", names[0], true
	case len(names) == 2 && names[0] == "pg_catalog":
		return names[0], names[1], true
	}
	return "", "", false
}

// builtinTypes are the types without a schema that the rest may name; those with a name of the grammar's have pg_catalog's.
var builtinTypes = map[string]bool{"text": true, "date": true, "json": true, "jsonb": true, "uuid": true, "bytea": true, "oid": true, "name": true,
	"int2": true, "int4": true, "int8": true, "float4": true, "float8": true, "bool": true, "numeric": true, "varchar": true, "bpchar": true,
	"time": true, "timetz": true, "timestamp": true, "timestamptz": true, "interval": true, "xml": true, "money": true, "inet": true, "cidr": true,
	"macaddr": true, "macaddr8": true, "regclass": true, "regtype": true, "jsonpath": true, "record": true,
	"tsvector": true, "tsquery": true, "point": true, "lseg": true, "line": true, "box": true, "path": true, "polygon": true, "circle": true,
	"int4range": true, "int8range": true, "numrange": true, "daterange": true, "tsrange": true, "tstzrange": true}

// knownType reports whether a type is built in, or an enum of the tables'.
func (f *finisher) knownType(t *pg.TypeName) bool {
	if schema, name, ok := builtinName(t.GetNames()); ok && (schema != "" || builtinTypes[name]) {
		return true
	}
	names := nameList(t.GetNames())
	return slices.ContainsFunc(f.cat.Enums, func(e *catalog.Enum) bool {
		return len(names) > 0 && e.Name == names[len(names)-1] && (len(names) == 1 || len(names) == 2 && e.Schema == names[0])
	})
}
