// What a compiled kernel and the emulator's runtime know of each other. It is C for the
// runtime and C++ for kernels, and includes nothing.
#ifndef PGEMU_ABI_H
#define PGEMU_ABI_H

#define PGEMU_VERSION 2

typedef struct pgemu_dim {
	unsigned x, y, z;
} pgemu_dim;

// The thread that runs: what threadIdx and its like read.
typedef struct pgemu_thread {
	pgemu_dim thread, block, block_dim, grid_dim;
	unsigned char *shared; // dynamic shared memory
	unsigned spins;        // calls that a loop which waits for others would make
} pgemu_thread;

// A kernel, in its module under the name pgemu_kernel_NAME.
typedef struct pgemu_kernel {
	const char *name;
	void (*run)(const void *params);
	unsigned params;  // bytes of the parameter
	unsigned threads; // at most so many a block
	unsigned shared;  // bytes of static shared memory, where the runtime knows them
} pgemu_kernel;

// Barriers of a block.
enum {
	PGEMU_SYNC,
	PGEMU_SYNC_COUNT,
	PGEMU_SYNC_OR,
	PGEMU_SYNC_AND,
};

// Collectives of a warp.
enum {
	PGEMU_WARP_SYNC,
	PGEMU_SHFL,
	PGEMU_SHFL_UP,
	PGEMU_SHFL_DOWN,
	PGEMU_SHFL_XOR,
	PGEMU_BALLOT,
	PGEMU_ANY,
	PGEMU_ALL,
	PGEMU_MATCH_ANY,
	PGEMU_REDUCE_ADD,
	PGEMU_REDUCE_MIN_I32,
	PGEMU_REDUCE_MIN_U32,
	PGEMU_REDUCE_MAX_I32,
	PGEMU_REDUCE_MAX_U32,
	PGEMU_REDUCE_AND,
	PGEMU_REDUCE_OR,
	PGEMU_REDUCE_XOR,
};

// What kernels call.
typedef struct pgemu_runtime {
	unsigned version;
	unsigned (*barrier)(int op, unsigned predicate);
	// The value of each lane that the mask names becomes the result, by op; arg and width are
	// those of shuffles.
	unsigned long long (*collective)(int op, unsigned mask, unsigned long long value, unsigned arg, unsigned width);
	// Lets the block's other threads go on.
	void (*yield)(void);
	// Queues a child grid, to run before the parent's grid counts as done, or after that.
	void (*launch)(const pgemu_kernel *kernel, pgemu_dim grid, pgemu_dim block, unsigned shared, const void *params, int tail);
} pgemu_runtime;

#endif
