// Output of many range queries over points at once, after "A wait-free output data structure
// for GPU-based streaming query processing" (Silvestri, Lettich, Orlando, Jensen): queries
// fill an interlaced bitmap without atomics (filter), which is turned so that each
// query's words are neighbours (linearise) and decoded to object ids by warps (decode).
// Beside it what it is compared with, atomic appends, and what ballots make of it today.
//
// Points lie in cells of a grid. A cell's queries are those whose rectangles touch it; a
// query in a cell is an entry. Package papers/rowout draws the bitmap.
#pragma once
#include "scan.cuh"

#ifdef PGACCEL_EMULATOR
#define ROWOUT_INLINE static inline
#else
#define ROWOUT_INLINE static __device__ __forceinline__
#endif

#define ROWOUT_THREADS 128
#define ROWOUT_WARPS (ROWOUT_THREADS / 32)
#define ROWOUT_ALL 0xffffffffu

struct RowoutCell {
	uint32_t first_point, points;
	uint32_t first_entry, entries;
	uint64_t first_word; // of the bitmap: lines * stride words
	uint32_t lines;      // of 32 points
	uint32_t stride;     // entries rounded up to 32
};

// RowoutTask is what a block does: up to 128 entries of a cell.
struct RowoutTask {
	uint32_t cell, first; // entry within the cell
};

struct RowoutParams {
	const RowoutCell *cells;
	const RowoutTask *tasks;
	const int2 *points;
	const uint32_t *ids;     // of points
	const uint32_t *entries; // the query of each
	const int4 *queries;     // least x, least y, largest x, largest y
	uint32_t *interlaced, *linear;
	uint32_t *counts;    // results of each entry
	uint32_t *positions; // where they begin
	uint32_t *sums;      // of counts, by 1024 entries
	uint32_t *out;       // ids
	uint2 *pairs;        // query and id
	unsigned long long *result; // a counter of pairs; a sum of the check
	unsigned long long *status; // of tasks: rowout_look_back
	uint32_t n;          // entries in all
	uint32_t pad;
};

ROWOUT_INLINE bool rowout_inside(int2 p, int4 q) { return p.x >= q.x && p.x <= q.z && p.y >= q.y && p.y <= q.w; }

// rowout_stage has 128 points of a cell in shared memory, from point on. Points that are not
// there are outside of everything.
ROWOUT_INLINE void rowout_stage(int2 *stage, const RowoutParams &p, const RowoutCell &c, uint32_t point)
{
	__syncthreads();
	const uint32_t at = point + threadIdx.x;
	stage[threadIdx.x] = at < c.points ? __ldg(p.points + c.first_point + at) : make_int2(-2147483647 - 1, -2147483647 - 1);
	__syncthreads();
}

// rowout_idle says that a warp has no entries: it comes to barriers only.
ROWOUT_INLINE bool rowout_idle(const RowoutTask &t, const RowoutCell &c) { return t.first + threadIdx.x / 32 * 32 >= c.entries; }

// rowout_query is the query of a thread; one that is not there has an empty rectangle.
ROWOUT_INLINE int4 rowout_query(const RowoutParams &p, const RowoutCell &c, uint32_t entry, uint32_t &number)
{
	number = 0;
	if (entry >= c.entries)
		return make_int4(1, 1, 0, 0);
	number = __ldg(p.entries + c.first_entry + entry);
	return __ldg(p.queries + number);
}

// Section 3.2: a thread evaluates a query for all points, and writes a word for each 32 of
// them; neighbouring threads write neighbouring words.
PGACCEL_KERNEL(rowout_filter, RowoutParams, p, ROWOUT_THREADS, 1)
{
	__shared__ int2 stage[ROWOUT_THREADS];
	const RowoutTask t = p.tasks[blockIdx.x];
	const RowoutCell c = p.cells[t.cell];
	const uint32_t entry = t.first + threadIdx.x;
	uint32_t number;
	const int4 q = rowout_query(p, c, entry, number);
	for (uint32_t point = 0; point < c.points; point += ROWOUT_THREADS) {
		rowout_stage(stage, p, c, point);
		if (rowout_idle(t, c))
			continue;
		for (uint32_t w = 0; w < 4 && point + 32 * w < c.points; w++) {
			uint32_t word = 0;
#pragma unroll
			for (uint32_t i = 0; i < 32; i++)
				word |= (rowout_inside(stage[32 * w + i], q) ? 1u : 0u) << i;
			if (entry < c.stride)
				p.interlaced[c.first_word + (uint64_t)(point / 32 + w) * c.stride + entry] = word;
		}
	}
}

// Section 3.3: an interlaced bitmap becomes a linear one, 32 by 32 words a warp, and results
// are counted on the way.
PGACCEL_KERNEL(rowout_linearise, RowoutParams, p, ROWOUT_THREADS, 1)
{
	__shared__ uint32_t all[ROWOUT_WARPS][32][33];
	const RowoutTask t = p.tasks[blockIdx.x];
	const RowoutCell c = p.cells[t.cell];
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = t.first + warp * 32;
	if (first >= c.stride)
		return;
	uint32_t count = 0;
	for (uint32_t line = 0; line < c.lines; line += 32) {
		const uint32_t n = min(32u, c.lines - line);
#pragma unroll 4
		for (uint32_t i = 0; i < n; i++) {
			const uint32_t word = __ldg(p.interlaced + c.first_word + (uint64_t)(line + i) * c.stride + first + lane);
			count += __popc(word);
			all[warp][i][lane] = word;
		}
		__syncwarp();
		if (c.lines <= 32) { // 32 entries' words are neighbours
			uint32_t *const out = p.linear + c.first_word + (uint64_t)first * n;
			for (uint32_t i = lane; i < 32 * n; i += 32)
				out[i] = all[warp][i % n][i / n];
		} else if (lane < n)
			for (uint32_t i = 0; i < 32; i++)
				p.linear[c.first_word + (uint64_t)(first + i) * c.lines + line + lane] = all[warp][lane][i];
		__syncwarp();
	}
	if (first + lane < c.entries)
		p.counts[c.first_entry + first + lane] = count;
}

// rowout_scan_block returns the sum of v over the threads before this one, of 1024, and
// all's.
ROWOUT_INLINE uint32_t rowout_scan_block(uint32_t v, uint32_t *warps, uint32_t &all)
{
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const uint32_t through = scan_warp(v);
	if (lane == 31)
		warps[warp] = through;
	__syncthreads();
	if (warp == 0)
		warps[lane] = scan_warp(warps[lane]);
	__syncthreads();
	all = warps[31];
	const uint32_t before = (warp > 0 ? warps[warp - 1] : 0) + through - v;
	__syncthreads();
	return before;
}

// Where entries' results begin: sums of 1024 counts each, sums of those by one block, and
// of both.
PGACCEL_KERNEL(rowout_sums, RowoutParams, p, 1024, 1)
{
	__shared__ uint32_t warps[32];
	const uint32_t i = blockIdx.x * 1024 + threadIdx.x;
	uint32_t all;
	const uint32_t before = rowout_scan_block(i < p.n ? p.counts[i] : 0, warps, all);
	if (i < p.n)
		p.positions[i] = before;
	if (threadIdx.x == 0)
		p.sums[blockIdx.x] = all;
}

PGACCEL_KERNEL(rowout_sum_sums, RowoutParams, p, 1024, 1)
{
	__shared__ uint32_t warps[32];
	const uint32_t n = (p.n + 1023) / 1024;
	uint32_t carry = 0;
	for (uint32_t first = 0; first < n; first += 1024) {
		const uint32_t i = first + threadIdx.x;
		uint32_t all;
		const uint32_t before = rowout_scan_block(i < n ? p.sums[i] : 0, warps, all);
		if (i < n)
			p.sums[i] = carry + before;
		carry += all;
	}
}

PGACCEL_KERNEL(rowout_positions, RowoutParams, p, 1024, 1)
{
	const uint32_t i = blockIdx.x * 1024 + threadIdx.x;
	if (i < p.n)
		p.positions[i] += p.sums[blockIdx.x];
}

// Section 3.3: a warp decodes words of the linear bitmap, 32 at once: it counts what comes
// before each, and writes ids. The words of 32 entries, and the ids that come of them, follow
// each other, so that the warp takes them as one: few words of an entry leave no lane idle.
// Where words have few bits each lane writes its own word's; else the warp takes one after
// the other, each lane a bit's.
PGACCEL_KERNEL(rowout_decode, RowoutParams, p, ROWOUT_THREADS, 8)
{
	const RowoutTask t = p.tasks[blockIdx.x];
	const RowoutCell c = p.cells[t.cell];
	const uint32_t lane = threadIdx.x % 32, entry = t.first + threadIdx.x / 32 * 32;
	if (entry >= c.entries || c.lines == 0)
		return;
	const uint32_t n = min(32u, c.entries - entry) * c.lines;
	const uint32_t *words = p.linear + c.first_word + (uint64_t)entry * c.lines;
	const uint32_t *ids = p.ids + c.first_point;
	uint32_t at = __ldg(p.positions + c.first_entry + entry);
	uint32_t next = lane < n ? __ldg(words + lane) : 0;
	for (uint32_t first = 0; first < n; first += 32) {
		const uint32_t i = first + lane;
		uint32_t word = next;
		next = i + 32 < n ? __ldg(words + i + 32) : 0;
		const uint32_t ones = __popc(word), through = scan_warp(ones), before = at + through - ones;
		at += __shfl_sync(ROWOUT_ALL, through, 31);
		const uint32_t point = i % c.lines * 32;
		if (!__any_sync(ROWOUT_ALL, ones > 4)) {
			for (uint32_t to = before; word != 0; word &= word - 1)
				p.out[to++] = __ldg(ids + point + (uint32_t)__ffs((int)word) - 1);
			continue;
		}
		for (uint32_t some = __ballot_sync(ROWOUT_ALL, word != 0); some != 0; some &= some - 1) {
			const uint32_t k = (uint32_t)__ffs((int)some) - 1;
			const uint32_t w = __shfl_sync(ROWOUT_ALL, word, (int)k), to = __shfl_sync(ROWOUT_ALL, before, (int)k);
			const uint32_t from = __shfl_sync(ROWOUT_ALL, point, (int)k);
			if (w >> lane & 1)
				p.out[to + __popc(w & (1u << lane) - 1)] = __ldg(ids + from + lane);
		}
	}
}

// Today's: a warp evaluates eight queries for 32 points at a time, a lane a point; a ballot
// is a word of the linear bitmap. ROWOUT_STEP is 0 for the bitmap and the counts, 1 for
// counts alone, 2 for ids: those who count first and evaluate twice need no bitmap.
template <int step>
ROWOUT_INLINE void rowout_ballot(const RowoutParams &p)
{
	const RowoutTask t = p.tasks[blockIdx.x];
	const RowoutCell c = p.cells[t.cell];
	const uint32_t lane = threadIdx.x % 32, last = min(t.first + ROWOUT_THREADS, c.entries);
	for (uint32_t first = t.first + threadIdx.x / 32 * 8; first < last; first += ROWOUT_WARPS * 8) {
		int4 q[8];
		uint32_t word[8], count[8];
#pragma unroll
		for (uint32_t k = 0; k < 8; k++) {
			uint32_t number;
			q[k] = rowout_query(p, c, first + k, number);
			word[k] = 0;
			count[k] = step == 2 && first + k < c.entries ? __ldg(p.positions + c.first_entry + first + k) : 0;
		}
		for (uint32_t line = 0; line < c.lines; line++) {
			const uint32_t point = line * 32 + lane;
			const bool there = point < c.points;
			const int2 at = there ? __ldg(p.points + c.first_point + point) : make_int2(0, 0);
			const uint32_t id = step == 2 && there ? __ldg(p.ids + c.first_point + point) : 0;
#pragma unroll
			for (uint32_t k = 0; k < 8; k++) {
				const bool inside = there && rowout_inside(at, q[k]);
				const uint32_t w = __ballot_sync(ROWOUT_ALL, inside);
				if (step == 2 && inside)
					p.out[count[k] + __popc(w & (1u << lane) - 1)] = id;
				count[k] += __popc(w);
				if (step == 0 && line % 32 == lane)
					word[k] = w;
			}
			if (step == 0 && (line % 32 == 31 || line + 1 == c.lines)) {
				const uint32_t begin = line - line % 32;
				if (begin + lane < c.lines)
#pragma unroll
					for (uint32_t k = 0; k < 8; k++)
						p.linear[c.first_word + (uint64_t)(first + k) * c.lines + begin + lane] = word[k];
			}
		}
		if (step != 2 && lane < 8 && first + lane < c.entries) {
			uint32_t mine = 0;
#pragma unroll
			for (uint32_t k = 0; k < 8; k++)
				mine = k == lane ? count[k] : mine;
			p.counts[c.first_entry + first + lane] = mine;
		}
	}
}

PGACCEL_KERNEL(rowout_ballot_bitmap, RowoutParams, p, ROWOUT_THREADS, 1) { rowout_ballot<0>(p); }
PGACCEL_KERNEL(rowout_ballot_count, RowoutParams, p, ROWOUT_THREADS, 1) { rowout_ballot<1>(p); }
PGACCEL_KERNEL(rowout_ballot_write, RowoutParams, p, ROWOUT_THREADS, 1) { rowout_ballot<2>(p); }

// rowout_look_back returns the sum of the totals of blocks before this one. A warp comes;
// each block has a word that says nothing at first, then its total, then the sum up to it,
// and looks back as far as the nearest of these ("Single-pass Parallel Prefix Scan with
// Decoupled Look-back", Merrill and Garland).
#define ROWOUT_TOTAL (1ull << 32)
#define ROWOUT_UPTO (2ull << 32)

ROWOUT_INLINE uint32_t rowout_look_back(unsigned long long *status, uint32_t total)
{
	const uint32_t block = blockIdx.x, lane = threadIdx.x % 32;
	if (lane == 0)
		atomicExch(status + block, (block == 0 ? ROWOUT_UPTO : ROWOUT_TOTAL) | total);
	uint32_t sum = 0;
	for (uint32_t end = block; end > 0; end -= 32) {
		const bool there = lane < end;
		unsigned long long s;
		do
			s = there ? __ldcg(status + end - 1 - lane) : ROWOUT_UPTO;
		while (__any_sync(ROWOUT_ALL, s < ROWOUT_TOTAL));
		const uint32_t upto = __ballot_sync(ROWOUT_ALL, s >= ROWOUT_UPTO);
		const uint32_t last = upto != 0 ? (uint32_t)__ffs((int)upto) - 1 : 31;
		sum += __reduce_add_sync(ROWOUT_ALL, lane <= last ? (uint32_t)s : 0u);
		if (upto != 0)
			break;
	}
	if (lane == 0 && block > 0)
		atomicExch(status + block, ROWOUT_UPTO | (sum + total));
	return sum;
}

// Words of entries that a block has in shared memory, and ids of a warp's results.
#define ROWOUT_LINES 16
#define ROWOUT_STRIDE (ROWOUT_THREADS + 1) // words of an entry are in different banks
#define ROWOUT_ROOM 640

// rowout_words evaluates each thread's query for up to 32*ROWOUT_LINES points from a line on,
// and returns how many pass.
ROWOUT_INLINE uint32_t rowout_words(int2 *stage, uint32_t *words, uint32_t *ids, const RowoutParams &p, const RowoutTask &t, const RowoutCell &c, uint32_t line, int4 q)
{
	uint32_t count = 0;
	for (uint32_t l = 0; l < ROWOUT_LINES && line + l < c.lines; l += 4) {
		const uint32_t point = (line + l) * 32, at = point + threadIdx.x;
		rowout_stage(stage, p, c, point);
		ids[l * 32 + threadIdx.x] = at < c.points ? __ldg(p.ids + c.first_point + at) : 0;
		if (rowout_idle(t, c))
			continue;
#pragma unroll 1
		for (uint32_t w = 0; w < 4 && point + 32 * w < c.points; w++) {
			uint32_t word = 0;
#pragma unroll
			for (uint32_t i = 0; i < 32; i++)
				word |= (rowout_inside(stage[32 * w + i], q) ? 1u : 0u) << i;
			words[(l + w) * ROWOUT_STRIDE + threadIdx.x] = word;
			count += __popc(word);
		}
	}
	__syncthreads();
	return count;
}

// All in one: a block evaluates its entries, learns where their results begin from the blocks
// before it, and writes ids. Entries with few results are decoded by a thread each, to shared
// memory, and the warp's ids written together; those with many by a warp.
PGACCEL_KERNEL(rowout_fused, RowoutParams, p, ROWOUT_THREADS, 8)
{
	__shared__ int2 stage[ROWOUT_THREADS];
	__shared__ uint32_t words[ROWOUT_LINES * ROWOUT_STRIDE], ids[ROWOUT_LINES * 32], room[ROWOUT_WARPS][ROWOUT_ROOM];
	__shared__ uint32_t warps[ROWOUT_WARPS], begin[1];
	const RowoutTask t = p.tasks[blockIdx.x];
	const RowoutCell c = p.cells[t.cell];
	const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, entry = t.first + threadIdx.x;
	uint32_t number;
	const int4 q = rowout_query(p, c, entry, number);
	uint32_t count = 0;
	for (uint32_t line = 0; line < c.lines; line += ROWOUT_LINES)
		count += rowout_words(stage, words, ids, p, t, c, line, q);
	uint32_t total;
	const uint32_t before = scan_block<ROWOUT_WARPS>(count, warps, total) - count;
	if (warp == 0) {
		const uint32_t sum = rowout_look_back(p.status, total);
		if (lane == 0)
			begin[0] = sum;
	}
	__syncthreads();
	uint32_t at = begin[0] + before;
	const uint32_t first = __shfl_sync(ROWOUT_ALL, at, 0); // of the warp
	if (entry < c.entries) {
		p.counts[c.first_entry + entry] = count;
		p.positions[c.first_entry + entry] = at;
	}
	const uint32_t mine = warps[warp];
	if (c.lines <= ROWOUT_LINES && mine <= ROWOUT_ROOM) {
		if (mine == 0)
			return;
		uint32_t to = at - first;
		for (uint32_t l = 0; l < c.lines; l++)
			for (uint32_t word = words[l * ROWOUT_STRIDE + threadIdx.x]; word != 0; word &= word - 1)
				room[warp][to++] = ids[l * 32 + (uint32_t)__ffs((int)word) - 1];
		__syncwarp();
		for (uint32_t i = lane; i < mine; i += 32)
			p.out[first + i] = room[warp][i];
		return;
	}
	for (uint32_t line = 0; line < c.lines; line += ROWOUT_LINES) {
		uint32_t here = count;
		if (c.lines > ROWOUT_LINES)
			here = rowout_words(stage, words, ids, p, t, c, line, q);
		const uint32_t n = min((uint32_t)ROWOUT_LINES, c.lines - line);
		for (uint32_t some = __ballot_sync(ROWOUT_ALL, here != 0); some != 0; some &= some - 1) {
			const uint32_t e = (uint32_t)__ffs((int)some) - 1;
			uint32_t to = __shfl_sync(ROWOUT_ALL, at, (int)e);
#pragma unroll 4
			for (uint32_t l = 0; l < n; l++) {
				const uint32_t word = words[l * ROWOUT_STRIDE + warp * 32 + e];
				if (word >> lane & 1)
					p.out[to + __popc(word & (1u << lane) - 1)] = ids[l * 32 + lane];
				to += __popc(word);
			}
		}
		at += here;
	}
}

// rowout_append is one atomic for one row. A compiler that sees atomicAdd of a constant
// makes it one for a warp, which is another method.
ROWOUT_INLINE unsigned long long rowout_append(unsigned long long *counter)
{
#ifdef PGACCEL_EMULATOR
	return atomicAdd(counter, 1ull);
#else
	unsigned long long old;
	asm volatile("atom.global.add.u64 %0, [%1], 1;" : "=l"(old) : "l"(counter) : "memory");
	return old;
#endif
}

// Section 2.3: filter as above, but each result is appended to a list of pairs. aggregated:
// the results of a warp's queries for a point take one atomic.
template <bool aggregated>
ROWOUT_INLINE void rowout_atomic(const RowoutParams &p, int2 *stage)
{
	const RowoutTask t = p.tasks[blockIdx.x];
	const RowoutCell c = p.cells[t.cell];
	const uint32_t lane = threadIdx.x % 32;
	uint32_t number;
	const int4 q = rowout_query(p, c, t.first + threadIdx.x, number);
	for (uint32_t point = 0; point < c.points; point += ROWOUT_THREADS) {
		rowout_stage(stage, p, c, point);
		if (rowout_idle(t, c))
			continue;
		for (uint32_t i = 0; i < ROWOUT_THREADS && point + i < c.points; i++) {
			const bool inside = rowout_inside(stage[i], q);
			if (aggregated) {
				const uint32_t hits = __ballot_sync(ROWOUT_ALL, inside);
				if (hits == 0)
					continue;
				unsigned long long at = 0;
				if (lane == 0)
					at = atomicAdd(p.result, (unsigned long long)__popc(hits));
				at = __shfl_sync(ROWOUT_ALL, at, 0);
				if (inside)
					p.pairs[at + __popc(hits & (1u << lane) - 1)] = make_uint2(number, __ldg(p.ids + c.first_point + point + i));
			} else if (inside)
				p.pairs[rowout_append(p.result)] = make_uint2(number, __ldg(p.ids + c.first_point + point + i));
		}
	}
}

PGACCEL_KERNEL(rowout_atomic_row, RowoutParams, p, ROWOUT_THREADS, 1)
{
	__shared__ int2 stage[ROWOUT_THREADS];
	rowout_atomic<false>(p, stage);
}

PGACCEL_KERNEL(rowout_atomic_warp, RowoutParams, p, ROWOUT_THREADS, 1)
{
	__shared__ int2 stage[ROWOUT_THREADS];
	rowout_atomic<true>(p, stage);
}

// The check: sums of what a query and an id are mixed to, of lists and of n pairs.
ROWOUT_INLINE unsigned long long rowout_mix(uint32_t query, uint32_t id)
{
	unsigned long long h = ((unsigned long long)query << 32 | id) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
	return h ^ h >> 32;
}

PGACCEL_KERNEL(rowout_check_lists, RowoutParams, p, ROWOUT_THREADS, 1)
{
	const uint32_t entry = blockIdx.x * ROWOUT_WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
	if (entry >= p.n)
		return;
	const uint32_t query = p.entries[entry], at = p.positions[entry], n = p.counts[entry];
	unsigned long long sum = 0;
	for (uint32_t i = lane; i < n; i += 32)
		sum += rowout_mix(query, p.out[at + i]);
	if (n > 0)
		atomicAdd(p.result, sum);
}

PGACCEL_KERNEL(rowout_check_pairs, RowoutParams, p, ROWOUT_THREADS, 1)
{
	unsigned long long sum = 0;
	for (uint32_t i = blockIdx.x * ROWOUT_THREADS + threadIdx.x; i < p.n; i += gridDim.x * ROWOUT_THREADS)
		sum += rowout_mix(p.pairs[i].x, p.pairs[i].y);
	atomicAdd(p.result, sum);
}
