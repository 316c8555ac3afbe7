// Switching between stacks, for the threads of a block.
#ifndef PGEMU_FIBER_H
#define PGEMU_FIBER_H

#include <stddef.h>

typedef struct pgemu_fiber {
	void *sp;
	void *ucontext; // where there is no assembly
	char *stack;    // with a page before it that cannot be touched
	size_t size;
} pgemu_fiber;

// pgemu_fiber_init has the fiber begin at entry, which does not return. A fiber that was
// left in the middle of something can be begun anew.
void pgemu_fiber_init(pgemu_fiber *f, void (*entry)(void));
// pgemu_fiber_switch leaves from, to which a later switch returns, and goes on with to.
void pgemu_fiber_switch(pgemu_fiber *from, pgemu_fiber *to);

#endif
