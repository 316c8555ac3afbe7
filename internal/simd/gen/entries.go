package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// entryKernels look keys up in an array of entries of 1, 2 or 4 bytes. They write
// each entry at its row's place, and the positions of the rows that have one.
func entryKernels() {
	for _, bytes := range []int{1, 2, 4} {
		name := map[int]string{1: "8", 2: "16", 4: "32"}[bytes]
		TEXT("entries"+name+"AVX512", NOSPLIT, "func(table *uint"+name+", lo int64, keys *int64, sel *uint16, n int, entries *uint32, next *uint16, absent uint32) int")
		Pragma("noescape")
		Doc("entries" + name + "AVX512 reads four bytes for each entry.")
		table, keys, sel := Load(Param("table"), GP64()), Load(Param("keys"), GP64()), Load(Param("sel"), GP64())
		n, entries, next := Load(Param("n"), GP64()), Load(Param("entries"), GP64()), Load(Param("next"), GP64())
		lo, absent := ZMM(), YMM()
		VPBROADCASTQ(Load(Param("lo"), GP64()), lo)
		VPBROADCASTD(Load(Param("absent"), GP32()), absent)
		begin, ones, low := GP64(), GP32(), YMM()
		MOVQ(next, begin)
		MOVL(U32(255), ones)
		r := GP32()
		MOVL(U32(1<<(8*bytes)-1), r)
		VPBROADCASTD(r, low)
		eights(n, func(k OpmaskVirtual) {
			key, e, todo, has := ZMM(), YMM(), K(), K()
			VMOVDQU64_Z(Mem{Base: keys}, k, key)
			VPSUBQ(lo, key, key)
			KMOVW(k, todo)
			VPXOR(e, e, e)
			VPGATHERQD(Mem{Base: table, Index: key, Scale: uint8(bytes)}, todo, e)
			if bytes < 4 {
				VPAND(low, e, e)
			}
			VPCMPUD(Imm(4), absent, e, k, has)
			pos, at, out := XMM(), YMM(), XMM()
			VMOVDQU16_Z(Mem{Base: sel}, k, pos)
			VPMOVZXWD(pos, at)
			KMOVW(has, todo)
			VPSCATTERDD(e, todo, Mem{Base: entries, Index: at, Scale: 4})
			VPCOMPRESSW_Z(pos, has, out)
			bits, count, keep, kk := GP32(), GP64(), GP32(), K()
			KMOVB(has, bits)
			POPCNTL(bits, count.As32())
			BZHIL(count.As32(), ones, keep)
			KMOVW(keep, kk)
			VMOVDQU16(out, kk, Mem{Base: next})
			LEAQ(Mem{Base: next, Index: count, Scale: 2}, next)
			ADDQ(Imm(64), keys)
			ADDQ(Imm(16), sel)
		})
		SUBQ(begin, next)
		SHRQ(Imm(1), next)
		Store(next, ReturnIndex(0))
		VZEROUPPER()
		RET()
	}
}
