package syntax

import (
	"fmt"
	"testing"
)

func TestCopy(t *testing.T) {
	f := func(sql, rows, options string) {
		t.Helper()
		c, text := Parse(sql).Copy()
		if text == nil {
			if rows != "" {
				t.Errorf("%s: nothing", sql)
			}
			return
		}
		got := fmt.Sprintf("%v %v %v %q %q %q %q %v %v %v %v", c.CSV, c.Binary, c.Header, c.Delimiter, c.Quote, c.Escape, c.Null, c.ForceQuote, c.ForceQuoteAll, c.Table, c.Columns)
		if text.SQL != rows || options != "" && got != options {
			t.Errorf("%s: %q %s", sql, text.SQL, got)
		}
		if sel, _ := text.Select(); sel == nil {
			t.Errorf("%s: no SELECT", sql)
		}
		// What is read of the rows is what is read of their text.
		a, p := text.Normalize(len(rows) - 1)
		if b, q := Parse(rows).Normalize(len(rows) - 1); a != b || p[0] != q[0] {
			t.Errorf("%s: %s %d, alone %s %d", sql, a, p, b, q)
		}
	}
	f("COPY (SELECT 1) TO STDOUT", "SELECT 1", `false false false '\t' '\x00' '\x00' "\\N" [] false false []`)
	f("/* é( */ copy ((select 'é)', 2 -- )\n)) to stdout", "(select 'é)', 2 -- )\n)", "")
	f("COPY (SELECT a FROM t) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE (a, b), NULL 'x');", "SELECT a FROM t", `true false true ',' '"' '"' "x" [a b] false false []`)
	f("COPY t TO STDOUT BINARY", `SELECT * FROM ONLY "t"`, `false true false '\t' '\x00' '\x00' "\\N" [] false true []`)
	f(`COPY s."T""" (a, "B") TO STDOUT CSV QUOTE '''' ESCAPE '\' FORCE QUOTE *`, `SELECT "a", "B" FROM ONLY "s"."T"""`, `true false false ',' '\'' '\\' "" [] true true [a B]`)
	for _, sql := range []string{"COPY t FROM STDIN", "COPY t TO '/tmp/x'", "COPY t TO PROGRAM 'x'", "COPY (INSERT INTO t VALUES (1) RETURNING a) TO STDOUT", "COPY (SELECT $1) TO STDOUT", "COPY d.s.t TO STDOUT",
		"COPY t TO STDOUT; SELECT 1", "SELECT 1", "COPY t (a, a) TO STDOUT", "COPY t TO STDOUT (FREEZE)", "COPY t TO STDOUT (HEADER match)", "COPY t TO STDOUT (HEADER, HEADER)", "COPY t TO STDOUT (FORMAT x)",
		"COPY t TO STDOUT (DELIMITER '')", "COPY t TO STDOUT (DELIMITER 'é')", "COPY t TO STDOUT (NULL E'\\n')", "COPY t TO STDOUT (FORMAT csv, ESCAPE '')", "COPY t TO STDOUT (ESCAPE 'x')", "COPY t TO STDOUT (ENCODING latin1)",
		"COPY t TO STDOUT (FORMAT binary, NULL 'x')", "COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE 'a')", "COPY t TO STDOUT (DELIMITER 5)", "COPY t TO STDOUT (ON_ERROR stop)"} {
		f(sql, "", "")
	}
}
