package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// binaryOf encodes a datum as Postgres would send it.
func binaryOf(t testing.TB, d vector.Datum) []byte {
	t.Helper()
	if d.Type.Kind == vector.Opaque { // an interval of any fields, held as its binary form
		return []byte(d.Str)
	}
	c := vector.Column{Type: d.Type}
	c.Append(d, 0)
	e, err := NewRowEncoder([]vector.Column{c}, []uint32{sqltype.OID(d.Type.Kind)}, []int16{1}, settings15)
	if err != nil {
		t.Fatal(err)
	}
	return field(e.Append(nil, 0))
}

func pgBinary(conn *pgconn.PgConn, oid uint32, format int16, raw []byte) ([]byte, error) {
	r := conn.ExecParams(context.Background(), "select $1", [][]byte{raw}, []uint32{oid}, []int16{format}, []int16{1}).Read()
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Rows[0][0], nil
}

// paramTexts are forms that clients send and that must be taken.
var paramTexts = map[uint32][]string{
	sqltype.OIDBool:    {"t", "f", "true", "false", "TRUE", "1", "0", "yes", "no", "on", "off", "y", "n"},
	sqltype.OIDInt2:    {"0", "-32768", "32767", "+5", "-0", "007"},
	sqltype.OIDInt4:    {"0", "-2147483648", "2147483647"},
	sqltype.OIDInt8:    {"0", "-9223372036854775808", "9223372036854775807"},
	sqltype.OIDNumeric: {"0", "1.50", "-0.00", ".5", "5.", "+1.1", "00012.3400", "99999999999999999999999999999999999999", "-0.0000000000000000000000000000000000001", "0000000000000000000000000000000000000000000000000001", "1.5e3", "1.50e1", "-1E-5", "0e7"},
	sqltype.OIDFloat8:  {"0", "-0", "1.5", "1e10", "-1E-10", ".5", "5.", "NaN", "nan", "Infinity", "-Infinity", "inf", "-inf", "+Infinity", "1.7976931348623157e308", "5e-324", "1e23", "0e5000"},
	sqltype.OIDFloat4:  {"0", "-0", "1.5", "0.1", "16777217", "3.4028235e38", "1e-45", "NaN", "-Infinity", "1.00000017881393432617187499"},
	sqltype.OIDDate: {"2024-02-29", "2000-01-01", "1999-12-31", "0001-01-01", "0001-01-01 BC", "0044-03-15 BC", "4714-11-24 BC", "9999-12-31", "10000-01-01",
		"294276-12-31", "infinity", "-infinity", "2024-01-02 +00", "2024-01-02 -05:30", "2024-01-02 Z", "0044-03-15 +00 BC", "2024-01-02 23:59:59.5", "2024-01-02T10:00:00+05"},
	sqltype.OIDTime: {"00:00", "00:00:00", "23:59:59.999999", "24:00:00", "12:34:56.1", "12:34:56.000001"},
	sqltype.OIDTimestamp: {"2024-02-29 12:34:56", "2024-02-29T12:34:56.789", "2024-02-29", "2024-02-29 12:34", "2024-02-29 12:34:56+05", "2024-02-29 12:34:56Z", "2024-02-29 12:34:56 Z", "2024-02-29 12:34:56-0530", "2024-02-29 -05:30",
		"0044-03-15 12:00:00 BC", "infinity", "-infinity", "10000-01-01 00:00:00", "1883-01-01 00:00:00.000001"},
	sqltype.OIDTimestampTZ: {"2024-02-29 12:34:56+00", "2024-02-29T12:34:56.789Z", "2024-02-29 12:34:56-05:30", "2024-02-29 12:34+14", "2024-02-29 12:34:56+00:00:07",
		"2024-02-29 12:34:56 Z", "2024-02-29 12:34:56-0530", "2024-02-29 -05:30", "2024-02-29 Z",
		"0044-03-15 12:00:00+00 BC", "infinity", "-infinity", "2024-12-31 23:59:59.999999-12"},
	sqltype.OIDText:    {"", "abc", "äöü", " a "},
	sqltype.OIDVarchar: {"", "abc  "},
	sqltype.OIDBPChar:  {"", "abc  "},
}

// paramTextsAndSamples has the samples of every type, too.
func paramTextsAndSamples() map[uint32][]string {
	all := map[uint32][]string{}
	for _, k := range vector.Kinds() {
		typ := sqltype.Of(k)
		all[typ.OID] = append(slices.Clone(paramTexts[typ.OID]), typ.Samples...)
	}
	return all
}

// oddTexts are forms that may be left to Postgres; those that are taken must mean
// the same there.
var oddTexts = []string{"", " ", "1 ", " 1", "1_000", "0x10", "1e5", "1e400", "1e-400", "--1", "+-1", "+", "-", ".", "e5", "1e", "1e+", "1.2.3", "٣", "NULL",
	"32768", "2147483648", "9223372036854775808", "tr", "T", "nanx", "+nan", "-nan", "++inf", "infinit", "0x1p3", "1p3",
	"2024-02-30", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "2024-13-01", "2024-00-10", "2024-1-2", "24-01-02", "2024-01-02 BC BC", "2024-01-02BC", "01/02/2024",
	"2024-01-02T", "2024-01-02 ", "2024-01-02 24:00:00", "2024-01-02 25:00", "2024-01-02 10:60", "2024-01-02 10:10:60", "2024-01-02 10:10:10.1234567", "2024-01-02 10:10:10.",
	"2024-01-02 10:10:10 UTC", "2024-01-02 10:10:10+16", "2024-01-02 10:10:10+15:59", "2024-01-02 10:10:10+5", "2024-01-02 10:10:10+0560", "2024-01-02 10:10:10+1630", "2024-01-02 10:10:10+053007", "2024-01-02 10:10:10+0530:07", "2024-01-02+05", "2024-01-02  +05", "1e101", "1e-101", "1.5e", "1e5e5", "1 e5", "2024-01-02 10:10:10z",
	"2024-01-02 10:10:10 +00", "2024-01-02 10:10:10+00BC", "2024-01-02 10:10:10 BC", "2024-01-02 10:10:10Z BC", "20240102", "now", "today", "epoch", "5874897-12-31", "5874898-01-01", "294277-01-01", "294276-12-31 23:59:59.999999",
	"4714-11-24 00:00:00 BC", "4714-11-23 BC", "4713-01-01 BC", "4713-01-01 00:00:00 BC", "24:00:00.000001", "24:00", "24:01", "12:34:56+00", "1:2", "12:34:56.1234567", "12", "10:10:10 AM",
	"1e1", "12345678901234567890123456789012345678901", "NaN", "Infinity", "-1e-5", "1.0000000000000000000000000000000000000000000000001"}

func TestTextParamsMeanTheSame(t *testing.T) {
	conn := realPostgres(t)
	// Whatever the settings, a taken form has one meaning.
	for _, set := range []string{"set datestyle = 'ISO, MDY'; set timezone = 'UTC'", "set datestyle = 'German, YMD'; set timezone = 'Asia/Tokyo'",
		"set datestyle = 'SQL, DMY'; set timezone = 'America/St_Johns'"} {
		exec(t, conn, set)
		for oid, must := range paramTextsAndSamples() {
			for i, s := range append(append([]string(nil), must...), oddTexts...) {
				d, err := DecodeParam(oid, FormatText, []byte(s))
				if err != nil {
					if i < len(must) {
						t.Errorf("type %d %q: %v", oid, s, err)
					}
					continue
				}
				read := oid
				if d.Type.Kind == vector.Timestamp { // also of a timestamptz without a zone
					read = sqltype.OIDTimestamp
				}
				want, err := pgBinary(conn, read, FormatText, []byte(s))
				if got := binaryOf(t, d); err != nil || !bytes.Equal(got, want) {
					t.Errorf("type %d %q: got %x, want %x (%v)", oid, s, got, want, err)
				}
			}
		}
	}
}

func TestBinaryParamsMeanTheSame(t *testing.T) {
	conn := realPostgres(t)
	r := rand.New(rand.NewPCG(7, 8))
	check := func(oid uint32, raw []byte, must bool) {
		t.Helper()
		d, err := DecodeParam(oid, FormatBinary, raw)
		if err != nil {
			if must {
				t.Errorf("type %d %x: %v", oid, raw, err)
			}
			return
		}
		want, err := pgBinary(conn, oid, FormatBinary, raw)
		if got := binaryOf(t, d); err != nil || !bytes.Equal(got, want) {
			t.Errorf("type %d %x: got %x, want %x (%v)", oid, raw, got, want, err)
		}
	}
	for oid, texts := range paramTextsAndSamples() {
		for _, s := range texts {
			raw, err := pgBinary(conn, oid, FormatText, []byte(s))
			if err != nil {
				t.Fatal(oid, s, err)
			}
			// DateStyle and zone are the server's own here, so every form has a meaning.
			check(oid, raw, true)
			check(oid, append([]byte{0}, raw...), false)
			check(oid, raw[:len(raw)/2], false)
		}
	}
	for range 500 {
		for _, k := range vector.Kinds() {
			if typ := sqltype.Of(k); typ.Size > 0 {
				check(typ.OID, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())[:typ.Size], false)
			}
		}
		// Numerics as drivers may build them, not only as Postgres normalises them.
		digits := r.IntN(11)
		raw := binary.BigEndian.AppendUint16(nil, uint16(digits))
		raw = binary.BigEndian.AppendUint16(raw, uint16(int16(r.IntN(14)-6)))
		raw = binary.BigEndian.AppendUint16(raw, []uint16{0, 0x4000, 0xc000, 0xd000, 7}[r.IntN(5)])
		raw = binary.BigEndian.AppendUint16(raw, uint16(r.IntN(24)))
		for range digits {
			raw = binary.BigEndian.AppendUint16(raw, []uint16{0, 1, 10, 100, 1000, 9999, 5000, uint16(r.IntN(10001))}[r.IntN(8)])
		}
		check(sqltype.OIDNumeric, raw, false)
	}
}

func TestParamsLeftToPostgres(t *testing.T) {
	for _, c := range []struct {
		oid    uint32
		format int16
		raw    string
	}{
		{600, 0, "(1,2)"}, {2950, 1, "0123456789abcde"}, {1562, 1, "0123456789abcdef"}, {sqltype.OIDInt4, 2, "1"}, {sqltype.OIDText, 2, "a"},
		{sqltype.OIDText, 0, "\xff"}, {sqltype.OIDText, 1, "a\x00b"}, {sqltype.OIDTimestampTZ, 0, "01/02/2024 00:00:00"},
		{sqltype.OIDDate, 0, "01/02/2024"}, {sqltype.OIDInt4, 1, "123"}, {sqltype.OIDFloat8, 0, "1e400"}, {sqltype.OIDFloat8, 0, "1e-400"},
	} {
		if d, err := DecodeParam(c.oid, c.format, []byte(c.raw)); err == nil {
			t.Errorf("type %d format %d %q was taken as %+v", c.oid, c.format, c.raw, d)
		}
	}
	for _, oid := range []uint32{16, 23, 25, 1700, 1184} {
		if d, err := DecodeParam(oid, 0, nil); err != nil || !d.Null || d.Type.Kind != sqltype.KindOf(oid) {
			t.Errorf("null of type %d: %+v, %v", oid, d, err)
		}
	}
	if d, err := DecodeParam(sqltype.OIDFloat8, 0, []byte("NaN")); err != nil || d.I != vector.NaNBits || !math.IsNaN(d.Float64()) {
		t.Errorf("NaN: %+v, %v", d, err)
	}
	if d, err := DecodeParam(sqltype.OIDTimestampTZ, 0, []byte("2000-01-02 00:00:00")); err != nil || d.I != sqltype.MicrosPerDay || d.Type.Kind != vector.Timestamp {
		t.Errorf("a time of the session's zone: %+v, %v", d, err)
	}
	if d, err := DecodeParam(sqltype.OIDNumeric, 0, []byte("-1.50")); err != nil || d.I != -150 || d.Type.Scale != 2 || d.Num.String() != "-1.50" {
		t.Errorf("-1.50: %+v, %v", d, err)
	}
}

// FuzzDecodeParam asserts that no bytes make DecodeParam panic, and that what it
// takes survives a round trip through the encoder.
func FuzzDecodeParam(f *testing.F) {
	for oid, texts := range paramTexts {
		for _, s := range texts {
			f.Add(oid, int16(0), []byte(s))
		}
	}
	f.Add(uint32(1700), int16(1), []byte{0, 1, 0, 0, 0x40, 0, 0, 2, 0x03, 0xe8})
	f.Add(uint32(701), int16(1), []byte("12345678"))
	f.Fuzz(func(t *testing.T, oid uint32, format int16, raw []byte) {
		d, err := DecodeParam(oid, format, raw)
		if err != nil {
			return
		}
		if d.Null {
			if raw != nil {
				t.Fatalf("%d %q became null", oid, raw)
			}
			return
		}
		again, err := DecodeParam(sqltype.OID(d.Type.Kind), FormatBinary, binaryOf(t, d))
		if err != nil {
			t.Fatalf("type %d format %d %q: %v", oid, format, raw, err)
		}
		if fmt.Sprint(again.I, again.Str, again.Num) != fmt.Sprint(d.I, d.Str, d.Num) {
			t.Fatalf("type %d format %d %q: %+v, then %+v", oid, format, raw, d, again)
		}
	})
}
