package sqltype

import (
	"bytes"
	"context"
	"testing"
)

// asText are the types of which any text, beginning with a version for one, is taken.
var asText = map[string]bool{"refcursor": true, "xml": true, "jsonpath": true}

// TestOpaques writes each type's samples as the server does, from its binary form, and refuses shorter and longer ones.
func TestOpaques(t *testing.T) {
	conn := realPostgres(t)
	query(t, conn, "SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'; SET extra_float_digits = 1; SET intervalstyle = 'postgres'; SET lc_monetary = 'C'")
	for _, typ := range Opaques() {
		if got := query(t, conn, "SELECT typname FROM pg_type WHERE oid = "+string(AppendInt(nil, int64(typ.OID)))); len(got) != 1 || got[0][0] != typ.Name {
			t.Errorf("%d is %v, not %s", typ.OID, got, typ.Name)
		}
		for _, value := range typ.Samples {
			var sent [2][]byte
			for format := range sent {
				r := conn.ExecParams(context.Background(), "SELECT $1::"+typ.SQL(), [][]byte{[]byte(value)}, nil, nil, []int16{int16(format)}).Read()
				if r.Err != nil {
					t.Fatalf("%s %q: %v", typ.Name, value, r.Err)
				}
				sent[format] = r.Rows[0][0]
			}
			d, ok := typ.Receive(sent[1])
			if text := typ.AppendText(nil, d.Str); !ok || !bytes.Equal(text, sent[0]) {
				t.Errorf("%s %q: %q, %v, the server has %q", typ.Name, value, text, ok, sent[0])
			}
			if asText[typ.Name] {
				continue
			}
			for n := range len(sent[1]) {
				if _, ok := typ.Receive(sent[1][:n]); ok {
					t.Errorf("%s %q: %d bytes of %x are taken", typ.Name, value, n, sent[1])
				}
			}
			if _, ok := typ.Receive(append(sent[1], 0)); ok {
				t.Errorf("%s %q: a byte more is taken", typ.Name, value)
			}
		}
	}
}

// TestByteaEscape writes bytes as under bytea_output escape.
func TestByteaEscape(t *testing.T) {
	conn := realPostgres(t)
	query(t, conn, "SET bytea_output = 'escape'")
	for _, value := range byteaType.Samples {
		r := conn.ExecParams(context.Background(), "SELECT $1::text::bytea", [][]byte{[]byte(value)}, []uint32{OIDText}, nil, nil).Read()
		d, _ := byteaType.Parse(value)
		if r.Err != nil || string(AppendByteaEscape(nil, d.Str)) != string(r.Rows[0][0]) {
			t.Errorf("%q: %q, the server has %v", value, AppendByteaEscape(nil, d.Str), r)
		}
	}
}
