package colstore

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Dict is one version of the dictionary of a text column: distinct strings and their
// codes 0..Len-1, in no particular order. Later versions only add codes. It is
// immutable, safe for any number of readers, and valid as long as its Table is held.
type Dict struct {
	arrays
	n      int
	source *dictionary
	table  *block // memory of entries and slots
}

// arrays are what a dictionary consists of. They lie in column memory and hold no Go
// pointers. A version shares them with the writer, who goes on to fill entries past
// the version's last code and stores into slots: those are read and written
// atomically, and a reader passes by codes that are not its version's.
type arrays struct {
	blocks  [][]byte // each string within one block
	entries []entry  // by code; len is the capacity
	slots   []uint32 // open addressing from firstSlot: code+1, 0 for free; a power of two
}

// entry says where a string lies, and the upper half of its hash.
type entry struct{ block, at, size, hash uint32 }

// firstSlot is where the search for a string begins. It needs no more of the hash than an
// entry keeps, so that a larger table is filled without a look at the strings.
func firstSlot(hash, mask uint32) uint32 { return hash & mask }

var hashSeed = maphash.MakeSeed()

const (
	blockBytesMin = 4 << 10
	blockBytesMax = 1 << 20
	entriesMin    = 64
)

// probe looks for b among the first n codes. Where it is missing, slot is the first
// free one after those of its hash.
func (d *arrays) probe(b []byte, hash uint64, n int) (slot uint32, code uint32, ok bool) {
	if len(d.slots) == 0 {
		return 0, 0, false
	}
	mask := uint32(len(d.slots) - 1)
	for slot = firstSlot(uint32(hash>>32), mask); ; slot = (slot + 1) & mask {
		taken := atomic.LoadUint32(&d.slots[slot])
		if taken == 0 {
			return slot, 0, false
		}
		if code = taken - 1; int(code) < n && d.entries[code].hash == uint32(hash>>32) && bytes.Equal(d.bytes(code), b) {
			return slot, code, true
		}
	}
}

func (d *arrays) bytes(code uint32) []byte {
	e := &d.entries[code]
	return d.blocks[e.block][e.at : e.at+e.size : e.at+e.size]
}

// dictionary is the writers' side of a Dict.
type dictionary struct {
	mu sync.Mutex
	arrays
	room  []byte // what is left of the last block
	n     int
	text  *block // memory of the strings
	table *block // memory of entries and slots

	ranking ranking
}

func newDictionary(a *arena) *dictionary {
	return &dictionary{text: newBlock(a), table: newBlock(a)}
}

// add returns the code of b, a new one where b is new, and the dictionary's copy
// of b. hash is maphash.Bytes(hashSeed, b).
func (d *dictionary) add(b []byte, hash uint64) (code uint32, kept []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == len(d.entries) {
		if err := d.grow(); err != nil {
			return 0, nil, err
		}
	}
	slot, code, ok := d.probe(b, hash, d.n)
	if ok {
		return code, d.bytes(code), nil
	}
	if len(d.room) < len(b) || len(d.blocks) == 0 {
		size := max(len(b), min(blockBytesMax, blockBytesMin<<min(len(d.blocks), 16)))
		mem, err := d.text.alloc(size)
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
	atomic.StoreUint32(&d.slots[slot], code+1)
	d.n++
	return code, d.bytes(code), nil
}

// grow doubles the room for entries, and the hash table with it: at most half of
// its slots are taken. Versions keep the arrays that they have.
func (d *dictionary) grow() error {
	size := max(entriesMin, 2*len(d.entries))
	table := newBlock(d.table.purse.arena)
	entries, err := table.alloc(size * int(unsafe.Sizeof(entry{})))
	if err != nil {
		return err
	}
	slots, err := table.alloc(2 * size * 4)
	if err != nil {
		table.release()
		return err
	}
	was := d.entries
	d.entries, d.slots = view[entry](entries), view[uint32](slots)
	inRanges(len(was), func(from, to int) { copy(d.entries[from:to], was[from:to]) })
	d.rehash()
	d.table.release()
	d.table = table
	return nil
}

// rehash fills the slots. Nobody else looks at them.
func (d *dictionary) rehash() {
	inRanges(len(d.slots), func(from, to int) { clear(d.slots[from:to]) })
	mask := uint32(len(d.slots) - 1)
	inRanges(d.n, func(from, to int) {
		for code := from; code < to; code++ {
			slot := firstSlot(d.entries[code].hash, mask)
			for !atomic.CompareAndSwapUint32(&d.slots[slot], 0, uint32(code)+1) {
				slot = (slot + 1) & mask
			}
		}
	})
}

// version returns what the dictionary holds now. Its memory is the dictionary's:
// whoever keeps it retains the dictionary's text and the version's table.
func (d *dictionary) version() *Dict {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Dict{arrays: d.arrays, n: d.n, source: d, table: d.table}
}

func (d *Dict) retain() {
	d.source.text.retain()
	d.table.retain()
}

func (d *Dict) release() {
	d.source.text.release()
	d.table.release()
}

// size is the column memory that the version keeps.
func (d *Dict) size() int64 { return d.source.text.bytes.Load() + d.table.bytes.Load() }

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

// View is Bytes as a string: it is valid as long as the table is held, and whoever keeps it
// longer clones it.
func (d *Dict) View(code int64) string {
	b := d.Bytes(code)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Find returns the code of a string.
func (d *Dict) Find(s string) (code int64, ok bool) {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	_, c, ok := d.probe(b, maphash.Bytes(hashSeed, b), d.n)
	return int64(c), ok
}
