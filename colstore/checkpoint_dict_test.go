package colstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"testing"

	"pgaccel/compress"
)

// TestDictFile: files of packed dictionaries, with strings of the stream behind them, bring
// back the same codes, and take the same memory; so do those of format 1.
func TestDictFile(t *testing.T) {
	eachPacked(t, func(t *testing.T, p *packed, want [][]byte) {
		a := &arena{limit: 1 << 30}
		defer a.close()
		if len(want) == 0 {
			return
		}
		dict := newDictionary(a)
		dict.ranking.padded = p.padded
		if err := dict.packStrings(len(want), func(i int) []byte { return want[i] }); err != nil {
			t.Fatal(err)
		}
		all := want[:len(want):len(want)]
		for i := range 20 {
			b := fmt.Appendf(nil, "%d of the stream", i)
			if _, err := dict.add(b, maphash.Bytes(hashSeed, b)); err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
		d := dict.version()
		for name, file := range map[string][]byte{"packed": encodeDict(d), "format 1": encodePlain(all)} {
			got := newDictionary(a)
			got.ranking.padded = p.padded
			if err := decodeDict(file, got, 1); err != nil {
				t.Fatal(name, err)
			}
			if got.n != len(all) || got.base == nil || got.first < len(want) {
				t.Fatalf("%s: %d strings, %d packed; want %d, %d", name, got.n, got.first, len(all), len(want))
			}
			for code, b := range all {
				if string(got.bytes(uint32(code))) != string(b) {
					t.Fatalf("%s: string %d is %q, want %q", name, code, got.bytes(uint32(code)), b)
				}
			}
			if name == "packed" && got.base.mem.bytes.Load() != dict.base.mem.bytes.Load() {
				t.Errorf("%d bytes, were %d", got.base.mem.bytes.Load(), dict.base.mem.bytes.Load())
			}
			read := ReadDictFile(file)
			if len(read.Damage) > 0 || read.Strings != len(all) {
				t.Errorf("%s: %d strings, %v", name, read.Strings, read.Damage)
			}
			got.close()
		}
		d.release()
		nothingLost(t, a)
	})
}

// encodePlain returns a dictionary's file in which nothing is packed.
func encodePlain(all [][]byte) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(dictMagic), uint64(len(all)))
	for _, s := range all {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	}
	for _, s := range all {
		b = append(b, s...)
	}
	return sealed(b)
}

// FuzzDict reads files of any bytes: an error, or a dictionary whose strings are distinct.
func FuzzDict(f *testing.F) {
	a := &arena{limit: 1 << 28}
	f.Cleanup(a.close)
	for _, form := range []string{"words", "name", "blanks", "lengths"} {
		for _, n := range []int{1, 40} {
			for _, padded := range []bool{false, true} {
				dict := newDictionary(a)
				dict.ranking.padded = padded
				want := distinct(n, packedForms[form], padded)
				if err := dict.packStrings(len(want), func(i int) []byte { return want[i] }); err != nil {
					f.Fatal(err)
				}
				if _, err := dict.add([]byte("new"), maphash.String(hashSeed, "new")); err != nil {
					f.Fatal(err)
				}
				d := dict.version()
				file := encodeDict(d)
				f.Add(file[:len(file)-sealBytes], padded)
				d.release()
			}
		}
	}
	plain := encodePlain([][]byte{[]byte("a"), []byte("b"), nil})
	f.Add(plain[:len(plain)-sealBytes], false)
	f.Fuzz(func(t *testing.T, body []byte, padded bool) {
		file := sealed(body[:len(body):len(body)])
		ReadDictFile(file)
		dict := newDictionary(a)
		dict.ranking.padded = padded
		defer func() {
			dict.close()
			nothingLost(t, a)
		}()
		if err := decodeDict(file, dict, 2); err != nil {
			var m *MemoryError
			if !errors.Is(err, compress.ErrCorrupt) && !errors.As(err, &m) {
				t.Errorf("%v is not ErrCorrupt", err)
			}
			return
		}
		for code := range dict.n {
			b := dict.bytes(uint32(code))
			if got, ok := dict.code(b); !ok || int(got) != code {
				t.Errorf("string %d, %q, is found at %d, %v", code, b, got, ok)
			}
		}
	})
}
