package integration

import (
	"strings"
	"testing"

	"pgaccel/internal/clickbench"
)

// TestClickBench runs 43 statements of ClickBench's meanings over its table: rows and descriptions are the
// server's, and what is forwarded, with all reasons, is what testdata/clickbench-refusals.txt says.
func TestClickBench(t *testing.T) {
	const rows = 20_000
	s, direct, proxy := generatedStack(t, clickbench.Source, clickbench.ScaleOf(rows), map[string]string{"jit": "off", "work_mem": "64MB"})
	var refusals strings.Builder
	empty := 0
	for i, q := range clickbench.Queries(rows) {
		p := protocols[i%len(protocols)]
		want := ask(t, direct, q.SQL, p.format)
		if want.err != "" {
			t.Fatalf("%s: the server itself: %s", q.Name, want.err)
		}
		if len(want.rows) == 0 {
			empty++
			t.Logf("%s: no rows", q.Name)
		}
		before := s.queries(t, "accelerated")
		if got := ask(t, proxy, q.SQL, p.format); got.String() != want.String() {
			t.Errorf("%s, %s: %s", q.Name, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
		}
		if s.queries(t, "accelerated") == before {
			refusals.WriteString(refusal(t, proxy, q.Name, q.SQL))
		}
	}
	if empty > 2 {
		t.Errorf("%d answers have no rows: the data or numbers are too narrow", empty)
	}
	checkRefusals(t, "clickbench", refusals.String())
}
