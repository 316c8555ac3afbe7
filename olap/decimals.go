package olap

import (
	"math"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Numerics of varying scale, such as averages, have no 64-bit form: in an intermediate relation they
// are codes of a dictionary, as text is. Such a column is shown, ordered, and compared.

func decimalDict(list []vector.Decimal, t vector.Type) *dict {
	return &dict{t: t, n: len(list), decimals: list}
}

// value returns the value of a code.
func (d *dict) value(code int64) vector.Value {
	if d.decimals != nil {
		return vector.Value{Num: d.decimals[code]}
	}
	return vector.Value{Str: d.at(code)}
}

// decimalRanks returns the rank of each code: 1.0 and 1.00 are two codes of one rank.
func (d *dict) decimalRanks() []int32 {
	if d.ranks != nil {
		return d.ranks
	}
	order := make([]int32, d.n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compareDecimals(d.decimals[a], d.decimals[b]) })
	d.ranks = make([]int32, d.n)
	rank := int32(0)
	for i, code := range order {
		if i > 0 && compareDecimals(d.decimals[order[i-1]], d.decimals[code]) != 0 {
			rank = int32(i)
		}
		d.ranks[code] = rank
	}
	return d.ranks
}

// decimalComparison compiles a comparison of numerics of varying scale with an integer or a numeric
// of a fixed one, x. A value v between two multiples of x's unit becomes an odd number between the
// even ones that are twice x: 2*floor(v) + 1, or 2*v where it is a multiple.
func (c *compiler) decimalComparison(n *node, e *plan.Call) (*node, error) {
	unlike := forward(plan.ReasonType, "numeric values of several scales in one expression")
	a, b := n.args[0], n.args[1]
	flipped := a.dict == nil
	if flipped {
		a, b = b, a
	}
	if a.dict.decimals == nil || b.dict != nil || b.t.Kind != vector.Numeric && !b.t.Kind.IsInt() || b.lo < math.MinInt64/4 || b.hi > math.MaxInt64/4 {
		return nil, unlike
	}
	scale := int16(0)
	if b.t.Kind == vector.Numeric {
		scale = b.t.Scale
	}
	to := make([]int64, max(a.dict.n, 1))
	for i, d := range a.dict.decimals {
		floor, exact := plan.FloorTo(d, scale)
		switch {
		case floor.IsInt64() && floor.Int64() <= math.MaxInt64/4 && floor.Int64() >= math.MinInt64/4:
			if to[i] = 2 * floor.Int64(); !exact {
				to[i]++
			}
		case floor.Sign() > 0:
			to[i] = math.MaxInt64
		default:
			to[i] = math.MinInt64
		}
	}
	codes := *a
	codes.t, codes.dict = vector.TypeOf(vector.Int8), nil
	twice, err := c.scaled(b, 2, vector.TypeOf(vector.Int8))
	if err != nil {
		return nil, err
	}
	key := c.recode(&codes, to)
	if flipped {
		return c.compared(n, e, twice, key), nil
	}
	return c.compared(n, e, key, twice), nil
}
