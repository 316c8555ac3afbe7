// Blocks of GPU-FOR, GPU-DFOR and GPU-RFOR, as package compress draws them ("Tile-based
// Lightweight Integer Compression in GPU", SIGMOD 2022), decoded by a block of threads.
#pragma once
#include "lanes.cuh"

// word_pair reads 64 bits of two words, low word first.
PGACCEL_INLINE int64_t word_pair(const uint32_t *words)
{
	return (int64_t)((uint64_t)__ldg(words + 1) << 32 | __ldg(words));
}

// packed_bits returns width bits, 0 to 64, from a bit of some words on. It reads no word
// that has none of them.
PGACCEL_INLINE uint64_t packed_bits(const uint32_t *words, uint32_t bit, uint32_t width)
{
	if (width == 0)
		return 0;
	const uint32_t *word = words + (bit >> 5);
	const uint32_t shift = bit & 31, end = shift + width;
	const uint64_t low = end > 32 ? (uint64_t)__ldg(word + 1) << 32 | __ldg(word) : __ldg(word);
	uint64_t v = low >> shift;
	if (end > 64)
		v |= (uint64_t)__ldg(word + 2) << (64 - shift);
	return width >= 64 ? v : v & ((1ull << width) - 1);
}

// reference_at reads a reference of one or two words.
PGACCEL_INLINE int64_t reference_at(const uint32_t *words, uint32_t reference_words)
{
	return reference_words == 2 ? word_pair(words) : (int64_t)(int32_t)__ldg(words);
}

// for_value returns value i, below 128, of a block of FOR: reference, four widths in a word,
// four miniblocks. Algorithm 1 of the paper; where miniblocks begin comes of all widths
// before at once (its section 4.2).
PGACCEL_INLINE int64_t for_value(const uint32_t *block, uint32_t i, uint32_t reference_words)
{
	const uint32_t widths = __ldg(block + reference_words), mini = i >> 5;
	const uint32_t sums = widths * 0x01010100u; // byte m: the widths before miniblock m, at most 192
	const uint32_t begin = sums >> (8 * mini) & 255;
	const uint32_t width = widths >> (8 * mini) & 255;
	const uint64_t offset = packed_bits(block + reference_words + 1 + begin, (i & 31) * width, width);
	return (int64_t)((uint64_t)reference_at(block, reference_words) + offset);
}

// run_entry returns entry i of a block of RFOR, of its values or its lengths: count,
// reference, a word of widths for each 128 entries, miniblocks.
PGACCEL_INLINE int64_t run_entry(const uint32_t *block, uint32_t i, uint32_t reference_words)
{
	const uint32_t count = __ldg(block);
	const uint32_t *widths = block + 1 + reference_words;
	const uint32_t *mini = widths + (count + 127) / 128;
	for (uint32_t m = 0; m < i / 32; m++)
		mini += __ldg(widths + m / 4) >> (m % 4 * 8) & 255;
	const uint32_t width = __ldg(widths + i / 128) >> (i / 32 % 4 * 8) & 255;
	return (int64_t)((uint64_t)reference_at(block + 1, reference_words) + packed_bits(mini, (i & 31) * width, width));
}

// tile_scan replaces each of the 512 values of two tiles in shared memory by their sum up to
// it. A block of 256 threads calls it; totals has room for 8. Barriers are before and after.
PGACCEL_INLINE void tile_scan(uint64_t *values, uint64_t *totals)
{
	const uint32_t thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
	__syncthreads();
	uint64_t v[4];
	uint64_t sum = 0;
	for (uint32_t i = 0; i < 4; i++)
		v[i] = sum += values[4 * thread + i];
	uint64_t upto = sum;
#pragma unroll
	for (uint32_t d = 1; d < 32; d <<= 1) {
		const uint64_t w = __shfl_up_sync(PGACCEL_WARP, (unsigned long long)upto, d);
		upto += lane >= d ? w : 0;
	}
	if (lane == 31)
		totals[warp] = upto;
	__syncthreads();
	uint64_t before = upto - sum;
	for (uint32_t w = warp & ~3u; w < warp; w++)
		before += totals[w];
	for (uint32_t i = 0; i < 4; i++)
		values[4 * thread + i] = before + v[i];
	__syncthreads();
}
