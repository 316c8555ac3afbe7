package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgaccel/internal/events"
)

// biRun runs the benchmark over few rows with the pgaccel that serveArgs choose
// (fake_test.go).
func biRun(t *testing.T, duckdb string, serveArgs ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, progress bytes.Buffer
	o := BIOptions{Rows: 2 * events.RowsMin, RunOptions: RunOptions{Binary: self, Rounds: 2, Runs: 1, DuckDB: duckdb, ServeArgs: serveArgs, Progress: &progress, Bytes: len(serveArgs) == 0}}
	err := BI(ctx, o, &out)
	if err != nil && out.Len() == 0 {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	return out.String(), err
}

// TestBI asks a real pgaccel: it answers all queries itself, and rightly.
func TestBI(t *testing.T) {
	out, err := biRun(t, "")
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{"Business intelligence over 20000 events", "q20", "geomean", "Columns in memory", "\nevents.url "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestOnlySomeQueries(t *testing.T) {
	names := func(w workload) (all []string) {
		for _, q := range w.queries {
			all = append(all, q.Name)
		}
		return all
	}
	w := biWorkload(events.RowsMin)
	if err := w.only([]string{"q17", "q02"}); err != nil || !slices.Equal(names(w), []string{"q02", "q17"}) {
		t.Errorf("%v: %v", names(w), err)
	}
	w = biWorkload(events.RowsMin)
	if err := w.only(nil); err != nil || len(w.queries) != 20 {
		t.Errorf("%v: %v", names(w), err)
	}
	if err := w.only([]string{"q02", "q21"}); err == nil || !strings.Contains(err.Error(), "q21") {
		t.Errorf("error %v", err)
	}
}

func TestBIJudges(t *testing.T) {
	f := func(fake, wantErr string, wantOut ...string) {
		t.Helper()
		out, err := biRun(t, "", "--fake", fake)
		if wantErr == "" && err != nil || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("--fake %s: error %v, want %q", fake, err, wantErr)
		}
		for _, want := range wantOut {
			if !strings.Contains(out, want) {
				t.Errorf("--fake %s: no %q in\n%s", fake, want, out)
			}
		}
	}
	f("right", "", "pgaccel, same answer", "Postgres by itself: 1 x 2 runs")
	f("forward", "q17: 4 executions were not accelerated: too cheap", "Postgres: too cheap")
	f("lie", "pgaccel's answer is not Postgres': row ", "WRONG ANSWER")
}

// TestDuckDBJudged has a DuckDB that answers 1 to everything, which no query's answer is.
func TestDuckDBJudged(t *testing.T) {
	out, err := biRun(t, self, "--fake", "right")
	if err == nil || strings.Count(err.Error(), "DuckDB's answer is not Postgres'") != len(events.Queries(events.RowsMin)) {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"DuckDB             fake, 3 threads", fmt.Sprintf("file 0.0 MB, 0.0 MB without its free blocks: pgaccel's columns are %d.00 of that", 2*len(fakeTables()))} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestPrintBytes(t *testing.T) {
	var out bytes.Buffer
	ours := []columnBytes{{"t", "a", "for", 4e6}, {"t", "a", "nulls", 1e6}, {"t", "b", "plain", 2e6}}
	printBytes(&out, ours, []columnBytes{{"t", "a", "BitPacking", 8e6}, {"t", "a", "RLE", 1e6}, {"t", "a", "BitPacking", 1e6}, {"t", "b", "ALP", 1e6}})
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"", "column pgaccel MB DuckDB MB ratio how",
		"t.a 5.00 10.00 0.50x for 4.00, nulls 1.00 | BitPacking 9.00, RLE 1.00", "t.b 2.00 1.00 2.00x plain 2.00 | ALP 1.00", "sum 7.00 11.00 0.64x",
		"ratio: pgaccel / DuckDB; how: pgaccel's codecs | DuckDB's compressions"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestPrintNotes(t *testing.T) {
	var out bytes.Buffer
	d := []time.Duration{time.Millisecond}
	printResults(&out, []*result{
		{query: statement{Name: "same"}, postgres: d, pgaccel: d, duckdb: []time.Duration{2 * time.Millisecond}},
		{query: statement{Name: "other", differs: "it rounds"}, differs: "row 1 is 2", postgres: d, pgaccel: d, duckdb: []time.Duration{time.Microsecond}},
	}, true)
	for _, want := range []string{"pgaccel, same answer\n", "pgaccel, same answer [1]\n", "[1] other: DuckDB's answer is another (it rounds): row 1 is 2\n", "DuckDB is faster on other\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestMatch(t *testing.T) {
	f := func(q statement, want, got string, same bool) {
		t.Helper()
		types := []uint32{25, 701, 20}
		a, b := answer{rows: []byte(want), types: types}, answer{rows: []byte(got), types: types}
		if d := q.difference(a, b); (d == "") != same {
			t.Errorf("%+v: %q and %q: difference %q", q, want, got, d)
		}
	}
	exact, inexact, unordered := statement{}, statement{inexact: []int{1}}, statement{unordered: true}
	const rows = "a\t0.1\t5\nb\t0.25\t6\n"
	f(exact, "", "", true)
	f(exact, rows, rows, true)
	f(exact, rows, "", false)
	f(exact, "", rows, false)
	f(exact, rows, rows+"c\t1\t1\n", false)
	f(exact, rows, "b\t0.25\t6\na\t0.1\t5\n", false)
	f(unordered, rows, "b\t0.25\t6\na\t0.1\t5\n", true)
	f(unordered, rows, "b\t0.25\t6\nb\t0.25\t6\n", false)
	tied, same := statement{tied: []int{0}}, "a\t3\nb\t2\nc\t2\nd\t1\n"
	f(tied, same, "a\t3\nc\t2\nb\t2\nd\t1\n", true)
	f(tied, same, "a\t3\nb\t2\nd\t1\nc\t2\n", false)
	f(tied, same, "a\t3\nb\t2\nb\t2\nd\t1\n", false)
	f(exact, rows, "a\t0.10000000000000002\t5\nb\t0.25\t6\n", false)
	f(inexact, rows, "a\t0.10000000000000002\t5\nb\t0.25\t6\n", true)
	f(inexact, rows, "a\t0.1000000003\t5\nb\t0.25\t6\n", false)
	f(inexact, rows, "a\t0.1\t5.0000000000000001\nb\t0.25\t6\n", false)
	f(inexact, rows, "a\t\\N\t5\nb\t0.25\t6\n", false)
	f(inexact, "a\tNaN\t5\n", "a\tnan\t5\n", true)
	f(inexact, rows, "a\t0.1\nb\t0.25\t6\n", false)

	d := func(want, got string, same bool) {
		t.Helper()
		a := answer{rows: []byte(want), types: []uint32{25, 701, 20, 1700, 1042}}
		if diff := exact.duckdbDiffers(a, []byte(got)); (diff == "") != same {
			t.Errorf("%q and DuckDB's %q: difference %q", want, got, diff)
		}
	}
	d("1\t1.5\t7\t12.30\n", "1\t1.5\t7\t12.3\n", true)
	d("1\t1.5\t7\t12.30\n", "1.0\t1.5\t7\t12.30\n", false) // text
	d("1\t1.5\t7\t12.30\n", "1\t1.5\t7.0\t12.30\n", false) // an integer
	d("1\t1.5\t7\t12.30\n", "1\t1.5\t7\t12.31\n", false)
	d("1\t1.5\t7\t12.30\n", "1\t1.5\t7\t\\N\n", false)
	d("1\t1.5\t7\t12.30\tx  \n", "1\t1.5\t7\t12.30\tx\n", true) // char(3)
	d("1\t1.5\t7\t12.30\tx  \n", "1\t1.5\t7\t12.30\ty\n", false)
}
