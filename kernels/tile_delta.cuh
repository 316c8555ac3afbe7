// GPU-DFOR of "Tile-based Lightweight Integer Compression in GPU", section 5: tiles of four
// FOR blocks of deltas, each after its first value; and our own. The format is drawn in
// package compress.
#pragma once
#define TILE_D 4
#include "tile_for.cuh"

// tile_delta has blocks' starts; the two zone words of each tile lie before data.
TILE_INLINE TileFor tile_delta(const TileSegment &s)
{
	TileFor f = tile_for(s);
	f.data += 2 * ((f.blocks + 3) / 4);
	return f;
}

// Section 5.2: a thread block loads a tile into shared memory, unpacks the deltas, and adds
// them up over all its threads, each of which has four neighbouring values.
PGACCEL_KERNEL(tile_delta_shared, TileParams, p, TILE_THREADS, 1)
{
	__shared__ uint32_t starts[TILE_D + 1], data[TILE_D * 130 + 4], warps[TILE_THREADS / 32];
	const TileSegment s = p.segments[blockIdx.y];
	const TileFor f = tile_delta(s);
	TileSink sink = tile_sink(s);
	const uint32_t first = blockIdx.x * TILE_D;
	if (first < f.blocks) {
		const uint32_t n = min((uint32_t)TILE_D, f.blocks - first);
		if (threadIdx.x <= n)
			starts[threadIdx.x] = __ldg(f.starts + first + threadIdx.x);
		__syncthreads();
		const uint32_t begin = starts[0] - 1, words = starts[n] - begin;
		for (uint32_t i = threadIdx.x; i < words; i += TILE_THREADS)
			data[i] = __ldg(f.data + begin + i);
		__syncthreads();
		const uint32_t lane = threadIdx.x % 32, k = threadIdx.x / 32;
		uint32_t v[4] = {0, 0, 0, 0};
		if (k < n) {
			const uint32_t *block = data + starts[k] - begin;
			const uint32_t m = lane / 8, width = block[1] >> (8 * m) & 255;
			const uint32_t *miniblock = block + 2 + tile_before(block[1], m);
#pragma unroll
			for (uint32_t j = 0; j < 4; j++)
				v[j] = block[0] + tile_bits(miniblock, (lane % 8 * 4 + j) * width, width);
		}
		const uint32_t all = v[0] + v[1] + v[2] + v[3], through = tile_scan(all, lane);
		if (lane == 31)
			warps[k] = through;
		__syncthreads();
		uint32_t value = data[0] + through - all;
		for (uint32_t w = 0; w < k; w++)
			value += warps[w];
		if (k < n)
			tile_put4(sink, (first + k) * 128 + lane * 4, value, value + v[0], value + v[0] + v[1], value + v[0] + v[1] + v[2]);
	}
	tile_finish(sink, p);
}

// Ours: a warp decodes a tile as tile_for_warp does its blocks, and adds up 128 deltas at
// a time with one scan of the warp.
PGACCEL_KERNEL(tile_delta_warp, TileParams, p, TILE_THREADS, 1)
{
	const TileSegment s = p.segments[blockIdx.y];
	const TileFor f = tile_delta(s);
	TileSink sink = tile_sink(s);
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t first = (blockIdx.x * (TILE_THREADS / 32) + threadIdx.x / 32) * TILE_D;
	if (first < f.blocks) {
		const uint32_t n = min((uint32_t)TILE_D, f.blocks - first);
		const uint32_t mine = lane / 2 < n ? lane / 2 : n - 1;
		const uint32_t start = __ldg(f.starts + first + mine);
		// Lane 31 reads the first value.
		const uint32_t tile = __shfl_sync(TILE_ALL, start, 0);
		const uint32_t head = __ldg(f.data + (lane == 31 ? tile - 1 : start + lane % 2));
		uint32_t v[TILE_D][4];
#pragma unroll
		for (uint32_t k = 0; k < TILE_D; k++) {
			const uint32_t at = __shfl_sync(TILE_ALL, start, 2 * k) + 2;
			const uint32_t reference = __shfl_sync(TILE_ALL, head, 2 * k), word = __shfl_sync(TILE_ALL, head, 2 * k + 1);
			tile_for_four(v[k], f.data + at, reference, word, lane);
		}
		uint32_t carry = __shfl_sync(TILE_ALL, head, 31);
#pragma unroll
		for (uint32_t k = 0; k < TILE_D; k++) {
			const uint32_t all = v[k][0] + v[k][1] + v[k][2] + v[k][3], through = tile_scan(all, lane);
			const uint32_t a = carry + through - all, b = a + v[k][0], c = b + v[k][1];
			carry += __shfl_sync(TILE_ALL, through, 31);
			if (k < n)
				tile_put4(sink, (first + k) * 128 + lane * 4, a, b, c, c + v[k][2]);
		}
	}
	tile_finish(sink, p);
}
