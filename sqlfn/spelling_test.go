package sqlfn

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/vector"
)

// TestSpellings: the least of both orders are one value exactly where no other is equal to the least, whatever zeros and ends the bytes have.
func TestSpellings(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	some := func() string {
		b := make([]byte, r.IntN(4))
		for i := range b {
			b[i] = []byte{0, 1, 'a', 254, 255}[r.IntN(5)]
		}
		return string(b)
	}
	of := vector.OpaqueType(1186)
	sole, extreme := Sole(of), SoleExtreme(of)
	call := func(f *Function, a, b string) (string, error) {
		v, err := f.Apply([]vector.Value{{Str: a}, {Str: b}})
		return v.Str, err
	}
	alone := 0
	for range 20_000 {
		var first, last, key, value string
		unique := true
		for i := range 1 + r.IntN(4) {
			k, v := some(), some()
			x, _ := call(FirstSpelling, k, v)
			y, _ := call(LastSpelling, k, v)
			if i == 0 || x < first {
				first = x
			}
			if i == 0 || y < last {
				last = y
			}
			switch c := cmp.Compare(k, key); {
			case i == 0 || c < 0:
				key, value, unique = k, v, true
			case c == 0 && v != value:
				unique = false
			}
		}
		got, err := call(extreme, first, last)
		if unique != (err == nil) || unique && got != value {
			t.Fatalf("the least is %q, alone %v: got %q, %v", value, unique, got, err)
		}
		if unique {
			alone++
		}
		if _, err := call(sole, key, value); (err == nil) != (key == value) {
			t.Fatalf("%q and %q are one: %v", key, value, err)
		}
	}
	if alone < 1000 || alone > 19_900 {
		t.Errorf("%d are alone", alone)
	}
	if v, err := CitextText.Apply([]vector.Value{{Str: strings.Repeat("ä", 9)}}); err != nil || v.Str != "äääääääää" {
		t.Error(v, err)
	}
}
