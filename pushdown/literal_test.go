package pushdown

import (
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestConstantsThatFoldingDoesNotKnow are for PostgreSQL: casts and comparisons of
// constants compute without infinity, NaN, and beyond the years 1 to 9999.
func TestConstantsThatFoldingDoesNotKnow(t *testing.T) {
	taken := func(s string, k vector.Kind) (d vector.Datum, ok bool) {
		defer func() {
			if r := recover(); r != nil {
				if f, is := r.(*plan.Forward); !is || f.Reason != plan.ReasonType {
					panic(r)
				}
			}
		}()
		return new(analyzer).parseLiteral(s, vector.TypeOf(k)).Datum, true
	}
	for k, texts := range map[vector.Kind][]string{
		vector.Float4:      {"NaN", "Infinity", "-inf", "1e39"},
		vector.Float8:      {"NaN", "Infinity", "-inf", "1e309"},
		vector.Date:        {"infinity", "-infinity", "10000-01-01", "0001-01-01 BC"},
		vector.Timestamp:   {"infinity", "-infinity", "10000-01-01 00:00", "0001-12-31 BC"},
		vector.TimestampTZ: {"infinity", "-infinity", "10000-01-01 00:00Z", "0001-12-31 00:00Z BC"},
		vector.Numeric:     {"NaN", "Infinity"},
	} {
		for _, s := range texts {
			if d, ok := taken(s, k); ok {
				t.Errorf("%s %q was taken as %+v", k, s, d)
			}
		}
	}
	for k, want := range map[vector.Kind]int64{vector.Date: -730119, vector.Timestamp: -730119 * microsPerDay, vector.TimestampTZ: -730119 * microsPerDay} {
		if d, ok := taken(" 0001-01-01\n", k); !ok || d.I != want {
			t.Errorf("%s: %+v, %v", k, d, ok)
		}
	}
}
