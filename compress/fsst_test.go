package compress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// decodeSymbolsReference appends what codes stand for, code by code, from the table's bytes.
func decodeSymbolsReference(b []byte, table *Symbols, codes []byte) []byte {
	file := table.Append(nil)
	n := int(file[0])
	var symbols [256]string
	text := file[1+n:]
	for code, size := range file[1 : 1+n] {
		symbols[code] = string(text[:size])
		text = text[size:]
	}
	for i := 0; i < len(codes); i++ {
		if codes[i] != 255 {
			b = append(b, symbols[codes[i]]...)
		} else if i++; i < len(codes) {
			b = append(b, codes[i])
		}
	}
	return b
}

// encodeSymbolsReference is SymbolEncoder.Append, with a look at every symbol.
func encodeSymbolsReference(b []byte, table *Symbols, s []byte) []byte {
	symbols := make([][]byte, table.n)
	for code := range symbols {
		symbols[code] = decodeSymbolsReference(nil, table, []byte{byte(code)})
	}
	for len(s) > 0 {
		best, size := -1, 0
		for code, symbol := range symbols {
			if len(symbol) > size && bytes.HasPrefix(s, symbol) {
				best, size = code, len(symbol)
			}
		}
		if best < 0 {
			b = append(b, 255, s[0])
			s = s[1:]
			continue
		}
		b = append(b, byte(best))
		s = s[size:]
	}
	return b
}

// symbolSamples are kinds of strings, by number.
var symbolSamples = map[string]func(i int) string{
	"words": func(i int) string {
		words := []string{"carefully ", "final ", "deposits ", "sleep ", "furiously ", "requests. "}
		var b strings.Builder
		for r := rand.New(rand.NewPCG(uint64(i), 1)); r.IntN(9) > 0; {
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	},
	"names": func(i int) string { return fmt.Sprintf("Customer#%09d", i) },
	"bytes": func(i int) string {
		var b [24]byte
		r := rand.New(rand.NewPCG(uint64(i), 2))
		for k := range 3 {
			binary.LittleEndian.PutUint64(b[8*k:], r.Uint64())
		}
		return string(b[:i%25])
	},
	"zeros":   func(i int) string { return string(make([]byte, i%20)) + strings.Repeat("\x00\xff", i%3) },
	"nothing": func(int) string { return "" },
}

// TestSymbols compares codes and what they are decoded to with the references.
func TestSymbols(t *testing.T) {
	sizes := []int{0, 1, 2, 7, 8, 9, 63, 64, 127, 128, 129, 511, 512, 513, 5000}
	for name, form := range symbolSamples {
		for _, n := range []int{0, 1, 300} {
			var sample [][]byte
			for i := range n {
				sample = append(sample, []byte(form(i)))
			}
			e := TrainSymbols(sample)
			table, rest, err := ParseSymbols(append(e.Table().Append(nil), "rest"...))
			if err != nil || string(rest) != "rest" || *table != *e.Table() {
				t.Fatalf("%s: the table came back as another: %v", name, err)
			}
			for other, text := range symbolSamples {
				long := ""
				for i := 0; len(long) < 5000 && other != "nothing"; i++ {
					long += text(i)
				}
				for _, size := range sizes {
					s := []byte(long[:min(size, len(long))])
					codes := e.Append([]byte("x"), s)[1:]
					if want := encodeSymbolsReference(nil, table, s); !bytes.Equal(codes, want) {
						t.Fatalf("table of %s: %q became %v, want %v", name, s, codes, want)
					}
					if got := table.AppendDecoded([]byte("y"), codes); string(got) != "y"+string(s) {
						t.Fatalf("table of %s: %q came back as %q", name, s, got[1:])
					}
					if got := decodeSymbolsReference(nil, table, codes); !bytes.Equal(got, s) {
						t.Fatalf("table of %s: the reference has %q for %q", name, got, s)
					}
					if got := table.Size(codes); got != len(s) {
						t.Errorf("Size is %d, want %d", got, len(s))
					}
				}
			}
		}
	}
}

// TestSymbolsPay: what symbols are for takes less than half.
func TestSymbolsPay(t *testing.T) {
	var sample [][]byte
	raw := 0
	for i := range 1000 {
		sample = append(sample, []byte(symbolSamples["words"](i)))
		raw += len(sample[i])
	}
	e := TrainSymbols(sample)
	var codes []byte
	for _, s := range sample {
		codes = e.Append(codes, s)
	}
	if 2*len(codes) > raw {
		t.Errorf("%d bytes became %d", raw, len(codes))
	}
}

// TestSymbolsCommon: what two strings share is whole codes.
func TestSymbolsCommon(t *testing.T) {
	table := TrainSymbols(nil).Table()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"ab", "ab", 2}, {"ab", "ac", 1}, {"a", "ab", 1}, {"\xffa", "\xffb", 0}, {"\xffa", "\xffa", 2},
		{"a\xffa", "a\xff", 1}, {"a\xff", "a\xff", 1}, {"\xff\xffa", "\xff\xffb", 2}, {"\xff\xff\xffa", "\xff\xff\xffb", 2},
	} {
		if got := table.Common([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%q and %q share %d bytes, want %d", c.a, c.b, got, c.want)
		}
	}
}

// FuzzSymbols reads tables of any bytes and decodes any codes, as the reference does.
func FuzzSymbols(f *testing.F) {
	for _, form := range symbolSamples {
		e := TrainSymbols([][]byte{[]byte(form(3)), []byte(form(4))})
		f.Add(e.Table().Append(nil), e.Append(nil, []byte(form(5))))
	}
	f.Add([]byte{1, 9}, []byte{255})
	f.Add([]byte{2, 8, 1, 0}, []byte{})
	f.Fuzz(func(t *testing.T, file, codes []byte) {
		table, _, err := ParseSymbols(file)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v is not ErrCorrupt", err)
			}
			return
		}
		got := table.AppendDecoded([]byte("x"), codes)[1:]
		if want := decodeSymbolsReference(nil, table, codes); !bytes.Equal(got, want) {
			t.Errorf("%v is %q, want %q", codes, got, want)
		}
		if table.Size(codes) != len(got) {
			t.Errorf("Size is %d, want %d", table.Size(codes), len(got))
		}
		if e := newSymbolEncoder(table); !bytes.Equal(table.AppendDecoded(nil, e.Append(nil, codes)), codes) {
			t.Errorf("%v does not come back", codes)
		}
	})
}
