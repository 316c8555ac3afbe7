// Hash tables of lookups (program.LookupHash): 64-bit keys and, by slot, 32-bit entries, of which all ones is a free slot.
// A key is at the slot that its hash says or, one by one, behind it.
#pragma once
#include "lanes.cuh"

constexpr uint32_t HASH_THREADS = 256;

// hash_of is program.HashOf.
PGACCEL_INLINE uint64_t hash_of(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdull;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ull;
	key ^= key >> 33;
	return key;
}

// hash_find returns the entry of a key, all ones where there is none. Some slot is free.
PGACCEL_INLINE uint32_t hash_find(const int64_t *keys, const uint32_t *entries, uint64_t mask, int64_t key)
{
	for (uint64_t at = hash_of((uint64_t)key) & mask;; at = (at + 1) & mask) {
		const uint32_t entry = __ldg(entries + at);
		if (entry == 0xffffffffu || __ldg(keys + at) == key)
			return entry;
	}
}

// program.BuildHash has these, too.
struct HashParams {
	const int64_t *keys; // no two of them are equal
	const uint32_t *entries; // of the keys; null: their numbers
	uint64_t n;
	int64_t *to_keys;
	uint32_t *to_entries; // all ones
	uint64_t mask;
};

// hash_keys puts the keys into a table. Who has a slot first writes its key: nobody reads keys before the kernel's end.
PGACCEL_INLINE void hash_keys(const HashParams &p)
{
	for (uint64_t i = blockIdx.x * (uint64_t)HASH_THREADS + threadIdx.x; i < p.n; i += gridDim.x * (uint64_t)HASH_THREADS) {
		const int64_t key = __ldg(p.keys + i);
		const uint32_t entry = p.entries != nullptr ? __ldg(p.entries + i) : (uint32_t)i;
		uint64_t at = hash_of((uint64_t)key) & p.mask;
		while (atomicCAS(p.to_entries + at, 0xffffffffu, entry) != 0xffffffffu)
			at = (at + 1) & p.mask;
		p.to_keys[at] = key;
	}
}
