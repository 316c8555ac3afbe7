package integration

import (
	"fmt"
	"testing"
)

// reuse has results kept for those who ask the same again, as is the default of serve; other tests want
// each execution computed.
const reuse = "--reuse-memory=64MiB"

// reused returns the executions that were answered by a kept result.
func (s *stack) reused(t testing.TB) int {
	t.Helper()
	return int(s.metric(t, "pgaccel_reuse_total")[`kind="result"`])
}

// TestReuse asks each statement again and again, between changes of its tables and of the session: results come
// from earlier executions, of other sessions too, wherever nothing has changed, and nowhere else.
func TestReuse(t *testing.T) {
	s := privateStack(t, changingSchema+"CREATE ROLE reader LOGIN; GRANT SELECT ON changing TO reader;\nALTER TABLE changing ADD at timestamptz DEFAULT '2024-03-31 00:30+00', ADD t text DEFAULT 'x';\n", reuse)
	direct, proxy, other := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres")), connect(t, s.proxy.url("postgres"))
	statements := []string{sumChanging, joinChanging, "SELECT avg(v), count(DISTINCT t), min(at) FROM changing", "SELECT date_trunc('day', at), count(*) FROM changing GROUP BY 1 ORDER BY 1",
		"SELECT id, v, t FROM changing WHERE g = 3 ORDER BY v DESC, id LIMIT 20", "SELECT count(*) FROM changing WHERE at > now() - interval '1000 years'", "SELECT g, to_json(count(*)) FROM changing GROUP BY g ORDER BY g"}
	// twice asks everything so often in both sessions; least is how many statements reuse a result at the least.
	twice := func(t *testing.T, what string, least int) {
		t.Helper()
		before := s.reused(t)
		s.accelerates(t, 2*len(statements), func() {
			for _, sql := range statements {
				same(t, direct, proxy, sql)
				same(t, direct, other, sql)
			}
		})
		if n := s.reused(t) - before; n < least {
			t.Errorf("%s: %d executions reused a result, want at least %d", what, n, least)
		}
		if t.Failed() {
			t.Fatal(what)
		}
	}
	twice(t, "at first", 5*(len(statements)-1)-1)
	for i, change := range []string{"INSERT INTO changing VALUES (100000, 3, 100000)", "UPDATE changing SET v = v + 1 WHERE id = 7", "DELETE FROM changing WHERE g = 4", "UPDATE quiet SET name = name || '!' WHERE g = 3",
		"BEGIN; UPDATE changing SET v = 0; ROLLBACK", "TRUNCATE changing", "INSERT INTO changing SELECT i, i % 10, i FROM generate_series(1, 3000) i", "ALTER TABLE changing ALTER COLUMN v TYPE numeric(15,2)", "VACUUM FULL changing"} {
		must(t, direct, change)
		s.eventually(t, proxy, sumChanging)
		s.eventually(t, other, joinChanging)
		twice(t, fmt.Sprint(i, change), 2*(len(statements)-1))
	}
	for _, c := range []string{"SET TimeZone = 'Australia/Lord_Howe'", "SET DateStyle = 'German'", "SET IntervalStyle = 'sql_standard'", "SET extra_float_digits = -3", "RESET ALL"} {
		must(t, direct, c)
		must(t, proxy, c)
		must(t, other, c)
		s.eventually(t, proxy, sumChanging)
		for _, sql := range statements {
			same(t, direct, proxy, sql)
			same(t, direct, other, sql)
		}
	}
	t.Run("off", func(t *testing.T) {
		must(t, other, "SET pgaccel.reuse = 'off'")
		before := s.reused(t)
		for _, sql := range statements {
			same(t, direct, other, sql)
		}
		if n := s.reused(t) - before; n != 0 {
			t.Errorf("%d executions reused a result", n)
		}
		must(t, other, "RESET pgaccel.reuse")
	})
	t.Run("an old snapshot", func(t *testing.T) {
		for _, c := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"} {
			must(t, other, c)
			must(t, direct, c)
		}
		writer := connect(t, s.direct.url("postgres"))
		for i := range 4 {
			same(t, direct, other, sumChanging)
			must(t, writer, fmt.Sprintf("UPDATE changing SET v = v + %d WHERE id < 100", i+1))
			same(t, writer, proxy, sumChanging)
			same(t, direct, other, sumChanging)
		}
		must(t, other, "ROLLBACK")
		must(t, direct, "ROLLBACK")
	})
	t.Run("own writes", func(t *testing.T) {
		same(t, direct, other, sumChanging)
		for _, c := range []string{"BEGIN", "DELETE FROM changing WHERE g = 1"} {
			must(t, other, c)
		}
		mine := ask(t, other, sumChanging, nil)
		must(t, other, "ROLLBACK")
		if a := same(t, direct, other, sumChanging); a.String() == mine.String() {
			t.Error("a transaction does not see its own DELETE")
		}
	})
	t.Run("rights", func(t *testing.T) {
		reader, plain := connect(t, s.proxy.url("reader")), connect(t, s.direct.url("reader"))
		for range 2 {
			same(t, plain, reader, sumChanging)
		}
		must(t, direct, "REVOKE SELECT ON changing FROM reader")
		if a := same(t, plain, reader, sumChanging); a.err == "" {
			t.Error("reads what it may not")
		}
		must(t, direct, "ALTER TABLE changing ENABLE ROW LEVEL SECURITY; GRANT SELECT ON changing TO reader")
		same(t, plain, reader, sumChanging)
		same(t, direct, proxy, sumChanging)
	})
}
