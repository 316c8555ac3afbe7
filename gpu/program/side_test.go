package program

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAppend compares what is packed by words, and by several goroutines where it is much, with the same a value at a time.
func TestAppend(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	le := binary.LittleEndian
	padTo := func(b []byte) []byte {
		for len(b)%16 != 0 {
			b = append(b, 0)
		}
		return b
	}
	before := []byte("sixteen bytes be")
	for _, n := range []int{1, 15, 63, 64, 65, 127, 128, 129, 511, 512, 513, 64*presentPiece - 1, 3 * 64 * presentPiece, 2*integersPiece - 1, 2 * integersPiece, 5*integersPiece + 7} {
		values, nulls := make([]int64, n), make([]uint8, n)
		e8, e16, e32 := make([]uint8, n), make([]uint16, n), make([]uint32, n)
		for i := range n {
			values[i] = int64(int32(r.Uint32()))
			nulls[i] = uint8(r.IntN(2))
			e8[i], e16[i], e32[i] = uint8(r.IntN(3))-1, uint16(r.IntN(3))-1, uint32(r.IntN(3))-1
		}
		for _, wide := range []bool{false, true} {
			got := AppendTable(slices.Clone(before), Table{Nulls: true, Wide: wide}, &TableData{Values: values, Nulls: nulls})
			want := slices.Clone(before)
			for _, v := range values {
				if wide {
					want = le.AppendUint64(want, uint64(v))
				} else {
					want = le.AppendUint32(want, uint32(v))
				}
			}
			if want = padTo(append(padTo(want), nulls...)); !slices.Equal(got, want) {
				t.Errorf("a table of %d values, wide %v", n, wide)
			}
		}
		for _, c := range []struct {
			kind LookupKind
			d    LookupData
		}{{Lookup8, LookupData{E8: e8}}, {Lookup16, LookupData{E16: e16}}, {Lookup32, LookupData{E32: e32}}} {
			c.d.Size = int64(n)
			got := AppendLookup(slices.Clone(before), &Lookup{Kind: c.kind}, &c.d)
			want, entries := slices.Clone(before), []byte(nil)
			for i := range n {
				e, ok := c.d.entry(c.kind, int64(i))
				if i%64 == 0 {
					want = append(want, make([]byte, 8)...)
				}
				if ok {
					want[len(want)-8+i%64/8] |= 1 << (i % 8)
				} else {
					e = 1<<32 - 1
				}
				entries = append(entries, le.AppendUint32(nil, e)[:c.kind.EntryBytes()]...)
			}
			if want = padTo(append(padTo(want), entries...)); !slices.Equal(got, want) {
				t.Errorf("a lookup of %d entries of kind %d", n, c.kind)
			}
		}
	}
}
