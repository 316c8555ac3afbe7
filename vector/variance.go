package vector

import (
	"math"
	"math/big"
	"math/bits"
)

// Variance returns the variance of n exact values as Postgres' numeric_stddev_internal
// (src/backend/utils/adt/numeric.c) computes it, with root its square root: the standard
// deviation. sumX is the sum of the values and sumX2 that of their squares, as unscaled
// integers: of scale `scale` and 2 * scale (0 for smallint, integer and bigint). Neither
// is changed. sample divides by n-1 instead of n.
//
// null is set where SQL's answer is null: no value, or only one for a sample. ok is false
// where the result needs more than 127 bits. A variance of zero has no decimals, any
// other those of select_div_scale.
func Variance(n int64, sumX, sumX2 *big.Int, scale int16, sample, root bool) (d Decimal, null, ok bool) {
	if n <= 0 || sample && n == 1 {
		return d, true, true
	}
	count := big.NewInt(n)
	// n * sum(x^2) - sum(x)^2, of scale 2 * scale
	num := new(big.Int).Mul(count, sumX2)
	num.Sub(num, new(big.Int).Mul(sumX, sumX))
	if num.Sign() <= 0 {
		return d, false, true
	}
	den := new(big.Int).Set(count)
	if sample {
		den.Sub(den, big.NewInt(1))
	}
	den.Mul(den, count)
	numScale := 2 * int(scale)
	rscale := quotientScale(num, numScale, den, 0)
	v := roundedQuotient(num, numScale, den, 0, rscale)
	if root {
		v = roundedRoot(v, rscale)
	}
	u, ok := Int128FromBig(v)
	return Decimal{Unscaled: u, Scale: int16(rscale)}, false, ok
}

// roundedRoot returns the square root of v * 10^-scale, v >= 0, as an unscaled integer
// of the same scale, rounded half away from zero as Postgres' sqrt_var rounds it.
func roundedRoot(v *big.Int, scale int) *big.Int {
	// floor(y + 1/2) = floor((floor(2y) + 1) / 2) for y = sqrt(v * 10^scale), the root in
	// units of 10^-scale.
	r := new(big.Int).Mul(v, BigPow10(scale))
	r.Lsh(r, 2).Sqrt(r)
	r.Add(r, big.NewInt(1))
	return r.Rsh(r, 1)
}

// VarianceWords is Variance where what it needs on the way has 128 bits; known is false where it has not.
func VarianceWords(n, sumX int64, sumX2 uint64, scale int16, sample, root bool) (d Decimal, null, known bool) {
	if n <= 0 || sample && n == 1 {
		return d, true, true
	}
	if n > math.MaxInt32 {
		return d, false, false
	}
	square := Int128Of(sumX).magnitude()
	var num word128
	num.hi, num.lo = bits.Mul64(uint64(n), sumX2)
	square.hi, square.lo = bits.Mul64(square.lo, square.lo)
	var borrow uint64
	num.lo, borrow = bits.Sub64(num.lo, square.lo, 0)
	num.hi, _ = bits.Sub64(num.hi, square.hi, borrow) // not negative: Cauchy and Schwarz
	if num == (word128{}) {
		return d, false, true
	}
	u, ok := num.signed(false)
	if !ok {
		return d, false, false
	}
	of := n
	if sample {
		of--
	}
	v, known := divWords(Decimal{Unscaled: u, Scale: 2 * scale}, Decimal{Unscaled: Int128Of(of * n)})
	if !known || !root {
		return v, false, known
	}
	// As roundedRoot.
	w, ok := v.Unscaled.magnitude().shifted(int(v.Scale))
	if !ok || w.hi >= 1<<60 {
		return d, false, false
	}
	w.hi, w.lo = w.hi<<2|w.lo>>62, w.lo<<2
	return Decimal{Unscaled: Int128Of(int64((w.root() + 1) >> 1)), Scale: v.Scale}, false, true
}

// root returns the square root of w < 2^126, rounded down.
func (w word128) root() uint64 {
	r := uint64(math.Sqrt(float64(w.hi)*(1<<64) + float64(w.lo)))
	if r == 0 {
		return 0
	}
	q, _ := bits.Div64(w.hi, w.lo, r) // Newton's step: what a double has lost
	r = r/2 + q/2 + r&q&1
	above := func(r uint64) bool {
		hi, lo := bits.Mul64(r, r)
		return hi > w.hi || hi == w.hi && lo > w.lo
	}
	for above(r) {
		r--
	}
	for !above(r + 1) {
		r++
	}
	return r
}
