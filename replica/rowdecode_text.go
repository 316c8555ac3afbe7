package replica

import (
	"fmt"

	"pgaccel/colstore"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// text takes a value in the form of the type's output function: the server sends it
// where it has not been asked for the binary form, or has none. Dates and times are
// not read: their text depends on the walsender's settings.
func (f *rowField) text(row *colstore.Row, v []byte) error {
	n, ok := int64(0), false
	switch f.kind {
	case vector.Text, vector.Varchar, vector.BPChar:
		row.Text[f.col] = v
		return nil
	case vector.Bool:
		n, ok = sqltype.ParseBool(string(v))
	case vector.Int2, vector.Int4, vector.Int8:
		n, ok = sqltype.ParseInt(string(v), 8*int(f.size))
	case vector.Float4, vector.Float8:
		n, ok = sqltype.ParseFloat(string(v), 8*int(f.size))
	case vector.Numeric:
		switch string(v) {
		case "NaN":
			return &columnError{col: f.col, reason: "it holds NaN"}
		case "Infinity", "-Infinity":
			return &columnError{col: f.col, reason: "it holds infinity"}
		}
		d, good := sqltype.ParseNumeric(string(v))
		if good {
			if d, good = d.Rescale(int16(f.scale)); !good {
				return &columnError{col: f.col, reason: "it holds a value with more decimals than declared"}
			}
			if n, good = d.Unscaled.Int64(); !good {
				return &columnError{col: f.col, reason: "it holds a value that exceeds 64 bits"}
			}
			ok = true
		}
	case vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ:
	default:
		panic(fmt.Sprintf("BUG: column %d is of kind %d (%s)", f.col+1, f.kind, f.kind))
	}
	if !ok {
		return fmt.Errorf("column %d comes as text that is not read: %.40q", f.col+1, v)
	}
	row.State[f.col], row.Int[f.col] = colstore.ColumnValue, n
	return nil
}
