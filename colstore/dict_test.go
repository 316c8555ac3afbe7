package colstore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"strings"
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
				code, err := dict.add(b, maphash.Bytes(hashSeed, b))
				if err != nil {
					t.Error(err)
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
	nothingLost(t, a)
}

// nothingLost asserts that all of the arena's memory has been given back.
func nothingLost(t *testing.T, a *arena) {
	t.Helper()
	if used, _ := a.usage(); used != 0 {
		t.Errorf("%d bytes lost", used)
	}
}

// TestDictLoader: many writers add the same strings, new ones and old, while the
// dictionary grows; the result is that of one writer.
func TestDictLoader(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, n := range []int{0, 1, entriesMin - 1, entriesMin, entriesMin + 1, 1000, 50_000} {
		a := &arena{limit: 1 << 30}
		dict := newDictionary(a)
		l := newDictLoader(dict)
		text := func(i int) []byte {
			if i == 0 {
				return []byte{}
			}
			return fmt.Appendf(nil, "%s %d", strings.Repeat("long", i%7*i%3), i)
		}
		const writers = 16
		told := make([][]uint32, writers)
		var wg sync.WaitGroup
		for k := range writers {
			told[k] = make([]uint32, n)
			w := l.writer()
			wg.Go(func() {
				defer w.close()
				r := rand.New(rand.NewPCG(uint64(k), uint64(n)))
				for _, i := range r.Perm(n) {
					b := text(i)
					code, kept, err := w.add(b, maphash.Bytes(hashSeed, b))
					if err != nil || kept == nil || !bytes.Equal(kept, b) {
						t.Errorf("%q was kept as %q, %v", b, kept, err)
					}
					told[k][i] = code
				}
			})
		}
		wg.Wait()
		if len(l.writers) != 0 {
			t.Errorf("%d writers are left", len(l.writers))
		}
		l.finish()
		d := dict.version()
		d.retain() // the arrays of the dictionary go with their growth
		if d.Len() != n {
			t.Fatalf("%d strings, want %d", d.Len(), n)
		}
		for i := range n {
			code, ok := d.Find(string(text(i)))
			if !ok || code >= int64(n) || !bytes.Equal(d.Bytes(code), text(i)) {
				t.Fatalf("Find(%q) = %d, %v", text(i), code, ok)
			}
			for k := range writers {
				if int64(told[k][i]) != code {
					t.Errorf("writer %d was told code %d for %q, it is %d", k, told[k][i], text(i), code)
				}
			}
		}
		// The stream goes on with it.
		for i := range 100 {
			b := text(n + i)
			if code, err := dict.add(b, maphash.Bytes(hashSeed, b)); err != nil || int(code) != n+i || !bytes.Equal(dict.bytes(code), b) {
				t.Fatalf("string %d added: code %d, %v", n+i, code, err)
			}
		}
		d.release()
		dict.text.release()
		dict.table.release()
		nothingLost(t, a)
		a.close()
	}
}

// TestDictLoaderMemory: at the limit every writer ends with the error, and none waits
// for another.
func TestDictLoaderMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for limit := int64(64); limit < 4<<20; limit = limit*3 + 64 {
		a := &arena{limit: limit}
		dict := newDictionary(a)
		l := newDictLoader(dict)
		var wg sync.WaitGroup
		for k := range 8 {
			w := l.writer()
			wg.Go(func() {
				defer w.close()
				for i := 0; ; i++ {
					b := fmt.Appendf(nil, "%d of %d", i, k%3)
					if _, _, err := w.add(b, maphash.Bytes(hashSeed, b)); err != nil {
						var memory *MemoryError
						if !errors.As(err, &memory) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		wg.Wait()
		dict.text.release()
		dict.table.release()
		nothingLost(t, a)
		a.close()
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
		if _, err := w.add(b, maphash.Bytes(hashSeed, b)); err != nil {
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
