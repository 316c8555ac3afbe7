// Package device is what a process without CUDA says to one that has it: which devices
// there are, what to keep in their memory, which kernels to compile, what to run. It
// holds words only: gpu says them, gpu/worker (CUDA) and gpu/emulator (none) do them.
//
// All policy (residency, eviction, admission, fallback) is on this side of the words,
// in package gpu. An Executor does as it is told, and names the call that failed.
//
// # Memory
//
// Who asks owns: pointers that Alloc returned are carved up by the caller, who knows
// which of them a running batch reads. Column memory is one memory file (memfd) of the
// caller's, handed over once with Share; pieces of it are copied by offset, at the speed
// of pinned memory.
//
// # Kernels
//
// Sources are CUDA C++ (package kernels says which part of it) that is compiled by NVRTC
// for a device, or by a C++20 compiler for the emulator. Every kernel has one parameter, a
// structure by value: Params packs it.
//
// # Batches
//
// A Batch is a list of commands, executed in order on one stream of one device. Batches
// of different streams run side by side. A batch may have commands for copy streams, which run
// beside its kernels, with events that one records and another awaits: so that what streams
// through buffers pauses for nobody on the host. Run returns when the last command is done.
package device
