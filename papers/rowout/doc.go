// Package rowout writes which rows answer each of many range queries, on a device, without
// atomics: after "A wait-free output data structure for GPU-based streaming query
// processing" (Silvestri, Lettich, Orlando, Jensen), and beside atomic appends.
//
// Points lie in cells of a grid; a query that touches a cell is an entry of it. All entries
// of a cell are evaluated for all its points. The methods, by name:
//
//	bitmap       the paper's: filter to an interlaced bitmap, linearise, decode by warps
//	ballot       a warp evaluates a query for 32 points: a ballot is a word of the linear
//	             bitmap, so that nothing is to be turned; decode as above
//	recount      count by ballots, then evaluate again and write ids: no bitmap
//	fused        one pass: a block keeps its words in shared memory, learns from the blocks
//	             before it where its results begin, and writes ids
//	atomic row   each result is appended to a list of pairs with one atomic
//	atomic warp  a warp's results for a point are appended with one
//
// The first four give, for each entry, the ids of its points in the order of the cell; the
// others pairs of query and id in any order.
//
// # The bitmap
//
// Of a cell with n points and m entries, lines = ceil(n/32), and a stride of m rounded up to
// 32. Bit i of the word at line l says whether point 32*l+i is a result:
//
//	interlaced        entry 0   entry 1       entry m-1
//	                +---------+---------+-- --+---------+---------+
//	         line 0 | points 0 .. 31    | ... |         | padding |  as it is written:
//	         line 1 | points 32 .. 63   | ... |         |         |  neighbouring threads,
//	         ...    |         |         |     |         |         |  neighbouring words
//	                +---------+---------+-- --+---------+---------+
//
//	linear            line 0    line 1        lines-1
//	                +---------+---------+-- --+---------+
//	        entry 0 | points 0 .. 31    | ... |         |           as it is decoded
//	        entry 1 |         |         | ... |         |
//	        ...     |         |         |     |         |
//	                +---------+---------+-- --+---------+
//
// Linearising counts the results of each entry; sums of the counts are where the ids of an
// entry begin.
package rowout
