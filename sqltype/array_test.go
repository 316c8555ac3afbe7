package sqltype

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"pgaccel/vector"
)

// arraySamples are arrays by the kind of their elements, in forms that array_out does not write, too.
var arraySamples = map[vector.Kind][]string{
	vector.Int4:    {"{}", " { } ", "{1}", "{1,NULL,-3}", "{ 1 , null }", `{"1"," 2 "}`, "{{1,2},{3,4}}", "{{{1},{2}},{{3},{4}}}", "[0:1]={5,6}", "[-2:-1][3:3]={{1},{2}}", "[1:2]={1,2}"},
	vector.Text:    {"{}", `{a,"",NULL,"NULL","null","nULl",nul}`, `{"a b","a,b","{","}","\"","\\","a\tb"}`, "{\" \",\"\n\",\"\r\",\"\v\",\"\f\",é€,\" é\"}", `{a b, c }`, `{{a,b},{NULL,"NULL"}}`, `{'a','}`},
	vector.Numeric: {"{1,1.0,-0.50,0.00,NULL,12345678901234567890.12345}"}, vector.Bool: {"{t,f,NULL}"}, vector.Date: {"{2024-02-29,infinity,-infinity,NULL,0044-03-15 BC}"},
	vector.Timestamp: {`{"2024-02-29 12:00:00.5",infinity}`}, vector.TimestampTZ: {`{"2024-02-29 12:00:00+00",NULL}`}, vector.Time: {"{12:00:00.25,24:00:00}"},
	vector.Float4: {"{1.5,NaN,-Infinity,-0}"}, vector.Float8: {"{0.1,1e300,NaN}"}, vector.UUID: {"{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,NULL}"}, vector.MACAddr: {"{08:00:2b:01:02:03}"},
	vector.JSONB: {`{"{\"a\": [1, \"x\"]}",null,"null",1}`}, vector.Varchar: {"{a,NULL}"}, vector.Int2: {"{1,-32768}"}, vector.Int8: {"{9223372036854775807}"},
}

// arraysLeft are not read: the server refuses them, or reads them by other rules.
var arraysLeft = []string{"", "{", "}", "{}x", "1", "{1", "{1,}", "{,1}", "{1}}", "{{1},2}", "{1,{2}}", "{{1},{2,3}}", "{{1},{}}", "{1\\}", `{"1}`, `{"1"2}`, `{1"2"}`, "[1:3]={1,2}", "[1]={1}", "[2:1]={}", "[1:1={1}", "{x}", "{1 2}", "[1:1][1:1]={1}"}

// TestArrays reads and writes arrays of each kind as the server does.
func TestArrays(t *testing.T) {
	conn := realPostgres(t)
	query(t, conn, "SET datestyle = 'ISO, MDY'; SET timezone = 'UTC'; SET extra_float_digits = 1")
	for _, k := range vector.Kinds() {
		array := vector.ArrayOf(k)
		if array == vector.Invalid {
			continue
		}
		typ := Of(array)
		of := query(t, conn, fmt.Sprintf("SELECT oid, typname FROM pg_type WHERE typelem = %d AND typname LIKE '\\_%%'", OID(k)))[0]
		if of[0] != fmt.Sprint(typ.OID) || of[1] != typ.Name || HeldKind(typ.OID) != array || KindOf(typ.OID) != vector.Invalid {
			t.Errorf("%s is %s, the server's is %s", array, typ.Name, of)
		}
		if len(arraySamples[k]) == 0 {
			t.Errorf("no samples of %s", array)
		}
		for _, s := range arraySamples[k] {
			d, ok := typ.Parse(s)
			if !ok {
				t.Errorf("%s %q is not read", array, s)
				continue
			}
			var sent [2][]byte
			for format := range sent {
				r := conn.ExecParams(context.Background(), "SELECT $1::text::"+array.String(), [][]byte{[]byte(s)}, []uint32{OIDText}, nil, []int16{int16(format)}).Read()
				if r.Err != nil {
					t.Fatalf("%s %q: %v", array, s, r.Err)
				}
				sent[format] = r.Rows[0][0]
			}
			received, ok := typ.Receive(sent[1])
			if !ok || received != d || !bytes.Equal(typ.AppendString(nil, d.Str), sent[0]) || d.Str != string(sent[1]) {
				t.Errorf("%s %q: %q and %x, the server has %q and %x, taken: %v", array, s, typ.AppendString(nil, d.Str), d.Str, sent[0], sent[1], ok)
			}
			for n := range sent[1] { // what is cut off is refused
				if _, ok := typ.Receive(sent[1][:n]); ok {
					t.Errorf("%s %q: %d bytes of %d are taken", array, s, n, len(sent[1]))
				}
			}
		}
	}
	for _, s := range arraysLeft {
		if d, ok := Of(vector.ArrayOf(vector.Int4)).Parse(s); ok {
			t.Errorf("%q is read as %x", s, d.Str)
		}
	}
}
