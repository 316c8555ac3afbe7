package replica

import (
	"fmt"
	"math"
	"strconv"

	"pgaccel/colstore"
	"pgaccel/vector"
)

// text takes a value in the form of the type's output function: the server sends it
// where it has not been asked for the binary form, or has none. Dates and times are
// not read: their text depends on the walsender's settings.
func (f *rowField) text(row *colstore.Row, v []byte) error {
	if f.form == formText {
		row.Text[f.col] = v
		return nil
	}
	n, ok := int64(0), false
	switch f.kind {
	case vector.Bool:
		if ok = len(v) == 1 && (v[0] == 't' || v[0] == 'f'); ok && v[0] == 't' {
			n = 1
		}
	case vector.Int2, vector.Int4, vector.Int8:
		bits := map[vector.Kind]int{vector.Int2: 16, vector.Int4: 32, vector.Int8: 64}[f.kind]
		i, err := strconv.ParseInt(string(v), 10, bits)
		n, ok = i, err == nil
	case vector.Float4, vector.Float8:
		bits := 64
		if f.kind == vector.Float4 {
			bits = 32
		}
		x, err := strconv.ParseFloat(string(v), bits)
		n, ok = int64(math.Float64bits(x)), err == nil
		if x != x {
			n = postgresNaN
		}
	case vector.Numeric:
		switch string(v) {
		case "NaN":
			return &columnError{col: f.col, reason: "it holds NaN"}
		case "Infinity", "-Infinity":
			return &columnError{col: f.col, reason: "it holds infinity"}
		}
		d, good := vector.ParseDecimal(string(v))
		if good {
			if d, good = d.Rescale(int16(f.scale)); !good {
				return &columnError{col: f.col, reason: "it holds a value with more decimals than declared"}
			}
			if n, good = d.Unscaled.Int64(); !good {
				return &columnError{col: f.col, reason: "it holds a value that exceeds 64 bits"}
			}
			ok = true
		}
	}
	if !ok {
		return fmt.Errorf("column %d comes as text that is not read: %.40q", f.col+1, v)
	}
	row.State[f.col], row.Int[f.col] = colstore.ColumnValue, n
	return nil
}

// postgresNaN are the bits of the server's NaN, which has no payload; Go's has one.
const postgresNaN = 0x7FF8 << 48
