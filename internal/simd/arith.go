package simd

import "math"

// Add writes a[i]+b[i] to dst, modulo 2^64. a and b are as long as dst, or longer.
func Add(dst, a, b []int64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	if active == AVX512 && n > 0 {
		addAVX512(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// Sub writes a[i]-b[i] to dst, modulo 2^64. a and b are as long as dst, or longer.
func Sub(dst, a, b []int64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	if active == AVX512 && n > 0 {
		subAVX512(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

// Mul writes a[i]*b[i] to dst, modulo 2^64. a and b are as long as dst, or longer.
func Mul(dst, a, b []int64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	if active == AVX512 && n > 0 {
		mulAVX512(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// Sum returns the sum of a, modulo 2^64.
func Sum(a []int64) (sum int64) {
	if active == AVX512 && len(a) > 0 {
		return sumAVX512(&a[0], len(a))
	}
	for _, x := range a {
		sum += x
	}
	return sum
}

// Bounds returns the smallest and the largest of a; for none the largest and the
// smallest integer.
func Bounds(a []int64) (lo, hi int64) {
	if active == AVX512 && len(a) > 0 {
		return boundsAVX512(&a[0], len(a))
	}
	lo, hi = math.MaxInt64, math.MinInt64
	for _, x := range a {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Eq writes 1 to dst where a[i] equals b[i], else 0. a and b are as long as dst, or
// longer.
func Eq(dst, a, b []int64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	if active == AVX512 && n > 0 {
		eqAVX512(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = bit(a[i] == b[i])
	}
}

// Ne is Eq for values that differ.
func Ne(dst, a, b []int64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	if active == AVX512 && n > 0 {
		neAVX512(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = bit(a[i] != b[i])
	}
}

// Lt is Eq for a[i] less than b[i].
func Lt(dst, a, b []int64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	if active == AVX512 && n > 0 {
		ltAVX512(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = bit(a[i] < b[i])
	}
}

// Le is Eq for a[i] not above b[i].
func Le(dst, a, b []int64) {
	n := len(dst)
	a, b = a[:n], b[:n]
	if active == AVX512 && n > 0 {
		leAVX512(&dst[0], &a[0], &b[0], n)
		return
	}
	for i := range dst {
		dst[i] = bit(a[i] <= b[i])
	}
}

// Inside writes in (1 or 0) to dst where a[i] is within [lo, lo+span], modulo 2^64, and
// 1-in elsewhere. a is as long as dst, or longer.
func Inside(dst, a []int64, lo int64, span uint64, in int64) {
	n := len(dst)
	a = a[:n]
	if active == AVX512 && n > 0 {
		insideAVX512(&dst[0], &a[0], n, lo, span, in)
		return
	}
	for i, x := range a {
		if dst[i] = 1 - in; uint64(x)-uint64(lo) <= span {
			dst[i] = in
		}
	}
}
