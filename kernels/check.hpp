// CUDA's words for clang alone, without a toolkit: enough to compile every kernel to PTX
// (scripts/ptx.sh), which finds what a C++ compiler lets pass and a CUDA compiler does not:
// host code called from a kernel, shared memory with an initial value, types that NVRTC
// has otherwise. It is not embedded, and nothing is run of what comes out.
#pragma once

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

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define PGCHECK static __device__ inline

struct uint3 {
	unsigned x, y, z;
};
struct dim3 {
	unsigned x, y, z;
	__device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
#define PGCHECK_VECTOR2(T, E, bytes)     \
	struct __align__(bytes) T {          \
		E x, y;                          \
	};                                   \
	PGCHECK T make_##T(E x, E y) { return {x, y}; }
#define PGCHECK_VECTOR4(T, E, bytes)     \
	struct __align__(bytes) T {          \
		E x, y, z, w;                    \
	};                                   \
	PGCHECK T make_##T(E x, E y, E z, E w) { return {x, y, z, w}; }
PGCHECK_VECTOR2(int2, int, 8)
PGCHECK_VECTOR2(uint2, unsigned, 8)
PGCHECK_VECTOR2(longlong2, long long, 16)
PGCHECK_VECTOR2(ulonglong2, unsigned long long, 16)
PGCHECK_VECTOR4(int4, int, 16)
PGCHECK_VECTOR4(uint4, unsigned, 16)

#include <__clang_cuda_builtin_vars.h> // threadIdx and its like, from clang's own headers

// __syncthreads is clang's own.
PGCHECK int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
PGCHECK int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
PGCHECK int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
PGCHECK void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }

PGCHECK int pgcheck_shfl_sync(unsigned mask, int v, int arg, int width) { return __nvvm_shfl_sync_idx_i32(mask, v, arg, (32 - width) << 8 | 31); }
PGCHECK int pgcheck_shfl_up_sync(unsigned mask, int v, unsigned arg, int width) { return __nvvm_shfl_sync_up_i32(mask, v, arg, (32 - width) << 8); }
PGCHECK int pgcheck_shfl_down_sync(unsigned mask, int v, unsigned arg, int width) { return __nvvm_shfl_sync_down_i32(mask, v, arg, (32 - width) << 8 | 31); }
PGCHECK int pgcheck_shfl_xor_sync(unsigned mask, int v, int arg, int width) { return __nvvm_shfl_sync_bfly_i32(mask, v, arg, (32 - width) << 8 | 31); }
#define PGCHECK_SHFL(name, Arg, T)                                                                    \
	PGCHECK T __##name(unsigned mask, T v, Arg arg, int width = 32) {                                 \
		int words[sizeof(T) / 4];                                                                     \
		__builtin_memcpy(words, &v, sizeof v);                                                        \
		for (int &word : words) word = pgcheck_##name(mask, word, arg, width);                        \
		__builtin_memcpy(&v, words, sizeof v);                                                        \
		return v;                                                                                     \
	}
#define PGCHECK_SHFLS(T)                     \
	PGCHECK_SHFL(shfl_sync, int, T)          \
	PGCHECK_SHFL(shfl_up_sync, unsigned, T)  \
	PGCHECK_SHFL(shfl_down_sync, unsigned, T) \
	PGCHECK_SHFL(shfl_xor_sync, int, T)
PGCHECK_SHFLS(int)
PGCHECK_SHFLS(unsigned)
PGCHECK_SHFLS(long)
PGCHECK_SHFLS(unsigned long)
PGCHECK_SHFLS(long long)
PGCHECK_SHFLS(unsigned long long)
PGCHECK_SHFLS(float)
PGCHECK_SHFLS(double)

PGCHECK unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p != 0); }
PGCHECK int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p != 0); }
PGCHECK int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p != 0); }
PGCHECK unsigned __match_any_sync(unsigned mask, unsigned v) { return __nvvm_match_any_sync_i32(mask, v); }
PGCHECK unsigned __match_any_sync(unsigned mask, int v) { return __nvvm_match_any_sync_i32(mask, (unsigned)v); }
PGCHECK unsigned __match_any_sync(unsigned mask, unsigned long long v) { return __nvvm_match_any_sync_i64(mask, v); }
PGCHECK unsigned __match_any_sync(unsigned mask, long long v) { return __nvvm_match_any_sync_i64(mask, (unsigned long long)v); }
PGCHECK unsigned __reduce_add_sync(unsigned mask, unsigned v) { return (unsigned)__nvvm_redux_sync_add((int)v, (int)mask); }
PGCHECK int __reduce_add_sync(unsigned mask, int v) { return __nvvm_redux_sync_add(v, (int)mask); }
PGCHECK unsigned __reduce_min_sync(unsigned mask, unsigned v) { return (unsigned)__nvvm_redux_sync_umin(v, (int)mask); }
PGCHECK int __reduce_min_sync(unsigned mask, int v) { return __nvvm_redux_sync_min(v, (int)mask); }
PGCHECK unsigned __reduce_max_sync(unsigned mask, unsigned v) { return (unsigned)__nvvm_redux_sync_umax(v, (int)mask); }
PGCHECK int __reduce_max_sync(unsigned mask, int v) { return __nvvm_redux_sync_max(v, (int)mask); }
PGCHECK unsigned __reduce_and_sync(unsigned mask, unsigned v) { return (unsigned)__nvvm_redux_sync_and((int)v, (int)mask); }
PGCHECK unsigned __reduce_or_sync(unsigned mask, unsigned v) { return (unsigned)__nvvm_redux_sync_or((int)v, (int)mask); }
PGCHECK unsigned __reduce_xor_sync(unsigned mask, unsigned v) { return (unsigned)__nvvm_redux_sync_xor((int)v, (int)mask); }

PGCHECK int __popc(unsigned v) { return __builtin_popcount(v); }
PGCHECK int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
PGCHECK int __ffs(int v) { return __builtin_ffs(v); }
PGCHECK int __ffsll(long long v) { return __builtin_ffsll(v); }
PGCHECK int __clz(int v) { return v == 0 ? 32 : __builtin_clz((unsigned)v); }
PGCHECK int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll((unsigned long long)v); }
PGCHECK unsigned __brev(unsigned v) { return __builtin_bitreverse32(v); }
PGCHECK unsigned long long __brevll(unsigned long long v) { return __builtin_bitreverse64(v); }
PGCHECK unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { return (unsigned)((((unsigned long long)hi << 32 | lo) << (s & 31)) >> 32); }
PGCHECK unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) { return (unsigned)(((unsigned long long)hi << 32 | lo) >> (s & 31)); }
PGCHECK unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) { return (unsigned)((((unsigned long long)hi << 32 | lo) << (s < 32 ? s : 32)) >> 32); }
PGCHECK unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) { return (unsigned)(((unsigned long long)hi << 32 | lo) >> (s < 32 ? s : 32)); }
PGCHECK unsigned __byte_perm(unsigned x, unsigned y, unsigned s) { return __nvvm_prmt(x, y, s); }
PGCHECK unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
PGCHECK int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
PGCHECK double __longlong_as_double(long long v) { return __builtin_bit_cast(double, v); }
PGCHECK long long __double_as_longlong(double v) { return __builtin_bit_cast(long long, v); }
PGCHECK double __dadd_rn(double a, double b) { return __nvvm_add_rn_d(a, b); }
PGCHECK double __dmul_rn(double a, double b) { return __nvvm_mul_rn_d(a, b); }
PGCHECK double __ddiv_rn(double a, double b) { return __nvvm_div_rn_d(a, b); }
PGCHECK double __ll2double_rn(long long v) { return __nvvm_ll2d_rn(v); }
PGCHECK unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return __nvvm_mulhi_ull(a, b); }
PGCHECK long long __mul64hi(long long a, long long b) { return __nvvm_mulhi_ll(a, b); }
#define PGCHECK_MINMAX(T)                                        \
	PGCHECK constexpr T min(T a, T b) { return a < b ? a : b; } \
	PGCHECK constexpr T max(T a, T b) { return a < b ? b : a; }
PGCHECK_MINMAX(int)
PGCHECK_MINMAX(unsigned)
PGCHECK_MINMAX(long long)
PGCHECK_MINMAX(unsigned long long)

template <typename T> PGCHECK T __ldg(const T *p) { return *p; }
template <typename T> PGCHECK T __ldcs(const T *p) { return *p; }
template <typename T> PGCHECK T __ldcg(const T *p) { return *p; }
template <typename T> PGCHECK void __stcs(T *p, T v) { *p = v; }
template <typename T> PGCHECK void __stcg(T *p, T v) { *p = v; }
PGCHECK void __threadfence_block() { __nvvm_membar_cta(); }
PGCHECK void __threadfence() { __nvvm_membar_gl(); }
PGCHECK void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
PGCHECK void __trap() { asm volatile("trap;"); }

#define PGCHECK_ATOMIC(name, T, call) \
	PGCHECK T name(T *p, T v) { return __atomic_##call(p, v, __ATOMIC_RELAXED); }
#define PGCHECK_ATOMICS(T)                  \
	PGCHECK_ATOMIC(atomicAdd, T, fetch_add) \
	PGCHECK_ATOMIC(atomicAnd, T, fetch_and) \
	PGCHECK_ATOMIC(atomicOr, T, fetch_or)   \
	PGCHECK_ATOMIC(atomicXor, T, fetch_xor) \
	PGCHECK_ATOMIC(atomicExch, T, exchange_n)
PGCHECK_ATOMICS(int)
PGCHECK_ATOMICS(unsigned)
PGCHECK_ATOMICS(unsigned long long)
PGCHECK_ATOMIC(atomicSub, int, fetch_sub)
PGCHECK_ATOMIC(atomicSub, unsigned, fetch_sub)
#define PGCHECK_ATOMIC_MINMAX(T)            \
	PGCHECK_ATOMIC(atomicMin, T, fetch_min) \
	PGCHECK_ATOMIC(atomicMax, T, fetch_max)
PGCHECK_ATOMIC_MINMAX(int)
PGCHECK_ATOMIC_MINMAX(unsigned)
PGCHECK_ATOMIC_MINMAX(long long)
PGCHECK_ATOMIC_MINMAX(unsigned long long)
PGCHECK int atomicCAS(int *p, int compare, int v) { return __nvvm_atom_cas_gen_i(p, compare, v); }
PGCHECK unsigned atomicCAS(unsigned *p, unsigned compare, unsigned v) { return (unsigned)__nvvm_atom_cas_gen_i((int *)p, (int)compare, (int)v); }
PGCHECK unsigned long long atomicCAS(unsigned long long *p, unsigned long long compare, unsigned long long v) {
	return (unsigned long long)__nvvm_atom_cas_gen_ll((long long *)p, (long long)compare, (long long)v);
}

#define PGACCEL_KERNEL(name, Params, p, threads, blocks) \
	typedef Params pgcheck_##name;                       \
	extern "C" __global__ void __launch_bounds__(threads, blocks) name(const Params p)

// clang does not launch grids from a device: what is given is compiled, and that is all.
#ifdef PGACCEL_CDP
template <typename P> PGCHECK void pgcheck_launch(dim3, dim3, unsigned, const P &) {}
#define PGACCEL_LAUNCH(kernel, grid, block, shared, params) pgcheck_launch<pgcheck_##kernel>(grid, block, shared, params)
#define PGACCEL_LAUNCH_TAIL PGACCEL_LAUNCH
#define PGACCEL_LAUNCH_ERROR() 0u
#endif
