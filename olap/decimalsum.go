package olap

import (
	"pgaccel/vector"
)

// decimalSums are the sums of numerics of varying scale, which come as codes of a dictionary. Each
// has the largest scale of its values, as numeric_sum has (NumericSumAccum's maxScale).
type decimalSums struct {
	dict *dict
	sum  []vector.Decimal
	// wide: a sum of more than 127 bits was met.
	wide bool
}

func (e *decimalSums) grow(n int) { e.sum = append(e.sum, make([]vector.Decimal, n-len(e.sum))...) }

func (e *decimalSums) bytes() int64 { return int64(len(e.sum)) * 32 }

func (e *decimalSums) add(index []uint32, vals []int64) {
	for k, code := range vals {
		g := uint32(0)
		if index != nil {
			g = index[k]
		}
		e.plus(g, e.dict.value(code).Num)
	}
}

func (e *decimalSums) plus(g uint32, d vector.Decimal) {
	sum, ok := e.sum[g].Add(d)
	e.sum[g] = sum
	e.wide = e.wide || !ok
}

func (e *decimalSums) mergeAll(from extra, of, to []uint32) {
	f := from.(*decimalSums)
	e.wide = e.wide || f.wide
	eachPair(of, to, func(j, i uint32) { e.plus(i, f.sum[j]) })
}

// decimalSums computes sums and averages of numerics of varying scale.
func (c *rcol) decimalSums(r *aggRef, e *decimalSums, numbers []uint32, count func(g uint32) int64) error {
	if e.wide {
		return errNumeric
	}
	for _, g := range numbers {
		if err := c.addDecimalSum(r, e.sum[g], count(g)); err != nil {
			return err
		}
	}
	return nil
}
