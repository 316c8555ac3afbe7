// Device lanes, as gpu/program's package comment draws them, to plain values. A source
// defines TILE_WIDTH, 1 to 32, and TILE_VECTORS, how many vectors a warp decodes at once.
#pragma once
#include "tile_sink.cuh"

TILE_INLINE uint32_t tile_lanes_first(void)
{
	return (blockIdx.x * (TILE_THREADS / 32) + threadIdx.x / 32) * TILE_VECTORS;
}

// A lane of the warp has a lane of the vector: words of 4 bytes, 128 bytes a load.
PGACCEL_KERNEL(tile_lanes_words, TileParams, p, TILE_THREADS, 1)
{
	const TileSegment s = p.segments[blockIdx.y];
	TileSink sink = tile_sink(s);
	const uint32_t lane = threadIdx.x % 32, first = tile_lanes_first(), vectors = (s.rows + 1023) / 1024;
#pragma unroll
	for (uint32_t k = 0; k < TILE_VECTORS; k++) {
		const uint32_t vector = first + k;
		if (vector >= vectors)
			break;
		const uint32_t *words = s.words + (size_t)vector * (32 * TILE_WIDTH) + lane;
		uint32_t w[TILE_WIDTH + 1];
#pragma unroll
		for (uint32_t i = 0; i < TILE_WIDTH; i++)
			w[i] = __ldg(words + 32 * i);
		w[TILE_WIDTH] = 0;
#pragma unroll
		for (uint32_t i = 0; i < 32; i++) {
			const uint32_t bit = i * TILE_WIDTH;
			const uint32_t v = __funnelshift_r(w[bit >> 5], w[(bit >> 5) + 1], bit & 31) & tile_mask(TILE_WIDTH);
			tile_put(sink, vector * 1024 + i * 32 + lane, v + s.reference);
		}
	}
	tile_finish(sink, p);
}

// Loads and stores of 16 bytes: a thread has four lanes of the vector, and a quarter of the
// warp (8 threads, all 32 lanes) has 8 of the 32 positions. The positions of a quarter
// begin at one of the bits 0, 8, 16, 24 of a word; shifting all words by it once makes the
// rest constants.
PGACCEL_KERNEL(tile_lanes_quads, TileParams, p, TILE_THREADS, 1)
{
	enum { aligned = (TILE_WIDTH + 3) / 4, loaded = aligned + (TILE_WIDTH % 4 != 0) };
	const TileSegment s = p.segments[blockIdx.y];
	TileSink sink = tile_sink(s);
	const uint32_t lane = threadIdx.x % 32, quarter = lane / 8, four = lane % 8 * 4;
	const uint32_t first = tile_lanes_first(), vectors = (s.rows + 1023) / 1024;
	const uint32_t bits = quarter * 8 * TILE_WIDTH, word = bits >> 5, shift = bits & 31;
	uint32_t w[TILE_VECTORS][loaded + 1][4];
#pragma unroll
	for (uint32_t k = 0; k < TILE_VECTORS; k++) {
		// A vector that is not there is read as the one before it, and not written.
		const uint32_t vector = min(first + k, vectors - 1);
		const uint32_t *words = s.words + (size_t)vector * (32 * TILE_WIDTH) + word * 32 + four;
		if (first < vectors) {
#pragma unroll
			for (uint32_t i = 0; i < loaded; i++) {
				const uint4 x = __ldg((const uint4 *)(words + 32 * i));
				w[k][i][0] = x.x;
				w[k][i][1] = x.y;
				w[k][i][2] = x.z;
				w[k][i][3] = x.w;
			}
		}
	}
#pragma unroll
	for (uint32_t k = 0; k < TILE_VECTORS; k++) {
		if (first + k >= vectors)
			break;
#pragma unroll
		for (uint32_t j = 0; j < 4; j++) {
			w[k][loaded][j] = 0;
			if (TILE_WIDTH % 4 != 0)
#pragma unroll
				for (uint32_t i = 0; i < aligned; i++)
					w[k][i][j] = __funnelshift_r(w[k][i][j], w[k][i + 1][j], shift);
		}
#pragma unroll
		for (uint32_t i = 0; i < 8; i++) {
			const uint32_t bit = i * TILE_WIDTH, at = bit >> 5;
			uint32_t v[4];
#pragma unroll
			for (uint32_t j = 0; j < 4; j++)
				v[j] = (__funnelshift_r(w[k][at][j], w[k][at + 1][j], bit & 31) & tile_mask(TILE_WIDTH)) + s.reference;
			tile_put4(sink, (first + k) * 1024 + (quarter * 8 + i) * 32 + four, v[0], v[1], v[2], v[3]);
		}
	}
	tile_finish(sink, p);
}
