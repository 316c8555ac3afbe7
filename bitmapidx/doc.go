// Package bitmapidx makes indexes of one column of one segment: which rows hold which
// value or range of values.
//
// # Atoms
//
// The rows of a bin are 64-bit WAH, as in "GPU Acceleration of Range Queries over Large
// Data Sets" (Nelson, Sorenson, Myre, Sawin, Chiu; BDCAT 2019), section 2.1. A bit vector
// of rows is cut into chunks of 63 bits; the row 63*c+i is bit i of chunk c, least
// significant first. Chunks are written as atoms of 64 bits:
//
//	 63  62                                                    0
//	+---+-------------------------------------------------------+
//	| 0 | lit: 63 bits, one chunk as it is                       |  literal
//	+---+---+---------------------------------------------------+
//	| 1 | v | runLen: chunks, all of whose bits are v            |  fill
//	+---+---+---------------------------------------------------+
//
// The last chunk is padded with zeros. Neighbouring fills differ in v, and no fill is
// empty.
//
// # Index
//
// An index partitions the rows of a column: each row is in one bin or is null. A
// bin holds the rows with values in [lo, hi], where both are values of the column:
// lo = hi is an equality bin, the others are range bins. Bins are in ascending
// order and do not overlap. An index of n bins is words of 64 bits, which a device has as they
// are; no file has them:
//
//	0      1        1+n      1+2n               1+3n   2+3n
//	+------+--------+--------+------------------+------+----------------------------------+
//	| n    | lo x n | hi x n | end x n          | end  | atoms of bin 0, 1, ... n-1, null |
//	+------+--------+--------+------------------+------+----------------------------------+
//	                           of bins' atoms,    of those of null rows: all atoms
//	                           from the first on
//
// An answer is the rows of a segment as plain bits: 8 KiB, to which the atoms of each bin
// are added (a device does so by itself: kernels/bitmaps.cuh). What joins compressed bitmaps to
// compressed ones is in papers/wahbits.
//
// WAH wins where rows are clustered. Of randomly scattered rows it keeps a word for each,
// and the packed column is often smaller: [Profile.Worth] says whether an index pays,
// [Index.Cost] whether a query should use it.
package bitmapidx
