package colstore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgaccel/compress"
)

// packedSizes are those at the edges of blocks, fences and goroutines' pieces.
var packedSizes = []int{0, 1, 2, 15, 16, 17, 63, 64, 127, 128, 129, 255, 256, 257, 511, 512, 513, 4097, 2*parallelMin + 5}

// packedForms are strings that differ in how they begin and in how long they are.
var packedForms = map[string]func(i int) string{
	"number":  func(i int) string { return fmt.Sprint(i) },
	"name":    func(i int) string { return fmt.Sprintf("Customer#%09d", i) },
	"common":  func(i int) string { return strings.Repeat("what all begin with ", 20) + fmt.Sprint(i) },
	"zeros":   func(i int) string { return "same" + string(make([]byte, i%9)) + fmt.Sprint(i) },
	"blanks":  func(i int) string { return fmt.Sprintf("%-*d", i%12, i/3) },
	"nothing": func(i int) string { return string(make([]byte, i%300)) + fmt.Sprint(i / 300)[:i/300%2] },
	"lengths": func(i int) string { return strings.Repeat("x", i*i%1000) + fmt.Sprint(i) },
	"one": func(i int) string {
		return strings.Repeat("y", i%7*i%7*20) + fmt.Sprint(i) + strings.Repeat("z", i%1000/999*70_000)
	},
	"words": func(i int) string {
		words := []string{"carefully ", "final ", "deposits ", "sleep ", "furiously ", "\x00\xff", "requests. "}
		var b strings.Builder
		for r := rand.New(rand.NewPCG(uint64(i), 1)); r.IntN(9) > 0; {
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	},
}

// distinct returns the strings of the first n numbers, in order.
func distinct(n int, form func(i int) string, padded bool) [][]byte {
	var all [][]byte
	for i := range n {
		all = append(all, []byte(form(i)))
	}
	slices.SortFunc(all, func(a, b []byte) int { return compareStrings(a, b, padded) })
	return slices.CompactFunc(all, bytes.Equal)
}

// eachPacked calls f with packed dictionaries and what they hold.
func eachPacked(t *testing.T, f func(t *testing.T, p *packed, want [][]byte)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for name, form := range packedForms {
		for _, n := range packedSizes {
			if testing.Short() && n > 600 && name != "words" {
				continue
			}
			for _, padded := range []bool{false, true} {
				t.Run(fmt.Sprint(name, n, padded), func(t *testing.T) {
					a := &arena{limit: 1 << 30}
					defer a.close()
					want := distinct(n, form, padded)
					p, err := pack(a, len(want), func(i int) []byte { return want[i] }, padded)
					if err != nil {
						t.Fatal(err)
					}
					if used, _ := a.usage(); used != p.mem.bytes.Load() {
						t.Errorf("%d bytes are used, %d counted", used, p.mem.bytes.Load())
					}
					f(t, p, want)
					p.mem.release()
					nothingLost(t, a)
				})
			}
		}
	}
}

// TestPacked compares packed strings with what they were made of, and the search with a map.
func TestPacked(t *testing.T) {
	eachPacked(t, func(t *testing.T, p *packed, want [][]byte) {
		known := map[string]bool{}
		for code, b := range want {
			if got := p.append([]byte("x"), uint32(code)); string(got[1:]) != string(b) {
				t.Fatalf("string %d is %q, want %q", code, got[1:], b)
			}
			known[string(b)] = true
			if got, ok := p.find(b); !ok || int(got) != code {
				t.Fatalf("find(%q) = %d, %v, want %d", b, got, ok, code)
			}
		}
		for _, from := range packedSizes {
			to := min(from*2+3, len(want))
			next := from
			p.each(from, to, func(code int, s []byte) bool {
				if code != next || string(s) != string(want[code]) {
					t.Fatalf("each: string %d is %q, want %q", code, s, want[next])
				}
				next++
				return next != from+400
			})
			if next != max(min(to, from+400), from) {
				t.Errorf("each: %d to %d ended with %d", from, to, next)
			}
		}
		if p.symbols != nil {
			matchPacked(t, p, want)
		}
		for _, b := range append(want[:min(len(want), 500):len(want)], nil) {
			for _, other := range []string{string(b) + " ", string(b) + "\x00", string(b[:len(b)/2]), "!" + string(b), string(b) + "~", string(bytes.TrimRight(b, " "))} {
				if _, ok := p.find([]byte(other)); ok != known[other] {
					t.Fatalf("find(%q) = %v", other, ok)
				}
			}
		}
	})
}

// matchPacked compares what encoded strings are matched by with what they are as they were.
func matchPacked(t *testing.T, p *packed, want [][]byte) {
	s := string(want[len(want)/2])
	for _, literals := range [][]string{{"", ""}, {s[:min(len(s), 3)], ""}, {"", "s", ""}, {"", "e", "e", ""}, {"", s[len(s)/2:]}, {s[:len(s)/3], s[len(s)/2:]},
		{s, ""}, {s, s}, {s[:len(s)/2], "", ""}, {string(want[0]), ""}, {string(want[len(want)-1]), "", ""}, {"\x00", ""}, {"\xff", ""}} {
		pattern := compress.NewPattern(literals)
		if pattern == nil {
			continue // too long
		}
		m := pattern.Matcher(p.symbols)
		for _, from := range packedSizes {
			to := min(from*2+3, len(want))
			next := min(from, to)
			p.eachMatch(next, to, pattern, m, func(code int, ok bool) {
				if code != next || ok != pattern.Match(want[code]) {
					t.Fatalf("eachMatch: %q in string %d, %q: %v, want string %d", literals, code, want[code], ok, next)
				}
				next++
			})
			if next != to {
				t.Errorf("eachMatch: %d to %d ended with %d", from, to, next)
			}
		}
	}
}

// TestPackedField compares packed numbers with themselves, at all widths.
func TestPackedField(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for width := range 33 {
		var values [blockStrings]int
		for i := range values {
			values[i] = int(r.Uint64() & (1<<width - 1))
		}
		b := appendFields(nil, width, values)
		if len(b) != 2*width {
			t.Errorf("%d bytes of %d bits", len(b), width)
		}
		b = append(b, "any bytes behind"...)
		sum := 0
		for i, v := range values {
			if got := field(b, width, i); got != v {
				t.Errorf("field %d of %d bits is %d, want %d", i, width, got, v)
			}
			if got := fieldSum(b, width, i); got != sum {
				t.Errorf("%d fields of %d bits are %d, want %d", i, width, got, sum)
			}
			sum += v
		}
	}
}

// TestPackedMemory: at the limit there is no dictionary, and nothing is lost.
func TestPackedMemory(t *testing.T) {
	want := distinct(5000, packedForms["name"], false)
	failed := 0
	for limit := int64(64); limit < 1<<18; limit += 4096 {
		a := &arena{limit: limit}
		p, err := pack(a, len(want), func(i int) []byte { return want[i] }, false)
		var m *MemoryError
		if err != nil && !errors.As(err, &m) {
			t.Fatal(err)
		}
		if err == nil {
			p.mem.release()
		} else {
			failed++
		}
		nothingLost(t, a)
		a.close()
	}
	if failed == 0 {
		t.Error("memory was never short")
	}
}

// TestPackedGrows: strings are added behind packed ones while versions are read.
func TestPackedGrows(t *testing.T) {
	for _, n := range []int{1, 17, 513, 5000} {
		a := &arena{limit: 1 << 30}
		dict := newDictionary(a)
		dict.ranking.memcmp = true
		form := packedForms["name"]
		want := distinct(n, form, false)
		if err := dict.packStrings(n, func(i int) []byte { return want[i] }); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var versions []*Dict
		for i := range 300 {
			if i%20 == 0 {
				d := dict.version()
				d.retain()
				versions = append(versions, d)
				wg.Go(func() { checkGrown(t, d, n, form) })
			}
			for _, k := range []int{i * 7 % n, n + i} { // one that is there, and a new one
				b := []byte(form(k))
				if code, err := dict.add(b, maphash.Bytes(hashSeed, b)); err != nil || int(code) != k {
					t.Fatalf("%q got code %d, %v", b, code, err)
				}
			}
		}
		wg.Wait()
		for _, d := range versions {
			checkGrown(t, d, n, form)
			d.release()
		}
		dict.close()
		nothingLost(t, a)
		a.close()
	}
}

// checkGrown checks a version of a dictionary that began with n strings, in order.
func checkGrown(t *testing.T, d *Dict, n int, form func(i int) string) {
	for _, code := range []int{0, n / 2, n - 1, max(d.Len()-1, 0)} {
		want := form(code)
		got, ok := d.Find(want)
		if !ok || int(got) != code || d.At(got) != want || string(d.Bytes(got)) != want || string(d.AppendBytes(nil, got)) != want {
			t.Errorf("%q has code %d, %v", want, got, ok)
		}
	}
	next := int64(0)
	d.Each(0, int64(d.Len()), func(code int64, s []byte) bool {
		if code != next || string(s) != form(int(code)) {
			t.Errorf("string %d is %q", code, s)
		}
		next++
		return next < int64(n)+10
	})
	if next != min(int64(d.Len()), int64(n)+10) {
		t.Errorf("Each ended with %d of %d", next, d.Len())
	}
	for _, literals := range [][]string{{"", "7", ""}, {form(n + 3), ""}} {
		pattern := compress.NewPattern(literals)
		m := d.Matcher(pattern)
		if m == nil {
			break // not encoded
		}
		next := int64(max(n-3, 0)) // over the edge between those that are packed and the others
		d.EachMatch(next, int64(d.Len()), pattern, m, func(code int64, ok bool) {
			if s := form(int(code)); code != next || ok != pattern.Match([]byte(s)) {
				t.Errorf("string %d, %q: %q matched %v, want string %d", code, s, literals, ok, next)
			}
			next++
		})
		if next != int64(d.Len()) {
			t.Errorf("EachMatch ended with %d of %d", next, d.Len())
		}
	}
	for _, most := range []int{-1, 0, 1, 5, len(form(0)) - 1, len(form(0)), 300} { // bytes that decide
		seen := int64(-1)
		last := "" // the last string that was seen
		check := func(code int64) {
			for c := max(seen, 0); c < code; c++ {
				if s := form(int(c)); c > seen && (most < 0 || len(last) < most || !strings.HasPrefix(s, last[:most]) || int(c) >= n) {
					t.Errorf("%q was not seen after %q, of which %d bytes decide", s, last, most)
				}
			}
		}
		d.EachRun(0, int64(d.Len()), func(code int64, s string) int {
			if s != form(int(code)) {
				t.Errorf("string %d is %q", code, s)
			}
			check(code)
			if seen >= 0 && most >= 0 && len(last) >= most && strings.HasPrefix(s, last[:most]) && int(code) < n {
				t.Errorf("%q was seen after %q, of which %d bytes decide", s, last, most)
			}
			seen, last = code, strings.Clone(s)
			if len(s) < most {
				return -1
			}
			return most
		})
		check(int64(d.Len()))
	}
	if _, ok := d.Find(form(d.Len())); ok {
		t.Error("a string of a later version was found")
	}
	ranks := d.Ranks()
	if len(ranks) != d.Len() {
		t.Errorf("%d ranks of %d", len(ranks), d.Len())
	}
	for code := 1; code < len(ranks); code++ {
		if ranks[code-1] >= ranks[code] { // the form's numbers are in the strings' order
			t.Errorf("ranks of %q and %q are %d and %d", d.At(int64(code-1)), d.At(int64(code)), ranks[code-1], ranks[code])
		}
	}
}

// TestCopyPacks: dictionaries of many strings are packed, of C collations and of others;
// copies hold what they were given, with memory and where it is short.
func TestCopyPacks(t *testing.T) {
	for _, n := range []int{packedMin - 1, packedMin, 3000} {
		var rows []row
		for i := range n {
			k := i * 7919 % n
			rows = append(rows, row{int64(0), 0.0, nil, fmt.Sprint("c ", k), fmt.Sprint("any ", k)})
		}
		for _, limit := range []int64{1 << 30, 220 << 10, 260 << 10, 300 << 10, 400 << 10, 600 << 10} {
			s := New(Options{MemoryLimit: limit})
			l := s.NewLoader(meta())
			w := l.NewWriter()
			for _, r := range rows {
				if put(w, r) != nil {
					break
				}
			}
			w.Close()
			if table, err := l.Finish(); err == nil {
				check(t, table, rows)
				for _, i := range []int{3, 4} {
					if d := table.Dicts[i]; limit == 1<<30 && (d.base != nil) != (n >= packedMin) {
						t.Errorf("%d strings, column %d: packed %v", n, i, d.base != nil)
					}
				}
				if used, _ := s.Usage(); used != table.Bytes() {
					t.Errorf("%d bytes used, %d counted", used, table.Bytes())
				}
				table.Release()
			}
			l.Abort()
			if used, _ := s.Usage(); used != 0 {
				t.Errorf("%d bytes are left", used)
			}
			s.Close()
		}
	}
}
