package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// reusedSegments returns the segments that executions did not scan.
func (s *stack) reusedSegments(t testing.TB) int {
	t.Helper()
	return int(s.metric(t, "pgaccel_reuse_total")[`kind="segments"`])
}

// segmentSchema is a table of some segments, and one that is joined. Statistics would have statements planned anew.
const segmentSchema = `
CREATE TABLE readings (id bigint PRIMARY KEY, at timestamptz NOT NULL, g int, kind text, v int, n numeric(12,2), f double precision) WITH (autovacuum_enabled = off);
INSERT INTO readings SELECT i, '2024-01-01'::timestamptz + i * interval '1 minute', nullif(i % 7, 3), 'kind ' || i % 5, i % 1000, (i % 977) / 4.0, i / 8.0 FROM generate_series(1, 200000) i;
CREATE TABLE kinds (kind text PRIMARY KEY, name text NOT NULL, rate int) WITH (autovacuum_enabled = off);
INSERT INTO kinds SELECT 'kind ' || i, 'name ' || i / 2, i FROM generate_series(0, 4) i;
`

var segmentStatements = []string{
	"SELECT count(*), sum(v), min(at), max(n) FROM readings",
	"SELECT g, count(*), count(g), sum(n), avg(v), bool_or(v > 998) FROM readings GROUP BY g ORDER BY g",
	"SELECT kind, upper(kind), count(*), sum(v) FILTER (WHERE g = 1), variance(v) FROM readings WHERE v BETWEEN 10 AND 900 GROUP BY 1, 2 ORDER BY 1",
	"SELECT date_trunc('month', at), kind || '!', count(*), sum(n) FROM readings GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT name, g, count(*), sum(v * rate) FROM readings JOIN kinds USING (kind) GROUP BY ROLLUP (name, g) ORDER BY 1, 2, 3",
	"SELECT g, sum(f), avg(f), max(f) FROM readings GROUP BY g HAVING count(*) > 10 ORDER BY g",
	"SELECT count(*) FROM readings WHERE kind = (SELECT min(kind) FROM kinds)",
	"SELECT date_trunc('day', at), count(*) FROM readings WHERE v = 7 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 5",
}

// TestReuseSegments asks the same while the table is written to, by one session after each question and by others all the
// time: what is kept of segments is right for the snapshot of each transaction.
func TestReuseSegments(t *testing.T) {
	s := privateStack(t, segmentSchema, reuse)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	writer := connect(t, s.direct.url("postgres"))
	r := rand.New(rand.NewPCG(3, 9))
	changes := newChanges(r)
	asked := func(what string, least int) {
		t.Helper()
		before := s.reusedSegments(t)
		s.accelerates(t, len(segmentStatements), func() {
			for _, sql := range segmentStatements {
				same(t, direct, proxy, sql)
			}
		})
		if n := s.reusedSegments(t) - before; n < least {
			t.Errorf("%s: %d segments were reused, want at least %d", what, n, least)
		}
		if t.Failed() {
			t.Fatal(what)
		}
	}
	asked("first", 0)
	for i, c := range []struct {
		change string
		least  int
	}{
		{"INSERT INTO readings SELECT i, now(), 1, 'kind 1', 5, 5, 5 FROM generate_series(200001, 200100) i", 0},
		{"INSERT INTO readings VALUES (200101, now(), 1, 'kind new', 5, 5, 5)", 8},
		{"UPDATE readings SET v = v + 1 WHERE id = 1", 6},
		{"DELETE FROM readings WHERE id BETWEEN 100000 AND 101000", 2},
		{"UPDATE kinds SET rate = rate + 1 WHERE kind = 'kind 2'", 0}, // results of the others are kept
		{"INSERT INTO readings VALUES (200102, '1999-01-01', -50, NULL, 123456, NULL, -0.5)", 2},
		{"INSERT INTO readings SELECT i, now(), 1, 'kind 1', 5, 5, 5 FROM generate_series(200200, 220000) i", 2},
		{"BEGIN; UPDATE readings SET v = 0; ROLLBACK", 0},
		{"DELETE FROM readings WHERE id > 200200", 2},
	} {
		must(t, writer, c.change)
		asked(fmt.Sprint(i, " ", c.change), c.least)
	}
	t.Run("off", func(t *testing.T) {
		must(t, proxy, "SET pgaccel.reuse = 'off'")
		for _, sql := range segmentStatements { // what begins ahead of a gate does not know yet
			must(t, proxy, sql)
		}
		must(t, writer, changes())
		before := s.reusedSegments(t)
		for _, sql := range segmentStatements {
			same(t, direct, proxy, sql)
		}
		if n := s.reusedSegments(t) - before; n != 0 {
			t.Errorf("%d segments were reused", n)
		}
		must(t, proxy, "RESET pgaccel.reuse")
	})
	t.Run("explain", func(t *testing.T) {
		must(t, writer, "INSERT INTO readings VALUES (600000, now(), 1, 'kind 1', 5, 5, 5)")
		same(t, direct, proxy, segmentStatements[1])
		must(t, writer, "INSERT INTO readings VALUES (600001, now(), 1, 'kind 1', 5, 5, 5)")
		a := ask(t, proxy, "EXPLAIN (ANALYZE) "+segmentStatements[1], nil)
		if !strings.Contains(strings.Join(a.rows, "\n"), "Segments Reused: ") {
			t.Error(a)
		}
	})
	t.Run("writers", func(t *testing.T) { s.underWriters(t, direct, proxy) })
}

// newChanges returns what a writer does next.
func newChanges(r *rand.Rand) func() string {
	next := 1_000_000 + r.IntN(1000)*1_000_000
	return func() string {
		switch r.IntN(5) {
		case 0:
			return fmt.Sprintf("UPDATE readings SET v = v + 1, g = %d WHERE id = %d", r.IntN(9), 1+r.IntN(200000))
		case 1:
			return fmt.Sprintf("DELETE FROM readings WHERE id = %d", 1+r.IntN(200000))
		case 2:
			return fmt.Sprintf("BEGIN; UPDATE readings SET n = n + 1 WHERE id %% 100003 = %d; SELECT pg_sleep(0.02); COMMIT", r.IntN(1000))
		default:
			next += 500
			return fmt.Sprintf("INSERT INTO readings SELECT i, now(), i %% 11, 'kind ' || i %% 6, i, i, i FROM generate_series(%d, %d) i", next, next+r.IntN(400))
		}
	}
}

// underWriters compares answers of transactions with one snapshot, older ones among them, while others write.
func (s *stack) underWriters(t *testing.T, direct, proxy *pgconn.PgConn) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 2 {
		conn := connect(t, s.direct.url("postgres"))
		changes := newChanges(rand.New(rand.NewPCG(uint64(i), 5)))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					if a := ask(t, conn, changes(), nil); a.err != "" && !strings.Contains(a.err, "40P01") { // two updates in another order
						t.Error(a.err)
						return
					}
				}
			}
		})
	}
	before := s.reusedSegments(t)
	newest := connect(t, s.proxy.url("postgres"))
	s.accelerates(t, 3*len(segmentStatements), func() {
		for range 4 {
			must(t, direct, "BEGIN ISOLATION LEVEL REPEATABLE READ")
			snapshot := strings.Trim(ask(t, direct, "SELECT pg_export_snapshot()", nil).rows[0], `"|`)
			must(t, proxy, "BEGIN ISOLATION LEVEL REPEATABLE READ")
			must(t, proxy, fmt.Sprintf("SET TRANSACTION SNAPSHOT '%s'", snapshot))
			for _, sql := range segmentStatements {
				must(t, newest, sql) // its segments are the entry's then, too
				same(t, direct, proxy, sql)
			}
			must(t, proxy, "COMMIT")
			must(t, direct, "COMMIT")
		}
	})
	close(stop)
	wg.Wait()
	if n := s.reusedSegments(t) - before; n < 20 {
		t.Errorf("%d segments were reused", n)
	}
}
