package explain

import (
	"fmt"
	"strconv"
	"strings"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// scope is what expressions of a star are written by.
type scope struct {
	q       *plan.Star
	columns func(c plan.Column) string
	aliases []string // of sources that are tables
	scalars []int    // numbers of the InitPlans that Scalars are
	// above: aggregates were computed below, and stand in parentheses.
	above bool
}

func (s *scope) over() *scope {
	o := *s
	o.above = true
	return &o
}

func (s *scope) list(es []plan.Expr) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = s.expr(e)
	}
	return out
}

// conditions writes conjuncts as one condition.
func (s *scope) conditions(es []plan.Expr) string { return conjunction(s.list(es)) }

func conjunction(conds []string) string {
	if len(conds) == 1 {
		if c := conds[0]; !strings.HasPrefix(c, "(") {
			return "(" + c + ")"
		}
		return conds[0]
	}
	if len(conds) == 0 {
		return ""
	}
	return "(" + strings.Join(conds, " AND ") + ")"
}

func (s *scope) expr(e plan.Expr) string {
	switch x := e.(type) {
	case plan.Column:
		return s.columns(x)
	case plan.Const:
		return constant(x)
	case plan.Param:
		return fmt.Sprintf("$%d", x.Index+1)
	case plan.ServerConst:
		return x.SQL
	case plan.Key:
		return s.expr(s.q.Group[x.Index])
	case plan.Agg:
		if s.above {
			return "(" + s.aggregate(&s.q.Aggs[x.Index]) + ")"
		}
		return s.aggregate(&s.q.Aggs[x.Index])
	case *plan.Grouping:
		keys := make([]string, len(x.Keys))
		for i, k := range x.Keys {
			keys[i] = s.expr(s.q.Group[k])
		}
		return "GROUPING(" + strings.Join(keys, ", ") + ")"
	case plan.Scalar:
		return fmt.Sprintf("(InitPlan %d).col%d", s.scalars[x.Of], x.Index+1)
	case *plan.Call:
		return s.call(x)
	}
	panic(fmt.Sprintf("BUG: expression %T", e))
}

func (s *scope) aggregate(g *plan.AggregateCall) string {
	b := strings.TrimSuffix(g.Func.String(), "(*)") + "("
	switch {
	case g.Func.Star:
		b += "*)"
	case g.Func.OrderedSet():
		if g.Fraction != nil {
			b += s.expr(g.Fraction)
		}
		b += ") WITHIN GROUP (ORDER BY " + s.expr(g.Arg) + map[bool]string{true: " DESC"}[g.Desc] + ")"
	default:
		b += map[bool]string{true: "DISTINCT "}[g.Distinct] + s.expr(g.Arg) + ")"
	}
	if g.Filter != nil {
		b += " FILTER (WHERE " + conjunction([]string{s.expr(g.Filter)}) + ")"
	}
	return b
}

func (s *scope) order(o plan.Order) string {
	return orderKey(s.over().expr(o.Expr), o.Desc, o.NullsFirst)
}

// orderKey writes a key of an order, and where nulls are if that is not where they are by default.
func orderKey(key string, desc, nullsFirst bool) string {
	if desc {
		key += " DESC"
	}
	if nullsFirst != desc {
		key += map[bool]string{true: " NULLS FIRST", false: " NULLS LAST"}[nullsFirst]
	}
	return key
}

var infix = map[plan.Op]string{plan.OpAdd: "+", plan.OpSub: "-", plan.OpMul: "*", plan.OpDiv: "/", plan.OpMod: "%", plan.OpEq: "=", plan.OpNe: "<>",
	plan.OpLt: "<", plan.OpLe: "<=", plan.OpGt: ">", plan.OpGe: ">=", plan.OpDistinct: "IS DISTINCT FROM"}

var postfix = map[plan.Op]string{plan.OpIsNull: "IS NULL", plan.OpIsNotNull: "IS NOT NULL", plan.OpIsTrue: "IS TRUE", plan.OpIsFalse: "IS FALSE"}

func (s *scope) call(c *plan.Call) string {
	if word, ok := infix[c.Op]; ok {
		return "(" + s.expr(c.Args[0]) + " " + word + " " + s.expr(c.Args[1]) + ")"
	}
	if word, ok := postfix[c.Op]; ok {
		return "(" + s.expr(c.Args[0]) + " " + word + ")"
	}
	args := s.list(c.Args)
	switch c.Op {
	case plan.OpAnd:
		return "(" + strings.Join(args, " AND ") + ")"
	case plan.OpOr:
		return "(" + strings.Join(args, " OR ") + ")"
	case plan.OpNot:
		return "(NOT " + args[0] + ")"
	case plan.OpNeg:
		return "(- " + args[0] + ")"
	case plan.OpAbs:
		return "abs(" + args[0] + ")"
	case plan.OpCoalesce:
		return "COALESCE(" + strings.Join(args, ", ") + ")"
	case plan.OpLike:
		return "(" + args[0] + map[bool]string{true: " ~~* ", false: " ~~ "}[c.Insensitive] + args[1] + ")"
	case plan.OpIn:
		return "(" + args[0] + " = ANY (ARRAY[" + strings.Join(args[1:], ", ") + "]))"
	case plan.OpCast:
		return "(" + args[0] + ")::" + typeName(c.T)
	case plan.OpSame:
		return args[0]
	case plan.OpFunc:
		if text, ok := s.ofFields(c); ok {
			return text
		}
		return c.Func.Name + "(" + strings.Join(args, ", ") + ")"
	case plan.OpCase:
		b := "CASE"
		for i := 0; i+1 < len(args); i += 2 {
			b += " WHEN " + args[i] + " THEN " + args[i+1]
		}
		return b + " ELSE " + args[len(args)-1] + " END"
	}
	panic(fmt.Sprintf("BUG: operator %d", c.Op))
}

// ofFields writes what functions stand for that are not the server's: forms of an interval, and sums of the fields of a value.
func (s *scope) ofFields(c *plan.Call) (text string, ok bool) {
	switch c.Func {
	case sqlfn.IntervalOf, sqlfn.IntervalKey, sqlfn.IntervalWordKey:
		return s.expr(c.Args[0]), true
	case sqlfn.MoneySum, sqlfn.IntervalSum, sqlfn.IntervalMean:
	default:
		return "", false
	}
	for _, a := range c.Args {
		sum, ok := a.(plan.Agg)
		if !ok || s.q.Aggs[sum.Index].Func != sqlfn.FieldSum {
			continue
		}
		g := s.q.Aggs[sum.Index]
		field, ok := g.Arg.(*plan.Call)
		if !ok || len(field.Args) != 1 {
			continue
		}
		text = s.aggregate(&plan.AggregateCall{Func: sqlfn.AggregateNamed(c.Func.Name), Arg: field.Args[0], Filter: g.Filter})
		if s.above {
			text = "(" + text + ")"
		}
		return text, true
	}
	return "", false
}

// constant writes a constant as get_const_expr does.
func constant(c plan.Const) string {
	t := c.Datum.Type
	switch {
	case c.Null:
		return "NULL::" + typeName(t)
	case t.Kind == vector.Bool:
		return strconv.FormatBool(c.I != 0)
	case t.Kind == vector.Int4 && c.I >= 0:
		return strconv.FormatInt(c.I, 10)
	}
	return quoted(sqltype.Text(c.Datum)) + "::" + typeName(t)
}

// quoted writes a string as quote_literal does.
func quoted(s string) string {
	e := ""
	if strings.Contains(s, `\`) {
		e, s = "E", strings.ReplaceAll(s, `\`, `\\`)
	}
	return e + "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// longNames are those of format_type where they are others than those of kinds.
var longNames = map[vector.Kind]string{vector.Time: "time without time zone", vector.Timestamp: "timestamp without time zone",
	vector.TimestampTZ: "timestamp with time zone", vector.Varchar: "character varying", vector.BPChar: "bpchar"}

func typeName(t vector.Type) string {
	name, long := longNames[t.Kind.Element()]
	if !long {
		name = t.Kind.Element().String()
	}
	if t.Kind.IsArray() {
		return name + "[]"
	}
	return name
}
