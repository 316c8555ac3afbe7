package olap

import (
	"math/rand/v2"
	"slices"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// gen makes random expressions over tables, or over keys and aggregates.
type gen struct {
	r      *rand.Rand
	tables []int
	keys   []plan.Expr
	aggs   []plan.AggregateCall
	tame   bool // nothing that can fail
}

// leaf returns a random leaf whose type satisfies is; nil where there is none.
func (g *gen) leaf(is func(vector.Type) bool) plan.Expr {
	var found []plan.Expr
	for _, t := range g.tables {
		for c := range shape {
			if is(shape[c].Type) {
				found = append(found, plan.Column{Table: t, Column: c, T: shape[c].Type})
			}
		}
	}
	for i, k := range g.keys {
		if is(k.Type()) {
			found = append(found, plan.Key{Index: i, T: k.Type()})
		}
	}
	for i, a := range g.aggs {
		if is(a.T) {
			found = append(found, plan.Agg{Index: i, T: a.T})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[g.r.IntN(len(found))]
}

func (g *gen) constant(t vector.Type) plan.Expr {
	if g.r.IntN(12) == 0 {
		return plan.Const{Datum: vector.Null(t)}
	}
	if t.Varying() {
		return plan.Const{Datum: vector.Datum{Type: t, Num: vector.Decimal{Unscaled: vector.Int128Of(int64(g.r.IntN(1000))), Scale: 1}}}
	}
	return plan.Const{Datum: randomDatum(g.r, t, 0, 0, false)}
}

// of returns an expression of type t.
func (g *gen) of(t vector.Type, depth int) plan.Expr {
	switch k := t.Kind; {
	case k == vector.Bool:
		return g.bool(depth)
	case k.IsInt():
		return g.int(k, depth)
	case k == vector.Numeric:
		return g.numeric(t, depth)
	}
	if depth > 0 && g.r.IntN(6) == 0 && t.Kind != vector.BPChar {
		if g.r.IntN(2) == 0 {
			return &plan.Call{Op: plan.OpCase, T: t, Args: []plan.Expr{g.bool(depth - 1), g.of(t, depth-1), g.of(t, depth-1)}}
		}
		return &plan.Call{Op: plan.OpCoalesce, T: t, Args: []plan.Expr{g.of(t, depth-1), g.constant(t)}}
	}
	if depth > 0 && g.r.IntN(4) == 0 {
		switch t.Kind {
		case vector.Date:
			if !g.tame && g.r.IntN(2) == 0 {
				return call(plan.OpAdd, vector.Date, g.of(t, depth-1), g.int(vector.Int4, 0))
			}
			return call(plan.OpCast, vector.Date, g.of(vector.TypeOf(vector.Timestamp), depth-1))
		case vector.Timestamp, vector.TimestampTZ:
			if g.tame {
				break
			}
			if g.r.IntN(3) == 0 {
				return call(plan.OpCast, t.Kind, g.of(vector.TypeOf(vector.Date), depth-1))
			}
			if c := g.function(t, depth); c != nil {
				return c
			}
		case vector.Float8:
			if !g.tame {
				switch g.r.IntN(3) {
				case 0:
					return call(plan.OpCast, vector.Float8, g.int(vector.Int4, 0))
				case 1:
					return call(plan.OpCast, vector.Float8, g.numeric(vector.NumericType(2), 0))
				}
				return call([]plan.Op{plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv}[g.r.IntN(4)], vector.Float8, g.of(t, depth-1), g.of(t, depth-1))
			}
		case vector.Text:
			if g.r.IntN(2) == 0 {
				return g.text(t, depth)
			}
			if c := g.function(t, depth); c != nil {
				return c
			}
			if g.r.IntN(2) == 0 {
				if l := g.leaf(func(x vector.Type) bool { return x.Kind == vector.BPChar && x.Collation == t.Collation }); l != nil {
					return &plan.Call{Op: plan.OpCast, T: t, Args: []plan.Expr{l}}
				}
			}
		}
	}
	if g.r.IntN(5) > 0 {
		l := g.leaf(func(x vector.Type) bool {
			return x.Kind == t.Kind && x.Collation == t.Collation && x.Scale == t.Scale && (t.Kind != vector.BPChar || x.Typmod == t.Typmod)
		})
		if l != nil {
			return l
		}
	}
	return g.constant(t)
}

// function calls a function with a result of type t, nil where none was found.
func (g *gen) function(t vector.Type, depth int) plan.Expr {
	all := sqlfn.All()
	if !slices.ContainsFunc(all, func(f sqlfn.Function) bool { return f.Result == t.Kind && !f.Partial }) {
		return nil
	}
	for range 60 {
		f := &all[g.r.IntN(len(all))]
		if f.Result != t.Kind || f.Partial {
			continue
		}
		args := make([]plan.Expr, len(f.Args))
		for i, p := range f.Args {
			a := vector.TypeOf(p.Kind)
			switch {
			case p.Constants != nil && f.Zone == sqlfn.NamedZone && sqltype.NamesUTC(p.Constants[0]):
				args[i] = plan.Const{Datum: vector.String(p.Constants[0])} // others mean nothing before they are bound
				continue
			case p.Constants != nil:
				args[i] = plan.Const{Datum: vector.String(p.Constants[g.r.IntN(len(p.Constants))])}
				continue
			case p.Usual != nil:
				d, _ := sqltype.Of(p.Kind).Parse(p.Usual[g.r.IntN(len(p.Usual))])
				args[i] = plan.Const{Datum: d}
				continue
			case p.Kind.IsString():
				a = textType(p.Kind, collC, -1)
			case p.Kind == vector.Numeric:
				a = vector.NumericType([]int16{0, 2, 4}[g.r.IntN(3)])
			}
			args[i] = g.of(a, depth-1)
		}
		c := functionCall(f, args...)
		if c.T.Kind.IsString() {
			c.T.Collation = t.Collation
		}
		if c.T.Scale == t.Scale {
			return c
		}
	}
	return nil
}

func (g *gen) int(k vector.Kind, depth int) plan.Expr {
	t := vector.TypeOf(k)
	if depth > 0 && !g.tame && g.r.IntN(12) == 0 {
		if c := g.function(t, depth); c != nil {
			return c
		}
	}
	if depth > 0 {
		switch n := g.r.IntN(12); {
		case n < 4 && !g.tame:
			op := []plan.Op{plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpAdd, plan.OpSub, plan.OpDiv, plan.OpMod}[g.r.IntN(7)]
			a, b := g.int(k, depth-1), g.int(k, depth-1)
			if (op == plan.OpDiv || op == plan.OpMod) && g.r.IntN(2) == 0 {
				b = plan.Const{Datum: vector.Int(k, int64(1+g.r.IntN(9)))} // most others fail somewhere
			}
			return call(op, k, a, b)
		case n == 4 && !g.tame:
			return call([]plan.Op{plan.OpNeg, plan.OpAbs}[g.r.IntN(2)], k, g.int(k, depth-1))
		case n == 5:
			return &plan.Call{Op: plan.OpCase, T: t, Args: []plan.Expr{g.bool(depth - 1), g.int(k, depth-1), g.bool(depth - 1), g.int(k, depth-1), g.int(k, depth-1)}}
		case n == 6:
			return &plan.Call{Op: plan.OpCoalesce, T: t, Args: []plan.Expr{g.int(k, depth-1), g.int(k, depth-1)}}
		case n == 7 && !g.tame:
			return call(plan.OpCast, k, g.int([]vector.Kind{vector.Int2, vector.Int4, vector.Int8}[g.r.IntN(3)], depth-1))
		case n == 8 && !g.tame && k == vector.Int4:
			return call(plan.OpSub, vector.Int4, g.of(vector.TypeOf(vector.Date), depth-1), g.of(vector.TypeOf(vector.Date), depth-1))
		case n == 9 && k == vector.Int4:
			return call(plan.OpCast, k, g.bool(depth-1))
		case n == 10 && !g.tame && g.r.IntN(3) == 0:
			return call(plan.OpCast, k, g.of(vector.TypeOf([]vector.Kind{vector.Float8, vector.Float4}[g.r.IntN(2)]), depth-1))
		case n == 11 && !g.tame:
			if e := g.asText(g.int(k, depth-1)); g.r.IntN(4) > 0 {
				return call(plan.OpCast, k, e)
			}
			return call(plan.OpCast, k, g.of(textType(vector.Text, collC, -1), depth-1))
		}
	}
	if g.r.IntN(4) > 0 {
		if l := g.leaf(func(x vector.Type) bool { return x.Kind == k }); l != nil {
			return l
		}
	}
	return g.constant(t)
}

// asText returns the text of a number.
func (g *gen) asText(e plan.Expr) plan.Expr {
	return &plan.Call{Op: plan.OpCast, T: textType(vector.Text, collC, -1), Args: []plan.Expr{e}}
}

func (g *gen) numeric(t vector.Type, depth int) plan.Expr {
	varying := t.Scale == vector.VaryingScale
	if depth > 0 && !g.tame {
		switch n := g.r.IntN(9); {
		case n < 2 && !varying:
			return &plan.Call{Op: []plan.Op{plan.OpAdd, plan.OpSub}[g.r.IntN(2)], T: t, Args: []plan.Expr{g.numeric(t, depth-1), g.numeric(t, depth-1)}}
		case n == 2 && t.Scale >= 2:
			a := vector.NumericType(2)
			return &plan.Call{Op: plan.OpMul, T: t, Args: []plan.Expr{g.numeric(a, depth-1), g.numeric(vector.NumericType(t.Scale-2), depth-1)}}
		case n == 3 && !varying:
			return &plan.Call{Op: plan.OpCast, T: t, Args: []plan.Expr{g.int(vector.Int4, depth-1)}}
		case n == 4 && t.Scale == 4:
			return &plan.Call{Op: plan.OpCast, T: t, Args: []plan.Expr{g.numeric(vector.NumericType(2), depth-1)}}
		case n == 5:
			if c := g.function(t, depth); c != nil {
				return c
			}
		case n == 6 && varying && len(g.tables) == 0:
			return &plan.Call{Op: plan.OpDiv, T: t, Args: []plan.Expr{g.numeric(vector.NumericType(2), depth-1), g.numeric(vector.NumericType(0), depth-1)}}
		case n == 7 && !varying:
			return &plan.Call{Op: []plan.Op{plan.OpNeg, plan.OpAbs}[g.r.IntN(2)], T: t, Args: []plan.Expr{g.numeric(t, depth-1)}}
		}
	}
	if g.r.IntN(4) > 0 {
		if l := g.leaf(func(x vector.Type) bool { return x.Kind == vector.Numeric && x.Scale == t.Scale }); l != nil {
			return l
		}
	}
	return g.constant(t)
}

// ownComparable are the types that conditions compare and that have code of their own.
var ownComparable = []vector.Type{
	vector.TypeOf(vector.Int4), vector.TypeOf(vector.Int4), vector.TypeOf(vector.Int8), vector.TypeOf(vector.Int2), vector.NumericType(2), vector.NumericType(4),
	vector.TypeOf(vector.Date), vector.TypeOf(vector.Timestamp), vector.TypeOf(vector.TimestampTZ), vector.TypeOf(vector.Time), vector.TypeOf(vector.Float8), vector.TypeOf(vector.Float4),
	textType(vector.Text, collC, -1), textType(vector.Varchar, collR, 14), textType(vector.BPChar, collC, 9), vector.TypeOf(vector.Bool),
}

func (g *gen) bool(depth int) plan.Expr {
	if depth <= 0 && g.r.IntN(4) == 0 {
		if l := g.leaf(func(x vector.Type) bool { return x.Kind == vector.Bool }); l != nil {
			return l
		}
	}
	t := comparableTypes[g.r.IntN(len(comparableTypes))]
	switch n := g.r.IntN(14); {
	case n < 2 && depth > 0:
		return call([]plan.Op{plan.OpAnd, plan.OpOr}[g.r.IntN(2)], vector.Bool, g.bool(depth-1), g.bool(depth-1), g.bool(depth-1))
	case n == 2 && depth > 0:
		return call([]plan.Op{plan.OpNot, plan.OpIsTrue, plan.OpIsFalse}[g.r.IntN(3)], vector.Bool, g.bool(depth-1))
	case n == 3:
		return call([]plan.Op{plan.OpIsNull, plan.OpIsNotNull}[g.r.IntN(2)], vector.Bool, g.of(t, depth-1))
	case n == 4:
		args := []plan.Expr{g.of(t, depth-1)}
		for range 1 + g.r.IntN(9) {
			args = append(args, g.constant(t))
		}
		return call(plan.OpIn, vector.Bool, args...)
	case n == 5:
		t = textType(vector.Text, collC, -1)
		if g.r.IntN(2) == 0 {
			t = textType(vector.BPChar, collC, 9)
		}
		p := []string{"%", "a%", "%b%", "_", "a_c", "%a", "", `a\%`, `%\`, "z%a", "%é%", "k_"}[g.r.IntN(12)]
		c := call(plan.OpLike, vector.Bool, g.of(t, depth-1), plan.Const{Datum: vector.String(p)})
		c.Insensitive = g.r.IntN(5) == 0
		return c
	case n == 6:
		return call(plan.OpDistinct, vector.Bool, g.of(t, depth-1), g.of(t, depth-1))
	case n == 7 && depth > 0:
		return &plan.Call{Op: plan.OpCase, T: vector.TypeOf(vector.Bool), Args: []plan.Expr{g.bool(depth - 1), g.bool(depth - 1), g.bool(depth - 1)}}
	}
	op := []plan.Op{plan.OpEq, plan.OpEq, plan.OpNe, plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe}[g.r.IntN(7)]
	l, r := g.of(t, depth-1), g.of(t, depth-1)
	if g.r.IntN(2) == 0 {
		r = g.constant(t)
	}
	return call(op, vector.Bool, l, r)
}

// rowQuery is a query for the first rows in some order.
func (w *world) rowQuery() *plan.Star {
	q := w.query()
	q.Grouped, q.Group, q.Aggs, q.Having = false, nil, nil, nil
	g := &gen{r: w.r, tables: []int{0}, tame: w.r.IntN(3) > 0}
	q.Output = []plan.Expr{w.column(0, colID), g.of(comparableTypes[w.r.IntN(len(comparableTypes))], 1)}
	q.Order = []plan.Order{{Expr: g.of(comparableTypes[w.r.IntN(len(comparableTypes))], 1), Desc: w.r.IntN(2) == 0, NullsFirst: w.r.IntN(2) == 0}, {Expr: q.Output[0]}}
	q.Output = append(q.Output, q.Order[0].Expr)
	q.Limit = plan.Const{Datum: vector.Int(vector.Int8, int64(w.r.IntN(40)))}
	return q
}

func (w *world) query() *plan.Star {
	r := w.r
	q := &plan.Star{Joins: w.joins}
	var all []int
	for i, t := range w.tables {
		q.Tables = append(q.Tables, plan.Source{Meta: t.meta, Table: len(q.Tables)})
		all = append(all, i)
	}
	some := func() *gen {
		g := &gen{r: r, tables: all, tame: r.IntN(3) > 0}
		if r.IntN(3) > 0 {
			g.tables = []int{r.IntN(len(all))}
		}
		return g
	}
	for range r.IntN(4) {
		q.Filter = append(q.Filter, some().bool(r.IntN(3)))
	}
	depth := func() int { return r.IntN(3) }
	out := &gen{r: r, tables: all}
	if q.Grouped = r.IntN(4) > 0; q.Grouped {
		for range r.IntN(4) {
			t := comparableTypes[r.IntN(len(comparableTypes))]
			if r.IntN(6) == 0 {
				t = vector.NumericType(0)
			}
			q.Group = append(q.Group, some().of(t, depth()))
		}
		for range 1 + r.IntN(5) {
			q.Aggs = append(q.Aggs, randomAggregate(r, some()))
		}
		out = &gen{r: r, keys: q.Group, aggs: q.Aggs}
		if r.IntN(3) == 0 {
			q.Having = append(q.Having, out.bool(depth()))
		}
		for i, k := range q.Group {
			q.Output = append(q.Output, plan.Key{Index: i, T: k.Type()})
		}
		for i, a := range q.Aggs {
			q.Output = append(q.Output, plan.Agg{Index: i, T: a.T})
		}
		if r.IntN(3) == 0 {
			q.Output = append(q.Output, out.of([]vector.Type{{Kind: vector.Int8, Typmod: -1}, vector.NumericType(2), vector.NumericType(-1)}[r.IntN(3)], 2))
		}
	} else {
		for range 1 + r.IntN(4) {
			out.tame = r.IntN(3) > 0
			q.Output = append(q.Output, out.of(comparableTypes[r.IntN(len(comparableTypes))], depth()))
		}
	}
	for range r.IntN(3) {
		e := q.Output[r.IntN(len(q.Output))]
		q.Order = append(q.Order, plan.Order{Expr: e, Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0})
	}
	if r.IntN(3) == 0 {
		q.Limit = plan.Const{Datum: vector.Int(vector.Int8, int64(r.IntN(12)))}
		if r.IntN(2) == 0 {
			q.Offset = plan.Const{Datum: vector.Int(vector.Int8, int64(r.IntN(5)))}
		}
	}
	return q
}

func randomAggregate(r *rand.Rand, g *gen) plan.AggregateCall {
	a := plan.AggregateCall{Func: sqlfn.Aggregates[r.IntN(len(sqlfn.Aggregates))]}
	if r.IntN(4) == 0 {
		a.Filter = g.bool(1)
	}
	if a.Func.Star {
		a.T = a.Func.Result(vector.Type{})
		return a
	}
	d := r.IntN(3)
	var t vector.Type
	for a.T.Kind == vector.Invalid {
		t = comparableTypes[r.IntN(len(comparableTypes))]
		a.T = a.Func.Result(t)
	}
	a.Arg = g.of(t, d)
	if a.Func == plan.PercentileCont && r.IntN(2) == 0 {
		from := []vector.Type{vector.TypeOf(vector.Int2), vector.TypeOf(vector.Int4), vector.TypeOf(vector.Int8), vector.NumericType(2), vector.NumericType(4)}[r.IntN(5)]
		a.Arg = call(plan.OpCast, vector.Float8, g.of(from, d))
	}
	if a.Func.OrderedSet() {
		a.Fraction = plan.Const{Datum: vector.Float([]float64{0, 1, 0.5, 0.25, 0.9, 0.999, 1.0 / 3, 1e-9, r.Float64()}[r.IntN(9)])}
		a.Desc = r.IntN(2) == 0
	} else if !a.Func.Idempotent {
		a.Distinct = r.IntN(3) == 0
	}
	return a
}
