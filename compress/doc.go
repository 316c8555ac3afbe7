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
// # Deltas
//
// DFOR is GPU-DFOR of the same paper, section 5.1: for sorted and nearly sorted values.
// A tile is D = 4 blocks. Delta j of a tile is value j+1 less value j; the last is not
// read. Deltas are packed as FOR blocks, each tile's after its first value:
//
//	header: block size 128, miniblock count 4, word 5 = D, rows = total count
//	+---------+-- --+---------+ +-------+-------+-- --+
//	| start 0 | ... | start n | | below | above | ... |  block starts, as FOR's: words
//	+---------+-- --+---------+ +-------+-------+-- --+  into data; then two for each tile
//	+-------+---------+---------+---------+---------+-------+---------+--   --+----------+
//	| first | block 0 | block 1 | block 2 | block 3 | first | block 4 |  ...  | 16 zeros |
//	+-------+---------+---------+---------+---------+-------+---------+--   --+----------+
//
// Below is first less the tile's smallest value, above its largest less first: not the
// paper's, and what lets a filter decide a tile without its deltas. First values,
// references, below and above have one word, in DFOR64 two. The paper pads the deltas
// with 0; here the padding is whatever costs no bit.
//
// # Runs
//
// RFOR is GPU-RFOR, section 6: runs of equal values. Runs end with blocks of 512 rows,
// whose runs' values and lengths are packed apart:
//
//	header: block size 512, miniblock count 16
//	+-----------------+------------------+------------------+-------------------+---------------+
//	| starts of value | starts of length | blocks of values | blocks of lengths | 64 zero words |
//	| blocks, n+1     | blocks, n+1      |                  |                   |               |
//	+-----------------+------------------+------------------+-------------------+---------------+
//
//	block: of values as of lengths; starts count words from the first value block on
//	+-------+-----------+-------------+-- --+----------+----------+-- --+
//	| count | reference | w3 w2 w1 w0 | ... | w0 words | w1 words | ... |
//	+-------+-----------+-------------+-- --+----------+----------+-- --+
//	  runs    smallest    a word for each    miniblocks of 32 entries; the
//	          entry       128 runs           last ends with its last entry
//
// In RFOR64 the references of values have two words; lengths are as in RFOR.
//
// # Floats
//
// ALP (Afroozeh, Kuffo, Boncz; SIGMOD 2024) is for the bits of float64 values that are
// decimals of few digits: integers, which stand for integer * 10^f * 10^-e, computed in
// this order in float64, and exceptions, which would not come back bit for bit.
//
//	header: word 3 = where the integers begin, word 4 = 1024, word 5 = exceptions
//	+------------------------+-- --+-----+  for each vector of 1024 values its first
//	| first | 0 .. 0 | f | e | ... | end |  exception, and f and e, 8 bits each; then
//	+------------------------+-- --+-----+  the number of exceptions, and 0
//	+-----------------+----------+---------+----------------------------+
//	| 16-bit rows in  | padding, | values, | padding, integers: a whole |
//	| their vectors   | 8 bytes  | 64 bits | FOR or FOR64 column        |
//	+-----------------+----------+---------+----------------------------+
//
// # Strings
//
// Symbols is FSST (Boncz, Neumann, Leis: "FSST: Fast Random Access String Compression",
// VLDB 2020), for the strings of dictionaries, each of them by itself: a table of up to 255
// symbols of one to eight bytes, made for a sample, and strings as codes of one byte. Code
// 255 escapes the byte that follows it. Unlike the paper's a table may have two symbols whose
// first three bytes are the same: they are looked for by their first two, the longest first.
//
//	+-------------+-----------------------+-- --+----------------------+-- --+
//	| n, one byte | size of symbol 0, one | ... | bytes of symbol 0    | ... |
//	+-------------+-----------------------+-- --+----------------------+-- --+
//
// The search takes the longest symbol at each place, so that equal strings have equal codes;
// two strings that begin alike have codes that begin alike, up to about where they differ.
// Pattern is an automaton that matches LIKE over codes: nothing is decoded.
//
// # Speed
//
// Every width has its own straight-line function, written by the generator in
// internal/gen: unpacking takes about 0.35 ns a value on one core of an EPYC of
// 2024, filtering without storing the values 0.4 (up to seven bits) to 0.5; where the
// processor has AVX2 or AVX-512, internal/simd is faster. A filter decides whole blocks
// by reference and widths, tiles by their zones, and runs once each; it does not look
// at miniblocks whose rows are all out already. decodeReference is the paper's
// Algorithm 1, value by value, and the like for other formats; all else is tested
// against it. BenchmarkTile* compare the formats on the columns that they are for;
// choose.go says what the chooser makes of it.
package compress
