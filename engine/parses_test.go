package engine

import (
	"testing"

	"pgaccel/catalog"
	"pgaccel/sqltype"
	"pgaccel/syntax"
)

// TestParsesOnce: a text is parsed once, whatever is asked of it, and once for each catalog by
// which it is decided on anew.
func TestParsesOnce(t *testing.T) {
	b := newAheadBench(t)
	e := b.engine
	f := func(what string, want int64, sql string, oids ...uint32) *statement {
		t.Helper()
		before := syntax.Parses.Load()
		st := e.prepare(sql, oids, nil)
		for range 2 { // Bind, Execute
			st.Decide(Session{Forces: true}).Route()
		}
		if n := syntax.Parses.Load() - before; n != want {
			t.Errorf("%s: parsed %d times, want %d", what, n, want)
		}
		return st
	}
	count := "SELECT count(*) FROM t" // without constants: so small a table's others are not kept
	typed := "SELECT count(*) FROM t WHERE a > $1"
	f("a statement", 1, count)
	f("the same again", 0, count)
	f("with a semicolon", 1, count+";")
	f("several statements", 1, "BEGIN; SET x.y = 1; SELECT count(*) FROM t GROUP BY a")
	f("the last one of these alone", 0, " SELECT count(*) FROM t GROUP BY a")
	f("several that are not split", 1, "SELECT a FROM t; SELECT count(*) FROM t")
	st := f("Parse", 1, typed)
	f("the same again", 0, typed)
	f("with a type", 1, typed, sqltype.OIDInt4)
	f("EXPLAIN", 1, "EXPLAIN "+count)
	f("DECLARE CURSOR", 1, "DECLARE c CURSOR FOR SELECT a, a, a FROM t")
	f("the same again", 0, "DECLARE c CURSOR FOR SELECT a, a, a FROM t")
	f("its SELECT", 0, "SELECT a, a, a FROM t")
	f("with a FETCH", 1, "BEGIN; DECLARE c CURSOR FOR SELECT max(a) FROM t; FETCH c")
	f("COPY", 1, "COPY (SELECT a, a FROM t) TO STDOUT")
	f("the same again", 0, "COPY (SELECT a, a FROM t) TO STDOUT")
	f("its rows", 0, "SELECT a, a FROM t")
	f("COPY FROM", 1, "COPY t FROM STDIN")
	f("the same again", 0, "COPY t FROM STDIN")
	f("SET", 1, "SET pgaccel.mode = 'off'")
	f("forwarded", 1, "SELECT random() FROM t WHERE a = 1")
	f("the same again", 0, "SELECT random() FROM t WHERE a = 1")
	f("forwarded, other constants", 0, "SELECT random() FROM t WHERE a = 2")
	f("cannot be parsed", 1, "SELECT FROM (")
	view := f("the schema pgaccel", 1, "SELECT name, rows FROM pgaccel.tables")
	f("the same again", 0, "SELECT name, rows FROM pgaccel.tables")
	if view.Decide(Session{}).Route() != RouteView {
		t.Error("no view")
	}
	b.store.SetCatalog(&catalog.Catalog{Tables: []*catalog.Table{b.meta}, WALSegmentSize: 16 << 20, WALBlockSize: 8192, Operators: "n"})
	f("another catalog", 1, typed)
	before := syntax.Parses.Load()
	if st.Decide(Session{Forces: true}); syntax.Parses.Load() != before {
		t.Error("decided on, and parsed again")
	}
}
