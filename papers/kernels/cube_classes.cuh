// From sums of classes to sums of target cells (package papers/gpucube): the scan that makes
// class sums is generated for a query; what follows is small and here.
//
// A tensor has an axis for each dimension, the last one runs fastest; beside each sum stands
// whether any cell added to it.
#pragma once
#include "cube.cuh"

constexpr uint32_t CUBE_CHUNK = 4096; // places that a block lists
constexpr uint32_t CUBE_LISTERS = 512;

struct CubeReduce {
	const cube_i64 *parts; // of each block of the scan
	const unsigned char *seenParts;
	cube_i64 *sums;
	unsigned char *seen;
	uint32_t places;
	uint32_t blocks;
};

// cube_reduce adds the blocks' tensors up: 32 places a block, 32 threads for each.
PGACCEL_KERNEL(cube_reduce, CubeReduce, p, 1024, 1) {
	__shared__ cube_i64 sums[1024];
	__shared__ uint32_t seens[1024];
	uint32_t x = threadIdx.x & 31, place = blockIdx.x * 32 + x;
	cube_i64 sum = 0;
	uint32_t seen = 0;
	if (place < p.places) {
#pragma unroll 4
		for (uint32_t b = threadIdx.x >> 5; b < p.blocks; b += 32) {
			sum += p.parts[uint64_t(b) * p.places + place];
			seen |= p.seenParts[uint64_t(b) * p.places + place];
		}
	}
	sums[threadIdx.x] = sum;
	seens[threadIdx.x] = seen;
	__syncthreads();
#pragma unroll
	for (uint32_t d = 512; d >= 32; d >>= 1) {
		if (threadIdx.x < d) {
			sums[threadIdx.x] += sums[threadIdx.x + d];
			seens[threadIdx.x] |= seens[threadIdx.x + d];
		}
		__syncthreads();
	}
	if (threadIdx.x < 32 && place < p.places) {
		p.sums[place] = sums[threadIdx.x];
		p.seen[place] = (unsigned char)seens[threadIdx.x];
	}
}

struct CubeContract {
	const cube_i64 *sums; // [outer][classes][inner]
	const unsigned char *seen;
	cube_i64 *outSums; // [outer][targets][inner]
	unsigned char *outSeen;
	const uint32_t *start;  // of each target's classes
	const uint32_t *classes;
	const cube_i64 *weights;
	uint32_t classCount, targets, inner, places; // places: of the result
};

// cube_contract multiplies an axis by its (class, target) matrix: a group of 8 threads for
// each place of the result, which share its classes.
PGACCEL_KERNEL(cube_contract, CubeContract, p, 256, 4) {
	uint32_t lane = threadIdx.x & 7;
	for (uint64_t from = uint64_t(blockIdx.x) * 32; from < p.places; from += uint64_t(gridDim.x) * 32) {
		uint32_t place = uint32_t(from) + (threadIdx.x >> 3);
		cube_i64 sum = 0;
		uint32_t seen = 0;
		if (from + (threadIdx.x >> 3) < p.places) {
			uint32_t q = place / p.inner, i = place - q * p.inner;
			uint32_t o = q / p.targets, t = q - o * p.targets;
			for (uint32_t k = p.start[t] + lane; k < p.start[t + 1]; k += 8) {
				uint32_t at = (o * p.classCount + p.classes[k]) * p.inner + i;
				sum += p.sums[at] * p.weights[k];
				seen |= p.seen[at];
			}
		}
#pragma unroll
		for (uint32_t d = 4; d > 0; d >>= 1) {
			sum += __shfl_down_sync(CUBE_ALL, sum, d, 8);
			seen |= __shfl_down_sync(CUBE_ALL, seen, d, 8);
		}
		if (lane == 0 && from + (threadIdx.x >> 3) < p.places) {
			p.outSums[place] = sum;
			p.outSeen[place] = (unsigned char)seen;
		}
	}
}

struct CubeDense {
	const cube_i64 *sums;
	const unsigned char *seen;
	uint32_t *counts;          // of each chunk
	cube_u64 *numbers;
	cube_i64 *outSums;
	uint32_t *count;
	uint32_t places;
	uint32_t most; // entries that there is room for
};

// cube_dense_count counts the places of each chunk that were added to.
PGACCEL_KERNEL(cube_dense_count, CubeDense, p, CUBE_LISTERS, 2) {
	__shared__ uint32_t sums[CUBE_LISTERS / 32];
	uint32_t n = 0;
#pragma unroll
	for (uint32_t i = 0; i < CUBE_CHUNK; i += CUBE_LISTERS) {
		uint64_t at = uint64_t(blockIdx.x) * CUBE_CHUNK + i + threadIdx.x;
		n += at < p.places ? p.seen[at] : 0;
	}
	n = sum_block<CUBE_LISTERS / 32>(n, sums);
	if (threadIdx.x == 0)
		p.counts[blockIdx.x] = n;
}

// cube_dense_list lists them in order.
PGACCEL_KERNEL(cube_dense_list, CubeDense, p, CUBE_LISTERS, 2) {
	__shared__ uint32_t sums[CUBE_LISTERS / 32];
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, before = 0;
	for (uint32_t b = threadIdx.x; b < blockIdx.x; b += CUBE_LISTERS)
		before += p.counts[b];
	before = __reduce_add_sync(CUBE_ALL, before);
	if (lane == 0)
		sums[warp] = before;
	__syncthreads();
	before = 0;
	for (uint32_t w = 0; w < CUBE_LISTERS / 32; w++)
		before += sums[w];
	for (uint32_t i = 0; i < CUBE_CHUNK; i += CUBE_LISTERS) {
		__syncthreads();
		uint64_t at = uint64_t(blockIdx.x) * CUBE_CHUNK + i + threadIdx.x;
		bool seen = at < p.places && p.seen[at] != 0;
		uint32_t bits = __ballot_sync(CUBE_ALL, seen);
		if (lane == 0)
			sums[warp] = uint32_t(__popc(bits));
		__syncthreads();
		uint32_t to = before + __popc(bits & ((1u << lane) - 1));
		for (uint32_t w = 0; w < CUBE_LISTERS / 32; w++) {
			to += w < warp ? sums[w] : 0;
			before += sums[w];
		}
		if (seen && to < p.most) {
			p.numbers[to] = at;
			p.outSums[to] = p.sums[at];
		}
	}
	if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
		*p.count = before;
}

struct CubeExpand {
	CubeQuery q; // dims have the targets of classes: no columns
	cube_u64 strides[CUBE_DIMS];
	CubeTable t;
	const cube_u64 *numbers; // of combinations of classes
	const cube_i64 *sums;
	const uint32_t *count;
	uint32_t *next;
};

// cube_expand hands each class sum to all targets of its classes: a warp takes one from the
// queue, its lanes share the targets.
PGACCEL_KERNEL(cube_expand, CubeExpand, p, 256, 4) {
	uint32_t lane = threadIdx.x & 31, n = *p.count;
	for (;;) {
		uint32_t i = 0;
		if (lane == 0)
			i = atomicAdd(p.next, 1u);
		i = __shfl_sync(CUBE_ALL, i, 0);
		if (i >= n)
			return;
		cube_u64 left = p.numbers[i];
		uint32_t from[CUBE_DIMS], counts[CUBE_DIMS];
		cube_u64 total = 1;
#pragma unroll
		for (uint32_t d = 0; d < CUBE_DIMS; d++) {
			cube_u64 e = left / p.strides[d];
			left -= e * p.strides[d];
			from[d] = p.q.dims[d].start[e];
			counts[d] = p.q.dims[d].start[e + 1] - from[d];
			total *= counts[d];
		}
		for (cube_u64 k = lane; k < total; k += 32) {
			cube_u64 rest = k, number = 0;
			cube_i64 v = p.sums[i];
#pragma unroll
			for (int d = CUBE_DIMS - 1; d >= 0; d--) {
				uint32_t at = from[d];
				if (counts[d] > 1) {
					cube_u64 q = rest / counts[d];
					at += uint32_t(rest - q * counts[d]);
					rest = q;
				}
				number += p.q.dims[d].number[at];
				v *= p.q.dims[d].weight[at];
			}
			cube_add(p.t, number, 0, v);
		}
	}
}
