//go:build linux && cgo

#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && !defined(PGEMU_UCONTEXT)

// What the System V ABI has callees keep goes onto the stack that is left.
void pgemu_switch(void **save, void *load);
__asm__(
	".text\n"
	".globl pgemu_switch\n"
	".type pgemu_switch,@function\n"
	"pgemu_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size pgemu_switch,.-pgemu_switch\n"
	".section .note.GNU-stack,\"\",@progbits\n"
	".text\n");

void pgemu_fiber_init(pgemu_fiber *f, void (*entry)(void)) {
	uintptr_t top = (uintptr_t)(f->stack + f->size) & ~(uintptr_t)15;
	void **sp = (void **)top;
	*--sp = 0; // where entry would return to; it also has the stack aligned as after a call
	*--sp = (void *)entry;
	for (int i = 0; i < 6; i++) *--sp = 0;
	f->sp = sp;
}

void pgemu_fiber_switch(pgemu_fiber *from, pgemu_fiber *to) { pgemu_switch(&from->sp, to->sp); }

#elif defined(__aarch64__) && !defined(PGEMU_UCONTEXT)

void pgemu_switch(void **save, void *load);
__asm__(
	".text\n"
	".globl pgemu_switch\n"
	".type pgemu_switch,%function\n"
	"pgemu_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size pgemu_switch,.-pgemu_switch\n"
	".section .note.GNU-stack,\"\",%progbits\n"
	".text\n");

void pgemu_fiber_init(pgemu_fiber *f, void (*entry)(void)) {
	uintptr_t top = (uintptr_t)(f->stack + f->size) & ~(uintptr_t)15;
	void **sp = (void **)(top - 160);
	memset(sp, 0, 160);
	sp[11] = (void *)entry; // x30
	f->sp = sp;
}

void pgemu_fiber_switch(pgemu_fiber *from, pgemu_fiber *to) { pgemu_switch(&from->sp, to->sp); }

#else

#include <ucontext.h>

static ucontext_t *context(pgemu_fiber *f) {
	if (!f->ucontext) f->ucontext = calloc(1, sizeof(ucontext_t));
	return f->ucontext;
}

void pgemu_fiber_init(pgemu_fiber *f, void (*entry)(void)) {
	ucontext_t *u = context(f);
	getcontext(u);
	u->uc_stack.ss_sp = f->stack;
	u->uc_stack.ss_size = f->size;
	u->uc_link = 0;
	makecontext(u, entry, 0);
}

void pgemu_fiber_switch(pgemu_fiber *from, pgemu_fiber *to) { swapcontext(context(from), context(to)); }

#endif
