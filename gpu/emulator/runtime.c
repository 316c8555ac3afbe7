//go:build linux && cgo

// Blocks, their threads, and what threads wait for. An OS thread of the pool runs one
// block at a time; each thread of the block is a fiber that runs until it waits.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE // its longjmp takes a fiber's stack for a corrupt one
#include "runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fiber.h"

enum {
	warp_size = 32,
	max_threads = 1024,
	max_warps = max_threads / warp_size,
	stack_bytes = 128 << 10,
	poison = 0xa5,
};

// What a thread waits for.
enum { running, yielding, at_barrier, at_collective, returned };

struct lane {
	pgemu_thread seen; // by the kernel
	pgemu_fiber fiber;
	int state;
	int op;
	unsigned mask, arg, width;
	unsigned long long value, result;
	void *pc; // of the call that waits
};

struct warp {
	unsigned lanes;   // that exist
	unsigned ready;   // that can run
	unsigned yielded; // that can run after the others did
	unsigned waiting; // at a collective
};

struct child {
	struct child *next;
	const pgemu_kernel *kernel;
	pgemu_dim grid, block;
	unsigned shared;
	int tail;
	uint64_t params[512];
};

struct job {
	struct job *next;
	const pgemu_kernel *kernel;
	pgemu_dim grid, block;
	unsigned shared;
	const void *params;
	uint64_t seed; // decides the order in which a block's threads run
	uint64_t total, taken, running;
	int stop; // a fault: blocks are left where they are
	pgemu_fault *fault;
	struct child *children, **last, *tails, **last_tail;
	pthread_cond_t done;
};

struct worker {
	pgemu_pool *pool;
	pthread_t thread;
	struct lane *lanes;
	int fibers; // lanes that have one
	char *alternate;
	unsigned char *shared_base;
	size_t shared_whole;
	unsigned char *shared_end;

	// The block that runs.
	struct job *job;
	pgemu_thread **slot;
	pgemu_fiber home;
	struct lane *lane;
	struct warp warps[max_warps];
	unsigned threads, nwarps, done, arrived;
	int barrier_op;
	volatile sig_atomic_t signal_ok; // a signal now is the kernel's
	sigjmp_buf escape;

	// The thread-local memory that a kernel's module has on this OS thread.
	const pgemu_kernel *kernel;
	void *tls;
	size_t tls_bytes;
};

struct pgemu_pool {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct job *jobs; // with blocks that nobody took
	struct worker *workers;
	int nworkers, closing;
	uint64_t launches;
	size_t shared_limit;
};

struct pgemu_module {
	void *handle;
	pgemu_thread **(*slot)(void);
	size_t tls_bytes;
	int kernels;
};

static __thread struct worker *self;

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static size_t whole_pages(size_t bytes) { return (bytes + page() - 1) & ~(page() - 1); }

static char *message(const char *format, const char *a) {
	char *text = NULL;
	if (asprintf(&text, format, a) < 0) return NULL;
	return text;
}

// ---- faults

static const char *const barrier_names[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_or", "__syncthreads_and"};
static const char *const collective_names[] = {"__syncwarp", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
	"__ballot_sync", "__any_sync", "__all_sync", "__match_any_sync", "__reduce_add_sync", "__reduce_min_sync", "__reduce_min_sync",
	"__reduce_max_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync"};

// set_fault notes the first fault of a job, and stops it.
static void set_fault(struct worker *w, const struct lane *l, const pgemu_fault *f) {
	struct job *job = w->job;
	pthread_mutex_lock(&w->pool->lock);
	if (job->fault->kind == PGEMU_OK) {
		*job->fault = *f;
		job->fault->kernel = job->kernel->name;
		if (l) {
			job->fault->block = l->seen.block;
			job->fault->thread = l->seen.thread;
		}
	}
	__atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&w->pool->lock);
}

// leave abandons the block: its fibers are begun anew for the next one.
static void leave(struct worker *w) __attribute__((noreturn));
static void leave(struct worker *w) {
	w->signal_ok = 0;
	siglongjmp(w->escape, 1);
}

static struct sigaction before[NSIG];
static const int kernel_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};

static void on_signal(int number, siginfo_t *info, void *context) {
	struct worker *w = self;
	// pgemu_run sends this one to those whose time is over.
	int limit = number == SIGBUS && info->si_code == SI_TKILL;
	if (w && limit && !(w->signal_ok && w->job->stop)) return;
	if (w && w->signal_ok) {
		// The fiber stays where it is; what it held of the C library's (nothing) is lost.
		w->signal_ok = 0;
		pgemu_fault f = {.kind = PGEMU_CRASH, .signal = number, .address = (uintptr_t)info->si_addr};
#if defined(__x86_64__)
		f.pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
		f.pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.pc;
#endif
		if (limit) {
			f.kind = PGEMU_LIMIT;
		} else if (number == SIGSEGV && w->lane && f.address >= (uintptr_t)w->lane->fiber.stack - page() && f.address < (uintptr_t)w->lane->fiber.stack) {
			snprintf(f.text, sizeof f.text, "a thread's stack of %d bytes is full", stack_bytes);
		} else if (number == SIGSEGV && f.address >= (uintptr_t)w->shared_end && f.address < (uintptr_t)w->shared_end + page()) {
			snprintf(f.text, sizeof f.text, "an access %lu bytes behind the %u bytes of dynamic shared memory",
				(unsigned long)(f.address - (uintptr_t)w->shared_end), w->job->shared);
		}
		set_fault(w, w->lane, &f);
		siglongjmp(w->escape, 1);
	}
	struct sigaction *old = &before[number];
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(number, info, context);
	} else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
		sigaction(number, old, NULL); // it happens again, and ends the process
	} else {
		old->sa_handler(number);
	}
}

static pthread_once_t signals_once = PTHREAD_ONCE_INIT;

// take_signals puts a handler in front of Go's, for good: it hands on all that does not
// come from a kernel, on the stack that the thread has for signals, as Go demands.
static void take_signals(void) {
	struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	sigfillset(&a.sa_mask);
	for (size_t i = 0; i < sizeof kernel_signals / sizeof *kernel_signals; i++)
		sigaction(kernel_signals[i], &a, &before[kernel_signals[i]]);
}

// ---- what kernels call

static void resume(struct worker *w, struct lane *l) {
	w->lane = l;
	*w->slot = &l->seen;
	pgemu_fiber_switch(&w->home, &l->fiber);
}

// pause gives the OS thread to the block's other threads.
static void pause_lane(struct worker *w, struct lane *l) {
	if (__atomic_load_n(&w->job->stop, __ATOMIC_RELAXED)) leave(w);
	pgemu_fiber_switch(&l->fiber, &w->home);
}

static void wake(struct worker *w, struct lane *l) {
	unsigned i = (unsigned)(l - w->lanes);
	l->state = running;
	w->warps[i / warp_size].ready |= 1u << i % warp_size;
}

static void misuse(struct worker *w, struct lane *l, const char *format, const char *a, const char *b) {
	pgemu_fault f = {.kind = PGEMU_DEADLOCK, .pc = (uintptr_t)l->pc};
	snprintf(f.text, sizeof f.text, format, a, b);
	set_fault(w, l, &f);
	leave(w);
}

static unsigned rt_barrier(int op, unsigned predicate) {
	struct worker *w = self;
	struct lane *l = w->lane;
	w->signal_ok = 0;
	l->pc = __builtin_return_address(0);
	if (w->arrived > 0 && w->barrier_op != op)
		misuse(w, l, "%s, where other threads of the block are at %s", barrier_names[op], barrier_names[w->barrier_op]);
	w->barrier_op = op;
	l->value = predicate;
	l->state = at_barrier;
	if (++w->arrived == w->threads) {
		unsigned count = 0;
		for (unsigned i = 0; i < w->threads; i++) count += (unsigned)w->lanes[i].value;
		unsigned result = op == PGEMU_SYNC_COUNT ? count : op == PGEMU_SYNC_OR ? count > 0 : count == w->threads;
		for (unsigned i = 0; i < w->threads; i++) {
			w->lanes[i].result = result;
			wake(w, &w->lanes[i]);
		}
		w->arrived = 0;
	}
	pause_lane(w, l);
	w->signal_ok = 1;
	return (unsigned)l->result;
}

// finish computes what a collective of the lanes in mask returns to each of them.
static void finish(struct lane *lanes, int op, unsigned mask) {
	unsigned long long all = 0;
	unsigned first = (unsigned)__builtin_ctz(mask);
	switch (op) {
	case PGEMU_WARP_SYNC:
		return;
	case PGEMU_SHFL:
	case PGEMU_SHFL_UP:
	case PGEMU_SHFL_DOWN:
	case PGEMU_SHFL_XOR:
		for (unsigned m = mask; m; m &= m - 1) {
			unsigned i = (unsigned)__builtin_ctz(m), width = lanes[i].width, arg = lanes[i].arg, from;
			unsigned begin = i & ~(width - 1), end = begin + width;
			switch (op) {
			case PGEMU_SHFL:
				from = begin + (arg & (width - 1));
				break;
			case PGEMU_SHFL_UP:
				from = arg > i - begin ? i : i - arg;
				break;
			case PGEMU_SHFL_DOWN:
				from = arg >= end - i ? i : i + arg;
				break;
			default:
				from = i ^ (arg & 31);
				if (from >= end) from = i;
			}
			// The value of a lane that is not named is not defined.
			lanes[i].result = mask >> from & 1 ? lanes[from].value : 0xdeadbeefdeadbeefull;
		}
		return;
	case PGEMU_MATCH_ANY:
		for (unsigned m = mask; m; m &= m - 1) {
			unsigned i = (unsigned)__builtin_ctz(m), same = 0;
			for (unsigned o = mask; o; o &= o - 1) {
				unsigned j = (unsigned)__builtin_ctz(o);
				if (lanes[j].value == lanes[i].value) same |= 1u << j;
			}
			lanes[i].result = same;
		}
		return;
	}
	switch (op) {
	case PGEMU_REDUCE_MIN_I32:
	case PGEMU_REDUCE_MIN_U32:
	case PGEMU_REDUCE_MAX_I32:
	case PGEMU_REDUCE_MAX_U32:
	case PGEMU_REDUCE_AND:
		all = lanes[first].value;
	}
	for (unsigned m = mask; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);
		unsigned v = (unsigned)lanes[i].value, a = (unsigned)all;
		switch (op) {
		case PGEMU_BALLOT:
		case PGEMU_ANY:
		case PGEMU_ALL:
			all |= (unsigned long long)(v != 0) << i;
			break;
		case PGEMU_REDUCE_ADD:
			all = a + v;
			break;
		case PGEMU_REDUCE_MIN_I32:
			all = (unsigned)((int)v < (int)a ? v : a);
			break;
		case PGEMU_REDUCE_MIN_U32:
			all = v < a ? v : a;
			break;
		case PGEMU_REDUCE_MAX_I32:
			all = (unsigned)((int)v > (int)a ? v : a);
			break;
		case PGEMU_REDUCE_MAX_U32:
			all = v > a ? v : a;
			break;
		case PGEMU_REDUCE_AND:
			all = a & v;
			break;
		case PGEMU_REDUCE_OR:
			all = a | v;
			break;
		case PGEMU_REDUCE_XOR:
			all = a ^ v;
			break;
		}
	}
	if (op == PGEMU_ANY) all = all != 0;
	if (op == PGEMU_ALL) all = all == mask;
	for (unsigned m = mask; m; m &= m - 1) lanes[__builtin_ctz(m)].result = all;
}

static unsigned long long rt_collective(int op, unsigned mask, unsigned long long value, unsigned arg, unsigned width) {
	struct worker *w = self;
	struct lane *l = w->lane;
	w->signal_ok = 0;
	l->pc = __builtin_return_address(0);
	unsigned i = (unsigned)(l - w->lanes), me = 1u << i % warp_size;
	struct warp *warp = &w->warps[i / warp_size];
	struct lane *lanes = &w->lanes[i / warp_size * warp_size];
	if (!(mask & me)) misuse(w, l, "%s by a lane that its mask does not name", collective_names[op], "");
	if (width == 0 || width > warp_size || (width & (width - 1))) misuse(w, l, "%s with a width that is not a power of two up to 32", collective_names[op], "");
	l->op = op, l->mask = mask, l->value = value, l->arg = arg, l->width = width;
	l->state = at_collective;
	warp->waiting |= me;
	if ((warp->waiting & mask) == mask) {
		unsigned same = 0;
		for (unsigned m = mask; m; m &= m - 1) {
			unsigned j = (unsigned)__builtin_ctz(m);
			if (lanes[j].mask != mask) continue;
			if (lanes[j].op != op) misuse(w, l, "%s, where other lanes of its mask are at %s", collective_names[op], collective_names[lanes[j].op]);
			same |= 1u << j;
		}
		if (same == mask) {
			finish(lanes, op, mask);
			warp->waiting &= ~mask;
			for (unsigned m = mask; m; m &= m - 1) wake(w, &lanes[__builtin_ctz(m)]);
		}
	}
	pause_lane(w, l);
	w->signal_ok = 1;
	return l->result;
}

static void rt_yield(void) {
	struct worker *w = self;
	struct lane *l = w->lane;
	unsigned i = (unsigned)(l - w->lanes);
	w->signal_ok = 0;
	l->state = yielding;
	w->warps[i / warp_size].yielded |= 1u << i % warp_size;
	pause_lane(w, l);
	w->signal_ok = 1;
}

static const char *cannot_launch(const pgemu_pool *pool, const pgemu_kernel *k, pgemu_dim grid, pgemu_dim block, unsigned shared) {
	uint64_t threads = (uint64_t)block.x * block.y * block.z;
	if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) return "the grid's size is not valid";
	if (threads == 0 || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > k->threads) return "more threads a block than the kernel's launch bounds";
	if ((size_t)shared + k->shared > pool->shared_limit) return "more shared memory than a block can have";
	return NULL;
}

static void rt_launch(const pgemu_kernel *k, pgemu_dim grid, pgemu_dim block, unsigned shared, const void *params, int tail) {
	struct worker *w = self;
	struct lane *l = w->lane;
	w->signal_ok = 0;
	l->pc = __builtin_return_address(0);
	const char *why = cannot_launch(w->pool, k, grid, block, shared);
	struct child *c = why ? NULL : malloc(sizeof *c);
	if (!c) {
		pgemu_fault f = {.kind = PGEMU_CHILD, .pc = (uintptr_t)l->pc};
		snprintf(f.text, sizeof f.text, "child kernel %s: %s", k->name, why ? why : "out of memory");
		set_fault(w, l, &f);
		leave(w);
	}
	c->kernel = k, c->grid = grid, c->block = block, c->shared = shared, c->tail = tail, c->next = NULL;
	memcpy(c->params, params, k->params);
	pthread_mutex_lock(&w->pool->lock);
	if (tail)
		*w->job->last_tail = c, w->job->last_tail = &c->next;
	else
		*w->job->last = c, w->job->last = &c->next;
	pthread_mutex_unlock(&w->pool->lock);
	w->signal_ok = 1;
}

static const pgemu_runtime runtime = {PGEMU_VERSION, rt_barrier, rt_collective, rt_yield, rt_launch};

// ---- blocks

static void fiber_main(void) {
	for (;;) {
		struct worker *w = self;
		struct lane *l = w->lane;
		w->signal_ok = 1;
		w->job->kernel->run(w->job->params);
		w = self;
		w->signal_ok = 0;
		l->state = returned;
		w->done++;
		pgemu_fiber_switch(&l->fiber, &w->home);
	}
}

static void describe_stuck(struct worker *w) {
	struct lane *l = NULL;
	pgemu_fault f = {.kind = PGEMU_DEADLOCK};
	// A collective says more than the barrier that others wait at because of it.
	for (unsigned i = 0; i < w->threads && !(l && l->state == at_collective); i++)
		if (w->lanes[i].state == at_collective || (w->lanes[i].state == at_barrier && !l)) l = &w->lanes[i];
	f.pc = (uintptr_t)l->pc;
	unsigned warp = (unsigned)(l - w->lanes) / warp_size;
	if (l->state == at_barrier) {
		unsigned first = 0;
		while (w->lanes[first].state == at_barrier) first++;
		snprintf(f.text, sizeof f.text, "deadlock: waits in %s, to which %u of the block's %u threads came; thread %u %s", barrier_names[w->barrier_op],
			w->arrived, w->threads, first, w->lanes[first].state == returned ? "returned" : "waits in a collective of its warp");
	} else {
		unsigned missing = 0, absent = l->mask & ~w->warps[warp].lanes;
		for (unsigned m = l->mask & w->warps[warp].lanes; m; m &= m - 1) {
			unsigned i = (unsigned)__builtin_ctz(m);
			struct lane *o = &w->lanes[warp * warp_size + i];
			if (o->state != at_collective || o->mask != l->mask) missing |= 1u << i;
		}
		snprintf(f.text, sizeof f.text, "deadlock: waits in %s for the lanes 0x%08x, of which 0x%08x do not come%s", collective_names[l->op], l->mask,
			missing | absent, absent ? " (the block is too small to have them)" : "");
	}
	set_fault(w, l, &f);
}

static void begin_fibers(struct worker *w, unsigned threads) {
	for (; w->fibers < (int)threads; w->fibers++) {
		struct lane *l = &w->lanes[w->fibers];
		if (!l->fiber.stack) {
			char *base = mmap(NULL, stack_bytes + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (base == MAP_FAILED || mprotect(base, page(), PROT_NONE) != 0) {
				perror("pgaccel emulator: stacks of threads");
				abort();
			}
			l->fiber.stack = base + page();
			l->fiber.size = stack_bytes;
		}
		pgemu_fiber_init(&l->fiber, fiber_main);
	}
}

static pgemu_module *module_of(const pgemu_kernel *k);

// Shared memory has no value at a block's begin: a pattern that no kernel expects is there.
static void poison_shared(struct worker *w, const struct job *job) {
	if (job->kernel != w->kernel) {
		pgemu_module *m = module_of(job->kernel);
		w->kernel = job->kernel;
		w->slot = m->slot(); // which has this thread's copy made
		w->tls = NULL;
		w->tls_bytes = m->tls_bytes;
#ifdef RTLD_DI_TLS_DATA
		if (dlinfo(m->handle, RTLD_DI_TLS_DATA, &w->tls) != 0) w->tls = NULL;
#endif
	}
	if (w->tls) memset(w->tls, poison, w->tls_bytes);
	size_t bytes = ((size_t)job->shared + 15) & ~(size_t)15;
	memset(w->shared_end - bytes, poison, bytes);
}

static int first_lane(unsigned ready, int down) { return down ? 31 - __builtin_clz(ready) : __builtin_ctz(ready); }

static void run_block(struct worker *w, struct job *job, uint64_t number) {
	unsigned threads = job->block.x * job->block.y * job->block.z;
	if (sigsetjmp(w->escape, 1)) {
		w->fibers = 0;
		return;
	}
	w->job = job;
	w->threads = threads;
	w->nwarps = (threads + warp_size - 1) / warp_size;
	w->done = w->arrived = 0;
	poison_shared(w, job);
	begin_fibers(w, threads);
	pgemu_dim block = {(unsigned)(number % job->grid.x), (unsigned)(number / job->grid.x % job->grid.y),
		(unsigned)(number / job->grid.x / job->grid.y)};
	unsigned char *shared = w->shared_end - (((size_t)job->shared + 15) & ~(size_t)15);
	pgemu_dim thread = {0, 0, 0};
	for (unsigned i = 0; i < threads; i++) {
		struct lane *l = &w->lanes[i];
		l->seen = (pgemu_thread){thread, block, job->block, job->grid, shared, 0};
		l->state = running;
		if (++thread.x == job->block.x) {
			thread.x = 0;
			if (++thread.y == job->block.y) thread.y = 0, thread.z++;
		}
	}
	for (unsigned i = 0; i < w->nwarps; i++) {
		unsigned lanes = threads - i * warp_size;
		w->warps[i].lanes = w->warps[i].ready = lanes >= warp_size ? ~0u : (1u << lanes) - 1;
		w->warps[i].yielded = w->warps[i].waiting = 0;
	}
	// Threads run in one order or in the other: a barrier that is missing shows in one of them.
	int down = (int)((number ^ job->seed) & 1);
	while (w->done < threads) {
		int any = 0;
		for (unsigned i = 0; i < w->nwarps; i++) {
			unsigned n = down ? w->nwarps - 1 - i : i;
			struct warp *warp = &w->warps[n];
			while (warp->ready) {
				int lane = first_lane(warp->ready, down);
				warp->ready &= ~(1u << lane);
				any = 1;
				resume(w, &w->lanes[n * warp_size + (unsigned)lane]);
			}
		}
		for (unsigned i = 0; i < w->nwarps; i++) {
			struct warp *warp = &w->warps[i];
			any |= warp->yielded != 0;
			warp->ready |= warp->yielded;
			warp->yielded = 0;
		}
		if (!any) {
			describe_stuck(w);
			w->fibers = 0;
			return;
		}
		if (__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
			if (w->done < threads) w->fibers = 0;
			return;
		}
	}
}

// ---- the pool

static void *worker_main(void *arg) {
	struct worker *w = arg;
	pgemu_pool *pool = w->pool;
	self = w;
	stack_t alternate = {.ss_sp = w->alternate, .ss_size = 64 << 10};
	sigaltstack(&alternate, NULL);
	// Go's signals are for Go's threads.
	sigset_t all;
	sigfillset(&all);
	for (size_t i = 0; i < sizeof kernel_signals / sizeof *kernel_signals; i++) sigdelset(&all, kernel_signals[i]);
	pthread_sigmask(SIG_SETMASK, &all, NULL);

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct job *job = pool->jobs;
		if (!job) {
			if (pool->closing) break;
			pthread_cond_wait(&pool->work, &pool->lock);
			continue;
		}
		uint64_t number = job->taken++;
		job->running++;
		if (job->taken == job->total || job->stop) pool->jobs = job->next;
		if (!job->stop) {
			pthread_mutex_unlock(&pool->lock);
			run_block(w, job, number);
			w->lane = NULL;
			pthread_mutex_lock(&pool->lock);
		}
		if (job->stop && job->taken < job->total) {
			for (struct job **j = &pool->jobs; *j; j = &(*j)->next)
				if (*j == job) {
					*j = job->next;
					break;
				}
			job->taken = job->total;
		}
		w->job = NULL;
		if (--job->running == 0 && job->taken == job->total) pthread_cond_signal(&job->done);
	}
	pthread_mutex_unlock(&pool->lock);
	self = NULL;
	return NULL;
}

// run_job runs one grid; the caller holds the lock.
static void run_job(pgemu_pool *pool, struct job *job, const struct timespec *until) {
	job->total = (uint64_t)job->grid.x * job->grid.y * job->grid.z;
	job->seed = pool->launches++;
	struct job **j = &pool->jobs;
	while (*j) j = &(*j)->next;
	*j = job;
	pthread_cond_broadcast(&pool->work);
	struct timespec again;
	while (job->running > 0 || job->taken < job->total) {
		if (!until) {
			pthread_cond_wait(&job->done, &pool->lock);
		} else if (pthread_cond_timedwait(&job->done, &pool->lock, until) == ETIMEDOUT) {
			// Those that are in kernel code stop where they are, the others when they wait next.
			if (job->fault->kind == PGEMU_OK) {
				job->fault->kind = PGEMU_LIMIT;
				job->fault->kernel = job->kernel->name;
			}
			__atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
			for (int i = 0; i < pool->nworkers; i++)
				if (pool->workers[i].job == job) pthread_kill(pool->workers[i].thread, SIGBUS);
			clock_gettime(CLOCK_REALTIME, &again);
			again.tv_nsec += 50 * 1000 * 1000;
			if (again.tv_nsec >= 1000000000) again.tv_sec++, again.tv_nsec -= 1000000000;
			until = &again;
		}
	}
}

void pgemu_run(pgemu_pool *pool, pgemu_kernel *k, pgemu_dim grid, pgemu_dim block, unsigned shared, const void *params, long limit, pgemu_fault *fault) {
	memset(fault, 0, sizeof *fault);
	const char *why = cannot_launch(pool, k, grid, block, shared);
	if (why) {
		fault->kind = PGEMU_CHILD;
		fault->kernel = k->name;
		snprintf(fault->text, sizeof fault->text, "%s", why);
		return;
	}
	struct timespec end, *until = NULL;
	if (limit > 0) {
		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += limit / 1000;
		end.tv_nsec += limit % 1000 * 1000000;
		if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
		until = &end;
	}
	pthread_mutex_lock(&pool->lock);
	// Children run when the grid that launched them has run, in the order of their launches:
	// that is one of the orders that a device may choose.
	struct child first = {.kernel = k, .grid = grid, .block = block, .shared = shared}, *queue = &first;
	while (queue) {
		struct child *c = queue;
		queue = c->next;
		if (fault->kind == PGEMU_OK) {
			struct job job = {.kernel = c->kernel, .grid = c->grid, .block = c->block, .shared = c->shared, .fault = fault};
			job.params = c == &first ? params : c->params;
			job.last = &job.children, job.last_tail = &job.tails;
			pthread_cond_init(&job.done, NULL);
			run_job(pool, &job, until);
			pthread_cond_destroy(&job.done);
			*job.last_tail = queue;
			*job.last = job.tails;
			queue = job.children;
		}
		if (c != &first) free(c);
	}
	pthread_mutex_unlock(&pool->lock);
}

pgemu_pool *pgemu_open(int workers, size_t shared_limit, char **error) {
	pthread_once(&signals_once, take_signals);
	pgemu_pool *pool = calloc(1, sizeof *pool);
	pool->shared_limit = shared_limit;
	pool->workers = calloc((size_t)workers, sizeof *pool->workers);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	for (int i = 0; i < workers; i++) {
		struct worker *w = &pool->workers[i];
		w->pool = pool;
		w->lanes = calloc(max_threads, sizeof *w->lanes);
		w->alternate = malloc(64 << 10);
		void *base;
		w->shared_end = (unsigned char *)pgemu_map(shared_limit, &base, &w->shared_whole) + whole_pages(shared_limit);
		w->shared_base = base;
		if (!w->lanes || !w->alternate || !w->shared_base || pthread_create(&w->thread, NULL, worker_main, w) != 0) {
			*error = message("cannot start a thread: %s", strerror(errno));
			pgemu_close(pool);
			return NULL;
		}
		pool->nworkers++;
	}
	return pool;
}

void pgemu_close(pgemu_pool *pool) {
	pthread_mutex_lock(&pool->lock);
	pool->closing = 1;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->nworkers; i++) {
		struct worker *w = &pool->workers[i];
		pthread_join(w->thread, NULL);
		for (int l = 0; l < max_threads; l++) {
			if (w->lanes[l].fiber.stack) munmap(w->lanes[l].fiber.stack - page(), stack_bytes + page());
			free(w->lanes[l].fiber.ucontext);
		}
		free(w->lanes);
		free(w->alternate);
		pgemu_unmap(w->shared_base, w->shared_whole);
	}
	free(pool->workers);
	free(pool);
}

// ---- modules

static int find_tls(struct dl_phdr_info *info, size_t size, void *data) {
	(void)size;
	uintptr_t *query = data;
	if (info->dlpi_addr != query[0]) return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS) query[1] = info->dlpi_phdr[i].p_memsz;
	return 1;
}

static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loaded {
	struct loaded *next;
	pgemu_module *module;
	uintptr_t base;
} *modules;

pgemu_module *pgemu_load(const char *path, char **error) {
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		*error = message("%s", dlerror());
		return NULL;
	}
	int (*bind)(const pgemu_runtime *) = (int (*)(const pgemu_runtime *))dlsym(handle, "pgemu_bind");
	pgemu_module *m = calloc(1, sizeof *m);
	m->handle = handle;
	m->slot = (pgemu_thread * *(*)(void)) dlsym(handle, "pgemu_slot");
	int (*kernels)(void) = (int (*)(void))dlsym(handle, "pgemu_kernels");
	if (!bind || !m->slot || !kernels || bind(&runtime) != PGEMU_VERSION) {
		*error = message("%s is not a module of this emulator", path);
		free(m);
		dlclose(handle);
		return NULL;
	}
	struct link_map *map;
	uintptr_t query[2] = {0, 0};
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) {
		query[0] = map->l_addr;
		dl_iterate_phdr(find_tls, query);
	}
	m->tls_bytes = query[1];
	m->kernels = kernels();
	struct loaded *l = malloc(sizeof *l);
	l->module = m;
	l->base = query[0];
	pthread_mutex_lock(&modules_lock);
	l->next = modules;
	modules = l;
	pthread_mutex_unlock(&modules_lock);
	return m;
}

static pgemu_module *module_of(const pgemu_kernel *k) {
	Dl_info info;
	pgemu_module *m = NULL;
	if (dladdr(k, &info) == 0) abort();
	pthread_mutex_lock(&modules_lock);
	for (struct loaded *l = modules; l && !m; l = l->next)
		if (l->base == (uintptr_t)info.dli_fbase) m = l->module;
	pthread_mutex_unlock(&modules_lock);
	if (!m) abort();
	return m;
}

pgemu_kernel *pgemu_find(pgemu_module *m, const char *name) {
	char symbol[512];
	snprintf(symbol, sizeof symbol, "pgemu_kernel_%s", name);
	pgemu_kernel *k = dlsym(m->handle, symbol);
	// What is thread_local in a module is shared memory of all its kernels, and a pointer.
	if (k && m->kernels == 1) k->shared = (unsigned)(m->tls_bytes - sizeof(pgemu_thread *));
	return k;
}

const char *pgemu_where(uintptr_t pc, uintptr_t *offset) {
	Dl_info info;
	if (pc == 0 || dladdr((void *)pc, &info) == 0) return NULL;
	*offset = pc - (uintptr_t)info.dli_fbase;
	return info.dli_fname;
}

// ---- memory

void *pgemu_map(size_t bytes, void **base, size_t *whole) {
	size_t usable = whole_pages(bytes);
	*whole = usable + 2 * page();
	char *p = mmap(NULL, *whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*base = NULL;
	if (p == MAP_FAILED) return NULL;
	if (mprotect(p + page(), usable, PROT_READ | PROT_WRITE) != 0) {
		munmap(p, *whole);
		return NULL;
	}
	*base = p;
	return p + page();
}

void pgemu_unmap(void *base, size_t whole) {
	if (base) munmap(base, whole);
}
