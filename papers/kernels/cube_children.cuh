// One thread for each target of each source cell (cube.cuh): dynamic parallelism as in
// section 4.3 of the thesis, and our successor of it, persistent blocks that take their own
// work from a queue.
//
// A launch that is pending needs room in a pool of the device's runtime, and a parent has
// no cudaDeviceSynchronize since CUDA 12: a step of the parent makes few enough launches,
// and the next step follows as a grid of its own, launched by the host or by the parent's
// tail launch, which waits for all children. So the sums' memory is used again.
//
// What all grids have in common is in the device's memory, not in their parameters: where a
// kernel copied its own parameters, changed the copy's rest and launched a grid with that,
// nvcc and NVRTC 13.0 launched it with what was not changed.
#pragma once
#include "cube_source.cuh"

constexpr uint32_t CUBE_CHILD = 1024; // threads of a child's block, as in section 5.2
constexpr uint32_t CUBE_TILE = 256;   // cells, and threads, of a block with a queue

// cube_above is the first of n ascending sums that is greater than i (appendix D).
__device__ __forceinline__ uint32_t cube_above(const uint32_t *sums, uint32_t n, uint32_t i) {
	uint32_t first = 0;
	while (n > 0) {
		uint32_t half = n / 2;
		bool below = sums[first + half] <= i;
		first = below ? first + half + 1 : first;
		n = below ? n - half - 1 : half;
	}
	return first;
}

// cube_block_sums is the sum of v over this thread and those before it in its block, which
// all come. warps has room for 32 values.
__device__ __forceinline__ uint32_t cube_block_sums(uint32_t v, uint32_t *warps) {
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	v = scan_warp(v);
	if (lane == 31)
		warps[warp] = v;
	__syncthreads();
	if (warp == 0) {
		warps[lane] = scan_warp(lane < blockDim.x >> 5 ? warps[lane] : 0);
	}
	__syncthreads();
	v += warp > 0 ? warps[warp - 1] : 0;
	return v;
}

// cube_page_count is the number of targets of the i-th cell.
__device__ __forceinline__ uint32_t cube_page_count(const CubeSource &s, cube_u64 i, cube_u64 n) {
	if (i >= n)
		return 0;
	return cube_count(s.q, s.list != nullptr ? s.list[i] : uint32_t(i));
}

#ifdef PGACCEL_LAUNCH
struct CubeChild {
	const CubeSource *source;
	const uint32_t *sums; // inclusive, of the counts of CUBE_BLOCK cells
	cube_u64 first;       // of those cells
	uint32_t total;       // the last sum
	uint32_t stride;      // whether warps save additions (section 4.3.4)
};

// cube_child is a child grid: of as many blocks as the targets fill, or of one that loops.
PGACCEL_KERNEL(cube_child, CubeChild, p, CUBE_CHILD, 1) {
	__shared__ uint32_t sums[CUBE_BLOCK];
	const CubeSource &s = *p.source;
	uint32_t lane = threadIdx.x & 31;
	if (threadIdx.x < CUBE_BLOCK)
		sums[threadIdx.x] = p.sums[threadIdx.x];
	__syncthreads();
	uint32_t thread = blockIdx.x * CUBE_CHILD + threadIdx.x;
	uint32_t function = thread % s.t.functions; // once a thread
	for (uint32_t from = thread - lane; from < p.total; from += gridDim.x * CUBE_CHILD) {
		uint32_t i = from + lane, n = 0;
		bool write = i < p.total, active = write;
		cube_u64 target = ~cube_u64(0);
		cube_i64 v = 0;
		if (active) {
			uint32_t at = cube_above(sums, CUBE_BLOCK, i), before = at > 0 ? sums[at - 1] : 0;
			n = sums[at] - before;
			cube_u64 place = p.first + at;
			uint32_t cell = s.list != nullptr ? s.list[place] : uint32_t(place);
			target = cube_target(s.q, cell, i - before, v);
			v *= cube_value(s.q, cell);
		}
		if (p.stride) {
			n = __shfl_sync(CUBE_ALL, n, 0);
			if (n < 32) {
				cube_u64 first = __shfl_sync(CUBE_ALL, target, int(lane % n));
				bool merge = active && target == first;
				uint32_t join = __ballot_sync(CUBE_ALL, merge);
				cube_i64 sum = v;
				for (uint32_t t = n; t < 32; t += n) {
					cube_i64 other = __shfl_sync(CUBE_ALL, v, int((lane + t) & 31));
					if (lane + t < 32 && (join >> (lane + t) & 1))
						sum += other;
				}
				if (lane < n)
					v = sum;
				write = active && (lane < n || !merge);
			}
		}
		if (write)
			cube_add(s.t, target, function, v);
	}
}

// cube_launched notes a launch that failed, above the bit of a full table.
__device__ __forceinline__ void cube_launched(const CubeTable &t) {
	uint32_t error = PGACCEL_LAUNCH_ERROR();
	if (error != 0)
		atomicMax(t.full, error << 1);
}

struct CubeParent {
	const CubeSource *source;
	uint32_t *sums;   // CUBE_BLOCK for each launch of a step
	cube_u64 first;   // page that the step begins with; a page is gridDim.x * CUBE_BLOCK cells
	uint32_t pages;   // of a step
	uint32_t fixed;   // child grids of one block
	uint32_t stride;  // CubeChild.stride
	uint32_t chained; // the step launches the next one, which begins after all children
};

// cube_parent is a step of the parent grid: counts, their sums, and a child for each block
// of cells.
PGACCEL_KERNEL(cube_parent, CubeParent, p, CUBE_BLOCK, 1) {
	__shared__ uint32_t warps[32];
	const CubeSource &s = *p.source;
	cube_u64 n = s.list != nullptr ? *s.count : s.q.cells;
	cube_u64 page = uint64_t(gridDim.x) * CUBE_BLOCK;
	for (uint32_t k = 0; k < p.pages; k++) {
		cube_u64 first = (p.first + k) * page + uint64_t(blockIdx.x) * CUBE_BLOCK;
		if (first >= n)
			break;
		uint32_t sum = cube_block_sums(cube_page_count(s, first + threadIdx.x, n), warps);
		uint32_t *sums = p.sums + (uint64_t(k) * gridDim.x + blockIdx.x) * CUBE_BLOCK;
		sums[threadIdx.x] = sum;
		__threadfence();
		__syncthreads();
		if (threadIdx.x == 0) {
			uint32_t total = warps[CUBE_BLOCK / 32 - 1];
			if (total > 0) {
				CubeChild child = {p.source, sums, first, total, p.stride};
				uint32_t blocks = p.fixed ? 1 : (total + CUBE_CHILD - 1) / CUBE_CHILD;
				PGACCEL_LAUNCH(cube_child, dim3(blocks, 1, 1), dim3(CUBE_CHILD, 1, 1), 0, child);
				cube_launched(s.t);
			}
		}
		__syncthreads();
	}
	if (p.chained && blockIdx.x == 0 && threadIdx.x == 0 && (p.first + p.pages) * page < n) {
		CubeParent next = {p.source, p.sums, p.first + p.pages, p.pages, p.fixed, p.stride, p.chained};
		PGACCEL_LAUNCH_TAIL(cube_parent, dim3(gridDim.x, 1, 1), dim3(CUBE_BLOCK, 1, 1), 0, next);
		cube_launched(s.t);
	}
}
#endif

struct CubeQueue {
	CubeSource s;
	uint32_t *next;    // tile
	uint32_t targets;  // of the dense table
	uint32_t unused;
	cube_u64 *sums;    // of dense targets
	unsigned char *seen;
};

// cube_dense_add adds to a sum of 64 bits in shared memory by atomics of 32: those of 64
// are loops of compare-and-swap on sm_90.
__device__ __forceinline__ void cube_dense_add(uint32_t *lo, uint32_t *hi, uint32_t at, cube_i64 v) {
	uint32_t low = uint32_t(cube_u64(v)), old = atomicAdd(lo + at, low);
	uint32_t high = uint32_t(cube_u64(v) >> 32) + (old + low < old);
	if (high != 0)
		atomicAdd(hi + at, high);
}

// cube_tiles: a block takes a tile of cells from the queue, then has a thread for each of
// their targets. Sums are kept in a table of the block's own (DENSE) or in the hash table, after
// lanes that meet in a target have added up their values.
template <bool DENSE> __device__ __forceinline__ void cube_tiles(const CubeQueue &p) {
	__shared__ uint32_t sums[CUBE_TILE], warps[32], tile;
	PGACCEL_DYNAMIC_SHARED(table);
	uint32_t *lo = reinterpret_cast<uint32_t *>(table), *hi = lo + p.targets;
	unsigned char *seen = reinterpret_cast<unsigned char *>(hi + p.targets);
	uint32_t lane = threadIdx.x & 31;
	cube_u64 n = p.s.list != nullptr ? *p.s.count : p.s.q.cells;
	if (DENSE) {
		for (uint32_t i = threadIdx.x; i < p.targets; i += CUBE_TILE) {
			lo[i] = hi[i] = 0;
			seen[i] = 0;
		}
	}
	for (;;) {
		__syncthreads();
		if (threadIdx.x == 0)
			tile = atomicAdd(p.next, 1u);
		__syncthreads();
		cube_u64 first = uint64_t(tile) * CUBE_TILE;
		if (first >= n)
			break;
		sums[threadIdx.x] = cube_block_sums(cube_page_count(p.s, first + threadIdx.x, n), warps);
		__syncthreads();
		uint32_t total = sums[CUBE_TILE - 1];
		for (uint32_t from = threadIdx.x - lane; from < total; from += CUBE_TILE) {
			uint32_t i = from + lane;
			bool active = i < total;
			cube_u64 target = ~cube_u64(0);
			cube_i64 v = 0;
			if (active) {
				uint32_t at = cube_above(sums, CUBE_TILE, i), before = at > 0 ? sums[at - 1] : 0;
				uint32_t cell = p.s.list != nullptr ? p.s.list[first + at] : uint32_t(first + at);
				target = cube_target(p.s.q, cell, i - before, v);
				v *= cube_value(p.s.q, cell);
			}
			if (DENSE) {
				if (active) {
					cube_dense_add(lo, hi, uint32_t(target), v);
					seen[target] = 1;
				}
				continue;
			}
			uint32_t peers = __match_any_sync(CUBE_ALL, target), rest = peers & (peers - 1);
			bool leader = active && (peers & ((1u << lane) - 1)) == 0;
			if (!leader)
				rest = 0;
			while (__any_sync(CUBE_ALL, rest != 0)) {
				cube_i64 other = __shfl_sync(CUBE_ALL, v, rest != 0 ? __ffs(int(rest)) - 1 : int(lane));
				if (rest != 0) {
					v += other;
					rest &= rest - 1;
				}
			}
			if (leader)
				cube_add(p.s.t, target, 0, v);
		}
	}
	if (DENSE) {
		for (uint32_t i = threadIdx.x; i < p.targets; i += CUBE_TILE)
			if (seen[i]) {
				atomicAdd(p.sums + i, cube_u64(hi[i]) << 32 | lo[i]);
				p.seen[i] = 1;
			}
	}
}

PGACCEL_KERNEL(cube_queue, CubeQueue, p, CUBE_TILE, 4) { cube_tiles<false>(p); }
PGACCEL_KERNEL(cube_queue_dense, CubeQueue, p, CUBE_TILE, 1) { cube_tiles<true>(p); }
