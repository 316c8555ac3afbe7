// Package wah answers range queries over WAH bins (package wahbits) on a device: the
// union of bins as chunks of 63 rows, as a bitmap of 64 rows a word, or as a count.
//
// The four strategies of "GPU Acceleration of Range Queries over Large Data Sets" (Nelson,
// Sorenson, Myre, Sawin, Chiu; BDCAT 2019 and the journal version of 2020) decompress all
// bins into device memory and reduce the columns there; see kernels/wah.cuh (Algorithms 1
// and 2) and kernels/wah_reduce.cuh (3 to 6). Fused and Cut are ours: one kernel reads compressed
// atoms and writes the union; see kernels/wah_fused.cuh and, for Cut, kernels/wah_cut.cuh and, where
// a tile has few atoms, kernels/wah_warps.cuh.
//
// # In device memory
//
// Upload writes two arrays of 64-bit words, and two more for Cut, which stay until Free:
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
// The directory of a stored bitmap (wahbits) says as much, but for every 32nd atom: a
// block would find its place in each bin by a binary search, ten dependent reads or so.
// Places lie side by side, and one read is enough. They are 8 bytes for bin and tile: of
// a query of m bins, m/tile of the bytes of the result.
//
// Cut has the same atoms once more, cut at the borders of tiles:
//
//	atoms    | tile 0: of bin 0, of bin 1, ... | tile 1: of bin 0, of bin 1, ... | ...
//
//	places   | tile 0: bin 0, bin 1, ... | tile 1: bin 0, bin 1, ... | ... | end |
//
// A place is the number of a bin's first atom in a tile; bit 63 is set where the bin is ones
// all over the tile. Fills over whole tiles have no atoms; of others, each that crosses a
// border is one atom more: of 64 bins of KDD, 3 % more at 1,024 chunks a tile, 12 % at 64.
// What a query of neighbouring bins reads for a tile is one range, so atoms need no search for
// their bin, none is the first or last of anything, and warps need no common table, and no
// barrier, before they read. Behind the places are masks: a bit for each bin and tile, set where
// places have bit 63. Where a warp has a tile of its own, it needs them and two places, however many
// bins there are.
//
// # What it costs
//
// For m bins of n chunks, compressed to a atoms altogether, in words of 8 bytes of device
// memory (the scans' values have 32 bits, and are read twice and written once):
//
//	              reads                                writes                launches
//	Algorithm 2   3.5a + 1.5mn                         1.5a + 2mn            9 and a fill
//	COA           (2m-2) n                             (m-1) n               log2 m
//	ROA           mn, not coalesced                    n                     1
//	hybrid        (m + m/16) n                         (m/16 + 1) n          log16 m
//	ideal hybrid  mn                                   n                     1
//	Fused, Cut    a + mn/tile                          n (rows: 63/64 n;     1
//	                                                   count: n/(2 tile))
//
// So at 64 bins and 4.2 TB/s, the four need 8 * 64 * 4.5 n bytes and more: 550 ps a chunk;
// Fused, where a is a tenth of mn, 8 * 7.5 n: 14 ps, were it bound by memory. The floor of
// a query, as Bench prints it, is (a + n) words.
//
// At that speed a multiprocessor (of 132 at 1.98 GHz) gets 32 atoms in 16 cycles: time for
// 64 instructions of a warp at four a cycle. Instructions of Fused for 64 atoms (sm_90, as
// compiled; atoms beside fills of ones):
//
//	60    to put them: their lengths 15, places 10, four atomics on shared memory and their
//	      conditions 20, votes and the loop
//	35    the prefix sum, for both halves at once; left out where all have one chunk
//	20    to load them in the midst of a bin
//	105   or where bins begin or end among them: which bin, first or last of the tile
//
// So 32 atoms cost 40 to 60 where bins have hundreds of atoms a tile (large tiles are good
// for that), and 100 where they have tens: the result is most of the bytes then. A fill of
// ones costs 20 and its chunks by 32s; of many among 32 atoms, each is two atomics, and the
// tile one prefix sum more. A block's fixed part is about 150 instructions of each warp, four
// barriers and two dependent reads, which 10 blocks of 128 threads (47 registers, 8 KB at
// 512 chunks a tile) hide from each other. Each warp has two loads of 512 bytes on their way:
// 40 KB a multiprocessor, where 13 KB are in flight at full speed.
//
// # What was measured
//
// On an H200, an empty kernel of a short set's grid takes 3.0 µs between two events, and one that
// reads two words a block, one after the other, 4.2: a query of 5 million rows, whose bytes are
// 0.2 to 0.5 µs, takes 6 to 10, and its factor over the floor tells of no kernel. Repeated until
// a query of 64 bins reads 100 MB, Cut with a block for each tile takes 2.0 times the floor for KDD,
// 2.4 for BPA, 1.4 for linkage and for Zipf as it is, and 1.8 for rows that are clustered; Fused 2.2,
// 2.5, 1.6, 1.5 and 1.8. An empty kernel of 22,300 blocks takes 16 µs: large sets pay for their
// blocks. With a warp for each tile of 512 chunks, and a grid that stays, Cut takes 1.96, 1.79 and
// 1.39 times the floor for KDD, BPA and clustered rows, and at 8 bins 1.62, 1.63 and 1.45; a block for
// each tile of 1,024 takes 2.49, 2.10 and 1.26 there. Dense tiles are not for warps: one needs 800
// cycles for 64 atoms if nothing else is to do, and for Zipf's 64 bins 3.5 times the floor at 512
// chunks a tile, where four warps each need 1.4. A count reads as little as an eighth of what a query
// writes, and takes 0.9 times as long: it is bound by what its atoms cost, not by their bytes.
//
// # What is skipped
//
// A fill of zeros costs what its atom costs, and over a whole tile, its place. A fill of ones
// over a whole tile ends that tile: the other bins' atoms are not read.
package wah
