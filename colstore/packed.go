package colstore

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"unsafe"

	"pgaccel/compress"
)

// packed holds the strings of a finished copy in their order: codes are positions. It is
// immutable. Strings are cut into blocks, and within a block each begins with as many bytes
// of the block's first string, its head, as the two have in common (front coding; Witten,
// Moffat, Bell: "Managing Gigabytes", 1999). They refer to the head, not to the string before
// them, so that one string is had without the others. There is no hash table: order finds them.
// Where that pays, strings are encoded by a symbol table (compress, Strings); then it is codes
// that are shared, and counted, whole ones.
//
//	data   +---------+---------+-- --+-----------+--------------+
//	       | block 0 | block 1 | ... | block n-1 | 8 zero bytes |  room to load words
//	       +---------+---------+-- --+-----------+--------------+
//
//	block  +-----+-----+-----+-----+---------------+---------------+------+----------+-- --+
//	       | wl  | ws  | l   | s   | 16 x wl bits  | 16 x ws bits  | head | suffix 1 | ... |
//	       +-----+-----+-----+-----+---------------+---------------+------+----------+-- --+
//	        widths in   least        lengths less l  bytes shared    l+.. bytes of
//	        bits, a     length and   of all strings  with the head,  string i that are
//	        byte each   shared                       less s          not shared
//
// Fields are packed with the lowest bits first; those of strings that the last block lacks
// are 0, as is the head's own second one.
type packed struct {
	id     uint64 // of its content, as Column.ID
	n      int
	starts []uint32 // of blocks in data, and where the last one ends
	data   []byte
	// symbols, in column memory, is the table that strings are encoded by; nil for none.
	symbols *compress.Symbols
	padded  bool // trailing blanks count for the order only where all else is equal (char(n))
	mem     *block
	longest atomic.Int64 // bounds the codes of a string; 0 until it is first asked for

	// What find begins with: all strings begin with common, and fences has the eight bytes
	// behind it of each fenceBlocks-th head, the first one highest.
	common []byte
	fences []uint64
}

const (
	blockStrings = 16
	blockHeader  = 4 // bytes
	sharedMax    = 255
	loadBytes    = 8 // behind data
	fenceBlocks  = 16
	packedMax    = 1<<32 - 1 // bytes of data
)

// field returns the i-th number of width bits, at most 32. Behind b is room to load a word.
func field(b []byte, width, i int) int {
	at := i * width
	return int(binary.LittleEndian.Uint64(b[at>>3:]) >> (at & 7) & (1<<width - 1))
}

// fieldSum returns the sum of the first n numbers of width bits.
func fieldSum(b []byte, width, n int) (sum int) {
	switch width {
	case 0:
		return 0
	case 1, 2, 3, 4: // all of a block's are in one word
		w, mask := binary.LittleEndian.Uint64(b), uint64(1)<<width-1
		for range n {
			sum += int(w & mask)
			w >>= width
		}
		return sum
	}
	for i := range n {
		sum += field(b, width, i)
	}
	return sum
}

// mostCodes bounds the codes of a string, by what lengths the fields of blocks have room for.
func (p *packed) mostCodes() (codes int64) {
	if codes = p.longest.Load(); codes > 0 {
		return codes
	}
	for _, at := range p.starts[:p.blocks()] {
		codes = max(codes, int64(p.data[at+2])+1<<p.data[at])
	}
	p.longest.Store(codes)
	return codes
}

// pieces returns the two pieces of memory that a string is.
func (p *packed) pieces(code uint32) (shared, own []byte) {
	b := p.data[p.starts[code/blockStrings]:]
	wl, ws, l, s := int(b[0]), int(b[1]), int(b[2]), int(b[3])
	lengths := b[blockHeader:]
	shares := lengths[2*wl:] // 16 fields of wl bits
	text := shares[2*ws:]
	i := int(code % blockStrings)
	if i == 0 {
		return nil, text[:l+field(lengths, wl, 0)]
	}
	at := i*l + fieldSum(lengths, wl, i) - (i-1)*s - fieldSum(shares, ws, i)
	share := s + field(shares, ws, i)
	return text[:share], text[at : at+l+field(lengths, wl, i)-share]
}

// append appends a string to b.
func (p *packed) append(b []byte, code uint32) []byte {
	shared, own := p.pieces(code)
	if p.symbols == nil {
		return append(append(b, shared...), own...)
	}
	return p.symbols.AppendDecoded(p.symbols.AppendDecoded(b, shared), own)
}

// packedBlock is a block whose strings are read one after the other.
type packedBlock struct {
	wl, ws, l, s          int
	lengths, shares, text []byte
}

func (p *packed) block(i int) packedBlock {
	data := p.data[p.starts[i]:]
	b := packedBlock{wl: int(data[0]), ws: int(data[1]), l: int(data[2]), s: int(data[3]), lengths: data[blockHeader:]}
	b.shares = b.lengths[2*b.wl:]
	b.text = b.shares[2*b.ws:]
	return b
}

// sizes returns how many bytes string i shares with the head, and has of its own.
func (b *packedBlock) sizes(i int) (share, own int) {
	if i > 0 {
		share = b.s + field(b.shares, b.ws, i)
	}
	return share, b.l + field(b.lengths, b.wl, i) - share
}

// each calls f with the strings of codes from..to-1, one after the other, which is faster than
// one by one; false ends it. A string is valid until f returns.
func (p *packed) each(from, to int, f func(code int, s []byte) bool) {
	var buf []byte
	for from < to {
		b := p.block(from / blockStrings)
		first := from / blockStrings * blockStrings
		for i, at := 0, 0; i < blockStrings && first+i < to; i++ {
			share, own := b.sizes(i)
			if first+i >= from {
				if p.symbols == nil {
					buf = append(append(buf[:0], b.text[:share]...), b.text[at:at+own]...)
				} else {
					buf = p.symbols.AppendDecoded(p.symbols.AppendDecoded(buf[:0], b.text[:share]), b.text[at:at+own])
				}
				if !f(first+i, buf) {
					return
				}
			}
			at += own
		}
		from = first + blockStrings
	}
}

// eachRun is each, but that f says how many bytes decide what it makes of a string; the strings that have these, which follow it,
// it does not see. That costs little where they share them with the head, and f has seen that. -1: nothing but all of it.
func (p *packed) eachRun(from, to int, f func(code int, s []byte) (bytes int)) {
	var buf, deciding []byte // of the last string that f has seen
	decided := false
	decode := func(b []byte, codes []byte) []byte {
		if p.symbols == nil {
			return append(b, codes...)
		}
		return p.symbols.AppendDecoded(b, codes)
	}
	for from < to {
		b := p.block(from / blockStrings)
		first := from / blockStrings * blockStrings
		enough := 0 // codes of the head that begin with deciding; more than are shared where the head does not; 0: not known
		for i, at := 0, 0; i < blockStrings && first+i < to; i++ {
			share, own := b.sizes(i)
			if first+i >= from && (i == 0 || enough == 0 || share < enough) {
				buf = decode(decode(buf[:0], b.text[:share]), b.text[at:at+own])
				if !decided || !bytes.HasPrefix(buf, deciding) {
					n := f(first+i, buf)
					if decided = n >= 0; decided {
						deciding = append(deciding[:0], buf[:n]...)
					}
					enough = 0
				}
				if decided && enough == 0 {
					enough = p.codesOf(b.text[:b.headCodes()], deciding)
				}
			}
			at += own
		}
		from = first + blockStrings
	}
}

// headCodes is how many codes of the block's head others can share.
func (b *packedBlock) headCodes() int {
	_, own := b.sizes(0)
	return min(own, sharedMax)
}

// codesOf returns how many of some codes stand for what begins with a text; more than sharedMax where all do not.
func (p *packed) codesOf(codes, text []byte) (n int) {
	var room [compress.SymbolBytes]byte
	for len(text) > 0 {
		size := 1
		if n < len(codes) && p.symbols != nil && codes[n] == compress.SymbolEscape {
			size = 2
		}
		if n+size > len(codes) {
			return sharedMax + 1
		}
		part := codes[n : n+size]
		if p.symbols != nil {
			part = p.symbols.AppendDecoded(room[:0], part)
		}
		k := min(len(part), len(text))
		if !bytes.Equal(part[:k], text[:k]) {
			return sharedMax + 1
		}
		text, n = text[k:], n+size
	}
	return n
}

// matchText is the most text of a block that eachState looks through at once.
const matchText = 4096

// eachMatch calls f with whether the strings of codes from..to-1, which are encoded, are matched by a pattern, of which m is
// the Matcher. Those that begin as all that is matched does follow each other.
func (p *packed) eachMatch(from, to int, pattern *compress.Pattern, m *compress.Matcher, f func(code int, ok bool)) {
	first, only := pattern.Prefix()
	if first == "" || p.padded {
		p.eachState(from, to, m, f)
		return
	}
	begin, end := p.prefixed(from, to, first)
	for code := from; code < begin; code++ {
		f(code, false)
	}
	if only {
		for code := begin; code < end; code++ {
			f(code, true)
		}
	} else {
		p.eachState(begin, end, m, f)
	}
	for code := end; code < to; code++ {
		f(code, false)
	}
}

// prefixed returns which of the codes from..to-1 are of strings with a prefix, where trailing blanks are as other bytes.
func (p *packed) prefixed(from, to int, prefix string) (begin, end int) {
	var room [256]byte
	at := func(code int) string {
		b := p.append(room[:0], uint32(code))
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	begin = bisect(from, to, func(code int) bool { return at(code) >= prefix })
	return begin, bisect(begin, to, func(code int) bool { return !strings.HasPrefix(at(code), prefix) })
}

// eachState is eachMatch by the automaton alone.
func (p *packed) eachState(from, to int, m *compress.Matcher, f func(code int, ok bool)) {
	var found [matchText / 64]uint64
	for first := from / blockStrings * blockStrings; first < to; first += blockStrings {
		b := p.block(first / blockStrings)
		var share, ends [blockStrings]int
		n, end := min(blockStrings, to-first), 0
		for i := range n {
			own := 0
			share[i], own = b.sizes(i)
			end += own
			ends[i] = end
		}
		jump := end <= matchText && m.Leaving(found[:], b.text, end)
		head := b.text[:min(ends[0], sharedMax)]
		var shared [sharedMax + 1]uint8 // states within the head
		for i, code := range head {
			shared[i+1] = m.Step(shared[i], []byte{code})
		}
		at := 0
		for i, end := range ends[:n] {
			if first+i >= from {
				state := shared[share[i]]
				if jump && state == 0 {
					state = m.Run(found[:], b.text, at, end)
				} else {
					state = m.Step(state, b.text[at:end])
				}
				f(first+i, m.Accepts(state))
			}
			at = end
		}
	}
}

// trimmed returns what orders a string first.
func (p *packed) trimmed(b []byte) []byte {
	if p.padded {
		return bytes.TrimRight(b, " ")
	}
	return b
}

// compareStrings is the order of a ranking: of the bytes, but padded strings are compared
// without their trailing blanks first.
func compareStrings(a, b []byte, padded bool) int {
	if padded {
		if c := bytes.Compare(bytes.TrimRight(a, " "), bytes.TrimRight(b, " ")); c != 0 {
			return c
		}
	}
	return bytes.Compare(a, b)
}

// prefixOf returns the first eight bytes as a number; where two differ, so do the strings.
func prefixOf(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var first [8]byte
	copy(first[:], b)
	return binary.BigEndian.Uint64(first[:])
}

func (p *packed) blocks() int { return len(p.starts) - 1 }

// fence makes what find begins with. The strings and their order are there.
func (p *packed) fence() error {
	mem, err := p.mem.alloc(8 * ((p.blocks() + fenceBlocks - 1) / fenceBlocks))
	if err != nil || p.n == 0 {
		return err
	}
	first, last := p.trimmed(p.append(nil, 0)), p.trimmed(p.append(nil, uint32(p.n-1)))
	n := 0
	for n < len(first) && n < len(last) && first[n] == last[n] {
		n++
	}
	p.common = bytes.Clone(first[:n])
	p.fences = view[uint64](mem)[:(p.blocks()+fenceBlocks-1)/fenceBlocks]
	var b []byte
	for i := range p.fences {
		b = p.append(b[:0], uint32(i*fenceBlocks*blockStrings))
		p.fences[i] = prefixOf(p.trimmed(b)[n:])
	}
	return nil
}

// find returns the code of a string.
func (p *packed) find(s []byte) (code uint32, ok bool) {
	t := p.trimmed(s)
	if p.n == 0 || !bytes.HasPrefix(t, p.common) {
		return 0, false
	}
	// Heads whose fence is less are below s, those whose fence is greater above.
	key := prefixOf(t[len(p.common):])
	below := bisect(0, len(p.fences), func(i int) bool { return p.fences[i] >= key })
	above := bisect(below, len(p.fences), func(i int) bool { return p.fences[i] > key })
	var room [256]byte
	buf := room[:0]
	greater := func(code int) bool {
		buf = p.append(buf[:0], uint32(code))
		return compareStrings(buf, s, p.padded) > 0
	}
	from, to := max(below-1, 0)*fenceBlocks, min(above*fenceBlocks, p.blocks())
	in := bisect(from, to, func(b int) bool { return greater(b * blockStrings) }) - 1
	if in < 0 {
		return 0, false
	}
	from = in * blockStrings
	at := bisect(from, min(from+blockStrings, p.n), greater) - 1
	if at < from {
		return 0, false
	}
	buf = p.append(buf[:0], uint32(at))
	return uint32(at), bytes.Equal(buf, s)
}

// bisect returns the first of [from, to) for which f holds, to where there is none. f holds
// for all behind the first.
func bisect(from, to int, f func(i int) bool) int {
	for from < to {
		if mid := int(uint(from+to) / 2); f(mid) {
			to = mid
		} else {
			from = mid + 1
		}
	}
	return from
}
