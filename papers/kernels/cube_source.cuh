// Source-based aggregation as in section 4.2 of the thesis (cube.cuh): the prefilter, a
// moving grid of threads that each add one source cell to all of its targets, and the
// compaction of hash slots.
#pragma once
#include "cube.cuh"

constexpr uint32_t CUBE_BLOCK = 768; // threads, as in section 5.2
constexpr uint32_t CUBE_FILTER = 256;

// How additions are saved within a warp.
constexpr int CUBE_NONE = 0;
constexpr int CUBE_SHARED = 1;  // section 4.2.1: keys and values go through shared memory
constexpr int CUBE_SHUFFLE = 2; // section 5.4.1: the same by shuffles

struct CubeFilter {
	CubeQuery q;
	uint32_t *list;  // of relevant cells, in any order of warps
	uint32_t *count; // of list
};

// cube_prefilter lists the relevant cells. A warp takes a vector, which is a page: codes are
// sorted by path, so ranges of codes often tell for all of its cells. Then cells, 32 at a time.
PGACCEL_KERNEL(cube_prefilter, CubeFilter, p, CUBE_FILTER, 4) {
	uint32_t lane = threadIdx.x & 31;
	uint32_t warps = gridDim.x * (blockDim.x >> 5);
	uint32_t vectors = uint32_t((p.q.cells + CUBE_VECTOR - 1) / CUBE_VECTOR);
	for (uint32_t v = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); v < vectors; v += warps) {
		bool page = true;
		for (uint32_t d = 0; d < CUBE_DIMS; d++) {
			const uint32_t *zone = p.q.dims[d].zones + 2 * uint64_t(v);
			page = page && __ldg(p.q.dims[d].before + __ldg(zone + 1) + 1) != __ldg(p.q.dims[d].before + __ldg(zone));
		}
		if (!page)
			continue;
		uint32_t mine = 0; // a bit for each position
		for (uint32_t i = 0; i < 32; i++) {
			cube_u64 cell = uint64_t(v) * CUBE_VECTOR + i * 32 + lane;
			bool relevant = cell < p.q.cells;
			if (relevant) {
#pragma unroll
				for (uint32_t d = 0; d < CUBE_DIMS; d++) {
					uint32_t e = cube_code(p.q.dims[d].column, uint32_t(cell));
					relevant = relevant && __ldg(p.q.dims[d].before + e + 1) != __ldg(p.q.dims[d].before + e);
				}
			}
			uint32_t bits = __ballot_sync(CUBE_ALL, relevant);
			if (lane == i)
				mine = bits; // the lane of a position keeps its bits
		}
		uint32_t n = __popc(mine), sum = scan_warp(n);
		uint32_t total = __shfl_sync(CUBE_ALL, sum, 31), first = 0;
		if (total == 0)
			continue;
		if (lane == 0)
			first = atomicAdd(p.count, total);
		first = __shfl_sync(CUBE_ALL, first, 0);
		for (uint32_t i = 0; i < 32; i++) {
			uint32_t bits = __shfl_sync(CUBE_ALL, mine, i), before = __shfl_sync(CUBE_ALL, sum - n, i);
			if (bits >> lane & 1)
				p.list[first + before + __popc(bits & ((1u << lane) - 1))] = v * CUBE_VECTOR + i * 32 + lane;
		}
	}
}

struct CubeSource {
	CubeQuery q;
	CubeTable t;
	const uint32_t *list;  // of cells, or none: all
	const uint32_t *count; // of list
};

// cube_targets adds the cells from..to of the list by the moving grid.
template <int SAVE> __device__ __forceinline__ void cube_targets(const CubeSource &p) {
	__shared__ cube_u64 firsts[CUBE_BLOCK / 32];
	__shared__ cube_i64 values[CUBE_BLOCK];
	uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t function = thread % p.t.functions; // once a thread
	cube_u64 n = p.list != nullptr ? *p.count : p.q.cells;
	for (cube_u64 from = thread - lane; from < n; from += uint64_t(gridDim.x) * blockDim.x) {
		bool active = from + lane < n;
		uint32_t at[CUBE_DIMS], begin[CUBE_DIMS], end[CUBE_DIMS];
		cube_i64 value = 0;
		if (active) {
			uint32_t cell = p.list != nullptr ? p.list[from + lane] : uint32_t(from + lane);
#pragma unroll
			for (uint32_t d = 0; d < CUBE_DIMS; d++) {
				const uint32_t *start = p.q.dims[d].start + cube_code(p.q.dims[d].column, cell);
				at[d] = begin[d] = __ldg(start);
				end[d] = __ldg(start + 1);
				active = active && begin[d] < end[d];
			}
			if (active)
				value = cube_value(p.q, cell);
		}
		cube_u64 leading = 0; // number and weight of all dimensions but the last
		cube_i64 weight = 1;
		bool settle = true;
		while (SAVE == CUBE_NONE ? active : __any_sync(CUBE_ALL, active) != 0) {
			cube_u64 target = 0;
			cube_i64 v = 0;
			if (active) {
				if (settle) {
					leading = 0;
					weight = value;
#pragma unroll
					for (uint32_t d = 0; d + 1 < CUBE_DIMS; d++) {
						leading += __ldg(p.q.dims[d].number + at[d]);
						weight *= __ldg(p.q.dims[d].weight + at[d]);
					}
					settle = false;
				}
				target = leading + __ldg(p.q.dims[CUBE_DIMS - 1].number + at[CUBE_DIMS - 1]);
				v = weight * __ldg(p.q.dims[CUBE_DIMS - 1].weight + at[CUBE_DIMS - 1]);
			}
			bool write = active;
			if (SAVE == CUBE_SHARED) {
				// Lanes that meet the first lane's target give it their values.
				if (lane == 0)
					firsts[warp] = active ? target : ~cube_u64(0);
				__syncwarp();
				bool merge = active && firsts[warp] == target;
				uint32_t merged = __ballot_sync(CUBE_ALL, merge);
				if (merged & (merged - 1)) {
					values[threadIdx.x] = merge ? v : 0;
					__syncwarp();
#pragma unroll
					for (uint32_t d = 16; d > 0; d >>= 1) {
						if (lane < d)
							values[threadIdx.x] += values[threadIdx.x + d];
						__syncwarp();
					}
					if (lane == 0)
						v = values[threadIdx.x];
					write = lane == 0 || (active && !merge);
				}
				__syncwarp();
			} else if (SAVE == CUBE_SHUFFLE) {
				cube_u64 first = __shfl_sync(CUBE_ALL, active ? target : ~cube_u64(0), 0);
				bool merge = active && first == target;
				uint32_t merged = __ballot_sync(CUBE_ALL, merge);
				if (merged & (merged - 1)) {
					cube_i64 sum = cube_sum(merge ? v : 0);
					if (lane == 0)
						v = sum;
					write = lane == 0 || (active && !merge);
				}
			}
			if (write)
				cube_add(p.t, target, function, v);
			if (active) {
				bool carry = true;
#pragma unroll
				for (int d = CUBE_DIMS - 1; d >= 0; d--) {
					if (carry) {
						settle = settle || d + 1 < CUBE_DIMS;
						if (++at[d] < end[d])
							carry = false;
						else
							at[d] = begin[d];
					}
				}
				active = !carry;
			}
		}
	}
}

PGACCEL_KERNEL(cube_source_none, CubeSource, p, CUBE_BLOCK, 1) { cube_targets<CUBE_NONE>(p); }
PGACCEL_KERNEL(cube_source_shared, CubeSource, p, CUBE_BLOCK, 1) { cube_targets<CUBE_SHARED>(p); }
PGACCEL_KERNEL(cube_source_shuffle, CubeSource, p, CUBE_BLOCK, 1) { cube_targets<CUBE_SHUFFLE>(p); }

// CubeMerge is the stream compaction of section 4.2.2: the slots that several hash
// functions made of one number are added up in a table with one.
struct CubeMerge {
	CubeTable from, to;
};

PGACCEL_KERNEL(cube_merge, CubeMerge, p, CUBE_FILTER, 4) {
	uint32_t lane = threadIdx.x & 31;
	cube_u64 step = uint64_t(gridDim.x) * blockDim.x;
	for (cube_u64 i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i - lane <= p.from.mask; i += step) {
		cube_u64 key = i <= p.from.mask ? p.from.keys[i] : 0;
		cube_i64 v = key != 0 ? cube_i64(p.from.sums[i]) : 0;
		cube_u64 number = key != 0 ? (key - 1) / p.from.functions : ~cube_u64(0);
		// Lanes of one number are added up by the first of them.
		uint32_t left = __ballot_sync(CUBE_ALL, key != 0);
		while (left != 0) {
			int leader = __ffs(int(left)) - 1;
			bool same = number == __shfl_sync(CUBE_ALL, number, leader) && key != 0;
			uint32_t peers = __ballot_sync(CUBE_ALL, same);
			cube_i64 sum = cube_sum(same ? v : 0);
			sum = __shfl_sync(CUBE_ALL, sum, 0);
			if (int(lane) == leader)
				cube_add(p.to, number, 0, sum);
			left &= ~peers;
		}
	}
}

struct CubeList {
	CubeTable t;
	cube_u64 *numbers;
	cube_u64 *sums;
	uint32_t *count;
	uint32_t most; // entries that there is room for
	uint32_t unused;
};

// cube_list lists what a table with one hash function holds, in any order. Where there is
// no room, count says how much there would have to be.
PGACCEL_KERNEL(cube_list, CubeList, p, CUBE_FILTER, 4) {
	uint32_t lane = threadIdx.x & 31;
	cube_u64 step = uint64_t(gridDim.x) * blockDim.x;
	for (cube_u64 i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i - lane <= p.t.mask; i += step) {
		cube_u64 key = i <= p.t.mask ? p.t.keys[i] : 0;
		uint32_t bits = __ballot_sync(CUBE_ALL, key != 0), first = 0;
		if (bits == 0)
			continue;
		if (lane == 0)
			first = atomicAdd(p.count, uint32_t(__popc(bits)));
		first = __shfl_sync(CUBE_ALL, first, 0) + __popc(bits & ((1u << lane) - 1));
		if (key != 0 && first < p.most) {
			p.numbers[first] = key - 1;
			p.sums[first] = p.t.sums[i];
		}
	}
}
