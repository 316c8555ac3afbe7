// Package emulator is a device.Executor without a device: it compiles kernels as C++20
// with the machine's C++ compiler, loads them into this process, and runs their blocks on a
// few OS threads.
//
// # Threads
//
// Each thread of a block is a fiber with a stack of its own (fiber.c), so that lanes of a
// warp can go different ways. A fiber runs until it waits: at a barrier, at a collective of
// its warp, or in a loop for what another thread writes. Collectives give every lane its
// result when the last lane that the mask names has come; where no fiber can go on and
// some have not returned, that is a deadlock, and the launch's fault names the kernel, the
// block, a thread, the line, and the lanes that did not come. Half of the blocks run
// their threads in ascending order, the others in descending order: a barrier that is
// missing shows. Barriers are strict: all threads of the block must come, returned ones too.
//
// # Memory
//
// Every allocation is a mapping of its own between pages that cannot be touched, and ends
// at the one behind it (but for alignment to 256 bytes); dynamic shared memory likewise.
// Shared memory with a name is thread_local, and an index out of an array's bounds traps,
// as do a pointer that is not aligned to what it is used for and a shift by the width or
// more. New memory has a pattern in it, and shared memory has one when a block begins.
// What a kernel must not do ends in a signal, which the runtime takes (runtime.c; others go
// on to Go's handler): the fault's kind is Lost, and as after a sticky error of CUDA
// nothing works any more on this Emulator.
//
// # Grids
//
// Blocks start in the order of their numbers, and a block that has started goes on, so that one
// may wait for those before it. Child grids run when their parent's blocks have, before it
// counts as done. Atomics are the processor's.
//
// Of a module with one kernel, named and dynamic shared memory together are bounded as on a
// device; of one with several, dynamic shared memory alone is.
//
// What it does not do: time a kernel as a device would, run all blocks of a grid at
// once, or find races between blocks.
package emulator
