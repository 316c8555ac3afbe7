package colstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"pgaccel/compress"
)

// encodeDict returns a dictionary's file.
func encodeDict(d *Dict) []byte {
	var b []byte
	if d.base == nil {
		b = append(b, dictMagic...)
		b = binary.LittleEndian.AppendUint64(b, uint64(d.Len()))
	} else {
		var symbols []byte
		if d.base.symbols != nil {
			symbols = d.base.symbols.Append(nil)
		}
		blocks := d.base.data[:len(d.base.data)-loadBytes]
		b = append(b, packedMagic...)
		for _, n := range []int{d.Len(), d.first, len(blocks)} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(symbols)))
		padded := uint32(0)
		if d.base.padded {
			padded = 1
		}
		b = binary.LittleEndian.AppendUint32(b, padded)
		b = append(append(b, symbols...), blocks...)
	}
	for at := range d.Len() - d.first {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(d.entry(at))))
	}
	for at := range d.Len() - d.first {
		b = append(b, d.entry(at)...)
	}
	return sealed(b)
}

// dictFile is a dictionary's file, cut into its parts.
type dictFile struct {
	strings, packed int
	padded          bool   // packed ones are in the order of char(n)
	symbols, blocks []byte // of the packed ones
	lengthsAt       int    // where the lengths of others begin in the file
	lengths, text   []byte // of the others
}

// cutDict cuts a dictionary's file without its checksum. What is wrong with it is at a place.
func cutDict(b []byte) (f dictFile, at int, wrong string) {
	bad := func(at int, format string, args ...any) (dictFile, int, string) {
		return f, at, fmt.Sprintf(format, args...)
	}
	if len(b) < headerBytes || string(b[:magicBytes]) != dictMagic && string(b[:magicBytes]) != packedMagic {
		return bad(0, "no dictionary")
	}
	n, most := binary.LittleEndian.Uint64(b[8:]), uint64(len(b)-headerBytes)/4
	packed, f := uint64(0), dictFile{lengthsAt: headerBytes}
	if string(b[:magicBytes]) == packedMagic {
		if len(b) < packedHeader {
			return bad(len(b), "the file ends in its header")
		}
		word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
		rest := uint64(len(b) - packedHeader)
		blocks, symbols := word(24), word(32)&(1<<32-1)
		if symbols > rest || blocks > rest-symbols || blocks > packedMax {
			return bad(24, "blocks of %d bytes and symbols of %d, the file has %d", blocks, symbols, rest)
		}
		if packed = word(16); packed > n || packed > blocks/blockHeader*blockStrings {
			return bad(16, "%d of %d strings in %d bytes of blocks", packed, n, blocks)
		}
		if f.padded = word(32)>>32 == 1; word(32)>>33 != 0 {
			return bad(36, "an unknown order")
		}
		f.symbols = b[packedHeader:][:symbols]
		f.blocks = b[packedHeader+symbols:][:blocks]
		f.lengthsAt, most = packedHeader+int(symbols+blocks), (rest-symbols-blocks)/4
	}
	if n-packed > most {
		return bad(8, "%d strings, the file has room for %d lengths", n, most)
	}
	f.strings, f.packed = int(n), int(packed)
	f.lengths, f.text = b[f.lengthsAt:][:4*(n-packed)], b[f.lengthsAt+int(4*(n-packed)):]
	return f, 0, ""
}

// length returns that of string i of those that are not packed.
func (f *dictFile) length(i int) int { return int(binary.LittleEndian.Uint32(f.lengths[4*i:])) }

// decodeDict reads a dictionary's file into d, which is empty. Those strings from the
// beginning on that are in order are packed where they are packedMin or more.
func decodeDict(file []byte, d *dictionary, packedMin int) error {
	b, err := unseal(file)
	if err != nil {
		return err
	}
	corrupt := func(what string) error { return fmt.Errorf("%w: dictionary: %s", compress.ErrCorrupt, what) }
	f, _, wrong := cutDict(b)
	if wrong != "" {
		return corrupt(wrong)
	}
	ends := make([]int, f.strings-f.packed+1)
	for i := range f.strings - f.packed {
		ends[i+1] = ends[i] + f.length(i)
	}
	if ends[len(ends)-1] > len(f.text) {
		return corrupt("strings beyond its end")
	}
	at := func(i int) []byte { return f.text[ends[i]:ends[i+1]] }
	first := f.packed
	if f.packed > 0 {
		if f.padded != d.ranking.padded {
			return corrupt("another type's order")
		}
		p, err := parsePacked(d.text.purse.arena, f.packed, f.blocks, f.symbols, d.ranking.padded)
		if err != nil {
			return err
		}
		d.setBase(p)
	} else if first = inOrderFirst(f.strings, at, d.ranking.padded); first < packedMin {
		first = 0
	} else if err := d.packStrings(first, at); errors.Is(err, errPacked) {
		first = 0
	} else if err != nil {
		return err
	}
	for code := first; code < f.strings; code++ {
		s := at(code - f.packed)
		got, err := d.add(s, maphash.Bytes(hashSeed, s))
		if err != nil {
			return err
		}
		if int(got) != code {
			return corrupt("a string is there twice")
		}
	}
	return nil
}

// inOrderFirst returns how many strings from the first one on are in order.
func inOrderFirst(n int, at func(i int) []byte, padded bool) int {
	for i := 1; i < n; i++ {
		if compareStrings(at(i-1), at(i), padded) >= 0 {
			return i
		}
	}
	return n
}

// parsePacked reads blocks of n strings. The error is compress.ErrCorrupt, or of memory.
func parsePacked(a *arena, n int, blocks, symbols []byte, padded bool) (*packed, error) {
	p, err := newPacked(a, n, len(blocks), padded)
	if err != nil {
		return nil, err
	}
	copy(p.data, blocks)
	if err = p.parse(symbols); err == nil {
		err = p.fence()
	}
	if err != nil {
		p.mem.release()
		return nil, err
	}
	return p, nil
}

// parse finds where the blocks begin, and checks that they hold as many strings as they
// should, in order.
func (p *packed) parse(symbols []byte) error {
	corrupt := func(block int, what string) error {
		return fmt.Errorf("%w: block %d of a dictionary: %s", compress.ErrCorrupt, block, what)
	}
	if len(symbols) > 0 {
		t, rest, err := compress.ParseSymbols(symbols)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return corrupt(0, "bytes behind the symbols")
		}
		if err := p.setSymbols(t); err != nil {
			return err
		}
	}
	at, end := 0, len(p.data)-loadBytes
	for block := range p.blocks() {
		size, wrong := blockSize(p.data[at:], end-at, min(blockStrings, p.n-block*blockStrings))
		if wrong != "" {
			return corrupt(block, wrong)
		}
		p.starts[block] = uint32(at)
		at += size
	}
	p.starts[p.blocks()] = uint32(at)
	if at != end {
		return corrupt(p.blocks(), "bytes behind the last one")
	}
	var wrong atomic.Int64
	inRanges(p.n, func(from, to int) {
		var before []byte
		p.each(max(from-1, 0), to, func(code int, s []byte) bool {
			if code >= from && code > 0 && compareStrings(before, s, p.padded) >= 0 {
				wrong.Store(int64(code))
				return false
			}
			before = append(before[:0], s...)
			return true
		})
	})
	if code := wrong.Load(); code > 0 {
		return corrupt(int(code)/blockStrings, "strings are not in order")
	}
	return nil
}

// blockSize returns the bytes of a block of n strings that b begins with, which has so many
// and loadBytes more; and what is wrong with it.
func blockSize(b []byte, bytes, n int) (size int, wrong string) {
	if bytes < blockHeader {
		return 0, "no header"
	}
	wl, ws, l, s := int(b[0]), int(b[1]), int(b[2]), int(b[3])
	text := blockHeader + 2*wl + 2*ws
	if wl > 32 || ws > 8 || text > bytes {
		return 0, "fields too wide"
	}
	lengths, shares := b[blockHeader:], b[blockHeader+2*wl:]
	head := l + field(lengths, wl, 0)
	if field(shares, ws, 0) != 0 {
		return 0, "a head that shares"
	}
	size = text + head
	for i := 1; i < n; i++ {
		length, share := l+field(lengths, wl, i), s+field(shares, ws, i)
		if share > head || share > length {
			return 0, "more is shared than there is"
		}
		size += length - share
	}
	if size > bytes {
		return 0, "beyond the end"
	}
	return size, ""
}
