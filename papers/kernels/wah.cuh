// 64-bit WAH (papers/wahbits draws its atoms), decompressed as in "GPU Acceleration of Range Queries
// over Large Data Sets" (Nelson et al. 2019 and 2020): Algorithms 1 and 2 of the journal version.
//
// Algorithm 1 decompresses all columns of a query in parallel: here blockIdx.y is the column.
// Algorithm 2, Decomp, is, with the scans of scan.cuh between its steps,
//
//   wah_decomp_sizes    lines 2 to 8      DecompSizes
//   scan                line 9            StartingPoints, in the place of DecompSizes
//   wah_end_points      lines 10 to 13    EndPoints (zeroed by the batch)
//   scan                line 14           WordIndex, in the place of EndPoints
//   wah_decomp_words    lines 15 to 26    DecompData
#pragma once
#include "scan.cuh"

constexpr uint64_t WAH_FILL = 1ull << 63;       // set in fills
constexpr uint64_t WAH_ONES = 1ull << 62;       // in a fill: of ones
constexpr uint64_t WAH_RUN = WAH_ONES - 1;      // in a fill: its chunks
constexpr uint64_t WAH_ALL = WAH_FILL - 1;      // a chunk of ones
constexpr uint32_t WAH_BLOCK = 1024;            // threads of the papers' blocks

// wah_word is what each chunk of an atom is.
__device__ __forceinline__ uint64_t wah_word(uint64_t atom) {
	return !(atom & WAH_FILL) ? atom : atom & WAH_ONES ? WAH_ALL : 0;
}

// WahColumns are the compressed columns of a query and what Decomp makes of them.
struct WahColumns {
	const uint64_t *atoms;  // CData of all columns, one after the other
	const uint64_t *begins; // of each column's atoms, one more than columns
	uint32_t *points;       // DecompSizes, then StartingPoints: one for each atom
	uint32_t *index;        // EndPoints, then WordIndex: dsize for each column
	uint64_t *data;         // DecompData: dsize for each column
	uint64_t dsize;         // words of a decompressed column
	uint64_t count;         // atoms of all columns
};

// wah_decomp_sizes: a thread for each atom of all columns.
PGACCEL_KERNEL(wah_decomp_sizes, WahColumns, p, WAH_BLOCK, 1) {
	uint64_t i = uint64_t(blockIdx.x) * WAH_BLOCK + threadIdx.x;
	if (i < p.count) {
		uint64_t a = p.atoms[i];
		p.points[i] = a & WAH_FILL ? uint32_t(a & WAH_RUN) : 1;
	}
}

// wah_end_points: a thread for each atom; blockIdx.y is the column.
PGACCEL_KERNEL(wah_end_points, WahColumns, p, WAH_BLOCK, 1) {
	uint64_t i = p.begins[blockIdx.y] + uint64_t(blockIdx.x) * WAH_BLOCK + threadIdx.x;
	if (i < p.begins[blockIdx.y + 1]) {
		uint32_t start = p.points[i]; // 0: no atom ends before the first one
		if (start > 0)
			p.index[blockIdx.y * p.dsize + start - 1] = 1;
	}
}

// wah_decomp_words: a thread for each word; blockIdx.y is the column.
PGACCEL_KERNEL(wah_decomp_words, WahColumns, p, WAH_BLOCK, 1) {
	uint64_t i = uint64_t(blockIdx.x) * WAH_BLOCK + threadIdx.x;
	if (i < p.dsize) {
		i += blockIdx.y * p.dsize;
		p.data[i] = wah_word(p.atoms[p.begins[blockIdx.y] + p.index[i]]);
	}
}
