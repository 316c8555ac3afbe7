package integration

import (
	"testing"
	"time"
)

// TestTableNeverAnalysed: a table that was made and filled after the start, and never
// analysed, is accelerated once it is large, and not while it is small, as it grows by
// the stream.
func TestTableNeverAnalysed(t *testing.T) {
	s := privateStack(t, "CREATE TABLE first (a int)")
	direct := connect(t, s.direct.url("postgres"))
	client := connect(t, s.proxy.url("postgres", "&options=-c%20application_name%3Dyoung"))
	do := func(sql string) {
		t.Helper()
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatalf("%s: %s", sql, a.err)
		}
	}
	do("CREATE TABLE young (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off)")
	const sql = "SELECT count(*), sum(v) FROM young"
	answered := func(what, want string, accelerated bool) {
		t.Helper()
		for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			before := s.queries(t, "accelerated")
			if a := ask(t, client, sql, nil); len(a.rows) != 1 || a.rows[0] != want {
				t.Fatalf("%s: %s, want %s", what, a, want)
			}
			if s.queries(t, "accelerated") > before == accelerated {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: accelerated is %v", what, !accelerated)
			}
		}
	}
	do("INSERT INTO young SELECT g, 1 FROM generate_series(1, 100) g")
	for end := time.Now().Add(60 * time.Second); ask(t, client, "SELECT state FROM pgaccel.tables WHERE name = 'public.young'", nil).column() != "ready"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not copied")
		}
	}
	answered("100 rows", `"100"|"100"|`, false)
	do("INSERT INTO young SELECT g, 1 FROM generate_series(101, 300000) g")
	answered("300,000 rows", `"300000"|"300000"|`, true)
	do("DELETE FROM young WHERE id > 50")
	answered("50 rows", `"50"|"50"|`, false)
	if a := ask(t, direct, "SELECT reltuples FROM pg_class WHERE relname = 'young'", nil); a.column() != "-1" {
		t.Errorf("it was analysed: %s", a)
	}
}
