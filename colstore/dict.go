package colstore

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
)

// Dict is the dictionary of a text column: distinct strings and their codes
// 0..Len-1, in no particular order. Strings, entries and the hash table lie in
// column memory and hold no Go pointers. Once its table is finished it is
// immutable and safe for any number of readers.
type Dict struct {
	mu    sync.Mutex // until the loader's Finish
	purse purse

	blocks  [][]byte // strings, each within one block
	room    []byte   // what is left of the last block
	entries []entry  // by code; len is the capacity
	slots   []uint32 // open addressing: code+1, 0 for free; a power of two
	n       int

	ranks []int32
}

// entry says where a string lies, and the upper half of its hash.
type entry struct{ block, at, size, hash uint32 }

var hashSeed = maphash.MakeSeed()

const (
	blockBytesMin = 4 << 10
	blockBytesMax = 1 << 20
	entriesMin    = 64
)

// add returns the code of b, a new one where b is new, and the dictionary's copy
// of b. hash is maphash.Bytes(hashSeed, b).
func (d *Dict) add(b []byte, hash uint64) (code uint32, kept []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == len(d.entries) {
		if err := d.grow(); err != nil {
			return 0, nil, err
		}
	}
	slot, code, ok := d.probe(b, hash)
	if ok {
		return code, d.bytes(code), nil
	}
	if len(d.room) < len(b) || len(d.blocks) == 0 {
		size := max(len(b), min(blockBytesMax, blockBytesMin<<min(len(d.blocks), 16)))
		mem, err := d.purse.alloc(size)
		if err != nil {
			return 0, nil, err
		}
		d.blocks = append(d.blocks, mem)
		d.room = mem
	}
	last := len(d.blocks) - 1
	at := len(d.blocks[last]) - len(d.room)
	copy(d.room, b)
	d.room = d.room[len(b):]
	code = uint32(d.n)
	d.entries[code] = entry{uint32(last), uint32(at), uint32(len(b)), uint32(hash >> 32)}
	d.slots[slot] = code + 1
	d.n++
	return code, d.bytes(code), nil
}

// probe looks for b. Where it is missing, slot is where it belongs.
func (d *Dict) probe(b []byte, hash uint64) (slot uint32, code uint32, ok bool) {
	mask := uint32(len(d.slots) - 1)
	for slot = uint32(hash) & mask; d.slots[slot] != 0; slot = (slot + 1) & mask {
		code = d.slots[slot] - 1
		if d.entries[code].hash == uint32(hash>>32) && bytes.Equal(d.bytes(code), b) {
			return slot, code, true
		}
	}
	return slot, 0, false
}

// grow doubles the room for entries, and the hash table with it: at most half of
// its slots are taken.
func (d *Dict) grow() error {
	size := max(entriesMin, 2*len(d.entries))
	entries, err := d.purse.alloc(size * int(unsafe.Sizeof(entry{})))
	if err != nil {
		return err
	}
	slots, err := d.purse.alloc(2 * size * 4)
	if err != nil {
		d.purse.drop(entries)
		return err
	}
	was, wasSlots := d.entries, d.slots
	d.entries, d.slots = view[entry](entries), view[uint32](slots)
	copy(d.entries, was)
	d.rehash()
	if was != nil {
		d.purse.drop(memoryOf(was))
		d.purse.drop(memoryOf(wasSlots))
	}
	return nil
}

func memoryOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func (d *Dict) rehash() {
	clear(d.slots)
	mask := uint32(len(d.slots) - 1)
	for code := range d.n {
		// The entry keeps the upper half of the hash only.
		slot := uint32(maphash.Bytes(hashSeed, d.bytes(uint32(code)))) & mask
		for d.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		d.slots[slot] = uint32(code) + 1
	}
}

func (d *Dict) bytes(code uint32) []byte {
	e := &d.entries[code]
	return d.blocks[e.block][e.at : e.at+e.size : e.at+e.size]
}

// Len returns the number of distinct strings.
func (d *Dict) Len() int { return d.n }

// At returns the string of a code: a copy, which outlives the table.
func (d *Dict) At(code int64) string { return string(d.Bytes(code)) }

// Bytes returns the string of a code without a copy. It must not be written, and
// is valid as long as the table is held.
func (d *Dict) Bytes(code int64) []byte {
	if uint64(code) >= uint64(d.n) {
		panic("BUG: code outside the dictionary")
	}
	return d.bytes(uint32(code))
}

// Find returns the code of a string.
func (d *Dict) Find(s string) (code int64, ok bool) {
	if d.n == 0 {
		return 0, false
	}
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	_, c, ok := d.probe(b, maphash.Bytes(hashSeed, b))
	return int64(c), ok
}

// Ranks returns the rank of each code in the column's collation: a's string sorts
// before b's where Ranks()[a] < Ranks()[b]. It is nil where the order is not known.
// For C collations it is always known after Finish.
func (d *Dict) Ranks() []int32 { return d.ranks }

// SetRanks sets the ranks, before Publish. It takes over the slice, of Len ranks.
func (d *Dict) SetRanks(ranks []int32) {
	if len(ranks) != d.n {
		panic("BUG: as many ranks as strings are needed")
	}
	d.ranks = ranks
}

// rank sorts the strings as memcmp does and sets the ranks.
func (d *Dict) rank() error {
	mem, err := d.purse.alloc(d.n * 4)
	if err != nil {
		return err
	}
	// The first eight bytes decide most comparisons without a look at the strings.
	type key struct {
		prefix uint64
		code   uint32
	}
	keys := make([]key, d.n)
	for code := range keys {
		var first [8]byte
		copy(first[:], d.bytes(uint32(code)))
		keys[code] = key{binary.BigEndian.Uint64(first[:]), uint32(code)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return bytes.Compare(d.bytes(a.code), d.bytes(b.code))
	})
	d.ranks = view[int32](mem)[:d.n]
	for r, k := range keys {
		d.ranks[k.code] = int32(r)
	}
	return nil
}
