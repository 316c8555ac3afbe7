package sqlfn

import (
	"fmt"
	"strings"
	"testing"

	"pgaccel/sqltype"
	"pgaccel/vector"
)

// TestBitStrings compares the functions of strings of bits of many lengths with the server's: those of the table have samples of
// one bit, as bit has where no length is declared.
func TestBitStrings(t *testing.T) {
	conn := connect(t)
	if _, err := conn.Exec(t.Context(), `CREATE FUNCTION run(text) RETURNS text LANGUAGE plpgsql AS
		$$ DECLARE r text; BEGIN EXECUTE $1 INTO r; RETURN r; EXCEPTION WHEN others THEN RETURN 'error'; END $$`); err != nil {
		t.Fatal(err)
	}
	list := append([]string{"101", "11111110", "011111111", "10000000000000000000000000000001", "1" + strings.Repeat("0", 63), strings.Repeat("1", 64), strings.Repeat("10", 40)}, varbitSamples...)
	type call struct {
		sql  string
		f    *Function
		args []vector.Value
	}
	var calls []call
	add := func(f *Function, sql string, args ...vector.Value) { calls = append(calls, call{sql, f, args}) }
	number := func(n int64) vector.Value { return vector.Value{I: n} }
	for _, a := range list {
		l := vector.Value{Str: a}
		for _, b := range list {
			r := vector.Value{Str: b}
			for _, oid := range []uint32{1673, 1674, 1675, OIDBitCat} {
				symbol := map[uint32]string{1673: "&", 1674: "|", 1675: "#", OIDBitCat: "||"}[oid]
				add(ByOID(oid), fmt.Sprintf("SELECT B'%s' %s B'%s'", a, symbol, b), l, r)
			}
		}
		for _, name := range []string{"length", "octet_length", "bit_length", "bit_count"} {
			add(Lookup(name, vector.Bit), fmt.Sprintf("SELECT %s(B'%s')", name, a), l)
		}
		add(ByOID(1676), fmt.Sprintf("SELECT ~ B'%s'", a), l)
		add(ByOID(1684), fmt.Sprintf("SELECT B'%s'::int4", a), l)
		add(ByOID(2076), fmt.Sprintf("SELECT B'%s'::int8", a), l)
		for _, n := range []int64{0, 1, 3, 7, 8, 9, 16, 31, 33, 64, 100, -1, -8} {
			add(ByOID(1677), fmt.Sprintf("SELECT B'%s' << %d", a, n), l, number(n))
			add(ByOID(1678), fmt.Sprintf("SELECT B'%s' >> %d", a, n), l, number(n))
			add(ByOID(3032), fmt.Sprintf("SELECT get_bit(B'%s', %d)", a, n), l, number(n))
			if n > 0 {
				add(ByOID(OIDBitLength), fmt.Sprintf("SELECT B'%s'::bit(%d)", a, n), l, number(n), number(1))
				add(ByOID(OIDVarBitLength), fmt.Sprintf("SELECT B'%s'::varbit::varbit(%d)", a, n), l, number(n), number(1))
				for _, v := range []int64{0, 1, -1, 6, -6, 1 << 20, -1 << 31} {
					add(ByOID(1683), fmt.Sprintf("SELECT (%d)::int4::bit(%d)", v, n), number(v), number(n))
					add(ByOID(2075), fmt.Sprintf("SELECT (%d)::int8::bit(%d)", v<<8, n), number(v<<8), number(n))
				}
			}
		}
	}
	var statements []string
	for _, c := range calls {
		statements = append(statements, c.sql)
	}
	want := runAll(t, conn, statements)
	answered := map[uint32]int{}
	for i, c := range calls {
		v, err := c.f.Eval(c.args)
		got := "error"
		if err == nil {
			answered[c.f.OID]++
			got = sqltype.Text(v.Datum(vector.TypeOf(c.f.Result)))
		}
		if got != want[i] {
			t.Errorf("%s: %s, the server has %s", c.sql, got, want[i])
		}
	}
	for i := range bitStrings {
		if f := &bitStrings[i]; answered[f.OID] == 0 {
			t.Errorf("%s, %d is not asked for", f.Name, f.OID)
		}
	}
	for _, a := range list {
		d, _ := sqltype.Of(vector.VarBit).Parse(a)
		var raw []byte
		if err := conn.QueryRow(t.Context(), "SELECT varbit_send($1::text::varbit)", a).Scan(&raw); err != nil {
			t.Fatal(err)
		}
		back, ok := sqltype.Of(vector.VarBit).Receive(raw)
		if string(sqltype.Of(vector.VarBit).AppendStringBinary(nil, d.Str)) != string(raw) || !ok || back != d {
			t.Errorf("%s is %x in binary, and read as %q", a, raw, back.Str)
		}
	}
	var sorted []string
	if err := conn.QueryRow(t.Context(), "SELECT array_agg(v::text ORDER BY v) FROM unnest($1::text[]) s, LATERAL (SELECT s::varbit) x(v)", list).Scan(&sorted); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1] > sorted[i] {
			t.Errorf("%s sorts before %s in the server", sorted[i-1], sorted[i])
		}
	}
}
