// Package compress holds the column codecs: encode, decode, gather, and range
// filters on the encoded form. A column is the values of one column of one
// segment, in vector's 64-bit representation; nulls are the store's business.
//
// # Format
//
// A column is a run of 32-bit little-endian words, the same on disk, in host
// memory and on a device; its first word is 32-byte aligned (8 are enough for
// Parse). It has no pointers, and begins with a header of eight words:
//
//	word  0       1      2      3         4          5        6 7
//	    +-------+------+------+---------+----------+--------+-------+
//	    | codec | rows | size | block   | miniblock| table  | value |
//	    |       |      |      | size    | count    | length |       |
//	    +-------+------+------+---------+----------+--------+-------+
//
// Word 0 is the Codec in its low byte, the format's version (1) in the next and
// 0x5047 above. Size is that of the whole column in words. What a codec does not
// use is 0.
//
// FOR is GPU-FOR of "Tile-based Lightweight Integer Compression in GPU" (Shanbhag,
// Yogatama, Yu, Madden; SIGMOD 2022), section 4.1, word for word:
//
//	header: block size 128, miniblock count 4, rows = total count
//	+---------+---------+-- --+---------+
//	| start 0 | start 1 | ... | start n |   block starts: words into data; the last
//	+---------+---------+-- --+---------+   is where data ends
//	+---------+---------+-- --+-----------+--------------+
//	| block 0 | block 1 | ... | block n-1 | 16 zero words|   data, and room to load
//	+---------+---------+-- --+-----------+--------------+   whole vectors past it
//
//	block: 128 values
//	+-----------+-------------+----------+----------+----------+----------+
//	| reference | w3 w2 w1 w0 | w0 words | w1 words | w2 words | w3 words |
//	+-----------+-------------+----------+----------+----------+----------+
//	  smallest    four 8-bit    miniblocks of 32 values, value-reference in
//	  value       bit widths    wi bits each, one after the other, LSB first
//
// The reference is an int32, widths are 0 to 32. The last block is padded with
// its reference. FOR64 differs in that the reference is an int64 in two words, low
// word first, and widths are 0 to 64.
//
// Plain has the values after the header, two words each. Constant has its value in
// words 6 and 7 and nothing after the header.
//
// Lookup is for few distinct values that lie far apart, such as dates written as
// yyyymmdd. After the header come the distinct values, ascending and at most 4096,
// padded with zeros to a multiple of eight words, and then a whole FOR column, with
// its own header, of codes: positions in that table.
//
//	header: word 3 = where the codes begin, word 4 = words per entry,
//	        word 5 = entries, words 6 and 7 = base, the smallest value
//	entries of one word: value - base; of two words: the value
//
// # Speed
//
// Every width has its own straight-line function, written by the generator in
// internal/gen: unpacking takes about 0.35 ns a value on one core of an EPYC of
// 2024, filtering without storing the values 0.4 (up to seven bits) to 0.5. A filter
// decides whole blocks by reference and widths, and does not look at miniblocks whose
// rows are all out already. decodeReference is the paper's Algorithm 1, value by
// value; all else is tested against it.
package compress
