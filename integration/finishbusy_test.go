package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// snapshotFor is longer than a statement is forwarded under whose rest others have changed something.
const snapshotFor = 1100 * time.Millisecond

// TestPostgresJoinsOthersAmidUnrelatedCommits has commits between the gate and the end of a rest that reads tables: while the copied ones
// are the same that is no matter.
func TestPostgresJoinsOthersAmidUnrelatedCommits(t *testing.T) {
	s, direct, proxy := othersStack(t)
	must(t, direct, "CREATE TABLE away.unrelated (i int); ALTER TABLE away.shop SET (autovacuum_enabled = false)")
	admin, watch := connect(t, s.direct.url("postgres")), connect(t, s.direct.url("postgres"))
	// The rest takes long enough for what is done amid it.
	const sql = "SELECT q.*, g.c FROM (SELECT l.city, sum(s.n), count(*) FROM sold s JOIN away.shop l ON l.shop = s.shop GROUP BY l.city) q, (SELECT count(*) AS c FROM generate_series(1, 3000000)) g ORDER BY 1"
	forwarded := false
	for i, c := range []struct {
		amid   string
		partly bool
	}{
		{"INSERT INTO away.unrelated VALUES (1)", true},
		{"ANALYZE sold, away.shop, away.unrelated", true},
		{"UPDATE away.shop SET city = city || 'x'", true}, // which the rest does not see
		{"CREATE TABLE away.made_%d (i int)", true},
		{"GRANT SELECT ON away.shop TO poor", false},
		{"UPDATE sold SET n = n + 1 WHERE id = 5", false},
		{"UPDATE sold SET n = n + 1 WHERE id = 5; UPDATE away.shop SET city = city || 'y'", false},
		{"CREATE ROLE other_%d; GRANT SELECT ON sold TO other_%[1]d", false},
	} {
		left := false // to the server: what is done while the statement is analysed, before its gate, is not amid the rest
		for j, block := range []string{"", "BEGIN", "", "BEGIN"} {
			p := protocols[[]int{0, 2, 1, 0}[j]]
			if c.partly || j < 2 {
				t.Run(fmt.Sprintf("%d %s %s", i, p.name, block), func(t *testing.T) {
					for _, conn := range []*pgconn.PgConn{direct, proxy} {
						if block != "" {
							must(t, conn, block)
						}
					}
					if forwarded {
						time.Sleep(snapshotFor) // until it is tried again
					}
					earlier, before := ask(t, direct, sql, p.format), s.queries(t, "partial")
					done := make(chan answer, 1)
					for active := false; !active; { // the rest, behind the gate
						before = s.queries(t, "partial")
						go func() { done <- ask(t, proxy, sql, p.format) }()
						active = activeBefore(t, watch, "%generate_series%", done)
					}
					amid := c.amid
					if c.amid[:6] == "CREATE" {
						amid = fmt.Sprintf(c.amid, i*10+j)
					}
					must(t, admin, amid)
					got := <-done
					partly := s.queries(t, "partial") != before
					forwarded = !partly
					later := ask(t, direct, sql, p.format)
					if text := got.String(); text != later.String() && text != earlier.String() {
						t.Errorf("amid %s: %s%s", amid, got.err, firstDifference([]byte(text), []byte(later.String())))
					}
					left = left || !partly
					if c.partly && !partly {
						t.Errorf("amid %s: in part %t %s", amid, partly, reasons(t, s))
					}
					for _, conn := range []*pgconn.PgConn{direct, proxy} {
						if block != "" {
							must(t, conn, "COMMIT")
						}
					}
				})
			}
		}
		if !c.partly && !left {
			t.Errorf("amid %s: never left to the server", c.amid)
		}
	}
}

// activeBefore waits until a query like pattern is running. It is false where an answer has come before one was seen.
func activeBefore(t *testing.T, conn *pgconn.PgConn, pattern string, done <-chan answer) bool {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if a := ask(t, conn, "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE $1", []int16{0}, pattern); len(a.rows) > 0 {
			return true
		}
		select {
		case <-done:
			return false
		default:
		}
	}
	t.Fatalf("no query like %s is running", pattern)
	return false
}

// TestPostgresJoinsOthersOnBusyServer has others commit all the time: to what is not copied, which is seen as of the statement.
func TestPostgresJoinsOthersOnBusyServer(t *testing.T) {
	s, direct, proxy := othersStack(t)
	must(t, direct, "CREATE TABLE away.level (id int, n bigint); INSERT INTO away.level VALUES (1, 0)")
	stop, done := make(chan bool), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := direct.Exec(t.Context(), "UPDATE away.level SET n = n + 1").ReadAll(); err != nil {
				done <- err
				return
			}
		}
	}()
	last, admin := 0, connect(t, s.direct.url("postgres"))
	level := func(conn *pgconn.PgConn, sql string, format []int16) (n int) {
		a := ask(t, conn, sql, format)
		if len(a.rows) != 1 {
			t.Fatal(a)
		}
		var text string
		fmt.Sscanf(a.rows[0], "%q|", &text)
		fmt.Sscan(text, &n)
		return n
	}
	s.inPart(t, 30, func() {
		for i := range 60 {
			n := level(proxy, "SELECT l.n, q.n FROM away.level l, (SELECT sum(n) AS n FROM sold) q", protocols[i%2].format)
			if n < last {
				t.Errorf("it has gone back from %d to %d", last, n)
			}
			if last = level(admin, "SELECT n FROM away.level", nil); n > last {
				t.Errorf("%d is not yet", n)
			}
		}
	})
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
