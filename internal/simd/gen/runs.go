package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// runKernels work on 512 rows that are runs of equal values: eight words have a bit
// where a run begins.
func runKernels() {
	TEXT("runStartsAVX512", NOSPLIT, "func(starts *[8]uint64, lengths *int64, n int)")
	Pragma("noescape")
	Doc("runStartsAVX512 keeps positions within 512 by their low bits.")
	{
		// A byte a row first: unlike bits they need not be read to be written.
		rows := AllocLocal(512)
		starts, lengths, n := Load(Param("starts"), GP64()), Load(Param("lengths"), GP64()), Load(Param("n"), GP64())
		zero, base, at, one := ZMM(), GP64(), GP64(), GP32()
		VPXORQ(zero, zero, zero)
		for i := range 8 {
			VMOVDQU64(zero, rows.Offset(64*i))
		}
		LEAQ(rows, base)
		XORL(at.As32(), at.As32())
		MOVL(I32(-1), one)
		TESTQ(n, n)
		JLE(LabelRef("done"))
		Label("run")
		low := GP64() // beside the chain of additions
		MOVL(at.As32(), low.As32())
		ANDL(U32(511), low.As32())
		MOVB(one.As8(), Mem{Base: base, Index: low, Scale: 1})
		ADDQ(Mem{Base: lengths}, at)
		ADDQ(Imm(8), lengths)
		DECQ(n)
		JNZ(LabelRef("run"))
		Label("done")
		for i := range 8 {
			z, k := ZMM(), K()
			VMOVDQU64(rows.Offset(64*i), z)
			VPMOVB2M(z, k)
			KMOVQ(k, Mem{Base: starts, Disp: 8 * i})
		}
		VZEROUPPER()
		RET()
	}

	TEXT("expandRunsAVX512", NOSPLIT, "func(dst *int64, rows int, values *int64, starts *[8]uint64)")
	Pragma("noescape")
	Doc("expandRunsAVX512 reads the element before values, and seven after the last.")
	{
		// ranks has, for each byte of starts, how many runs begin up to each bit; where one
		// does with the first bit, that one does not count.
		ranks := GLOBL("ranks", RODATA|NOPTR)
		for b := range 256 {
			for i := range 8 {
				DATA(8*b+i, U8(bits.OnesCount(uint(b)&^1&(2<<i-1))))
			}
		}
		dst, rows, values := Load(Param("dst"), GP64()), Load(Param("rows"), GP64()), Load(Param("values"), GP64())
		starts, table := Load(Param("starts"), GP64()), address(ranks)
		eights(rows, func(k OpmaskVirtual) {
			b, first, rank, v := GP64(), GP64(), ZMM(), ZMM()
			MOVBQZX(Mem{Base: starts}, b)
			VPMOVZXBQ(Mem{Base: table, Index: b, Scale: 8}, rank)
			MOVL(b.As32(), first.As32())
			ANDL(Imm(1), first.As32())
			VPERMQ(Mem{Base: values, Index: first, Scale: 8, Disp: -8}, rank, v)
			POPCNTL(b.As32(), b.As32())
			LEAQ(Mem{Base: values, Index: b, Scale: 8}, values)
			VMOVDQU64(v, k, Mem{Base: dst})
			ADDQ(Imm(64), dst)
			INCQ(starts)
		})
		VZEROUPPER()
		RET()
	}

	TEXT("spreadRunsAVX2", NOSPLIT, "func(rows *[8]uint64, runs *[9]uint64, starts *[8]uint64)")
	Pragma("noescape")
	Doc("spreadRunsAVX2 needs BMI2. Of the last word of runs the content does not matter.")
	{
		rows, runs, starts := Load(Param("rows"), GP64()), Load(Param("runs"), GP64()), Load(Param("starts"), GP64())
		at, before, inside := GP64(), GP64(), GP64()
		XORL(at.As32(), at.As32())         // runs so far
		XORL(before.As32(), before.As32()) // whether the run before is in, as a bit
		XORL(inside.As32(), inside.As32()) // likewise, in all bits
		for i := range 8 {
			s, low, high, word, n := GP64(), GP64(), GP64(), GP64(), GP64()
			MOVQ(Mem{Base: starts, Disp: 8 * i}, s)
			POPCNTQ(s, n)
			// The next 64 runs, from bit at on.
			MOVQ(at, word)
			SHRQ(Imm(6), word)
			MOVQ(Mem{Base: runs, Index: word, Scale: 8}, low)
			MOVQ(Mem{Base: runs, Index: word, Scale: 8, Disp: 8}, high)
			SHRXQ(at, low, low)
			// high << 64-at%64 is 0 for at%64 = 0.
			ADDQ(high, high)
			up := GP64()
			MOVQ(at, up)
			NOTQ(up)
			SHLXQ(up, high, high)
			ORQ(high, low)
			// Where the answer changes, at the rows where it does; then parities.
			turns := GP64()
			LEAQ(Mem{Base: before, Index: low, Scale: 2}, turns)
			XORQ(low, turns)
			PDEPQ(s, turns, turns)
			for shift := uint64(1); shift < 64; shift *= 2 {
				t := GP64()
				MOVQ(turns, t)
				SHLQ(Imm(shift), t)
				XORQ(t, turns)
			}
			XORQ(inside, turns)
			MOVQ(turns, Mem{Base: rows, Disp: 8 * i})
			MOVQ(turns, inside)
			SARQ(Imm(63), inside)
			MOVQ(inside, before)
			ANDL(Imm(1), before.As32())
			ADDQ(n, at)
		}
		RET()
	}
}
