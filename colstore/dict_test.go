package colstore

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"sync"
	"testing"
)

// TestDictWriters: several writers add the same strings in different orders; each
// string has one code, and every writer was told that one.
func TestDictWriters(t *testing.T) {
	a := &arena{limit: 1 << 30}
	defer a.close()
	dict := newDictionary(a)
	const n, writers = 5000, 4
	told := make([][]uint32, writers)
	var wg sync.WaitGroup
	for w := range writers {
		told[w] = make([]uint32, n)
		wg.Go(func() {
			for k := range n {
				i := (k*(2*w+1) + w*1000) % n // n is prime to 1, 3, 7; 5 repeats some
				b := fmt.Appendf(nil, "string %d", i)
				code, kept, err := dict.add(b, maphash.Bytes(hashSeed, b))
				if err != nil || !bytes.Equal(kept, b) {
					t.Errorf("%s was kept as %s, %v", b, kept, err)
				}
				told[w][i] = code + 1
			}
		})
	}
	wg.Wait()
	d := dict.version()
	if d.Len() != n {
		t.Fatalf("%d strings, want %d", d.Len(), n)
	}
	for i := range n {
		s := fmt.Sprint("string ", i)
		code, ok := d.Find(s)
		if !ok || d.At(code) != s || string(d.Bytes(code)) != s {
			t.Fatalf("Find(%q) = %d, %v", s, code, ok)
		}
		for w := range writers {
			if told[w][i] != 0 && told[w][i] != uint32(code)+1 {
				t.Errorf("writer %d was told code %d for %q, it is %d", w, told[w][i]-1, s, code)
			}
		}
	}
	mustPanic(t, "At", func() { d.At(n) })
	mustPanic(t, "At", func() { d.At(-1) })
	mustPanic(t, "SetRanks", func() { d.SetRanks(make([]int32, 3)) })
	d.release()
	if used, _ := a.usage(); used != 0 {
		t.Errorf("%d bytes lost", used)
	}
}

// TestDictSizes: the empty string, zero bytes, and strings longer than a block.
func TestDictSizes(t *testing.T) {
	a := &arena{limit: 1 << 30}
	defer a.close()
	w := newDictionary(a)
	d := w.version()
	if _, ok := d.Find(""); ok || d.Len() != 0 {
		t.Error("the empty dictionary holds something")
	}
	var want [][]byte
	for i, size := range []int{0, 1, 2, 4095, 4096, 4097, 1 << 20, 1<<20 + 1, 5 << 20, 3, 70 << 20} {
		b := make([]byte, size)
		if size > 0 {
			b[size-1] = byte(i)
		}
		want = append(want, b)
	}
	for _, b := range want {
		if _, _, err := w.add(b, maphash.Bytes(hashSeed, b)); err != nil {
			t.Fatal(err)
		}
	}
	d = w.version()
	for code, b := range want {
		if got, ok := d.Find(string(b)); !ok || got != int64(code) || !bytes.Equal(d.Bytes(got), b) {
			t.Errorf("string %d of %d bytes: %d, %v", code, len(b), got, ok)
		}
	}
}
