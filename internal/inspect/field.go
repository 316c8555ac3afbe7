package inspect

import (
	"fmt"
	"strconv"

	"pgaccel/colstore"
	"pgaccel/sqltype"
	"pgaccel/vector"
	"pgaccel/wire"
)

// field is a column as the catalog knows it, where it does.
type field struct {
	name, kind string
	typ        vector.Type
}

// fieldOf describes column i of a segment; of a table that is not known by its number.
func fieldOf(t *colstore.SavedTable, i int) field {
	switch {
	case t == nil:
		return field{name: strconv.Itoa(i), kind: "-"}
	case i >= len(t.Meta.Columns):
		return field{name: "(identity)", kind: "hash"} // colstore.Row.Identity
	}
	c := &t.Meta.Columns[i]
	f := field{name: word(c.Name), kind: c.Type.Kind.String(), typ: c.Type}
	if c.Unsupported != "" {
		f.kind = word(c.Unsupported)
	}
	return f
}

// bounds writes a column's Min and Max as PostgreSQL writes values of its type; codes of
// strings, and integers where the type is not known.
func (f field) bounds(lo, hi int64) (string, string) {
	c := vector.Column{Type: f.typ}
	switch kind := f.typ.Kind; {
	case kind == vector.Invalid:
		return strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10)
	case f.typ.Coded():
		return fmt.Sprintf("code %d", lo), fmt.Sprintf("code %d", hi)
	case kind.IsFloat():
		c.Ints = []int64{vector.FloatOfKey(lo), vector.FloatOfKey(hi)}
	case kind == vector.Numeric:
		for _, v := range []int64{lo, hi} {
			c.Decimals = append(c.Decimals, vector.Decimal{Unscaled: vector.Int128Of(v), Scale: f.typ.Scale})
		}
	default:
		c.Ints = []int64{lo, hi}
	}
	settings := wire.TextSettings{DateStyle: "ISO, MDY", IntervalStyle: "postgres", ByteaOutput: "hex", TimeZone: "UTC", ExtraFloatDigits: 1, ClientEncoding: "UTF8"}
	rows, err := wire.NewRowEncoder([]vector.Column{c}, []uint32{sqltype.OID(f.typ.Kind)}, nil, settings)
	if err != nil {
		return strconv.FormatInt(lo, 10), strconv.FormatInt(hi, 10)
	}
	return value(rows, 0), value(rows, 1)
}

// value returns the only field of a DataRow: type, length, count of fields and the field's
// length come before it.
func value(rows *wire.RowEncoder, row int) string { return string(rows.Append(nil, row)[1+4+2+4:]) }
