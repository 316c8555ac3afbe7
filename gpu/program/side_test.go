package program

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestAppendLookupBitmap compares the bitmap of a packed lookup with its entries one by one.
func TestAppendLookupBitmap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025} {
		for _, kind := range []LookupKind{Lookup8, Lookup16, Lookup32} {
			d := &LookupData{Size: int64(n), E8: make([]uint8, n), E16: make([]uint16, n), E32: make([]uint32, n)}
			for i := range n {
				e := r.Uint32() >> r.IntN(32)
				if r.IntN(3) == 0 {
					e = ^uint32(0)
				}
				if r.IntN(4) == 0 { // bytes beside those that are free
					e = 0xfe | r.Uint32N(2)<<7
				}
				d.E8[i], d.E16[i], d.E32[i] = uint8(e), uint16(e), e
			}
			b := AppendLookup(nil, &Lookup{Kind: kind}, d)
			if want := int(max(bitmapBytes(int64(n))+padded(int64(n)*kind.EntryBytes()), 16)); len(b) != want {
				t.Fatalf("kind %d, %d entries: %d bytes instead of %d", kind, n, len(b), want)
			}
			for i := range n {
				_, ok := d.entry(kind, int64(i))
				if got := binary.LittleEndian.Uint64(b[i/64*8:])>>(i%64)&1 != 0; got != ok {
					t.Fatalf("kind %d, entry %d of %d: bit %v, partner %v", kind, i, n, got, ok)
				}
			}
		}
	}
}
