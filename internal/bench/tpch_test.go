package bench

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// tpchRun runs the benchmark at a tiny scale factor with the pgaccel that serveArgs choose
// (fake_test.go).
func tpchRun(t *testing.T, o RunOptions) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, progress bytes.Buffer
	o.Binary, o.Progress = self, &progress
	err := TPCH(ctx, TPCHOptions{Scale: 0.01, RunOptions: o}, &out)
	if err != nil && out.Len() == 0 {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	return out.String(), err
}

// TestTPCH asks a real pgaccel, in two rounds with different parameters and sides in both
// orders: it answers all queries itself, and rightly.
func TestTPCH(t *testing.T) {
	out, err := tpchRun(t, RunOptions{Rounds: 2, Runs: 1, Bytes: true})
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{"TPC-H, scale factor 0.01 (", "Postgres by itself: 2 x 1 runs", "q22", "geomean", "Columns in memory", "\nlineitem.l_comment "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestTPCHJudges has a pgaccel and another beside it that both give wrong answers: that is
// seen in rounds that begin with them and in rounds that end with them.
func TestTPCHJudges(t *testing.T) {
	out, err := tpchRun(t, RunOptions{Rounds: 2, Runs: 1, Queries: []string{"q01", "q06"}, Base: self, ServeArgs: []string{"--fake", "lie"}})
	w, werr := tpchWorkload(0.01)
	if err == nil || werr != nil {
		t.Fatal(err, werr)
	}
	for _, want := range []string{"q01: pgaccel's answer is not Postgres': row ", "q01: the other pgaccel's answer is not Postgres': row ",
		"in " + w.queries[0].draw(0), "in " + w.queries[0].draw(1)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "Postgres itself") {
		t.Error(err)
	}
	if !strings.Contains(out, "Postgres by itself: 2 x 1 runs") || !strings.Contains(out, "WRONG ANSWER") {
		t.Error(out)
	}
}

// TestTPCHDuckDB has a DuckDB that answers 1 to everything.
func TestTPCHDuckDB(t *testing.T) {
	_, err := tpchRun(t, RunOptions{Rounds: 1, Runs: 1, Queries: []string{"q01", "q02"}, DuckDB: self, ServeArgs: []string{"--fake", "right"}})
	if err == nil || strings.Count(err.Error(), "DuckDB's answer is not Postgres'") != 2 {
		t.Errorf("error %v", err)
	}
}
