// The strings of a dictionary as package colstore packs them (packed.go there): blocks of 16, of which each begins
// as the block's first string does, its head. A thread has a block: it runs an automaton over the codes that strings
// are encoded by, which are not decoded, keeps the states within the head, and goes on from there with each of the
// others.
#pragma once
#include "pgaccel.cuh"

constexpr uint32_t MATCH_THREADS = 256;
constexpr uint32_t BLOCK_STRINGS = 16; // as colstore.blockStrings
constexpr uint32_t BLOCK_HEADER = 4;   // bytes
constexpr uint32_t SHARED_MOST = 255;  // codes of the head

// program.Match has it.
struct MatchParams {
	const uint8_t *data;
	const uint32_t *starts; // of blocks in data
	const uint8_t *next;    // by state<<8 | code, 0 first
	const uint16_t *rest;   // by group of 16 strings, from group rest_first on: what else is matched
	uint16_t *to;           // by group
	uint64_t accept[2];     // by state
	uint32_t strings, groups, rest_first, states;
};
static_assert(sizeof(MatchParams) == 72, "as in gpu/program/match.go");

// CodeReader reads codes one after the other, from words of eight.
struct CodeReader {
	const uint64_t *at;
	uint64_t word;
	uint32_t left;

	PGACCEL_MEMBER void open(const uint8_t *from)
	{
		const uint32_t skip = (uint32_t)(uint64_t)from & 7;
		at = (const uint64_t *)(from - skip);
		word = __ldg(at) >> (8 * skip), left = 8 - skip;
	}

	PGACCEL_MEMBER uint32_t next()
	{
		if (left == 0)
			word = __ldg(++at), left = 8;
		const uint32_t code = (uint32_t)word & 0xff;
		word >>= 8, left--;
		return code;
	}
};

// block_field is the i-th number of width bits, at most 32, from b on.
PGACCEL_INLINE uint32_t block_field(const uint8_t *b, uint32_t width, uint32_t i)
{
	const uint8_t *const from = b + (i * width >> 3);
	const uint32_t skip = (uint32_t)(uint64_t)from & 7, shift = 8 * skip + (i * width & 7);
	const uint64_t *const at = (const uint64_t *)(from - skip);
	uint64_t bits = __ldg(at) >> shift;
	if (shift + width > 64)
		bits |= __ldg(at + 1) << (64 - shift);
	return (uint32_t)(bits & ((1ull << width) - 1));
}

// accepts is the bit of a state.
PGACCEL_INLINE uint32_t accepts(const MatchParams &p, uint32_t state)
{
	return (uint32_t)((state < 64 ? p.accept[0] : p.accept[1]) >> (state & 63)) & 1;
}

// match_block returns which of a block's n strings are matched.
PGACCEL_INLINE uint32_t match_block(const MatchParams &p, const uint8_t *next, const uint8_t *b, uint32_t n)
{
	const uint32_t wl = __ldg(b), ws = __ldg(b + 1), least = __ldg(b + 2), least_shared = __ldg(b + 3);
	const uint8_t *const lengths = b + BLOCK_HEADER, *const shares = lengths + 2 * wl;
	CodeReader codes;
	codes.open(shares + 2 * ws);
	uint8_t states[SHARED_MOST + 1]; // behind so many codes of the head
	states[0] = 0;
	uint32_t state = 0;
	const uint32_t head = least + block_field(lengths, wl, 0);
	for (uint32_t k = 1; k <= head; k++) {
		state = next[state << 8 | codes.next()];
		if (k <= SHARED_MOST)
			states[k] = (uint8_t)state;
	}
	uint32_t matched = accepts(p, state);
	for (uint32_t i = 1; i < n; i++) {
		const uint32_t shared = least_shared + block_field(shares, ws, i);
		state = states[shared];
		for (uint32_t own = least + block_field(lengths, wl, i) - shared; own > 0; own--)
			state = next[state << 8 | codes.next()];
		matched |= accepts(p, state) << i;
	}
	return matched;
}

// match_strings has each thread write the bits of 16 strings. next is room for the states of p.
PGACCEL_INLINE void match_strings(const MatchParams &p, unsigned char *next)
{
	for (uint32_t i = threadIdx.x; i < p.states * 16; i += MATCH_THREADS)
		((uint4 *)next)[i] = __ldg((const uint4 *)p.next + i);
	__syncthreads();
	const uint32_t group = blockIdx.x * MATCH_THREADS + threadIdx.x;
	if (group < p.groups) {
		uint32_t matched = group >= p.rest_first ? __ldg(p.rest + (group - p.rest_first)) : 0;
		if (group * BLOCK_STRINGS < p.strings)
			matched |= match_block(p, next, p.data + __ldg(p.starts + group), min(BLOCK_STRINGS, p.strings - group * BLOCK_STRINGS));
		p.to[group] = (uint16_t)matched;
	}
}
