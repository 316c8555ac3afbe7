// Columns as package compress encodes them become device lanes: a block of 256 threads makes
// one vector, whatever the codec, in one pass through shared memory.
#pragma once
#include "tile.cuh"

// TranscodeJob is the order for a column of a segment: program.AppendTranscodeJob.
struct TranscodeJob {
	const uint32_t *from;
	uint32_t *to;
	int64_t reference;
	uint32_t rows, width;
};
static_assert(sizeof(TranscodeJob) == 32, "as in gpu/program/transcode.go");

struct TranscodeParams {
	const TranscodeJob *jobs;
	double up[19], down[19]; // 10^i and 10^-i, as compress has them
};

// TranscodeShared is what a block needs.
struct TranscodeShared {
	uint64_t values[1024], ends[1024], totals[8];
};

// The codecs: compress.Codec.
enum { codec_plain = 1, codec_constant, codec_for, codec_for64, codec_lookup, codec_dfor, codec_rfor, codec_lanes, codec_dfor64, codec_rfor64, codec_alp };

// decode_for writes the vector's first n values of a FOR column.
PGACCEL_INLINE void decode_for(uint64_t *values, const uint32_t *words, uint32_t vector, uint32_t n)
{
	const uint32_t reference_words = (__ldg(words) & 255) == codec_for64 ? 2 : 1;
	const uint32_t *starts = words + 8, *data = starts + (__ldg(words + 1) + 127) / 128 + 1;
	for (uint32_t i = threadIdx.x; i < n; i += 256)
		values[i] = (uint64_t)for_value(data + __ldg(starts + vector * 8 + i / 128), i & 127, reference_words);
}

// decode_dfor: the deltas of two tiles, their sums, and before each tile's its first value.
PGACCEL_INLINE void decode_dfor(TranscodeShared &s, const uint32_t *words, uint32_t vector, uint32_t rows, uint32_t reference_words)
{
	const uint32_t blocks = (rows + 127) / 128, tiles = (rows + 511) / 512;
	const uint32_t *starts = words + 8, *data = starts + blocks + 1 + 2 * tiles * reference_words;
	for (uint32_t i = threadIdx.x; i < 1024; i += 256) {
		// Value i of a tile is the sum of all before: the first value, then delta i-1.
		const uint32_t tile = vector * 2 + i / 512, into = i & 511;
		uint64_t v = 0;
		if (tile < tiles && into == 0) {
			v = (uint64_t)reference_at(data + __ldg(starts + tile * 4) - reference_words, reference_words);
		} else if (tile * 512 + into < rows) {
			const uint32_t delta = into - 1;
			v = (uint64_t)for_value(data + __ldg(starts + tile * 4 + delta / 128), delta & 127, reference_words);
		}
		s.values[i] = v;
	}
	tile_scan(s.values, s.totals);
}

// decode_rfor: runs' ends are the sums of their lengths; each row looks for its run's.
PGACCEL_INLINE void decode_rfor(TranscodeShared &s, const uint32_t *words, uint32_t vector, uint32_t rows, uint32_t reference_words)
{
	const uint32_t blocks = (rows + 511) / 512;
	const uint32_t *starts = words + 8, *lengths = starts + blocks + 1, *data = lengths + blocks + 1;
	for (uint32_t i = threadIdx.x; i < 1024; i += 256) {
		const uint32_t block = vector * 2 + i / 512, run = i & 511;
		const bool is = block < blocks && run < __ldg(data + __ldg(starts + block));
		s.values[i] = is ? (uint64_t)run_entry(data + __ldg(starts + block), run, reference_words) : 0;
		s.ends[i] = is ? (uint64_t)run_entry(data + __ldg(lengths + block), run, 1) : 0;
	}
	tile_scan(s.ends, s.totals);
	uint64_t v[4];
	for (uint32_t k = 0; k < 4; k++) {
		const uint32_t i = threadIdx.x + 256 * k, row = i & 511;
		const uint64_t *ends = s.ends + (i & 512);
		uint32_t from = 0; // the first run that ends after the row; 511 where there is none
		for (uint32_t half = 256; half > 0; half >>= 1)
			from += ends[from + half - 1] <= row ? half : 0;
		v[k] = s.values[(i & 512) + from];
	}
	__syncthreads();
	for (uint32_t k = 0; k < 4; k++)
		s.values[threadIdx.x + 256 * k] = v[k];
}

// decode_lanes: compress' lanes have a reference and a width for each vector.
PGACCEL_INLINE void decode_lanes(uint64_t *values, const uint32_t *words, uint32_t vector, uint32_t n)
{
	const uint32_t *head = words + 8 + vector * 4;
	const uint32_t *data = words + __ldg(words + 5) + __ldg(head + 2);
	const uint64_t reference = (uint64_t)word_pair(head);
	const uint32_t width = __ldg(head + 3);
	for (uint32_t i = threadIdx.x; i < n; i += 256)
		values[i] = reference + (width != 0 ? lane_bits64(data + (i & 31), i >> 5, width) : 0);
}

PGACCEL_INLINE void decode_lookup(uint64_t *values, const uint32_t *words, uint32_t vector, uint32_t n)
{
	decode_for(values, words + __ldg(words + 3), vector, n);
	const bool far = __ldg(words + 4) == 2;
	const uint64_t base = (uint64_t)word_pair(words + 6);
	for (uint32_t i = threadIdx.x; i < n; i += 256) { // what this thread wrote
		const uint32_t code = (uint32_t)values[i];
		values[i] = far ? (uint64_t)word_pair(words + 8 + 2 * code) : base + __ldg(words + 8 + code);
	}
}

// decode_alp: integers times two powers of ten, and then the exceptions.
PGACCEL_INLINE void decode_alp(uint64_t *values, const uint32_t *words, uint32_t vector, uint32_t n, const TranscodeParams &p)
{
	decode_for(values, words + __ldg(words + 3), vector, n);
	const uint32_t vectors = (__ldg(words + 1) + 1023) / 1024, exceptions = __ldg(words + 5);
	const uint32_t *head = words + 8 + 2 * vector, *positions = words + 8 + 2 * vectors + 2;
	const uint32_t *others = positions + (exceptions + 3) / 4 * 2;
	const double up = p.up[__ldg(head + 1) >> 8 & 31], down = p.down[__ldg(head + 1) & 31];
	union {
		double f;
		uint64_t bits;
	} v;
	for (uint32_t i = threadIdx.x; i < n; i += 256) {
		v.f = (double)(int64_t)values[i] * up * down;
		values[i] = v.bits;
	}
	__syncthreads();
	for (uint32_t e = __ldg(head) + threadIdx.x; e < __ldg(head + 2); e += 256)
		values[__ldg(positions + e / 2) >> (e % 2 * 16) & 0xffff] = (uint64_t)word_pair(others + 2 * e);
}

// pack_lanes writes width bits of each value from bit from on as words of the lanes.
PGACCEL_INLINE void pack_lanes(uint32_t *to, const uint64_t *values, uint64_t reference, uint32_t from, uint32_t width, uint32_t n)
{
	for (uint32_t k = threadIdx.x; k < 32 * width; k += 256) {
		const uint32_t lane = k & 31, first = k & ~31u; // the word's first bit
		uint32_t word = 0;
		for (uint32_t p = first / width; p * width < first + 32 && p < 32; p++) {
			const uint32_t i = p * 32 + lane;
			const uint32_t x = i < n ? (uint32_t)((values[i] - reference) >> from) & lane_mask(width) : 0;
			word |= p * width >= first ? x << (p * width - first) : x >> (first - p * width);
		}
		to[k] = word;
	}
}

// transcode_vector makes vector blockIdx.y of job blockIdx.x.
PGACCEL_INLINE void transcode_vector(const TranscodeParams &p, TranscodeShared &s)
{
	const TranscodeJob job = p.jobs[blockIdx.x];
	const uint32_t vector = blockIdx.y;
	if (vector * 1024 >= job.rows || job.width == 0)
		return;
	const uint32_t n = job.rows - vector * 1024 < 1024 ? job.rows - vector * 1024 : 1024;
	const uint32_t *words = job.from;
	switch (__ldg(words) & 255) {
	case codec_plain:
		for (uint32_t i = threadIdx.x; i < n; i += 256)
			s.values[i] = (uint64_t)word_pair(words + 8 + 2 * (vector * 1024 + i));
		break;
	case codec_constant:
		for (uint32_t i = threadIdx.x; i < n; i += 256)
			s.values[i] = (uint64_t)word_pair(words + 6);
		break;
	case codec_for:
	case codec_for64:
		decode_for(s.values, words, vector, n);
		break;
	case codec_lookup:
		decode_lookup(s.values, words, vector, n);
		break;
	case codec_dfor:
		decode_dfor(s, words, vector, job.rows, 1);
		break;
	case codec_dfor64:
		decode_dfor(s, words, vector, job.rows, 2);
		break;
	case codec_rfor:
		decode_rfor(s, words, vector, job.rows, 1);
		break;
	case codec_rfor64:
		decode_rfor(s, words, vector, job.rows, 2);
		break;
	case codec_lanes:
		decode_lanes(s.values, words, vector, n);
		break;
	case codec_alp:
		decode_alp(s.values, words, vector, n, p);
		break;
	}
	__syncthreads();
	uint32_t *to = job.to + vector * 32 * job.width;
	const uint32_t low = job.width < 32 ? job.width : 32;
	pack_lanes(to, s.values, (uint64_t)job.reference, 0, low, n);
	if (job.width > 32)
		pack_lanes(to + 32 * 32, s.values, (uint64_t)job.reference, 32, job.width - 32, n);
}

// Regions that are to have one value each: blockIdx.y is a region's number.
#define CLEAR_MAX 64

struct ClearRegion {
	uint4 *at;
	uint64_t units; // of 16 bytes
	uint64_t value; // of each 32 bits
};

struct ClearParams {
	uint64_t n;
	ClearRegion regions[CLEAR_MAX];
};

PGACCEL_INLINE void clear_region(const ClearParams &p)
{
	const ClearRegion r = p.regions[blockIdx.y];
	const uint32_t v = (uint32_t)r.value;
	for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < r.units; i += gridDim.x * (uint64_t)blockDim.x)
		r.at[i] = make_uint4(v, v, v, v);
}
