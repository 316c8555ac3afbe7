// Rows of segments by bitmap indexes: bins of 64-bit WAH, as package bitmapidx lays atoms out,
// are added up in shared memory, a block for each segment, and what is left of its live rows is
// written as the live rows that a scan reads. Nothing else of what is decoded leaves the block.
//
// A clause is one term or several, of which one has to hold; all clauses have to. The atoms of a
// term are whole bins one after the other. Each stands for all chunks of the segment, so that a
// prefix sum over the lengths, modulo the chunks, says where an atom belongs, whichever bin it is of.
#pragma once
#include "lanes.cuh"

constexpr uint32_t NARROW_THREADS = 256;
constexpr uint32_t NARROW_WORDS = 65536 / 32; // of a segment's rows
constexpr uint32_t NARROW_OWN = NARROW_WORDS / NARROW_THREADS;

// program.packIndexed has these three, too.
struct NarrowSegment {
	uint32_t segment, first, terms, pad;
};
struct NarrowTerm {
	const uint64_t *atoms;
	uint32_t first, parts; // and NARROW_NOT, NARROW_OR
};
struct NarrowPart {
	uint32_t from, to; // atoms
};

constexpr uint32_t NARROW_NOT = 1u << 31; // the rows are those that the atoms do not have
constexpr uint32_t NARROW_OR = 1u << 30;  // the next term is of the same clause

struct NarrowParams {
	const NarrowSegment *segments;
	const NarrowTerm *terms;
	const NarrowPart *parts;
	const SegmentHead *heads;
	SegmentHead *narrowed;
	uint32_t *bitmaps; // NARROW_WORDS for each block
};

struct NarrowShared {
	uint32_t rows[NARROW_WORDS];
	uint32_t sums[NARROW_THREADS / 32];
};

// narrow_literal adds a chunk of 63 rows from row first on. Rows past the end are zeros.
PGACCEL_INLINE void narrow_literal(uint32_t *rows, uint32_t first, uint64_t literal)
{
	const uint32_t word = first >> 5, shift = first & 31, low = (uint32_t)literal, high = (uint32_t)(literal >> 32);
	const uint32_t part[3] = {low << shift, __funnelshift_l(low, high, shift), shift == 0 ? 0 : high >> (32 - shift)};
#pragma unroll
	for (uint32_t i = 0; i < 3; i++)
		if (part[i] != 0)
			atomicOr(rows + word + i, part[i]);
}

// narrow_ones adds rows [first, end), the same for all lanes of a warp.
PGACCEL_INLINE void narrow_ones(uint32_t *rows, uint32_t first, uint32_t end, uint32_t lane)
{
	const uint32_t begin = first >> 5, last = (end - 1) >> 5;
	for (uint32_t i = begin + lane; i <= last; i += 32) {
		uint32_t bits = 0xffffffffu;
		if (i == begin)
			bits &= 0xffffffffu << (first & 31);
		if (i == last)
			bits &= 0xffffffffu >> (31 - ((end - 1) & 31));
		atomicOr(rows + i, bits);
	}
}

// narrow_part adds atoms [from, to) of a segment of so many chunks.
PGACCEL_INLINE void narrow_part(NarrowShared &s, const uint64_t *atoms, uint32_t from, uint32_t to, uint32_t chunks)
{
	const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	uint32_t at = 0;
	for (; from < to; from += NARROW_THREADS) { // uniform
		const uint32_t i = from + threadIdx.x;
		const uint64_t atom = i < to ? __ldcs(atoms + i) : 0;
		const bool fill = (int64_t)atom < 0;
		const uint32_t n = i >= to ? 0 : fill ? (uint32_t)atom : 1, upto = warp_scan(n, lane);
		if (lane == 31)
			s.sums[warp] = upto;
		__syncthreads();
		uint32_t before = at;
		for (uint32_t w = 0; w < NARROW_THREADS / 32; w++) {
			before += w < warp ? s.sums[w] : 0;
			at += s.sums[w];
		}
		__syncthreads();
		at %= chunks;
		const uint32_t first = (before + upto - n) % chunks * 63, end = first + n * 63;
		const bool ones = fill && (atom >> 62 & 1) != 0;
		if (!fill && atom != 0)
			narrow_literal(s.rows, first, atom);
		for (uint32_t fills = __ballot_sync(PGACCEL_WARP, ones); fills != 0; fills &= fills - 1) {
			const uint32_t source = __ffs((int)fills) - 1;
			const uint32_t begin = __shfl_sync(PGACCEL_WARP, first, source);
			narrow_ones(s.rows, begin, __shfl_sync(PGACCEL_WARP, end, source), lane);
		}
	}
}

// narrow_rows narrows the live rows of a segment, of which a thread has every NARROW_THREADS-th word.
PGACCEL_INLINE void narrow_rows(const NarrowParams &p, NarrowShared &s)
{
	const NarrowSegment segment = p.segments[blockIdx.x];
	const SegmentHead head = p.heads[segment.segment];
	const uint32_t rows = head.rows, chunks = (rows + 62) / 63;
	uint32_t left[NARROW_OWN], clause[NARROW_OWN];
#pragma unroll
	for (uint32_t k = 0; k < NARROW_OWN; k++) {
		const uint32_t i = threadIdx.x + k * NARROW_THREADS, first = i * 32;
		left[k] = first >= rows ? 0 : head.live != nullptr ? __ldg(head.live + i) : 0xffffffffu;
		if (first < rows && rows - first < 32)
			left[k] &= (1u << (rows - first)) - 1;
		clause[k] = 0;
		s.rows[i] = 0;
	}
	__syncthreads();
	for (uint32_t t = 0; t < segment.terms; t++) { // uniform
		const NarrowTerm term = p.terms[segment.first + t];
		const uint32_t parts = term.parts & (NARROW_OR - 1);
		for (uint32_t i = 0; i < parts; i++) {
			const NarrowPart part = p.parts[term.first + i];
			narrow_part(s, term.atoms, part.from, part.to, chunks);
		}
		__syncthreads();
		const uint32_t flip = (term.parts & NARROW_NOT) != 0 ? 0xffffffffu : 0;
		const bool more = (term.parts & NARROW_OR) != 0;
#pragma unroll
		for (uint32_t k = 0; k < NARROW_OWN; k++) {
			uint32_t *word = s.rows + threadIdx.x + k * NARROW_THREADS;
			clause[k] |= *word ^ flip;
			*word = 0;
			if (!more) {
				left[k] &= clause[k];
				clause[k] = 0;
			}
		}
		__syncthreads();
	}
	uint32_t *bitmap = p.bitmaps + (uint64_t)blockIdx.x * NARROW_WORDS;
	uint32_t any = 0;
#pragma unroll
	for (uint32_t k = 0; k < NARROW_OWN; k++) {
		const uint32_t i = threadIdx.x + k * NARROW_THREADS;
		any |= left[k];
		if (i * 32 < rows)
			bitmap[i] = left[k];
	}
	const bool some = __syncthreads_or(any != 0) != 0;
	if (threadIdx.x == 0) {
		SegmentHead out;
		out.live = bitmap;
		out.rows = some ? rows : 0; // a scan need not look at the bitmap
		out.pad = 0;
		p.narrowed[segment.segment] = out;
	}
}
