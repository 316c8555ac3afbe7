package vector

import "math"

const (
	// NaNBits are the bits of the NaN that Postgres reads from text: without sign or
	// payload, where Go's math.NaN has one. Others come from arithmetic (infinity -
	// infinity) and in binary.
	NaNBits = 0x7ff8 << 48
	// NaNKey is the FloatKey of every NaN: the next after infinity's.
	NaNKey = 0x7ff<<52 + 1
)

// FloatKey maps the bits of a float64 to an integer that orders as Postgres orders
// floats: NaN above all and equal to every NaN, -0 equal to +0.
func FloatKey(bits int64) int64 {
	switch {
	case bits&math.MaxInt64 > 0x7ff<<52: // NaN of either sign
		return NaNKey
	case bits >= 0:
		return bits
	}
	return -(bits & math.MaxInt64)
}

// FloatOfKey returns the bits whose FloatKey is key: +0 for 0, and NaNBits for NaNKey.
func FloatOfKey(key int64) int64 {
	switch {
	case key == NaNKey:
		return NaNBits
	case key >= 0:
		return key
	}
	return -key | math.MinInt64
}
