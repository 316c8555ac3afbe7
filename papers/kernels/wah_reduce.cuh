// The reductions of decompressed WAH columns of "GPU Acceleration of Range Queries over Large
// Data Sets" (Nelson et al., journal version 2020): Algorithms 3 to 6. Column c's word t is
// data[c * stride * n + t]; the result is column 0, and all columns may be overwritten.
//
// The papers halve the number of columns at each level, for powers of two. Here s is rounded
// up, and a low-order column without a high-order partner goes to the next level as it is.
#pragma once
#include "wah.cuh"

struct WahReduce {
	uint64_t *data;
	uint64_t n;       // words of a column
	uint32_t columns; // m
	uint32_t stride;  // from one of them to the next, in columns
	uint32_t span;    // columns of a tile of the hybrid: 2k
	uint32_t rows;    // words of a tile: j
};

// wah_coa is one level of Algorithm 3, column-oriented access: grid (n / 1024, m - s), a thread
// for each pair of words.
PGACCEL_KERNEL(wah_coa, WahReduce, p, WAH_BLOCK, 1) {
	uint32_t s = (p.columns + 1) / 2;
	uint64_t t = uint64_t(blockIdx.x) * WAH_BLOCK + threadIdx.x;
	if (t < p.n)
		p.data[blockIdx.y * p.n + t] |= p.data[(blockIdx.y + s) * p.n + t];
}

// wah_levels reduces s columns of rows words in shared memory, of which this thread has column c.
__device__ __forceinline__ void wah_levels(uint64_t *shared, uint32_t s, uint32_t rows, uint32_t c, uint32_t x) {
	while (s > 1) {
		uint32_t m = s;
		s = (m + 1) / 2;
		__syncthreads();
		if (c < m - s)
			shared[c * rows + x] |= shared[(c + s) * rows + x];
	}
}

// wah_roa is Algorithm 4, row-oriented access: a block for each word of the result, which spans
// all columns, 2,048 at most, two for a thread. Only every n-th word is a neighbour's, so no
// access to data is coalesced.
PGACCEL_KERNEL(wah_roa, WahReduce, p, WAH_BLOCK, 1) {
	__shared__ uint64_t shared[WAH_BLOCK];
	uint32_t c = threadIdx.x, s = (p.columns + 1) / 2;
	uint64_t t = blockIdx.x;
	if (c < s) {
		uint64_t w = p.data[c * p.n + t];
		if (c + s < p.columns)
			w |= p.data[(c + s) * p.n + t];
		shared[c] = w;
	}
	wah_levels(shared, s, 1, c, 0);
	if (c == 0)
		p.data[t] = shared[0];
}

// wah_hybrid is a round of Algorithm 5, and with a tile that spans all columns Algorithm 6, the
// ideal hybrid: grid (n / rows, tiles), each tile's result in its first column. A block has
// k * j = 1,024 threads, j = rows of them for neighbouring words, so that accesses are coalesced.
PGACCEL_KERNEL(wah_hybrid, WahReduce, p, WAH_BLOCK, 1) {
	__shared__ uint64_t shared[WAH_BLOCK];
	uint32_t x = threadIdx.x % p.rows, c = threadIdx.x / p.rows;
	uint32_t first = blockIdx.y * p.span;
	uint32_t columns = p.columns - first < p.span ? p.columns - first : p.span;
	uint32_t s = (columns + 1) / 2;
	uint64_t t = uint64_t(blockIdx.x) * p.rows + x;
	uint64_t step = p.stride * p.n; // from one column to the next
	uint64_t *data = p.data + first * step + t;
	if (c < s) {
		uint64_t w = 0;
		if (t < p.n) {
			w = data[c * step];
			if (c + s < columns)
				w |= data[(c + s) * step];
		}
		shared[c * p.rows + x] = w;
	}
	wah_levels(shared, s, p.rows, c, x);
	if (c == 0 && t < p.n)
		data[0] = shared[x];
}
