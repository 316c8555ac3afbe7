package device

import "encoding/binary"

// Params packs a kernel's parameter as a C++ compiler lays out a structure of the same
// members in the same order: each is aligned to its size.
type Params struct{ b []byte }

func (p *Params) align(n int) {
	if p.b == nil {
		p.b = make([]byte, 0, 384) // as much as most kernels have
	}
	for len(p.b)%n != 0 {
		p.b = append(p.b, 0)
	}
}

// U64 appends a uint64_t, int64_t or pointer.
func (p *Params) U64(v uint64) *Params {
	p.align(8)
	p.b = binary.LittleEndian.AppendUint64(p.b, v)
	return p
}

// I64 appends an int64_t.
func (p *Params) I64(v int64) *Params { return p.U64(uint64(v)) }

// Ptr appends a pointer.
func (p *Params) Ptr(v Pointer) *Params { return p.U64(uint64(v)) }

// U32 appends a uint32_t or int32_t.
func (p *Params) U32(v uint32) *Params {
	p.align(4)
	p.b = binary.LittleEndian.AppendUint32(p.b, v)
	return p
}

// Bytes returns the structure, padded to a multiple of 8 bytes: every structure of
// kernels' parameters has a 64-bit member.
func (p *Params) Bytes() []byte {
	p.align(8)
	return p.b
}
