package olap

import (
	"hash/maphash"

	"pgaccel/vector"
)

// stringTable numbers distinct strings in the order in which they come: of char(n) those that differ by trailing
// blanks are one. Go's maps take several times as long where most strings are new: they hash all again as they grow.
type stringTable struct {
	kind  vector.Kind
	list  []string
	slots []poolSlot // open addressing, a power of two, at most half full
}

// code returns the number of a string, and whether it is new: then list has it, not a copy.
func (t *stringTable) code(s string) (code int64, isNew bool) {
	if 2*(len(t.list)+1) > len(t.slots) {
		t.slots = rehashed(t.slots)
	}
	key := canonical(t.kind, s)
	hash, mask := uint32(maphash.String(poolSeed, key)), uint32(len(t.slots)-1)
	for slot := hash & mask; ; slot = (slot + 1) & mask {
		e := &t.slots[slot]
		if e.code == 0 {
			t.list = append(t.list, s)
			*e = poolSlot{hash, uint32(len(t.list))}
			return int64(len(t.list) - 1), true
		}
		if e.hash == hash && canonical(t.kind, t.list[e.code-1]) == key {
			return int64(e.code - 1), false
		}
	}
}
