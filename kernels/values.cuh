// What expressions compute: checked 64-bit arithmetic, keys of floats, sets, hash lookups.
#pragma once
#include "lanes.cuh"

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

// hash_of is program.HashOf.
PGACCEL_INLINE uint64_t hash_of(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdull;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ull;
	key ^= key >> 33;
	return key;
}

// hash_find returns the entry of a key, all ones where there is none. Some slot is free.
PGACCEL_INLINE uint32_t hash_find(const int64_t *keys, const uint32_t *entries, uint64_t mask, int64_t key)
{
	for (uint64_t at = hash_of((uint64_t)key) & mask;; at = (at + 1) & mask) {
		const uint32_t entry = __ldg(entries + at);
		if (entry == 0xffffffffu || __ldg(keys + at) == key)
			return entry;
	}
}
