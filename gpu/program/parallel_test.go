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
	for _, n := range []int{1, 15, 63, 64, 65, 127, 128, 129, 511, 512, 513, 2*integersGrain - 1, 2 * integersGrain, 2*64*presentGrain + 7} {
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

// TestParseGroups compares results whose groups are taken by several goroutines with the same a word at a time, wherever the
// two reads meet.
func TestParseGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, prefix := range []int{0, 2} {
		g := &Generated{p: &Program{Sink: Sink{Prefix: prefix, Accs: []Acc{{Kind: AccSum}, {Kind: AccSum128}, {Kind: AccMin}}}}}
		words := 6
		if prefix > 0 {
			words++
		}
		for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 2*groupsGrain - 1, 3*groupsGrain + 3} {
			data := make([]byte, 8*words*n)
			for i := 0; i < len(data); i += 8 {
				binary.LittleEndian.PutUint64(data[i:], r.Uint64())
			}
			for _, cut := range []int{0, len(data) / 16 * 8, len(data) / 8 / 3 * 8, len(data)} {
				var got Result
				g.parseGroups(&got, n, data[:cut], data[cut:])
				columns := [][]int64{signedOf(got.Numbers), got.Rows}
				if prefix > 0 {
					columns = append(columns, signedOf(got.Prefix))
				}
				columns = append(columns, got.Accs[0].V, got.Accs[1].V, got.Accs[1].Hi, got.Accs[2].V)
				for k := range n {
					for c, column := range columns {
						if want := int64(binary.LittleEndian.Uint64(data[8*(k*words+c):])); len(column) != n || column[k] != want {
							t.Fatalf("group %d of %d, word %d, cut at %d", k, n, c, cut)
						}
					}
				}
				if got.Accs[0].Hi != nil || got.Accs[2].Hi != nil || (got.Prefix != nil) != (prefix > 0) {
					t.Errorf("%d groups: %d, %d and %d words too many", n, len(got.Accs[0].Hi), len(got.Accs[2].Hi), len(got.Prefix))
				}
			}
		}
	}
}

func signedOf(a []uint64) (out []int64) {
	for _, v := range a {
		out = append(out, int64(v))
	}
	return out
}
