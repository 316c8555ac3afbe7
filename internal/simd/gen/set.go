package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// setKernels keep the rows of a FOR block whose values are members of a set: a bit a
// value. Values become positions in the set by an addition modulo 2^32; those not
// below size are no members.
func setKernels() {
	words, shifts := dwordTable32()

	TEXT("filterSetAVX512", NOSPLIT, "func(mask *[2]uint64, src *uint32, widths uint32, add uint32, size uint32, set *uint64)")
	Pragma("noescape")
	Doc("filterSetAVX512 reads up to 64 bytes past the block.")
	{
		mask, src := Load(Param("mask"), GP64()), Load(Param("src"), GP64())
		widths := Load(Param("widths"), GP32())
		add, size := ZMM(), ZMM()
		VPBROADCASTD(Load(Param("add"), GP32()), add)
		VPBROADCASTD(Load(Param("size"), GP32()), size)
		set := Load(Param("set"), GP64())
		one := dwords(1)
		u := newUnpacker16(words, shifts)
		maskedMinis(widths, src, mask, func(w, at, rows GPVirtual) {
			u.width(w)
			var k [2]OpmaskVirtual
			high := GP32()
			MOVL(rows, high)
			SHRL(Imm(16), high)
			for g, left := range []Register{rows, high} {
				v, word, hit := u.next(at), ZMM(), ZMM()
				live, gathered := K(), K()
				KMOVW(left, live)
				VPADDD(add, v, v)
				VPCMPUD(Imm(1), size, v, live, live)
				VPSRLD(Imm(5), v, word)
				KMOVW(live, gathered)
				VPXORD(hit, hit, hit)
				VPGATHERDD(Mem{Base: set, Index: word, Scale: 4}, gathered, hit)
				VPRORVD(v, hit, hit)
				k[g] = K()
				VPTESTMD(one, hit, live, k[g])
				if g == 0 {
					LEAQ(Mem{Base: at, Index: w, Scale: 2}, at)
				}
			}
			KUNPCKWD(k[0], k[1], k[0])
			KMOVD(k[0], rows)
		})
		VZEROUPPER()
		RET()
	}

	TEXT("filterSmallSetAVX512", NOSPLIT, "func(mask *[2]uint64, src *uint32, widths uint32, add uint32, size uint32, set *uint64)")
	Pragma("noescape")
	Doc("filterSmallSetAVX512 is filterSetAVX512 for sets of up to 1024 bits, which it holds in registers: there are 16 words to read.")
	{
		mask, src := Load(Param("mask"), GP64()), Load(Param("src"), GP64())
		widths := Load(Param("widths"), GP32())
		add, size := ZMM(), ZMM()
		VPBROADCASTD(Load(Param("add"), GP32()), add)
		VPBROADCASTD(Load(Param("size"), GP32()), size)
		set := Load(Param("set"), GP64())
		low, high := ZMM(), ZMM()
		VMOVDQU32(Mem{Base: set}, low)
		VMOVDQU32(Mem{Base: set, Disp: 64}, high)
		one := dwords(1)
		u := newUnpacker16(words, shifts)
		maskedMinis(widths, src, mask, func(w, at, rows GPVirtual) {
			u.width(w)
			var k [2]OpmaskVirtual
			for g := range 2 {
				v, word := u.next(at), ZMM()
				k[g] = K()
				VPADDD(add, v, v)
				VPCMPUD(Imm(1), size, v, k[g])
				VPSRLD(Imm(5), v, word)
				VPERMI2D(high, low, word)
				VPRORVD(v, word, word)
				VPTESTMD(one, word, k[g], k[g])
				if g == 0 {
					LEAQ(Mem{Base: at, Index: w, Scale: 2}, at)
				}
			}
			in := GP32()
			KUNPCKWD(k[0], k[1], k[0])
			KMOVD(k[0], in)
			ANDL(in, rows)
		})
		VZEROUPPER()
		RET()
	}

	TEXT("filterSetAVX2", NOSPLIT, "func(mask *[2]uint64, src *uint32, widths uint32, add uint32, size uint32, set *uint64)")
	Pragma("noescape")
	Doc("filterSetAVX2 reads up to 32 bytes past the block; size is not 0.")
	{
		mask, src := Load(Param("mask"), GP64()), Load(Param("src"), GP64())
		widths := Load(Param("widths"), GP32())
		add, last := YMM(), YMM()
		spread(Load(Param("add"), GP32()), add)
		size := Load(Param("size"), GP32())
		DECL(size)
		spread(size, last)
		set := Load(Param("set"), GP64())
		low5 := dwordsY(31)
		u := newUnpacker8(words, shifts)
		maskedMinis(widths, src, mask, func(w, at, rows GPVirtual) {
			u.width(w)
			in := GP32()
			XORL(in, in)
			for g := range 4 {
				v, word, live, hit, bits := u.next(at), YMM(), YMM(), YMM(), GP32()
				VPADDD(add, v, v)
				VPMINUD(last, v, live)
				VPCMPEQD(live, v, live)
				VPSRLD(Imm(5), v, word)
				VPXOR(hit, hit, hit)
				VPGATHERDD(live, Mem{Base: set, Index: word, Scale: 4}, hit)
				// The bit goes to the top: 31 - v%32 = ^v % 32.
				VPANDN(low5, v, v)
				VPSLLVD(v, hit, hit)
				VMOVMSKPS(hit, bits)
				if g > 0 {
					SHLL(Imm(uint64(8*g)), bits)
				}
				ORL(bits, in)
				ADDQ(w, at)
			}
			ANDL(in, rows)
		})
		VZEROUPPER()
		RET()
	}
}
