package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gatherFORKernels read single values of a FOR column wherever they lie.
func gatherFORKernels() {
	for _, wide := range []bool{false, true} {
		gatherFOR(wide)
	}
	prefetchFOR()
}

// prefetchFOR asks for the lines of memory that values of a FOR column lie in. Where in a block a
// value lies is only known from the block's header, which is not here yet; it is taken to lie
// where it does if the block's widths are alike.
func prefetchFOR() {
	TEXT("prefetchFORAVX2", NOSPLIT, "func(starts *uint32, data *uint32, start int, sel *uint16, n int)")
	Pragma("noescape")
	Doc("prefetchFORAVX2 asks for the headers and the values of rows; starts has the end of the last block, too.")
	starts, data, start := Load(Param("starts"), GP64()), Load(Param("data"), GP64()), Load(Param("start"), GP64())
	sel, n := Load(Param("sel"), GP64()), Load(Param("n"), GP64())
	row, block, at, words := GP64(), GP64(), GP64(), GP64()
	Label("row")
	TESTQ(n, n)
	JLE(LabelRef("prefetched"))
	MOVWQZX(Mem{Base: sel}, row)
	ADDQ(start, row)
	MOVQ(row, block)
	SHRQ(Imm(7), block)
	MOVL(Mem{Base: starts, Index: block, Scale: 4}, at.As32())
	MOVL(Mem{Base: starts, Index: block, Scale: 4, Disp: 4}, words.As32())
	PREFETCHT0(Mem{Base: data, Index: at, Scale: 4})
	SUBQ(at, words)
	ANDQ(Imm(127), row)
	IMULQ(row, words)
	SHRQ(Imm(7), words)
	ADDQ(at, words)
	PREFETCHT0(Mem{Base: data, Index: words, Scale: 4, Disp: 8})
	ADDQ(Imm(2), sel)
	DECQ(n)
	JMP(LabelRef("row"))
	Label("prefetched")
	RET()
}

func gatherFOR(wide bool) {
	name, headWords := "gatherFORAVX512", uint64(2)
	if wide {
		name, headWords = "gatherFOR64AVX512", 3
	}
	TEXT(name, NOSPLIT, "func(dst *int64, starts *uint32, data *uint32, start int, sel *uint16, n int) uint64")
	Pragma("noescape")
	Doc(name + " reads eight bytes from the first of each value on; it returns the largest width, beyond 57 of which values are wrong.")
	dst, starts, data := Load(Param("dst"), GP64()), Load(Param("starts"), GP64()), Load(Param("data"), GP64())
	start := ZMM()
	VPBROADCASTQ(Load(Param("start"), GP64()), start)
	sel, n := Load(Param("sel"), GP64()), Load(Param("n"), GP64())
	bytes3, low8, low5, low3, header, spreadWidths := qwords(24), qwords(255), qwords(31), qwords(7), qwords(headWords), qwords(0x01010100)
	one, most := qwords(1), zeroed(1)[0]
	eights(n, func(k OpmaskVirtual) {
		pos, row, block, at32, todo := XMM(), ZMM(), ZMM(), YMM(), K()
		VMOVDQU16_Z(Mem{Base: sel}, k, pos)
		VPMOVZXWQ(pos, row)
		VPADDQ(start, row, row)
		VPSRLQ(Imm(7), row, block)
		KMOVW(k, todo)
		VPXOR(at32, at32, at32)
		VPGATHERQD(Mem{Base: starts, Index: block, Scale: 4}, todo, at32)
		at, ref := ZMM(), ZMM()
		VPMOVZXDQ(at32, at)
		KMOVW(k, todo)
		VPXORQ(ref, ref, ref)
		VPGATHERQQ(Mem{Base: data, Index: at, Scale: 4}, todo, ref)
		widths, mini, width, before := ZMM(), ZMM(), ZMM(), ZMM()
		if wide {
			KMOVW(k, todo)
			VPXOR(at32, at32, at32)
			VPGATHERQD(Mem{Base: data, Index: at, Scale: 4, Disp: 8}, todo, at32)
			VPMOVZXDQ(at32, widths)
		} else {
			// The reference is the low word, with its sign; the widths are the high one.
			VPSRLQ(Imm(32), ref, widths)
			VPSLLQ(Imm(32), ref, ref)
			VPSRAQ(Imm(32), ref, ref)
		}
		VPSRLQ(Imm(2), row, mini) // 8 * (row/32 % 4)
		VPANDQ(bytes3, mini, mini)
		VPSRLVQ(mini, widths, width)
		VPANDQ(low8, width, width)
		VPMAXUQ(width, most, most)
		// Byte m of widths*0x01010100 is the sum of the widths before miniblock m.
		VPMULUDQ(spreadWidths, widths, before)
		VPSRLVQ(mini, before, before)
		VPANDQ(low8, before, before)
		VPADDQ(at, before, before)
		VPADDQ(header, before, before)
		bit, v, mask := ZMM(), ZMM(), ZMM()
		VPANDQ(low5, row, bit)
		VPMULUDQ(width, bit, bit)
		VPSLLQ(Imm(5), before, before)
		VPADDQ(before, bit, bit)
		byteAt := ZMM()
		VPSRLQ(Imm(3), bit, byteAt)
		KMOVW(k, todo)
		VPXORQ(v, v, v)
		VPGATHERQQ(Mem{Base: data, Index: byteAt, Scale: 1}, todo, v)
		VPANDQ(low3, bit, bit)
		VPSRLVQ(bit, v, v)
		VPSLLVQ(width, one, mask)
		VPSUBQ(one, mask, mask)
		VPANDQ(mask, v, v)
		VPADDQ(ref, v, v)
		VMOVDQU64(v, k, Mem{Base: dst})
		ADDQ(Imm(16), sel)
		ADDQ(Imm(64), dst)
	})
	reduce(most, VPMAXUQ)
	r := GP64()
	VMOVQ(most.AsX(), r)
	Store(r, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
