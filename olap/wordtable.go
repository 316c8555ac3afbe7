package olap

import "math/bits"

// wordTable is a set of keys of w words each, numbered in the order of insertion.
type wordTable struct {
	w     int
	keys  []uint64 // n*w
	slots []uint32 // number+1, 0 for free; a power of two
	n     int
}

func newWordTable(w, capacity int) *wordTable {
	size := 1 << bits.Len(uint(max(capacity*2, 64)))
	return &wordTable{w: w, slots: make([]uint32, size), keys: make([]uint64, 0, capacity*w)}
}

func hashWords(k []uint64) uint64 {
	h := uint64(0x9E3779B97F4A7C15)
	for _, x := range k {
		hi, lo := bits.Mul64(h^x, 0x9FB21C651E98DF25)
		h = hi ^ lo
	}
	return h
}

func (t *wordTable) equal(i uint32, k []uint64) bool {
	at := t.keys[int(i)*t.w:]
	for j, x := range k {
		if at[j] != x {
			return false
		}
	}
	return true
}

func (t *wordTable) find(k []uint64) (uint32, bool) {
	mask := uint64(len(t.slots) - 1)
	for s := hashWords(k) & mask; ; s = (s + 1) & mask {
		e := t.slots[s]
		if e == 0 {
			return 0, false
		}
		if t.equal(e-1, k) {
			return e - 1, true
		}
	}
}

// insert returns the number of k, and whether it is new.
func (t *wordTable) insert(k []uint64) (uint32, bool) {
	if 2*(t.n+1) > len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for s := hashWords(k) & mask; ; s = (s + 1) & mask {
		e := t.slots[s]
		if e == 0 {
			t.keys = append(t.keys, k...)
			t.n++
			t.slots[s] = uint32(t.n)
			return uint32(t.n - 1), true
		}
		if t.equal(e-1, k) {
			return e - 1, false
		}
	}
}

func (t *wordTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for i := range t.n {
		s := hashWords(t.keys[i*t.w:(i+1)*t.w]) & mask
		for t.slots[s] != 0 {
			s = (s + 1) & mask
		}
		t.slots[s] = uint32(i + 1)
	}
}

// bytes returns the memory that the table takes.
func (t *wordTable) bytes() int64 { return int64(len(t.slots)*4 + cap(t.keys)*8) }
