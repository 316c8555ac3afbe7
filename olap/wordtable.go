package olap

import (
	"math/bits"
	"slices"
)

// wordTable is a set of keys of w words each, numbered in the order of insertion. It
// probes linearly, from the lower bits of the hash. A key of one word stands in its slot, so that a
// probe touches one cache line; of longer ones the slot has the lower half of the hash.
type wordTable struct {
	w     int
	keys  []uint64  // n*w
	one   []oneSlot // w == 1; a power of two
	slots []uint64  // w > 1: hash<<32 | number+1, 0 for free; a power of two
	n     int
}

type oneSlot struct {
	key    uint64
	number uint32 // +1; 0 for free
}

func newWordTable(w, capacity int) *wordTable {
	size := 1 << bits.Len(uint(max(capacity*2, 64)-1))
	t := &wordTable{w: w, keys: make([]uint64, 0, capacity*w)}
	if w == 1 {
		t.one = make([]oneSlot, size)
	} else {
		t.slots = make([]uint64, size)
	}
	return t
}

// clear removes all keys, of several words, and makes room for as many as n.
func (t *wordTable) clear(n int) {
	if size := 1 << bits.Len(uint(2*n)); size > len(t.slots) {
		t.slots = make([]uint64, size)
	} else {
		clear(t.slots)
	}
	t.keys, t.n = t.keys[:0], 0
}

// hashOne scatters to all bits: tables take the lower ones, partitions the upper ones.
func hashOne(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9E3779B97F4A7C15, 0x9FB21C651E98DF25)
	return hi ^ lo
}

func hashWords(k []uint64) uint64 {
	h := uint64(0x9E3779B97F4A7C15)
	for _, x := range k {
		hi, lo := bits.Mul64(h^x, 0x9FB21C651E98DF25)
		h = hi ^ lo
	}
	return h
}

// numberBits of a slot are the key's number plus one.
const numberBits = 32

func (t *wordTable) equal(i uint32, k []uint64) bool {
	at := t.keys[int(i)*t.w:]
	for j, x := range k {
		if at[j] != x {
			return false
		}
	}
	return true
}

// key returns the words of a number.
func (t *wordTable) key(i int) []uint64 { return t.keys[i*t.w : (i+1)*t.w] }

func (t *wordTable) find(k []uint64) (uint32, bool) {
	if t.w == 1 {
		mask := uint64(len(t.one) - 1)
		for s := hashOne(k[0]) & mask; ; s = (s + 1) & mask {
			e := &t.one[s]
			if e.number == 0 {
				return 0, false
			}
			if e.key == k[0] {
				return e.number - 1, true
			}
		}
	}
	mask := uint64(len(t.slots) - 1)
	h := hashWords(k)
	for s := h & mask; ; s = (s + 1) & mask {
		e := t.slots[s]
		if e == 0 {
			return 0, false
		}
		if i := uint32(e) - 1; e>>numberBits == h&(1<<numberBits-1) && t.equal(i, k) {
			return i, true
		}
	}
}

// number returns the numbers of values, which it gives to those that have none yet.
func (t *wordTable) number(a vec) vec {
	r := vec{v: make([]int64, len(a.v)), nulls: a.nulls}
	for i, v := range a.v {
		if a.nulls == nil || a.nulls[i] == 0 {
			n, _ := t.insert([]uint64{uint64(v)})
			r.v[i] = int64(n)
		}
	}
	return r
}

// insert returns the number of k, and whether it is new.
func (t *wordTable) insert(k []uint64) (uint32, bool) {
	if 2*(t.n+1) > max(len(t.one), len(t.slots)) {
		t.grow()
	}
	if t.w == 1 {
		return t.insertOne(k[0])
	}
	return t.insertHashed(k, hashWords(k))
}

// insertHashed is insert of a key of several words, for which there is room.
func (t *wordTable) insertHashed(k []uint64, h uint64) (uint32, bool) {
	mask := uint64(len(t.slots) - 1)
	for s := h & mask; ; s = (s + 1) & mask {
		e := t.slots[s]
		if e == 0 {
			t.keys = append(t.keys, k...)
			t.n++
			t.slots[s] = h<<numberBits | uint64(t.n)
			return uint32(t.n - 1), true
		}
		if i := uint32(e) - 1; e>>numberBits == h&(1<<numberBits-1) && t.equal(i, k) {
			return i, false
		}
	}
}

func (t *wordTable) insertOne(k uint64) (uint32, bool) {
	mask := uint64(len(t.one) - 1)
	for s := hashOne(k) & mask; ; s = (s + 1) & mask {
		e := &t.one[s]
		if e.number == 0 {
			t.keys = append(t.keys, k)
			t.n++
			e.key, e.number = k, uint32(t.n)
			return uint32(t.n - 1), true
		}
		if e.key == k {
			return e.number - 1, false
		}
	}
}

// insertAll writes the numbers of all keys, w words each, to index. It is insert for
// each, but that the first look at every slot depends on no other, so that the memory
// serves many at once.
func (t *wordTable) insertAll(keys []uint64, index []uint32) {
	if t.w != 1 {
		for len(index) > 0 {
			n := min(len(index), tileRows)
			t.insertLong(keys[:n*t.w], index[:n])
			keys, index = keys[n*t.w:], index[n:]
		}
		return
	}
	var missed [tileRows]uint16
	for len(index) > 0 {
		n := min(len(index), tileRows)
		ks, out := keys[:n], index[:n]
		mask := uint64(len(t.one) - 1)
		m := 0
		for j, k := range ks {
			e := &t.one[hashOne(k)&mask]
			out[j] = e.number - 1
			missed[m&(tileRows-1)] = uint16(j)
			m += int(b2i(e.key != k) | b2i(e.number == 0))
		}
		for _, j := range missed[:m] {
			if 2*(t.n+1) > len(t.one) {
				t.grow()
			}
			out[j], _ = t.insertOne(ks[j])
		}
		keys, index = keys[n:], index[n:]
	}
}

// insertLong is insertAll of up to tileRows keys of several words: their slots are read first, then
// the keys that these name.
func (t *wordTable) insertLong(keys []uint64, index []uint32) {
	var hashes [tileRows]uint64
	var missed [tileRows]uint16
	w, mask := t.w, uint64(len(t.slots)-1)
	if w == 2 {
		for j := range index {
			hashes[j&(tileRows-1)] = hashWords(keys[2*j : 2*j+2])
		}
	} else {
		for j := range index {
			hashes[j&(tileRows-1)] = hashWords(keys[j*w : (j+1)*w])
		}
	}
	m := 0
	for j := range index {
		h := hashes[j&(tileRows-1)]
		e := t.slots[h&mask]
		if index[j] = uint32(e) - 1; e>>numberBits != h&(1<<numberBits-1) {
			index[j] = noNumber // so has a free slot
		}
	}
	for j, i := range index {
		if i == noNumber || !t.equal(i, keys[j*w:(j+1)*w]) {
			missed[m&(tileRows-1)] = uint16(j)
			m++
		}
	}
	for _, j := range missed[:m] {
		if 2*(t.n+1) > len(t.slots) {
			t.grow()
		}
		index[j], _ = t.insertHashed(keys[int(j)*w:(int(j)+1)*w], hashes[j])
	}
}

// noNumber is of a key whose slot has another, or none.
const noNumber = 1<<32 - 1

func (t *wordTable) grow() {
	size := 4 * max(len(t.one), len(t.slots))
	if size > 1<<18 {
		size /= 2
	}
	// At once, as many as there are before it grows again.
	t.keys = slices.Grow(t.keys, size/2*t.w-len(t.keys))
	// From the first slot to the last, so that what is read and what is written are neighbours.
	if t.w == 1 {
		old := t.one
		t.one = make([]oneSlot, size)
		mask := uint64(size - 1)
		for _, e := range old {
			if e.number != 0 {
				s := hashOne(e.key) & mask
				for t.one[s].number != 0 {
					s = (s + 1) & mask
				}
				t.one[s] = e
			}
		}
		return
	}
	old := t.slots
	t.slots = make([]uint64, size)
	mask := uint64(size - 1)
	for _, e := range old {
		if e != 0 {
			s := e >> numberBits & mask
			for t.slots[s] != 0 {
				s = (s + 1) & mask
			}
			t.slots[s] = e
		}
	}
}

// bytes returns the memory that the table takes.
func (t *wordTable) bytes() int64 {
	return int64(len(t.one))*16 + int64(len(t.slots)+cap(t.keys))*8
}
