// Rows of segments by bitmap indexes (package bitmapidx draws them): bins of 64-bit WAH that a condition
// selects are added up in shared memory, a block for each segment, and what is left of its live rows is
// written as the live rows that a scan reads. Nothing else of what is decoded leaves the block.
//
// A clause is one term or several, of which one has to hold; all clauses have to. Warps first look for the bins
// of a term each, side by side, since that waits for memory several times; then the block adds up the terms one
// after the other. The atoms of neighbouring bins lie one after the other. Each bin's stand for all chunks of the
// segment, so that a prefix sum over the lengths, modulo the chunks, says where an atom belongs, whichever bin it is of.
#pragma once
#include "lanes.cuh"

constexpr uint32_t NARROW_THREADS = 128;
constexpr uint32_t NARROW_WORDS = 65536 / 32; // of a segment's rows
constexpr uint32_t NARROW_OWN = NARROW_WORDS / NARROW_THREADS;
constexpr uint32_t NARROW_TERMS = 32; // program.IndexTermsMax
constexpr uint32_t NARROW_NONE = 32;  // no bit of SegmentHead.decided
constexpr uint32_t NARROW_RANGE = 0, NARROW_BITS = 1, NARROW_LIST = 2;
constexpr uint32_t NARROW_BINS = 128; // of an index: bitmapidx makes at most 65

// program.Narrow has these two, too.
struct NarrowTerm {
	const uint64_t *const *indexes; // of the segments; null: it has none
	const void *values;             // NARROW_BITS: the set of values from lo on; NARROW_LIST: values, ascending
	int64_t lo, hi;                 // outside of which no value is asked for
	uint32_t kind, count;           // NARROW_RANGE ...; how many values a list has
	uint32_t decides; // the bit of SegmentHead.decided that is set where all rows that are left pass
	uint32_t more;    // the next term is of the same clause
};
struct NarrowParams {
	const uint32_t *list; // of segments; null: the first ones
	const SegmentHead *heads;
	SegmentHead *narrowed;
	uint32_t *bitmaps; // NARROW_WORDS for each block
	uint32_t *alive;   // how many vectors have rows that are left, and which: segment << 6 | vector
	uint32_t terms, pad;
	NarrowTerm term[NARROW_TERMS];
};

// BitmapIndex is an index of one column of one segment.
struct BitmapIndex {
	uint32_t bins;
	const int64_t *lo, *hi; // by bin
	const uint64_t *ends;   // of the bins' atoms, then of those of rows that are null
	const uint64_t *atoms;
};

PGACCEL_INLINE BitmapIndex bitmap_index(const uint64_t *words)
{
	BitmapIndex x;
	x.bins = (uint32_t)__ldg(words);
	x.lo = (const int64_t *)words + 1;
	x.hi = x.lo + x.bins;
	x.ends = (const uint64_t *)(x.hi + x.bins);
	x.atoms = x.ends + x.bins + 1;
	return x;
}

// bin_start is where the atoms of bin b begin.
PGACCEL_INLINE uint32_t bin_start(const BitmapIndex &x, uint32_t b)
{
	return b == 0 ? 0 : (uint32_t)__ldg(x.ends + b - 1);
}

// NarrowFound is the bins of a term.
struct NarrowFound {
	const uint64_t *ends, *atoms; // null: there is no index
	uint32_t from, to;            // atoms of a range; of a set, none
	uint32_t others;              // the rows are those that the atoms do not have
	uint32_t exact;               // all rows of the bins pass
};

struct NarrowShared {
	uint32_t rows[NARROW_WORDS];
	uint32_t sums[NARROW_THREADS / 32];
	NarrowFound found[NARROW_TERMS];
	uint32_t bins[NARROW_TERMS][NARROW_BINS / 32]; // of a set: those that may have one of its values
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
		const uint64_t atom = i < to ? __ldg(atoms + i) : 0;
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

// narrow_find_range has a warp look for the bins that may have a value of an interval. Those outside of it are
// taken instead where they have fewer atoms and the term is a clause of its own.
PGACCEL_INLINE NarrowFound narrow_find_range(const BitmapIndex &x, const NarrowTerm &term, bool alone, uint32_t lane)
{
	NarrowFound f;
	uint32_t from = 0, to = 0; // bins within the interval
	for (uint32_t b = 0; b < x.bins; b += 32) {
		const uint32_t i = b + lane;
		const bool is = i < x.bins;
		const int64_t lo = is ? __ldg(x.lo + i) : 0, hi = is ? __ldg(x.hi + i) : 0;
		from += __popc(__ballot_sync(PGACCEL_WARP, is && lo < term.lo));
		to += __popc(__ballot_sync(PGACCEL_WARP, is && hi <= term.hi));
	}
	f.exact = 1;
	if (from > to) { // within one bin
		f.exact = 0;
		from = to, to++;
	} else {
		if (from > 0 && __ldg(x.hi + from - 1) >= term.lo)
			f.exact = 0, from--;
		if (to < x.bins && __ldg(x.lo + to) <= term.hi)
			f.exact = 0, to++;
	}
	f.ends = x.ends + x.bins;
	f.atoms = x.atoms;
	f.from = from < to ? bin_start(x, from) : 0;
	f.to = from < to ? bin_start(x, to) : 0;
	f.others = alone && (uint32_t)__ldg(f.ends) - (f.to - f.from) < f.to - f.from;
	return f;
}

// set_has reports whether a set, of values from lo on, may have one in [first, last], which it is asked for a
// few words of.
PGACCEL_INLINE bool set_has(const uint32_t *bits, uint64_t first, uint64_t last)
{
	const uint64_t begin = first >> 5, end = last >> 5;
	if (end - begin >= 64)
		return true;
	for (uint64_t i = begin; i <= end; i++) {
		uint32_t word = __ldg(bits + i);
		if (i == begin)
			word &= 0xffffffffu << (first & 31);
		if (i == end)
			word &= 0xffffffffu >> (31 - (last & 31));
		if (word != 0)
			return true;
	}
	return false;
}

// list_has reports whether one of n values, ascending, is in [first, last].
PGACCEL_INLINE bool list_has(const int64_t *values, uint32_t n, int64_t first, int64_t last)
{
	uint32_t from = 0, to = n; // of the first that is not less
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		if (__ldg(values + middle) < first)
			from = middle + 1;
		else
			to = middle;
	}
	return from < n && __ldg(values + from) <= last;
}

// narrow_find_set is narrow_find_range for a set of values, whose bins are noted one by one.
PGACCEL_INLINE NarrowFound narrow_find_set(const BitmapIndex &x, const NarrowTerm &term, uint32_t *bins, uint32_t lane)
{
	NarrowFound f;
	f.exact = 1;
	for (uint32_t b = 0; b < x.bins && b < NARROW_BINS; b += 32) {
		const uint32_t i = b + lane;
		bool some = false, many = false;
		if (i < x.bins) {
			const int64_t lo = __ldg(x.lo + i), hi = __ldg(x.hi + i);
			if (lo <= term.hi && hi >= term.lo) {
				many = lo < hi;
				some = term.kind == NARROW_LIST ? list_has((const int64_t *)term.values, term.count, lo, hi) : set_has((const uint32_t *)term.values, (uint64_t)(lo > term.lo ? lo : term.lo) - (uint64_t)term.lo, (uint64_t)(hi < term.hi ? hi : term.hi) - (uint64_t)term.lo);
			}
		}
		const uint32_t selected = __ballot_sync(PGACCEL_WARP, some);
		if (lane == 0)
			bins[b / 32] = selected;
		if (__any_sync(PGACCEL_WARP, some && many))
			f.exact = 0;
	}
	f.ends = x.ends;
	f.atoms = x.atoms;
	f.from = 0;
	f.to = x.bins;
	f.others = 0;
	return f;
}

// prefetch_line has the line of 128 bytes that has p come to the first cache.
PGACCEL_INLINE void prefetch_line(const void *p)
{
#ifndef PGACCEL_EMULATOR
	asm volatile("prefetch.global.L1 [%0];" ::"l"(p));
#else
	(void)p;
#endif
}

// narrow_find looks for the bins of all terms, and has the atoms of ranges come closer.
PGACCEL_INLINE void narrow_find(const NarrowParams &p, NarrowShared &s, uint32_t segment)
{
	const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	for (uint32_t t = warp; t < p.terms; t += NARROW_THREADS / 32) {
		const NarrowTerm &term = p.term[t];
		const uint64_t *words = term.indexes[segment];
		NarrowFound f = {nullptr, nullptr, 0, 0, 0, 0};
		if (words != nullptr) {
			const BitmapIndex x = bitmap_index(words);
			if (term.kind != NARROW_RANGE) {
				f = narrow_find_set(x, term, s.bins[t], lane);
			} else {
				f = narrow_find_range(x, term, term.more == 0 && (t == 0 || p.term[t - 1].more == 0), lane);
				const uint64_t *line = x.atoms + (f.others ? 0 : f.from) + lane * 16;
				if (line < x.atoms + f.to)
					prefetch_line(line);
			}
		}
		if (lane == 0)
			s.found[t] = f;
	}
}

// narrow_add adds the rows of a term's bins.
PGACCEL_INLINE void narrow_add(NarrowShared &s, const NarrowFound &f, bool set, const uint32_t *bins, uint32_t chunks)
{
	if (!set && f.others != 0) {
		narrow_part(s, f.atoms, 0, f.from, chunks);
		narrow_part(s, f.atoms, f.to, (uint32_t)__ldg(f.ends), chunks);
		return;
	}
	if (!set) {
		narrow_part(s, f.atoms, f.from, f.to, chunks);
		return;
	}
	for (uint32_t b = 0; b < f.to;) { // uniform: neighbours are added together
		if (!shared_bit_of(bins, b)) {
			b++;
			continue;
		}
		const uint32_t start = b == 0 ? 0 : (uint32_t)__ldg(f.ends + b - 1);
		while (b < f.to && shared_bit_of(bins, b))
			b++;
		narrow_part(s, f.atoms, start, (uint32_t)__ldg(f.ends + b - 1), chunks);
	}
}

// narrow_rows narrows the live rows of a segment, of which a thread has every NARROW_THREADS-th word.
PGACCEL_INLINE void narrow_rows(const NarrowParams &p, NarrowShared &s)
{
	const uint32_t segment = p.list != nullptr ? __ldg(p.list + blockIdx.x) : blockIdx.x;
	const SegmentHead head = p.heads[segment];
	const uint32_t rows = head.rows, chunks = (rows + 62) / 63;
	uint32_t left[NARROW_OWN], decided = 0;
#pragma unroll
	for (uint32_t k = 0; k < NARROW_OWN; k++) {
		const uint32_t i = threadIdx.x + k * NARROW_THREADS, first = i * 32;
		left[k] = first >= rows ? 0 : head.live != nullptr ? __ldg(head.live + i) : 0xffffffffu;
		if (first < rows && rows - first < 32)
			left[k] &= (1u << (rows - first)) - 1;
		s.rows[i] = 0;
	}
	narrow_find(p, s, segment);
	__syncthreads();
	bool some = rows > 0, any = false; // any: a term of the clause has no index, so that any row may pass
	for (uint32_t t = 0; t < p.terms && some; t++) { // uniform
		const NarrowFound f = s.found[t];
		const NarrowTerm &term = p.term[t];
		if (f.atoms != nullptr)
			narrow_add(s, f, term.kind != NARROW_RANGE, s.bins[t], chunks);
		else
			any = true;
		if (f.atoms != nullptr && f.exact != 0 && term.decides != NARROW_NONE)
			decided |= 1u << term.decides;
		if (term.more != 0)
			continue;
		__syncthreads();
		const uint32_t flip = any || f.others != 0 ? 0xffffffffu : 0;
		bool remains = false;
#pragma unroll
		for (uint32_t k = 0; k < NARROW_OWN; k++) {
			uint32_t *word = s.rows + threadIdx.x + k * NARROW_THREADS;
			left[k] &= any ? flip : *word ^ flip;
			*word = 0;
			remains = remains || left[k] != 0;
		}
		any = false;
		some = __syncthreads_or(remains) != 0;
	}
	uint32_t *bitmap = p.bitmaps + (uint64_t)blockIdx.x * NARROW_WORDS;
	uint32_t vectors = 0; // bit k: the warp's k-th vector has rows
#pragma unroll
	for (uint32_t k = 0; k < NARROW_OWN && some; k++) {
		const uint32_t i = threadIdx.x + k * NARROW_THREADS;
		if (i * 32 < rows)
			bitmap[i] = left[k];
		vectors |= __any_sync(PGACCEL_WARP, left[k] != 0) ? 1u << k : 0;
	}
	const uint32_t lane = threadIdx.x & 31, own = vectors >> lane & 1;
	uint32_t first = 0;
	if (lane == 0 && vectors != 0)
		first = atomicAdd(p.alive, (uint32_t)__popc(vectors));
	first = __shfl_sync(PGACCEL_WARP, first, 0) + (uint32_t)__popc(vectors & ((1u << lane) - 1));
	if (own != 0)
		p.alive[1 + first] = segment << 6 | (lane * NARROW_THREADS + (threadIdx.x & ~31u)) >> 5;
	if (threadIdx.x == 0) {
		SegmentHead out;
		out.live = bitmap;
		out.rows = some ? rows : 0; // a scan need not look at the bitmap
		out.decided = decided;
		p.narrowed[segment] = out;
	}
}
