package olap

import (
	"encoding/binary"
	"math"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Numerics of varying scale, such as averages and quotients, have no 64-bit form: they are codes of a
// dictionary, as text is. That of an intermediate relation's column is a list, as which that of a
// table's column is read (numericcolumn.go); what is computed row by row is interned, as bytes, while the
// rows are read. 1.0 and 1.00 have two codes.

// decimalBytes is a numeric in a pool: its unscaled integer, high and low word, and its scale.
func decimalBytes(d vector.Decimal) string {
	var b [18]byte
	binary.LittleEndian.PutUint64(b[:], uint64(d.Unscaled.Hi))
	binary.LittleEndian.PutUint64(b[8:], d.Unscaled.Lo)
	binary.LittleEndian.PutUint16(b[16:], uint16(d.Scale))
	return string(b[:])
}

func decimalOf(s string) vector.Decimal {
	b := []byte(s)
	return vector.Decimal{
		Unscaled: vector.Int128{Hi: int64(binary.LittleEndian.Uint64(b)), Lo: binary.LittleEndian.Uint64(b[8:])},
		Scale:    int16(binary.LittleEndian.Uint16(b[16:])),
	}
}

// coded reports whether values of a type are codes of a dictionary.
func coded(t vector.Type) bool { return t.Coded() }

func decimalDict(list []vector.Decimal, t vector.Type) *dict {
	return &dict{t: t, n: len(list), decimals: list}
}

// value returns the value of a code.
func (d *dict) value(code int64) vector.Value {
	switch {
	case d.decimals != nil:
		return vector.Value{Num: d.decimals[code]}
	case d.t.Varying():
		return vector.Value{Num: decimalOf(d.at(code))}
	}
	return vector.Value{Str: d.at(code)}
}

// interned returns the code that a value has in the dictionary's pool, a new one where it is new.
func (d *dict) interned(v vector.Value) (int64, error) {
	if d.t.Varying() {
		return d.pool.intern(decimalBytes(v.Num))
	}
	return d.pool.intern(v.Str)
}

// unlike forwards where two numerics of a dictionary are equal, and of two scales: they are one group,
// one of DISTINCT's values, one extreme, and which of the two is shown depends on the order of
// PostgreSQL's rows. Where they come while rows are read, it is decided then (grouper.complete).
func (c *compiler) unlike(t vector.Type, d *dict) error {
	switch {
	case !t.Varying() || d == nil:
		return nil
	case d.grows():
		c.decimalsUnlike = true
		return nil
	}
	return d.unlike()
}

func (d *dict) unlike() error {
	ranks := d.decimalRanks()
	seen := make([]bool, len(ranks))
	for _, r := range ranks {
		if seen[r] {
			return failed("equal numerics of several scales")
		}
		seen[r] = true
	}
	return nil
}

// decimalRanks returns the rank of each code: 1.0 and 1.00 are two codes of one rank.
func (d *dict) decimalRanks() []int32 {
	if d.ranks != nil {
		return d.ranks
	}
	order := d.decimalOrder()
	d.ranks = make([]int32, d.n)
	rank := int32(0)
	for i, code := range order {
		if i > 0 && !d.equalCodes(order[i-1], code) {
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
	a, b := n.args[0], n.args[1]
	flipped := a.dict == nil
	if flipped {
		a, b = b, a
	}
	if a.dict == nil || a.dict.grows() || b.dict != nil || b.lo < math.MinInt64/4 || b.hi > math.MaxInt64/4 {
		return c.treeCall(e, n.args)
	}
	scale := int16(0)
	if b.t.Kind == vector.Numeric {
		scale = b.t.Scale
	}
	to := make([]int64, max(a.dict.n, 1))
	if err := c.p.x.eachChunk(a.dict.n, func(_, from, end int) error {
		for i := from; i < end; i++ {
			to[i] = twiceFloor(a.dict.decimals[i], scale)
		}
		return nil
	}); err != nil {
		return nil, err
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

// twiceFloor returns what decimalComparison makes of a value, the ends of 64 bits for what is beyond.
func twiceFloor(d vector.Decimal, scale int16) int64 {
	if v, ok := d.Unscaled.Int64(); ok && scale <= d.Scale && d.Scale-scale <= 18 && v <= math.MaxInt64/4 && v >= math.MinInt64/4 {
		unit := vector.Pow10(int(d.Scale - scale))
		floor, rest := v/unit, v%unit
		if rest < 0 {
			floor--
		}
		return 2*floor + b2i(rest != 0)
	}
	floor, exact := plan.FloorTo(d, scale)
	switch {
	case floor.IsInt64() && floor.Int64() <= math.MaxInt64/4 && floor.Int64() >= math.MinInt64/4:
		return 2*floor.Int64() + b2i(!exact)
	case floor.Sign() > 0:
		return math.MaxInt64
	}
	return math.MinInt64
}
