package olap

import (
	"pgaccel/plan"
	"pgaccel/vector"
)

// The strings of a copy are in order in their dictionary (colstore.Dict.Ordered). What takes the first
// characters of each (sqlfn.Function.Prefix) has results in order then: where the first and the last
// string of a range have one result, all of them have it, and none of those between is decoded.

// orderedStep is so few strings that each is computed.
const orderedStep = 64

// orderedBy returns the code up to which e, over one string of d and constants, has results in the order
// of the codes: where one is null or an error all are.
func orderedBy(e *plan.Call, d *dict) int {
	if d.src == nil || e.Op != plan.OpFunc || e.Func.Prefix == nil || !e.Func.Prefix(e.Site()) {
		return 0
	}
	over := e.Args[0]
	if c, ok := over.(*plan.Call); ok && c.Op == plan.OpCast && c.T.Typmod < 0 { // of char(n), without blanks
		over = c.Args[0]
	}
	switch over.(type) {
	case *plan.Call, plan.Const:
		return 0
	}
	if !over.Type().Kind.IsText() { // others are held in forms of their own
		return 0
	}
	return d.src.Ordered()
}

// evalPrefixOf returns what computes e of a string and says how much of it decides the result (sqlfn.Function.EvalPrefix), where e is of
// the strings of d, which are in order, and constants; else nil. It belongs to one goroutine.
func evalPrefixOf(e *plan.Call, d *dict) func(s string) (r vector.Value, bytes int, err error) {
	if d.src == nil || d.t.Kind == vector.BPChar || e.Op != plan.OpFunc || e.Func.EvalPrefix == nil || d.src.Longest() > prefixMost {
		return nil
	}
	args := make([]vector.Value, len(e.Args))
	for i, a := range e.Args {
		if c, is := a.(*plan.Call); is && c.Op == plan.OpCast && c.T.Typmod < 0 && c.T.Kind == vector.Text && d.t.Kind == vector.Varchar {
			a = c.Args[0]
		}
		k, constant := a.(plan.Const)
		_, call := a.(*plan.Call)
		if call || constant == (i == 0) || constant && k.Null {
			return nil
		}
		if constant {
			args[i] = k.Datum.Value()
		}
	}
	return func(s string) (vector.Value, int, error) {
		args[0].Str = s
		r, bytes, err := e.Func.EvalPrefix(args)
		if err != nil {
			return vector.NullValue, -1, asForward(err)
		}
		return r, bytes, nil
	}
}

// prefixMost bounds strings of which a part decides: how long they are does not, then.
const prefixMost = 1 << 24

// eachResult calls yield with the results of f for the strings of codes from from to to-1: with that of
// one, or of several that have the same one. Codes below ordered are as orderedBy says.
func eachResult(d *dict, f stringFunc, from, to, ordered int, yield func(from, to int, r vector.Value, err error)) {
	if last := min(to, ordered); last-from > orderedStep {
		a, errA := f(d.at(int64(from)))
		b, errB := f(d.at(int64(last - 1)))
		if errA == nil && errB == nil && !a.Null && !b.Null && a.Str == b.Str {
			yield(from, last, a, nil)
		} else {
			middle := from + (last-from)/2
			eachResult(d, f, from, middle, middle, yield)
			eachResult(d, f, middle, last, last, yield)
		}
		from = last
	}
	d.each(from, to, func(code int, s string) {
		r, err := f(s)
		yield(code, code+1, r, err)
	})
}
