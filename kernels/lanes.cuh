// Device lanes: columns of segments as gpu/program's package comment draws them.
#pragma once
#include "pgaccel.cuh"

#ifdef PGACCEL_EMULATOR
#define PGACCEL_INLINE static inline
#else
#define PGACCEL_INLINE static __device__ __forceinline__
#endif

#define PGACCEL_WARP 0xffffffffu // all lanes

// SegmentHead describes a segment: program.AppendSegmentHead.
struct SegmentHead {
	const uint32_t *live; // a bit for each row that counts; null: all do
	uint32_t rows;
	uint32_t decided; // by bitmap indexes: steps that all rows pass that have a value (program.decidedBit)
};
static_assert(sizeof(SegmentHead) == 16, "as in gpu/program/layout.go");

// ColumnSegment describes a column of a segment: program.AppendColumnSegment.
struct __align__(16) ColumnSegment {
	const uint32_t *words;
	int64_t reference;
	const uint32_t *nulls; // a bit for each row that is null; null: none is
	uint32_t width;
	uint32_t pad;
};
static_assert(sizeof(ColumnSegment) == 32, "as in gpu/program/layout.go");

// lane_mask has the low width bits, width at most 32.
PGACCEL_INLINE uint32_t lane_mask(uint32_t width)
{
	return width >= 32 ? 0xffffffffu : (1u << width) - 1;
}

// lane_bits returns the offset of the value at a position of one lane, whose first word is
// at lane. A warp reads 32 consecutive rows so, with one load or two of 128 bytes; the
// second condition is the same for all its lanes. width is 1 to 32: of width 0 a word is
// read, too, and 0 returned.
PGACCEL_INLINE uint32_t lane_bits(const uint32_t *lane, uint32_t position, uint32_t width)
{
	const uint32_t bit = position * width, shift = bit & 31;
	const uint32_t *word = lane + (bit >> 5) * 32;
	const uint32_t low = __ldg(word);
	const uint32_t high = shift + width > 32 ? __ldg(word + 32) : 0;
	return __funnelshift_r(low, high, shift) & lane_mask(width);
}

// lane_bits64 is lane_bits for widths up to 64: two packings.
PGACCEL_INLINE uint64_t lane_bits64(const uint32_t *lane, uint32_t position, uint32_t width)
{
	if (width <= 32)
		return lane_bits(lane, position, width);
	const uint32_t low = __ldg(lane + position * 32);
	return (uint64_t)lane_bits(lane + 32 * 32, position, width - 32) << 32 | low;
}

// lane_start returns where a lane of a vector begins. nowhere is what can be read instead
// where there are no words: 256 bytes.
PGACCEL_INLINE const uint32_t *lane_start(const ColumnSegment &c, uint32_t vector, uint32_t lane, const uint32_t *nowhere)
{
	return c.width != 0 ? c.words + vector * c.width * 32 + lane : nowhere + lane;
}

// RowColumn is what a lane needs to read a column at a row of its own: half a descriptor.
struct RowColumn {
	const uint32_t *words;
	int64_t reference;
};

// row_column reads it, by one load.
PGACCEL_INLINE RowColumn row_column(const ColumnSegment *c)
{
	const ulonglong2 half = __ldg((const ulonglong2 *)c);
	RowColumn r;
	r.words = (const uint32_t *)half.x;
	r.reference = (int64_t)half.y;
	return r;
}

// row_bits returns the offset of one row, each lane its own.
PGACCEL_INLINE uint32_t row_bits(const uint32_t *words, uint32_t width, uint32_t row)
{
	if (width == 0)
		return 0;
	return lane_bits(words + (row >> 10) * width * 32 + (row & 31), row >> 5 & 31, width);
}

// row_bits64 is row_bits for widths up to 64.
PGACCEL_INLINE uint64_t row_bits64(const uint32_t *words, uint32_t width, uint32_t row)
{
	if (width == 0)
		return 0;
	return lane_bits64(words + (row >> 10) * width * 32 + (row & 31), row >> 5 & 31, width);
}

// bit_of reads a bit of a bitmap in global memory.
PGACCEL_INLINE bool bit_of(const uint32_t *words, uint32_t i)
{
	return __ldg(words + (i >> 5)) >> (i & 31) & 1;
}

// shared_bit_of reads a bit of a bitmap in shared memory.
PGACCEL_INLINE bool shared_bit_of(const uint32_t *words, uint32_t i)
{
	return words[i >> 5] >> (i & 31) & 1;
}

// position_words returns to each lane the word of a bitmap for the position that has the
// lane's number: bits of rows from rows on are 0.
PGACCEL_INLINE uint32_t position_words(const uint32_t *bitmap, uint32_t vector, uint32_t lane, uint32_t rows)
{
	const uint32_t first = vector * 1024 + lane * 32;
	if (first >= rows)
		return 0;
	const uint32_t word = __ldg(bitmap + vector * 32 + lane);
	return rows - first < 32 ? word & ((1u << (rows - first)) - 1) : word;
}

// transpose_bits exchanges rows and columns of the 32 x 32 bits that a warp's lanes have: a
// word for each position becomes a word for each lane, and back.
PGACCEL_INLINE uint32_t transpose_bits(uint32_t word, uint32_t lane)
{
	uint32_t low = 0x0000ffffu; // of each pair of groups of k bits the first
#pragma unroll
	for (uint32_t k = 16; k > 0; k >>= 1) {
		const uint32_t other = __shfl_xor_sync(PGACCEL_WARP, word, k);
		word = (lane & k) == 0 ? (word & low) | (other & low) << k : (word & ~low) | (other & ~low) >> k;
		low ^= low << (k >> 1);
	}
	return word;
}

// lane_rows returns a lane's rows of a vector: bit p is row p*32 + lane.
PGACCEL_INLINE uint32_t lane_rows(uint32_t vector, uint32_t lane, uint32_t rows)
{
	const uint32_t first = vector * 1024 + lane;
	const uint32_t n = rows <= first ? 0 : (rows - first + 31) / 32;
	return n >= 32 ? 0xffffffffu : (1u << n) - 1;
}

// lane_bitmap returns a lane's bits of a bitmap of the vector's rows, none where there is
// no bitmap.
PGACCEL_INLINE uint32_t lane_bitmap(const uint32_t *bitmap, uint32_t vector, uint32_t lane, uint32_t rows)
{
	return bitmap != nullptr ? transpose_bits(position_words(bitmap, vector, lane, rows), lane) : 0;
}

// warp_scan returns the sum over lanes up to this one.
PGACCEL_INLINE uint32_t warp_scan(uint32_t v, uint32_t lane)
{
#pragma unroll
	for (uint32_t d = 1; d < 32; d <<= 1) {
		const uint32_t w = __shfl_up_sync(PGACCEL_WARP, v, d);
		v += lane >= d ? w : 0;
	}
	return v;
}

// lane_of returns which lane has number at of what lanes have together, upto being their sums up to
// each; the last one where at is beyond all.
PGACCEL_INLINE uint32_t lane_of(uint32_t upto, uint32_t at)
{
	uint32_t lane = 0;
#pragma unroll
	for (uint32_t half = 16; half > 0; half /= 2)
		lane += __shfl_sync(PGACCEL_WARP, upto, lane + half - 1) <= at ? half : 0;
	return lane;
}

// words_bits is lane_bits of a whole lane of a vector in registers: with constant arguments
// it is a shift and a mask.
template <uint32_t width>
PGACCEL_INLINE uint32_t words_bits(const uint32_t *words, uint32_t position)
{
	const uint32_t bit = position * width, shift = bit & 31, at = bit >> 5;
	if (shift + width > 32)
		return __funnelshift_r(words[at], words[at + 1], shift) & lane_mask(width);
	return words[at] >> shift & lane_mask(width);
}

// words_top is words_bits in a word's highest bits; what lies below it is anything.
template <uint32_t width>
PGACCEL_INLINE uint32_t words_top(const uint32_t *words, uint32_t position)
{
	const uint32_t bit = position * width, shift = bit & 31, at = bit >> 5;
	if (shift + width > 32)
		return __funnelshift_l(words[at], words[at + 1], 64 - shift - width);
	return words[at] << (32 - shift - width);
}

// carry_in shifts a bit into bits: whether a + b is above 32 bits.
PGACCEL_INLINE void carry_in(uint32_t &bits, uint32_t a, uint32_t b)
{
#ifdef PGACCEL_EMULATOR
	bits = bits * 2 + ((uint32_t)(a + b) < a ? 1 : 0);
#else
	asm("{\n\t.reg .u32 t;\n\tadd.cc.u32 t, %1, %2;\n\taddc.u32 %0, %0, %0;\n\t}" : "+r"(bits) : "r"(a), "r"(b));
#endif
}

// words_inside returns the positions of a lane whose offsets are within a window, of a width
// below 32. Integer instructions that are no multiplications are what a scan of few bits a
// row waits for: offsets are compared where they lie, as the highest bits, and what a
// comparison leaves is a carry, which an addition moves into the result.
template <uint32_t width>
PGACCEL_INLINE uint32_t words_inside(const uint32_t *words, uint32_t base, uint32_t span)
{
	const uint32_t low = base << (32 - width), rest = ~span << (32 - width);
	uint32_t outside[2] = {0, 0}; // of two halves: neither waits for the other's carries
#pragma unroll
	for (uint32_t i = 16; i-- > 0;) {
		carry_in(outside[0], words_top<width>(words, i) - low, rest);
		carry_in(outside[1], words_top<width>(words, i + 16) - low, rest);
	}
	return ~(outside[0] | outside[1] << 16);
}

// words_marked returns the positions of a lane, of some, whose offsets are within a window and
// have a bit in a bitmap in shared memory: shift is the bit of offset base.
template <uint32_t width>
PGACCEL_INLINE uint32_t words_marked(const uint32_t *words, uint32_t base, uint32_t span, const uint32_t *bitmap, uint32_t shift, uint32_t some)
{
	const uint32_t low = base << (32 - width), last = ~(~span << (32 - width));
	uint32_t out = 0;
#pragma unroll
	for (uint32_t i = 0; i < 32; i++) {
		const uint32_t x = words_top<width>(words, i) - low, at = (x >> (32 - width)) + shift;
		const uint32_t word = (some >> i & 1) != 0 && x <= last ? bitmap[at >> 5] : 0;
		out = __funnelshift_r(out, word >> (at & 31), 1);
	}
	return out;
}

// Window is an interval of values as the offsets of one segment have it: value v is inside
// where offset - base <= span; its distance from the interval's begin is then offset -
// base + shift. None is inside unless any is set; all are where all is.
template <typename T>
struct Window {
	T base, span, shift;
	bool any, all;
};

// window_of clamps [lo, hi] to what offsets of a width can be.
template <typename T>
PGACCEL_INLINE Window<T> window_of(int64_t reference, uint32_t width, int64_t lo, int64_t hi)
{
	const uint64_t last = width >= 64 ? ~0ull : (1ull << width) - 1;
	const int64_t first = lo > reference ? lo : reference;
	const uint64_t base = (uint64_t)first - (uint64_t)reference;
	const uint64_t end = (uint64_t)hi - (uint64_t)reference;
	Window<T> w;
	w.any = lo <= hi && hi >= reference && base <= last;
	w.base = (T)base;
	w.span = (T)((end < last ? end : last) - base);
	w.shift = (T)((uint64_t)first - (uint64_t)lo);
	w.all = w.any && base == 0 && end >= last;
	return w;
}
