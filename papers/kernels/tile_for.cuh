// GPU-FOR of "Tile-based Lightweight Integer Compression in GPU" (Shanbhag, Yogatama, Yu,
// Madden; SIGMOD 2022), section 4, by the steps of section 4.2, and our own. The format is
// drawn in package compress. A source defines TILE_D, the blocks of 128 values that a
// thread block (or, of tile_for_warp, a warp) decodes.
#pragma once
#include "tile_sink.cuh"

struct TileFor {
	const uint32_t *starts, *data;
	uint32_t blocks;
};

TILE_INLINE TileFor tile_for(const TileSegment &s)
{
	TileFor f;
	f.blocks = (s.rows + 127) / 128;
	f.starts = s.words + 8;
	f.data = f.starts + f.blocks + 1;
	return f;
}

// tile_for_item is Algorithm 1 from line 2 on, of a data block that lies anywhere.
TILE_INLINE uint32_t tile_for_item(const uint32_t *data_block, uint32_t thread)
{
	const uint32_t reference = data_block[0];
	const uint32_t miniblock = thread / 32, index = thread & 31;
	uint32_t bitwidth_word = data_block[1], offset = 0;
	for (uint32_t j = 0; j < miniblock; j++) {
		offset += bitwidth_word & 255;
		bitwidth_word >>= 8;
	}
	const uint32_t bitwidth = bitwidth_word & 255;
	return reference + tile_bits(data_block + 2 + offset, bitwidth * index, bitwidth);
}

// The base algorithm: a thread block decodes a block of 128 values, a thread one value,
// from global memory.
PGACCEL_KERNEL(tile_for_base, TileParams, p, TILE_THREADS, 1)
{
	const TileSegment s = p.segments[blockIdx.y];
	const TileFor f = tile_for(s);
	TileSink sink = tile_sink(s);
	if (blockIdx.x < f.blocks) {
		const uint32_t item = tile_for_item(f.data + f.starts[blockIdx.x], threadIdx.x);
		tile_put(sink, blockIdx.x * 128 + threadIdx.x, item);
	}
	tile_finish(sink, p);
}

// tile_for_load has a tile's n blocks, from a word of data on, in shared memory. It ends with
// a barrier.
TILE_INLINE const uint32_t *tile_for_load(const TileFor &f, uint32_t begin, uint32_t end, uint4 *data)
{
	const uint32_t *tile = tile_load(data, f.data + begin, end - begin);
	tile_copied();
	__syncthreads();
	return tile;
}

// TILE_WORDS is the room for a tile of words of 32 bits at worst, in units of 16 bytes.
#define TILE_WORDS ((TILE_D * 130 + 2 + 3 + 3) / 4)

// Optimisation 1, operating in shared memory, where TILE_D is 1; and optimisation 2,
// processing multiple blocks, where it is more.
PGACCEL_KERNEL(tile_for_shared, TileParams, p, TILE_THREADS, 1)
{
	__shared__ uint4 data[TILE_WORDS];
	__shared__ uint32_t starts[TILE_D];
	const TileSegment s = p.segments[blockIdx.y];
	const TileFor f = tile_for(s);
	TileSink sink = tile_sink(s);
	const uint32_t first = blockIdx.x * TILE_D;
	if (first < f.blocks) {
		const uint32_t n = min((uint32_t)TILE_D, f.blocks - first);
		const uint32_t begin = __ldg(f.starts + first), end = __ldg(f.starts + first + n);
		if (threadIdx.x < n)
			starts[threadIdx.x] = __ldg(f.starts + first + threadIdx.x) - begin;
		const uint32_t *tile = tile_for_load(f, begin, end, data);
#pragma unroll
		for (uint32_t k = 0; k < TILE_D; k++)
			if (k < n)
				tile_put(sink, (first + k) * 128 + threadIdx.x, tile_for_item(tile + starts[k], threadIdx.x));
	}
	tile_finish(sink, p);
}

// tile_for_blocks decodes n blocks of a tile in shared memory, of which heads has each
// miniblock's first bit, width, mask and reference. A warp has a miniblock of each block, and
// reads its head, one word and the next: consecutive ones, so that no two lanes meet in a bank.
template <bool whole>
TILE_INLINE void tile_for_blocks(TileSink &sink, const uint32_t *tile, const uint4 *heads, uint32_t first, uint32_t n)
{
	const uint32_t m = threadIdx.x / 32, index = threadIdx.x & 31;
#pragma unroll
	for (uint32_t k = 0; k < TILE_D; k++) {
		if (!whole && k >= n)
			break;
		const uint4 head = heads[4 * k + m];
		const uint32_t bit = head.x + index * head.y;
		const uint32_t *word = tile + (bit >> 5);
		const uint32_t v = (__funnelshift_r(word[0], word[1], bit) & head.z) + head.w;
		const uint32_t row = (first + k) * 128 + threadIdx.x;
		if (whole && TILE_SUM)
			sink.sum += v; // all rows are there
		else
			tile_put(sink, row, v);
	}
}

// Optimisation 3, precomputing miniblock offsets: 4*TILE_D threads do it for all, while the
// words are on their way.
PGACCEL_KERNEL(tile_for_offsets, TileParams, p, TILE_THREADS, 8)
{
	__shared__ uint4 data[TILE_WORDS], heads[TILE_D * 4];
	const TileSegment s = p.segments[blockIdx.y];
	const TileFor f = tile_for(s);
	TileSink sink = tile_sink(s);
	const uint32_t first = blockIdx.x * TILE_D;
	if (first < f.blocks) {
		const uint32_t n = min((uint32_t)TILE_D, f.blocks - first);
		const uint32_t begin = __ldg(f.starts + first), end = __ldg(f.starts + first + n);
		const uint32_t k = threadIdx.x / 4, m = threadIdx.x % 4;
		const uint32_t block = k < n ? __ldg(f.starts + first + k) : begin;
		const uint32_t *tile = tile_load(data, f.data + begin, end - begin);
		if (k < n) {
			const uint32_t reference = __ldg(f.data + block), word = __ldg(f.data + block + 1), width = word >> (8 * m) & 255;
			heads[threadIdx.x] = make_uint4(32 * (block - begin + 2 + tile_before(word, m)), width, tile_mask(width), reference);
		}
		tile_copied();
		__syncthreads();
		if ((first + TILE_D) * 128 <= s.rows)
			tile_for_blocks<true>(sink, tile, heads, first, n);
		else
			tile_for_blocks<false>(sink, tile, heads, first, n);
	}
	tile_finish(sink, p);
}

// tile_for_four decodes four neighbouring values of a block from global memory.
TILE_INLINE void tile_for_four(uint32_t *v, const uint32_t *body, uint32_t reference, uint32_t bitwidth_word, uint32_t lane)
{
	const uint32_t m = lane / 8, width = bitwidth_word >> (8 * m) & 255;
	const uint32_t *miniblock = body + tile_before(bitwidth_word, m);
	const uint32_t bit = lane % 8 * 4 * width;
#pragma unroll
	for (uint32_t j = 0; j < 4; j++)
		v[j] = reference + tile_bits_global(miniblock, bit + j * width, width);
}

// tile_for_fours does so for TILE_D blocks. Lanes 2k and 2k+1 have the first word of block k, and
// its head: the reference and the word of widths.
TILE_INLINE void tile_for_fours(uint32_t (&v)[TILE_D][4], const TileFor &f, uint32_t start, uint32_t head, uint32_t lane)
{
#pragma unroll
	for (uint32_t k = 0; k < TILE_D; k++) {
		const uint32_t at = __shfl_sync(TILE_ALL, start, 2 * k) + 2;
		const uint32_t reference = __shfl_sync(TILE_ALL, head, 2 * k), word = __shfl_sync(TILE_ALL, head, 2 * k + 1);
		tile_for_four(v[k], f.data + at, reference, word, lane);
	}
}

// Ours: a warp decodes TILE_D blocks, a lane four neighbouring values of each, without
// shared memory and barriers. All loads of a kind are under way at once, the first-level
// cache serves words that lanes share, and 16 bytes are stored at a time.
PGACCEL_KERNEL(tile_for_warp, TileParams, p, TILE_THREADS, 1)
{
	const TileSegment s = p.segments[blockIdx.y];
	const TileFor f = tile_for(s);
	TileSink sink = tile_sink(s);
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t first = (blockIdx.x * (TILE_THREADS / 32) + threadIdx.x / 32) * TILE_D;
	if (first < f.blocks) {
		const uint32_t n = min((uint32_t)TILE_D, f.blocks - first);
		const uint32_t mine = lane / 2 < n ? lane / 2 : n - 1;
		const uint32_t start = __ldg(f.starts + first + mine);
		const uint32_t head = __ldg(f.data + start + lane % 2);
		uint32_t v[TILE_D][4];
		tile_for_fours(v, f, start, head, lane);
#pragma unroll
		for (uint32_t k = 0; k < TILE_D; k++)
			if (k < n)
				tile_put4(sink, (first + k) * 128 + lane * 4, v[k][0], v[k][1], v[k][2], v[k][3]);
	}
	tile_finish(sink, p);
}
