// What generated scans of package papers/gpucube need: no kernels, since each scan is a module.
#pragma once
#include "cube.cuh"

// cube_take is value i of a lane's words of a vector, i known when compiling.
template <uint32_t WIDTH> __device__ __forceinline__ uint32_t cube_take(const uint32_t (&words)[WIDTH], uint32_t i) {
	uint32_t bit = i * WIDTH, w = bit >> 5, shift = bit & 31;
	if (WIDTH == 32)
		return words[i];
	uint32_t v = words[w] >> shift;
	if (shift + WIDTH > 32)
		v = __funnelshift_r(words[w], words[w + 1 < WIDTH ? w + 1 : w], shift);
	return v & (CUBE_ALL >> (32 - WIDTH));
}
