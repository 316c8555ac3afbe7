// Copies many pieces of host memory, pinned and read by its own addresses, to the device.
// A driver's copy costs some microseconds of its engine's time whatever its size; here a
// warp takes a piece, and all warps together have more under way than the bus can carry. It
// also brings small results back: behind a kernel another starts sooner than a copy engine.

struct Unit {
	unsigned long long from, to, bytes;
};

struct Gather {
	const Unit *units; // 0: one is the only unit
	unsigned long long count;
	Unit one;
};

// put stores 16 bytes at a destination that is aligned to WORD.
template <typename WORD> static __device__ __forceinline__ void put(unsigned char *to, const uint4 &v) {
	const unsigned words[4] = {v.x, v.y, v.z, v.w};
	constexpr int n = 16 / sizeof(WORD);
#pragma unroll
	for (int i = 0; i < n; i++) {
		unsigned long long w = words[i * sizeof(WORD) / 4] >> (i * sizeof(WORD) % 4 * 8);
		if (sizeof(WORD) == 8)
			w |= (unsigned long long)words[(i * 2 + 1) & 3] << 32;
		((WORD *)to)[i] = (WORD)w;
	}
}

template <> __device__ __forceinline__ void put<uint4>(unsigned char *to, const uint4 &v) { *(uint4 *)to = v; }

// lines copies n lines of 16 bytes by one warp. Eight loads of a lane are under way at once. The
// warp's loads begin at multiples of 128 bytes, which the bus carries in one piece: the first lanes
// have nothing at first where the source begins in between.
template <typename WORD> static __device__ void lines(const uint4 *from, unsigned char *to, int n, int lane) {
	int i = lane - (int)((unsigned long long)from / 16 % 8);
	for (; i + 7 * 32 < n; i += 8 * 32) {
		uint4 v[8];
		if (i >= 0)
			v[0] = __ldcs(from + i);
#pragma unroll
		for (int k = 1; k < 8; k++)
			v[k] = __ldcs(from + i + 32 * k);
		if (i >= 0)
			put<WORD>(to + 16ll * i, v[0]);
#pragma unroll
		for (int k = 1; k < 8; k++)
			put<WORD>(to + 16ll * (i + 32 * k), v[k]);
	}
	for (; i < n; i += 32)
		if (i >= 0)
			put<WORD>(to + 16ll * i, __ldcs(from + i));
}

extern "C" __global__ void __launch_bounds__(512) pgaccel_gather(const Gather p) {
	const unsigned lane = threadIdx.x % 32;
	const unsigned long long warps = (unsigned long long)gridDim.x * blockDim.x / 32;
	for (unsigned long long i = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x) / 32; i < p.count; i += warps) {
		const Unit unit = p.units ? p.units[i] : p.one;
		const unsigned char *from = (const unsigned char *)unit.from;
		unsigned char *to = (unsigned char *)unit.to;
		unsigned long long bytes = unit.bytes;
		// Bytes up to the first line of the source, whole lines, and bytes at the end.
		unsigned long long head = (0 - (unsigned long long)from) % 16;
		if (head > bytes)
			head = bytes;
		if (lane < head)
			to[lane] = from[lane];
		from += head, to += head, bytes -= head;
		const unsigned n = (unsigned)(bytes / 16);
		const unsigned at = (unsigned)((unsigned long long)to % 16);
		if (at == 0)
			lines<uint4>((const uint4 *)from, to, (int)n, (int)lane);
		else if (at % 8 == 0)
			lines<unsigned long long>((const uint4 *)from, to, (int)n, (int)lane);
		else if (at % 4 == 0)
			lines<unsigned>((const uint4 *)from, to, (int)n, (int)lane);
		else
			lines<unsigned char>((const uint4 *)from, to, (int)n, (int)lane);
		if (lane < bytes % 16)
			to[16ull * n + lane] = from[16ull * n + lane];
	}
}
