package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// selectKernels turn masks into positions and pick values by positions.
func selectKernels() {
	TEXT("positionsAVX512", NOSPLIT, "func(dst *uint16, mask *uint64, words int) int")
	Pragma("noescape")
	Doc("positionsAVX512 writes as many positions as mask has bits.")
	{
		dst, mask, words := Load(Param("dst"), GP64()), Load(Param("mask"), GP64()), Load(Param("words"), GP64())
		iota := GLOBL("iota16", RODATA|NOPTR)
		for i := range 32 {
			DATA(2*i, U16(i))
		}
		at, step, begin, ones, r := ZMM(), ZMM(), GP64(), GP64(), GP32()
		VMOVDQU16(iota, at)
		MOVL(U32(32), r)
		VPBROADCASTW(r, step)
		MOVQ(dst, begin)
		MOVQ(I64(-1), ones)
		TESTQ(words, words)
		JZ(LabelRef("done"))
		Label("word")
		rows := GP64()
		MOVQ(Mem{Base: mask}, rows)
		for h := range 2 {
			k, keep, out, n, low := K(), K(), ZMM(), GP64(), GP64()
			KMOVD(rows.As32(), k)
			POPCNTL(rows.As32(), n.As32())
			VPCOMPRESSW_Z(at, k, out)
			BZHIQ(n, ones, low)
			KMOVD(low.As32(), keep)
			VMOVDQU16(out, keep, Mem{Base: dst})
			LEAQ(Mem{Base: dst, Index: n, Scale: 2}, dst)
			VPADDW(step, at, at)
			if h == 0 {
				SHRQ(Imm(32), rows)
			}
		}
		ADDQ(Imm(8), mask)
		DECQ(words)
		JNZ(LabelRef("word"))
		Label("done")
		SUBQ(begin, dst)
		SHRQ(Imm(1), dst)
		Store(dst, ReturnIndex(0))
		VZEROUPPER()
		RET()
	}

	TEXT("pickAVX512", NOSPLIT, "func(dst *int64, src *int64, sel *uint16, n int)")
	Pragma("noescape")
	Doc("pickAVX512 reads exactly the values at the positions.")
	{
		dst, src, sel, n := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("sel"), GP64()), Load(Param("n"), GP64())
		eights(n, func(k OpmaskVirtual) {
			pos, idx, v, todo := XMM(), ZMM(), ZMM(), K()
			VMOVDQU16_Z(Mem{Base: sel}, k, pos)
			VPMOVZXWQ(pos, idx)
			KMOVW(k, todo)
			VPXORQ(v, v, v)
			VPGATHERQQ(Mem{Base: src, Index: idx, Scale: 8}, todo, v)
			VMOVDQU64(v, k, Mem{Base: dst})
			ADDQ(Imm(16), sel)
			ADDQ(Imm(64), dst)
		})
		VZEROUPPER()
		RET()
	}

	TEXT("pickEntriesAVX512", NOSPLIT, "func(dst *int64, values *int64, entries *uint32, sel *uint16, n int)")
	Pragma("noescape")
	Doc("pickEntriesAVX512 reads values at entries at positions.")
	{
		dst, values, entries := Load(Param("dst"), GP64()), Load(Param("values"), GP64()), Load(Param("entries"), GP64())
		sel, n := Load(Param("sel"), GP64()), Load(Param("n"), GP64())
		eights(n, func(k OpmaskVirtual) {
			pos, idx, e, v, todo := XMM(), ZMM(), YMM(), ZMM(), K()
			VMOVDQU16_Z(Mem{Base: sel}, k, pos)
			VPMOVZXWQ(pos, idx)
			KMOVW(k, todo)
			VPXOR(e, e, e)
			VPGATHERQD(Mem{Base: entries, Index: idx, Scale: 4}, todo, e)
			VPMOVZXDQ(e, idx)
			KMOVW(k, todo)
			VPXORQ(v, v, v)
			VPGATHERQQ(Mem{Base: values, Index: idx, Scale: 8}, todo, v)
			VMOVDQU64(v, k, Mem{Base: dst})
			ADDQ(Imm(16), sel)
			ADDQ(Imm(64), dst)
		})
		VZEROUPPER()
		RET()
	}

	TEXT("spreadNullsAVX512", NOSPLIT, "func(nulls *uint8, v *int64, set *uint64, words int, fill int64)")
	Pragma("noescape")
	Doc("spreadNullsAVX512 writes the bits of words as bytes, and fill where they are set.")
	{
		nulls, v, set, words := Load(Param("nulls"), GP64()), Load(Param("v"), GP64()), Load(Param("set"), GP64()), Load(Param("words"), GP64())
		one, fill, fills, ones := GP32(), GP64(), ZMM(), ZMM()
		Load(Param("fill"), fill)
		VPBROADCASTQ(fill, fills)
		MOVL(U32(1), one)
		VPBROADCASTB(one, ones)
		TESTQ(words, words)
		JLE(LabelRef("done"))
		Label("word")
		k, bytes := K(), ZMM()
		KMOVQ(Mem{Base: set}, k)
		VMOVDQU8_Z(ones, k, bytes)
		VMOVDQU8(bytes, Mem{Base: nulls})
		for i := range 8 {
			part := K()
			KMOVB(Mem{Base: set, Disp: i}, part)
			VMOVDQU64(fills, part, Mem{Base: v, Disp: 64 * i})
		}
		ADDQ(Imm(8), set)
		ADDQ(Imm(64), nulls)
		ADDQ(U32(512), v)
		DECQ(words)
		JNZ(LabelRef("word"))
		Label("done")
		VZEROUPPER()
		RET()
	}
}

// eights repeats body for n elements, eight at a time; k marks those that exist. n
// is used up.
func eights(n Register, body func(k OpmaskVirtual)) {
	k, ones := K(), GP32()
	MOVL(U32(255), ones)
	KMOVW(ones, k)
	CMPQ(n, Imm(8))
	JLT(LabelRef("tail"))
	Label("eight")
	body(k)
	SUBQ(Imm(8), n)
	CMPQ(n, Imm(8))
	JGE(LabelRef("eight"))
	Label("tail")
	TESTQ(n, n)
	JLE(LabelRef("done"))
	BZHIL(n.(GPVirtual).As32(), ones, ones)
	KMOVW(ones, k)
	// The tail is one more round, with what is left marked.
	body(k)
	Label("done")
}
