package olap

import (
	"pgaccel/plan"
	"pgaccel/vector"
)

// textTest is a condition on one string, put together once for many: what env computes of an
// expression that reads the string and constants only. It belongs to one goroutine.
type textTest func(s string) (truth, error)

// truth is a boolean of SQL.
type truth uint8

const (
	isFalse truth = iota
	isTrue
	isNull
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// value returns the form that env has.
func (t truth) value() vector.Value {
	if t == isNull {
		return vector.NullValue
	}
	return vector.BoolValue(t == isTrue)
}

// prepareTest returns the test that e is of its only leaf, which is text; nil where it is none
// of those that are worth it.
func prepareTest(e plan.Expr) textTest {
	c, ok := e.(*plan.Call)
	if !ok {
		return nil
	}
	switch c.Op {
	case plan.OpNot:
		a := prepareTest(c.Args[0])
		if a == nil {
			return nil
		}
		return func(s string) (truth, error) {
			t, err := a(s)
			if t == isNull {
				return t, err
			}
			return isTrue - t, err
		}
	case plan.OpAnd, plan.OpOr:
		return prepareLogic(c)
	case plan.OpLike:
		p, ok := constantText(c.Args[1])
		if !ok {
			return nil
		}
		match := prepareLike(p).match
		if c.Insensitive {
			match = prepareILike(p, c.Func).match
		}
		return onText(c.Args[0], func(s string) (truth, error) {
			ok, err := match(s)
			if err != nil {
				return isNull, err
			}
			return truthOf(ok), nil
		})
	case plan.OpEq, plan.OpNe:
		return prepareIn(c, c.Args[1:], c.Op == plan.OpEq)
	case plan.OpIn:
		return prepareIn(c, c.Args[1:], true)
	}
	return nil
}

// prepareLogic is AND and OR, of which the first that decides ends the rest.
func prepareLogic(c *plan.Call) textTest {
	stop := truthOf(c.Op == plan.OpOr)
	tests := make([]textTest, len(c.Args))
	for i, a := range c.Args {
		if tests[i] = prepareTest(a); tests[i] == nil {
			return nil
		}
	}
	return func(s string) (truth, error) {
		result := isTrue - stop
		for _, f := range tests {
			t, err := f(s)
			switch {
			case err != nil:
				return isNull, err
			case t == isNull:
				result = isNull
			case t == stop:
				return t, nil
			}
		}
		return result, nil
	}
}

// prepareIn tests whether the first argument of c is one of the others, or none.
func prepareIn(c *plan.Call, members []plan.Expr, in bool) textTest {
	kind := c.Args[0].Type().Kind
	if !kind.IsString() {
		return nil
	}
	list := make([]string, len(members))
	for i, m := range members {
		s, ok := constantText(m)
		if !ok {
			return nil
		}
		list[i] = canonical(kind, s)
	}
	if len(list) <= inSetMin+2 {
		return onText(c.Args[0], func(s string) (truth, error) {
			s = canonical(kind, s)
			for _, m := range list {
				if m == s {
					return truthOf(in), nil
				}
			}
			return truthOf(!in), nil
		})
	}
	set := make(map[string]struct{}, len(list))
	for _, m := range list {
		set[m] = struct{}{}
	}
	return onText(c.Args[0], func(s string) (truth, error) {
		_, found := set[canonical(kind, s)]
		return truthOf(found == in), nil
	})
}

// onText returns test of e, which is text of the leaf.
func onText(e plan.Expr, test textTest) textTest {
	f, leaf := prepareText(e)
	switch {
	case leaf:
		return test
	case f == nil:
		return nil
	}
	return func(s string) (truth, error) {
		v, err := f(s)
		if err != nil || v.Null {
			return isNull, err
		}
		return test(v.Str)
	}
}

// stringFunc computes a value of a string. It belongs to one goroutine.
type stringFunc func(s string) (vector.Value, error)

// prepareText returns what computes e, which is text: a function or cast of the leaf, or of such
// another. leaf says that it is the leaf itself; else nil says that it is none of these.
func prepareText(e plan.Expr) (f stringFunc, leaf bool) {
	c, ok := e.(*plan.Call)
	_, constant := e.(plan.Const)
	switch {
	case constant || !e.Type().Kind.IsString():
		return nil, false
	case !ok:
		return nil, true
	case c.Op == plan.OpCast:
		return prepareCast(c), false
	}
	return prepareFunction(c), false
}

// prepareValue returns what computes e, a function or a cast of the leaf's text; nil where it is neither.
func prepareValue(e *plan.Call) stringFunc {
	if e.Op == plan.OpCast {
		return prepareCast(e)
	}
	return prepareFunction(e)
}

// prepareCast returns a cast of text.
func prepareCast(c *plan.Call) stringFunc {
	f, leaf := prepareText(c.Args[0])
	from := c.Args[0].Type()
	switch {
	case leaf && from.Kind == vector.BPChar && c.T.Kind.IsText() && c.T.Kind != vector.BPChar:
		return func(s string) (vector.Value, error) {
			for len(s) > 0 && s[len(s)-1] == ' ' {
				s = s[:len(s)-1]
			}
			return vector.Value{Str: s}, nil
		}
	case leaf:
		return func(s string) (vector.Value, error) { return castScalar(vector.Value{Str: s}, from, c.T) }
	case f == nil:
		return nil
	}
	return func(s string) (vector.Value, error) {
		v, err := f(s)
		if err != nil || v.Null {
			return v, err
		}
		return castScalar(v, from, c.T)
	}
}

// prepareFunction returns a call of a function of which one argument is text of the leaf and the
// others are constants; nil where e is something else.
func prepareFunction(e *plan.Call) stringFunc {
	if e.Op != plan.OpFunc {
		return nil
	}
	at := -1
	args := make([]vector.Value, len(e.Args))
	for i, a := range e.Args {
		if k, ok := a.(plan.Const); ok {
			args[i] = k.Datum.Value()
			continue
		}
		if at >= 0 {
			return nil
		}
		at = i
	}
	if at < 0 {
		return nil
	}
	f, leaf := prepareText(e.Args[at])
	switch {
	case leaf:
		return func(s string) (vector.Value, error) {
			args[at].Str = s
			return callFunction(e.Func, args)
		}
	case f == nil:
		return nil
	}
	return func(s string) (vector.Value, error) {
		v, err := f(s)
		if err != nil {
			return v, err
		}
		args[at] = v
		return callFunction(e.Func, args)
	}
}

// constantText returns the string of a constant, which is not null.
func constantText(e plan.Expr) (string, bool) {
	k, ok := e.(plan.Const)
	if !ok || k.Null || !k.Type().Kind.IsString() {
		return "", false
	}
	return k.Str, true
}
