package engine

import (
	"strconv"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

func TestSelects(t *testing.T) {
	f := func(sql string, want bool) {
		t.Helper()
		if got := selects(sql); got != want {
			t.Errorf("%q: %v, want %v", sql, got, want)
		}
	}
	f("SELECT 1", true)
	f("  /* a /* nested */ comment */ -- and a line\n sElEcT 1", true)
	f("(select 1)", true)
	f("WITH a AS (SELECT 1) SELECT * FROM a", true)
	f("BEGIN;SELECT 1", true)
	f("DECLARE c CURSOR FOR SELECT 1", true)
	f("FETCH c", false)
	f("INSERT INTO t VALUES (1)", false)
	f("update t set a = 1", false)
	f("selection", false)
	f("", true)
	f("/* open", true)
	f("-- only", true)
}

func TestStripConstants(t *testing.T) {
	f := func(sql, want string, ok bool) {
		t.Helper()
		got, gotOK := stripConstants(nil, sql)
		if gotOK != ok || ok && string(got) != want {
			t.Errorf("%q: %q, %v; want %q, %v", sql, got, gotOK, want, ok)
		}
	}
	f("SELECT abalance FROM a WHERE aid = 4711;", "SELECT abalance FROM a WHERE aid = ?;", true)
	f("select 'it''s' , 1.5e10 , .5, t1.c2", "select ? , ? , ?, t1.c2", true)
	f("select  /* x */ a\n from t", "select a from t", true)
	f(`select "a 1", $1 from t2`, `select "a 1", $1 from t2`, true)
	f(`select 'a\b'`, "", false)
	f(`select E'a'`, "", false)
	f(`select U&'a'`, "", false)
	f(`select $$a$$`, "", false)
	f(`select $x$a$x$`, "", false)
	f("select 'open", "", false)
	f(`select "open`, "", false)
	f("", "", true)
}

func FuzzStripConstants(f *testing.F) {
	f.Add("select 'a' -- b\n, $1, \"c\"")
	f.Fuzz(func(t *testing.T, sql string) {
		selects(sql)
		if out, ok := stripConstants(nil, sql); ok && len(out) > len(sql) {
			t.Errorf("%q became longer: %q", sql, out)
		}
	})
}

// BenchmarkPrepareForwarded is what each Parse or Query of an application's own point
// query costs, beside relaying it.
func BenchmarkPrepareForwarded(b *testing.B) {
	store := colstore.New(colstore.Options{MemoryLimit: 64 << 20})
	defer store.Close()
	store.SetCatalog(&catalog.Catalog{Tables: []*catalog.Table{{OID: 42, Schema: "public", Name: "accounts", Fingerprint: "x",
		Columns: []catalog.Column{{Name: "aid", AttNum: 1, TypeOID: sqltype.OIDInt4, Type: vector.TypeOf(vector.Int4)}}}}})
	e := New(Options{Store: store})
	for name, f := range map[string]func(i int) string{
		"one text":  func(int) string { return "SELECT aid FROM accounts WHERE aid = $1" },
		"constants": func(i int) string { return "SELECT aid FROM accounts WHERE aid = " + strconv.Itoa(i) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				sql := f(i)
				if !e.Mentions([]byte(sql)) {
					b.Fatal("not mentioned")
				}
				d := e.Prepare(sql, nil).Decide(Session{})
				if d.Route() != RouteForward {
					b.Fatal("not forwarded")
				}
				d.Forwarded("")
			}
		})
	}
}
