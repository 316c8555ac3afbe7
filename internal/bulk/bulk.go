package bulk

import (
	"math/bits"
	"strings"
	"sync"
	"unsafe"

	"pgaccel/internal/invariant"
)

const (
	first = 16 // a buffer that is smaller than 1<<first bytes is not worth it
	last  = 28 // nor is one that is larger than 1<<last kept
)

var pools [last + 1]sync.Pool // of *[]byte of 1<<i bytes

// class is the smallest power of two that is not below n.
func class(n int) int { return bits.Len(uint(max(n, 1) - 1)) }

// Bytes returns n bytes with any content.
func Bytes(n int) []byte {
	c := class(n)
	switch {
	case c < first:
		return make([]byte, n)
	case c > last:
		return Unset[byte](n)
	}
	if b, _ := pools[c].Get().(*[]byte); b != nil {
		return (*b)[:n]
	}
	return Unset[byte](1 << c)[:n]
}

// unsetBytes is the size from which on memory is not cleared before it is written.
const unsetBytes = 1 << first

// Unset returns n values of a type without pointers that are anything: an array that several goroutines fill is not first
// cleared by one of them, whose time is all of theirs. One of unsetBytes or more begins at a page.
func Unset[T any](n int) []T {
	var one T
	bytes := n * int(unsafe.Sizeof(one))
	if bytes < unsetBytes {
		return make([]T, n)
	}
	// make clears, and so does append. Of what the runtime allocates without, a builder's buffer can be had.
	var b strings.Builder
	b.Grow(bytes)
	b.WriteByte(0)
	memory := unsafe.Slice(unsafe.StringData(b.String()), bytes)
	if invariant.Enabled {
		for i := range memory {
			memory[i] = 0xA5
		}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n)
}

// Done takes back what Bytes or Grow returned, or other memory. Nobody uses it any more.
func Done(b []byte) {
	if c := class(cap(b)); c >= first && c <= last && cap(b) == 1<<c {
		b = b[:0]
		pools[c].Put(&b)
	}
}

// Grow returns b with room for n more bytes. Where that is other memory, b is done with.
func Grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	grown := Bytes(max(len(b)+n, 2*len(b)))[:len(b)]
	copy(grown, b)
	Done(b)
	return grown
}
