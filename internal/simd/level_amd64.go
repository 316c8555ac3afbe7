package simd

import "golang.org/x/sys/cpu"

// Best returns the highest level that this machine and its operating system have.
func Best() Level {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasBMI2 || !x.HasPOPCNT:
		return Plain
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VBMI2:
		return AVX512
	}
	return AVX2
}
