package vector

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// edgeDecimals are unscaled values at which words end.
func edgeDecimals() (out []Int128) {
	for _, n := range []Int128{{}, {Lo: 1}, {Lo: 2}, {Lo: 3}, {Lo: math.MaxInt64}, {Lo: 1 << 63}, {Lo: math.MaxUint64}, {Hi: 1},
		{Hi: math.MaxInt64, Lo: math.MaxUint64}, {Hi: math.MinInt64}, {Hi: 1 << 62}} {
		out = append(out, n, n.Neg(), n.Add(Int128Of(1)), n.Add(Int128Of(-1)))
	}
	for e := range 39 {
		p, _ := Int128FromBig(BigPow10(e))
		for _, d := range []int64{-1, 0, 1} {
			n := p.Add(Int128Of(d))
			out = append(out, n, n.Neg())
		}
		b, ok := Int128FromBig(new(big.Int).Mul(big.NewInt(5), BigPow10(e)))
		if ok {
			out = append(out, b)
		}
	}
	return out
}

func randomInt128(r *rand.Rand) Int128 {
	n := Int128{Hi: int64(r.Uint64()), Lo: r.Uint64()}
	for s := r.IntN(128); s > 0; s-- { // an arithmetic shift
		n.Lo = n.Lo>>1 | uint64(n.Hi)<<63
		n.Hi >>= 1
	}
	return n
}

// checkDecimals compares what words compute of a and b with what math/big does. It returns
// whether words sufficed for the quotient and the other scale.
func checkDecimals(t *testing.T, a, b Decimal, scale int16) (divided, rescaled bool) {
	t.Helper()
	num, den := a.Unscaled.Big(), b.Unscaled.Big()
	d1, w1 := firstDigit(num, int(a.Scale))
	if d, w := a.Unscaled.magnitude().firstDigit(int(a.Scale)); d != d1 || w != w1 {
		t.Fatalf("the first digit of %v is %d with weight %d instead of %d, %d", a, d, w, d1, w1)
	}
	if b.Unscaled.Sign() != 0 {
		want := quotientScale(num, int(a.Scale), den, int(b.Scale))
		if got := quotientScaleOf(a.Unscaled.magnitude(), int(a.Scale), b.Unscaled.magnitude(), int(b.Scale)); got != want {
			t.Fatalf("%v/%v has scale %d instead of %d", a, b, got, want)
		}
		q, ok := divBig(a, b)
		words, known := divWords(a, b)
		if known && (!ok || words != q) {
			t.Fatalf("%v/%v is %v instead of %v, %v", a, b, words, q, ok)
		}
		if got, gotOK := Div(a, b); got != q || gotOK != ok {
			t.Fatalf("Div(%v, %v) is %v, %v instead of %v, %v", a, b, got, gotOK, q, ok)
		}
		divided = known
	}
	want, ok := a.rescaleBig(scale)
	got, gotOK, known := a.rescaleWords(scale)
	if known && (gotOK != ok || ok && got != want) {
		t.Fatalf("%v has %v, %v at scale %d instead of %v, %v", a, got, gotOK, scale, want, ok)
	}
	return divided, known
}

func TestDecimalWords(t *testing.T) {
	edges := edgeDecimals()
	for _, x := range edges {
		for _, y := range edges {
			for _, s := range []int16{0, 1, 4, 18, 38} {
				checkDecimals(t, Decimal{x, s}, Decimal{y, 2}, 2*s/3)
				checkDecimals(t, Decimal{x, 2}, Decimal{y, s}, s+3)
			}
		}
	}
	r := rand.New(rand.NewPCG(31, 31))
	divided, rescaled := 0, 0
	const n = 300_000
	for range n {
		a, b := Decimal{randomInt128(r), int16(r.IntN(24))}, Decimal{randomInt128(r), int16(r.IntN(24))}
		if r.IntN(50) == 0 {
			a.Scale = int16(r.IntN(1001))
		}
		d, s := checkDecimals(t, a, b, int16(r.IntN(24)))
		if d {
			divided++
		}
		if s {
			rescaled++
		}
	}
	if divided < n/8 || rescaled < n/4 {
		t.Errorf("words sufficed for %d quotients and %d scales of %d", divided, rescaled, n)
	}
}

func FuzzDecimalWords(f *testing.F) {
	f.Add(int64(0), uint64(250), int16(2), int64(0), uint64(3), int16(0), int16(4))
	f.Fuzz(func(t *testing.T, ah int64, al uint64, as int16, bh int64, bl uint64, bs, scale int16) {
		bound := func(s int16) int16 { return max(s, -s, 0) % 1001 }
		checkDecimals(t, Decimal{Int128{ah, al}, bound(as)}, Decimal{Int128{bh, bl}, bound(bs)}, bound(scale))
	})
}

func BenchmarkDiv(b *testing.B) {
	x, y := Decimal{Int128Of(765_400), 2}, Decimal{Int128Of(30), 0}
	b.Run("words", func(b *testing.B) {
		for b.Loop() {
			Div(x, y)
		}
	})
	b.Run("big", func(b *testing.B) {
		for b.Loop() {
			divBig(x, y)
		}
	})
}
