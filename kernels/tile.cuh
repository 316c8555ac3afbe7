// What package compress encodes, GPU-FOR, GPU-DFOR and GPU-RFOR ("Tile-based Lightweight
// Integer Compression in GPU", SIGMOD 2022) and its own formats, decoded by warps: a warp has
// a vector of 1024 values, and reads it in 32 positions of 32 consecutive values, which is a
// miniblock, whose words its lanes read together. No shared memory is needed but for bitmaps.
//
// A decoder is made for a vector by the whole warp, and its read returns STEP positions of a
// lane, in ascending order from 0 on. T is uint32_t where only the low 32 bits of values are
// asked for. What is read of rows that a column does not have is anything. All lanes come.
#pragma once
#include "lanes.cuh"

#ifdef PGACCEL_EMULATOR
#define PGACCEL_MEMBER inline
#else
#define PGACCEL_MEMBER __device__ __forceinline__
#endif

// The codecs: compress.Codec.
enum { codec_plain = 1, codec_constant, codec_for, codec_for64, codec_lookup, codec_dfor, codec_rfor, codec_dfor64 = 9, codec_rfor64, codec_alp };

// STEP is how many positions are read at a time: so many loads are under way at once.
constexpr uint32_t STEP = 8;

// word_pair reads 64 bits of two words, low word first.
PGACCEL_INLINE int64_t word_pair(const uint32_t *words)
{
	return (int64_t)((uint64_t)__ldg(words + 1) << 32 | __ldg(words));
}

// reference_at reads a reference of one or two words.
PGACCEL_INLINE int64_t reference_at(const uint32_t *words, uint32_t reference_words)
{
	return reference_words == 2 ? word_pair(words) : (int64_t)(int32_t)__ldg(words);
}

// packed returns the low bits of a value of width bits, 0 to 64, from a bit of some words on.
// Some words more are read: formats have them.
PGACCEL_INLINE void packed(uint32_t &v, const uint32_t *words, uint32_t bit, uint32_t width)
{
	const uint32_t *at = words + (bit >> 5);
	v = __funnelshift_r(__ldg(at), __ldg(at + 1), bit) & lane_mask(width);
}

PGACCEL_INLINE void packed(uint64_t &v, const uint32_t *words, uint32_t bit, uint32_t width)
{
	const uint32_t *at = words + (bit >> 5);
	const uint32_t low = __ldg(at), middle = __ldg(at + 1), high = __ldg(at + 2);
	v = (uint64_t)(__funnelshift_r(middle, high, bit) & lane_mask(width > 32 ? width - 32 : 0)) << 32 |
	    (__funnelshift_r(low, middle, bit) & lane_mask(width));
}

// sum_upto replaces v of each position by the sum of it over the lanes up to this one.
template <typename T, uint32_t N>
PGACCEL_INLINE void sum_upto(T (&v)[N], uint32_t lane)
{
#pragma unroll
	for (uint32_t d = 1; d < 32; d <<= 1) {
#pragma unroll
		for (uint32_t k = 0; k < N; k++) {
			const T w = __shfl_up_sync(PGACCEL_WARP, v[k], d);
			v[k] += lane >= d ? w : 0;
		}
	}
}

// mini_of says where a miniblock lies: its first word from some words on, times 256, and its
// width. mini_value reads value i of it.
PGACCEL_INLINE uint32_t mini_of(uint32_t from, uint32_t width)
{
	return from << 8 | width;
}

template <typename T>
PGACCEL_INLINE T mini_value(const uint32_t *words, uint32_t mini, uint32_t i)
{
	const uint32_t width = mini & 255;
	T v;
	packed(v, words, (mini >> 3 & ~31u) + i * width, width);
	return v;
}

// DecodeFor is FOR: lane p knows the miniblock of position p. Where miniblocks begin comes of
// all widths before at once (Algorithm 1 of the paper, and its section 4.2).
template <typename T>
struct DecodeFor {
	const uint32_t *words; // of the first block
	uint32_t lane, mini;
	T reference;

	// open has the column's block starts, and where they count from.
	PGACCEL_MEMBER void open(const uint32_t *starts, const uint32_t *data, uint32_t reference_words, uint32_t vector, uint32_t rows)
	{
		lane = threadIdx.x & 31;
		mini = 0, reference = 0;
		const uint32_t first = __ldg(starts + vector * 8);
		words = data + first;
		if (vector * 1024 + lane * 32 < rows) {
			const uint32_t begin = __ldg(starts + vector * 8 + lane / 4) - first;
			const uint32_t widths = __ldg(words + begin + reference_words);
			const uint32_t sums = widths * 0x01010100u; // byte m: the widths before miniblock m, at most 192
			const uint32_t shift = lane % 4 * 8;
			mini = mini_of(begin + reference_words + 1 + (sums >> shift & 255), widths >> shift & 255);
			reference = (T)reference_at(words + begin, reference_words);
		}
	}

	// open_column has a FOR or FOR64 column.
	PGACCEL_MEMBER void open_column(const uint32_t *column, uint32_t vector)
	{
		const uint32_t rows = __ldg(column + 1), *starts = column + 8;
		open(starts, starts + (rows + 127) / 128 + 1, (__ldg(column) & 255) == codec_for64 ? 2 : 1, vector, rows);
	}

	PGACCEL_MEMBER void read(T (&v)[STEP], uint32_t position)
	{
		uint32_t m[STEP];
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			m[k] = __shfl_sync(PGACCEL_WARP, mini, position + k);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			v[k] = mini_value<T>(words, m[k], lane);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			v[k] += __shfl_sync(PGACCEL_WARP, reference, position + k);
	}
};

// DecodeDeltas is DFOR: a value is its tile's first and the sum of all deltas before it.
template <typename T>
struct DecodeDeltas {
	DecodeFor<T> deltas;
	T firsts, value; // lane t has that of tile t; the value before the next delta

	PGACCEL_MEMBER void open(const uint32_t *column, uint32_t reference_words, uint32_t vector, uint32_t rows)
	{
		const uint32_t lane = threadIdx.x & 31, blocks = (rows + 127) / 128, tiles = (rows + 511) / 512;
		const uint32_t *starts = column + 8, *data = starts + blocks + 1 + 2 * tiles * reference_words;
		deltas.open(starts, data, reference_words, vector, rows);
		firsts = 0, value = 0;
		if (lane < 2 && vector * 2 + lane < tiles)
			firsts = (T)reference_at(data + __ldg(starts + (vector * 2 + lane) * 4) - reference_words, reference_words);
	}

	PGACCEL_MEMBER void read(T (&v)[STEP], uint32_t position)
	{
		if (position % 16 == 0)
			value = __shfl_sync(PGACCEL_WARP, firsts, position / 16);
		T sums[STEP];
		deltas.read(v, position);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			sums[k] = v[k];
		sum_upto(sums, deltas.lane);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			v[k] = value + sums[k] - v[k];
			value += __shfl_sync(PGACCEL_WARP, sums[k], 31);
		}
	}
};

// Marks are some of a warp's rows: lane p has those of position p as bits, and how many are
// in the positions before.
struct Marks {
	uint32_t bits, before;

	// count takes over a bitmap in shared memory, which can be used again then.
	PGACCEL_MEMBER void count(const uint32_t *bitmap, uint32_t lane)
	{
		__syncwarp();
		bits = bitmap[lane];
		__syncwarp();
		uint32_t n[1] = {(uint32_t)__popc(bits)};
		before = 0u - n[0];
		sum_upto(n, lane);
		before += n[0];
	}
};

// DecodeRuns is RFOR: a row's run is the number of runs that begin up to it, and of the runs'
// values each lane reads its own.
template <typename T>
struct DecodeRuns {
	const uint32_t *starts, *lengths, *data, *words;
	uint32_t *bitmap; // of 32 words
	uint32_t lane, tile, tiles, reference_words;
	uint32_t mini; // lane m has miniblock m of the values
	Marks begins;
	T reference;

	PGACCEL_MEMBER void open(const uint32_t *column, uint32_t of_reference, uint32_t vector, uint32_t rows, uint32_t *room)
	{
		lane = threadIdx.x & 31, bitmap = room, tile = vector * 2, tiles = (rows + 511) / 512, reference_words = of_reference;
		starts = column + 8, lengths = starts + tiles + 1, data = lengths + tiles + 1;
	}

	// minis returns to lane m where miniblock m of a block lies, from the block's begin on.
	PGACCEL_MEMBER uint32_t minis(const uint32_t *block, uint32_t count, uint32_t of_reference)
	{
		const uint32_t *widths = block + 1 + of_reference;
		const uint32_t width = lane * 32 < count ? __ldg(widths + lane / 4) >> (lane % 4 * 8) & 255 : 0;
		uint32_t end[1] = {width};
		sum_upto(end, lane);
		return mini_of(1 + of_reference + (count + 127) / 128 + end[0] - width, width);
	}

	PGACCEL_MEMBER void next()
	{
		words = data;
		mini = 0, reference = 0, begins.bits = 1, begins.before = 0;
		if (tile >= tiles)
			return;
		const uint32_t *block = data + __ldg(lengths + tile);
		const uint32_t count = __ldg(block), of = minis(block, count, 1), least = __ldg(block + 1);
		words = data + __ldg(starts + tile++);
		mini = minis(words, count, reference_words);
		reference = (T)reference_at(words + 1, reference_words);
		bitmap[lane] = 0;
		__syncwarp();
		for (uint32_t r = 0, row = 0; r < count; r += 32) {
			const uint32_t m = __shfl_sync(PGACCEL_WARP, of, r / 32);
			const uint32_t length = r + lane < count ? mini_value<uint32_t>(block, m, lane) + least : 0;
			uint32_t end[1] = {length};
			sum_upto(end, lane);
			const uint32_t begin = row + end[0] - length;
			if (length > 0 && begin < 512)
				atomicOr(bitmap + (begin >> 5), 1u << (begin & 31));
			row += __shfl_sync(PGACCEL_WARP, end[0], 31);
		}
		begins.count(bitmap, lane);
	}

	PGACCEL_MEMBER void read(T (&v)[STEP], uint32_t position)
	{
		if (position % 16 == 0)
			next();
		uint32_t run[STEP];
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			const uint32_t p = (position + k) % 16;
			const uint32_t bits = __shfl_sync(PGACCEL_WARP, begins.bits, p) & 0xffffffffu >> (31 - lane);
			run[k] = (__shfl_sync(PGACCEL_WARP, begins.before, p) + __popc(bits) - 1) & 511;
		}
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			const uint32_t m = __shfl_sync(PGACCEL_WARP, mini, run[k] / 32);
			v[k] = mini_value<T>(words, m, run[k] % 32) + reference;
		}
	}
};

// DecodeLookup is Lookup: codes, and a table.
template <typename T>
struct DecodeLookup {
	DecodeFor<uint32_t> codes;
	const uint32_t *table;
	T base;
	bool far;

	PGACCEL_MEMBER void open(const uint32_t *column, uint32_t vector)
	{
		codes.open_column(column + __ldg(column + 3), vector);
		table = column + 8, far = __ldg(column + 4) == 2, base = (T)word_pair(column + 6);
	}

	PGACCEL_MEMBER void read(T (&v)[STEP], uint32_t position)
	{
		uint32_t code[STEP];
		codes.read(code, position);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			if (far)
				v[k] = (T)word_pair(table + 2 * code[k]);
			else
				v[k] = base + __ldg(table + code[k]);
		}
	}
};

// DecodePlain is Plain; rows that are not there are not read.
template <typename T>
struct DecodePlain {
	const uint32_t *words;
	uint32_t rows; // of the vector, from the lane's on

	PGACCEL_MEMBER void open(const uint32_t *column, uint32_t vector, uint32_t n)
	{
		const uint32_t lane = threadIdx.x & 31;
		words = column + 8 + 2 * (vector * 1024 + lane), rows = n > lane ? n - lane : 0;
	}

	PGACCEL_MEMBER void read(T (&v)[STEP], uint32_t position)
	{
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			v[k] = (position + k) * 32 < rows ? (T)word_pair(words + 64 * (position + k)) : 0;
	}
};

// DecodeConstant is Constant.
template <typename T>
struct DecodeConstant {
	T value;

	PGACCEL_MEMBER void read(T (&v)[STEP], uint32_t)
	{
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			v[k] = value;
	}
};

// DecodeFloats is ALP: integers times two powers of ten, and exceptions.
template <typename T>
struct DecodeFloats {
	DecodeFor<uint64_t> integers;
	const uint32_t *others; // the vector's exceptions
	double up, down;
	Marks except;

	PGACCEL_MEMBER void open(const uint32_t *column, uint32_t vector, const double *ups, const double *downs, uint32_t *bitmap)
	{
		integers.open_column(column + __ldg(column + 3), vector);
		const uint32_t lane = threadIdx.x & 31;
		const uint32_t vectors = (__ldg(column + 1) + 1023) / 1024, exceptions = __ldg(column + 5);
		const uint32_t *head = column + 8 + 2 * vector, *positions = column + 8 + 2 * vectors + 2;
		const uint32_t first = __ldg(head), end = __ldg(head + 2), exponents = __ldg(head + 1);
		others = positions + (exceptions + 3) / 4 * 2 + 2 * first;
		up = ups[exponents >> 8 & 31], down = downs[exponents & 31];
		bitmap[lane] = 0;
		__syncwarp();
		for (uint32_t e = first + lane; e < end; e += 32) {
			const uint32_t row = __ldg(positions + e / 2) >> (e % 2 * 16) & 0xffff;
			atomicOr(bitmap + (row >> 5 & 31), 1u << (row & 31));
		}
		except.count(bitmap, lane); // they are ascending
	}

	PGACCEL_MEMBER void read(T (&v)[STEP], uint32_t position)
	{
		const uint32_t lane = integers.lane;
		uint64_t integer[STEP];
		integers.read(integer, position);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++) {
			union {
				double f;
				uint64_t bits;
			} x;
			x.f = (double)(int64_t)integer[k] * up * down;
			const uint32_t bits = __shfl_sync(PGACCEL_WARP, except.bits, position + k);
			const uint32_t before = __shfl_sync(PGACCEL_WARP, except.before, position + k);
			v[k] = (T)x.bits;
			if (bits >> lane & 1)
				v[k] = (T)word_pair(others + 2 * (before + __popc(bits & ((1u << lane) - 1))));
		}
	}
};
