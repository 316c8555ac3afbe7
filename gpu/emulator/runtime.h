// The emulator's runtime as its Go half sees it. Errors are strings that the caller frees,
// or faults.
#ifndef PGEMU_RUNTIME_H
#define PGEMU_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

// What became of a launch.
enum {
	PGEMU_OK,
	PGEMU_DEADLOCK, // some threads wait for others that will not come
	PGEMU_CRASH,    // a signal: the memory is not to be trusted
	PGEMU_CHILD,    // a child grid cannot be launched
	PGEMU_LIMIT,    // it ran longer than allowed
};

typedef struct pgemu_fault {
	int kind;
	int signal;
	const char *kernel;
	pgemu_dim block, thread;
	uintptr_t address; // of a crash
	uintptr_t pc;      // where, or 0
	char text[512];
} pgemu_fault;

typedef struct pgemu_pool pgemu_pool;
typedef struct pgemu_module pgemu_module;

// pgemu_open starts OS threads that run blocks.
pgemu_pool *pgemu_open(int workers, size_t shared_limit, char **error);
void pgemu_close(pgemu_pool *pool);

// pgemu_load loads a shared object, once and for good.
pgemu_module *pgemu_load(const char *path, char **error);
pgemu_kernel *pgemu_find(pgemu_module *m, const char *name);
// pgemu_where says in which object a pc lies, and where there.
const char *pgemu_where(uintptr_t pc, uintptr_t *offset);

// pgemu_run runs a grid and its children, and returns when all is done. What the launch
// needs was checked. limit is in milliseconds, 0 for none.
void pgemu_run(pgemu_pool *pool, pgemu_kernel *k, pgemu_dim grid, pgemu_dim block, unsigned shared, const void *params,
	long limit, pgemu_fault *fault);

// Device memory, between pages that cannot be touched; base and whole are what pgemu_unmap takes.
void *pgemu_map(size_t bytes, void **base, size_t *whole);
void pgemu_unmap(void *base, size_t whole);

#endif
