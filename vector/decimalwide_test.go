package vector

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func (w word128) big() *big.Int {
	b := new(big.Int).SetUint64(w.hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(w.lo))
}

func (w word256) big() *big.Int {
	b := word128{w[3], w[2]}.big()
	return b.Lsh(b, 128).Or(b, word128{w[1], w[0]}.big())
}

// checkWide compares a division of words with that of math/big.
func checkWide(t *testing.T, w word256, d word128) {
	t.Helper()
	if d == (word128{}) {
		return
	}
	want, rest := new(big.Int).QuoRem(w.big(), d.big(), new(big.Int))
	q, rem, ok := w.dividedBy(d)
	if ok != (want.BitLen() <= 128) {
		t.Fatalf("%x / %x: ok is %v for a quotient of %d bits", w.big(), d.big(), ok, want.BitLen())
	}
	if ok && (q.big().Cmp(want) != 0 || rem.big().Cmp(rest) != 0) {
		t.Fatalf("%x / %x is %x, %x instead of %x, %x", w.big(), d.big(), q.big(), rem.big(), want, rest)
	}
}

func TestWideDivision(t *testing.T) {
	words := []uint64{0, 1, 2, 1<<32 - 1, 1 << 32, math.MaxInt64, 1 << 63, 1<<63 + 1, math.MaxUint64 - 1, math.MaxUint64}
	r := rand.New(rand.NewPCG(4, 39))
	word := func() uint64 {
		if r.IntN(3) == 0 {
			return r.Uint64() >> r.IntN(64)
		}
		return words[r.IntN(len(words))]
	}
	for range 1_000_000 {
		w, d := word256{word(), word(), word(), word()}, word128{word(), word()}
		if r.IntN(2) == 0 { // a quotient of 128 bits
			w[3], w[2] = 0, w[2]%max(d.lo, 1)
			if d.hi != 0 {
				w[3] = r.Uint64() % (d.hi + b2u(d.hi != math.MaxUint64))
			}
		}
		checkWide(t, w, d)
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func TestWide(t *testing.T) {
	for _, v := range edgeDecimals() {
		w := v.magnitude()
		for n := range 60 {
			want := new(big.Int).Mul(w.big(), BigPow10(n))
			if got := w.wide(n).big(); want.BitLen() <= 256 && got.Cmp(want) != 0 {
				t.Fatalf("%v * 10^%d is %v", w.big(), n, got)
			} else if want.BitLen() > 256 && got.BitLen() != 256 {
				t.Fatalf("%v * 10^%d is %v, where more than 256 bits are needed", w.big(), n, got)
			}
		}
	}
}

func BenchmarkDivWide(b *testing.B) {
	x, _ := ParseDecimal("1234.5678901234567890")
	y, _ := ParseDecimal("2345.6789012345678")
	b.Run("words", func(b *testing.B) {
		for b.Loop() {
			divWords(x, y)
		}
	})
	b.Run("big", func(b *testing.B) {
		for b.Loop() {
			divBig(x, y)
		}
	})
}
