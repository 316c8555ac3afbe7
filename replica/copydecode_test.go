package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// decode runs a decoder into a store of its own and returns the rows as text.
func decode(meta *catalog.Table, b []byte) ([]string, error) {
	store := colstore.New(colstore.Options{SegmentRows: 1024})
	defer store.Close()
	l := store.NewLoader(meta)
	defer l.Abort()
	w := l.NewWriter()
	d := newCopyDecoder(meta, copied(meta), w)
	if err := firstError(d.message(b), w.Close()); err != nil {
		return nil, err
	}
	v, err := l.Finish()
	if err != nil {
		return nil, err
	}
	defer v.Release()
	if d.rows != v.Rows {
		return nil, fmt.Errorf("%d rows decoded, %d stored", d.rows, v.Rows)
	}
	return contents(v), nil
}

type edge struct {
	typ    string
	values map[string]any
}

// edges holds the values that types end or turn at, and what they must become.
var edges = []edge{
	{"boolean", map[string]any{"true": 1, "false": 0, "NULL": nil}},
	{"smallint", map[string]any{"-32768": -32768, "32767": 32767, "0": 0, "NULL": nil}},
	{"integer", map[string]any{"-2147483648": math.MinInt32, "2147483647": math.MaxInt32, "-1": -1}},
	{"bigint", map[string]any{"-9223372036854775808": math.MinInt64, "9223372036854775807": math.MaxInt64, "NULL": nil}},
	{"numeric(18,0)", map[string]any{"999999999999999999": 999999999999999999, "-999999999999999999": -999999999999999999, "0": 0, "10000": 10000, "100000000": 100000000}},
	{"numeric(18,18)", map[string]any{"0.999999999999999999": 999999999999999999, "-0.000000000000000001": -1, "0.0001": 100000000000000, "0": 0}},
	{"numeric(12,2)", map[string]any{"1.5": 150, "-0.01": -1, "9999999999.99": 999999999999, "-9999999999.99": -999999999999, "0.10": 10, "10000": 1000000, "12345678.9": 1234567890, "NULL": nil}},
	{"numeric(15,5)", map[string]any{"0.00001": 1, "1.00001": 100001, "9999.99999": 999999999, "0.1": 10000, "1234567890.12345": 123456789012345}},
	{"numeric(3,3)", map[string]any{"0.999": 999, "-0.001": -1, "0.01": 10}},
	{"date", map[string]any{"'2000-01-01'": 0, "'1999-12-31'": -1, "'4713-01-01 BC'": -2451507, "'5874897-12-31'": 2145031948, "'infinity'": math.MaxInt32, "'-infinity'": math.MinInt32}},
	{"time", map[string]any{"'00:00'": 0, "'24:00'": 86400000000, "'12:34:56.789012'": 45296789012}},
	{"timestamp", map[string]any{"'2000-01-01'": 0, "'1999-12-31 23:59:59.999999'": -1, "'infinity'": math.MaxInt64, "'-infinity'": math.MinInt64, "'4714-11-24 BC'": -211813488000000000}},
	{"timestamptz", map[string]any{"'2000-01-01 02:00+02'": 0, "'294276-12-31 23:59:59.999999+00'": 9223371331199999999, "'infinity'": math.MaxInt64}},
	{"real", map[string]any{"'NaN'": math.NaN(), "'-0'": math.Copysign(0, -1), "'Infinity'": math.Inf(1), "'-Infinity'": math.Inf(-1), "1.5": 1.5, "3.4028235e38": float64(math.MaxFloat32), "1e-45": float64(math.SmallestNonzeroFloat32)}},
	{"double precision", map[string]any{"'NaN'": math.NaN(), "'-0'": math.Copysign(0, -1), "0": 0.0, "'Infinity'": math.Inf(1), "1.7976931348623157e308": math.MaxFloat64, "5e-324": math.SmallestNonzeroFloat64, "0.1": 0.1}},
	{"text", map[string]any{"''": "", "'a'": "a", "'größe €𝄞'": "größe €𝄞", "' x '": " x ", "repeat('y', 100000)": strings.Repeat("y", 100000), "NULL": nil, `E'\\x01\\n'`: "\\x01\\n"}},
	{"varchar(5)", map[string]any{"'abcde'": "abcde", "'a  '": "a  ", "''": ""}},
	{"jsonb", map[string]any{`'{"b": 1, "a": [1.50, null]}'`: `{"a": [1.50, null], "b": 1}`, "'null'": "null", "NULL": nil, "to_jsonb(repeat('y', 100000))": `"` + strings.Repeat("y", 100000) + `"`}},
	{"json", map[string]any{`'{"b" : 1,"a":1e3, "b":[]} '`: `{"b" : 1,"a":1e3, "b":[]} `, "NULL": nil}},
	{"bytea", map[string]any{`'\x00ff'`: "\x00\xff", "''": "", "NULL": nil, `'a\\b'`: `a\b`}},
	{"char(4)", map[string]any{"'a'": "a   ", "'é'": "é   ", "''": "    ", "NULL": nil}},
}

// The samples of every type that is held in 64 bits and is not above.
func init() {
	for _, k := range vector.Kinds() {
		typ := sqltype.Of(k)
		if k.IsString() || typ.ParseWord == nil || slices.ContainsFunc(edges, func(e edge) bool { return e.typ == k.String() }) {
			continue
		}
		e := edge{typ.Name, map[string]any{"NULL": nil}}
		for _, s := range typ.Samples {
			e.values["'"+s+"'"], _ = typ.ParseWord(s)
		}
		edges = append(edges, e)
	}
}

func TestEveryTypeRoundTrips(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	var tables []string
	for i, e := range edges {
		name := fmt.Sprintf("t%02d", i)
		mustExec(t, c, fmt.Sprintf("CREATE TABLE %s (k text, v %s)", name, e.typ))
		for lit := range e.values {
			mustExec(t, c, fmt.Sprintf("INSERT INTO %s VALUES ($k$%s$k$, %s)", name, lit, lit))
		}
		tables = append(tables, name)
	}
	ep, store := testEpoch(t, url)
	// The tables have no key, so that the catalog refuses them; take them as they are.
	for _, name := range tables {
		mustExec(t, c, "ALTER TABLE "+name+" REPLICA IDENTITY FULL")
	}
	cat, _, err := readCatalogOf(context.Background(), c, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	store.SetCatalog(cat)
	h, err := ep.hold(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	for i, e := range edges {
		meta := cat.Lookup("public", tables[i])[0]
		v, err := ep.copyTable(context.Background(), h, meta, newFlag(), func() {})
		if err != nil {
			t.Fatalf("%s: %v", e.typ, err)
		}
		rows := contents(v)
		if len(rows) != len(e.values) {
			t.Errorf("%s: %d rows, want %d", e.typ, len(rows), len(e.values))
		}
		for _, row := range rows {
			key, got, _ := strings.Cut(row[1:], "|")
			want, ok := e.values[key]
			if !ok {
				t.Errorf("%s: unexpected row %q", e.typ, row)
				continue
			}
			if got != wantText(want) {
				t.Errorf("%s: %s became %.60q, want %.60q", e.typ, key, got, wantText(want))
			}
		}
		v.Release()
	}
}

func wantText(v any) string {
	switch v := v.(type) {
	case nil:
		return "~"
	case float64:
		if v != v {
			return "9221120237041090560" // Postgres' NaN has no payload, Go's has
		}
		return fmt.Sprint(int64(math.Float64bits(v)))
	case string:
		return v
	}
	return fmt.Sprint(v)
}

func TestColumnThatDoesNotFitIsLeftOut(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, n numeric(10,2), t text); INSERT INTO a VALUES (1, 1.5, 'x'), (2, 'NaN', 'y')")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	told := make(chan Progress, 100)
	r := start(t, url, Config{Store: store, Progress: func(p Progress) { told <- p }})
	defer r.Close()
	ready(t, r)
	var last Progress
	for last = <-told; len(told) > 0; last = <-told {
	}
	if last.Table != "public.a" || last.Rows != 2 || last.Bytes == 0 || !last.Done {
		t.Errorf("progress: %+v", last)
	}
	a := tableOID(t, c, "a")
	v, _ := store.Get(a)
	if v == nil {
		t.Fatalf("not copied: %+v", store.Statuses())
	}
	if got := strings.Join(contents(v), " "); got != "|1|-|x |2|-|y" || v.Meta.Columns[1].Unsupported != "it holds NaN" {
		t.Errorf("rows %q, column %+v", got, v.Meta.Columns[1])
	}
	v.Release()
	if u := store.Catalog().ByOID(a).Columns[1].Unsupported; u != "it holds NaN" {
		t.Errorf("the catalog does not know: %q", u)
	}
}

// row builds a COPY row.
func row(fields ...[]byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(fields)))
	for _, f := range fields {
		if f == nil {
			b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return b
}

var copyHeader = append(bytes.Clone(copySignature), 0, 0, 0, 0, 0, 0, 0, 0)

func testTable() *catalog.Table {
	return &catalog.Table{Schema: "s", Name: "t", Columns: []catalog.Column{{Name: "a", Type: vector.TypeOf(vector.Int4)}, {Name: "x", Unsupported: "y"},
		{Name: "n", Type: vector.NumericType(2)}, {Name: "t", Type: vector.TypeOf(vector.Text)}, {Name: "f", Type: vector.TypeOf(vector.Float4)},
		{Name: "s", Type: vector.TypeOf(vector.Int2)}, {Name: "b", Type: vector.TypeOf(vector.Bool)}, {Name: "i", Type: vector.TypeOf(vector.Int8)}}}
}

func TestCorruptCopyDataIsAnError(t *testing.T) {
	meta := testTable()
	good := row([]byte{0, 0, 0, 1}, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 5}, []byte("hey"), nil, []byte{0, 1}, []byte{1}, make([]byte, 8))
	rows, err := decode(meta, append(bytes.Clone(copyHeader), good...))
	if err != nil || len(rows) != 1 || rows[0] != "|1|-|500|hey|~|1|1|0" {
		t.Fatalf("%v %q", err, rows)
	}
	for cut := 1; cut < len(good); cut++ {
		if _, err := decode(meta, append(bytes.Clone(copyHeader), good[:cut]...)); err == nil {
			t.Errorf("a row cut at %d was accepted", cut)
		}
	}
	for _, bad := range [][]byte{nil, copyHeader[:len(copyHeader)-1], append([]byte("x"), copyHeader...), append(bytes.Clone(copySignature), 0, 1, 0, 0, 0, 0, 0, 0),
		append(bytes.Clone(copySignature), 0, 0, 0, 0, 0, 0, 0, 9), append(bytes.Clone(copyHeader), row([]byte{1})...)} {
		if _, err := decode(meta, bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestCopiedTextThatIsDamaged(t *testing.T) {
	for _, damaged := range []string{"\xc3", "caf\xc3", "a\x00b", "\xed\xa0\x80"} {
		_, err := decode(testTable(), append(bytes.Clone(copyHeader), row(nil, nil, []byte(damaged), nil, nil, nil, nil)...))
		var bad *columnError
		if !errors.As(err, &bad) || bad.col != 3 {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}

func FuzzCopyDecoder(f *testing.F) {
	meta := testTable()
	f.Add(append(bytes.Clone(copyHeader), row([]byte{0, 0, 0, 1}, []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 5}, []byte("hey"), nil, nil, nil, nil)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := decode(meta, b); err != nil {
			var c *columnError
			if errors.As(err, &c) && (c.col < 0 || c.col >= len(meta.Columns)) {
				t.Errorf("column %d", c.col)
			}
		}
	})
}
