package olap

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// A column of numerics that 64 bits need not hold has a dictionary of keys (sqltype.NumericKeyFromBinary),
// which is read as decimals when a statement reads the column. NaN, infinities and values of more than 38
// digits or so are no decimals: a statement that reads a segment where one may be is forwarded.

// numericDicts are those dictionaries that an execution has read as decimals.
type numericDicts struct {
	mu   sync.Mutex
	read map[*colstore.Dict]*dict
}

// decimalHeld is what a decimal takes in memory.
const decimalHeld = 24

// decimalsMax bounds the dictionaries that are read as decimals, for each execution anew: PostgreSQL adds up
// millions of different numerics faster than that.
const decimalsMax = 1 << 17

var errManyNumerics = forward(plan.ReasonType, fmt.Sprintf("numeric of no precision, or more than 18 digits, with more than %d different values", decimalsMax))

// numericDict is the dictionary of a source's column of varying scale.
func (p *pipeline) numericDict(col int, t vector.Type) (*dict, error) {
	if p.x.dicts[p.table] != nil {
		return p.columnDict(col, t), nil
	}
	d, err := p.x.decimalsOf(p.tab.Dicts[col])
	if err != nil {
		return nil, err
	}
	for _, s := range p.tab.Segments {
		if z := &s.Columns[col]; d.mayNotHold(z.Min, z.Max) {
			return nil, failed("a numeric that is NaN, infinite or has too many digits")
		}
	}
	c := *d
	c.t = t
	return &c, nil
}

// decimalsOf reads a dictionary of keys as decimals.
func (x *execution) decimalsOf(keys *colstore.Dict) (*dict, error) {
	x.numerics.mu.Lock()
	defer x.numerics.mu.Unlock()
	if d := x.numerics.read[keys]; d != nil {
		return d, nil
	}
	if keys.Len() > decimalsMax {
		return nil, errManyNumerics
	}
	d := decimalDict(make([]vector.Decimal, keys.Len()), vector.NumericType(vector.VaryingScale))
	d.keys = keys
	if err := x.take(decimalHeld * int64(d.n)); err != nil {
		return nil, err
	}
	var mu sync.Mutex // of unheld
	if err := x.eachChunk(d.n, func(_, from, to int) error {
		keys.Each(int64(from), int64(to), func(code int64, key []byte) bool {
			v, ok := sqltype.NumericOfKey(key)
			if d.decimals[code] = v; !ok {
				mu.Lock()
				d.unheld = append(d.unheld, code)
				mu.Unlock()
			}
			return true
		})
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Sort(d.unheld)
	if x.numerics.read == nil {
		x.numerics.read = map[*colstore.Dict]*dict{}
	}
	x.numerics.read[keys] = d
	return d, nil
}

// mayNotHold reports whether one of the codes from lo to hi is no decimal.
func (d *dict) mayNotHold(lo, hi int64) bool {
	i, _ := slices.BinarySearch(d.unheld, lo)
	return i < len(d.unheld) && d.unheld[i] <= hi
}

// decimalOrder returns the codes in the order of their values.
func (d *dict) decimalOrder() []int32 {
	order := make([]int32, d.n)
	if d.keys != nil {
		if ranks := d.keys.Ranks(); len(ranks) >= d.n && dense(ranks[:d.n]) {
			for code, rank := range ranks[:d.n] {
				order[rank] = int32(code)
			}
			return order
		}
	}
	for i := range order {
		order[i] = int32(i)
	}
	about := make([]float64, d.n)
	for i := range about {
		about[i] = approximate(d.decimals[i])
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := about[a], about[b]
		if apart := x - y; math.Abs(apart) > approximation*(math.Abs(x)+math.Abs(y)) {
			return cmp.Compare(apart, 0)
		}
		return compareDecimals(d.decimals[a], d.decimals[b])
	})
	return order
}

const (
	// approximation is more than the relative error of approximate.
	approximation = 1e-13
	// approximateScale is the largest scale for which it has a value.
	approximateScale = 64
)

// approximate returns a double near a numeric, or NaN, whose comparisons decide nothing.
func approximate(d vector.Decimal) float64 {
	if d.Scale > approximateScale || d.Scale < 0 {
		return math.NaN()
	}
	u, sign := d.Unscaled, 1.0
	if u.Hi < 0 {
		u, sign = u.Neg(), -1 // the smallest value stays as it is and is right as unsigned
	}
	return sign * (float64(uint64(u.Hi))*(1<<64) + float64(u.Lo)) / math.Pow10(int(d.Scale))
}

// dense reports whether ranks are those from 0 on, without the gaps that strings of later versions leave.
func dense(ranks []int32) bool {
	return len(ranks) == 0 || int(slices.Max(ranks)) == len(ranks)-1
}

// equalCodes reports whether the values of two codes are equal.
func (d *dict) equalCodes(a, b int32) bool {
	return compareDecimals(d.decimals[a], d.decimals[b]) == 0 && !d.mayNotHold(int64(a), int64(a)) && !d.mayNotHold(int64(b), int64(b))
}

var errVaryingKey = forward(plan.ReasonType, "join by numerics of varying scale that are computed")

// onePerValue returns a node of the same values in which equal ones have one code, of whichever scale: for
// lookups, which show none of them.
func (c *compiler) onePerValue(a *node) (*node, error) {
	if a.dict == nil || a.dict.grows() {
		return nil, errVaryingKey
	}
	order, ranks := a.dict.decimalOrder(), a.dict.decimalRanks()
	to := make([]int64, max(a.dict.n, 1))
	list := make([]vector.Decimal, 0, a.dict.n)
	for i, code := range order {
		if i == 0 || ranks[code] != ranks[order[i-1]] {
			list = append(list, a.dict.decimals[code])
		}
		to[code] = int64(len(list) - 1)
	}
	n := c.recode(a, to)
	n.dict = decimalDict(list, a.t)
	return n, nil
}

// decimalTranslation is translation of decimals, to a dictionary in which no two are equal.
func decimalTranslation(from, to *dict) []int64 {
	codes := make(map[vector.Decimal]int64, to.n)
	for code, d := range to.decimals {
		codes[shortest(d)] = int64(code)
	}
	out := make([]int64, max(from.n, 1))
	out[0] = -1
	for i, d := range from.decimals {
		code, ok := codes[shortest(d)]
		if !ok {
			code = -1
		}
		out[i] = code
	}
	return out
}

// shortest returns the value in the form that has the least scale, though it is less than 0.
func shortest(d vector.Decimal) vector.Decimal {
	if d.Unscaled.Sign() == 0 {
		return vector.Decimal{}
	}
	v, ok := d.Unscaled.Int64()
	for !ok {
		r, exact := d.Rescale(d.Scale - 1)
		if !exact {
			return d
		}
		d = r
		v, ok = d.Unscaled.Int64()
	}
	for v%10 == 0 {
		v /= 10
		d.Scale--
	}
	d.Unscaled = vector.Int128Of(v)
	return d
}

// decimalsTabled is up to how many decimals what is computed of them is always written out. Tests make it small.
var decimalsTabled = 1 << 12

// manyDecimals reports whether an expression of type t over n, whose values are decimals, is computed a row at a
// time: where rows are few beside them, a table of all results would take longer.
func (c *compiler) manyDecimals(n *node, t vector.Type) bool {
	if n.dict == nil || n.dict.decimals == nil || n.dict.n <= decimalsTabled || t.Kind.IsString() || c.p.device {
		return false
	}
	return c.expectedRows() < fewPart*float64(n.dict.n)
}
