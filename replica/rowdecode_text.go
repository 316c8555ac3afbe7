package replica

import (
	"fmt"

	"pgaccel/colstore"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// text takes a value in the form of the type's output function: the server sends it
// where it has not been asked for the binary form, or has none. What depends on the
// walsender's settings is not read.
func (f *rowField) text(row *colstore.Row, v []byte) error {
	if f.kind.HeldAsText() {
		row.Text[f.col] = v
		return f.columnDecoder.text(v)
	}
	t := sqltype.Of(f.kind)
	n, ok := int64(0), false
	switch {
	case f.kind == vector.Opaque:
	case f.kind.IsString():
		d, read := t.Parse(string(v))
		row.Text[f.col], ok = []byte(d.Str), read
	case f.form == sqltype.BinaryNumericKey:
		row.Text[f.col], ok = sqltype.NumericKeyFromText(nil, string(v))
	case t.Settings, f.kind == vector.Money: // lc_monetary
	case f.kind == vector.Numeric:
		var reason string
		if n, ok, reason = numericOf(string(v), f.scale); reason != "" {
			return &columnError{col: f.col, reason: reason}
		}
	default:
		n, ok = t.ParseWord(string(v))
		if !ok && f.kind == vector.Interval {
			return &columnError{col: f.col, reason: reasonInterval}
		}
	}
	if !ok {
		return fmt.Errorf("column %d comes as text that is not read: %.40q", f.col+1, v)
	}
	row.State[f.col], row.Int[f.col] = colstore.ColumnValue, n
	return nil
}

// numericOf reads a numeric's text. reason says why the value, which is one, cannot be
// held at the scale.
func numericOf(s string, scale int) (n int64, ok bool, reason string) {
	switch s {
	case "NaN":
		return 0, false, "it holds NaN"
	case "Infinity", "-Infinity":
		return 0, false, "it holds infinity"
	}
	d, ok := sqltype.ParseNumeric(s)
	if !ok {
		return 0, false, ""
	}
	if d, ok = d.Rescale(int16(scale)); !ok {
		return 0, false, "it holds a value with more decimals than declared"
	}
	if n, ok = d.Unscaled.Int64(); !ok {
		return 0, false, "it holds a value that exceeds 64 bits"
	}
	return n, true, ""
}
