// The union of WAH columns in one pass, of atoms as wah_cut.cuh has them, by warps that have
// tiles of their own: for results so large that there are more tiles than warps on the device.
//
// The grid is as large as the device holds at a time, and warp w of W takes tiles w, w + W,
// w + 2W and so on: nothing is launched for a tile. (Drawing tiles from one counter, so that warps
// of dense tiles get fewer, was faster for no set, and took half as long again where tiles are
// short.) What a warp reads is one sequence of steps of 128 atoms, tile after tile. WAH_AHEAD of
// them are on their way whatever tile they are of, so the reads of the next tiles go on while one is
// written. No warp waits for another.
//
// A tile of one warp needs no columns' places but where its first column begins and where its
// last one ends. What its places say of columns that are ones all over it, masks say once more, a
// bit for each column: of 64 columns, a tile costs three words and not 64. A lane reads them for
// one of the warp's next 32 tiles.
#pragma once
#include "wah_cut.cuh"

#ifndef WAH_WIDE
#define WAH_WIDE 2 // a step is so many times 64 atoms
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

// WahTiles is what is to be known of a tile before it is read, as it is loaded: nothing here waits
// for the loads.
struct WahTiles {
	uint64_t begin, end;  // places of the query's first column, and of the one behind its last
	uint64_t low, high;   // the first and the last word of masks that have columns of the query
};

constexpr uint32_t WAH_FULL = 0xffffffff; // of a tile that is ones, in place of its atoms

// wah_tiles reads what is to be known of tile t. Of such as there are not, that is nothing.
__device__ __forceinline__ WahTiles wah_tiles(const WahWarps &p, uint64_t t) {
	WahTiles n = {0, 0, 0, 0};
	if (t < p.tiles) {
		const uint64_t *places = p.q.places + t * p.q.stride + p.q.lo, *masks = p.masks + t * p.words;
		uint32_t first = p.q.lo / 64, last = (p.q.lo + p.q.columns - 1) / 64;
		n.begin = __ldg(places);
		n.end = __ldg(places + p.q.columns);
		n.low = __ldg(masks + first);
		n.high = __ldg(masks + last);
		for (uint32_t w = first + 1; w < last; w++) // seldom: of more than 128 columns
			if (__ldg(masks + w))
				n.begin = ~uint64_t(0);
	}
	return n;
}

// wah_total is how many atoms the tile has, or WAH_FULL.
__device__ __forceinline__ uint32_t wah_total(const WahWarps &p, const WahTiles &n) {
	uint32_t hi = p.q.lo + p.q.columns;
	uint64_t from = ~uint64_t(0) << p.q.lo % 64, to = ~uint64_t(0) >> (63 - (hi - 1) % 64);
	bool same = p.q.lo / 64 == (hi - 1) / 64;
	bool ones = n.begin == ~uint64_t(0) || (n.low & from & (same ? to : ~uint64_t(0))) || (n.high & to & (same ? from : ~uint64_t(0)));
	return ones ? WAH_FULL : uint32_t((n.end & WAH_PLACE) - (n.begin & WAH_PLACE));
}

// WahWarpStep is 64 * WAH_WIDE atoms on their way, and whether they are a tile's last ones.
struct WahWarpStep {
	uint64_t a[2 * WAH_WIDE]; // 0 past the tile's end
	uint32_t end;             // 0, WAH_END or WAH_END_ONES
	uint32_t t;               // the tile's number
};
constexpr uint32_t WAH_END = 1, WAH_END_ONES = 3; // the latter of a tile that is ones

// WahSource is where the warp's next atoms are.
struct WahSource {
	const uint64_t *atoms; // of the tile
	uint32_t t;            // the tile's number
	uint32_t total, j;     // the tile's atoms, and how many of them are on their way
	bool full;
	uint64_t firsts; // of the next 32 tiles, the first atom: lane i's of the i-th
	uint32_t totals; // and how many there are
	uint32_t i;      // of those tiles

	__device__ __forceinline__ void begin(const WahWarps &p, uint64_t first, uint32_t n) {
		atoms = p.q.atoms + first;
		full = n == WAH_FULL;
		total = full ? 0 : n;
		j = 0;
	}

	// look reads what is to be known of the warp's next 32 tiles, t the first.
	__device__ __forceinline__ void look(const WahWarps &p, uint32_t warps) {
		WahTiles n = wah_tiles(p, t + uint64_t(threadIdx.x & 31) * warps);
		firsts = n.begin & WAH_PLACE;
		totals = wah_total(p, n);
		i = 0;
	}

	// take makes the next one of those the tile whose atoms are sent for.
	__device__ __forceinline__ void take(const WahWarps &p) {
		begin(p, __shfl_sync(0xffffffffu, firsts, i), __shfl_sync(0xffffffffu, totals, i));
		i++;
	}

	__device__ __forceinline__ void start(const WahWarps &p, uint32_t own, uint32_t warps) {
		t = own;
		look(p, warps);
		take(p);
	}

	__device__ __forceinline__ void open(const WahWarps &p, uint32_t warps) {
		t = p.tiles - t > warps ? t + warps : p.tiles;
		total = j = 0;
		full = false;
		if (t < p.tiles) {
			if (i == 32)
				look(p, warps);
			take(p);
		}
	}
	// next sends for the next atoms. Behind the last tile there are none.
	__device__ __forceinline__ void next(const WahWarps &p, uint32_t warps, WahWarpStep &s) {
		uint32_t at = j + (threadIdx.x & 31);
#pragma unroll
		for (uint32_t k = 0; k < 2 * WAH_WIDE; k++)
			s.a[k] = at + 32 * k < total ? __ldcs(atoms + at + 32 * k) : 0;
		s.end = 0;
		s.t = t;
		j += 64 * WAH_WIDE;
		if (j >= total && t < p.tiles) {
			s.end = full ? WAH_END_ONES : WAH_END;
			open(p, warps);
		}
	}
};

// wah_warp_put is wah_put of a warp's own tile, and of all of a step at once: what of it depends
// on what is before, is little.
__device__ __forceinline__ bool wah_warp_put(WahWarp &tile, const WahWarpStep &s, uint32_t &at) {
	constexpr uint32_t n = WAH_WIDE;
	uint32_t lane = threadIdx.x & 31, lengths[n], begin[2 * n];
	bool plain = true;
#pragma unroll
	for (uint32_t k = 0; k < n; k++) {
		lengths[k] = wah_chunks(s.a[2 * k]) | wah_chunks(s.a[2 * k + 1]) << 16;
		plain = plain && lengths[k] == 0x10001;
	}
	if (__all_sync(0xffffffffu, plain)) {
#pragma unroll
		for (uint32_t k = 0; k < 2 * n; k++)
			begin[k] = at + 32 * k + lane;
		at += 64 * n;
	} else {
		uint32_t sums[n];
#pragma unroll
		for (uint32_t k = 0; k < n; k++)
			sums[k] = lengths[k];
#pragma unroll
		for (uint32_t d = 1; d < 32; d *= 2) {
#pragma unroll
			for (uint32_t k = 0; k < n; k++) {
				uint32_t v = __shfl_up_sync(0xffffffffu, sums[k], d);
				sums[k] += lane >= d ? v : 0;
			}
		}
#pragma unroll
		for (uint32_t k = 0; k < n; k++) {
			uint32_t all = __shfl_sync(0xffffffffu, sums[k], 31);
			begin[2 * k] = at + (sums[k] & 0xffff) - (lengths[k] & 0xffff);
			at += all & 0xffff;
			begin[2 * k + 1] = at + (sums[k] >> 16) - (lengths[k] >> 16);
			at += all >> 16;
		}
	}
	bool some = false;
#pragma unroll
	for (uint32_t k = 0; k < 2 * n; k++) {
		begin[k] &= WAH_TILE - 1;
		uint64_t a = s.a[k];
		bool literal = int64_t(a) > 0;
		// Of sparse literals, one half is 0.
		if (literal && uint32_t(a))
			atomicOr(&tile.low[begin[k]], uint32_t(a));
		if (literal && uint32_t(a >> 32))
			atomicOr(&tile.high[begin[k]], uint32_t(a >> 32));
		some = some || a >> 62 == 3;
	}
	if (!__any_sync(0xffffffffu, some))
		return false;
#pragma unroll
	for (uint32_t k = 0; k < 2 * n; k++) {
		bool ones = s.a[k] >> 62 == 3;
		uint32_t length = wah_chunks(s.a[k]);
		if (ones) {
			atomicAdd(&tile.edges[begin[k]], 1u);
			if (begin[k] + length < WAH_TILE)
				atomicAdd(&tile.edges[begin[k] + length], 0xffffffffu);
		}
	}
	return true;
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
	uint32_t end = p.row_words - out < words ? uint32_t(p.row_words - out) : words;
	uint64_t fill = ones ? WAH_ALL : 0;
#pragma unroll 4
	for (uint32_t i = threadIdx.x & 31; i < end; i += 32) {
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
		if (p.form == WAH_ROWS) { // nothing is left but to clear it
#pragma unroll 4
			for (uint32_t i = (threadIdx.x & 31) * 2; i < WAH_TILE; i += 64)
				*(uint2 *)(tile.low + i) = *(uint2 *)(tile.high + i) = make_uint2(0, 0);
			return 0;
		}
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
	source.start(p, own, warps);
	for (uint32_t i = lane; i < WAH_TILE; i += 32)
		tile.low[i] = tile.high[i] = tile.edges[i] = 0;
	WahWarpStep ring[WAH_AHEAD];
#pragma unroll
	for (uint32_t i = 0; i < WAH_AHEAD; i++)
		source.next(p, warps, ring[i]);
	__syncwarp();
	uint32_t at = 0, phase = 0, count = 0;
	bool edges = false;
	for (;;) { // uniform
		uint32_t end = 0, t = 0;
		// Unrolled, so that registers to which a load is on its way are not moved. It goes on after
		// a tile where that one ended.
#pragma unroll
		for (uint32_t i = 0; i < WAH_AHEAD; i++) {
			if (phase == i && !end) {
				t = ring[i].t;
				end = ring[i].end;
				if (t < p.tiles) {
					edges |= wah_warp_put(tile, ring[i], at);
					source.next(p, warps, ring[i]);
				} else {
					end = WAH_END;
				}
				phase = i + 1;
			}
		}
		if (phase == WAH_AHEAD)
			phase = 0;
		if (!end)
			continue;
		if (t >= p.tiles)
			break;
		__syncwarp();
		if (edges) {
			wah_warp_cover(tile);
			__syncwarp();
		}
		count += wah_warp_write(tile, p.q, t, end == WAH_END_ONES);
		__syncwarp();
		edges = false;
		at = 0;
	}
	if (p.q.form & WAH_COUNT) {
		count = __reduce_add_sync(0xffffffffu, count);
		if (lane == 0)
			p.q.counts[own] = count;
	}
}
