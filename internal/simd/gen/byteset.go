package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// byteSetKernels look bytes up in a set of two tables of 16 bytes (simd.ByteSet): the entry of a byte's lower
// half has a bit for each upper half, in the first table those without bit 7, in the second those with it.
func byteSetKernels() {
	powers := GLOBL("powers", RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(1<<(i%8)))
	}

	TEXT("findBytesAVX512", NOSPLIT, "func(found *uint64, text *byte, words int, set *[32]byte)")
	Pragma("noescape")
	Doc("findBytesAVX512 reads 64 bytes for each word.")
	{
		set := Load(Param("set"), GP64())
		low, high, power, half := ZMM(), ZMM(), ZMM(), dwords(0x0F0F0F0F)
		VBROADCASTI32X4(Mem{Base: set.(GPVirtual)}, low)
		VBROADCASTI32X4(Mem{Base: set.(GPVirtual), Disp: 16}, high)
		VBROADCASTI32X4(powers, power)
		eachByteWord(func(found, text GPVirtual) {
			v, lower, upper, in := ZMM(), ZMM(), ZMM(), ZMM()
			second, k, bits := K(), K(), GP64()
			VMOVDQU64(Mem{Base: text}, v)
			VPMOVB2M(v, second)
			VPANDD(half, v, lower)
			VPSRLW(Imm(4), v, upper)
			VPANDD(half, upper, upper)
			VPSHUFB(lower, low, in)
			VPSHUFB(lower, high, second, in)
			VPSHUFB(upper, power, upper)
			VPTESTMB(in, upper, k)
			KMOVQ(k, bits)
			MOVQ(bits, Mem{Base: found})
		})
		VZEROUPPER()
		RET()
	}

	TEXT("findBytesAVX2", NOSPLIT, "func(found *uint64, text *byte, words int, set *[32]byte)")
	Pragma("noescape")
	Doc("findBytesAVX2 reads 64 bytes for each word.")
	{
		set := Load(Param("set"), GP64())
		low, high, power, half := YMM(), YMM(), YMM(), YMM()
		VBROADCASTI128(Mem{Base: set.(GPVirtual)}, low)
		VBROADCASTI128(Mem{Base: set.(GPVirtual), Disp: 16}, high)
		VMOVDQU(powers, power)
		halves := GP32()
		MOVL(U32(0x0F0F0F0F), halves)
		spread(halves, half)
		eachByteWord(func(found, text GPVirtual) {
			var out [2]GPVirtual
			for g := range 2 {
				v, lower, upper, in, second := YMM(), YMM(), YMM(), YMM(), YMM()
				out[g] = GP64()
				VMOVDQU(Mem{Base: text, Disp: 32 * g}, v)
				VPAND(half, v, lower)
				VPSRLW(Imm(4), v, upper)
				VPAND(half, upper, upper)
				VPSHUFB(lower, low, in)
				VPSHUFB(lower, high, second)
				VPBLENDVB(v, second, in, in)
				VPSHUFB(upper, power, upper)
				VPAND(upper, in, in)
				VPCMPEQB(upper, in, in) // its only bit is there
				VPMOVMSKB(in, out[g].As32())
			}
			SHLQ(Imm(32), out[1])
			ORQ(out[1], out[0])
			MOVQ(out[0], Mem{Base: found})
		})
		VZEROUPPER()
		RET()
	}
}

// eachByteWord repeats body for each word of found, 64 bytes of text each.
func eachByteWord(body func(found, text GPVirtual)) {
	found, text := Load(Param("found"), GP64()).(GPVirtual), Load(Param("text"), GP64()).(GPVirtual)
	words := Load(Param("words"), GP64())
	Label("word")
	body(found, text)
	ADDQ(Imm(8), found)
	ADDQ(Imm(64), text)
	DECQ(words)
	JNZ(LabelRef("word"))
}
