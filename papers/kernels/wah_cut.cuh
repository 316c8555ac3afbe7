// The union of WAH columns in one pass, as wah_fused.cuh has it, of atoms that were cut at the
// tiles' borders and laid out tile after tile when the columns were uploaded:
//
//    tile 0: column 0, column 1, ... | tile 1: column 0, column 1, ... | ...
//
// In a tile, a column's atoms stand for WAH_TILE chunks exactly: a fill that crosses a border is
// one atom on each side, and past the end there are zeros. A column that is one fill all over a
// tile has no atoms there. So what a query of neighbouring columns reads for a tile is one range
// of words, and atoms need nothing but themselves. A place is a word for each tile and column,
//
//     63   62                        0
//    +----+-------------------------+
//    | of | number of the first atom |
//    | ones                          |
//    +----+-------------------------+
//
// and one more behind them all: a column's atoms end where the next one's begin, in the next tile
// if need be. Warps share a tile's range by columns, each by itself, from the same places: there
// is no barrier before the first atoms are on their way, and none but that the tile is zeros
// before the first one is put.
#pragma once
#include "wah_tile.cuh"

constexpr uint64_t WAH_PLACE = WAH_FILL - 1; // the number of the first atom

// wah_range is what atoms of [0, total) the warp has: about as many as every warp, and whole
// columns. at is where the lane's column begins, the warp's first 32 of them; the first atom is
// begin. It returns whether a column is of ones.
__device__ __forceinline__ bool wah_range(const uint64_t *places, uint32_t columns, uint64_t own, uint64_t begin, uint32_t total,
                                          uint32_t &from, uint32_t &to) {
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	uint32_t low = uint64_t(total) * warp / WAH_WARPS, high = uint64_t(total) * (warp + 1) / WAH_WARPS;
	from = to = total;
	bool ones = false;
#pragma unroll 1
	for (uint32_t i = lane; i < ((columns + 31) & ~31u); i += 32) {
		uint64_t next = i + 32 < columns ? __ldcs(places + i + 32) : 0;
		if (i < columns) {
			uint32_t at = uint32_t((own & WAH_PLACE) - begin);
			ones |= own > WAH_PLACE;
			if (at >= low && at < from)
				from = at;
			if (at >= high && at < to)
				to = at;
		}
		own = next;
	}
	if (WAH_WARPS == 1) {
		from = 0;
		to = total;
	} else {
		from = __reduce_min_sync(0xffffffffu, from);
		to = __reduce_min_sync(0xffffffffu, to);
	}
	return __any_sync(0xffffffffu, ones);
}

// wah_chunks is how many chunks an atom stands for.
__device__ __forceinline__ uint32_t wah_chunks(uint64_t a) { return int64_t(a) < 0 ? uint32_t(a) : 1; }

// wah_cut: a block for each tile.
PGACCEL_KERNEL(wah_cut, WahFused, p, WAH_FUSED_THREADS, WAH_FUSED_BLOCKS) {
	__shared__ WahTile b;
	uint32_t lane = threadIdx.x & 31;
	const uint64_t *places = p.places + uint64_t(blockIdx.x) * p.stride + p.lo;
	// These three are on their way together.
	uint64_t own = lane < p.columns ? __ldcs(places + lane) : 0, begin = __ldg(places), end = __ldg(places + p.columns);
	b.clear();
	begin &= WAH_PLACE;
	uint32_t from, to;
	bool edges = false;
	bool full = wah_range(places, p.columns, own, begin, uint32_t((end & WAH_PLACE) - begin), from, to);
	if (!full) { // uniform: all warps have the same places
		const uint64_t *atoms = p.atoms + begin;
		uint64_t ring_a[WAH_AHEAD], ring_b[WAH_AHEAD];
		uint32_t j = from + lane, at = 0;
#pragma unroll
		for (uint32_t i = 0; i < WAH_AHEAD; i++) {
			ring_a[i] = j + 64 * i < to ? __ldcs(atoms + j + 64 * i) : 0;
			ring_b[i] = j + 64 * i + 32 < to ? __ldcs(atoms + j + 64 * i + 32) : 0;
		}
		__syncthreads(); // the tile is zeros
		// Unrolled, so that registers to which a load is on its way are not moved.
		while (from < to) {
#pragma unroll
			for (uint32_t i = 0; i < WAH_AHEAD; i++) {
				if (from < to) {
					edges |= wah_put(b, ring_a[i], ring_b[i], wah_chunks(ring_a[i]), wah_chunks(ring_b[i]), at);
					uint32_t k = j + 64 * WAH_AHEAD;
					ring_a[i] = k < to ? __ldcs(atoms + k) : 0;
					ring_b[i] = k + 32 < to ? __ldcs(atoms + k + 32) : 0;
					from += 64;
					j += 64;
				}
			}
		}
	}
	if (__syncthreads_or(edges))
		wah_cover(b);
	wah_write(b, p, full);
}
