// What decoders of whole columns have in common: segments, and what becomes of values.
// A source defines TILE_SUM: 1 adds the values up, 0 writes them.
#pragma once
#include "scan.cuh"

#ifdef PGACCEL_EMULATOR
#define TILE_INLINE static inline
#else
#define TILE_INLINE static __device__ __forceinline__
#endif

#define TILE_THREADS 128
#define TILE_ALL 0xffffffffu
#define TILE_SLOTS 1024 // of partial sums, so that blocks do not wait for each other

// TileSegment is a column of a segment, encoded; blockIdx.y is its number. out has room
// for rows rounded up to 1024.
struct TileSegment {
	const uint32_t *words;
	uint32_t *out;
	uint32_t rows;
	uint32_t reference; // of lanes
};

struct TileParams {
	const TileSegment *segments;
	uint32_t *sums; // TILE_SLOTS, modulo 2^32 each
};

// TileSink takes values.
struct TileSink {
	uint32_t *out;
	uint32_t rows;
	uint32_t sum;
};

TILE_INLINE TileSink tile_sink(const TileSegment &s)
{
	TileSink sink = {s.out, s.rows, 0};
	return sink;
}

TILE_INLINE void tile_put(TileSink &sink, uint32_t row, uint32_t v)
{
	if (TILE_SUM)
		sink.sum += row < sink.rows ? v : 0;
	else
		sink.out[row] = v;
}

// tile_put4 takes the values of four rows; the first is a multiple of four.
TILE_INLINE void tile_put4(TileSink &sink, uint32_t row, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	if (!TILE_SUM)
		*(uint4 *)(sink.out + row) = make_uint4(a, b, c, d);
	else if (row + 3 < sink.rows)
		sink.sum += a + b + c + d;
	else {
		tile_put(sink, row, a);
		tile_put(sink, row + 1, b);
		tile_put(sink, row + 2, c);
	}
}

// tile_finish adds a block's sum to the result. All threads of the block come.
TILE_INLINE void tile_finish(const TileSink &sink, const TileParams &p)
{
	if (!TILE_SUM)
		return;
	__shared__ uint32_t warps[TILE_THREADS / 32];
	const uint32_t sum = __reduce_add_sync(TILE_ALL, sink.sum);
	if (threadIdx.x % 32 == 0)
		warps[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x == 0) {
		uint32_t all = 0;
		for (uint32_t w = 0; w < TILE_THREADS / 32; w++)
			all += warps[w];
		atomicAdd(p.sums + (blockIdx.y * gridDim.x + blockIdx.x) % TILE_SLOTS, all);
	}
}

// tile_copy16 begins to copy 16 bytes to shared memory, past registers where the device can;
// tile_copied waits for all that this thread has begun.
TILE_INLINE void tile_copy16(uint32_t *to, const uint32_t *from)
{
#ifdef PGACCEL_EMULATOR
	*(uint4 *)to = __ldg((const uint4 *)from);
#else
	asm volatile("{\n\t.reg .u64 a;\n\t.reg .u32 b;\n\tcvta.to.shared.u64 a, %0;\n\tcvt.u32.u64 b, a;\n\t"
	             "cp.async.cg.shared.global [b], [%1], 16;\n\t}" ::"l"(to), "l"(from) : "memory");
#endif
}

TILE_INLINE void tile_copied(void)
{
#ifndef PGACCEL_EMULATOR
	asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// tile_load begins to copy words to shared memory, 16 bytes at a time, and returns where they
// begin: at the same place in 16 bytes as in global memory, where up to three words before
// them can be read. data has room for words and 3 more; it is there after tile_copied and a
// barrier.
TILE_INLINE const uint32_t *tile_load(uint4 *data, const uint32_t *from, uint32_t words)
{
	uint32_t *to = (uint32_t *)data;
	const uint32_t skew = (uint32_t)((size_t)from >> 2) & 3, end = skew + words;
	from -= skew;
	for (uint32_t i = threadIdx.x * 4; i < end; i += TILE_THREADS * 4) {
		if (i + 4 <= end)
			tile_copy16(to + i, from + i);
		else
			for (uint32_t j = i; j < end; j++)
				to[j] = __ldg(from + j);
	}
	return to + skew;
}

// tile_mask has the low width bits, of which there are up to 32.
TILE_INLINE uint32_t tile_mask(uint32_t width) { return width >= 32 ? 0xffffffffu : (1u << width) - 1; }

// tile_bits returns width bits from a bit of words on. It reads a word more than it needs.
TILE_INLINE uint32_t tile_bits(const uint32_t *words, uint32_t bit, uint32_t width)
{
	const uint32_t *word = words + (bit >> 5);
	return __funnelshift_r(word[0], word[1], bit & 31) & tile_mask(width);
}

// tile_bits_global is tile_bits of memory that nobody writes.
TILE_INLINE uint32_t tile_bits_global(const uint32_t *words, uint32_t bit, uint32_t width)
{
	const uint32_t *word = words + (bit >> 5);
	return __funnelshift_r(__ldg(word), __ldg(word + 1), bit & 31) & tile_mask(width);
}

// tile_before returns the sum of the bytes of widths below byte m: where miniblock m begins.
TILE_INLINE uint32_t tile_before(uint32_t widths, uint32_t m)
{
	return ((widths << 8) + (widths << 16) + (widths << 24)) >> (8 * m) & 255;
}
