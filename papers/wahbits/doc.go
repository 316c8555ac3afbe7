// Package wahbits holds 64-bit WAH bitmaps and their algebra on the compressed form, on a
// CPU. The indexes of the store (package bitmapidx) have such atoms, but no such algebra:
// their bitmaps are of one segment, and an answer is its rows as plain bits.
//
// The format is that of "GPU Acceleration of Range Queries over Large Data Sets"
// (Nelson, Sorenson, Myre, Sawin, Chiu; BDCAT 2019, and its journal version of
// 2020), section 2.1, word for word; the strategies for range queries have its
// names (see [Strategy]).
//
// # Atoms
//
// A bit vector of rows is cut into chunks of 63 bits; the row 63*c+i is bit i of
// chunk c, least significant first. Chunks are written as atoms of 64 bits:
//
//	 63  62                                                    0
//	+---+-------------------------------------------------------+
//	| 0 | lit: 63 bits, one chunk as it is                       |  literal
//	+---+---+---------------------------------------------------+
//	| 1 | v | runLen: chunks, all of whose bits are v            |  fill
//	+---+---+---------------------------------------------------+
//
// The last chunk is padded with zeros. There is one way only to write a bit
// vector: a literal has zeros and ones (the last chunk, where it is padded, may
// have ones in all of its rows), neighbouring fills differ in v, and no fill is
// empty. So equal bit vectors have equal atoms.
//
// # Bitmap
//
// A stored bitmap is a block of 64-bit little-endian words, the same in host
// memory and on a device, 8-byte aligned, without pointers:
//
//	word  0       1            2                  2+n
//	    +------+-----------+-- --------------- --+-- ------------ --+
//	    | rows | n = atoms | atom 0 ... atom n-1 |    directory     |
//	    +------+-----------+-- --------------- --+-- ------------ --+
//
// The directory has, for every 32nd atom, the number of its first chunk in 32
// bits, two in a word, the first in the low half; a half that is not used is 0.
// WAH alone can only be read from its beginning; with the directory a tile of
// rows is found by a binary search and 31 atoms at most, and a block of device
// threads that owns a tile of the output needs no prefix sum over the atoms.
// The result of an operation has no directory until it is stored.
//
// # Speed
//
// Two operands are combined run by run where fills are long, and through windows
// of words in the first-level cache where literals and fills alternate so often
// that each atom would cost a mispredicted branch; see logic.go. A union of many
// bins is one pass through such windows, see union.go.
//
// WAH wins where rows are clustered. Of randomly scattered rows it keeps a word
// for each, where Roaring keeps two bytes, and the packed column is often smaller
// than either.
package wahbits
