// What expressions compute: checked 64-bit arithmetic, keys of floats, sets.
#pragma once
#include "lanes.cuh"
#include "hash.cuh"

// The checked operations return the result modulo 2^64 and set bad where 64 bits do not
// hold it.
PGACCEL_INLINE int64_t checked_add(int64_t a, int64_t b, bool &bad)
{
	const uint64_t r = (uint64_t)a + (uint64_t)b;
	bad = (int64_t)(((uint64_t)a ^ r) & ((uint64_t)b ^ r)) < 0;
	return (int64_t)r;
}

PGACCEL_INLINE int64_t checked_sub(int64_t a, int64_t b, bool &bad)
{
	const uint64_t r = (uint64_t)a - (uint64_t)b;
	bad = (int64_t)(((uint64_t)a ^ (uint64_t)b) & ((uint64_t)a ^ r)) < 0;
	return (int64_t)r;
}

PGACCEL_INLINE int64_t checked_mul(int64_t a, int64_t b, bool &bad)
{
	const int64_t r = (int64_t)((uint64_t)a * (uint64_t)b);
	bad = __mul64hi(a, b) != r >> 63;
	return r;
}

// checked_div truncates; a zero divisor and -2^63 / -1 are bad.
PGACCEL_INLINE int64_t checked_div(int64_t a, int64_t b, bool &bad)
{
	bad = b == 0 || (b == -1 && (uint64_t)a == 1ull << 63);
	return a / (bad ? 1 : b);
}

// checked_mod has the dividend's sign; a zero divisor is bad.
PGACCEL_INLINE int64_t checked_mod(int64_t a, int64_t b, bool &bad)
{
	bad = b == 0;
	return b == 0 || b == -1 ? 0 : a % b;
}

// Division of 32-bit values, which is much cheaper.
PGACCEL_INLINE int32_t checked_div32(int32_t a, int32_t b, bool &bad)
{
	bad = b == 0 || (b == -1 && (uint32_t)a == 1u << 31);
	return a / (bad ? 1 : b);
}

PGACCEL_INLINE int32_t checked_mod32(int32_t a, int32_t b, bool &bad)
{
	bad = b == 0;
	return b == 0 || b == -1 ? 0 : a % b;
}

// float_key is vector.FloatKey: NaN above all and equal to every NaN, -0 equal to +0.
PGACCEL_INLINE int64_t float_key(int64_t bits)
{
	const int64_t magnitude = bits & 0x7fffffffffffffffll;
	if (magnitude > 0x7ff0000000000000ll)
		return 0x7ff0000000000001ll;
	return bits < 0 ? -magnitude : bits;
}

// float_alone reports whether no double of other bits has the key that this one has: -0 and NaNs are not.
PGACCEL_INLINE bool float_alone(int64_t bits)
{
	return (uint64_t)bits != 1ull << 63 && ((bits & 0x7fffffffffffffffll) <= 0x7ff0000000000000ll || bits == 0x7ff8000000000000ll);
}

// fixed_shift is how far left the mantissa of a double goes in a fixed-point number whose bit 0 is the
// lowest one of the mantissas of biased exponent base; bad where that is no number of 116 bits. Zero
// is good, -0 is not.
PGACCEL_INLINE uint32_t fixed_shift(int64_t bits, int64_t base, bool &bad)
{
	const int64_t exponent = bits >> 52 & 0x7ff, shift = exponent - base;
	bad = bits != 0 && (exponent == 0 || exponent == 0x7ff || shift < 0 || shift > 63);
	return (uint32_t)shift & 63;
}

PGACCEL_INLINE uint64_t mantissa(int64_t bits)
{
	return bits == 0 ? 0 : ((uint64_t)bits & 0xfffffffffffffull) | 1ull << 52;
}

// fixed_high and fixed_low are the bits of that number from 63 on and those below, with its sign.
PGACCEL_INLINE int64_t fixed_high(int64_t bits, int64_t base, bool &bad)
{
	const int64_t v = (int64_t)(mantissa(bits) >> (63 - fixed_shift(bits, base, bad)));
	return bits < 0 ? -v : v;
}

PGACCEL_INLINE int64_t fixed_low(int64_t bits, int64_t base, bool &bad)
{
	const int64_t v = (int64_t)(mantissa(bits) << fixed_shift(bits, base, bad) & 0x7fffffffffffffffull);
	return bits < 0 ? -v : v;
}

// float_of is the double nearest to an integer, as bits.
PGACCEL_INLINE int64_t float_of(int64_t v)
{
	return __double_as_longlong(__ll2double_rn(v));
}

// finite_bits returns the bits of a double that an operation gave; bad where it is an infinity or NaN.
PGACCEL_INLINE int64_t finite_bits(double v, bool &bad)
{
	const int64_t bits = __double_as_longlong(v);
	bad = (bits >> 52 & 0x7ff) == 0x7ff;
	return bits;
}

// Arithmetic of doubles, by their bits, as IEEE 754 has it: with intrinsics, which no compiler contracts into a
// multiply-add. bad where PostgreSQL has an error (float8_pl and the others in float.h) and where an infinity or
// NaN comes: whose bits depend on the machine. A GPU for computing has half as many units for doubles as for floats:
// a scan that does one operation a row still waits for memory.
PGACCEL_INLINE int64_t float_add(int64_t a, int64_t b, bool &bad)
{
	return finite_bits(__dadd_rn(__longlong_as_double(a), __longlong_as_double(b)), bad);
}

PGACCEL_INLINE int64_t float_sub(int64_t a, int64_t b, bool &bad)
{
	return finite_bits(__dadd_rn(__longlong_as_double(a), -__longlong_as_double(b)), bad);
}

PGACCEL_INLINE int64_t float_mul(int64_t a, int64_t b, bool &bad)
{
	const double x = __longlong_as_double(a), y = __longlong_as_double(b);
	const int64_t v = finite_bits(__dmul_rn(x, y), bad);
	bad = bad || (v << 1 == 0 && x != 0 && y != 0);
	return v;
}

PGACCEL_INLINE int64_t float_div(int64_t a, int64_t b, bool &bad)
{
	const double x = __longlong_as_double(a);
	const int64_t v = finite_bits(__ddiv_rn(x, __longlong_as_double(b)), bad);
	bad = bad || (v << 1 == 0 && x != 0);
	return v;
}

// set_below is how many members of an ascending set are below v.
PGACCEL_INLINE uint32_t set_below(const int64_t *set, uint32_t n, int64_t v)
{
	uint32_t from = 0;
	for (uint32_t left = n; left > 0;) {
		const uint32_t half = left / 2;
		if (__ldg(set + from + half) < v) {
			from += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	return from;
}

PGACCEL_INLINE bool set_has(const int64_t *set, uint32_t n, int64_t v)
{
	const uint32_t at = set_below(set, n, v);
	return at < n && __ldg(set + at) == v;
}

// set_step is the position of the last member that is at most v, 0 where none is.
PGACCEL_INLINE int32_t set_step(const int64_t *set, uint32_t n, int64_t v)
{
	const uint32_t at = set_below(set, n, v);
	return at < n && __ldg(set + at) == v ? (int32_t)at : at > 0 ? (int32_t)at - 1 : 0;
}
