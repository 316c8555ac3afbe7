package pushdown

import (
	"fmt"
	"strings"

	"pgaccel/plan"
	"pgaccel/vector"
)

// formatStatement writes a decision as readable text.
func formatStatement(st Statement) string {
	var b strings.Builder
	if st.Forward != nil {
		fmt.Fprintf(&b, "forward: %s", st.Forward.Reason)
		if st.Forward.Detail != "" {
			fmt.Fprintf(&b, ": %s", st.Forward.Detail)
		}
		return b.String() + "\n"
	}
	q := st.Query
	f := formatter{q}
	for i, t := range q.Tables {
		fmt.Fprintf(&b, "t%d: %s", i, t.Ref)
		for k, c := range t.Columns {
			fmt.Fprintf(&b, "%s%s", map[bool]string{true: " reads ", false: ", "}[k == 0], t.Meta.Columns[c].Name)
		}
		b.WriteByte('\n')
	}
	for _, j := range q.Joins {
		kind := map[plan.JoinKind]string{plan.Inner: "lookup", plan.Left: "left lookup"}[j.Kind]
		if j.Many {
			kind = "many"
		}
		fmt.Fprintf(&b, "%s t%d:", kind, j.Table)
		for i, k := range j.Key {
			fmt.Fprintf(&b, " %s = %s", q.Tables[j.Table].Meta.Columns[k].Name, f.expr(j.Outer[i]))
		}
		for _, e := range j.On {
			fmt.Fprintf(&b, " on %s", f.expr(e))
		}
		b.WriteByte('\n')
	}
	list := func(name string, es []plan.Expr) {
		for i, e := range es {
			fmt.Fprintf(&b, "%s %s\n", strings.ReplaceAll(name, "#", fmt.Sprint(i)), f.expr(e))
		}
	}
	list("filter:", q.Filter)
	if q.Grouped && len(q.Group) == 0 {
		b.WriteString("one group\n")
	}
	list("key#:", q.Group)
	for _, s := range q.Sets {
		b.WriteString("set:")
		for i := range q.Group {
			if s>>i&1 != 0 {
				fmt.Fprintf(&b, " %d", i)
			}
		}
		b.WriteByte('\n')
	}
	for i, g := range q.Aggs {
		fmt.Fprintf(&b, "agg%d: %s", i, aggNames[g.Func])
		if g.Fraction != nil {
			fmt.Fprintf(&b, "(%s)", f.expr(g.Fraction))
		}
		if g.Arg != nil {
			fmt.Fprintf(&b, "(%s%s%s)", map[bool]string{true: "distinct "}[g.Distinct], f.expr(g.Arg), map[bool]string{true: " desc"}[g.Desc])
		}
		fmt.Fprintf(&b, " -> %s", typeName(g.T))
		if g.Filter != nil {
			fmt.Fprintf(&b, " where %s", f.expr(g.Filter))
		}
		b.WriteByte('\n')
	}
	list("having:", q.Having)
	for _, e := range q.Output {
		fmt.Fprintf(&b, "output: %s -> %s\n", f.expr(e), typeName(e.Type()))
	}
	for _, o := range q.Order {
		fmt.Fprintf(&b, "order: %s", f.expr(o.Expr))
		if o.Desc {
			b.WriteString(" desc")
		}
		if o.NullsFirst {
			b.WriteString(" nulls first")
		}
		b.WriteByte('\n')
	}
	if q.Limit != nil {
		fmt.Fprintf(&b, "limit: %s\n", f.expr(q.Limit))
	}
	if q.Offset != nil {
		fmt.Fprintf(&b, "offset: %s\n", f.expr(q.Offset))
	}
	for i, p := range q.Params {
		fmt.Fprintf(&b, "$%d: %s\n", i+1, typeName(p))
	}
	if q.NeedsUTC {
		b.WriteString("needs UTC\n")
	}
	if st.Small != nil {
		fmt.Fprintf(&b, "small: %s\n", st.Small.Detail)
	}
	return b.String()
}

var aggNames = []string{"count(*)", "count", "sum", "avg", "min", "max", "bool_and", "bool_or",
	"var_pop", "var_samp", "stddev_pop", "stddev_samp", "percentile_cont", "percentile_disc"}

var opNames = map[plan.Op]string{plan.OpAdd: "+", plan.OpSub: "-", plan.OpMul: "*", plan.OpDiv: "/", plan.OpMod: "%",
	plan.OpNeg: "neg", plan.OpAbs: "abs", plan.OpEq: "=", plan.OpNe: "<>", plan.OpLt: "<", plan.OpLe: "<=", plan.OpGt: ">",
	plan.OpGe: ">=", plan.OpDistinct: "distinct", plan.OpAnd: "and", plan.OpOr: "or", plan.OpNot: "not",
	plan.OpIsNull: "isnull", plan.OpIsNotNull: "notnull", plan.OpIsTrue: "istrue", plan.OpIsFalse: "isfalse",
	plan.OpIn: "in", plan.OpLike: "like", plan.OpCase: "case", plan.OpCoalesce: "coalesce", plan.OpCast: "cast",
	plan.OpExtract: "extract", plan.OpDateTrunc: "trunc"}

func typeName(t vector.Type) string {
	switch {
	case t.Kind == vector.Numeric && t.Scale == vector.VaryingScale:
		return "numeric*"
	case t.Kind == vector.Numeric:
		return fmt.Sprintf("numeric.%d", t.Scale)
	}
	return t.Kind.String()
}

type formatter struct{ q *plan.Query }

// expr writes an expression prefix-wise; arithmetic shows its type, because it
// decides overflow.
func (f formatter) expr(e plan.Expr) string {
	switch x := e.(type) {
	case plan.Column:
		return fmt.Sprintf("t%d.%s", x.Table, f.q.Tables[x.Table].Meta.Columns[x.Column].Name)
	case plan.Const:
		switch {
		case x.Null:
			return "null:" + typeName(x.Datum.Type)
		case x.Datum.Type.Kind.IsText():
			return fmt.Sprintf("%q", x.Str)
		case x.Datum.Type.Kind == vector.Numeric:
			return decimalOf(x).String()
		case x.Datum.Type.Kind == vector.Int4:
			return fmt.Sprint(x.I)
		case x.Datum.Type.Kind.IsFloat():
			return fmt.Sprintf("%s:%v", typeName(x.Datum.Type), x.Float64())
		}
		return fmt.Sprintf("%s:%d", typeName(x.Datum.Type), x.I)
	case plan.Param:
		return fmt.Sprintf("$%d", x.Index+1)
	case plan.Key:
		return fmt.Sprintf("key%d", x.Index)
	case plan.Agg:
		return fmt.Sprintf("agg%d", x.Index)
	case *plan.Grouping:
		return fmt.Sprintf("grouping%d", x.Keys)
	case *plan.Call:
		name := opNames[x.Op]
		switch x.Op {
		case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod, plan.OpCast, plan.OpCase, plan.OpCoalesce, plan.OpNeg:
			name += ":" + typeName(x.T)
		case plan.OpLike:
			if x.Insensitive {
				name = "ilike"
			}
		case plan.OpExtract, plan.OpDateTrunc:
			name += "." + x.Field + ":" + typeName(x.T)
		}
		args := make([]string, len(x.Args))
		for i, a := range x.Args {
			args[i] = f.expr(a)
		}
		return name + "(" + strings.Join(args, ", ") + ")"
	}
	return fmt.Sprintf("%T", e)
}
