package colstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync"
)

// packedMin is how many strings are packed: fewer cost little as they are, and are had
// without decoding.
const packedMin = 512

// errPacked is what pack fails with where strings are too long for its places.
var errPacked = errors.New("too many bytes for a packed dictionary")

// pack makes a packed dictionary of n strings, in order and distinct. Several goroutines
// call at.
func pack(a *arena, n int, at func(i int) []byte, padded bool) (*packed, error) {
	var mu sync.Mutex
	var pieces []blockPiece
	inRanges(n, func(from, to int) {
		w := blockPiece{first: (from + blockStrings - 1) / blockStrings}
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
	p := &packed{n: n, padded: padded, mem: newBlock(a)}
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

// blockPiece is some blocks, one after the other.
type blockPiece struct {
	first  int // block
	starts []int
	data   []byte
}

// add appends a block of n strings.
func (w *blockPiece) add(n int, at func(i int) []byte) {
	var text [blockStrings][]byte
	var lengths, shares [blockStrings]int
	head := at(0)
	least, leastShare := len(head), sharedMax
	for i := range n {
		text[i] = at(i)
		lengths[i] = len(text[i])
		least = min(least, lengths[i])
		if i > 0 {
			shares[i] = min(commonBytes(head, text[i]), sharedMax)
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
