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

// TILE_TILES is how many tiles a thread block has: enough bytes under way, and barriers for
// all of them.
#define TILE_TILES 4
#define TILE_BLOCKS (TILE_TILES * TILE_D)

// Section 5.2: a thread block loads tiles into shared memory, unpacks the deltas, and adds
// them up over all its threads, each of which has four neighbouring values of a tile.
PGACCEL_KERNEL(tile_delta_shared, TileParams, p, TILE_THREADS, 8)
{
	__shared__ uint4 data[(TILE_BLOCKS * 130 + TILE_TILES + 1 + 2 + 3 + 3) / 4];
	__shared__ uint32_t warps[TILE_TILES][TILE_THREADS / 32];
	const TileSegment s = p.segments[blockIdx.y];
	const TileFor f = tile_delta(s);
	TileSink sink = tile_sink(s);
	const uint32_t first = blockIdx.x * TILE_BLOCKS;
	if (first < f.blocks) {
		const uint32_t n = min((uint32_t)TILE_BLOCKS, f.blocks - first);
		const uint32_t begin = __ldg(f.starts + first) - 1, end = __ldg(f.starts + first + n);
		const uint32_t *words = tile_load(data, f.data + begin, end - begin);
		const uint32_t lane = threadIdx.x % 32, k = threadIdx.x / 32, m = lane / 8;
		uint32_t starts[TILE_TILES], values[TILE_TILES]; // this warp's blocks, and first values of tiles
#pragma unroll
		for (uint32_t t = 0; t < TILE_TILES; t++) {
			starts[t] = TILE_D * t + k < n ? __ldg(f.starts + first + TILE_D * t + k) - begin : 0;
			values[t] = TILE_D * t < n ? __ldg(f.starts + first + TILE_D * t) - 1 - begin : 0;
		}
		tile_copied();
		__syncthreads();
		uint32_t v[TILE_TILES][4], through[TILE_TILES];
#pragma unroll
		for (uint32_t t = 0; t < TILE_TILES; t++) {
			v[t][0] = v[t][1] = v[t][2] = v[t][3] = 0;
			if (TILE_D * t + k < n) {
				const uint32_t *block = words + starts[t];
				const uint32_t reference = block[0], widths = block[1], width = widths >> (8 * m) & 255, mask = tile_mask(width);
				const uint32_t bit = lane % 8 * 4 * width;
				const uint32_t *miniblock = block + 2 + tile_before(widths, m);
#pragma unroll
				for (uint32_t j = 0; j < 4; j++) {
					const uint32_t b = bit + j * width;
					v[t][j] = reference + (__funnelshift_r(miniblock[b >> 5], miniblock[(b >> 5) + 1], b) & mask);
				}
			}
			// Sums up to each of the four, and of the warp.
			v[t][1] += v[t][0];
			v[t][2] += v[t][1];
			v[t][3] += v[t][2];
			through[t] = scan_warp(v[t][3]);
			if (lane == 31)
				warps[t][k] = through[t];
		}
		__syncthreads();
#pragma unroll
		for (uint32_t t = 0; t < TILE_TILES; t++) {
			if (TILE_D * t + k >= n)
				break;
			uint32_t value = words[values[t]] + through[t] - v[t][3];
#pragma unroll
			for (uint32_t w = 0; w < TILE_THREADS / 32 - 1; w++)
				value += w < k ? warps[t][w] : 0;
			tile_put4(sink, (first + TILE_D * t + k) * 128 + lane * 4, value, value + v[t][0], value + v[t][1], value + v[t][2]);
		}
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
		tile_for_fours(v, f, start, head, lane);
		uint32_t carry = __shfl_sync(TILE_ALL, head, 31);
#pragma unroll
		for (uint32_t k = 0; k < TILE_D; k++) {
			const uint32_t all = v[k][0] + v[k][1] + v[k][2] + v[k][3], through = scan_warp(all);
			const uint32_t a = carry + through - all, b = a + v[k][0], c = b + v[k][1];
			carry += __shfl_sync(TILE_ALL, through, 31);
			if (k < n)
				tile_put4(sink, (first + k) * 128 + lane * 4, a, b, c, c + v[k][2]);
		}
	}
	tile_finish(sink, p);
}
