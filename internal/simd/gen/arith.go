package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// arithKernels are sums, products and comparisons of 64-bit integers, modulo 2^64.
func arithKernels() {
	for _, op := range []struct {
		name string
		do   func(ops ...Op)
	}{{"add", VPADDQ}, {"sub", VPSUBQ}, {"mul", VPMULLQ}} {
		TEXT(op.name+"AVX512", NOSPLIT, "func(dst *int64, a *int64, b *int64, n int)")
		Pragma("noescape")
		Doc(op.name + "AVX512 works element by element.")
		dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
		n := Load(Param("n"), GP64())
		eights(n, func(k OpmaskVirtual) {
			x, y := ZMM(), ZMM()
			VMOVDQU64_Z(Mem{Base: a}, k, x)
			VMOVDQU64_Z(Mem{Base: b}, k, y)
			op.do(y, x, x)
			VMOVDQU64(x, k, Mem{Base: dst})
			for _, r := range []Register{a, b, dst} {
				ADDQ(Imm(64), r)
			}
		})
		VZEROUPPER()
		RET()
	}

	TEXT("sumAVX512", NOSPLIT, "func(a *int64, n int) int64")
	Pragma("noescape")
	Doc("sumAVX512 adds modulo 2^64.")
	{
		a, n := Load(Param("a"), GP64()), Load(Param("n"), GP64())
		sum := zeroed(1)[0]
		eights(n, func(k OpmaskVirtual) {
			x := ZMM()
			VMOVDQU64_Z(Mem{Base: a}, k, x)
			VPADDQ(x, sum, sum)
			ADDQ(Imm(64), a)
		})
		fold(sum)
	}

	TEXT("boundsAVX512", NOSPLIT, "func(a *int64, n int) (lo int64, hi int64)")
	Pragma("noescape")
	Doc("boundsAVX512 returns the largest and the smallest integer for none.")
	{
		a, n := Load(Param("a"), GP64()), Load(Param("n"), GP64())
		lo, hi := qwords(1<<63-1), qwords(1<<63)
		eights(n, func(k OpmaskVirtual) {
			x := ZMM()
			VMOVDQU64_Z(Mem{Base: a}, k, x)
			VPMINSQ(x, lo, k, lo)
			VPMAXSQ(x, hi, k, hi)
			ADDQ(Imm(64), a)
		})
		reduce(lo, VPMINSQ)
		reduce(hi, VPMAXSQ)
		r := GP64()
		VMOVQ(lo.AsX(), r)
		Store(r, Return("lo"))
		r = GP64()
		VMOVQ(hi.AsX(), r)
		Store(r, Return("hi"))
		VZEROUPPER()
		RET()
	}

	for _, c := range []struct {
		name string
		imm  uint64
	}{{"eq", 0}, {"ne", 4}, {"lt", 1}, {"le", 2}} {
		TEXT(c.name+"AVX512", NOSPLIT, "func(dst *int64, a *int64, b *int64, n int)")
		Pragma("noescape")
		Doc(c.name + "AVX512 writes 1 where a is so to b, else 0.")
		dst, a, b := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
		n := Load(Param("n"), GP64())
		one := qwords(1)
		eights(n, func(k OpmaskVirtual) {
			x, y, out, is := ZMM(), ZMM(), ZMM(), K()
			VMOVDQU64_Z(Mem{Base: a}, k, x)
			VMOVDQU64_Z(Mem{Base: b}, k, y)
			VPCMPQ(Imm(c.imm), y, x, is)
			VMOVDQA64_Z(one, is, out)
			VMOVDQU64(out, k, Mem{Base: dst})
			for _, r := range []Register{a, b, dst} {
				ADDQ(Imm(64), r)
			}
		})
		VZEROUPPER()
		RET()
	}

	TEXT("insideAVX512", NOSPLIT, "func(dst *int64, a *int64, n int, lo int64, span uint64, in int64)")
	Pragma("noescape")
	Doc("insideAVX512 writes in where lo <= a <= lo+span, else 1-in.")
	{
		dst, a, n := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("n"), GP64())
		lo, span, yes, no := ZMM(), ZMM(), ZMM(), qwords(1)
		VPBROADCASTQ(Load(Param("lo"), GP64()), lo)
		VPBROADCASTQ(Load(Param("span"), GP64()), span)
		VPBROADCASTQ(Load(Param("in"), GP64()), yes)
		VPSUBQ(yes, no, no)
		eights(n, func(k OpmaskVirtual) {
			x, out, is := ZMM(), ZMM(), K()
			VMOVDQU64_Z(Mem{Base: a}, k, x)
			VPSUBQ(lo, x, x)
			VPCMPUQ(Imm(2), span, x, is)
			VPBLENDMQ(yes, no, is, out)
			VMOVDQU64(out, k, Mem{Base: dst})
			ADDQ(Imm(64), a)
			ADDQ(Imm(64), dst)
		})
		VZEROUPPER()
		RET()
	}
}

func zeroed(n int) []VecVirtual {
	z := make([]VecVirtual, n)
	for i := range z {
		z[i] = ZMM()
		VPXORQ(z[i], z[i], z[i])
	}
	return z
}

// fold returns the sum of the eight elements.
func fold(sum VecVirtual) {
	reduce(sum, VPADDQ)
	r := GP64()
	VMOVQ(sum.AsX(), r)
	Store(r, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// reduce brings the eight elements together in the first.
func reduce(z VecVirtual, op func(ops ...Op)) {
	half := ZMM()
	VEXTRACTI64X4(Imm(1), z, half.AsY())
	op(half.AsY(), z.AsY(), z.AsY())
	VEXTRACTI64X2(Imm(1), z.AsY(), half.AsX())
	op(half.AsX(), z.AsX(), z.AsX())
	VPSRLDQ(Imm(8), z.AsX(), half.AsX())
	op(half.AsX(), z.AsX(), z.AsX())
}
