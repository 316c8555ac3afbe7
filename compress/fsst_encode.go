package compress

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// SymbolEncoder encodes strings by a table: at each place with the longest symbol that fits,
// so that equal strings have equal codes. Any number of goroutines may use it.
type SymbolEncoder struct {
	table Symbols
	// ones are the codes of symbols of one byte, escaped|byte where there is none.
	ones [256]uint16
	// longer are the symbols of two and more bytes, by their first two, the longest first;
	// first is where those of two bytes begin, less one, 0 for nowhere.
	longer []longSymbol
	first  [1 << 16]uint16
}

type longSymbol struct {
	word, mask uint64
	size       int
	code       uint16
	last       bool // of those that begin alike
}

// escaped marks what stands for an escaped byte; it is the first number that is no code.
const escaped = 256

func newSymbolEncoder(table *Symbols) *SymbolEncoder {
	e := &SymbolEncoder{table: *table}
	for b := range e.ones {
		e.ones[b] = uint16(escaped + b)
	}
	for code := range table.n {
		word, size := table.words[code], int(table.sizes[code])
		if size == 1 {
			e.ones[word] = uint16(code)
			continue
		}
		e.longer = append(e.longer, longSymbol{word: word, mask: ^uint64(0) >> (64 - 8*size), size: size, code: uint16(code)})
	}
	slices.SortFunc(e.longer, func(a, b longSymbol) int {
		return cmp.Or(cmp.Compare(uint16(a.word), uint16(b.word)), cmp.Compare(b.size, a.size), cmp.Compare(a.word, b.word))
	})
	for i := range e.longer {
		pair := uint16(e.longer[i].word)
		if e.first[pair] == 0 {
			e.first[pair] = uint16(i + 1)
		}
		e.longer[i].last = i+1 == len(e.longer) || uint16(e.longer[i+1].word) != pair
	}
	return e
}

// Table returns the encoder's table.
func (e *SymbolEncoder) Table() *Symbols { return &e.table }

// wordAt returns up to eight bytes of s from at on, the first one lowest, zeros behind.
func wordAt(s []byte, at int) uint64 {
	if at+8 <= len(s) {
		return binary.LittleEndian.Uint64(s[at:])
	}
	if len(s) >= 8 {
		return binary.LittleEndian.Uint64(s[len(s)-8:]) >> (8 * (8 - (len(s) - at)))
	}
	w := uint64(0)
	for i := len(s) - 1; i >= at; i-- {
		w = w<<8 | uint64(s[i])
	}
	return w
}

// longest returns the symbol that a string goes on with, and its size: a code, or
// escaped|byte. word is wordAt, left how many bytes there are, at least one.
func (e *SymbolEncoder) longest(word uint64, left int) (symbol uint16, size int) {
	if p := e.first[uint16(word)]; p != 0 {
		for i := int(p - 1); ; i++ {
			x := &e.longer[i]
			if word&x.mask == x.word && x.size <= left {
				return x.code, x.size
			}
			if x.last {
				break
			}
		}
	}
	return e.ones[byte(word)], 1
}

// Append appends the codes of s to b.
func (e *SymbolEncoder) Append(b, s []byte) []byte {
	for at := 0; at < len(s); {
		symbol, size := e.longest(wordAt(s, at), len(s)-at)
		if symbol >= escaped {
			b = append(b, SymbolEscape)
		}
		b = append(b, byte(symbol))
		at += size
	}
	return b
}

const (
	trainRounds = 5
	// singleGain favours symbols of one byte over what their bytes save: without them a
	// byte costs two.
	singleGain = 8
)

// TrainSymbols makes a table for strings like those of the sample, some ten kilobytes: the
// paper's Algorithm 3. It begins with no symbol, encodes the sample, and takes those
// symbols, and pairs of them that followed each other, that saved the most; and so on.
func TrainSymbols(sample [][]byte) *SymbolEncoder {
	e := newSymbolEncoder(&Symbols{})
	pairs := make([]uint32, 2*escaped*2*escaped)
	for range trainRounds {
		singles := [2 * escaped]uint32{}
		clear(pairs)
		for _, s := range sample {
			before := -1
			for at := 0; at < len(s); {
				symbol, size := e.longest(wordAt(s, at), len(s)-at)
				singles[symbol]++
				if before >= 0 {
					pairs[before*2*escaped+int(symbol)]++
				}
				before = int(symbol)
				at += size
			}
		}
		e = newSymbolEncoder(e.choose(&singles, pairs))
	}
	return e
}

// candidate is a symbol that the next table may have.
type candidate struct {
	word uint64
	size int
	gain uint64
}

// choose returns the table of the symbols that would save the most bytes of the sample.
func (e *SymbolEncoder) choose(singles *[2 * escaped]uint32, pairs []uint32) *Symbols {
	type key struct {
		word uint64
		size int
	}
	gains := map[key]uint64{}
	symbol := func(s int) (uint64, int) {
		if s >= escaped {
			return uint64(s - escaped), 1
		}
		return e.table.words[s], int(e.table.sizes[s])
	}
	least := uint32(2)
	for a := range 2 * escaped {
		if singles[a] == 0 {
			continue
		}
		word, size := symbol(a)
		gain := uint64(size) * uint64(singles[a])
		if size == 1 {
			gain *= singleGain
		}
		gains[key{word, size}] += gain
		if size == SymbolBytes {
			continue
		}
		for b, count := range pairs[a*2*escaped : (a+1)*2*escaped] {
			if count < least {
				continue
			}
			other, more := symbol(b)
			all := min(size+more, SymbolBytes)
			joined := word | other<<(8*size)
			gains[key{joined & (^uint64(0) >> (64 - 8*all)), all}] += uint64(all) * uint64(count)
		}
	}
	best := make([]candidate, 0, len(gains))
	for k, gain := range gains {
		best = append(best, candidate{k.word, k.size, gain})
	}
	slices.SortFunc(best, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(bits.Reverse64(a.word), bits.Reverse64(b.word)), cmp.Compare(a.size, b.size))
	})
	t := &Symbols{}
	for _, c := range best[:min(len(best), symbolsMax)] {
		t.words[t.n], t.sizes[t.n] = c.word, uint8(c.size)
		t.n++
	}
	return t
}
