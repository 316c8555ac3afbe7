package olap

import (
	"pgaccel/plan"
	"pgaccel/vector"
)

// Supports says why Execute cannot answer q, whatever its tables hold: nil if it
// can. It looks at the query alone. Parameters count as constants.
func Supports(q *plan.Star) (f *plan.Forward) {
	q.Walk(func(q *plan.Star) {
		if f == nil {
			f = supports(q)
		}
	})
	return f
}

// supports is Supports of a star, without those that it reads.
func supports(q *plan.Star) *plan.Forward {
	s := &support{q: q}
	if len(q.Tables) == 0 && (q.Grouped || len(q.Joins) > 0) || len(q.Tables) > plan.MaxTables {
		return &plan.Forward{Reason: plan.ReasonShape, Detail: "number of tables"}
	}
	s.sets(q)
	for _, j := range q.Joins {
		if j.Kind != plan.Inner && j.Kind != plan.Left && (j.Kind != plan.Single || j.Many || j.Exists) {
			s.no(plan.ReasonShape, "a join of this kind")
		}
		s.exprs(j.Outer, false)
		s.exprs(j.On, false)
		for i, k := range j.Key {
			t := q.Tables[j.Table].Meta.Columns[k].Type
			if i >= len(j.Outer) {
				continue
			}
			if o := j.Outer[i].Type(); !comparable(t, o) {
				s.no(plan.ReasonType, "join of unlike types")
			} else if _, plain := j.Outer[i].(plan.Column); t.Varying() != o.Varying() || t.Varying() && !plain {
				s.no(plan.ReasonType, "join by numerics of varying scale that are computed")
			}
		}
	}
	s.exprs(q.Filter, false)
	s.exprs(q.Group, false)
	s.exprs(q.Having, true)
	s.exprs(q.Constants, true)
	s.exprs(q.Output, q.Grouped)
	for _, o := range q.Order {
		s.expr(o.Expr, q.Grouped)
	}
	for _, a := range q.Aggs {
		s.aggregate(a)
	}
	s.many(q)
	return s.why
}

type support struct {
	q   *plan.Star
	why *plan.Forward
}

func (s *support) aggregate(a plan.AggregateCall) {
	if a.Filter != nil {
		s.expr(a.Filter, false)
	}
	if a.Func.Star {
		return
	}
	s.expr(a.Arg, false)
	if t := a.Arg.Type(); a.Func.Result(t).Kind == vector.Invalid {
		s.no(plan.ReasonFunction, a.Func.String()+" of "+t.Kind.String())
	}
}

func (s *support) no(r plan.Reason, detail string) {
	if s.why == nil {
		s.why = &plan.Forward{Reason: r, Detail: detail}
	}
}

func (s *support) exprs(es []plan.Expr, groups bool) {
	for _, e := range es {
		s.expr(e, groups)
	}
}

// comparable reports whether = and < of two types are those of their common kind. Documents of jsonb have
// theirs as functions.
func comparable(a, b vector.Type) bool {
	switch {
	case a.Kind.IsInt():
		return b.Kind.IsInt()
	case a.Kind.IsFloat():
		return b.Kind.IsFloat()
	case a.Kind == vector.BPChar:
		return b.Kind == vector.BPChar
	case a.Kind.IsText():
		return b.Kind == vector.Text || b.Kind == vector.Varchar
	}
	return a.Kind == b.Kind && a.Kind != vector.Invalid && a.Kind.Ordered()
}

func (s *support) expr(e plan.Expr, groups bool) {
	plan.Walk(e, func(x plan.Expr) bool {
		if t := x.Type(); !t.Kind.Valid() {
			s.no(plan.ReasonType, "unknown type")
		}
		switch x := x.(type) {
		case plan.Column:
			if groups {
				s.no(plan.ReasonShape, "a column outside of aggregates")
			}
			if x.T.Kind == vector.Numeric && x.T.Scale > vector.NumericMaxPrecision {
				s.no(plan.ReasonType, "numeric of too many decimals")
			}
		case plan.Key, plan.Agg, *plan.Grouping:
			if !groups {
				s.no(plan.ReasonShape, "an aggregate within rows")
			}
		case *plan.Call:
			s.call(x, groups)
		}
		return s.why == nil
	})
}

func (s *support) call(c *plan.Call, groups bool) {
	unknown := func() { s.no(plan.ReasonFunction, "operator or types") }
	if len(c.Args) == 0 {
		unknown()
		return
	}
	a := c.Args[0].Type()
	b := a
	binary := len(c.Args) == 2
	if binary {
		b = c.Args[1].Type()
	}
	boolean := func(from int) {
		for _, e := range c.Args[from:] {
			if e.Type().Kind != vector.Bool {
				unknown()
			}
		}
	}
	switch c.Op {
	case plan.OpAnd, plan.OpOr:
		boolean(0)
	case plan.OpNot, plan.OpIsTrue, plan.OpIsFalse:
		if len(c.Args) != 1 {
			unknown()
		}
		boolean(0)
	case plan.OpIsNull, plan.OpIsNotNull:
		if len(c.Args) != 1 {
			unknown()
		}
	case plan.OpEq, plan.OpNe, plan.OpLt, plan.OpLe, plan.OpGt, plan.OpGe, plan.OpDistinct:
		if !binary || !comparable(a, b) {
			s.no(plan.ReasonType, "comparison of unlike types")
		}
	case plan.OpIn:
		for _, e := range c.Args[1:] {
			switch e.(type) {
			case plan.Const, plan.Param, plan.ServerConst:
			default:
				unknown()
			}
			if !comparable(a, e.Type()) {
				s.no(plan.ReasonType, "comparison of unlike types")
			}
		}
	case plan.OpSame:
		if len(c.Args) != 1 || a.Kind != vector.Text && a.Kind != vector.Varchar || c.T.Kind != vector.Text {
			unknown()
		}
	case plan.OpLike:
		if !binary || !a.Kind.IsText() || !b.Kind.IsText() {
			unknown()
			return
		}
		switch c.Args[1].(type) {
		case plan.Const, plan.Param, plan.ServerConst:
		default:
			unknown()
		}
	case plan.OpCase, plan.OpCoalesce:
		if c.T.Kind == vector.BPChar && c.T.Typmod < 0 {
			s.no(plan.ReasonType, "CASE or COALESCE of char(n) of several lengths")
		}
		for i, e := range c.Args {
			if c.Op == plan.OpCase && i%2 == 0 && i+1 < len(c.Args) {
				if e.Type().Kind != vector.Bool {
					unknown()
				}
				continue
			}
			t := e.Type()
			if t.Kind != c.T.Kind && !(t.Kind.IsInt() && c.T.Kind.IsInt()) && !(t.Kind.IsText() && c.T.Kind.IsText()) {
				s.no(plan.ReasonType, "arms of unlike types")
			}
			if t.Kind == vector.Numeric && t.Scale != c.T.Scale && !isNullConst(e) {
				s.no(plan.ReasonType, "arms of unequal scale")
			}
		}
	case plan.OpCast:
		if len(c.Args) != 1 || !castable(a, c.T) {
			s.no(plan.ReasonType, "cast from "+a.Kind.String()+" to "+c.T.Kind.String())
		}
	case plan.OpFunc:
		if c.Func == nil || !c.Func.Accepts(c.Site()) {
			unknown()
		}
	case plan.OpAdd, plan.OpSub, plan.OpMul, plan.OpDiv, plan.OpMod:
		ok := binary
		switch {
		case a.Kind.IsInt() && b.Kind.IsInt():
			ok = ok && c.T.Kind.IsInt()
		case a.Kind == vector.Numeric && b.Kind == vector.Numeric:
			ok = ok && c.T.Kind == vector.Numeric
		case a.Kind.IsFloat() && b.Kind.IsFloat():
			ok = ok && c.T.Kind.IsFloat() && c.Op != plan.OpMod
		case a.Kind == vector.Date && b.Kind.IsInt():
			ok = ok && c.T.Kind == vector.Date && (c.Op == plan.OpAdd || c.Op == plan.OpSub)
		case a.Kind.IsInt() && b.Kind == vector.Date:
			ok = ok && c.T.Kind == vector.Date && c.Op == plan.OpAdd
		case a.Kind == vector.Date && b.Kind == vector.Date:
			ok = ok && c.T.Kind == vector.Int4 && c.Op == plan.OpSub
		case stamp(a.Kind) && a.Kind == b.Kind:
			ok = ok && c.T.Kind == vector.Interval && c.Op == plan.OpSub
		case stamp(a.Kind) && b.Kind == vector.Interval:
			ok = ok && c.T.Kind == a.Kind && (c.Op == plan.OpAdd || c.Op == plan.OpSub)
		default:
			ok = false
		}
		if !ok {
			unknown()
		}
	case plan.OpNeg, plan.OpAbs:
		if len(c.Args) != 1 || a.Kind != c.T.Kind || !a.Kind.IsInt() && a.Kind != vector.Numeric && !a.Kind.IsFloat() {
			unknown()
		}
	default:
		unknown()
	}
}

func isNullConst(e plan.Expr) bool {
	c, ok := e.(plan.Const)
	return ok && c.Null
}
