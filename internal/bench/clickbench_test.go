package bench

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// TestClickBench runs some statements, with what ties leave open, before a pgaccel that answers as the server does, and
// before one that does not.
func TestClickBench(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, fake := range []string{"right", "lie"} {
		var out, progress bytes.Buffer
		o := ClickBenchOptions{Rows: 2000, RunOptions: RunOptions{Binary: self, Progress: &progress, Rounds: 1, Runs: 1, Queries: []string{"q01", "q13", "ties"}}}
		o.ServeArgs = []string{"--fake", fake}
		err := ClickBench(ctx, o, &out)
		if (err != nil) != (fake == "lie") {
			t.Fatalf("%v\n%s%s", err, out.String(), progress.String())
		}
		if want := "ClickBench's table of 2000 rows"; !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestOpenColumns(t *testing.T) {
	q := statement{open: []int{0}}
	want := answer{rows: []byte("a\t3\nb\t2\n")}
	if d := q.difference(want, answer{rows: []byte("a\t3\nc\t2\n")}); d != "" {
		t.Error(d)
	}
	for _, rows := range []string{"a\t3\nb\t1\n", "a\t3\n"} {
		if q.difference(want, answer{rows: []byte(rows)}) == "" {
			t.Errorf("%q passes", rows)
		}
	}
}
