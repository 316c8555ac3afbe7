package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Widths of a miniblock's values. Tables have an entry of 64 bytes for each.
const widthsMax = 32

// dwordTable32 writes, for each width and each of 16 values, the word that the
// value begins in, and at which bit: the first 8 serve AVX2.
func dwordTable32() (words, shifts Mem) {
	words = GLOBL("words16", RODATA|NOPTR)
	for w := range widthsMax + 1 {
		for i := range 16 {
			DATA(64*w+4*i, U32(i*w/32))
		}
	}
	shifts = GLOBL("shifts16", RODATA|NOPTR)
	for w := range widthsMax + 1 {
		for i := range 16 {
			DATA(64*w+4*i, U32(i*w%32))
		}
	}
	return words, shifts
}

// qwordTable writes the same for 8 values that become 64 bits wide: the two words
// that each lies in. The first half is of values 0 to 3, the second of 4 to 7.
func qwordTable() (pairs, shifts Mem) {
	pairs = GLOBL("pairs8", RODATA|NOPTR)
	for w := range widthsMax + 1 {
		for i := range 8 {
			DATA(64*w+8*i, U32(i*w/32))
			DATA(64*w+8*i+4, U32(i*w/32+1))
		}
	}
	shifts = GLOBL("pairShifts8", RODATA|NOPTR)
	for w := range widthsMax + 1 {
		for i := range 8 {
			DATA(64*w+8*i, U64(i*w%32))
		}
	}
	return pairs, shifts
}

func address(table Mem) Register {
	r := GP64()
	LEAQ(table, r)
	return r
}

// lowBits sets out to n ones, n < 64.
func lowBits(n, out Register) {
	XORL(out.(GPVirtual).As32(), out.(GPVirtual).As32())
	BTSQ(n, out)
	DECQ(out)
}

// constant returns a vector of 64 bytes with x in each dword.
func dwords(x uint32) VecVirtual {
	r, z := GP32(), ZMM()
	MOVL(U32(x), r)
	VPBROADCASTD(r, z)
	return z
}

func qwords(x uint64) VecVirtual {
	r, z := GP64(), ZMM()
	MOVQ(U64(x), r)
	VPBROADCASTQ(r, z)
	return z
}
