// A tile of the result of a union of WAH columns in shared memory, which wah_fused.cuh and
// wah_cut.cuh have in common: what atoms do to it, and how it is written.
#pragma once
#include "wah.cuh"

#ifndef WAH_TILE
#define WAH_TILE 512 // chunks: 64 to 1,024, a power of two
#endif
#ifndef WAH_FUSED_THREADS
#define WAH_FUSED_THREADS 128 // 32 to 256
#endif
#ifndef WAH_FUSED_BLOCKS
#define WAH_FUSED_BLOCKS (1024 / WAH_FUSED_THREADS) // of a multiprocessor: 64 registers a thread
#endif
#ifndef WAH_AHEAD
#define WAH_AHEAD 2 // steps of 64 atoms that a warp has on their way: 512 bytes each
#endif

constexpr uint32_t WAH_WARPS = WAH_FUSED_THREADS / 32;

// What is written, together: bits of WahFused.form.
constexpr uint32_t WAH_CHUNKS = 1; // the result's chunks, 63 rows a word
constexpr uint32_t WAH_ROWS = 2;   // a bitmap of 64 rows a word
constexpr uint32_t WAH_COUNT = 4;  // of each tile, how many rows are set

struct WahFused {
	const uint64_t *atoms;
	const uint64_t *places; // stride for each tile
	uint64_t *chunks;       // length words
	uint64_t *rows;         // row_words words
	uint32_t *counts;       // one for each tile
	uint64_t length;        // chunks of a column
	uint64_t row_words;
	uint32_t stride; // columns that are kept
	uint32_t lo;     // the first column of the query
	uint32_t columns;
	uint32_t form;
};

// WahTile is a tile of the result, a block's.
struct WahTile {
	uint32_t low[WAH_TILE], high[WAH_TILE]; // in halves for the sake of atomics and of banks
	uint32_t edges[WAH_TILE]; // how many more runs of ones begin at a chunk than end before it, of those put here
	uint32_t sums[WAH_WARPS];

	__device__ __forceinline__ void clear() {
		for (uint32_t i = threadIdx.x; i < WAH_TILE; i += WAH_FUSED_THREADS)
			low[i] = high[i] = edges[i] = 0;
	}
	__device__ __forceinline__ void add(uint32_t at, uint64_t w) {
		atomicOr(&low[at], uint32_t(w));
		atomicOr(&high[at], uint32_t(w >> 32));
	}
	__device__ __forceinline__ uint64_t get(uint32_t at) const { return uint64_t(high[at]) << 32 | low[at]; }
};

// wah_runs writes the fills of ones of those lanes that have one: few of them each with the whole
// warp, others as edges, for wah_cover. It returns whether there are edges.
__device__ __forceinline__ bool wah_runs(WahTile &b, bool ones, uint32_t n, uint32_t at) {
	uint32_t left = __ballot_sync(0xffffffffu, ones);
	if (__popc(left) > 4) {
		if (ones) {
			atomicAdd(&b.edges[at], 1u);
			if (at + n < WAH_TILE)
				atomicAdd(&b.edges[at + n], 0xffffffffu);
		}
		return true;
	}
	for (; left; left &= left - 1) {
		uint32_t from = __ffs(left) - 1;
		uint32_t begin = __shfl_sync(0xffffffffu, at, from), length = __shfl_sync(0xffffffffu, n, from);
		for (uint32_t i = threadIdx.x & 31; i < length; i += 32)
			b.add(begin + i, WAH_ALL);
	}
	return false;
}

// wah_cover writes ones to the chunks that runs between edges cover. All threads of the block
// come.
__device__ __forceinline__ void wah_cover(WahTile &b) {
	constexpr uint32_t steps = WAH_TILE > WAH_FUSED_THREADS ? WAH_TILE / WAH_FUSED_THREADS : 1;
	uint32_t warp = threadIdx.x >> 5, first = warp * (32 * steps) + (threadIdx.x & 31);
	uint32_t v[steps], before = 0;
#pragma unroll
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t at = first + i * 32;
		v[i] = before + scan_warp(at < WAH_TILE ? b.edges[at] : 0);
		before = __shfl_sync(0xffffffffu, v[i], 31);
	}
	if ((threadIdx.x & 31) == 0)
		b.sums[warp] = before;
	__syncthreads();
	before = 0;
	for (uint32_t w = 0; w < warp; w++)
		before += b.sums[w];
#pragma unroll
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t at = first + i * 32;
		if (at < WAH_TILE && before + v[i]) {
			b.low[at] = uint32_t(WAH_ALL);
			b.high[at] = uint32_t(WAH_ALL >> 32);
		}
	}
	__syncthreads();
}

// wah_put ORs 64 atoms, a and b of each lane, which stand for la and lb chunks. The first is at
// chunk at but for whole tiles; at is left as that of the next 64. It returns whether there are
// edges.
__device__ __forceinline__ bool wah_put(WahTile &t, uint64_t a, uint64_t b, uint32_t la, uint32_t lb, uint32_t &at) {
	uint32_t lengths = la | lb << 16;
	uint32_t at_a = at + (threadIdx.x & 31), at_b = at_a + 32;
	if (__all_sync(0xffffffffu, lengths == 0x10001)) {
		at += 64;
	} else {
		// At most 17 columns have an atom in a half, of 1,024 chunks each: 16 bits are enough.
		uint32_t sum = scan_warp(lengths), all = __shfl_sync(0xffffffffu, sum, 31);
		at_a = at + (sum & 0xffff) - la;
		at += all & 0xffff;
		at_b = at + (sum >> 16) - lb;
		at += all >> 16;
	}
	at_a &= WAH_TILE - 1;
	at_b &= WAH_TILE - 1;
	if (int64_t(a) > 0)
		t.add(at_a, a);
	if (int64_t(b) > 0)
		t.add(at_b, b);
	bool ones_a = a >> 62 == 3, ones_b = b >> 62 == 3, edges = false;
	if (__any_sync(0xffffffffu, ones_a || ones_b)) {
		edges = wah_runs(t, ones_a, la, at_a);
		edges |= wah_runs(t, ones_b, lb, at_b);
	}
	return edges;
}

// wah_write writes the block's tile, or one of ones. All threads of the block come.
__device__ __forceinline__ void wah_write(WahTile &b, const WahFused &p, bool full) {
	uint64_t first = uint64_t(blockIdx.x) * WAH_TILE;
	uint32_t length = p.length - first < WAH_TILE ? uint32_t(p.length - first) : WAH_TILE;
	if (full) { // uniform
		for (uint32_t i = threadIdx.x; i < WAH_TILE; i += WAH_FUSED_THREADS)
			b.low[i] = uint32_t(WAH_ALL), b.high[i] = uint32_t(WAH_ALL >> 32);
		__syncthreads();
	}
	if (p.form & WAH_CHUNKS)
		for (uint32_t i = threadIdx.x; i < length; i += WAH_FUSED_THREADS)
			__stcs(p.chunks + first + i, b.get(i));
	if (p.form & WAH_ROWS) {
		// A tile has WAH_TILE * 63 rows: whole words, since WAH_TILE is a multiple of 64.
		constexpr uint32_t words = WAH_TILE / 64 * 63;
		uint64_t out = uint64_t(blockIdx.x) * words;
		for (uint32_t i = threadIdx.x; i < words && out + i < p.row_words; i += WAH_FUSED_THREADS) {
			uint32_t c = i * 64 / 63, shift = i * 64 % 63;
			uint64_t w = b.get(c) >> shift;
			if (c + 1 < length)
				w |= b.get(c + 1) << (63 - shift);
			__stcs(p.rows + out + i, w);
		}
	}
	if (p.form & WAH_COUNT) {
		uint32_t count = 0;
		for (uint32_t i = threadIdx.x; i < length; i += WAH_FUSED_THREADS)
			count += __popcll(b.get(i));
		count = __reduce_add_sync(0xffffffffu, count);
		if ((threadIdx.x & 31) == 0)
			b.sums[threadIdx.x >> 5] = count;
		__syncthreads();
		if (threadIdx.x == 0) {
			for (uint32_t w = 1; w < WAH_WARPS; w++)
				count += b.sums[w];
			p.counts[blockIdx.x] = count;
		}
	}
}

// WahFlush reads words, which leaves nothing else in the second-level cache.
struct WahFlush {
	uint64_t *words;
	uint64_t length;
};

// wah_flush is for measurements: grid of any size.
PGACCEL_KERNEL(wah_flush, WahFlush, p, 1024, 1) {
	uint64_t sum = 0;
	for (uint64_t i = uint64_t(blockIdx.x) * 1024 + threadIdx.x; i < p.length; i += uint64_t(gridDim.x) * 1024)
		sum ^= p.words[i];
	if (sum == 1) // the words are zeros: never, but the compiler does not know
		p.words[0] = sum;
}

// WahTouch is what wah_touch does in place of a query.
struct WahTouch {
	const uint64_t *words;
	uint64_t *out;   // a word for each block
	uint64_t stride; // words from one block's to the next one's
	uint32_t reads;  // 0: the kernel is empty; 1: a word; 2: another one thereafter, and one is written
};

// wah_touch is for measurements: what a launch takes, and what a read takes in it. words has a
// word more than stride for each block.
PGACCEL_KERNEL(wah_touch, WahTouch, p, WAH_FUSED_THREADS, 1) {
	if (p.reads == 0 || threadIdx.x > 0)
		return;
	uint64_t at = blockIdx.x * p.stride, w = __ldcs(p.words + at);
	bool odd = w == 1; // seldom, but the compiler does not know
	if (p.reads == 2)
		w = __ldcs(p.words + at + p.stride / 2 + odd);
	if (p.reads == 2 || odd)
		p.out[blockIdx.x] = w;
}
