package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const analyticScript = `\set d random(0, 10)
\set y random(1992, 1998)
SELECT count(*), sum(lo_revenue) FROM lineorder WHERE lo_discount = :d;
SELECT d_year, sum(lo_revenue) FROM lineorder JOIN dates ON lo_orderdate = d_datekey WHERE d_year = :y GROUP BY d_year;
`

// TestPgbench runs pgbench in its three protocols: an analytic script, its own
// select-only and its own read-write transaction, whose sums must agree at the end.
func TestPgbench(t *testing.T) {
	pgbench := need(t, "pgbench", "apt-get install -y postgresql-contrib")
	s := privateStack(t, starSchema)
	args := func(tg target, more ...string) []string {
		return append([]string{"-h", "127.0.0.1", "-p", fmt.Sprint(tg.port), "-U", "postgres", "-n"}, append(more, tg.db)...)
	}
	run(t, nil, nil, pgbench, args(s.proxy, "-i", "-q", "-s", "1")...)
	script := filepath.Join(t.TempDir(), "analytic.sql")
	if err := os.WriteFile(script, []byte(analyticScript), 0o644); err != nil {
		t.Fatal(err)
	}
	const clients, each = 4, 15
	for _, mode := range []string{"simple", "extended", "prepared"} {
		t.Run(mode, func(t *testing.T) {
			bench := func(more ...string) {
				t.Helper()
				out := string(run(t, nil, nil, pgbench, args(s.proxy, append([]string{"-M", mode, "-c", strconv.Itoa(clients), "-t", strconv.Itoa(each)}, more...)...)...))
				want := fmt.Sprintf("number of transactions actually processed: %d/%d", clients*each, clients*each)
				if !strings.Contains(out, want) || !regexp.MustCompile(`number of failed transactions: 0 `).MatchString(out) {
					t.Errorf("pgbench %v:\n%s", more, out)
				}
			}
			s.accelerates(t, clients*each*2, func() { bench("-f", script) })
			bench("-S")
			bench("-b", "tpcb-like")
			s.both(t, func(tg target) []byte {
				a := ask(t, connect(t, tg.url("postgres")), `SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(bbalance) FROM pgbench_branches),
					(SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)`, nil)
				f := strings.Split(strings.Trim(strings.Join(a.rows, ""), "|"), "|")
				if len(f) != 5 || f[0] != f[1] || f[1] != f[2] || f[2] != f[3] {
					t.Errorf("sums disagree: %s", a)
				}
				return []byte(a.String())
			})
		})
	}
}
