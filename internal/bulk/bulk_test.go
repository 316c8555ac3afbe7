package bulk

import (
	"bytes"
	"testing"
)

// TestGrow: what was there stays, whatever others do with memory that is done with.
func TestGrow(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1<<16 - 1, 1 << 16, 1<<16 + 1, 3 << 16} {
		var b, want []byte
		for round := range 5 {
			if b = Grow(b, n); cap(b)-len(b) < n {
				t.Fatalf("room for %d of %d bytes", cap(b)-len(b), n)
			}
			other := Bytes(max(n, cap(want))) // may be what b was
			for i := range other {
				other[i] = 0xff
			}
			Done(other)
			more := bytes.Repeat([]byte{byte(round)}, n)
			b, want = append(b, more...), append(want, more...)
			if !bytes.Equal(b, want) {
				t.Fatalf("%d bytes a time: other content after %d", n, len(b))
			}
		}
		Done(b)
	}
}

// TestDone: memory comes back in its class alone, and other memory does not come.
func TestDone(t *testing.T) {
	Done(nil)
	Done(make([]byte, 0, 1<<16+1)[:1])
	for range 100 {
		for _, n := range []int{1 << 15, 1<<16 - 1, 1<<16 + 1, 1 << 20} {
			b := Bytes(n)
			if len(b) != n || n > 1<<first && cap(b) != 1<<class(n) {
				t.Fatalf("%d bytes of %d for %d", len(b), cap(b), n)
			}
			Done(b)
		}
	}
}
