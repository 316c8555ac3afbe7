package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// maskedMinis repeats body for the miniblocks of a block of which a row is left in
// mask, and stores what it leaves of the 32 bits of rows; src moves on.
func maskedMinis(widths, src, mask Register, body func(w, at, rows GPVirtual)) {
	left := GP64()
	MOVQ(U32(4), left)
	Label("mini")
	w, rows, at := GP64(), GP32(), GP64()
	MOVBLZX(widths.(GPVirtual).As8(), w.As32())
	SHRL(Imm(8), widths)
	MOVL(Mem{Base: mask}, rows)
	TESTL(rows, rows)
	JZ(LabelRef("none"))
	MOVQ(src, at)
	body(w, at, rows)
	MOVL(rows, Mem{Base: mask})
	Label("none")
	LEAQ(Mem{Base: src, Index: w, Scale: 4}, src)
	ADDQ(Imm(4), mask)
	DECQ(left)
	JNZ(LabelRef("mini"))
}

func filterKernels() {
	words, shifts := dwordTable32()

	TEXT("filterBlockAVX512", NOSPLIT, "func(mask *[2]uint64, src *uint32, widths uint32, from uint32, span uint32)")
	Pragma("noescape")
	Doc("filterBlockAVX512 reads up to 64 bytes past the block.")
	{
		mask, src := Load(Param("mask"), GP64()), Load(Param("src"), GP64())
		widths := Load(Param("widths"), GP32())
		from, span := ZMM(), ZMM()
		VPBROADCASTD(Load(Param("from"), GP32()), from)
		VPBROADCASTD(Load(Param("span"), GP32()), span)
		u := newUnpacker16(words, shifts)
		maskedMinis(widths, src, mask, func(w, at, rows GPVirtual) {
			u.width(w)
			var k [2]OpmaskVirtual
			for g := range 2 {
				v := u.next(at)
				VPSUBD(from, v, v)
				k[g] = K()
				VPCMPUD(Imm(2), span, v, k[g])
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

	TEXT("filterBlockAVX2", NOSPLIT, "func(mask *[2]uint64, src *uint32, widths uint32, from uint32, span uint32)")
	Pragma("noescape")
	Doc("filterBlockAVX2 reads up to 32 bytes past the block.")
	{
		mask, src := Load(Param("mask"), GP64()), Load(Param("src"), GP64())
		widths := Load(Param("widths"), GP32())
		from, span := YMM(), YMM()
		spread(Load(Param("from"), GP32()), from)
		spread(Load(Param("span"), GP32()), span)
		u := newUnpacker8(words, shifts)
		maskedMinis(widths, src, mask, func(w, at, rows GPVirtual) {
			u.width(w)
			in := GP32()
			XORL(in, in)
			for g := range 4 {
				v, low, bits := u.next(at), YMM(), GP32()
				VPSUBD(from, v, v)
				VPMINUD(span, v, low)
				VPCMPEQD(low, v, v)
				VMOVMSKPS(v, bits)
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
