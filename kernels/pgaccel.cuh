// What every kernel includes first: the part of CUDA C++ that kernels may use, under NVRTC,
// clang (a syntax check) and the emulator (-DPGACCEL_EMULATOR, C++20).
//
//   types        uint8_t .. uint64_t, int8_t .. int64_t; dim3, [u]int2, [u]int4, [u]longlong2
//                and make_ of them; loads and stores are aligned to the type's size
//   a kernel     PGACCEL_KERNEL(name, Params, p, threads, blocks) { ... }
//                one parameter, a structure by value, which it reads as p; at most so many
//                threads a block, at least so many blocks on a multiprocessor
//   shared       __shared__ T name[N]; in any function, and PGACCEL_DYNAMIC_SHARED(name): the
//                launch's dynamic shared memory, unsigned char *, aligned to 16 bytes
//   intrinsics   __syncthreads, _count, _or, _and; __syncwarp; __shfl[_up|_down|_xor]_sync;
//                __ballot_sync, __any_sync, __all_sync; __match_any_sync;
//                __reduce_[add|min|max|or|and]_sync; __popc[ll], __ffs[ll], __clz[ll], __brev[ll];
//                __funnelshift_[l|r][c]; __byte_perm; __[u]mulhi, __umul64hi, __mul64hi; __longlong_as_double,
//                __double_as_longlong, __ll2double_rn, __d[add|mul|div]_rn; min, max of two of one type; __ldg, __ldcs, __ldcg, __stcs, __stcg; __threadfence[_block],
//                __nanosleep; atomicAdd, Or, And, Xor, Min, Max, Exch, CAS on int, unsigned,
//                unsigned long long (and long long for Min and Max), Sub on int and unsigned
//   waiting      a loop that waits for another thread has an atomic, __ldcg, __threadfence or
//                __nanosleep in it; a block may wait for blocks of lower numbers only
//   children     PGACCEL_LAUNCH(kernel, grid, block, shared, params): a grid of a kernel of the same
//                source, which is done before its parent is; PGACCEL_LAUNCH_TAIL: after the
//                parent and its children. Needs -DPGACCEL_CDP, which is to say -rdc=true.
//                PGACCEL_LAUNCH_ERROR() is not 0 where the thread's last launch failed: CUDA's number
//   masks        lanes named in a mask all come to the call; a lane that is not named must not;
//                all threads of a block come to its barriers, none returns before
//   not          __activemask, textures, printf, exceptions, the standard library, inline
//                PTX outside of #ifndef PGACCEL_EMULATOR with a plain version beside it
#pragma once

#ifdef PGACCEL_EMULATOR
#include "emulator.hpp"
#else

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include "check.hpp" // clang's syntax check without a toolkit
#endif

#ifndef PGACCEL_KERNEL
#define PGACCEL_KERNEL(name, Params, p, threads, blocks) \
	extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Params p)
#endif
#define PGACCEL_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#if defined(PGACCEL_CDP) && !defined(PGACCEL_LAUNCH) && __CUDACC_VER_MAJOR__ >= 12 // the streams' names are new there
#define PGACCEL_LAUNCH(kernel, grid, block, shared, params) kernel<<<grid, block, shared, cudaStreamFireAndForget>>>(params)
#define PGACCEL_LAUNCH_TAIL(kernel, grid, block, shared, params) kernel<<<grid, block, shared, cudaStreamTailLaunch>>>(params)
#define PGACCEL_LAUNCH_ERROR() (uint32_t(cudaGetLastError()))
#endif

#endif
