package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func unpackKernels() {
	pairs, pairShifts := qwordTable()

	TEXT("unpackBlockAVX512", NOSPLIT, "func(dst *[128]int64, src *uint32, widths uint32, ref int64)")
	Pragma("noescape")
	Doc("unpackBlockAVX512 reads up to 32 bytes past the block.")
	{
		dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
		widths := Load(Param("widths"), GP32())
		ref := ZMM()
		VPBROADCASTQ(Load(Param("ref"), GP64()), ref)
		tp, ts := address(pairs), address(pairShifts)
		minis("mini", widths, func(w GPVirtual) {
			at, bits := GP64(), GP64()
			MOVQ(w, at)
			SHLQ(Imm(6), at)
			idx, shift, mask := ZMM(), ZMM(), ZMM()
			VMOVDQU64(Mem{Base: tp, Index: at, Scale: 1}, idx)
			VMOVDQU64(Mem{Base: ts, Index: at, Scale: 1}, shift)
			lowBits(w, bits)
			VPBROADCASTQ(bits, mask)
			for g := range 4 {
				v := ZMM()
				VMOVDQU(Mem{Base: src}, v.AsY())
				VPERMD(v, idx, v)
				VPSRLVQ(shift, v, v)
				VPANDQ(mask, v, v)
				VPADDQ(ref, v, v)
				VMOVDQU64(v, Mem{Base: dst, Disp: 64 * g})
				ADDQ(w, src)
			}
			ADDQ(U32(256), dst)
		})
		VZEROUPPER()
		RET()
	}

	TEXT("unpackBlockAVX2", NOSPLIT, "func(dst *[128]int64, src *uint32, widths uint32, ref int64)")
	Pragma("noescape")
	Doc("unpackBlockAVX2 reads up to 32 bytes past the block.")
	{
		dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
		widths := Load(Param("widths"), GP32())
		ref := YMM()
		spreadQ(Load(Param("ref"), GP64()), ref)
		tp, ts := address(pairs), address(pairShifts)
		minis("mini", widths, func(w GPVirtual) {
			at, bits := GP64(), GP64()
			MOVQ(w, at)
			SHLQ(Imm(6), at)
			var idx, shift [2]VecVirtual
			for h := range 2 {
				idx[h], shift[h] = YMM(), YMM()
				VMOVDQU(Mem{Base: tp, Index: at, Scale: 1, Disp: 32 * h}, idx[h])
				VMOVDQU(Mem{Base: ts, Index: at, Scale: 1, Disp: 32 * h}, shift[h])
			}
			mask := YMM()
			lowBits(w, bits)
			VMOVQ(bits, mask.AsX())
			VPBROADCASTQ(mask.AsX(), mask)
			for g := range 4 {
				in := YMM()
				VMOVDQU(Mem{Base: src}, in)
				for h := range 2 {
					v := YMM()
					VPERMD(in, idx[h], v)
					VPSRLVQ(shift[h], v, v)
					VPAND(mask, v, v)
					VPADDQ(ref, v, v)
					VMOVDQU(v, Mem{Base: dst, Disp: 64*g + 32*h})
				}
				ADDQ(w, src)
			}
			ADDQ(U32(256), dst)
		})
		VZEROUPPER()
		RET()
	}
}

// minis repeats body for the four miniblocks of a block, with the width of each.
func minis(label string, widths Register, body func(w GPVirtual)) {
	left := GP64()
	MOVQ(U32(4), left)
	Label(label)
	w := GP64()
	MOVBLZX(widths.(GPVirtual).As8(), w.As32())
	SHRL(Imm(8), widths)
	body(w)
	DECQ(left)
	JNZ(LabelRef(label))
}

// unpacker16 unpacks 16 values of up to 32 bits to 32 bits each: words d and d+1 of
// each value side by side, shifted right together.
type unpacker16 struct {
	words, shifts          Register
	one                    VecVirtual
	idx, next1, shift, all VecVirtual
}

func newUnpacker16(words, shifts Mem) *unpacker16 {
	u := &unpacker16{words: address(words), shifts: address(shifts), one: dwords(1)}
	u.idx, u.next1, u.shift, u.all = ZMM(), ZMM(), ZMM(), ZMM()
	return u
}

// width loads the vectors of width w.
func (u *unpacker16) width(w GPVirtual) {
	at, bits := GP64(), GP64()
	MOVQ(w, at)
	SHLQ(Imm(6), at)
	VMOVDQU32(Mem{Base: u.words, Index: at, Scale: 1}, u.idx)
	VMOVDQU32(Mem{Base: u.shifts, Index: at, Scale: 1}, u.shift)
	VPADDD(u.one, u.idx, u.next1)
	lowBits(w, bits)
	VPBROADCASTD(bits.As32(), u.all)
}

// next returns the 16 values that begin at src.
func (u *unpacker16) next(src Register) VecVirtual {
	in, v := ZMM(), ZMM()
	VMOVDQU32(Mem{Base: src}, in)
	VPERMD(in, u.idx, v)
	VPERMD(in, u.next1, in)
	VPSHRDVD(u.shift, in, v)
	VPANDD(u.all, v, v)
	return v
}

// unpacker8 is unpacker16 for AVX2 and 8 values.
type unpacker8 struct {
	words, shifts                     Register
	one, bits                         VecVirtual
	idx, next1, right, left, all, tmp VecVirtual
}

func newUnpacker8(words, shifts Mem) *unpacker8 {
	u := &unpacker8{words: address(words), shifts: address(shifts), one: dwordsY(1), bits: dwordsY(32)}
	u.idx, u.next1, u.right, u.left, u.all = YMM(), YMM(), YMM(), YMM(), YMM()
	return u
}

// dwordsY returns a vector of 32 bytes with x in each dword.
func dwordsY(x uint32) VecVirtual {
	r, y := GP32(), YMM()
	MOVL(U32(x), r)
	spread(r, y)
	return y
}

// spread puts the register into each dword of y.
func spread(r Register, y VecVirtual) {
	VMOVD(r, y.AsX())
	VPBROADCASTD(y.AsX(), y)
}

func (u *unpacker8) width(w GPVirtual) {
	at, bits := GP64(), GP64()
	MOVQ(w, at)
	SHLQ(Imm(6), at)
	VMOVDQU(Mem{Base: u.words, Index: at, Scale: 1}, u.idx)
	VMOVDQU(Mem{Base: u.shifts, Index: at, Scale: 1}, u.right)
	VPADDD(u.one, u.idx, u.next1)
	VPSUBD(u.right, u.bits, u.left)
	lowBits(w, bits)
	spread(bits.As32(), u.all)
}

func (u *unpacker8) next(src Register) VecVirtual {
	in, v := YMM(), YMM()
	VMOVDQU(Mem{Base: src}, in)
	VPERMD(in, u.idx, v)
	VPERMD(in, u.next1, in)
	VPSRLVD(u.right, v, v)
	VPSLLVD(u.left, in, in)
	VPOR(in, v, v)
	VPAND(u.all, v, v)
	return v
}
