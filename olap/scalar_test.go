package olap

import (
	"math/rand/v2"
	"testing"

	"pgaccel/vector"
)

func TestCompareDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 37))
	var list []vector.Decimal
	for range 300 {
		d := vector.Decimal{Unscaled: vector.Int128{Hi: int64(r.Uint64()), Lo: r.Uint64()}, Scale: int16(r.IntN(25))}
		switch r.IntN(3) {
		case 0:
			d.Unscaled = vector.Int128Of(int64(r.Uint64()) >> r.IntN(64))
		case 1: // equal to others of other scales
			d.Unscaled = vector.Int128Of(int64(r.IntN(7)-3) * vector.Pow10(min(int(d.Scale), 18)))
			d.Scale = min(d.Scale, 18)
		}
		list = append(list, d)
	}
	equal := 0
	for _, a := range list {
		for _, b := range list {
			want := compareBig(a, b)
			if got := compareDecimals(a, b); got != want {
				t.Fatalf("%v against %v: %d instead of %d", a, b, got, want)
			}
			if want == 0 {
				equal++
			}
		}
	}
	if equal < 1000 {
		t.Errorf("%d are equal", equal)
	}
}
