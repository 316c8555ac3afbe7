package compress

// FloatKey maps the bits of a float64 to an integer that orders as Postgres
// orders floats: NaN above all and equal to every NaN, -0 equal to +0.
func FloatKey(bits int64) int64 {
	if bits&0x7fffffffffffffff > 0x7ff0000000000000 {
		return floatKeyNaN
	}
	if bits < 0 {
		return -(bits & 0x7fffffffffffffff)
	}
	return bits
}

// floatKeyNaN is the key of every NaN: above that of +Inf.
const floatKeyNaN = 0x7ff0000000000001

// FloatBits returns the bits whose FloatKey is key: +0 for 0, and one NaN for all
// of them.
func FloatBits(key int64) int64 {
	if key == floatKeyNaN {
		return 0x7ff8000000000000
	}
	if key < 0 {
		return -key | -1<<63
	}
	return key
}
