package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// same runs sql on both connections in every protocol and asserts equal answers,
// which it returns in simple protocol's form.
func same(t *testing.T, direct, proxy *pgconn.PgConn, sql string) answer {
	t.Helper()
	var first answer
	for _, p := range protocols {
		want, got := ask(t, direct, sql, p.format), ask(t, proxy, sql, p.format)
		if got.String() != want.String() {
			t.Errorf("%s (%s)%s", sql, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
		}
		if p.format == nil {
			first = want
		}
	}
	return first
}

const (
	sumSecret   = "SELECT g, count(*), sum(v) FROM secret GROUP BY g ORDER BY g"
	sumRuled    = "SELECT g, count(*), sum(v) FROM ruled GROUP BY g ORDER BY g"
	countSecret = "SELECT count(*) FROM secret"
)

// TestRights asks as roles with all, some and no rights: exactly the server's
// answer or error, and nothing accelerated that the role may not read.
func TestRights(t *testing.T) {
	s := sharedStack(t)
	for _, c := range []struct {
		role, sql, failsWith string
		accelerated          int // executions of three
	}{
		{"reader", sumSecret, "", 3},
		{"reader", countSecret, "", 3},
		{"reader", "SELECT id, owner FROM secret WHERE id < 5 ORDER BY id", "", 3},
		{"reader", "SELECT sum(lo_revenue) FROM lineorder", "permission denied for table lineorder", 0},
		{"nobody_special", sumSecret, "permission denied for table secret", 0},
		{"nobody_special", countSecret, "permission denied for table secret", 0},
		{"nobody_special", "SELECT sum(v) FROM secret WHERE false", "permission denied for table secret", 0},
		{"nobody_special", "SELECT sum(v) FROM public.secret LIMIT 0", "permission denied for table secret", 0},
		{"nobody_special", "SELECT sum(lo_revenue) FROM lineorder", "permission denied for table lineorder", 0},
		{"nobody_special", "SELECT * FROM secret_view ORDER BY g", "", 3},
		{"nobody_special", "SELECT * FROM invoker_view ORDER BY g", "permission denied for table secret", 0},
		{"some_columns", "SELECT g, count(*) FROM secret GROUP BY g ORDER BY g", "", 3},
		{"some_columns", countSecret, "", 3},
		{"some_columns", sumSecret, "permission denied for table secret", 0},
		{"some_columns", "SELECT g, count(*) FROM secret WHERE v > 5 GROUP BY g ORDER BY g", "permission denied for table secret", 0},
		{"some_columns", "SELECT g FROM secret GROUP BY g ORDER BY max(v)", "permission denied for table secret", 0},
		{"some_columns", "SELECT count(v) FROM secret", "permission denied for table secret", 0},
		{"some_columns", "SELECT count(*) FROM secret a JOIN secret b ON a.id = b.id WHERE b.v > 3", "permission denied for table secret", 0},
		{"some_rows", sumRuled, "", 0},
		{"some_rows", "SELECT count(*) FROM ruled", "", 0},
		{"reader", sumRuled, "", 0},
		{"reader", "SELECT count(*) FROM ruled WHERE g = 3", "", 0},
		{"postgres", sumRuled, "", 3}, // a superuser bypasses row-level security
	} {
		t.Run(c.role+" "+c.sql, func(t *testing.T) {
			direct, proxy := connect(t, s.direct.url(c.role)), connect(t, s.proxy.url(c.role))
			check := func() {
				if a := same(t, direct, proxy, c.sql); c.failsWith == "" && a.err != "" || !strings.Contains(a.err, c.failsWith) {
					t.Errorf("the server said %q, want %q", a.err, c.failsWith)
				}
			}
			if c.accelerated > 0 {
				s.accelerates(t, c.accelerated, check)
			} else {
				s.forwardsAll(t, check)
			}
		})
	}
}

// TestRoleChangesInSession switches roles and rights in a session that has already
// been answered from the columns.
func TestRoleChangesInSession(t *testing.T) {
	s := privateStack(t, rightsSchema, reuse)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	admin := connect(t, s.direct.url("postgres"))
	s.accelerates(t, 3, func() { same(t, direct, proxy, sumSecret) })
	for _, step := range []struct {
		set      string
		may      bool
		rowlevel bool
	}{
		{"SET ROLE nobody_special", false, true},
		{"SET ROLE reader", true, true},
		{"SET ROLE some_columns", false, true},
		{"RESET ROLE", true, false},
		{"SET SESSION AUTHORIZATION nobody_special", false, true},
		{"RESET SESSION AUTHORIZATION", true, false},
		{"SELECT set_config('role', 'nobody_special', false)", false, true},
		{"DO $$BEGIN PERFORM set_config('role', 'reader', false); END$$", true, true},
		{"DO $$BEGIN EXECUTE 'SET ROLE some_columns'; END$$", false, true},
		{"DISCARD ALL", true, false},
		{"BEGIN; SET LOCAL ROLE nobody_special", false, true},
		{"ROLLBACK", true, false},
		{"SET row_security = off", true, false},
		{"SET ROLE reader", true, true},
		{"RESET ALL; RESET ROLE", true, false},
	} {
		if a, b := ask(t, direct, step.set, nil), ask(t, proxy, step.set, nil); a.String() != b.String() || a.err != "" {
			t.Fatalf("%s: %s, direct %s", step.set, b, a)
		}
		check := func() {
			a := ask(t, direct, sumSecret, nil)
			b := ask(t, proxy, sumSecret, nil)
			if a.String() != b.String() || (a.err == "") != step.may {
				t.Errorf("after %s: %s, direct %s", step.set, b, a)
			}
			if a.err != "" && strings.HasPrefix(step.set, "BEGIN") {
				return // the transaction is aborted
			}
			a, b = ask(t, direct, sumRuled, nil), ask(t, proxy, sumRuled, nil)
			if a.String() != b.String() {
				t.Errorf("after %s: %s, direct %s", step.set, b, a)
			}
		}
		switch {
		case step.may:
			s.accelerates(t, 1, check)
		default:
			s.forwardsAll(t, check)
		}
	}

	// Rights given and taken while a session runs, seen by its next query, prepared
	// statements included.
	reader := connect(t, s.proxy.url("reader"))
	directReader := connect(t, s.direct.url("reader"))
	for _, c := range []*pgconn.PgConn{reader, directReader} {
		if _, err := c.Prepare(t.Context(), "p", sumSecret, nil); err != nil {
			t.Fatal(err)
		}
	}
	prepared := func(c *pgconn.PgConn) string {
		r := c.ExecPrepared(t.Context(), "p", nil, nil, nil).Read()
		var a answer
		a.note(r.Err)
		for _, row := range r.Rows {
			for _, v := range row {
				a.rows = append(a.rows, string(v))
			}
		}
		return a.String()
	}
	for range 3 {
		for _, change := range []string{"REVOKE SELECT ON secret FROM reader", "GRANT SELECT (g, v) ON secret TO reader", "REVOKE SELECT (v) ON secret FROM reader",
			"GRANT SELECT ON secret TO reader", "ALTER TABLE secret ENABLE ROW LEVEL SECURITY", "ALTER TABLE secret DISABLE ROW LEVEL SECURITY"} {
			if a := ask(t, admin, change, nil); a.err != "" {
				t.Fatal(change, a.err)
			}
			if got, want := prepared(reader), prepared(directReader); got != want {
				t.Errorf("after %s: %s, direct %s", change, got, want)
			}
			same(t, directReader, reader, sumSecret)
		}
	}
	s.eventually(t, reader, sumSecret)
}

// eventually asserts that the query is accelerated again after changes have ended:
// a table that changes soon after each copy has to be quiet for twice as long.
func (s *stack) eventually(t *testing.T, conn *pgconn.PgConn, sql string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		before := s.queries(t, "accelerated")
		if a := ask(t, conn, sql, nil); a.err != "" {
			t.Fatal(a.err)
		}
		if s.queries(t, "accelerated") > before {
			return
		}
		if time.Now().After(deadline) {
			defer t.FailNow()
			t.Errorf("not accelerated again within a minute: %s", sql)
			for line := range s.metrics(t) {
				t.Log(line)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
