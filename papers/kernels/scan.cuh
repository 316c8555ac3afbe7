// Prefix sums: of a warp, of a block, and of many rows of 32-bit values in global memory.
//
// A row is scanned in two levels, in place: scan_sums adds up each part of SCAN_PART values,
// scan_offsets makes the sums of a row's parts the sums before each, scan_values scans each
// part from there on. So a value is read twice and written once: 12 bytes.
#pragma once
#include "pgaccel.cuh"

constexpr uint32_t SCAN_THREADS = 256;
constexpr uint32_t SCAN_STEPS = 8; // rows of 32 values that a warp owns
constexpr uint32_t SCAN_PART = SCAN_THREADS * SCAN_STEPS;

// scan_warp is the sum of v of this lane and the lanes before it. All lanes come.
__device__ __forceinline__ uint32_t scan_warp(uint32_t v) {
	uint32_t lane = threadIdx.x & 31;
#pragma unroll
	for (uint32_t d = 1; d < 32; d <<= 1) {
		uint32_t up = __shfl_up_sync(0xffffffffu, v, d);
		v += lane >= d ? up : 0;
	}
	return v;
}

// scan_block is the sum of v of this thread and the threads before it, total that of all. The
// block is one-dimensional, has WARPS whole warps, and all come. sums is shared memory of
// WARPS values, which may be used again after the next barrier.
template <uint32_t WARPS>
__device__ __forceinline__ uint32_t scan_block(uint32_t v, uint32_t *sums, uint32_t &total) {
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	v = scan_warp(v);
	if (lane == 31)
		sums[warp] = v;
	__syncthreads();
	uint32_t before = 0, all = 0;
#pragma unroll
	for (uint32_t w = 0; w < WARPS; w++) {
		before += w < warp ? sums[w] : 0;
		all += sums[w];
	}
	total = all;
	return before + v;
}

// sum_block is the sum of v of all threads, in thread 0; the rest as of scan_block.
template <uint32_t WARPS>
__device__ __forceinline__ uint32_t sum_block(uint32_t v, uint32_t *sums) {
	v = __reduce_add_sync(0xffffffffu, v);
	if ((threadIdx.x & 31) == 0)
		sums[threadIdx.x >> 5] = v;
	__syncthreads();
	if (threadIdx.x == 0)
		for (uint32_t w = 1; w < WARPS; w++)
			v += sums[w];
	return v;
}

// ScanRows are the rows that blockIdx.y counts: values[begins[r]] to values[begins[r + 1] - 1].
struct ScanRows {
	uint32_t *values;
	const uint64_t *begins; // one more than rows
	uint32_t *sums;         // stride for each row
	uint32_t stride;        // parts of the longest row: gridDim.x of scan_sums and scan_values
};

// scan_sums: grid (stride, rows).
PGACCEL_KERNEL(scan_sums, ScanRows, p, SCAN_THREADS, 1) {
	__shared__ uint32_t sums[SCAN_THREADS / 32];
	uint64_t begin = p.begins[blockIdx.y], end = p.begins[blockIdx.y + 1];
	uint64_t at = begin + uint64_t(blockIdx.x) * SCAN_PART + threadIdx.x;
	uint32_t sum = 0;
#pragma unroll
	for (uint32_t i = 0; i < SCAN_STEPS; i++, at += SCAN_THREADS)
		sum += at < end ? p.values[at] : 0;
	sum = sum_block<SCAN_THREADS / 32>(sum, sums);
	if (threadIdx.x == 0)
		p.sums[uint64_t(blockIdx.y) * p.stride + blockIdx.x] = sum;
}

// scan_offsets: grid (1, rows).
PGACCEL_KERNEL(scan_offsets, ScanRows, p, SCAN_THREADS, 1) {
	__shared__ uint32_t sums[SCAN_THREADS / 32];
	uint32_t *row = p.sums + uint64_t(blockIdx.y) * p.stride;
	uint32_t before = 0;
	for (uint32_t from = 0; from < p.stride; from += SCAN_THREADS) {
		uint32_t i = from + threadIdx.x, total;
		uint32_t v = i < p.stride ? row[i] : 0;
		uint32_t sum = scan_block<SCAN_THREADS / 32>(v, sums, total);
		if (i < p.stride)
			row[i] = before + sum - v;
		before += total;
		__syncthreads();
	}
}

// scan_values: grid (stride, rows).
PGACCEL_KERNEL(scan_values, ScanRows, p, SCAN_THREADS, 1) {
	__shared__ uint32_t sums[SCAN_THREADS / 32];
	uint64_t begin = p.begins[blockIdx.y], end = p.begins[blockIdx.y + 1];
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	// A warp owns neighbours, so that its loads are whole lines and its sums its own.
	uint64_t first = begin + uint64_t(blockIdx.x) * SCAN_PART + warp * (32 * SCAN_STEPS) + lane;
	uint32_t v[SCAN_STEPS], before = 0;
#pragma unroll
	for (uint32_t i = 0; i < SCAN_STEPS; i++)
		v[i] = first + i * 32 < end ? p.values[first + i * 32] : 0;
#pragma unroll
	for (uint32_t i = 0; i < SCAN_STEPS; i++) {
		uint32_t sum = scan_warp(v[i]);
		v[i] = before + sum - v[i];
		before += __shfl_sync(0xffffffffu, sum, 31);
	}
	if (lane == 0)
		sums[warp] = before;
	__syncthreads();
	before = p.sums[uint64_t(blockIdx.y) * p.stride + blockIdx.x];
	for (uint32_t w = 0; w < warp; w++)
		before += sums[w];
#pragma unroll
	for (uint32_t i = 0; i < SCAN_STEPS; i++)
		if (first + i * 32 < end)
			p.values[first + i * 32] = before + v[i];
}
