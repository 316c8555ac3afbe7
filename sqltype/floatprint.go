package sqltype

import (
	"math"
	"math/bits"
	"strconv"
)

// AppendFloat appends the shortest decimal that reads back as the float64 of the given
// bits, a real (width 32) or a double (64), in the form of Postgres' float8out and float4out with
// extra_float_digits above 0 (src/common/d2s.c, f2s.c): plain digits for exponents
// from -4 to 14 (5 for float4), otherwise d.ddde+xx.
func AppendFloat(dst []byte, bits int64, width int) []byte {
	v := math.Float64frombits(uint64(bits))
	switch {
	case v != v:
		return append(dst, "NaN"...)
	case v > math.MaxFloat64:
		return append(dst, "Infinity"...)
	case v < -math.MaxFloat64:
		return append(dst, "-Infinity"...)
	case v == 0:
		if math.Signbit(v) {
			dst = append(dst, '-')
		}
		return append(dst, '0')
	}
	var buf [32]byte
	e := strconv.AppendFloat(buf[:0], math.Abs(v), 'e', -1, width) // d[.ddd]e±xx
	digits, exp := splitExponent(e)
	// Postgres takes no decimal that lies exactly between two floats, Go does where
	// the mantissa is even: then the shortest longer one that reads back follows.
	if betweenFloats(digits, exp, math.Abs(v), width) {
		for p := len(digits); p < 17; p++ {
			e = strconv.AppendFloat(buf[:0], math.Abs(v), 'e', p, width)
			back, _ := strconv.ParseFloat(string(e), width)
			digits, exp = splitExponent(e)
			if back == math.Abs(v) && !betweenFloats(digits, exp, back, width) {
				break
			}
		}
	}
	// Two decimals of that length can be equally near, only where v has exactly one
	// decimal place more (integers cannot, see betweenFloats): Postgres takes the
	// even one.
	if f := fractionBits(math.Abs(v)); f > 1 && f == len(digits)-exp && digits[len(digits)-1]&1 != 0 {
		digits, exp = evenNeighbour(buf[:0], digits, exp, math.Abs(v), width)
	}
	if v < 0 {
		dst = append(dst, '-')
	}
	limit := 15
	if width == 32 {
		limit = 6
	}
	if exp < -4 || exp >= limit {
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		dst = append(dst, 'e')
		if exp < 0 {
			dst = append(dst, '-')
			exp = -exp
		} else {
			dst = append(dst, '+')
		}
		if exp >= 100 {
			dst = append(dst, byte('0'+exp/100))
			exp %= 100
		}
		return appendTwoDigits(dst, exp)
	}
	if exp < 0 {
		dst = append(dst, '0', '.')
		for i := -1; i > exp; i-- {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	for i := 0; i <= exp; i++ {
		if i < len(digits) {
			dst = append(dst, digits[i])
		} else {
			dst = append(dst, '0')
		}
	}
	if len(digits) > exp+1 {
		dst = append(append(dst, '.'), digits[exp+1:]...)
	}
	return dst
}

// splitExponent takes d.ddde±xx apart, in place, and drops trailing zeros.
func splitExponent(e []byte) (digits []byte, exp int) {
	i := len(e) - 1
	for e[i] != 'e' {
		i--
	}
	for _, c := range e[i+2:] {
		exp = exp*10 + int(c-'0')
	}
	if e[i+1] == '-' {
		exp = -exp
	}
	digits = e[:i]
	if len(digits) > 1 {
		digits[1] = digits[0]
		digits = digits[1:]
	}
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, exp
}

// fractionBits returns the number of binary places of v > 0, which is also the
// number of its decimal places; 0 or less for integers.
func fractionBits(v float64) int {
	b := math.Float64bits(v)
	m, e := b&(1<<52-1), max(int(b>>52), 1)-1075
	if b>>52 != 0 {
		m |= 1 << 52
	}
	return -e - bits.TrailingZeros64(m)
}

// evenNeighbour returns the other of the two decimals of len(odd) digits that are
// equally near to v, or odd where that one does not read back as v. The result may
// use buf, in which odd lies.
func evenNeighbour(buf, odd []byte, exp int, v float64, width int) ([]byte, int) {
	var keep, text [32]byte
	n := copy(keep[:], odd)
	oddExp := exp
	// One digit more is exact; its last digit is 5.
	digits, exp := splitExponent(strconv.AppendFloat(text[:0], v, 'e', n, 64))
	digits = digits[:n]
	if digits[n-1]&1 != 0 { // round up
		i := n - 1
		for digits[i] == '9' && i > 0 {
			digits[i] = '0'
			i--
		}
		if digits[i] == '9' {
			digits[0] = '1'
			exp++
		} else {
			digits[i]++
		}
	}
	for n > 1 && digits[n-1] == '0' {
		n--
	}
	digits = append(buf[:0], digits[:n]...)
	read := strconv.AppendInt(append(append(text[:0], digits...), 'e'), int64(exp-n+1), 10)
	if back, _ := strconv.ParseFloat(string(read), width); back == v {
		return digits, exp
	}
	return append(buf[:0], keep[:len(odd)]...), oddExp
}

// betweenFloats reports whether the decimal is exactly half way between v and a
// neighbour. Only integers can be: a half-way point has one bit more than a
// mantissa, and so too many digits once it has a fraction; and a power of five
// above 5^23 exceeds those bits.
func betweenFloats(digits []byte, exp int, v float64, width int) bool {
	q := exp - len(digits) + 1
	if q < 0 || q > 23 {
		return false
	}
	var d uint64
	for _, c := range digits {
		d = d*10 + uint64(c-'0')
	}
	five := uint64(1)
	for range q {
		five *= 5
	}
	// decimal = (hi,lo) * 2^q, made odd
	hi, lo := bits.Mul64(d, five)
	twos := q
	if lo == 0 {
		lo, hi, twos = hi, 0, twos+64
	}
	if z := bits.TrailingZeros64(lo); z > 0 {
		lo, hi, twos = lo>>z|hi<<(64-z), hi>>z, twos+z
	}
	if hi != 0 {
		return false
	}
	// v = m * 2^e with the full width of the mantissa
	b := math.Float64bits(v)
	m, e, lost := b&(1<<52-1)|1<<52, int(b>>52)-1075, 0
	if width == 32 {
		lost = 29
	}
	m, e = m>>lost, e+lost
	is := func(n uint64, e int) bool { // n odd
		return lo == n && twos == e
	}
	if m == 1<<(52-lost) { // a power of two: the float below is nearer
		return is(2*m+1, e-1) || is(4*m-1, e-2)
	}
	return is(2*m+1, e-1) || is(2*m-1, e-1)
}
