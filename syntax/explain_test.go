package syntax

import (
	"fmt"
	"testing"
)

func TestExplain(t *testing.T) {
	f := func(sql, query, options string) {
		t.Helper()
		x, text := Parse(sql).Explain()
		if text == nil {
			if query != "" {
				t.Errorf("%s: nothing", sql)
			}
			return
		}
		got := fmt.Sprintf("%v %v %v %v %v %s", x.Analyze, x.Verbose, x.Costs, x.Timing, x.Summary, x.Format)
		if text.SQL != query || options != "" && got != options {
			t.Errorf("%s: %q %s", sql, text.SQL, got)
		}
		if sel, _ := text.Select(); sel == nil {
			t.Errorf("%s: no SELECT", sql)
		}
		a, p := text.Normalize(len(query) - 1)
		if b, q := Parse(query).Normalize(len(query) - 1); a != b || p[0] != q[0] {
			t.Errorf("%s: %s %d, alone %s %d", sql, a, p, b, q)
		}
	}
	f("EXPLAIN SELECT 1", "SELECT 1", "false false true false false text")
	f("/* é */ explain -- (\n (select 'é', 2)", "(select 'é', 2)", "")
	f("EXPLAIN ANALYZE VERBOSE (SELECT 1);", "(SELECT 1);", "true true true true true text")
	f("EXPLAIN /* ( */ VERBOSE /* SELECT */ WITH x AS (SELECT 1) TABLE x", "WITH x AS (SELECT 1) TABLE x", "false true true false false text")
	f("EXPLAIN (ANALYZE, VERBOSE off, COSTS 0, TIMING false, SUMMARY 'off', BUFFERS, SETTINGS on, FORMAT JSON) (VALUES (1))", "(VALUES (1))", "true false false false false json")
	f("EXPLAIN (FORMAT 'yaml', ANALYZE, ANALYZE off, SUMMARY) SELECT 1", "SELECT 1", "false false true false true yaml")
	for _, sql := range []string{"EXPLAIN (FORMAT 'JSON') SELECT 1", "EXPLAIN (FORMAT csv) SELECT 1", "EXPLAIN (NONE) SELECT 1", "EXPLAIN (TIMING) SELECT 1", "EXPLAIN (WAL, ANALYZE) SELECT 1", "EXPLAIN (GENERIC_PLAN) SELECT 1",
		"EXPLAIN (COSTS maybe) SELECT 1", "EXPLAIN EXECUTE x", "EXPLAIN UPDATE t SET a = 1", "EXPLAIN CREATE TABLE x AS SELECT 1", "EXPLAIN DECLARE c CURSOR FOR SELECT 1", "EXPLAIN SELECT 1; SELECT 2", "SELECT 1", "EXPLAIN"} {
		f(sql, "", "")
	}
}
