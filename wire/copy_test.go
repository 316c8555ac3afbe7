package wire

import (
	"encoding/binary"
	"testing"
)

// copyRow is a DataRow message of values; "NULL" is null.
func copyRow(values ...string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{'D', 0, 0, 0, 0}, uint16(len(values)))
	for _, v := range values {
		if v == "NULL" {
			b = append(b, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return seal(b, 0)
}

// TestCopyWriter: lines of COPY; integration.TestCopyOut compares them with the server's.
func TestCopyWriter(t *testing.T) {
	line := func(w CopyWriter, want string, values ...string) {
		t.Helper()
		got := w.AppendRow([]byte("x"), copyRow(values...))
		if string(got[1+HeaderLen:]) != want || got[1] != CopyData || int(binary.BigEndian.Uint32(got[2:])) != len(got)-2 {
			t.Errorf("%q: %q, want %q", values, got, want)
		}
	}
	text := CopyWriter{Delimiter: '\t', Null: `\N`}
	line(text, "a\t\\N\t\n", "a", "NULL", "")
	line(text, "\\b\\t\\n\\v\\f\\r\x07\x0e\\\\é\n", "\b\t\n\v\f\r\x07\x0e\\é")
	line(CopyWriter{Delimiter: 1}, "a\\\x01b\x01\n", "a\x01b", "NULL")
	csv := CopyWriter{CSV: true, Delimiter: ',', Quote: '"', Escape: '"'}
	line(csv, "a,\"b,c\",\"d\"\"e\",,\"\",\"f\n\",\"\r\",g\th\n", "a", "b,c", `d"e`, "NULL", "", "f\n", "\r", "g\th")
	line(csv, "\"\\.\"\n", `\.`)
	line(csv, "\\.,\\.\n", `\.`, `\.`)
	line(csv, "\n")
	csv.Escape, csv.ForceQuote, csv.Null = '\\', []bool{true, false}, "n"
	line(csv, `"a\\b\"",c\d`+"\n", `a\b"`, `c\d`)
	line(csv, `n,"n"`+"\n", "NULL", "n")
	binary := CopyWriter{Binary: true}
	line(binary, binaryHeader+"\x00\x01\x00\x00\x00\x01a", "a")
	end := string(binary.AppendEnd(nil, 0))
	if want := "d\x00\x00\x00\x19" + binaryHeader + "\xff\xff" + "c\x00\x00\x00\x04" + "C\x00\x00\x00\x0bCOPY 0\x00"; end != want {
		t.Errorf("%q, want %q", end, want)
	}
}
