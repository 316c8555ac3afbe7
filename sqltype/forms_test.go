package sqltype

import (
	"bytes"
	"context"
	"testing"

	"pgaccel/vector"
)

// forms has, for each type, values as SQL literals: where it ends, turns or prints
// otherwise. left are those whose text is left to Postgres.
var forms = []struct {
	kind         vector.Kind
	sql          string // the type's name
	values, left []string
}{
	{kind: vector.Bool, sql: "bool", values: []string{"t", "f"}},
	{kind: vector.Int2, sql: "int2", values: []string{"0", "-1", "32767", "-32768"}},
	{kind: vector.Int4, sql: "int4", values: []string{"0", "-1", "2147483647", "-2147483648"}},
	{kind: vector.Int8, sql: "int8", values: []string{"0", "-1", "9223372036854775807", "-9223372036854775808"}},
	{kind: vector.Numeric, sql: "numeric", values: []string{"0", "0.00", "-0.0", "1", "-1.50", "10000", "0.0001", "0.00010000", "9999.9999", "100000000", "1e-37", "12345678.9",
		"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0.99999999999999999999999999999999999999", "1234567890123456789.0123456789012345678"},
		left: []string{"NaN", "Infinity", "-Infinity", "1e39"}},
	{kind: vector.Float4, sql: "float4", values: []string{"0", "-0", "1.5", "0.1", "1e5", "1e6", "123456", "1234567", "1e-4", "1e-5", "3.4028235e38", "-3.4028235e38", "1e-45", "1.17549435e-38", "16777216",
		"NaN", "Infinity", "-Infinity"}},
	{kind: vector.Float8, sql: "float8", values: []string{"0", "-0", "1.5", "0.1", "1e14", "1e15", "1e-4", "1e-5", "1e23", "9007199254740993", "1.7976931348623157e308", "-1.7976931348623157e308", "5e-324",
		"2.2250738585072014e-308", "NaN", "Infinity", "-Infinity"}},
	{kind: vector.Date, sql: "date", values: []string{"2000-01-01", "1999-12-31", "2000-02-29", "1900-03-01", "0001-01-01", "0001-12-31 BC", "0045-02-28 BC", "4714-11-24 BC", "9999-12-31", "10000-01-01", "294276-12-31",
		"infinity", "-infinity"},
		left: []string{"5874897-12-31"}},
	{kind: vector.Time, sql: "time", values: []string{"00:00:00", "00:00:00.000001", "12:34:56.7", "23:59:59.999999", "24:00:00"}},
	{kind: vector.Timestamp, sql: "timestamp", values: []string{"2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:34:56.78", "0001-01-01 00:00:00", "0001-12-31 23:59:59 BC", "0045-02-28 12:00:00.1 BC",
		"10000-01-01 00:00:00", "294276-12-29 00:00:00", "4714-11-26 00:00:00 BC", "infinity", "-infinity"},
		left: []string{"4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999"}},
	{kind: vector.TimestampTZ, sql: "timestamptz", values: []string{"2000-01-01 00:00:00+00", "1999-12-31 23:59:59.999999+00", "2024-02-29 12:34:56.78+00", "0001-12-31 23:59:59+00 BC", "10000-01-01 00:00:00+00", "infinity", "-infinity"},
		left: []string{"4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00"}},
	{kind: vector.Text, sql: "text", values: []string{"", " ", "a  ", "größe €𝄞", "\x01\n\t\\\""}},
	{kind: vector.Varchar, sql: "varchar(5)", values: []string{"", "a  ", "abcde", "ééééé"}},
	{kind: vector.BPChar, sql: "char(4)", values: []string{"", "a", "é", "abcd"}},
}

// print returns the two forms of a value.
func print(d vector.Datum) (text, binary []byte) {
	var f DateFormat
	f.Zone = "UTC"
	switch v := d.I; d.Type.Kind {
	case vector.Bool:
		return AppendBool(nil, v), AppendBoolBinary(nil, v)
	case vector.Int2:
		return AppendInt(nil, v), AppendInt2Binary(nil, v)
	case vector.Int4:
		return AppendInt(nil, v), AppendInt4Binary(nil, v)
	case vector.Int8:
		return AppendInt(nil, v), AppendInt8Binary(nil, v)
	case vector.Numeric:
		return d.Num.AppendText(nil), AppendNumericBinary(nil, d.Num)
	case vector.Float4:
		return AppendFloat(nil, v, 32), AppendFloat4Binary(nil, v)
	case vector.Float8:
		return AppendFloat(nil, v, 64), AppendInt8Binary(nil, v)
	case vector.Date:
		return f.AppendDate(nil, v), AppendInt4Binary(nil, v)
	case vector.Time:
		return AppendTime(nil, v), AppendInt8Binary(nil, v)
	case vector.Timestamp:
		return f.AppendTimestamp(nil, v), AppendInt8Binary(nil, v)
	case vector.TimestampTZ:
		return f.AppendTimestampTZ(nil, v), AppendInt8Binary(nil, v)
	case vector.Text, vector.Varchar, vector.BPChar:
		return []byte(d.Str), []byte(d.Str)
	}
	panic("BUG: no forms of " + d.Type.Kind.String())
}

// TestForms reads and prints each type's values in both forms as the server does.
func TestForms(t *testing.T) {
	conn := realPostgres(t)
	query(t, conn, "SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'; SET extra_float_digits = 1")
	tested := map[vector.Kind]bool{}
	for _, form := range forms {
		tested[form.kind] = true
		typ := Of(form.kind)
		for i, value := range append(append([]string(nil), form.values...), form.left...) {
			var sent [2][]byte
			for format := range sent {
				r := conn.ExecParams(context.Background(), "SELECT $1::text::"+form.sql, [][]byte{[]byte(value)}, []uint32{vector.OIDText}, nil, []int16{int16(format)}).Read()
				if r.Err != nil {
					t.Fatalf("%s %q: %v", form.sql, value, r.Err)
				}
				if oid := r.FieldDescriptions[0].DataTypeOID; oid != form.kind.OID() {
					t.Fatalf("%s has the OID %d, not %d", form.sql, oid, form.kind.OID())
				}
				sent[format] = r.Rows[0][0]
			}
			if size := typ.Binary.Size(); size != 0 && size != len(sent[1]) {
				t.Errorf("%s %q: %d bytes, want %d", form.sql, value, len(sent[1]), size)
			}
			parsed, ok := typ.Parse(string(sent[0]))
			if ok != (i < len(form.values)) {
				t.Errorf("%s %q: parsed: %v", form.sql, value, ok)
			}
			received, taken := typ.Receive(sent[1])
			if ok && (!taken || parsed != received) {
				t.Errorf("%s %q: parsed %+v, received %+v, %v", form.sql, value, parsed, received, taken)
			}
			if !taken {
				continue
			}
			if received.Type.Kind != form.kind || received.Null {
				t.Errorf("%s %q: received %+v", form.sql, value, received)
			}
			if text, binary := print(received); !bytes.Equal(text, sent[0]) || !bytes.Equal(binary, sent[1]) {
				t.Errorf("%s %q: %q and %x, the server has %q and %x", form.sql, value, text, binary, sent[0], sent[1])
			}
		}
	}
	for k := vector.Bool; k <= vector.BPChar; k++ {
		if !tested[k] {
			t.Errorf("%s is not tested", k)
		}
	}
}

// TestReceiveRefuses what the receive functions refuse.
func TestReceiveRefuses(t *testing.T) {
	conn := realPostgres(t)
	for _, c := range []struct {
		kind vector.Kind
		raw  []byte
	}{
		{vector.Bool, nil}, {vector.Int2, []byte{1}}, {vector.Int4, make([]byte, 5)}, {vector.Int8, make([]byte, 4)},
		{vector.Numeric, []byte{0, 1, 0, 0, 0, 0, 0, 0}}, {vector.Numeric, []byte{0, 1, 0, 0, 0, 7, 0, 0, 0, 1}}, {vector.Numeric, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10}},
		{vector.Float4, make([]byte, 8)}, {vector.Float8, make([]byte, 4)},
		{vector.Date, AppendInt4Binary(nil, dateFirst-1)}, {vector.Date, AppendInt4Binary(nil, dateEnd)},
		{vector.Time, AppendInt8Binary(nil, -1)}, {vector.Time, AppendInt8Binary(nil, MicrosPerDay+1)},
		{vector.Timestamp, AppendInt8Binary(nil, TimestampFirst-1)}, {vector.Timestamp, AppendInt8Binary(nil, timestampEnd)},
		{vector.TimestampTZ, AppendInt8Binary(nil, TimestampFirst-1)}, {vector.TimestampTZ, AppendInt8Binary(nil, timestampEnd)},
		{vector.Text, []byte{0xff}}, {vector.Varchar, []byte{'a', 0}}, {vector.BPChar, []byte{0xc3}},
	} {
		if d, ok := Of(c.kind).Receive(c.raw); ok {
			t.Errorf("%s: %x was taken as %+v", c.kind, c.raw, d)
		}
		if r := conn.ExecParams(context.Background(), "SELECT $1", [][]byte{c.raw}, []uint32{c.kind.OID()}, []int16{1}, nil).Read(); r.Err == nil {
			if c.raw != nil { // a null
				t.Errorf("%s: the server takes %x as %q", c.kind, c.raw, r.Rows[0][0])
			}
		}
	}
}

// TestUnscaledFromBinary reads what the server sends of numeric columns.
func TestUnscaledFromServer(t *testing.T) {
	conn := realPostgres(t)
	for _, c := range []struct {
		value  string
		scale  int
		want   int64
		reason string
	}{
		{"0", 2, 0, ""}, {"-0.01", 2, -1, ""}, {"1.5", 2, 150, ""}, {"999999999999999999", 0, 999999999999999999, ""}, {"-0.999999999999999999", 18, -999999999999999999, ""},
		{"9223372036854775807", 0, 9223372036854775807, ""}, {"-9223372036854775808", 0, -9223372036854775808, ""},
		{"9223372036854775808", 0, 0, "it holds a value that exceeds 64 bits"}, {"0.001", 2, 0, "it holds a value with more decimals than declared"},
		{"NaN", 0, 0, "it holds NaN"}, {"Infinity", 0, 0, "it holds infinity"}, {"-Infinity", 0, 0, "it holds infinity"},
	} {
		r := conn.ExecParams(context.Background(), "SELECT $1::text::numeric", [][]byte{[]byte(c.value)}, []uint32{vector.OIDText}, nil, []int16{1}).Read()
		if r.Err != nil {
			t.Fatal(c.value, r.Err)
		}
		if got, reason := UnscaledFromBinary(r.Rows[0][0], c.scale); got != c.want || reason != c.reason {
			t.Errorf("%s: %d %q, want %d %q", c.value, got, reason, c.want, c.reason)
		}
	}
}

// TestNoSuchType: a kind that no type stands for is a bug of the caller's.
func TestNoSuchType(t *testing.T) {
	for _, k := range []vector.Kind{vector.Invalid, vector.BPChar + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("kind %d has a type", k)
				}
			}()
			Of(k)
		}()
	}
}
