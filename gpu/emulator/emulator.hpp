// CUDA C++ as kernels/pgaccel.cuh describes it, for a C++20 compiler: what a kernel
// includes in place of CUDA's own words. A thread of a block is a fiber, and calls that wait
// for other threads go to the emulator's runtime (runtime.c).
#pragma once

#include "abi.h"

// The types are NVRTC's: uint64_t is unsigned long long, and nothing of the standard
// library is there, so that a source that compiles here does so there.
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef decltype(sizeof(0)) size_t;
typedef unsigned long long uintptr_t;

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __grid_constant__

namespace pgemu {

// Shared memory is thread_local: an OS thread runs one block at a time. The runtime fills
// all of it with a pattern before each block, then sets current at every switch.
inline thread_local pgemu_thread *current;
inline const pgemu_runtime *runtime;
inline int kernels; // of the module

// A loop that waits for another thread has one of these calls in it; once in a while it
// lets the others run.
inline void spin() {
	if ((++current->spins & 255) == 0) runtime->yield();
}

template <typename T> inline unsigned long long bits(T v) {
	static_assert(sizeof(T) <= 8);
	unsigned long long b = 0;
	__builtin_memcpy(&b, &v, sizeof v);
	return b;
}

template <typename T> inline T value(unsigned long long b) {
	T v;
	__builtin_memcpy(&v, &b, sizeof v);
	return v;
}

template <typename T> struct is_number {
	static constexpr bool yes = false;
};
#define PGEMU_NUMBER(T)                    \
	template <> struct is_number<T> {      \
		static constexpr bool yes = true; \
	};
PGEMU_NUMBER(int)
PGEMU_NUMBER(unsigned)
PGEMU_NUMBER(long)
PGEMU_NUMBER(unsigned long)
PGEMU_NUMBER(long long)
PGEMU_NUMBER(unsigned long long)
PGEMU_NUMBER(float)
PGEMU_NUMBER(double)
#undef PGEMU_NUMBER

} // namespace pgemu

// Vectors, with the alignment that CUDA demands of their loads and stores.
struct uint3 {
	unsigned x, y, z;
};
struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(8) int2 {
	int x, y;
};
struct alignas(8) uint2 {
	unsigned x, y;
};
struct alignas(16) int4 {
	int x, y, z, w;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
struct alignas(16) longlong2 {
	long long x, y;
};
struct alignas(16) ulonglong2 {
	unsigned long long x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

#define threadIdx (::pgemu::current->thread)
#define blockIdx (::pgemu::current->block)
#define blockDim (::pgemu::current->block_dim)
#define gridDim (::pgemu::current->grid_dim)
constexpr int warpSize = 32;

// Barriers of the block.
inline void __syncthreads() { pgemu::runtime->barrier(PGEMU_SYNC, 0); }
inline int __syncthreads_count(int p) { return (int)pgemu::runtime->barrier(PGEMU_SYNC_COUNT, p != 0); }
inline int __syncthreads_or(int p) { return (int)pgemu::runtime->barrier(PGEMU_SYNC_OR, p != 0); }
inline int __syncthreads_and(int p) { return (int)pgemu::runtime->barrier(PGEMU_SYNC_AND, p != 0); }

// Collectives of a warp.
inline void __syncwarp(unsigned mask = 0xffffffffu) { pgemu::runtime->collective(PGEMU_WARP_SYNC, mask, 0, 0, 32); }
template <typename T>
	requires(pgemu::is_number<T>::yes)
inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
	return pgemu::value<T>(pgemu::runtime->collective(PGEMU_SHFL, mask, pgemu::bits(v), (unsigned)lane, (unsigned)width));
}
template <typename T>
	requires(pgemu::is_number<T>::yes)
inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
	return pgemu::value<T>(pgemu::runtime->collective(PGEMU_SHFL_UP, mask, pgemu::bits(v), delta, (unsigned)width));
}
template <typename T>
	requires(pgemu::is_number<T>::yes)
inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
	return pgemu::value<T>(pgemu::runtime->collective(PGEMU_SHFL_DOWN, mask, pgemu::bits(v), delta, (unsigned)width));
}
template <typename T>
	requires(pgemu::is_number<T>::yes)
inline T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32) {
	return pgemu::value<T>(pgemu::runtime->collective(PGEMU_SHFL_XOR, mask, pgemu::bits(v), (unsigned)lanes, (unsigned)width));
}
inline unsigned __ballot_sync(unsigned mask, int p) { return (unsigned)pgemu::runtime->collective(PGEMU_BALLOT, mask, p != 0, 0, 32); }
inline int __any_sync(unsigned mask, int p) { return (int)pgemu::runtime->collective(PGEMU_ANY, mask, p != 0, 0, 32); }
inline int __all_sync(unsigned mask, int p) { return (int)pgemu::runtime->collective(PGEMU_ALL, mask, p != 0, 0, 32); }
template <typename T>
	requires(pgemu::is_number<T>::yes)
inline unsigned __match_any_sync(unsigned mask, T v) {
	return (unsigned)pgemu::runtime->collective(PGEMU_MATCH_ANY, mask, pgemu::bits(v), 0, 32);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned v) { return (unsigned)pgemu::runtime->collective(PGEMU_REDUCE_ADD, mask, v, 0, 32); }
inline int __reduce_add_sync(unsigned mask, int v) { return (int)__reduce_add_sync(mask, (unsigned)v); }
inline unsigned __reduce_min_sync(unsigned mask, unsigned v) { return (unsigned)pgemu::runtime->collective(PGEMU_REDUCE_MIN_U32, mask, v, 0, 32); }
inline int __reduce_min_sync(unsigned mask, int v) { return (int)pgemu::runtime->collective(PGEMU_REDUCE_MIN_I32, mask, (unsigned)v, 0, 32); }
inline unsigned __reduce_max_sync(unsigned mask, unsigned v) { return (unsigned)pgemu::runtime->collective(PGEMU_REDUCE_MAX_U32, mask, v, 0, 32); }
inline int __reduce_max_sync(unsigned mask, int v) { return (int)pgemu::runtime->collective(PGEMU_REDUCE_MAX_I32, mask, (unsigned)v, 0, 32); }
inline unsigned __reduce_and_sync(unsigned mask, unsigned v) { return (unsigned)pgemu::runtime->collective(PGEMU_REDUCE_AND, mask, v, 0, 32); }
inline unsigned __reduce_or_sync(unsigned mask, unsigned v) { return (unsigned)pgemu::runtime->collective(PGEMU_REDUCE_OR, mask, v, 0, 32); }
inline unsigned __reduce_xor_sync(unsigned mask, unsigned v) { return (unsigned)pgemu::runtime->collective(PGEMU_REDUCE_XOR, mask, v, 0, 32); }

// Bits.
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz((unsigned)v); }
inline int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll((unsigned long long)v); }
inline unsigned __brev(unsigned v) {
	v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
	v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
	v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
	return __builtin_bswap32(v);
}
inline unsigned long long __brevll(unsigned long long v) {
	return (unsigned long long)__brev((unsigned)v) << 32 | __brev((unsigned)(v >> 32));
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
	return (unsigned)((((unsigned long long)hi << 32 | lo) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
	return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) {
	return (unsigned)((((unsigned long long)hi << 32 | lo) << (shift < 32 ? shift : 32)) >> 32);
}
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) {
	return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift < 32 ? shift : 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
	unsigned long long v = (unsigned long long)y << 32 | x;
	unsigned r = 0;
	for (int i = 0; i < 4; i++) r |= (unsigned)(v >> ((s >> 4 * i & 7) * 8) & 255) << 8 * i;
	return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
inline long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
inline double __dadd_rn(double a, double b) { return a + b; } // with -ffp-contract=off
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __ll2double_rn(long long v) { return (double)v; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }

#define PGEMU_MINMAX(T)                                      \
	constexpr T min(T a, T b) { return a < b ? a : b; } \
	constexpr T max(T a, T b) { return a < b ? b : a; }
PGEMU_MINMAX(int)
PGEMU_MINMAX(unsigned)
PGEMU_MINMAX(long long)
PGEMU_MINMAX(unsigned long long)
#undef PGEMU_MINMAX

// Memory. Hints of caches say nothing here.
template <typename T> inline T __ldg(const T *p) { return *p; }
template <typename T> inline T __ldcs(const T *p) { return *p; }
template <typename T> inline T __ldcg(const T *p) {
	pgemu::spin();
	return *(const volatile T *)p;
}
template <typename T>
	requires(sizeof(T) > 8)
inline T __ldcg(const T *p) { return *p; }
template <typename T> inline void __stcs(T *p, T v) { *p = v; }
template <typename T> inline void __stcg(T *p, T v) { *p = v; }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence() {
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	pgemu::spin();
}
inline void __nanosleep(unsigned) { pgemu::runtime->yield(); }
[[noreturn]] inline void __trap() { __builtin_trap(); }

#define PGEMU_ATOMIC(name, T, call)              \
	inline T name(T *p, T v) {                   \
		pgemu::spin();                           \
		return __atomic_##call(p, v, __ATOMIC_RELAXED); \
	}
#define PGEMU_ATOMICS(T)                  \
	PGEMU_ATOMIC(atomicAdd, T, fetch_add) \
	PGEMU_ATOMIC(atomicAnd, T, fetch_and) \
	PGEMU_ATOMIC(atomicOr, T, fetch_or)   \
	PGEMU_ATOMIC(atomicXor, T, fetch_xor) \
	PGEMU_ATOMIC(atomicExch, T, exchange_n)
PGEMU_ATOMICS(int)
PGEMU_ATOMICS(unsigned)
PGEMU_ATOMICS(unsigned long long)
PGEMU_ATOMIC(atomicSub, int, fetch_sub)
PGEMU_ATOMIC(atomicSub, unsigned, fetch_sub)
#undef PGEMU_ATOMICS
#undef PGEMU_ATOMIC

#define PGEMU_ATOMIC_CAS(T)                                                                          \
	inline T atomicCAS(T *p, T compare, T v) {                                                       \
		pgemu::spin();                                                                               \
		__atomic_compare_exchange_n(p, &compare, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
		return compare;                                                                              \
	}
PGEMU_ATOMIC_CAS(int)
PGEMU_ATOMIC_CAS(unsigned)
PGEMU_ATOMIC_CAS(unsigned long long)
#undef PGEMU_ATOMIC_CAS

#define PGEMU_ATOMIC_MINMAX(name, T, less)                                                              \
	inline T name(T *p, T v) {                                                                          \
		pgemu::spin();                                                                                  \
		T old = __atomic_load_n(p, __ATOMIC_RELAXED);                                                   \
		while (v less old && !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) { \
		}                                                                                               \
		return old;                                                                                     \
	}
PGEMU_ATOMIC_MINMAX(atomicMin, int, <)
PGEMU_ATOMIC_MINMAX(atomicMin, unsigned, <)
PGEMU_ATOMIC_MINMAX(atomicMin, long long, <)
PGEMU_ATOMIC_MINMAX(atomicMin, unsigned long long, <)
PGEMU_ATOMIC_MINMAX(atomicMax, int, >)
PGEMU_ATOMIC_MINMAX(atomicMax, unsigned, >)
PGEMU_ATOMIC_MINMAX(atomicMax, long long, >)
PGEMU_ATOMIC_MINMAX(atomicMax, unsigned long long, >)
#undef PGEMU_ATOMIC_MINMAX

// The runtime finds these in every module.
extern "C" __attribute__((visibility("default"))) inline int pgemu_bind(const pgemu_runtime *r) {
	pgemu::runtime = r;
	return PGEMU_VERSION;
}
extern "C" __attribute__((visibility("default"))) inline pgemu_thread **pgemu_slot() { return &pgemu::current; }
extern "C" __attribute__((visibility("default"))) inline int pgemu_kernels() { return pgemu::kernels; }
namespace pgemu {
__attribute__((used)) static int (*const keep_bind)(const pgemu_runtime *) = pgemu_bind;
__attribute__((used)) static pgemu_thread **(*const keep_slot)() = pgemu_slot;
__attribute__((used)) static int (*const keep_kernels)() = pgemu_kernels;
} // namespace pgemu

#define PGACCEL_KERNEL(name, Params, p, max_threads, min_blocks)                                        \
	static void name(const Params &p);                                                                  \
	extern "C" __attribute__((visibility("default"))) pgemu_kernel pgemu_kernel_##name;                \
	pgemu_kernel pgemu_kernel_##name = {                                                                \
		#name, [](const void *v) { name(*static_cast<const Params *>(v)); }, sizeof(Params), max_threads, 0}; \
	[[maybe_unused]] static const int pgemu_number_##name = ++pgemu::kernels;                           \
	static_assert(max_threads <= 1024 && min_blocks >= 0 && sizeof(Params) <= 4096);                    \
	static void name([[maybe_unused]] const Params &p)
#define PGACCEL_DYNAMIC_SHARED(name) unsigned char *const name = ::pgemu::current->shared

namespace pgemu {
template <typename P>
inline void launch(const pgemu_kernel &k, dim3 grid, dim3 block, unsigned shared, const P &params, int tail) {
	runtime->launch(&k, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, &params, tail);
}
} // namespace pgemu
#ifdef PGACCEL_CDP
#define PGACCEL_LAUNCH(kernel, grid, block, shared, params) ::pgemu::launch(pgemu_kernel_##kernel, grid, block, shared, params, 0)
#define PGACCEL_LAUNCH_TAIL(kernel, grid, block, shared, params) ::pgemu::launch(pgemu_kernel_##kernel, grid, block, shared, params, 1)
#define PGACCEL_LAUNCH_ERROR() 0u // a launch that fails ends the batch
#endif
