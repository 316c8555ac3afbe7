package pushdown

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// commonResults casts the alternatives of a CASE or COALESCE to their common type.
// Numerics of several scales keep theirs, value by value: such a result has
// VaryingScale.
func (a *analyzer) commonResults(vals []value) ([]plan.Expr, vector.Type) {
	k, ok := commonKind(vals)
	if !ok {
		fail(plan.ReasonType, "CASE or COALESCE of several types")
	}
	t := typeOfKind(k, vals)
	out := make([]plan.Expr, len(vals))
	if k == vector.Numeric {
		t.Scale = numericScale(vals)
	}
	for i, v := range vals {
		a.callsCast(v, k)
		e := a.resolve(v, t)
		if k == vector.Numeric {
			e = a.toNumeric(e)
			noNumericParam(e)
		} else {
			e = a.cast(e, t)
		}
		out[i] = e
	}
	switch {
	case k == vector.Numeric:
		scales := map[int16]bool{}
		for _, e := range out {
			if c, ok := e.(plan.Const); !ok || !c.Null {
				scales[e.Type().Scale] = true
				t.Scale = e.Type().Scale
			}
		}
		if len(scales) > 1 {
			t.Scale = vector.VaryingScale
		}
		for i, e := range out {
			if c, ok := e.(plan.Const); ok && c.Null {
				out[i] = plan.Const{Datum: vector.Null(t)}
			} else if e.Type().Scale != t.Scale {
				out[i] = a.call(plan.OpCast, t, e)
			}
		}
	case k.IsText():
		for _, e := range out {
			t.Collation = mergeCollations(t.Collation, e.Type().Collation)
		}
		for i, e := range out {
			out[i] = a.loosened(e, t)
		}
		if k == vector.BPChar {
			// Those of several lengths have none in common: as text, without their blanks, they can be
			// held (castArms).
			lengths := map[int32]bool{}
			for _, e := range out {
				if c, isConst := e.(plan.Const); !isConst || !c.Null {
					t.Typmod = e.Type().Typmod
					lengths[t.Typmod] = true
				}
			}
			if len(lengths) > 1 {
				t.Typmod = -1
			}
		}
	}
	return out, t
}

const armModifiers = "CASE or COALESCE of constants with several type modifiers"

// stableModifiers forwards outputs whose type modifier depends on who is asked.
// PostgreSQL reduces CASE and COALESCE over constants when it plans: the arm that is
// left brings its own modifier (numeric(5,2), varchar(3)) to the result. Describe of
// a statement, which comes before planning, shows the common one.
func stableModifiers(outputs []plan.Expr) {
	for _, e := range outputs {
		mods := map[int32]bool{}
		if constantArm(e, mods) && len(mods) > 1 {
			fail(plan.ReasonDescription, armModifiers)
		}
	}
}

// stableArms is stableModifiers of alternatives whose modifiers are lost as they are cast to their common type t.
func stableArms(arms []value, t vector.Type) {
	if t.Kind != vector.Numeric && severalModifiers(arms, t.Kind) { // numerics keep theirs
		fail(plan.ReasonDescription, armModifiers)
	}
}

// severalModifiers reports whether values, cast to their common kind, may have several type modifiers.
func severalModifiers(vals []value, k vector.Kind) bool {
	return slices.ContainsFunc(vals, func(v value) bool {
		m := typmodOf(v, k)
		return m == unknownTypmod || m != typmodOf(vals[0], k)
	})
}

// unknownTypmod is that of a char(n) that is computed: an aggregate has a length here, and none on the server.
const unknownTypmod = -2

// typmodOf is the type modifier that the server gives a value which is cast to a kind, -1 for none.
func typmodOf(v value, k vector.Kind) int32 {
	if v.kind() != k {
		return -1
	}
	known := k != vector.BPChar
	switch e := v.e.(type) {
	case plan.Column, plan.Const, plan.Key:
		known = true
	case *plan.Call:
		known = known || e.Op == plan.OpCast
	}
	if !known {
		return unknownTypmod
	}
	return v.e.Type().Typmod
}

// constantArm collects the type modifiers of the values that e may take and reports
// whether PostgreSQL may choose among them when it plans.
func constantArm(e plan.Expr, mods map[int32]bool) bool {
	e = ownScale(e)
	c, ok := e.(*plan.Call)
	if !ok || c.Op != plan.OpCase && c.Op != plan.OpCoalesce {
		mods[e.Type().Typmod] = true
		return false
	}
	constant := false
	last := len(c.Args) - 1
	for i, x := range c.Args {
		if c.Op == plan.OpCase && i%2 == 0 && i < last {
			constant = constant || mayBeConstant(x)
			continue
		}
		constant = constantArm(x, mods) || constant
		constant = constant || c.Op == plan.OpCoalesce && i < last && !readsRows(x)
	}
	return constant
}

// mayBeConstant reports whether PostgreSQL may know a condition when it plans: it
// reads nothing, or some part of it is null, true or false by itself.
func mayBeConstant(cond plan.Expr) bool {
	known := !readsRows(cond)
	plan.Walk(cond, func(x plan.Expr) bool {
		switch x := x.(type) {
		case plan.Const:
			known = known || x.Null
		case *plan.Call:
			if x.T.Kind == vector.Bool {
				known = known || !readsRows(x)
			}
		}
		return !known
	})
	return known
}

// ownScale undoes the cast to VaryingScale that commonResults makes.
func ownScale(e plan.Expr) plan.Expr {
	if c, ok := e.(*plan.Call); ok && c.Op == plan.OpCast && c.T.Varying() && c.Args[0].Type().Kind == vector.Numeric {
		return c.Args[0]
	}
	return e
}

// fixedScale gives the alternatives of a CASE or COALESCE one scale, the largest.
// That changes how the value would be shown, not what it is: for operands of
// comparisons, null tests and count().
func (a *analyzer) fixedScale(e plan.Expr) plan.Expr {
	c, ok := e.(*plan.Call)
	if !ok || !c.T.Varying() || c.Op != plan.OpCase && c.Op != plan.OpCoalesce {
		return e
	}
	isArm := func(i int) bool { return c.Op == plan.OpCoalesce || i%2 == 1 || i == len(c.Args)-1 }
	t := vector.NumericType(0)
	args := slices.Clone(c.Args)
	for i := range args {
		if k, isConst := args[i].(plan.Const); isArm(i) && !(isConst && k.Null) {
			args[i] = a.fixedScale(ownScale(args[i]))
			s := args[i].Type().Scale
			if s == vector.VaryingScale {
				return e
			}
			t.Scale = max(t.Scale, s)
		}
	}
	for i := range args {
		if isArm(i) {
			args[i] = a.toScale(args[i], t.Scale)
		}
	}
	return a.call(c.Op, t, args...)
}

// inScale gives the alternatives of a CASE or COALESCE a scale where none has more decimals: where another
// operand has as many, the result shows the same. Else it returns the expression as it is.
func (a *analyzer) inScale(e plan.Expr, scale int16) plan.Expr {
	c, ok := e.(*plan.Call)
	if !ok || !c.T.Varying() || scale == vector.VaryingScale || c.Op != plan.OpCase && c.Op != plan.OpCoalesce {
		return e
	}
	args := slices.Clone(c.Args)
	for i := range args {
		if c.Op == plan.OpCase && i%2 == 0 && i < len(args)-1 {
			continue
		}
		x := a.inScale(ownScale(args[i]), scale)
		k, isConst := x.(plan.Const)
		switch {
		case isConst && k.Null:
			x = plan.Const{Datum: vector.Null(vector.NumericType(scale))}
		case isConst && k.Datum.Type.Scale < scale:
			if x, ok = a.castConst(k, vector.NumericType(scale)); !ok {
				return e
			}
		case x.Type().Scale != scale:
			return e
		}
		args[i] = x
	}
	return a.call(c.Op, vector.NumericType(scale), args...)
}

// castArms casts the results of a CASE or COALESCE of char(n) of several lengths instead of its own:
// as text none of them has blanks at its end.
func (a *analyzer) castArms(c *plan.Call, t vector.Type) plan.Expr {
	d := *c
	d.T.Kind, d.T.Typmod = t.Kind, -1
	d.Args = slices.Clone(c.Args)
	for i, e := range c.Args {
		if c.Op == plan.OpCoalesce || i%2 == 1 || i == len(c.Args)-1 {
			d.Args[i] = a.cast(e, t)
		}
	}
	return &d
}
