package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gatherFORKernels read single values of a FOR column wherever they lie.
func gatherFORKernels() {
	TEXT("gatherFORAVX512", NOSPLIT, "func(dst *int64, starts *uint32, data *uint32, start int, sel *uint16, n int)")
	Pragma("noescape")
	Doc("gatherFORAVX512 reads eight bytes from the first of each value on.")
	{
		dst, starts, data := Load(Param("dst"), GP64()), Load(Param("starts"), GP64()), Load(Param("data"), GP64())
		start := ZMM()
		VPBROADCASTQ(Load(Param("start"), GP64()), start)
		sel, n := Load(Param("sel"), GP64()), Load(Param("n"), GP64())
		bytes3, low8, low5, low3, two, spreadWidths := qwords(24), qwords(255), qwords(31), qwords(7), qwords(2), qwords(0x01010100)
		one := qwords(1)
		eights(n, func(k OpmaskVirtual) {
			pos, row, block, at32, todo := XMM(), ZMM(), ZMM(), YMM(), K()
			VMOVDQU16_Z(Mem{Base: sel}, k, pos)
			VPMOVZXWQ(pos, row)
			VPADDQ(start, row, row)
			VPSRLQ(Imm(7), row, block)
			KMOVW(k, todo)
			VPXOR(at32, at32, at32)
			VPGATHERQD(Mem{Base: starts, Index: block, Scale: 4}, todo, at32)
			at, head := ZMM(), ZMM()
			VPMOVZXDQ(at32, at)
			KMOVW(k, todo)
			VPXORQ(head, head, head)
			VPGATHERQQ(Mem{Base: data, Index: at, Scale: 4}, todo, head)
			ref, widths, mini, width, before := ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
			// The reference is the low word, with its sign; the widths are the high one.
			VPSRLQ(Imm(32), head, widths)
			VPSLLQ(Imm(32), head, ref)
			VPSRAQ(Imm(32), ref, ref)
			VPSRLQ(Imm(2), row, mini) // 8 * (row/32 % 4)
			VPANDQ(bytes3, mini, mini)
			VPSRLVQ(mini, widths, width)
			VPANDQ(low8, width, width)
			// Byte m of widths*0x01010100 is the sum of the widths before miniblock m.
			VPMULUDQ(spreadWidths, widths, before)
			VPSRLVQ(mini, before, before)
			VPANDQ(low8, before, before)
			VPADDQ(at, before, before)
			VPADDQ(two, before, before) // words of the block's head
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
		VZEROUPPER()
		RET()
	}
}
