package vector

import "math/big"

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
