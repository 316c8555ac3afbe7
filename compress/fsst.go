package compress

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Symbols is a symbol table of FSST (package comment, Strings). It is immutable once made,
// has no pointers, and decodes without allocating.
type Symbols struct {
	n     int
	words [256]uint64 // by code, first byte lowest, zeros behind the last
	sizes [256]uint8  // 0 for codes that stand for nothing
}

const (
	// SymbolEscape is the code of a byte that is no symbol's: the next byte is that byte.
	SymbolEscape = 255
	symbolsMax   = 255
	// SymbolBytes is how many bytes a symbol has, at most.
	SymbolBytes = 8
)

// Append appends the bytes of the table to b.
func (t *Symbols) Append(b []byte) []byte {
	b = append(append(b, byte(t.n)), t.sizes[:t.n]...)
	for code := range t.n {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], t.words[code])
		b = append(b, word[:t.sizes[code]]...)
	}
	return b
}

// ParseSymbols reads a table that b begins with, and returns what comes behind it. The error
// is ErrCorrupt.
func ParseSymbols(b []byte) (t *Symbols, rest []byte, err error) {
	corrupt := func(what string) (*Symbols, []byte, error) {
		return nil, nil, fmt.Errorf("%w: symbols: %s", ErrCorrupt, what)
	}
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return corrupt("no room for the sizes")
	}
	t = &Symbols{n: int(b[0])}
	sizes := b[1 : 1+t.n]
	b = b[1+t.n:]
	for code, size := range sizes {
		if size == 0 || size > SymbolBytes {
			return corrupt(fmt.Sprintf("one of %d bytes", size))
		}
		if int(size) > len(b) {
			return corrupt("no room for them")
		}
		var word [8]byte
		copy(word[:], b[:size])
		t.words[code], t.sizes[code] = binary.LittleEndian.Uint64(word[:]), size
		b = b[size:]
	}
	return t, b, nil
}

// Size returns how many bytes codes stand for.
func (t *Symbols) Size(codes []byte) (n int) {
	for i := 0; i < len(codes); i++ {
		if codes[i] != SymbolEscape {
			n += int(t.sizes[codes[i]])
		} else if i++; i < len(codes) {
			n++
		}
	}
	return n
}

// wholeCodes is how many codes are decoded into room for the longest symbols without a look
// at how long theirs are.
const wholeCodes = 512

// AppendDecoded appends to b what codes stand for. Codes that are no symbol's, and an escape
// at the end, stand for nothing: any bytes can be decoded.
func (t *Symbols) AppendDecoded(b, codes []byte) []byte {
	n := len(b)
	room := SymbolBytes * len(codes)
	if len(codes) > wholeCodes {
		room = t.Size(codes) + SymbolBytes
	}
	b = slices.Grow(b, room)
	out := b[:n+room]
	for len(codes) > 0 {
		for len(codes) >= 4 { // as long as none of four is an escape
			w := binary.LittleEndian.Uint32(codes)
			if inverse := ^w; (inverse-0x01010101)&^inverse&0x80808080 != 0 {
				break
			}
			binary.LittleEndian.PutUint64(out[n:], t.words[uint8(w)])
			n += int(t.sizes[uint8(w)])
			binary.LittleEndian.PutUint64(out[n:], t.words[uint8(w>>8)])
			n += int(t.sizes[uint8(w>>8)])
			binary.LittleEndian.PutUint64(out[n:], t.words[uint8(w>>16)])
			n += int(t.sizes[uint8(w>>16)])
			binary.LittleEndian.PutUint64(out[n:], t.words[w>>24])
			n += int(t.sizes[w>>24])
			codes = codes[4:]
		}
		if len(codes) == 0 {
			break
		}
		code := codes[0]
		codes = codes[1:]
		if code != SymbolEscape {
			binary.LittleEndian.PutUint64(out[n:], t.words[code])
			n += int(t.sizes[code])
		} else if len(codes) > 0 {
			out[n] = codes[0]
			n, codes = n+1, codes[1:]
		}
	}
	return out[:n]
}

// Common returns how many bytes two encoded strings have in common that are whole codes.
func (t *Symbols) Common(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		size := 1
		if a[n] == SymbolEscape {
			if size = 2; n+1 >= len(a) || n+1 >= len(b) || a[n+1] != b[n+1] {
				return n
			}
		}
		n += size
	}
	return n
}

// CodeLengths says what each byte adds to a string's length: 1, or of characters 1 where one begins, by UTF-8. It is by the byte.
func CodeLengths(characters bool) []uint8 {
	adds := make([]uint8, 256)
	for c := range adds {
		if !characters || c&0xc0 != 0x80 {
			adds[c] = 1
		}
	}
	return adds
}

// CodeLengths is CodeLengths by codes, and behind them by bytes that follow an escape: code 255 adds escapeFollows.
func (t *Symbols) CodeLengths(characters bool) []uint8 {
	bytes := CodeLengths(characters)
	adds := make([]uint8, 256, 512)
	for code := range adds {
		for i := range t.sizes[code] {
			adds[code] += bytes[uint8(t.words[code]>>(8*i))]
		}
	}
	adds[SymbolEscape] = escapeFollows
	return append(adds, bytes...)
}

// escapeFollows is what CodeLengths has of an escape, and a flag that no length of a symbol has.
const escapeFollows = 1 << 7
