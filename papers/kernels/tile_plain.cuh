// The yardsticks: plain values read, and two columns compared.
#pragma once
#include "tile_sink.cuh"

struct TilePlain {
	const uint4 *in;
	uint32_t *sums;
	uint64_t quads; // of in
};

// Eight loads of 16 bytes are under way in every thread.
PGACCEL_KERNEL(tile_read, TilePlain, p, TILE_THREADS, 1)
{
	const uint64_t stride = (uint64_t)gridDim.x * TILE_THREADS;
	uint32_t sum = 0;
	for (uint64_t i = (uint64_t)blockIdx.x * TILE_THREADS + threadIdx.x; i < p.quads; i += 8 * stride) {
		uint4 x[8];
#pragma unroll
		for (uint32_t k = 0; k < 8; k++)
			x[k] = i + k * stride < p.quads ? __ldg(p.in + i + k * stride) : make_uint4(0, 0, 0, 0);
#pragma unroll
		for (uint32_t k = 0; k < 8; k++)
			sum += x[k].x + x[k].y + x[k].z + x[k].w;
	}
	sum = __reduce_add_sync(TILE_ALL, sum);
	if (threadIdx.x % 32 == 0)
		atomicAdd(p.sums + blockIdx.x % TILE_SLOTS, sum);
}

struct TileCompare {
	const uint32_t *a, *b;
	uint32_t *different;
	uint64_t words;
};

PGACCEL_KERNEL(tile_compare, TileCompare, p, TILE_THREADS, 1)
{
	uint32_t n = 0;
	for (uint64_t i = (uint64_t)blockIdx.x * TILE_THREADS + threadIdx.x; i < p.words; i += (uint64_t)gridDim.x * TILE_THREADS)
		n += p.a[i] != p.b[i];
	n = __reduce_add_sync(TILE_ALL, n);
	if (threadIdx.x % 32 == 0 && n > 0)
		atomicAdd(p.different, n);
}
