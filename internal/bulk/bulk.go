package bulk

import (
	"math/bits"
	"runtime"
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
		return Unset(n)
	}
	if b, _ := pools[c].Get().(*[]byte); b != nil {
		return (*b)[:n]
	}
	return Unset(1 << c)[:n]
}

// Unset returns n bytes of new memory with any content: an array that several goroutines fill is not first cleared by one
// of them, whose time is all of theirs. 64 KiB or more begin at a page.
func Unset(n int) []byte {
	// make clears, and so does append. Of what the runtime allocates without, a builder's buffer can be had.
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	s := unsafe.Slice(unsafe.StringData(b.String()), n)
	if invariant.Enabled {
		for i := range s {
			s[i] = 0xA5
		}
	}
	return s
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

// Pieces calls do with parts that together are 0..n-1, by several goroutines where each has least or more.
func Pieces(n, least int, do func(from, to int)) {
	const most = 8 // which the memory is busy with
	pieces := min(most, runtime.GOMAXPROCS(0), n/least)
	if pieces < 2 {
		do(0, n)
		return
	}
	var wg sync.WaitGroup
	for i := range pieces {
		wg.Go(func() { do(n*i/pieces, n*(i+1)/pieces) })
	}
	wg.Wait()
}
