package plan

import (
	"fmt"
	"strconv"
	"strings"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Format writes a tree as text, an operator a line, its inputs below it and further in.
func Format(r Rel, tables []Table) string {
	var b strings.Builder
	formatRel(&b, r, tables, 0, map[*Project]bool{})
	return b.String()
}

func formatRel(b *strings.Builder, r Rel, tables []Table, depth int, shared map[*Project]bool) {
	list := func(es []Expr) string {
		texts := make([]string, len(es))
		for i, e := range es {
			texts[i] = FormatExpr(e, tables)
		}
		return strings.Join(texts, ", ")
	}
	for range depth {
		b.WriteString("  ")
	}
	switch x := r.(type) {
	case *Scan:
		fmt.Fprintf(b, "scan t%d %s", x.Table, tables[x.Table].Ref)
	case *Join:
		formatJoin(b, x, list)
	case *Filter:
		b.WriteString("filter " + list(x.Conds))
	case *Aggregate:
		formatAggregate(b, x, tables, list)
	case *Sort:
		b.WriteString("sort by" + formatOrders(x.By, tables))
	case *Limit:
		b.WriteString("limit")
		if x.Count != nil {
			b.WriteString(" " + FormatExpr(x.Count, tables))
		}
		if x.Offset != nil {
			b.WriteString(" offset " + FormatExpr(x.Offset, tables))
		}
		if len(x.Per) > 0 {
			b.WriteString(" per " + list(x.Per))
		}
	case *Project:
		b.WriteString("project ")
		if x.Number > 0 {
			fmt.Fprintf(b, "out%d: ", x.Number)
		}
		b.WriteString(list(x.Exprs))
	case *Shared:
		fmt.Fprintf(b, "shared out%d: %s", x.Number, x.Name)
		if shared[x.Plan] {
			b.WriteString(", as above\n")
			return
		}
		shared[x.Plan] = true
	case *SetOp:
		fmt.Fprintf(b, "%s%s out%d", setNames[x.Kind], map[bool]string{true: " all"}[x.All], x.Number)
	case *Values:
		formatValues(b, x, list)
	case *Series:
		fmt.Fprintf(b, "series out%d: %s", x.Number, list(x.Args()))
		if x.Step == nil {
			fmt.Fprintf(b, " by %d months %d days %d us", x.By.Months, x.By.Days, x.By.Micros)
		}
	case *ProjectSet:
		fmt.Fprintf(b, "set out%d: %s of %s", x.Number, x.FunctionNames(), list(x.Args()))
	case *Window:
		formatWindow(b, x, tables, list)
	default:
		panic(fmt.Sprintf("BUG: operator %T", r))
	}
	b.WriteByte('\n')
	for _, in := range r.Inputs() {
		formatRel(b, in, tables, depth+1, shared)
	}
}

func formatOrders(by []Order, tables []Table) (s string) {
	for i, o := range by {
		s += map[bool]string{true: " ", false: ", "}[i == 0] + FormatOrder(o, tables)
	}
	return s
}

var windowNames = map[WindowFunc]string{RowNumber: "row_number", Rank: "rank", DenseRank: "dense_rank", PercentRank: "percent_rank",
	CumeDist: "cume_dist", Ntile: "ntile", Lag: "lag", Lead: "lead", FirstValue: "first_value", LastValue: "last_value", NthValue: "nth_value"}

// String returns the function's name in SQL; that of an aggregate is its own.
func (f WindowFunc) String() string { return windowNames[f] }

func formatWindow(b *strings.Builder, w *Window, tables []Table, list func([]Expr) string) {
	fmt.Fprintf(b, "window out%d: ", w.Number)
	if w.Func == WindowAggregate {
		b.WriteString(FormatAggregate(&w.Agg, tables))
	} else {
		b.WriteString(windowNames[w.Func])
		if w.Offset != nil {
			b.WriteString(" " + list([]Expr{w.Offset}))
		}
		if w.Arg != nil {
			b.WriteString(" " + list([]Expr{w.Arg}))
		}
		if w.Default != nil {
			b.WriteString(" else " + list([]Expr{w.Default}))
		}
	}
	if len(w.Partition) > 0 {
		b.WriteString(" by " + list(w.Partition))
	}
	if len(w.Order) > 0 {
		b.WriteString(" order by" + formatOrders(w.Order, tables))
	}
	if w.Frame != defaultFrame && w.Frame != (Frame{}) {
		b.WriteString(" " + FormatFrame(w.Frame, list))
	}
}

// FormatFrame writes a frame as SQL does; list writes expressions.
func FormatFrame(f Frame, list func([]Expr) string) string {
	bound := func(b Bound) string {
		s := map[BoundKind]string{UnboundedPreceding: "unbounded preceding", Preceding: " preceding", CurrentRow: "current row", Following: " following",
			UnboundedFollowing: "unbounded following"}[b.Kind]
		switch {
		case b.Offset != nil:
			s = list([]Expr{b.Offset}) + s
		case b.offset():
			s = fmt.Sprintf("%d months %d days %d us", b.By.Months, b.By.Days, b.By.Micros) + s
		}
		return s
	}
	return map[FrameMode]string{Range: "range", Rows: "rows", Groups: "groups"}[f.Mode] + " between " + bound(f.Start) + " and " + bound(f.End) +
		map[Exclusion]string{ExcludeCurrentRow: " exclude current row", ExcludeGroup: " exclude group", ExcludeTies: " exclude ties"}[f.Exclude]
}

func formatJoin(b *strings.Builder, x *Join, list func([]Expr) string) {
	b.WriteString(joinNames[x.Kind] + " join")
	if x.Number > 0 {
		fmt.Fprintf(b, " out%d", x.Number)
	}
	if x.Lateral {
		b.WriteString(" lateral")
	}
	if len(x.On) > 0 {
		b.WriteString(" on " + list(x.On))
	}
}

func formatValues(b *strings.Builder, x *Values, list func([]Expr) string) {
	b.WriteString("values")
	if x.Number > 0 {
		fmt.Fprintf(b, " out%d:", x.Number)
	}
	for i, row := range x.Rows {
		b.WriteString(map[bool]string{true: " (", false: ", ("}[i == 0] + list(row) + ")")
	}
}

var joinNames = map[JoinKind]string{Inner: "inner", Left: "left", Full: "full", Semi: "semi", Anti: "anti", NotIn: "not in", Mark: "mark", Single: "scalar"}

var setNames = map[SetKind]string{Union: "union", Intersect: "intersect", Except: "except"}

func formatAggregate(b *strings.Builder, a *Aggregate, tables []Table, list func([]Expr) string) {
	b.WriteString("aggregate")
	if a.Number > 0 {
		fmt.Fprintf(b, " %d", a.Number)
	}
	if len(a.Keys) > 0 {
		b.WriteString(" by " + list(a.Keys))
	}
	if a.Sets != nil {
		b.WriteString(" in sets")
		for _, s := range a.Sets {
			var keys []string
			for i := range a.Keys {
				if s>>i&1 != 0 {
					keys = append(keys, fmt.Sprint(i))
				}
			}
			b.WriteString(" (" + strings.Join(keys, " ") + ")")
		}
	}
	for i := range a.Aggs {
		b.WriteString(map[bool]string{true: ": ", false: ", "}[i == 0] + FormatAggregate(&a.Aggs[i], tables))
	}
}

// FormatAggregate writes an aggregate call.
func FormatAggregate(g *AggregateCall, tables []Table) string {
	s := g.Func.String()
	if g.Fraction != nil {
		s += "(" + FormatExpr(g.Fraction, tables) + ")"
	}
	if g.Arg != nil {
		s += "(" + map[bool]string{true: "distinct "}[g.Distinct] + FormatExpr(g.Arg, tables) + map[bool]string{true: " desc"}[g.Desc] + ")"
	}
	if g.Func == StringAgg {
		s += " by " + strconv.Quote(g.Delimiter)
	}
	s += " -> " + FormatType(g.T)
	if g.Filter != nil {
		s += " where " + FormatExpr(g.Filter, tables)
	}
	return s
}

// FormatOrder writes a key of an order.
func FormatOrder(o Order, tables []Table) string {
	return FormatExpr(o.Expr, tables) + map[bool]string{true: " desc"}[o.Desc] + map[bool]string{true: " nulls first"}[o.NullsFirst]
}

var opNames = map[Op]string{OpAdd: "+", OpSub: "-", OpMul: "*", OpDiv: "/", OpMod: "%",
	OpNeg: "neg", OpAbs: "abs", OpEq: "=", OpNe: "<>", OpLt: "<", OpLe: "<=", OpGt: ">",
	OpGe: ">=", OpDistinct: "distinct", OpAnd: "and", OpOr: "or", OpNot: "not",
	OpIsNull: "isnull", OpIsNotNull: "notnull", OpIsTrue: "istrue", OpIsFalse: "isfalse",
	OpIn: "in", OpLike: "like", OpCase: "case", OpCoalesce: "coalesce", OpCast: "cast",
	OpFunc: "function", OpSame: "same"}

// FormatType writes a type: numeric* is one whose values have scales of their own.
func FormatType(t vector.Type) string {
	switch {
	case t.Varying():
		return "numeric*"
	case t.Kind == vector.Numeric:
		return fmt.Sprintf("numeric.%d", t.Scale)
	}
	return t.Kind.String()
}

// FormatExpr writes an expression prefix-wise; arithmetic shows its type, because it
// decides overflow.
func FormatExpr(e Expr, tables []Table) string {
	of := func(name string, index, aggregation int) string {
		if aggregation > 0 {
			return fmt.Sprintf("%s%d.%d", name, aggregation, index)
		}
		return fmt.Sprintf("%s%d", name, index)
	}
	switch x := e.(type) {
	case Column:
		return fmt.Sprintf("t%d.%s", x.Table, tables[x.Table].Meta.Columns[x.Column].Name)
	case Const:
		return formatConst(x)
	case Param:
		return fmt.Sprintf("$%d", x.Index+1)
	case ServerConst:
		return "{" + x.SQL + "}:" + FormatType(x.T)
	case Key:
		return of("key", x.Index, x.Of)
	case Agg:
		return of("agg", x.Index, x.Of)
	case Output:
		return of("out", x.Index, x.Of)
	case *Grouping:
		if x.Of > 0 {
			return fmt.Sprintf("grouping%d.%d", x.Of, x.Keys)
		}
		return fmt.Sprintf("grouping%d", x.Keys)
	case *Call:
		return formatCall(x, tables)
	}
	return fmt.Sprintf("%T", e)
}

func formatConst(c Const) string {
	t := c.Datum.Type
	switch {
	case c.Null:
		return "null:" + FormatType(t)
	case t.Kind.HeldAsText():
		return fmt.Sprintf("%q", c.Str)
	case t.Kind.IsString():
		return FormatType(t) + ":" + sqltype.Text(c.Datum)
	case t.Kind == vector.Numeric:
		return c.Decimal().String()
	case t.Kind == vector.Int4:
		return fmt.Sprint(c.I)
	case t.Kind.IsFloat():
		return fmt.Sprintf("%s:%v", FormatType(t), c.Float64())
	}
	return fmt.Sprintf("%s:%d", FormatType(t), c.I)
}

func formatCall(c *Call, tables []Table) string {
	name, ok := opNames[c.Op]
	if !ok {
		panic(fmt.Sprintf("BUG: operator %d has no name", c.Op))
	}
	switch c.Op {
	case OpAdd, OpSub, OpMul, OpDiv, OpMod, OpCast, OpCase, OpCoalesce, OpNeg:
		name += ":" + FormatType(c.T)
	case OpLike:
		if c.Insensitive {
			name = "ilike"
		}
	case OpFunc:
		name = c.Func.Name + ":" + FormatType(c.T)
	}
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = FormatExpr(a, tables)
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}
