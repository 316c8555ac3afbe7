package colstore

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"unsafe"

	"pgaccel/compress"
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

// arrays are what a dictionary consists of: the strings of the copy, packed where they are
// many, and those that came one by one, with a hash table. They lie in column memory and
// hold no Go pointers. A version shares them with the writer, who goes on to fill entries
// past the version's last code and stores into slots: those are read and written
// atomically, and a reader passes by codes that are not its version's.
type arrays struct {
	base    *packed  // codes 0..first-1; nil for none
	first   int      // code of entries[0]
	blocks  [][]byte // each string within one block
	entries []entry  // by code less first; len is the capacity
	slots   []uint32 // open addressing from firstSlot: place in entries+1, 0 for free; a power of two
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

// find looks for b among the first n codes.
func (d *arrays) find(b []byte, n int) (code uint32, ok bool) {
	if d.base != nil {
		if code, ok = d.base.find(b); ok {
			return code, true
		}
	}
	_, code, ok = d.probe(b, maphash.Bytes(hashSeed, b), n)
	return code, ok
}

// probe looks for b among the first n codes that are not packed. Where it is missing, slot
// is the first free one after those of its hash.
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
		if at := int(taken - 1); d.first+at < n && d.entries[at].hash == uint32(hash>>32) && bytes.Equal(d.entry(at), b) {
			return slot, uint32(d.first + at), true
		}
	}
}

// entry returns the string at a place in entries.
func (d *arrays) entry(at int) []byte {
	e := &d.entries[at]
	return d.blocks[e.block][e.at : e.at+e.size : e.at+e.size]
}

// bytes returns the string of a code: a copy of a packed one.
func (d *arrays) bytes(code uint32) []byte {
	if int(code) < d.first {
		return d.base.append(nil, code)
	}
	return d.entry(int(code) - d.first)
}

// append appends the string of a code to b.
func (d *arrays) append(b []byte, code uint32) []byte {
	if int(code) < d.first {
		return d.base.append(b, code)
	}
	return append(b, d.entry(int(code)-d.first)...)
}

// dictionary is the writers' side of a Dict.
type dictionary struct {
	mu sync.Mutex
	arrays
	room  []byte // what is left of the last block
	n     int    // packed ones included
	text  *block // memory of the strings that are not packed
	table *block // memory of entries and slots

	ranking ranking
}

func newDictionary(a *arena) *dictionary {
	return &dictionary{text: newBlock(a), table: newBlock(a)}
}

// add returns the code of b, a new one where b is new. hash is maphash.Bytes(hashSeed, b).
func (d *dictionary) add(b []byte, hash uint64) (code uint32, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.base != nil {
		if code, ok := d.base.find(b); ok {
			return code, nil
		}
	}
	if d.n-d.first == len(d.entries) {
		if err := d.grow(); err != nil {
			return 0, err
		}
	}
	slot, code, ok := d.probe(b, hash, d.n)
	if ok {
		return code, nil
	}
	if len(d.room) < len(b) || len(d.blocks) == 0 {
		size := max(len(b), min(blockBytesMax, blockBytesMin<<min(len(d.blocks), 16)))
		mem, err := d.text.alloc(size)
		if err != nil {
			return 0, err
		}
		d.blocks = append(d.blocks, mem)
		d.room = mem
	}
	last := len(d.blocks) - 1
	at := len(d.blocks[last]) - len(d.room)
	copy(d.room, b)
	d.room = d.room[len(b):]
	place := d.n - d.first
	d.entries[place] = entry{uint32(last), uint32(at), uint32(len(b)), uint32(hash >> 32)}
	atomic.StoreUint32(&d.slots[slot], uint32(place)+1)
	d.n++
	return uint32(d.n - 1), nil
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
	inRanges(d.n-d.first, func(from, to int) {
		for at := from; at < to; at++ {
			slot := firstSlot(d.entries[at].hash, mask)
			for !atomic.CompareAndSwapUint32(&d.slots[slot], 0, uint32(at)+1) {
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

// pack packs all strings, which are in order, and gives back the memory that they had.
// Nobody else may use the dictionary, nor have a version of it.
func (d *dictionary) pack() error { return d.packStrings(d.n, d.entry) }

// packStrings makes of the dictionary one of n strings, in order and distinct.
func (d *dictionary) packStrings(n int, at func(i int) []byte) error {
	base, err := pack(d.text.purse.arena, n, at, d.ranking.padded)
	if err != nil {
		return err
	}
	d.setBase(base)
	return nil
}

// setBase makes of the dictionary that of packed strings.
func (d *dictionary) setBase(base *packed) {
	d.close()
	a := base.mem.purse.arena
	*d = dictionary{arrays: arrays{base: base, first: base.n}, n: base.n, text: newBlock(a), table: newBlock(a),
		ranking: ranking{memcmp: d.ranking.memcmp, padded: d.ranking.padded}}
}

// memory is that of the arrays, as they are now.
func (d *dictionary) memory() []*block {
	all := []*block{d.text, d.table}
	if d.base != nil {
		all = append(all, d.base.mem)
	}
	return all
}

// close gives the memory back.
func (d *dictionary) close() {
	for _, b := range d.memory() {
		b.release()
	}
}

// memory is what the version keeps.
func (d *Dict) memory() []*block {
	all := []*block{d.source.text, d.table}
	if d.base != nil {
		all = append(all, d.base.mem)
	}
	return all
}

func (d *Dict) retain() {
	for _, b := range d.memory() {
		b.retain()
	}
}

func (d *Dict) release() {
	for _, b := range d.memory() {
		b.release()
	}
}

// size is the column memory that the version keeps.
func (d *Dict) size() (bytes int64) {
	for _, b := range d.memory() {
		bytes += b.bytes.Load()
	}
	return bytes
}

// Len returns the number of distinct strings.
func (d *Dict) Len() int { return d.n }

// Ordered returns the first code that is not in order: the strings of those before it are in that of their
// bytes; of char(n), of what they are without trailing blanks.
func (d *Dict) Ordered() int { return d.first }

// At returns the string of a code: a copy, which outlives the table.
func (d *Dict) At(code int64) string {
	var room [256]byte
	return string(d.AppendBytes(room[:0], code))
}

// Bytes returns the string of a code: without a copy where the dictionary is small, else
// AppendBytes into memory of one's own is faster. It must not be written, and is valid as
// long as the table is held.
func (d *Dict) Bytes(code int64) []byte {
	d.check(code)
	return d.bytes(uint32(code))
}

// AppendBytes appends the string of a code to b.
func (d *Dict) AppendBytes(b []byte, code int64) []byte {
	d.check(code)
	return d.append(b, uint32(code))
}

// Each calls f with the strings of all codes from from to to-1, in their order, until it
// returns false. That is the fastest way to see many. A string must not be written, and is
// valid until f returns.
func (d *Dict) Each(from, to int64, f func(code int64, s []byte) bool) {
	if from < 0 || to > int64(d.n) {
		panic("BUG: codes outside the dictionary")
	}
	ended := false
	if packed := min(to, int64(d.first)); from < packed {
		d.base.each(int(from), int(packed), func(code int, s []byte) bool {
			ended = !f(int64(code), s)
			return !ended
		})
		from = packed
	}
	for ; from < to && !ended; from++ {
		ended = !f(from, d.entry(int(from)-d.first))
	}
}

func (d *Dict) check(code int64) {
	if uint64(code) >= uint64(d.n) {
		panic("BUG: code outside the dictionary")
	}
}

// EachView is Each with strings, which are valid until f returns: whoever keeps one longer clones it.
func (d *Dict) EachView(from, to int64, f func(code int64, s string)) {
	d.Each(from, to, func(code int64, b []byte) bool {
		f(code, unsafe.String(unsafe.SliceData(b), len(b)))
		return true
	})
}

// EachRun is EachView of strings in their order: f says how many bytes of a string decide what it makes of it, and does not see
// those that have these and follow it, up to the next one that it sees. -1: nothing but all of it.
func (d *Dict) EachRun(from, to int64, f func(code int64, s string) (bytes int)) {
	if from < 0 || to > int64(d.n) {
		panic("BUG: codes outside the dictionary")
	}
	if packed := min(to, int64(d.first)); from < packed {
		d.base.eachRun(int(from), int(packed), func(code int, b []byte) int {
			return f(int64(code), unsafe.String(unsafe.SliceData(b), len(b)))
		})
		from = packed
	}
	d.EachView(from, to, func(code int64, s string) { f(code, s) })
}

// Matcher returns the form of p for EachMatch; nil where EachView does as well, as no strings are
// encoded.
func (d *Dict) Matcher(p *compress.Pattern) *compress.Matcher {
	if d.base == nil || d.base.symbols == nil {
		return nil
	}
	return p.Matcher(d.base.symbols)
}

// EachMatch calls f with whether the strings of codes from from to to-1 are matched by p, of which
// m is the Matcher.
func (d *Dict) EachMatch(from, to int64, p *compress.Pattern, m *compress.Matcher, f func(code int64, ok bool)) {
	if from < 0 || to > int64(d.n) {
		panic("BUG: codes outside the dictionary")
	}
	if packed := min(to, int64(d.first)); from < packed {
		d.base.eachMatch(int(from), int(packed), p, m, func(code int, ok bool) { f(int64(code), ok) })
		from = packed
	}
	for ; from < to; from++ {
		f(from, p.Match(d.entry(int(from)-d.first)))
	}
}

// Blocks are the strings of codes 0..Strings-1 as they lie in column memory (packed.go draws it), for a device. They
// are valid as long as the table is held.
type Blocks struct {
	ID      uint64 // of the content, never again used for another
	Strings int
	Data    []byte
	Starts  []uint32 // of blocks in Data, and where the last one ends
}

// Blocks returns the strings that are packed: none where that are few.
func (d *Dict) Blocks() Blocks {
	if d.base == nil {
		return Blocks{}
	}
	return Blocks{ID: d.base.id, Strings: d.base.n, Data: d.base.data, Starts: d.base.starts}
}

// CodeLengths says what each code of a packed string adds to its length (compress.Symbols.CodeLengths; where strings are not encoded, compress.CodeLengths).
func (d *Dict) CodeLengths(characters bool) []uint8 {
	if d.base == nil || d.base.symbols == nil {
		return compress.CodeLengths(characters)
	}
	return d.base.symbols.CodeLengths(characters)
}

// Longest bounds the bytes of a string.
func (d *Dict) Longest() (bytes int64) {
	if d.base != nil {
		if bytes = d.base.mostCodes(); d.base.symbols != nil {
			bytes *= compress.SymbolBytes
		}
	}
	for at := range d.n - d.first {
		bytes = max(bytes, int64(d.entries[at].size))
	}
	return bytes
}

// Find returns the code of a string.
func (d *Dict) Find(s string) (code int64, ok bool) {
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	c, ok := d.find(b, d.n)
	return int64(c), ok
}
