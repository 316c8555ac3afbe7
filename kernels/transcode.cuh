// Columns as package compress encodes them become device lanes: a warp makes a vector. What a
// decoder (tile.cuh) reads of a position are the values of all lanes there, and each lane packs
// its own: words of all lanes are stored side by side as soon as they are full.
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

// TRANSCODE_WARPS is how many vectors a block makes: program.transcodeVectors.
constexpr uint32_t TRANSCODE_WARPS = 8;

// TranscodeShared is what a block needs: a bitmap for each warp.
struct TranscodeShared {
	uint32_t bitmaps[TRANSCODE_WARPS][32];
};

// LanePacker packs values of one lane, width bits each, to words that lie 32 apart.
struct LanePacker {
	uint32_t *to;
	uint32_t width, mask, fill;
	uint64_t bits;

	PGACCEL_MEMBER void open(uint32_t *words, uint32_t of_width)
	{
		to = words, width = of_width, mask = lane_mask(of_width), fill = 0, bits = 0;
	}

	PGACCEL_MEMBER void add(uint32_t v)
	{
		bits |= (uint64_t)(v & mask) << fill;
		fill += width;
		if (fill >= 32) { // at once for all lanes
			*to = (uint32_t)bits;
			to += 32, fill -= 32, bits >>= 32;
		}
	}
};

// VectorPacker packs a vector of n rows: widths above 32 are two packings.
template <typename T>
struct VectorPacker;

template <>
struct VectorPacker<uint32_t> {
	LanePacker low;

	PGACCEL_MEMBER void open(uint32_t *to, uint32_t width) { low.open(to, width); }
	PGACCEL_MEMBER void add(uint32_t v) { low.add(v); }
};

template <>
struct VectorPacker<uint64_t> {
	uint32_t *low;
	LanePacker high;

	PGACCEL_MEMBER void open(uint32_t *to, uint32_t width) { low = to, high.open(to + 32 * 32, width - 32); }
	PGACCEL_MEMBER void add(uint64_t v)
	{
		*low = (uint32_t)v;
		low += 32;
		high.add((uint32_t)(v >> 32));
	}
};

// pack_vector packs what a decoder reads.
template <typename T, typename Decoder>
PGACCEL_INLINE void pack_vector(Decoder &d, const TranscodeJob &job, uint32_t vector, uint32_t n)
{
	const uint32_t lane = threadIdx.x & 31;
	VectorPacker<T> packer;
	packer.open(job.to + vector * 32 * job.width + lane, job.width);
#pragma unroll 1
	for (uint32_t position = 0; position < 32; position += STEP) {
		T v[STEP];
		d.read(v, position);
#pragma unroll
		for (uint32_t k = 0; k < STEP; k++)
			packer.add((position + k) * 32 + lane < n ? v[k] - (T)job.reference : 0);
	}
}

// transcode_as makes a vector from the bits of T that its width needs.
template <typename T>
PGACCEL_INLINE void transcode_as(const TranscodeParams &p, const TranscodeJob &job, uint32_t vector, uint32_t *bitmap)
{
	const uint32_t n = job.rows - vector * 1024 < 1024 ? job.rows - vector * 1024 : 1024;
	const uint32_t *words = job.from, codec = __ldg(words) & 255;
	switch (codec) {
	case codec_plain: {
		DecodePlain<T> d;
		d.open(words, vector, n);
		pack_vector<T>(d, job, vector, n);
		break;
	}
	case codec_constant: {
		DecodeConstant<T> d;
		d.value = (T)word_pair(words + 6);
		pack_vector<T>(d, job, vector, n);
		break;
	}
	case codec_for:
	case codec_for64: {
		DecodeFor<T> d;
		d.open_column(words, vector);
		pack_vector<T>(d, job, vector, n);
		break;
	}
	case codec_lookup: {
		DecodeLookup<T> d;
		d.open(words, vector);
		pack_vector<T>(d, job, vector, n);
		break;
	}
	case codec_dfor:
	case codec_dfor64: {
		DecodeDeltas<T> d;
		d.open(words, codec == codec_dfor64 ? 2 : 1, vector, job.rows);
		pack_vector<T>(d, job, vector, n);
		break;
	}
	case codec_rfor:
	case codec_rfor64: {
		DecodeRuns<T> d;
		d.open(words, codec == codec_rfor64 ? 2 : 1, vector, job.rows, bitmap);
		pack_vector<T>(d, job, vector, n);
		break;
	}
	case codec_alp: {
		DecodeFloats<T> d;
		d.open(words, vector, p.up, p.down, bitmap);
		pack_vector<T>(d, job, vector, n);
		break;
	}
	}
}

// transcode_vectors makes TRANSCODE_WARPS vectors of job blockIdx.x from blockIdx.y's on.
PGACCEL_INLINE void transcode_vectors(const TranscodeParams &p, TranscodeShared &s)
{
	const TranscodeJob job = p.jobs[blockIdx.x];
	const uint32_t warp = threadIdx.x >> 5, vector = blockIdx.y * TRANSCODE_WARPS + warp;
	if (vector * 1024 >= job.rows || job.width == 0)
		return;
	if (job.width <= 32)
		transcode_as<uint32_t>(p, job, vector, s.bitmaps[warp]);
	else
		transcode_as<uint64_t>(p, job, vector, s.bitmaps[warp]);
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
