package referee

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestRoughly: only values of sums of floats may differ, only in their last digits, and
// not in being null or infinite.
func TestRoughly(t *testing.T) {
	field := func(oid uint32, format int16) pgconn.FieldDescription {
		return pgconn.FieldDescription{DataTypeOID: oid, Format: format}
	}
	q := &query{out: []output{{n: &node{}}, {n: &node{noise: 1e-12}}}}
	text := []pgconn.FieldDescription{field(int4.oid(), 0), field(float8.oid(), 0)}
	binary8 := []pgconn.FieldDescription{field(int4.oid(), 0), field(float8.oid(), 1)}
	bits := func(f float64) string { return string(binary.BigEndian.AppendUint64(nil, math.Float64bits(f))) }
	make1 := func(fields []pgconn.FieldDescription, cells ...string) answer {
		a := answer{fields: fields}
		for i := 0; i < len(cells); i += 2 {
			row := [][]byte{[]byte(cells[i]), []byte(cells[i+1])}
			if cells[i+1] == "null" {
				row[1] = nil
			}
			a.rows = append(a.rows, row)
		}
		return a
	}
	for _, c := range []struct {
		name   string
		a, b   answer
		differ bool
	}{
		{"equal", make1(text, "1", "0.5"), make1(text, "1", "0.5"), false},
		{"a last digit", make1(text, "1", "0.30000000000000004"), make1(text, "1", "0.3"), false},
		{"near zero", make1(text, "1", "1e-17"), make1(text, "1", "0"), false},
		{"a digit in the middle", make1(text, "1", "0.300001"), make1(text, "1", "0.3"), true},
		{"an exact column", make1(text, "1", "0.3"), make1(text, "2", "0.3"), true},
		{"rows in another order", make1(text, "1", "0.3", "2", "7"), make1(text, "2", "7", "1", "0.30000000000000004"), false},
		{"values changed places", make1(text, "1", "0.3", "2", "7"), make1(text, "1", "7", "2", "0.3"), true},
		{"null", make1(text, "1", "null"), make1(text, "1", "0"), true},
		{"both null", make1(text, "1", "null"), make1(text, "1", "null"), false},
		{"infinite", make1(text, "1", "Infinity"), make1(text, "1", "1e308"), true},
		{"not a number", make1(text, "1", "NaN"), make1(text, "1", "NaN"), false},
		{"binary", make1(binary8, "1", bits(0.1+0.2)), make1(binary8, "1", bits(0.3)), false},
		{"binary, apart", make1(binary8, "1", bits(0.4)), make1(binary8, "1", bits(0.3)), true},
	} {
		if got := difference(q, c.a, c.b); (got != "") != c.differ {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
