// GPU-RFOR of "Tile-based Lightweight Integer Compression in GPU", section 6: runs within
// blocks of 512 rows, values and lengths packed apart; and our own. The format is drawn in
// package compress.
#pragma once
#include "tile_sink.cuh"

#define TILE_RUNS 512

struct TileRuns {
	const uint32_t *values, *lengths, *data; // starts, starts, what they count in
	uint32_t blocks;
};

TILE_INLINE TileRuns tile_runs(const TileSegment &s)
{
	TileRuns f;
	f.blocks = (s.rows + TILE_RUNS - 1) / TILE_RUNS;
	f.values = s.words + 8;
	f.lengths = f.values + f.blocks + 1;
	f.data = f.lengths + f.blocks + 1;
	return f;
}

// tile_runs_scan adds up v, of TILE_RUNS / TILE_THREADS neighbouring entries a thread, to sums
// up to and with each entry. All threads of the block come.
TILE_INLINE void tile_runs_scan(uint32_t *v, uint32_t *warps)
{
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	v[1] += v[0];
	v[2] += v[1];
	v[3] += v[2];
	const uint32_t through = scan_warp(v[3]);
	if (lane == 31)
		warps[warp] = through;
	__syncthreads();
	uint32_t before = through - v[3];
	for (uint32_t w = 0; w < warp; w++)
		before += warps[w];
	for (uint32_t j = 0; j < 4; j++)
		v[j] += before;
	__syncthreads();
}

// Section 6: a thread block unpacks the values and lengths of a block in shared memory.
// The sums of lengths say where runs begin; a 1 is scattered there; the sums of those
// are each row's run, whose value it takes.
PGACCEL_KERNEL(tile_runs_shared, TileParams, p, TILE_THREADS, 1)
{
	__shared__ uint32_t packed[2][TILE_RUNS + 8], widths[32], offsets[32], warps[TILE_THREADS / 32];
	__shared__ uint32_t values[TILE_RUNS], lengths[TILE_RUNS], flags[TILE_RUNS];
	const TileSegment s = p.segments[blockIdx.y];
	const TileRuns f = tile_runs(s);
	TileSink sink = tile_sink(s);
	if (blockIdx.x < f.blocks) {
		for (uint32_t stream = 0; stream < 2; stream++) {
			const uint32_t *starts = stream == 0 ? f.values : f.lengths;
			const uint32_t begin = __ldg(starts + blockIdx.x), words = __ldg(starts + blockIdx.x + 1) - begin;
			for (uint32_t i = threadIdx.x; i < words; i += TILE_THREADS)
				packed[stream][i] = __ldg(f.data + begin + i);
		}
		__syncthreads();
		const uint32_t count = packed[0][0], heads = 2 + (count + 127) / 128;
		if (threadIdx.x < 32) {
			const uint32_t m = threadIdx.x % 16;
			const uint32_t width = m * 32 < count ? packed[threadIdx.x / 16][2 + m / 4] >> (m % 4 * 8) & 255 : 0;
			uint32_t through = width;
			for (uint32_t d = 1; d < 16; d *= 2) {
				const uint32_t other = __shfl_up_sync(TILE_ALL, through, d, 16);
				if (m >= d)
					through += other;
			}
			widths[threadIdx.x] = width;
			offsets[threadIdx.x] = heads + through - width;
		}
		__syncthreads();
		for (uint32_t r = threadIdx.x; r < TILE_RUNS; r += TILE_THREADS) {
			uint32_t value = 0, length = 0;
			if (r < count) {
				const uint32_t m = r / 32;
				value = packed[0][1] + tile_bits(packed[0] + offsets[m], r % 32 * widths[m], widths[m]);
				length = packed[1][1] + tile_bits(packed[1] + offsets[16 + m], r % 32 * widths[16 + m], widths[16 + m]);
			}
			values[r] = value;
			lengths[r] = length;
			flags[r] = 0;
		}
		__syncthreads();
		uint32_t v[4];
		for (uint32_t j = 0; j < 4; j++)
			v[j] = lengths[4 * threadIdx.x + j];
		tile_runs_scan(v, warps);
		for (uint32_t j = 0; j < 4; j++) {
			const uint32_t r = 4 * threadIdx.x + j;
			if (r + 1 < count) // where the next run begins
				flags[v[j]] = 1;
		}
		__syncthreads();
		for (uint32_t j = 0; j < 4; j++)
			v[j] = flags[4 * threadIdx.x + j];
		tile_runs_scan(v, warps);
		const uint32_t row = blockIdx.x * TILE_RUNS + 4 * threadIdx.x;
		tile_put4(sink, row, values[v[0]], values[v[1]], values[v[2]], values[v[3]]);
	}
	tile_finish(sink, p);
}

// Ours: a warp decodes a block. Where runs begin is a bitmap of 512 bits; a row's run is the
// number of bits up to it, which needs no second sum over rows.
PGACCEL_KERNEL(tile_runs_warp, TileParams, p, TILE_THREADS, 1)
{
	__shared__ uint32_t all_values[TILE_THREADS / 32][TILE_RUNS], all_bits[TILE_THREADS / 32][16];
	const TileSegment s = p.segments[blockIdx.y];
	const TileRuns f = tile_runs(s);
	TileSink sink = tile_sink(s);
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const uint32_t block = blockIdx.x * (TILE_THREADS / 32) + warp;
	if (block < f.blocks) {
		uint32_t *values = all_values[warp], *bits = all_bits[warp];
		// The first half of the warp reads the values' head, the other the lengths'.
		const uint32_t *head = f.data + __ldg((lane < 16 ? f.values : f.lengths) + block);
		const uint32_t count = __ldg(head), m = lane % 16;
		const uint32_t reference = __ldg(head + 1);
		const uint32_t width = m * 32 < count ? __ldg(head + 2 + m / 4) >> (m % 4 * 8) & 255 : 0;
		uint32_t offset = width;
		for (uint32_t d = 1; d < 16; d *= 2) {
			const uint32_t other = __shfl_up_sync(TILE_ALL, offset, d, 16);
			if (m >= d)
				offset += other;
		}
		offset = (uint32_t)(head - f.data) + 2 + (count + 127) / 128 + offset - width;
		const uint32_t value_reference = __shfl_sync(TILE_ALL, reference, 0), length_reference = __shfl_sync(TILE_ALL, reference, 16);
		if (lane < 16)
			bits[lane] = lane == 0; // the first run begins there
		__syncwarp();
		uint32_t carry = 0;
		for (uint32_t i = 0; i * 32 < count; i++) {
			const uint32_t r = i * 32 + lane;
			const uint32_t vw = __shfl_sync(TILE_ALL, width, i), lw = __shfl_sync(TILE_ALL, width, 16 + i);
			const uint32_t vo = __shfl_sync(TILE_ALL, offset, i), lo = __shfl_sync(TILE_ALL, offset, 16 + i);
			const uint32_t value = value_reference + tile_bits_global(f.data + vo, lane * vw, vw);
			const uint32_t length = length_reference + tile_bits_global(f.data + lo, lane * lw, lw);
			values[r] = value;
			const uint32_t end = carry + scan_warp(r < count ? length : 0);
			if (r + 1 < count)
				atomicOr(bits + (end >> 5), 1u << (end & 31));
			carry = __shfl_sync(TILE_ALL, end, 31);
		}
		__syncwarp();
		const uint32_t word = bits[lane % 16], ones = lane < 16 ? __popc(word) : 0;
		const uint32_t before = scan_warp(ones) - ones;
#pragma unroll
		for (uint32_t k = 0; k < 4; k++) {
			const uint32_t w = k * 4 + lane / 8, bit = lane % 8 * 4;
			const uint32_t mine = __shfl_sync(TILE_ALL, word, w);
			const uint32_t r0 = __shfl_sync(TILE_ALL, before, w) + __popc(mine & (2u << bit) - 1) - 1;
			const uint32_t r1 = r0 + (mine >> (bit + 1) & 1), r2 = r1 + (mine >> (bit + 2) & 1), r3 = r2 + (mine >> (bit + 3) & 1);
			tile_put4(sink, block * TILE_RUNS + k * 128 + lane * 4, values[r0], values[r1], values[r2], values[r3]);
		}
	}
	tile_finish(sink, p);
}
