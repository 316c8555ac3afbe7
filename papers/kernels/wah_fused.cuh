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
#include "wah_tile.cuh"

// WahBlock is a block's shared memory: a tile of the result, and what there is to do for it, the
// atoms of all columns that have some as one sequence. It is one structure so that there is one
// address to know.
struct WahBlock : WahTile {
	uint64_t base[WAH_FUSED_THREADS];      // of each column: its first atom's number less start
	uint32_t start[WAH_FUSED_THREADS + 2]; // of each column: the first of its atoms in the sequence; at last, the end
	uint32_t ends[WAH_FUSED_THREADS];      // of each column: the low 20 bits of its place
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
				WahStep s = ring[i];
				edges |= wah_put(b, s.a, s.b, wah_length(s.a, s.n & 0xffff), wah_length(s.b, s.n >> 16), at);
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
	uint64_t e = threadIdx.x < p.columns ? __ldcs(places + threadIdx.x) : 0;
	b.clear();
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
	wah_write(b, p, full);
}
