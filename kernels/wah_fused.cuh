// The union of WAH columns in one pass: no decompressed columns, no scan over whole columns.
//
// A block owns a tile of WAH_TILE chunks of the result. Where a column's atoms for the tile lie
// was found out once, when the columns were uploaded, and is kept as a place of 64 bits:
//
//    63                     30 29       20 19       10 9         0
//   +-------------------------+-----------+-----------+-----------+
//   | first atom that overlaps | atoms - 1 | first - 1 | last - 1  |
//   +-------------------------+-----------+-----------+-----------+
//
// where first and last are how many of the tile's chunks those two atoms stand for. One atom for
// the whole tile is a fill, never looked at: its place has atoms - 1 = 0 and, for first - 1, 1
// if it is of ones. The chunks of a column's atoms sum up to WAH_TILE exactly: past the end of
// the columns the last atom is taken to go on, and a tile whose only atom is a literal, of the
// last chunk, is given the word after it as a second one. Nothing past the end is ever written.
//
// Places lie tile by tile: a block reads those of its columns at once, leaves out fills of zeros,
// and is done where it meets one of ones. The atoms that are left, of all columns, are one
// sequence: warps share it by columns and take 64 atoms at a time, so lanes are busy however few
// atoms a column has. Since every column sums up to WAH_TILE, one prefix sum over the lengths,
// modulo WAH_TILE, gives each atom's chunk without regard to where a column ends. Both halves of
// the 64 go through the same shuffles, 16 bits each.
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

// WahBlock is a block's shared memory: a tile of the result, and what there is to do for it, the
// atoms of all columns that have some as one sequence. It is one structure so that there is one
// address to know.
struct WahBlock {
	uint64_t base[WAH_FUSED_THREADS];      // of each column: its first atom's number less start
	uint32_t start[WAH_FUSED_THREADS + 2]; // of each column: the first of its atoms in the sequence; at last, the end
	uint32_t ends[WAH_FUSED_THREADS];      // of each column: the low 20 bits of its place
	uint32_t low[WAH_TILE], high[WAH_TILE]; // the tile, in halves for the sake of atomics and of banks
	uint32_t edges[WAH_TILE]; // how many more runs of ones begin at a chunk than end before it, of those put here
	uint32_t sums[WAH_WARPS];

	__device__ __forceinline__ void add(uint32_t at, uint64_t w) {
		atomicOr(&low[at], uint32_t(w));
		atomicOr(&high[at], uint32_t(w >> 32));
	}
	__device__ __forceinline__ uint64_t get(uint32_t at) const { return uint64_t(high[at]) << 32 | low[at]; }
};

// WahStep is 64 atoms on their way: two for each lane.
struct WahStep {
	uint64_t a, b; // 0 past the end
	uint32_t n;    // chunks in the tile if it is a first or a last atom, else 0: of a, and of b << 16
};

// wah_share makes [k, last) of the columns this warp's: about as many atoms as every warp has.
__device__ __forceinline__ void wah_share(const WahBlock &b, uint32_t columns, uint32_t atoms, uint32_t &k, uint32_t &last) {
	uint32_t warp = threadIdx.x >> 5, from = atoms * warp / WAH_WARPS, to = atoms * (warp + 1) / WAH_WARPS;
	k = last = 0;
#pragma unroll 1
	for (uint32_t i = threadIdx.x & 31; i < ((columns + 31) & ~31u); i += 32) {
		uint32_t start = i < columns ? b.start[i] : atoms;
		k += __popc(__ballot_sync(0xffffffffu, start < from));
		last += __popc(__ballot_sync(0xffffffffu, start < to));
	}
}

// wah_atom loads atom j of the sequence, which is of column k, its first one or not.
__device__ __forceinline__ uint64_t wah_atom(const uint64_t *atoms, const WahBlock &b, uint32_t k, uint32_t j, bool first, uint32_t &n) {
	bool last = b.start[k + 1] == j + 1;
	if (first || last)
		n = (b.ends[k] >> (first ? 10 : 0) & 1023) + 1;
	return __ldcs(atoms + (b.base[k] + j));
}

// wah_step loads atoms j to j + 63 of the sequence, of which end is the end, for a warp. Column
// k has the atom before j, and then that of the last of the 64; columns up to last begin before
// end.
__device__ __forceinline__ WahStep wah_step(const uint64_t *atoms, const WahBlock &b, uint32_t &k, uint32_t last, uint32_t j,
                                            uint32_t end) {
	uint32_t lane = threadIdx.x & 31;
	WahStep s = {0, 0, 0};
	if (b.start[k + 1] - j > 64) { // in the midst of a column
		const uint64_t *from = atoms + (b.base[k] + j + lane);
		s.a = __ldcs(from);
		s.b = __ldcs(from + 32);
		return s;
	}
	// Which of the 64 is a column's first. A column has two atoms or more: 32 columns are enough.
	uint32_t next = k + 1 + lane, upto = 0xffffffffu >> (31 - lane);
	uint32_t x = b.start[next < last ? next : last] - j;
	uint32_t heads_a = __reduce_or_sync(0xffffffffu, x < 32 ? 1u << x : 0);
	uint32_t heads_b = __reduce_or_sync(0xffffffffu, x - 32 < 32 ? 1u << (x - 32) : 0);
	uint32_t na = 0, nb = 0;
	if (j + lane < end)
		s.a = wah_atom(atoms, b, k + __popc(heads_a & upto), j + lane, heads_a >> lane & 1, na);
	k += __popc(heads_a);
	if (j + 32 + lane < end)
		s.b = wah_atom(atoms, b, k + __popc(heads_b & upto), j + 32 + lane, heads_b >> lane & 1, nb);
	k += __popc(heads_b);
	s.n = na | nb << 16;
	return s;
}

// wah_length is how many chunks of the tile an atom stands for; n as WahStep has it. Past the end
// of the sequence it does not matter.
__device__ __forceinline__ uint32_t wah_length(uint64_t a, uint32_t n) { return n ? n : int64_t(a) < 0 ? uint32_t(a) : 1; }

// wah_runs writes the fills of ones of those lanes that have one: few of them each with the whole
// warp, others as edges, for wah_cover. It returns whether there are edges.
__device__ __forceinline__ bool wah_runs(WahBlock &b, bool ones, uint32_t n, uint32_t at) {
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
__device__ __forceinline__ void wah_cover(WahBlock &b) {
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

// wah_put ORs a step's atoms, the first of which is at chunk at but for whole tiles, and leaves at
// as the next step's. It returns whether there are edges.
__device__ __forceinline__ bool wah_put(WahBlock &b, const WahStep &s, uint32_t &at) {
	uint32_t la = wah_length(s.a, s.n & 0xffff), lb = wah_length(s.b, s.n >> 16), lengths = la | lb << 16;
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
	if (int64_t(s.a) >= 0)
		b.add(at_a, s.a);
	if (int64_t(s.b) >= 0)
		b.add(at_b, s.b);
	bool ones_a = s.a >> 62 == 3, ones_b = s.b >> 62 == 3, edges = false;
	if (__any_sync(0xffffffffu, ones_a || ones_b)) {
		edges = wah_runs(b, ones_a, la, at_a);
		edges |= wah_runs(b, ones_b, lb, at_b);
	}
	return edges;
}

// wah_union ORs the atoms of columns [k, last) of the sequence into the tile, for a warp. It
// returns whether there are edges.
__device__ __forceinline__ bool wah_union(const uint64_t *atoms, WahBlock &b, uint32_t k, uint32_t last) {
	if (k >= last)
		return false;
	uint32_t j = b.start[k], end = b.start[last], at = 0;
	uint32_t ahead = j; // what is on its way ends here
	k--;                // -1 for the first: its successor's head is the first thing that a step meets
	bool edges = false;
	WahStep ring[WAH_AHEAD];
#pragma unroll
	for (uint32_t i = 0; i < WAH_AHEAD; i++) {
		ring[i] = {0, 0, 0};
		if (ahead < end)
			ring[i] = wah_step(atoms, b, k, last, ahead, end);
		ahead += 64;
	}
	// Unrolled, so that registers to which a load is on its way are not moved.
	while (j < end) {
#pragma unroll
		for (uint32_t i = 0; i < WAH_AHEAD; i++) {
			if (j < end) {
				edges |= wah_put(b, ring[i], at);
				if (ahead < end)
					ring[i] = wah_step(atoms, b, k, last, ahead, end);
				ahead += 64;
				j += 64;
			}
		}
	}
	return edges;
}

// wah_fused: a block for each b.
PGACCEL_KERNEL(wah_fused, WahFused, p, WAH_FUSED_THREADS, WAH_FUSED_BLOCKS) {
	__shared__ WahBlock b;
	const uint64_t *places = p.places + uint64_t(blockIdx.x) * p.stride + p.lo;
	uint32_t warp = threadIdx.x >> 5;
	uint64_t e = threadIdx.x < p.columns ? __ldcs(places + threadIdx.x) : 0;
	for (uint32_t i = threadIdx.x; i < WAH_TILE; i += WAH_FUSED_THREADS)
		b.low[i] = b.high[i] = b.edges[i] = 0;
	bool full = false, edges = false;
	for (uint32_t from = 0; from < p.columns; from += WAH_FUSED_THREADS) {
		if (from > 0) {
			__syncthreads();
			uint32_t c = from + threadIdx.x;
			e = c < p.columns ? __ldcs(places + c) : 0;
		}
		uint32_t n = (uint32_t(e) >> 20 & 1023) + 1;
		bool live = n > 1;
		full = __syncthreads_or(!live && (uint32_t(e) >> 10 & 1023) == 1);
		if (full)
			break;
		// Columns in bits 23 to 31, their atoms in those below.
		uint32_t total, own = live ? 1u << 23 | n : 0;
		uint32_t before = scan_block<WAH_WARPS>(own, b.sums, total) - own;
		uint32_t columns = total >> 23, atoms = total & 0x7fffff;
		if (live) {
			uint32_t c = before >> 23, at = before & 0x7fffff;
			b.base[c] = (e >> 30) - at;
			b.start[c] = at;
			b.ends[c] = uint32_t(e) & 0xfffff;
		}
		if (threadIdx.x == 0)
			b.start[columns] = atoms;
		__syncthreads();
		uint32_t k, last;
		wah_share(b, columns, atoms, k, last);
		edges |= wah_union(p.atoms, b, k, last);
	}
	if (__syncthreads_or(edges) && !full)
		wah_cover(b);
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
			b.sums[warp] = count;
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
