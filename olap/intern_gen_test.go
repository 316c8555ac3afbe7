package olap

import (
	"strings"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Functions of text that package sqlfn need not have, for what is computed row by row.
var (
	concat = sqlfn.Function{
		Name: "concat", Result: vector.Text, Args: []sqlfn.Param{{Kind: vector.Text}, {Kind: vector.Text}}, Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Str: args[0].Str + args[1].Str}, nil
		},
	}
	// orElse takes nulls: the first argument that is not null and not empty.
	orElse = sqlfn.Function{
		Name: "or_else", Result: vector.Text, Args: []sqlfn.Param{{Kind: vector.Text}, {Kind: vector.Text}}, Total: true, CalledOnNull: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			if !args[0].Null && args[0].Str != "" {
				return args[0], nil
			}
			return args[1], nil
		},
	}
	// repeat fails for a negative number, and is null for 7.
	repeat = sqlfn.Function{
		Name: "repeat", Result: vector.Text, Args: []sqlfn.Param{{Kind: vector.Text}, {Kind: vector.Int4}},
		Eval: func(args []vector.Value) (vector.Value, error) {
			switch n := args[1].I; {
			case n < 0:
				return vector.NullValue, &sqlfn.Error{Detail: "a negative number"}
			case n == 7:
				return vector.NullValue, nil
			default:
				return vector.Value{Str: strings.Repeat(args[0].Str, int(n%4))}, nil
			}
		},
	}
	upper = sqlfn.Function{
		Name: "upper", Result: vector.Text, Args: []sqlfn.Param{{Kind: vector.Text}}, Total: true,
		Eval: func(args []vector.Value) (vector.Value, error) {
			return vector.Value{Str: strings.ToUpper(args[0].Str)}, nil
		},
	}
)

func textCast(e plan.Expr, c vector.Collation) plan.Expr {
	return &plan.Call{Op: plan.OpCast, Args: []plan.Expr{e}, T: textType(vector.Text, c, -1)}
}

// textKey refers to the text key of another table, by one column or another.
func (w *world) textKey(t int) plan.Expr {
	k := functionCall(&concat, constant(vector.String("k")), textCast(w.column(t, colRef), collC))
	k.T.Collation = collC
	k = functionCall(&orElse, textCast(w.column(t, colTRef), collC), k)
	k.T.Collation = collC
	return k
}

// text returns text that has to be computed row by row, as a rule.
func (g *gen) text(t vector.Type, depth int) plan.Expr {
	f := func(f *sqlfn.Function, args ...plan.Expr) plan.Expr {
		c := functionCall(f, args...)
		c.T.Collation = t.Collation
		return c
	}
	switch n := g.r.IntN(8); {
	case n == 0:
		return textCast(g.int([]vector.Kind{vector.Int2, vector.Int4, vector.Int8}[g.r.IntN(3)], depth-1), t.Collation)
	case n == 1:
		kinds := []vector.Type{vector.TypeOf(vector.Bool), vector.NumericType(2), vector.NumericType(4), vector.TypeOf(vector.Date),
			vector.TypeOf(vector.Time), vector.TypeOf(vector.Timestamp), vector.TypeOf(vector.TimestampTZ), vector.TypeOf(vector.MACAddr)}
		return textCast(g.of(kinds[g.r.IntN(len(kinds))], depth-1), t.Collation)
	case n == 2 && !g.tame:
		return f(&repeat, g.of(t, depth-1), g.int(vector.Int4, depth-1))
	case n == 3:
		return f(&orElse, g.of(t, depth-1), g.of(t, depth-1))
	case n == 5:
		l := g.leaf(func(x vector.Type) bool {
			return x.Kind.IsString() && x.Kind.IsCastToText() && x.Collation == t.Collation
		})
		if l != nil {
			return textCast(l, t.Collation)
		}
	case n == 4:
		return f(&upper, g.of(t, depth-1))
	}
	return f(&concat, g.of(t, depth-1), g.of(t, depth-1))
}
