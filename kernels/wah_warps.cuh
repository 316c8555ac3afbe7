// The union of WAH columns in one pass, of atoms as wah_cut.cuh has them, by warps that have
// tiles of their own: for results so large that there are more tiles than warps on the device.
//
// The grid is as large as the device holds at a time, and warp w of W takes tiles w, w + W,
// w + 2W and so on: nothing is launched for a tile. What a warp reads is one sequence of steps of
// 64 atoms, tile after tile. WAH_AHEAD of them are on their way whatever tile they are of, so the
// reads of the next tiles go on while one is written. No warp waits for another.
//
// A tile of one warp needs no columns' places but where its first column begins and where its
// last one ends. What its places say of columns that are ones all over it, masks say once more, a
// bit for each column: of 64 columns, a tile costs three words and not 64. A lane reads them for
// one of the warp's next 32 tiles.
#pragma once
#include "wah_cut.cuh"

#ifndef WAH_RUNS
#define WAH_RUNS 0 // runs of ones in 64 atoms that are written chunk by chunk; more become edges
#endif

struct WahWarps {
	WahFused q;            // counts: one for each warp
	const uint64_t *masks; // words for each tile: bit c % 64 of word c / 64 where column c is ones
	uint32_t words;
	uint32_t tiles;
};

// WahWarp is a tile of the result, a warp's.
struct WahWarp {
	alignas(16) uint32_t low[WAH_TILE];
	alignas(16) uint32_t high[WAH_TILE];
	alignas(16) uint32_t edges[WAH_TILE];
};

// WahTiles are the warp's next tiles: of lane i the i-th of them.
struct WahTiles {
	uint64_t begin; // the first atom's number
	uint32_t total; // atoms; WAH_FULL where the tile is ones
};
constexpr uint32_t WAH_FULL = 0xffffffff;

// wah_tiles reads what is to be known of tile t, the lane's. At and behind the end, nothing is.
__device__ __forceinline__ WahTiles wah_tiles(const WahWarps &p, uint64_t t) {
	WahTiles n = {0, 0};
	if (t >= p.tiles)
		return n;
	const uint64_t *places = p.q.places + t * p.q.stride + p.q.lo;
	uint64_t begin = __ldg(places), end = __ldg(places + p.q.columns);
	const uint64_t *masks = p.masks + t * p.words;
	uint32_t hi = p.q.lo + p.q.columns, last = (hi - 1) / 64;
	uint64_t ones = 0;
#pragma unroll 1
	for (uint32_t w = p.q.lo / 64; w <= last; w++) {
		uint64_t m = __ldg(masks + w);
		if (w == p.q.lo / 64)
			m &= ~uint64_t(0) << p.q.lo % 64;
		if (w == last)
			m &= ~uint64_t(0) >> (63 - (hi - 1) % 64);
		ones |= m;
	}
	n.begin = begin & WAH_PLACE;
	n.total = ones ? WAH_FULL : uint32_t((end & WAH_PLACE) - n.begin);
	return n;
}

// WahSource is where the warp's next 64 atoms are.
struct WahSource {
	WahTiles tiles;
	const uint64_t *atoms; // of the tile
	uint64_t t;            // the tile's number
	uint32_t total, j;     // the tile's atoms, and how many of them are on their way
	uint32_t i;            // of tiles
	bool full;

	// open makes lane i's tile the next one.
	__device__ __forceinline__ void open(const WahWarps &p) {
		atoms = p.q.atoms + __shfl_sync(0xffffffffu, tiles.begin, i);
		total = __shfl_sync(0xffffffffu, tiles.total, i);
		full = total == WAH_FULL;
		total = full ? 0 : total;
		j = 0;
	}

	// next sends for 64 atoms, a and b of each lane, 0 past the tile's end. It returns whether they
	// are the tile's last ones: 1, or 3 of a tile that is ones.
	__device__ __forceinline__ uint32_t next(const WahWarps &p, uint32_t warps, uint64_t &a, uint64_t &b) {
		uint32_t lane = threadIdx.x & 31, at = j + lane, ends = 0;
		a = at < total ? __ldcs(atoms + at) : 0;
		b = at + 32 < total ? __ldcs(atoms + at + 32) : 0;
		j += 64;
		if (j >= total) {
			ends = full ? 3 : 1;
			t += warps;
			if (++i == 32) {
				i = 0;
				if (t < p.tiles)
					tiles = wah_tiles(p, t + uint64_t(lane) * warps);
			}
			open(p);
		}
		return ends;
	}
};

// wah_warp_put is wah_put of a warp's own tile. It returns whether there are edges.
__device__ __forceinline__ bool wah_warp_put(WahWarp &tile, uint64_t a, uint64_t b, uint32_t &at) {
	uint32_t la = wah_chunks(a), lb = wah_chunks(b), lengths = la | lb << 16;
	uint32_t at_a = at + (threadIdx.x & 31), at_b = at_a + 32;
	bool ones_a = false, ones_b = false, edges = false;
	if (__all_sync(0xffffffffu, lengths == 0x10001)) {
		at += 64;
	} else {
		uint32_t sum = scan_warp(lengths), all = __shfl_sync(0xffffffffu, sum, 31);
		at_a = at + (sum & 0xffff) - la;
		at += all & 0xffff;
		at_b = at + (sum >> 16) - lb;
		at += all >> 16;
	}
	ones_a = a >> 62 == 3;
	ones_b = b >> 62 == 3;
	at_a &= WAH_TILE - 1;
	at_b &= WAH_TILE - 1;
	// Of sparse literals, one half is 0.
	bool lit_a = int64_t(a) > 0, lit_b = int64_t(b) > 0;
	if (lit_a && uint32_t(a))
		atomicOr(&tile.low[at_a], uint32_t(a));
	if (lit_a && uint32_t(a >> 32))
		atomicOr(&tile.high[at_a], uint32_t(a >> 32));
	if (lit_b && uint32_t(b))
		atomicOr(&tile.low[at_b], uint32_t(b));
	if (lit_b && uint32_t(b >> 32))
		atomicOr(&tile.high[at_b], uint32_t(b >> 32));
	uint32_t runs_a = __ballot_sync(0xffffffffu, ones_a), runs_b = __ballot_sync(0xffffffffu, ones_b);
	if (!(runs_a | runs_b))
		return false;
	if (WAH_RUNS && __popc(runs_a) + __popc(runs_b) <= WAH_RUNS) {
		for (uint32_t left = runs_a | runs_b; left; left &= left - 1) {
			uint32_t from = __ffs(left) - 1;
			for (uint32_t half = 0; half < 2; half++) {
				if (!((half ? runs_b : runs_a) >> from & 1))
					continue;
				uint32_t begin = __shfl_sync(0xffffffffu, half ? at_b : at_a, from), n = __shfl_sync(0xffffffffu, half ? lb : la, from);
				for (uint32_t i = threadIdx.x & 31; i < n; i += 32) {
					// Warps do not share tiles, but lanes' ORs above may still be on their way.
					atomicOr(&tile.low[begin + i], uint32_t(WAH_ALL));
					atomicOr(&tile.high[begin + i], uint32_t(WAH_ALL >> 32));
				}
			}
		}
		return false;
	}
	if (ones_a) {
		atomicAdd(&tile.edges[at_a], 1u);
		if (at_a + la < WAH_TILE)
			atomicAdd(&tile.edges[at_a + la], 0xffffffffu);
		edges = true;
	}
	if (ones_b) {
		atomicAdd(&tile.edges[at_b], 1u);
		if (at_b + lb < WAH_TILE)
			atomicAdd(&tile.edges[at_b + lb], 0xffffffffu);
		edges = true;
	}
	return __any_sync(0xffffffffu, edges);
}

// wah_warp_cover writes ones to the chunks that runs between edges cover, and leaves no edges. A
// lane has two neighbouring chunks at a time.
__device__ __forceinline__ void wah_warp_cover(WahWarp &tile) {
	uint32_t before = 0;
#pragma unroll 2
	for (uint32_t i = (threadIdx.x & 31) * 2; i < WAH_TILE; i += 64) {
		uint2 e = *(const uint2 *)(tile.edges + i);
		*(uint2 *)(tile.edges + i) = make_uint2(0, 0);
		uint32_t second = before + scan_warp(e.x + e.y), first = second - e.y;
		before = __shfl_sync(0xffffffffu, second, 31);
		if (first) {
			tile.low[i] = uint32_t(WAH_ALL);
			tile.high[i] = uint32_t(WAH_ALL >> 32);
		}
		if (second) {
			tile.low[i + 1] = uint32_t(WAH_ALL);
			tile.high[i + 1] = uint32_t(WAH_ALL >> 32);
		}
	}
}

// wah_warp_rows writes tile t as a bitmap of 64 rows a word.
__device__ __forceinline__ void wah_warp_rows(const WahWarp &tile, const WahFused &p, uint64_t t, uint32_t length, uint32_t ones) {
	constexpr uint32_t words = WAH_TILE / 64 * 63;
	uint64_t out = t * words;
	uint64_t fill = ones ? WAH_ALL : 0;
#pragma unroll 2
	for (uint32_t i = threadIdx.x & 31; i < words; i += 32) {
		if (out + i >= p.row_words)
			break;
		uint32_t c = i * 64 / 63, shift = i * 64 % 63;
		uint64_t w = ((uint64_t(tile.high[c]) << 32 | tile.low[c]) | fill) >> shift;
		if (c + 1 < length)
			w |= ((uint64_t(tile.high[c + 1]) << 32 | tile.low[c + 1]) | fill) << (63 - shift);
		__stcs(p.rows + out + i, w);
	}
}

// wah_warp_write writes tile t, or one of ones, and leaves zeros. It returns how many rows of it
// are set, of what the lane had.
__device__ __forceinline__ uint32_t wah_warp_write(WahWarp &tile, const WahFused &p, uint64_t t, bool full) {
	uint64_t first = t * WAH_TILE;
	uint32_t length = p.length - first < WAH_TILE ? uint32_t(p.length - first) : WAH_TILE;
	if (p.form & WAH_ROWS) {
		wah_warp_rows(tile, p, t, length, full);
		__syncwarp();
	}
	uint64_t fill = full ? WAH_ALL : 0;
	uint32_t count = 0;
#pragma unroll 4
	for (uint32_t i = (threadIdx.x & 31) * 2; i < WAH_TILE; i += 64) {
		uint2 low = *(const uint2 *)(tile.low + i), high = *(const uint2 *)(tile.high + i);
		*(uint2 *)(tile.low + i) = make_uint2(0, 0);
		*(uint2 *)(tile.high + i) = make_uint2(0, 0);
		ulonglong2 w = make_ulonglong2((uint64_t(high.x) << 32 | low.x) | fill, (uint64_t(high.y) << 32 | low.y) | fill);
		if (p.form & WAH_CHUNKS) {
			if (i + 1 < length)
				__stcs((ulonglong2 *)(p.chunks + first + i), w);
			else if (i < length)
				__stcs(p.chunks + first + i, uint64_t(w.x));
		}
		if (p.form & WAH_COUNT) {
			if (i < length)
				count += __popcll(w.x);
			if (i + 1 < length)
				count += __popcll(w.y);
		}
	}
	return count;
}

// wah_warps: a grid of any size.
PGACCEL_KERNEL(wah_warps, WahWarps, p, WAH_FUSED_THREADS, WAH_FUSED_BLOCKS) {
	__shared__ WahWarp all[WAH_WARPS];
	uint32_t lane = threadIdx.x & 31, warps = gridDim.x * WAH_WARPS;
	// Neighbouring warps of the grid are in different blocks, for the sake of those that have a
	// tile less.
	uint32_t own = (threadIdx.x >> 5) * gridDim.x + blockIdx.x;
	WahWarp &tile = all[threadIdx.x >> 5];
	WahSource source;
	source.t = own;
	source.i = 0;
	source.tiles = wah_tiles(p, own + uint64_t(lane) * warps);
	for (uint32_t i = lane; i < WAH_TILE; i += 32)
		tile.low[i] = tile.high[i] = tile.edges[i] = 0;
	source.open(p);
	uint64_t ring_a[WAH_AHEAD], ring_b[WAH_AHEAD];
	uint32_t ends[WAH_AHEAD];
#pragma unroll
	for (uint32_t i = 0; i < WAH_AHEAD; i++)
		ends[i] = source.next(p, warps, ring_a[i], ring_b[i]);
	__syncwarp();
	uint32_t at = 0, phase = 0, count = 0;
	bool edges = false;
	for (uint64_t t = own; t < p.tiles;) { // uniform
		uint32_t end = 0;
		// Unrolled, so that registers to which a load is on its way are not moved. It goes on after
		// a tile where that one ended.
#pragma unroll
		for (uint32_t i = 0; i < WAH_AHEAD; i++) {
			if (phase == i && !end) {
				edges |= wah_warp_put(tile, ring_a[i], ring_b[i], at);
				end = ends[i];
				ends[i] = source.next(p, warps, ring_a[i], ring_b[i]);
				phase = i + 1;
			}
		}
		if (phase == WAH_AHEAD)
			phase = 0;
		if (!end)
			continue;
		__syncwarp();
		if (edges) {
			wah_warp_cover(tile);
			__syncwarp();
		}
		count += wah_warp_write(tile, p.q, t, end == 3);
		__syncwarp();
		edges = false;
		at = 0;
		t += warps;
	}
	if (p.q.form & WAH_COUNT) {
		count = __reduce_add_sync(0xffffffffu, count);
		if (lane == 0)
			p.q.counts[own] = count;
	}
}
