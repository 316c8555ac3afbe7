package colstore

import (
	"encoding/binary"
	"hash/maphash"
	"testing"
)

// numbers remembers what numbers stand for, by a hash.
type numbers struct {
	seed maphash.Seed
	seen map[uint64]uint64
}

func newNumbers() *numbers { return &numbers{maphash.MakeSeed(), map[uint64]uint64{}} }

func hashOfWords[T int64 | uint64](h *maphash.Hash, words []T) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(len(words)))
	h.Write(b[:])
	for _, w := range words {
		binary.LittleEndian.PutUint64(b[:], uint64(w))
		h.Write(b[:])
	}
}

// note fails where a number stands for something else than before, or is missing.
func (n *numbers) note(t testing.TB, what string, id uint64, content func(h *maphash.Hash)) {
	t.Helper()
	var h maphash.Hash
	h.SetSeed(n.seed)
	h.WriteString(what)
	content(&h)
	if had, ok := n.seen[id]; ok && had != h.Sum64() {
		t.Errorf("%s %d stands for two contents", what, id)
	}
	if id == 0 {
		t.Errorf("%s without a number", what)
	}
	n.seen[id] = h.Sum64()
}

// table looks at all numbers of a version.
func (n *numbers) table(t testing.TB, table *Table) {
	t.Helper()
	slots := map[int]bool{}
	var all []uint64
	values := make([]int64, 65536)
	for _, seg := range table.Segments {
		if slots[seg.Slot] {
			t.Errorf("two segments of slot %d", seg.Slot)
		}
		slots[seg.Slot] = true
		all = append(all, uint64(seg.Slot), seg.LiveID)
		if seg.Live == nil {
			if seg.LiveID != 0 {
				t.Error("a number for no live bitmap")
			}
		} else {
			n.note(t, "live bitmap", seg.LiveID, func(h *maphash.Hash) { hashOfWords(h, seg.Live) })
		}
		for i := range seg.Columns {
			c := &seg.Columns[i]
			all = append(all, c.ID)
			if c.Data == nil {
				if c.ID != 0 {
					t.Error("a number for no column")
				}
				continue
			}
			c.Data.Decode(values[:seg.Rows], 0)
			n.note(t, "column", c.ID, func(h *maphash.Hash) {
				hashOfWords(h, values[:seg.Rows])
				hashOfWords(h, c.Nulls)
				hashOfWords(h, []int64{c.Min, c.Max, int64(c.NullCount)})
			})
		}
	}
	n.note(t, "table", table.ID, func(h *maphash.Hash) { hashOfWords(h, all) })
}
