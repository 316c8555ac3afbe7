// Package tile decodes whole columns on a device, for itself: compressed in, plain 32-bit
// values out, or their sum. It is the comparison of "Tile-based Lightweight Integer
// Compression in GPU" (Shanbhag, Yogatama, Yu, Madden; SIGMOD 2022) with what pgaccel does;
// queries decode in their own kernels (package program).
//
// The decoders, by the names that decoders has:
//
//	for base        Algorithm 1: a thread a value, all from global memory
//	for shared      optimisation 1: the block in shared memory
//	for tiles D     optimisation 2: D blocks a thread block
//	for offsets D   optimisation 3: miniblock offsets computed once
//	for warp D      ours: a warp decodes D blocks, without shared memory and barriers
//	dfor shared     section 5: a tile of deltas in shared memory, and their sums
//	dfor warp       ours: a warp a tile
//	rfor shared     section 6: two sums, a scatter and a gather in shared memory
//	rfor warp       ours: a warp a block, where runs begin as a bitmap
//	lanes words     device lanes (package program): a lane a lane, loads of 4 bytes
//	lanes quads     loads and stores of 16 bytes, several vectors a warp
//
// FOR, DFOR and RFOR are package compress' columns, word for word. A column here is cut
// into segments, each a compress column or, of lanes, vectors of one width and reference.
package tile
