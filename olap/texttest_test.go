package olap

import (
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// TestPreparedCasts compares casts as dictionaries are cast with those of one value: a char(n) is not only cast to text.
func TestPreparedCasts(t *testing.T) {
	for _, from := range []vector.Kind{vector.Text, vector.Varchar, vector.BPChar} {
		for _, to := range []vector.Kind{vector.Text, vector.Varchar, vector.BPChar, vector.Int2, vector.Int4, vector.Int8, vector.Float8, vector.Bool, vector.Date, vector.Timestamp} {
			f := prepareValue(&plan.Call{Op: plan.OpCast, T: vector.TypeOf(to), Args: []plan.Expr{plan.Column{T: vector.TypeOf(from)}}})
			if f == nil {
				t.Fatalf("%v to %v: not prepared", from, to)
			}
			for _, s := range []string{"", "1", "12  ", "t", "abc ", "2024-02-29", "2024-02-29 01:00  ", "1.5"} {
				got, err := f(s)
				want, wantErr := castScalar(vector.Value{Str: s}, vector.TypeOf(from), vector.TypeOf(to))
				if got != want || (err == nil) != (wantErr == nil) {
					t.Errorf("%q of %v to %v: %v, %v; want %v, %v", s, from, to, got, err, want, wantErr)
				}
			}
		}
	}
}
