package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// valueKernels are the filters over values that are 64 bits wide already, 64 of them
// for each word of the mask.
func valueKernels() {
	TEXT("filterSetValuesAVX512", NOSPLIT, "func(mask *uint64, values *int64, words int, lo int64, size uint64, set *uint64)")
	Pragma("noescape")
	Doc("filterSetValuesAVX512 reads 64 values for each word.")
	{
		mask, values, words := Load(Param("mask"), GP64()), Load(Param("values"), GP64()), Load(Param("words"), GP64())
		lo, size, one := ZMM(), ZMM(), qwords(1)
		VPBROADCASTQ(Load(Param("lo"), GP64()), lo)
		VPBROADCASTQ(Load(Param("size"), GP64()), size)
		set := Load(Param("set"), GP64())
		maskedWords(words, mask, values, func(rows GPVirtual) {
			all := K()
			KMOVQ(rows, all)
			joinWord(rows, func(g int) OpmaskVirtual {
				v, word, hit, live, gathered := ZMM(), ZMM(), ZMM(), K(), K()
				if g == 0 {
					KMOVB(all, live)
				} else {
					KSHIFTRQ(Imm(uint64(8*g)), all, live)
				}
				VMOVDQU64(Mem{Base: values, Disp: 64 * g}, v)
				VPSUBQ(lo, v, v)
				VPCMPUQ(Imm(1), size, v, live, live)
				VPSRLQ(Imm(6), v, word)
				KMOVB(live, gathered)
				VPXORQ(hit, hit, hit)
				VPGATHERQQ(Mem{Base: set, Index: word, Scale: 8}, gathered, hit)
				VPRORVQ(v, hit, hit)
				VPTESTMQ(one, hit, live, live)
				return live
			})
		})
		VZEROUPPER()
		RET()
	}

	TEXT("filterValuesAVX512", NOSPLIT, "func(mask *uint64, values *int64, words int, lo int64, span uint64)")
	Pragma("noescape")
	Doc("filterValuesAVX512 reads 64 values for each word.")
	{
		mask, values, words := Load(Param("mask"), GP64()), Load(Param("values"), GP64()), Load(Param("words"), GP64())
		lo, span := ZMM(), ZMM()
		VPBROADCASTQ(Load(Param("lo"), GP64()), lo)
		VPBROADCASTQ(Load(Param("span"), GP64()), span)
		maskedWords(words, mask, values, func(rows GPVirtual) {
			joinWord(rows, func(g int) OpmaskVirtual {
				v, in := ZMM(), K()
				VMOVDQU64(Mem{Base: values, Disp: 64 * g}, v)
				VPSUBQ(lo, v, v)
				VPCMPUQ(Imm(2), span, v, in)
				return in
			})
		})
		VZEROUPPER()
		RET()
	}

	TEXT("filterValuesAVX2", NOSPLIT, "func(mask *uint64, values *int64, words int, lo int64, span uint64)")
	Pragma("noescape")
	Doc("filterValuesAVX2 reads 64 values for each word.")
	{
		mask, values, words := Load(Param("mask"), GP64()), Load(Param("values"), GP64()), Load(Param("words"), GP64())
		lo, span := Load(Param("lo"), GP64()), Load(Param("span"), GP64())
		// Less 2^63, both: only signed integers are compared.
		BTCQ(Imm(63), lo)
		BTCQ(Imm(63), span)
		los, spans := YMM(), YMM()
		spreadQ(lo, los)
		spreadQ(span, spans)
		maskedWords(words, mask, values, func(rows GPVirtual) {
			out := GP64()
			XORL(out.As32(), out.As32())
			for g := range 16 {
				v, bits := YMM(), GP64()
				VMOVDQU(Mem{Base: values, Disp: 32 * g}, v)
				VPSUBQ(los, v, v)
				VPCMPGTQ(spans, v, v)
				VMOVMSKPD(v, bits.As32())
				if g > 0 {
					SHLQ(Imm(uint64(4*g)), bits)
				}
				ORQ(bits, out)
			}
			ANDNQ(rows, out, rows)
		})
		VZEROUPPER()
		RET()
	}
}

// maskedWords repeats body for the words of mask that are not 0, 64 values each.
func maskedWords(words, mask, values Register, body func(rows GPVirtual)) {
	TESTQ(words, words)
	JZ(LabelRef("done"))
	Label("word")
	rows := GP64()
	MOVQ(Mem{Base: mask}, rows)
	TESTQ(rows, rows)
	JZ(LabelRef("none"))
	body(rows)
	MOVQ(rows, Mem{Base: mask})
	Label("none")
	ADDQ(Imm(8), mask)
	ADDQ(U32(512), values)
	DECQ(words)
	JNZ(LabelRef("word"))
	Label("done")
}

// joinWord ands the masks of eight groups of eight values into rows.
func joinWord(rows GPVirtual, group func(g int) OpmaskVirtual) {
	out := GP64()
	XORL(out.As32(), out.As32())
	for g := range 8 {
		k, bits := group(g), GP64()
		KMOVB(k, bits.As32())
		if g > 0 {
			SHLQ(Imm(uint64(8*g)), bits)
		}
		ORQ(bits, out)
	}
	ANDQ(out, rows)
}

// spreadQ puts the register into each qword of y.
func spreadQ(r Register, y VecVirtual) {
	VMOVQ(r, y.AsX())
	VPBROADCASTQ(y.AsX(), y)
}
