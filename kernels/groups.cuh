// Accumulators. Words of tables begin as 0, whatever they are of: minima and maxima are
// kept as unsigned keys whose maximum is wanted, and whose 0 says that nothing came.
#pragma once
#include "lanes.cuh"

// key_of_max and key_of_min order as v does, and as -v does; 0 is math.MinInt64 for a
// maximum and math.MaxInt64 for a minimum, which is what no argument gives.
PGACCEL_INLINE uint64_t key_of_max(int64_t v) { return (uint64_t)v ^ 1ull << 63; }
PGACCEL_INLINE uint64_t key_of_min(int64_t v) { return ~((uint64_t)v ^ 1ull << 63); }

// shared_add64 adds to a sum of 64 bits in two words: 64-bit atomics on shared memory are
// compare-and-swap loops on Hopper, 32-bit ones are not. The carry is what the low word
// returned; mostly the high word need not be touched.
PGACCEL_INLINE void shared_add64(uint32_t *low, uint32_t *high, int64_t v)
{
	const uint32_t add = (uint32_t)v;
	const uint32_t old = atomicAdd(low, add);
	const uint32_t up = (uint32_t)((uint64_t)v >> 32) + ((uint32_t)(old + add) < old ? 1u : 0u);
	if (up != 0)
		atomicAdd(high, up);
}

// shared_add128 adds v, with its sign extended, to a sum of 128 bits in words that lie
// stride apart. Each word counts modulo 2^32 and hands on every wrap exactly once, so that
// the order does not matter.
PGACCEL_INLINE void shared_add128(uint32_t *word, uint32_t stride, int64_t v)
{
	const uint32_t v0 = (uint32_t)v, v1 = (uint32_t)((uint64_t)v >> 32);
	uint32_t old = atomicAdd(word, v0);
	const uint32_t carry = (uint32_t)(old + v0) < old ? 1 : 0;
	const uint32_t add = v1 + carry; // wraps to 0 where v1 is all ones: the carry goes on
	int up = add < carry ? 1 : 0;
	if (add != 0) {
		old = atomicAdd(word + stride, add);
		up = (uint32_t)(old + add) < old ? 1 : 0;
	}
	up += v < 0 ? -1 : 0;
	if (up > 0) {
		if (atomicAdd(word + 2 * stride, 1u) == 0xffffffffu)
			atomicAdd(word + 3 * stride, 1u);
	} else if (up < 0) {
		if (atomicAdd(word + 2 * stride, 0xffffffffu) == 0)
			atomicAdd(word + 3 * stride, 0xffffffffu);
	}
}

// shared_max32 and shared_max keep the larger key; mostly a look is enough.
PGACCEL_INLINE void shared_max32(uint32_t *word, uint32_t key)
{
	if (*(volatile uint32_t *)word < key)
		atomicMax(word, key);
}

PGACCEL_INLINE void shared_max(uint64_t *word, uint64_t key)
{
	if (*(volatile uint64_t *)word < key)
		atomicMax((unsigned long long *)word, (unsigned long long)key);
}

PGACCEL_INLINE void global_add(uint64_t *word, uint64_t v)
{
	atomicAdd((unsigned long long *)word, (unsigned long long)v);
}

PGACCEL_INLINE void global_max(uint64_t *word, uint64_t key)
{
	if (__ldcg(word) < key)
		atomicMax((unsigned long long *)word, (unsigned long long)key);
}

// global_add128 adds 128 bits to a sum in two words.
PGACCEL_INLINE void global_add128(uint64_t *low, uint64_t *high, uint64_t v0, uint64_t v1)
{
	const uint64_t old = atomicAdd((unsigned long long *)low, (unsigned long long)v0);
	const uint64_t up = v1 + (old + v0 < old ? 1 : 0);
	if (up != 0)
		global_add(high, up);
}

// group_slot finds or makes the slot of a group's number, with open addressing. Slots of
// all ones are free. It returns slots where it found none within a bound.
PGACCEL_INLINE uint64_t group_slot(uint64_t *keys, uint64_t slots, uint64_t number, uint64_t hash)
{
	uint64_t at = hash & (slots - 1);
	for (uint64_t tries = slots < 8192 ? slots : 8192; tries > 0; tries--) {
		uint64_t key = __ldcg(keys + at);
		if (key == ~0ull)
			key = atomicCAS((unsigned long long *)keys + at, ~0ull, (unsigned long long)number);
		if (key == ~0ull || key == number)
			return at;
		at = (at + 1) & (slots - 1);
	}
	return slots;
}

// build_bits sets the bits of keys, of lanes that are within, and reports whether a lane has
// met one that was set: all lanes come. Rows of a dimension mostly have consecutive keys, so
// that a warp's are those of one word or two.
PGACCEL_INLINE bool build_bits(uint32_t *bits, uint32_t to, bool within, uint32_t lane)
{
	const uint32_t some = __ballot_sync(PGACCEL_WARP, within);
	if (some == 0)
		return false;
	const uint32_t leader = (uint32_t)__ffs((int)some) - 1;
	const uint32_t first = __shfl_sync(PGACCEL_WARP, to, (int)leader);
	if (!__all_sync(PGACCEL_WARP, !within || to - first == lane - leader))
		return within && (atomicOr(bits + (to >> 5), 1u << (to & 31)) >> (to & 31) & 1) != 0;
	const uint64_t words = (uint64_t)(some >> leader) << (first & 31);
	const uint32_t word = lane == 0 ? (uint32_t)words : (uint32_t)(words >> 32);
	return lane < 2 && word != 0 && (atomicOr(bits + (first >> 5) + lane, word) & word) != 0;
}

// The reductions over a warp leave the result in lane 0.
PGACCEL_INLINE uint64_t warp_sum(uint64_t v)
{
	for (int d = 16; d > 0; d >>= 1)
		v += __shfl_down_sync(PGACCEL_WARP, (unsigned long long)v, d);
	return v;
}

PGACCEL_INLINE uint64_t warp_max(uint64_t v)
{
	for (int d = 16; d > 0; d >>= 1) {
		const uint64_t w = __shfl_down_sync(PGACCEL_WARP, (unsigned long long)v, d);
		v = w > v ? w : v;
	}
	return v;
}

PGACCEL_INLINE void warp_sum128(uint64_t &low, uint64_t &high)
{
	for (int d = 16; d > 0; d >>= 1) {
		const uint64_t l = __shfl_down_sync(PGACCEL_WARP, (unsigned long long)low, d);
		const uint64_t h = __shfl_down_sync(PGACCEL_WARP, (unsigned long long)high, d);
		low += l;
		high += h + (low < l ? 1 : 0);
	}
}

// first_of is the value of the first of some lanes, one at least. All lanes come.
PGACCEL_INLINE uint32_t first_of(uint32_t v, uint32_t some)
{
	return __shfl_sync(PGACCEL_WARP, v, __ffs((int)some) - 1);
}

PGACCEL_INLINE uint64_t first_of(uint64_t v, uint32_t some)
{
	return __shfl_sync(PGACCEL_WARP, (unsigned long long)v, __ffs((int)some) - 1);
}

// one_group reports whether some lanes, those that put, are of one group, and enough of them
// for the warp to add up first. All lanes come.
template <typename T>
PGACCEL_INLINE bool one_group(T group, uint32_t some, bool put)
{
	if (__popc(some) < 8)
		return false;
	const T first = first_of(group, some);
	return __all_sync(PGACCEL_WARP, !put || group == first);
}

// The reductions over n neighbouring lanes, a power of two of at most 32, leave the result in
// all of them. All lanes come.
PGACCEL_INLINE uint64_t replica_sum(uint64_t v, uint32_t n)
{
	for (uint32_t d = n >> 1; d > 0; d >>= 1)
		v += __shfl_xor_sync(PGACCEL_WARP, (unsigned long long)v, (int)d);
	return v;
}

PGACCEL_INLINE uint64_t replica_max(uint64_t v, uint32_t n)
{
	for (uint32_t d = n >> 1; d > 0; d >>= 1) {
		const uint64_t w = __shfl_xor_sync(PGACCEL_WARP, (unsigned long long)v, (int)d);
		v = w > v ? w : v;
	}
	return v;
}

PGACCEL_INLINE void replica_sum128(uint64_t &low, uint64_t &high, uint32_t n)
{
	for (uint32_t d = n >> 1; d > 0; d >>= 1) {
		const uint64_t l = __shfl_xor_sync(PGACCEL_WARP, (unsigned long long)low, (int)d);
		const uint64_t h = __shfl_xor_sync(PGACCEL_WARP, (unsigned long long)high, (int)d);
		low += l;
		high += h + (low < l ? 1 : 0);
	}
}

// Result begins with this; program.Parse reads it.
struct ResultHead {
	uint64_t fault, full, count;
	uint64_t bound; // 1 + the code of the last group that is wanted; 0: all are
	uint64_t before; // groups that come before those of that code
	uint64_t ties;   // 1 + the code of the last digit that is wanted of these; 0: all are
	uint64_t pad[26];
};
static_assert(sizeof(ResultHead) == 256, "as in gpu/program/places.go");

// top_code is topCode of gpu/program/top.go.
#define TOP_MANTISSA 10
#define TOP_CODES (2u << 7 << TOP_MANTISSA)

PGACCEL_INLINE uint32_t top_code(int64_t high, uint64_t low)
{
	const uint64_t sign = (uint64_t)(high >> 63), h = (uint64_t)high ^ sign, l = low ^ sign;
	uint32_t code = 0;
	if ((h | l) != 0) {
		const uint32_t n = h != 0 ? 128 - (uint32_t)__clzll((long long)h) : 64 - (uint32_t)__clzll((long long)l);
		uint64_t m;
		if (n <= TOP_MANTISSA + 1)
			m = l << (TOP_MANTISSA + 1 - n);
		else if (n - TOP_MANTISSA - 1 >= 64)
			m = h >> (n - TOP_MANTISSA - 1 - 64);
		else
			m = l >> (n - TOP_MANTISSA - 1) | h << (64 - (n - TOP_MANTISSA - 1));
		code = n << TOP_MANTISSA | ((uint32_t)m & ((1u << TOP_MANTISSA) - 1));
	}
	return sign != 0 ? TOP_CODES / 2 - 1 - code : TOP_CODES / 2 + code;
}

PGACCEL_INLINE uint32_t top_code(int64_t v) { return top_code(v >> 63, (uint64_t)v); }

// top_exact is topExact of gpu/program/top.go.
PGACCEL_INLINE bool top_exact(uint32_t code)
{
	const uint32_t turned = TOP_CODES - 1 - code;
	return (code > turned ? code : turned) - TOP_CODES / 2 < (TOP_MANTISSA + 2u) << TOP_MANTISSA;
}

// within is Range.has of gpu/program/top.go.
PGACCEL_INLINE bool within(int64_t lo, int64_t hi, int64_t high, uint64_t low)
{
	const int64_t v = (int64_t)low;
	if (high == v >> 63)
		return lo <= v && v <= hi;
	return high < 0 ? lo == (int64_t)(1ull << 63) : hi == (int64_t)(~0ull >> 1);
}

PGACCEL_INLINE bool within(int64_t lo, int64_t hi, int64_t v) { return lo <= v && v <= hi; }

// top_bound finds the code of the top-th group, of how many each code has, and how many have lesser ones, and leaves both as
// they are where there are fewer. It is called by all threads of a block of TOP_THREADS.
#define TOP_THREADS 256u

PGACCEL_INLINE void top_bound(const uint64_t *codes, uint64_t top, uint64_t *bound, uint64_t *less)
{
	const uint32_t part = TOP_CODES / TOP_THREADS;
	__shared__ uint64_t parts[TOP_THREADS], counts[TOP_CODES / TOP_THREADS];
	__shared__ uint32_t at;
	__shared__ uint64_t before;
	uint64_t sum = 0;
#pragma unroll 8
	for (uint32_t i = 0; i < part; i++)
		sum += codes[threadIdx.x * part + i];
	parts[threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		uint32_t k = 0;
		uint64_t n = 0;
		for (; k < TOP_THREADS && n + parts[k] < top; k++)
			n += parts[k];
		at = k;
		before = n;
	}
	__syncthreads();
	if (at == TOP_THREADS)
		return;
	for (uint32_t i = threadIdx.x; i < part; i += TOP_THREADS)
		counts[i] = codes[at * part + i];
	__syncthreads();
	if (threadIdx.x == 0) {
		uint32_t i = 0;
		uint64_t n = before;
		for (; n + counts[i] < top; i++)
			n += counts[i];
		*less = n;
		*bound = (uint64_t)(at * part + i) + 1;
	}
}

// stage copies a bitmap to shared memory, 16 bytes being the unit that it is padded to.
PGACCEL_INLINE void stage(uint64_t *to, const uint64_t *from, uint32_t words)
{
#pragma unroll 8
	for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
		to[i] = __ldg(from + i);
}
