package colstore

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/compress"
	"pgaccel/vector"
)

// TestCodesInOrder loads text in random order: under a C collation codes stand in the
// order of their strings, under another as they came, and every row keeps its string.
func TestCodesInOrder(t *testing.T) {
	coll := func(c bool) vector.Type {
		return vector.Type{Kind: vector.Text, Typmod: -1, Collation: vector.Collation{OID: 1, Deterministic: true, C: c}}
	}
	padded := vector.Type{Kind: vector.BPChar, Typmod: 4 + 8, Collation: vector.Collation{OID: 1, Deterministic: true, C: true}}
	meta := &catalog.Table{OID: 9, Schema: "public", Name: "words", Columns: []catalog.Column{
		{Name: "c", Type: coll(true)}, {Name: "other", Type: coll(false)}, {Name: "n", Type: vector.TypeOf(vector.Int4)}, {Name: "p", Type: padded}}}
	r0 := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 63, 64, 65, 1023, 1024, 1025, 5000, 1500, 1600, 1700, 1800, 1900, 2000, 2100} {
		for _, limit := range []int64{0, 1} {
			s := New(Options{SegmentRows: 1024, Codec: compress.Codec(r0.IntN(8))})
			l := s.NewLoader(meta)
			w := l.NewWriter()
			r := rand.New(rand.NewPCG(uint64(n), 5))
			var want []string
			for i := range n {
				if r.IntN(10) == 0 {
					w.Null(0)
					want = append(want, "null")
				} else {
					v := fmt.Sprintf("w%d", r.IntN(700)*1000003%977)
					w.Text(0, []byte(v))
					want = append(want, v)
				}
				w.Text(1, []byte(fmt.Sprintf("o%d", i%13*7%13)))
				w.Int(2, int64(i))
				w.Text(3, []byte(fmt.Sprintf("%-8s", strings.Repeat("b", i%5)+"!")))
				if err := w.EndRow(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if limit != 0 { // no memory: codes stay as they are
				s.arena.limit = s.arena.used
			}
			used := s.arena.used
			table, err := l.Finish()
			if err != nil {
				t.Fatal(err)
			}
			ordered := inOrder(table.Dicts[0].Ranks()) && inOrder(table.Dicts[3].Ranks())
			if limit == 0 && !ordered {
				t.Errorf("%d rows: codes are not in order", n)
			}
			if limit != 0 && s.arena.used != used {
				t.Errorf("%d rows: %d bytes, %d before", n, s.arena.used, used)
			}
			for code := range table.Dicts[0].Len() {
				if got, ok := table.Dicts[0].Find(table.Dicts[0].At(int64(code))); !ok || got != int64(code) {
					t.Fatalf("code %d is found as %d, %v", code, got, ok)
				}
			}
			at := 0
			for _, seg := range table.Segments {
				values := make([][]int64, 4)
				for c := range values {
					values[c] = make([]int64, seg.Rows)
					seg.Columns[c].Data.Decode(values[c], 0)
				}
				lo, hi := int64(1<<40), int64(-1)
				for i := range seg.Rows {
					got := "null"
					if c := &seg.Columns[0]; c.Nulls == nil || !has(c.Nulls, i) {
						got = table.Dicts[0].At(values[0][i])
						lo, hi = min(lo, values[0][i]), max(hi, values[0][i])
					}
					if got != want[at] || values[2][i] != int64(at) {
						t.Fatalf("%d rows: row %d has %q, want %q", n, at, got, want[at])
					}
					if got, want := table.Dicts[1].At(values[1][i]), fmt.Sprintf("o%d", at%13*7%13); got != want {
						t.Fatalf("row %d has %q, want %q", at, got, want)
					}
					if got, want := table.Dicts[3].At(values[3][i]), fmt.Sprintf("%-8s", strings.Repeat("b", at%5)+"!"); got != want {
						t.Fatalf("row %d has %q, want %q", at, got, want)
					}
					at++
				}
				if c := &seg.Columns[0]; hi >= 0 && (c.Min != lo || c.Max != hi) {
					t.Errorf("zone map [%d, %d], want [%d, %d]", c.Min, c.Max, lo, hi)
				}
			}
			// The stream adds a string that sorts first: its code is the last.
			if limit == 0 && n > 0 {
				rel := s.NewRelation(table)
				d := rel.dicts[0]
				code, err := d.add([]byte("a"), maphash.String(hashSeed, "a"))
				if err != nil || int(code) != table.Dicts[0].Len() {
					t.Errorf("new code %d, %v", code, err)
				}
				if again, _ := d.add([]byte(want[slices.IndexFunc(want, func(w string) bool { return w != "null" })]), maphash.String(hashSeed, want[slices.IndexFunc(want, func(w string) bool { return w != "null" })])); int(again) >= table.Dicts[0].Len() {
					t.Errorf("a known string got the new code %d", again)
				}
				rel.Drop()
			} else {
				table.Release()
			}
			if s.arena.used != 0 {
				t.Errorf("%d rows: %d bytes are left", n, s.arena.used)
			}
			s.Close()
		}
	}
}
