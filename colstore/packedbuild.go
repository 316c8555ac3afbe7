package colstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"pgaccel/compress"
)

// packedMin is how many strings are packed: fewer cost little as they are, and are had
// without decoding.
const packedMin = 512

// errPacked is what pack fails with where strings are too long for its places.
var errPacked = errors.New("too many bytes for a packed dictionary")

// pack makes a packed dictionary of n strings, in order and distinct. Several goroutines
// call at.
func pack(a *arena, n int, at func(i int) []byte, padded bool) (*packed, error) {
	encoder := trainSymbols(n, at)
	var mu sync.Mutex
	var pieces []blockPiece
	inRanges(n, func(from, to int) {
		w := blockPiece{first: (from + blockStrings - 1) / blockStrings, encoder: encoder}
		for b := w.first; b*blockStrings < to; b++ {
			w.add(min(blockStrings, n-b*blockStrings), func(i int) []byte { return at(b*blockStrings + i) })
		}
		mu.Lock()
		defer mu.Unlock()
		pieces = append(pieces, w)
	})
	slices.SortFunc(pieces, func(a, b blockPiece) int { return cmp.Compare(a.first, b.first) })
	size := 0
	for i := range pieces {
		size += len(pieces[i].data)
	}
	if size > packedMax {
		return nil, errPacked
	}
	p, err := newPacked(a, n, size, padded)
	if err != nil {
		return nil, err
	}
	if encoder != nil {
		if err := p.setSymbols(encoder.Table()); err != nil {
			p.mem.release()
			return nil, err
		}
	}
	data, block := p.data[:0], 0
	for i := range pieces {
		for _, at := range pieces[i].starts {
			p.starts[block] = uint32(len(data) + at)
			block++
		}
		data = append(data, pieces[i].data...)
	}
	p.starts[block] = uint32(size)
	if err := p.fence(); err != nil {
		p.mem.release()
		return nil, err
	}
	return p, nil
}

// newPacked takes memory for n strings in size bytes of blocks, which are not filled in.
func newPacked(a *arena, n, size int, padded bool) (*packed, error) {
	p := &packed{id: NewID(), n: n, padded: padded, mem: newBlock(a)}
	blocks := (n + blockStrings - 1) / blockStrings
	starts, err := p.mem.alloc(4 * (blocks + 1))
	if err == nil {
		p.data, err = p.mem.alloc(size + loadBytes)
	}
	if err != nil {
		p.mem.release()
		return nil, err
	}
	p.starts, p.data = view[uint32](starts)[:blocks+1], p.data[:size+loadBytes]
	clear(p.data[size:])
	return p, nil
}

// setSymbols keeps the table in column memory.
func (p *packed) setSymbols(t *compress.Symbols) error {
	mem, err := p.mem.alloc(int(unsafe.Sizeof(*t)))
	if err != nil {
		return err
	}
	p.symbols = (*compress.Symbols)(unsafe.Pointer(unsafe.SliceData(mem)))
	*p.symbols = *t
	return nil
}

const (
	sampleBytes  = 64 << 10 // a symbol table is made for so many
	sampleString = 2 << 10  // and no more of one string
)

// trainSymbols returns what encodes the strings, nil where that saves less than a twentieth.
func trainSymbols(n int, at func(i int) []byte) *compress.SymbolEncoder {
	cut := func(i int) []byte {
		s := at(i)
		return s[:min(len(s), sampleString)]
	}
	// As many as there is room for, at even distances, by the length of some.
	some, bytes := min(n, 256), 0
	for i := range some {
		bytes += len(cut(n * i / some))
	}
	if bytes == 0 {
		return nil
	}
	count := min(n, max(sampleBytes*some/bytes, 1))
	sample := make([][]byte, count)
	bytes = 0
	for i := range sample {
		sample[i] = cut(n * i / count)
		bytes += len(sample[i])
	}
	e := compress.TrainSymbols(sample)
	var codes []byte
	for _, s := range sample {
		codes = e.Append(codes, s)
	}
	if len(codes) > bytes-bytes/20 {
		return nil
	}
	return e
}

// blockPiece is some blocks, one after the other.
type blockPiece struct {
	first   int // block
	encoder *compress.SymbolEncoder
	starts  []int
	data    []byte
	codes   [blockStrings][]byte // memory of a block's
}

// common returns how many bytes may be shared.
func (w *blockPiece) common(a, b []byte) int {
	if w.encoder == nil {
		return commonBytes(a, b)
	}
	return w.encoder.Table().Common(a[:min(len(a), sharedMax)], b)
}

// add appends a block of n strings.
func (w *blockPiece) add(n int, at func(i int) []byte) {
	var text [blockStrings][]byte
	var lengths, shares [blockStrings]int
	for i := range n {
		if text[i] = at(i); w.encoder != nil {
			w.codes[i] = w.encoder.Append(w.codes[i][:0], text[i])
			text[i] = w.codes[i]
		}
	}
	head := text[0]
	least, leastShare := len(head), sharedMax
	for i := range n {
		lengths[i] = len(text[i])
		least = min(least, lengths[i])
		if i > 0 {
			shares[i] = min(w.common(head, text[i]), sharedMax)
			leastShare = min(leastShare, shares[i])
		}
	}
	if n == 1 {
		leastShare = 0
	}
	least = min(least, 255)
	var most, mostShare uint
	for i := range n {
		lengths[i] -= least
		most |= uint(lengths[i])
		if i > 0 {
			mostShare |= uint(shares[i] - leastShare)
		}
	}
	wl, ws := bits.Len(most), bits.Len(mostShare)
	w.starts = append(w.starts, len(w.data))
	w.data = append(w.data, byte(wl), byte(ws), byte(least), byte(leastShare))
	w.data = appendFields(w.data, wl, lengths)
	var less [blockStrings]int
	for i := 1; i < n; i++ {
		less[i] = shares[i] - leastShare
	}
	w.data = appendFields(w.data, ws, less)
	for i := range n {
		w.data = append(w.data, text[i][shares[i]:]...)
	}
}

// appendFields packs a block's numbers in width bits each, two bytes for each bit.
func appendFields(b []byte, width int, values [blockStrings]int) []byte {
	word, used := uint64(0), 0
	for _, v := range values {
		word |= uint64(v) << used
		if used += width; used >= 32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(word))
			word, used = word>>32, used-32
		}
	}
	if used == 16 { // odd widths
		b = binary.LittleEndian.AppendUint16(b, uint16(word))
	}
	return b
}

func commonBytes(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
