package sqltype

import (
	"bytes"
	"context"
	"testing"

	"pgaccel/vector"
)

// declared is a kind as a column's definition has it: with a length, where the samples
// are of one.
func declared(k vector.Kind) string {
	switch k {
	case vector.Varchar:
		return "varchar(5)"
	case vector.BPChar:
		return "char(4)"
	}
	return k.String()
}

// print returns the two forms of a value.
func print(d vector.Datum) (text, binary []byte) {
	t := Of(d.Type.Kind)
	switch {
	case t.Kind == vector.Numeric:
		return d.Num.AppendText(nil), AppendNumericBinary(nil, d.Num)
	case t.Kind.IsText():
		return []byte(d.Str), []byte(d.Str)
	case t.Kind == vector.JSONB:
		return []byte(d.Str), AppendJSONBBinary(nil, d.Str)
	case t.Binary == BinaryKey:
		return t.AppendString(nil, d.Str), t.AppendStringBinary(nil, d.Str)
	case t.Kind.IsString():
		return t.AppendString(nil, d.Str), []byte(d.Str)
	}
	return t.AppendText(nil, d.I), t.AppendBinary(nil, d.I)
}

// TestForms reads and prints each type's samples in both forms as the server does.
func TestForms(t *testing.T) {
	conn := realPostgres(t)
	query(t, conn, "SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'; SET extra_float_digits = 1")
	for _, k := range vector.Kinds() {
		typ := Of(k)
		for i, value := range append(append([]string(nil), typ.Samples...), typ.Left...) {
			left := i >= len(typ.Samples)
			read, ok := typ.Parse(value)
			if ok == left {
				t.Errorf("%s %q: read: %v", k, value, ok)
			}
			var sent [2][]byte
			for format := range sent {
				r := conn.ExecParams(context.Background(), "SELECT $1::text::"+declared(k), [][]byte{[]byte(value)}, []uint32{OIDText}, nil, []int16{int16(format)}).Read()
				if r.Err != nil {
					if !left {
						t.Errorf("%s %q: %v", k, value, r.Err)
					}
					break
				}
				sent[format] = r.Rows[0][0]
			}
			if sent[1] == nil {
				continue
			}
			if typ.Size != 0 && typ.Size != len(sent[1]) {
				t.Errorf("%s %q: %d bytes, want %d", k, value, len(sent[1]), typ.Size)
			}
			parsed, ok := typ.Parse(string(sent[0]))
			if !ok && !left {
				t.Errorf("%s %q: its text %q is not read", k, value, sent[0])
			}
			// The text has another scale, padding or rounding than the literal.
			if !left && read != parsed && !k.IsText() && !k.IsFloat() && k != vector.Numeric {
				t.Errorf("%s %q: read %+v, the server means %+v", k, value, read, parsed)
			}
			received, taken := typ.Receive(sent[1])
			if ok && (!taken || parsed != received) {
				t.Errorf("%s %q: parsed %+v, received %+v, %v", k, value, parsed, received, taken)
			}
			if !taken {
				continue
			}
			if received.Type.Kind != k || received.Null {
				t.Errorf("%s %q: received %+v", k, value, received)
			}
			if text, binary := print(received); !bytes.Equal(text, sent[0]) || !bytes.Equal(binary, sent[1]) {
				t.Errorf("%s %q: %q and %x, the server has %q and %x", k, value, text, binary, sent[0], sent[1])
			}
		}
		if len(typ.Samples) < 2 {
			t.Errorf("%s has %d samples", k, len(typ.Samples))
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
		{vector.UUID, make([]byte, 15)}, {vector.UUID, make([]byte, 17)}, {vector.Text, []byte{0xff}}, {vector.Varchar, []byte{'a', 0}}, {vector.BPChar, []byte{0xc3}},
	} {
		if d, ok := Of(c.kind).Receive(c.raw); ok {
			t.Errorf("%s: %x was taken as %+v", c.kind, c.raw, d)
		}
		if r := conn.ExecParams(context.Background(), "SELECT $1", [][]byte{c.raw}, []uint32{OID(c.kind)}, []int16{1}, nil).Read(); r.Err == nil {
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
		r := conn.ExecParams(context.Background(), "SELECT $1::text::numeric", [][]byte{[]byte(c.value)}, []uint32{OIDText}, nil, []int16{1}).Read()
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
	for _, k := range []vector.Kind{vector.Invalid, vector.VarBit + 1} {
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
