package gpucube

import (
	"errors"
	"math"
	"math/bits"

	"pgaccel/papers/cube"
)

// errInexact says that a cube of doubles has sums that depend on the order of additions,
// or could: they are not for the device.
var errInexact = errors.New("gpucube: doubles that do not add up exactly")

// exactBits is how many bits sums of doubles may have to be exact in any order.
const exactBits = 53

// fixed turns numbers into integers times 2^-shift. Fixed point stays as it is.
func fixed[N cube.Number](values []N) (out []int64, shift int, err error) {
	switch v := any(values).(type) {
	case []int64:
		return v, 0, nil
	case []float64:
		out = make([]int64, len(v))
		for _, f := range v {
			if f != math.Trunc(f) {
				shift = max(shift, -lowestBit(f))
			}
		}
		by := math.Ldexp(1, shift)
		if shift >= 1000 {
			return nil, 0, errInexact // smaller than any sum of ours could be exact
		}
		for i, f := range v {
			w := f * by // a power of two: exact
			if math.Abs(w) >= 1<<exactBits {
				return nil, 0, errInexact
			}
			out[i] = int64(w)
		}
	}
	return out, shift, nil
}

// lowestBit returns the power of two of the lowest bit that is set in f, which is neither 0
// nor infinite.
func lowestBit(f float64) int {
	fraction, exponent := math.Frexp(math.Abs(f))
	return exponent - exactBits + bits.TrailingZeros64(uint64(fraction*(1<<exactBits)))
}

// unfixed turns a sum back.
func unfixed[N cube.Number](sum int64, shift int) N {
	var n N
	switch p := any(&n).(type) {
	case *int64:
		*p = sum
	case *float64:
		*p = math.Ldexp(float64(sum), -shift)
	}
	return n
}

// isFloat reports whether N is float64.
func isFloat[N cube.Number]() bool {
	var n N
	_, is := any(n).(float64)
	return is
}

// magnitude returns |v| as an unsigned number.
func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// mulSaturated returns a*b, MaxUint64 where that is too large.
func mulSaturated(a, b uint64) uint64 {
	if hi, lo := bits.Mul64(a, b); hi == 0 {
		return lo
	}
	return math.MaxUint64
}
