package olap

import (
	"math"
	"testing"

	"pgaccel/vector"
)

// What PostgreSQL 16 and later read as a number is an error before: it must be one here, too, so
// that the server answers.
func TestTextOfLaterVersions(t *testing.T) {
	for _, s := range []string{"0x1F", "0o17", "0b11", "1_000", "-0x1", " 0xA ", "1_0.5", "1.0_1", "1e1_0"} {
		for _, k := range []vector.Kind{vector.Int4, vector.Numeric, vector.Float8} {
			if v, err := textTo(s, k); err == nil {
				t.Errorf("%q is %v", s, v)
			}
		}
	}
}

func TestFloatToIntAtTheBounds(t *testing.T) {
	for _, c := range []struct {
		x    float64
		k    vector.Kind
		want int64
		ok   bool
	}{
		{2.5, vector.Int4, 2, true}, {3.5, vector.Int4, 4, true}, {-0.5, vector.Int2, 0, true},
		{1 << 63, vector.Int8, 0, false}, {-1 << 63, vector.Int8, math.MinInt64, true},
		{32767.5, vector.Int2, 0, false}, {-32768.5, vector.Int2, -32768, true}, {math.NaN(), vector.Int8, 0, false},
	} {
		v, err := floatToInt(int64(math.Float64bits(c.x)), c.k)
		if (err == nil) != c.ok || c.ok && v != c.want {
			t.Errorf("%v as %v: %d, %v", c.x, c.k, v, err)
		}
	}
}
