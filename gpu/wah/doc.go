// Package wah answers range queries over WAH bins (package bitmapidx) on a device: the
// union of bins as chunks of 63 rows, as a bitmap of 64 rows a word, or as a count.
//
// The four strategies of "GPU Acceleration of Range Queries over Large Data Sets" (Nelson,
// Sorenson, Myre, Sawin, Chiu; BDCAT 2019 and the journal version of 2020) decompress all
// bins into device memory and reduce the columns there; see kernels/wah.cuh (Algorithms 1
// and 2) and kernels/wah_reduce.cuh (3 to 6). Fused is ours: one kernel reads compressed
// atoms and writes the union; see kernels/wah_fused.cuh.
//
// # In device memory
//
// Upload writes two arrays of 64-bit words, which stay until Free:
//
//	atoms    | of bin 0 | of bin 1 | ... | one word that may be read and is not used |
//
//	places   | tile 0: bin 0, bin 1, ... | tile 1: bin 0, bin 1, ... | ...
//
// A place says where the atoms of a bin for a tile of the result are, and what part of
// the first and of the last one the tile has:
//
//	 63                     30 29       20 19        10 9          0
//	+-------------------------+-----------+------------+------------+
//	| number of the first atom | atoms - 1 | head - 1   | tail - 1   |
//	+-------------------------+-----------+------------+------------+
//
// Head and tail are chunks; those of all atoms sum up to the tile's chunks, also where the
// bin ends before the tile does: its last atom is taken to go on. A tile that lies in one
// fill has atoms - 1 = 0, and 1 for head - 1 if the fill is of ones: such atoms are not
// read. A last tile of one chunk which is a literal has the word behind that as a second
// atom, all of whose chunks are past the end.
//
// The directory of a stored bitmap (bitmapidx) says as much, but for every 32nd atom: a
// block would find its place in each bin by a binary search, ten dependent reads or so.
// Places lie side by side, and one read is enough. They are 8 bytes for bin and tile: of
// a query of m bins, m/tile of the bytes of the result.
//
// # What it costs
//
// For m bins of n chunks, compressed to a atoms altogether, in words of 8 bytes of device
// memory, s being the scans' share (values of 32 bits are read twice and written once):
//
//	              reads                                writes                launches
//	Algorithm 2   2a + 1.5a (scan, ends) + 2.5mn       1.5a + 2mn            9 and a fill
//	COA           (2m-2) n                             (m-1) n               log2 m
//	ROA           mn, not coalesced                    n                     1
//	hybrid        (m + m/16) n                         (m/16 + 1) n          log16 m
//	ideal hybrid  mn                                   n                     1
//	Fused         a + mn/tile                          n (rows: 63/64 n;     1
//	                                                   count: n/2tile)
//
// So at 64 bins and 4.2 TB/s, the four need 8 * 64 * 5.5 n bytes and more: 670 ps a chunk;
// Fused, where a is a tenth of mn, 8 * 7.5 n: 14 ps, were it bound by memory. The floor of
// a query, as Bench prints it, is (a + n) words.
//
// A multiprocessor gets 32 atoms in 16 cycles at that speed (4.2 TB/s, 132 of them at 1.98
// GHz), that is 64 instructions of a warp at four a cycle. Fused needs for 64 atoms (PTX,
// where there is no fill of ones): 2 loads, 2 x 25 to know which column and whether first
// or last, 16 for heads, 25 for the prefix sum (one for both halves), 2 x 11 to place: about
// 115, or 58 for 32, and 4 accesses to shared memory of 32 banks for the bits. So it is at
// the edge of both limits where most chunks are literals, and memory's where bins are
// compressible; a block's fixed part, about 25 instructions for each warp and 3 barriers
// and two dependent reads, is hidden by 10 to 16 blocks on a multiprocessor.
//
// # What is skipped
//
// A fill of zeros costs what its atom costs; over a whole tile, its place. A fill of ones
// over a whole tile ends that tile: the other bins' atoms are not read.
package wah
