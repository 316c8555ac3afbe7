// Source cells, aggregation maps and hash tables of target cells, for the kernels of
// cube_source.cuh, cube_children.cuh and cube_classes.cuh. The algorithms are those of
// J. Meinke, "In-memory OLAP aggregation on GPUs using CUDA Dynamic Parallelism" (2015),
// and ours; package papers/gpucube launches them and draws the formats.
//
// CUBE_DIMS, the number of dimensions, is a define of the compilation.
#pragma once
#include "scan.cuh"

constexpr uint32_t CUBE_ALL = 0xffffffffu; // every lane of a warp
constexpr uint32_t CUBE_VECTOR = 1024;     // cells of a vector: 32 lanes, 32 positions

typedef unsigned long long cube_u64; // what 64-bit atomics take
typedef long long cube_i64;

// CubeColumn is a bit-packed column: of each vector width words a lane, word by word; cell
// i is position i/32 of lane i%32.
struct CubeColumn {
	const uint32_t *words;
	uint32_t width; // bits; 0: all values are 0, and there are no words
	uint32_t unused;
};

// CubeDim is a dimension's column of codes, and its part of the aggregation map: code e
// reaches what lies from start[e] up to start[e+1]. A target's number is the sum over the
// dimensions, a weight the product.
struct CubeDim {
	CubeColumn column;
	const uint32_t *start;
	const cube_u64 *number;
	const cube_i64 *weight;
	const uint32_t *before; // codes below e that reach anything
	const uint32_t *zones;  // least and largest code of each vector
};

// CubeQuery is an area's view of a cube.
struct CubeQuery {
	CubeDim dims[CUBE_DIMS];
	CubeColumn low, high; // values: base + low + high * 2^32
	cube_i64 base;
	cube_u64 cells;
};

// CubeTable is a hash table of sums by number, open addressing, keys claimed by
// compare-and-swap. A number has a slot for each hash function: its key is
// number * functions + function + 1; 0 is free.
struct CubeTable {
	cube_u64 *keys;
	cube_u64 *sums;
	uint32_t *full; // set where a number found no slot: the table is too small
	cube_u64 mask;  // slots - 1, a power of two less one
	uint32_t functions;
	uint32_t unused;
};

// cube_code is the value of a column at a cell. Lanes that ask for consecutive cells of
// one position read one or two whole lines.
__device__ __forceinline__ uint32_t cube_code(const CubeColumn &c, uint32_t cell) {
	if (c.width == 0)
		return 0;
	uint32_t bit = (cell >> 5 & 31) * c.width, shift = bit & 31;
	const uint32_t *w = c.words + (uint64_t(cell >> 10) * c.width + (bit >> 5)) * 32 + (cell & 31);
	uint32_t lo = __ldg(w), hi = shift + c.width > 32 ? __ldg(w + 32) : 0;
	return __funnelshift_r(lo, hi, shift) & (CUBE_ALL >> (32 - c.width));
}

// cube_value is the value of a cell.
__device__ __forceinline__ cube_i64 cube_value(const CubeQuery &q, uint32_t cell) {
	cube_u64 v = cube_code(q.low, cell);
	if (q.high.width != 0)
		v |= cube_u64(cube_code(q.high, cell)) << 32;
	return q.base + cube_i64(v);
}

// cube_mix spreads keys over a table (the finaliser of MurmurHash3).
__device__ __forceinline__ cube_u64 cube_mix(cube_u64 x) {
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

// cube_add adds v to a function's slot of a number.
__device__ __forceinline__ void cube_add(const CubeTable &t, cube_u64 number, uint32_t function, cube_i64 v) {
	cube_u64 key = number * t.functions + function + 1;
	cube_u64 at = cube_mix(key) & t.mask;
	uint32_t most = t.mask < 512 ? uint32_t(t.mask) : 512;
	for (uint32_t probes = 0; probes <= most; probes++) {
		cube_u64 k = __ldcg(t.keys + at);
		if (k == 0) {
			k = atomicCAS(t.keys + at, cube_u64(0), key);
			if (k == 0)
				k = key;
		}
		if (k == key) {
			atomicAdd(t.sums + at, cube_u64(v));
			return;
		}
		if ((probes & 31) == 31 && __ldcg(t.full) != 0)
			return; // it runs again, with a larger table
		at = (at + 1) & t.mask;
	}
	atomicOr(t.full, 1u);
}

// cube_count is the number of targets of a cell, and lists[d] where dimension d's begin.
__device__ __forceinline__ uint32_t cube_count(const CubeQuery &q, uint32_t cell) {
	uint32_t n = 1;
#pragma unroll
	for (uint32_t d = 0; d < CUBE_DIMS; d++) {
		const uint32_t *start = q.dims[d].start + cube_code(q.dims[d].column, cell);
		n *= __ldg(start + 1) - __ldg(start);
	}
	return n;
}

// cube_target is the k-th target of a cell, and the weight there.
__device__ __forceinline__ cube_u64 cube_target(const CubeQuery &q, uint32_t cell, uint32_t k, cube_i64 &weight) {
	cube_u64 number = 0;
	weight = 1;
#pragma unroll
	for (int d = CUBE_DIMS - 1; d >= 0; d--) {
		const CubeDim &dim = q.dims[d];
		const uint32_t *start = dim.start + cube_code(dim.column, cell);
		uint32_t at = __ldg(start), n = __ldg(start + 1) - at;
		if (n > 1) {
			uint32_t left = k / n;
			at += k - left * n;
			k = left;
		}
		number += __ldg(dim.number + at);
		weight *= __ldg(dim.weight + at);
	}
	return number;
}

// cube_sum adds v up over the lanes of a warp: lane 0 has it. All lanes come.
__device__ __forceinline__ cube_i64 cube_sum(cube_i64 v) {
#pragma unroll
	for (uint32_t d = 16; d > 0; d >>= 1)
		v += __shfl_down_sync(CUBE_ALL, v, d);
	return v;
}
