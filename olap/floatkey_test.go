package olap

import (
	"math"
	"testing"

	"pgaccel/compress"
)

// TestFloatKeyIsTheStores: bounds of zone maps and keys of values are compared.
func TestFloatKeyIsTheStores(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
		-math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(), -math.NaN(), math.Float64frombits(1<<64 - 1)} {
		b := int64(math.Float64bits(f))
		k := floatKey(b)
		if want := compress.FloatKey(b); k != want {
			t.Errorf("%v: key %x, the store's is %x", f, k, want)
		}
		if back := floatKey(floatOfKey(k)); back != k {
			t.Errorf("%v: key %x comes back as %x", f, k, back)
		}
	}
}
