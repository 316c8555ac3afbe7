package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/tpcds"
)

// tpcdsRounds is with how many parameters each statement is asked.
const tpcdsRounds = 2

// TestTPCDS runs statements of the shapes of TPC-DS' 99 over its tables: rows and descriptions are the
// server's, and what is forwarded, with all reasons, is what testdata/tpcds-refusals.txt says.
func TestTPCDS(t *testing.T) {
	const scale = 0.01
	s, direct, proxy := generatedStack(t, tpcds.Source, scale, map[string]string{"jit": "off", "work_mem": "64MB"})
	var refusals strings.Builder
	empty := 0
	for i, q := range tpcds.Queries() {
		for round := range tpcdsRounds {
			sql, p := q.Draw(round, scale), protocols[(i+round)%len(protocols)]
			want := ask(t, direct, sql, p.format)
			if want.err != "" {
				t.Fatalf("%s: the server itself: %s", q.Name, want.err)
			}
			if len(want.rows) == 0 {
				empty++
			}
			before := s.queries(t, "accelerated")
			if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
				t.Errorf("%s, round %d, %s: %s", q.Name, round, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			if s.queries(t, "accelerated") == before {
				refusals.WriteString(refusal(t, proxy, q.Name, sql))
				break
			}
		}
	}
	if empty > 10 {
		t.Errorf("%d answers have no rows: parameters are too narrow", empty)
	}
	checkRefusals(t, "tpcds", refusals.String())
}

// refusal is a line that says why a statement that was just asked was forwarded, with all reasons.
func refusal(t *testing.T, proxy *pgconn.PgConn, name, sql string) string {
	t.Helper()
	first, _, _ := strings.Cut(sql, "\n")
	why := ask(t, proxy, fmt.Sprintf("SELECT reason || ': ' || coalesce(detail, '') || coalesce('; ' || replace(also, E'\\n', '; '), '') FROM pgaccel.queries WHERE query LIKE '%s%%'",
		strings.ReplaceAll(first, "'", "''")), nil)
	return fmt.Sprintf("%s: %s\n", name, strings.Join(why.rows, " "))
}

// checkRefusals compares what was forwarded with testdata's file of the benchmark.
func checkRefusals(t *testing.T, benchmark, refusals string) {
	t.Helper()
	file, err := os.ReadFile("testdata/" + benchmark + "-refusals.txt")
	if err != nil {
		t.Fatal(err)
	}
	var expected strings.Builder
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			expected.WriteString(line)
		}
	}
	if refusals != expected.String() {
		t.Errorf("forwarded:\n%sinstead of\n%s", refusals, expected.String())
	}
}
