// Package simd has the inner loops of compress and olap as assembly for AVX2 and
// AVX-512, beside plain Go versions that are always compiled and that every machine
// can be told to use.
//
// Which one runs is decided once, by what the processor has and by PGACCEL_SIMD:
// off (plain Go), avx2, or avx512 (the default where it can be had: F, BW, DQ, VL,
// VBMI2 and BMI2 are needed). Use changes it for tests, which compare all levels in one
// program. A kernel without a version for AVX2 is one that plain Go does as well there.
//
// The assembly is written by internal/simd/gen, a module of its own that needs avo;
// scripts/simd.sh runs it, and with --check fails where the committed files differ.
//
// # Shapes
//
// A FOR block is what package compress draws: 128 values in four miniblocks of 32, an
// offset from the block's reference in w bits each, w from byte m of widths for
// miniblock m, least significant bit first. Kernels that unpack are generic over the
// width: tables have, for each width and each of 8 or 16 values, the words that the
// value lies in (a permutation) and how far it must be shifted.
//
// A mask has a bit a row, row i in bit i&63 of word i>>6; filters clear bits and set
// none. A selection is the ascending positions of rows in a tile, as uint16. A set has
// a bit for each number below its size.
//
// # Memory
//
// Kernels read whole vectors: up to 64 bytes past a block, which the tail of a column
// allows. Wrappers check that the words are there and else run the plain version, so
// nothing is read or written outside a slice, with these exceptions, which the comments
// of the functions repeat: positions, keys and entries are not checked against the slices
// they index. They come from the caller's own selections and bounds.
package simd
