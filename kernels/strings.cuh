// The strings of a dictionary as package colstore packs them (packed.go there): blocks of 16, of which each begins
// as the block's first string does, its head. A thread has a block: it runs an automaton over the codes that strings
// are encoded by, which are not decoded, keeps the states within the head, and goes on from there with each of the
// others.
#pragma once
#include "pgaccel.cuh"

constexpr uint32_t STRINGS_THREADS = 256;
constexpr uint32_t BLOCK_STRINGS = 16; // as colstore.blockStrings
constexpr uint32_t BLOCK_HEADER = 4;   // bytes
constexpr uint32_t SHARED_MOST = 255;  // codes of the head

// program.StringsAt has what both have.
struct StringsParams {
	const uint8_t *data;
	const uint32_t *starts; // of blocks in data
	const uint8_t *steps;   // of the automaton, by state<<8 | code; it begins in state 0
	uint32_t strings, states;
};

// A match writes a bit for each string: whether the automaton ends in a state that accepts.
struct MatchParams {
	StringsParams of;
	const uint16_t *rest; // by group of 16 strings, from group rest_first on: what else is matched
	uint16_t *to;         // by group
	uint64_t accept[2];   // by state
	uint32_t groups, rest_first;
};
static_assert(sizeof(MatchParams) == 72, "as in gpu/program/strings.go");

// A measure writes a number for each string: the sum of what codes add.
struct MeasureParams {
	StringsParams of;
	const int32_t *rest; // of strings that are not packed
	int32_t *to;
	uint32_t all, pad; // strings
};
static_assert(sizeof(MeasureParams) == 56, "as in gpu/program/strings.go");

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

// Matching is an automaton whose steps are the next states.
struct Matching {
	typedef uint8_t Kept;
	const uint8_t *steps;

	PGACCEL_MEMBER uint32_t step(uint32_t state, uint32_t code) const { return steps[state << 8 | code]; }
};

// Measuring has a sum and, in bit 0, whether a byte follows an escape. A step is what a code adds, and in bit 7 the
// state behind it. Within a head sums are small, and states 0.
struct Measuring {
	typedef uint16_t Kept;
	const uint8_t *steps;

	PGACCEL_MEMBER uint32_t step(uint32_t state, uint32_t code) const
	{
		const uint32_t s = steps[(state & 1) << 8 | code];
		return ((state >> 1) + (s & 0x7f)) << 1 | s >> 7;
	}
};

// walk_block has an automaton go over each of a block's n strings, and calls done with which it was and the last state.
template <typename Automaton, typename Done>
PGACCEL_INLINE void walk_block(const Automaton &a, const uint8_t *b, uint32_t n, Done done)
{
	const uint32_t wl = __ldg(b), ws = __ldg(b + 1), least = __ldg(b + 2), least_shared = __ldg(b + 3);
	const uint8_t *const lengths = b + BLOCK_HEADER, *const shares = lengths + 2 * wl;
	CodeReader codes;
	codes.open(shares + 2 * ws);
	typename Automaton::Kept kept[SHARED_MOST + 1]; // states behind so many codes of the head
	kept[0] = 0;
	uint32_t state = 0;
	const uint32_t head = least + block_field(lengths, wl, 0);
	for (uint32_t k = 1; k <= head; k++) {
		state = a.step(state, codes.next());
		if (k <= SHARED_MOST)
			kept[k] = (typename Automaton::Kept)state;
	}
	done(0, state);
	for (uint32_t i = 1; i < n; i++) {
		const uint32_t shared = least_shared + block_field(shares, ws, i);
		state = kept[shared];
		for (uint32_t own = least + block_field(lengths, wl, i) - shared; own > 0; own--)
			state = a.step(state, codes.next());
		done(i, state);
	}
}

// walk_strings has each thread walk over a block of p, if there is one of its number. steps is room for the automaton's.
template <typename Automaton, typename Done>
PGACCEL_INLINE void walk_strings(const StringsParams &p, unsigned char *steps, uint32_t group, Done done)
{
	for (uint32_t i = threadIdx.x; i < p.states * 16; i += STRINGS_THREADS)
		((uint4 *)steps)[i] = __ldg((const uint4 *)p.steps + i);
	__syncthreads();
	const uint32_t first = group * BLOCK_STRINGS;
	if (first < p.strings)
		walk_block(Automaton{steps}, p.data + __ldg(p.starts + group), min(BLOCK_STRINGS, p.strings - first), done);
}

PGACCEL_INLINE void match_strings(const MatchParams &p, unsigned char *steps)
{
	const uint32_t group = blockIdx.x * STRINGS_THREADS + threadIdx.x;
	uint32_t matched = 0;
	walk_strings<Matching>(p.of, steps, group, [&](uint32_t i, uint32_t state) {
		matched |= ((uint32_t)((state < 64 ? p.accept[0] : p.accept[1]) >> (state & 63)) & 1) << i;
	});
	if (group < p.groups)
		p.to[group] = (uint16_t)(matched | (group >= p.rest_first ? __ldg(p.rest + (group - p.rest_first)) : 0));
}

PGACCEL_INLINE void measure_strings(const MeasureParams &p, unsigned char *steps)
{
	const uint32_t group = blockIdx.x * STRINGS_THREADS + threadIdx.x, first = group * BLOCK_STRINGS;
	walk_strings<Measuring>(p.of, steps, group, [&](uint32_t i, uint32_t state) { p.to[first + i] = (int32_t)(state >> 1); });
	for (uint32_t i = max(first, p.of.strings); i < min(first + BLOCK_STRINGS, p.all); i++)
		p.to[i] = __ldg(p.rest + (i - p.of.strings));
}
