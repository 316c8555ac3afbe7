package compress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/vector"
)

// wideData yields columns of 128-bit values of many kinds, by name.
func wideData(n int, r *rand.Rand, yield func(name string, values []vector.Int128)) {
	v := make([]vector.Int128, n)
	fill := func(name string, f func(i int) vector.Int128) {
		for i := range v {
			v[i] = f(i)
		}
		yield(name, v)
	}
	for _, w := range []uint{0, 1, 7, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127} {
		mask := offset128{hi: 1<<(max(w, 64)-64) - 1, lo: 1<<min(w, 64) - 1}
		fill(fmt.Sprint("width ", w), func(int) vector.Int128 {
			return vector.Int128{Hi: int64(r.Uint64() & mask.hi), Lo: r.Uint64() & mask.lo}
		})
	}
	fill("any", func(int) vector.Int128 { return vector.Int128{Hi: int64(r.Uint64()), Lo: r.Uint64()} })
	fill("extremes", func(int) vector.Int128 {
		return []vector.Int128{wideMax, {Hi: math.MinInt64}, {}, vector.Int128Of(-1)}[r.IntN(4)]
	})
	fill("sorted", func(i int) vector.Int128 { return vector.Mul64(1<<62, 1<<50).Add(vector.Int128Of(int64(i) * 1e9)) })
	fill("mixed", func(i int) vector.Int128 { return vector.Int128Of(r.Int64() >> (i / 32 * 9 % 64)) })
}

// wideReference reads row i bit by bit, with math/big.
func wideReference(words []uint32, i int) *big.Int {
	blocks := (int(words[1]) + 127) / 128
	block := words[8+blocks+1:][words[8+i/128]:]
	number := func(words []uint32, at, width int) *big.Int {
		b := new(big.Int)
		for k := range width {
			b.SetBit(b, k, uint(words[(at+k)/32]>>((at+k)%32)&1))
		}
		return b
	}
	ref := number(block, 0, 128)
	if ref.Bit(127) == 1 {
		ref.Sub(ref, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	widths, at := block[4], 5
	for range i % 128 / 32 {
		at += int(widths & 255)
		widths >>= 8
	}
	w := int(widths & 255)
	return ref.Add(ref, number(block[at:], i%32*w, w))
}

func TestWide(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1300} {
		wideData(n, r, func(name string, values []vector.Int128) {
			c, err := ParseWide(EncodeWide(values, words64).Words())
			if err != nil {
				t.Fatalf("%d rows, %s: %v", n, name, err)
			}
			useWide(t, c)
			got := make([]vector.Int128, n)
			c.Decode(got, 0)
			if c.Len() != n || c.Codec() != CodecFOR128 || c.Bytes() != 4*len(c.Words()) || !slices.Equal(got, values) {
				t.Fatalf("%d rows, %s: come back as others", n, name)
			}
		})
	}
	if c := EncodeWide(make([]vector.Int128, 5), func(int) []uint32 { return nil }); c != nil {
		t.Errorf("without memory: %v", c)
	}
}

// useWide compares everything that a column can be asked with the reference.
func useWide(t *testing.T, c WideColumn) {
	t.Helper()
	n := c.Len()
	r := rand.New(rand.NewPCG(1, uint64(n)))
	values := make([]vector.Int128, n)
	c.Decode(values, 0)
	for i := 0; i < n; i += 1 + r.IntN(8) {
		if ref := wideReference(c.Words(), i); ref.Cmp(values[i].Big()) != 0 {
			t.Fatalf("row %d is %v, by the reference %v", i, values[i], ref)
		}
	}
	for start := 0; start < n; start += blockRows {
		rows := min(1+r.IntN(1024), n-start)
		part := values[start : start+rows]
		lo, hi := c.Bounds(start, rows)
		var sel []uint16
		mask := make([]uint64, (rows+63)/64)
		for i, v := range part {
			if v.Cmp(lo) < 0 || v.Cmp(hi) > 0 {
				t.Fatalf("row %d is %v, bounds %v, %v", start+i, v, lo, hi)
			}
			if r.IntN(2) == 0 {
				sel = append(sel, uint16(i))
				mask[i/64] |= 1 << (i % 64)
			}
		}
		got := make([]vector.Int128, len(sel))
		c.Gather(got, start, sel)
		for i, s := range sel {
			if got[i] != part[s] {
				t.Fatalf("Gather of row %d+%d is %v, want %v", start, s, got[i], part[s])
			}
		}
		from, to := part[r.IntN(rows)], part[r.IntN(rows)]
		if from.Cmp(to) > 0 && r.IntN(4) > 0 {
			from, to = to, from
		}
		before := slices.Clone(mask)
		c.FilterRange(mask, start, rows, from, to)
		for i, v := range part {
			want := before[i/64]>>(i%64)&1 == 1 && v.Cmp(from) >= 0 && v.Cmp(to) <= 0
			if mask[i/64]>>(i%64)&1 == 1 != want {
				t.Fatalf("FilterRange(%v, %v): row %d = %v is %v", from, to, start+i, v, !want)
			}
		}
	}
}

func FuzzParseWide(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 130} {
		wideData(n, r, func(_ string, values []vector.Int128) {
			b := []byte{}
			for _, w := range EncodeWide(values, words64).Words() {
				b = binary.LittleEndian.AppendUint32(b, w)
			}
			f.Add(b)
		})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		words := words64(len(b) / 4)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		c, err := ParseWide(words)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) || c != nil {
				t.Fatalf("%v, %v", c, err)
			}
			return
		}
		useWide(t, c)
	})
}
