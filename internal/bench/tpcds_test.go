package bench

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// TestTPCDSLimit has a limit that no statement keeps in Postgres, and a pgaccel that gives wrong answers: times
// are lower bounds, and nothing is compared.
func TestTPCDSLimit(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, progress bytes.Buffer
	o := TPCDSOptions{Scale: 0.01, Limit: time.Millisecond, RunOptions: RunOptions{Binary: self, Progress: &progress, Rounds: 2, Runs: 1,
		Queries: []string{"q04", "q67"}, ServeArgs: []string{"--fake", "lie"}}}
	if err := TPCDS(ctx, o, &out); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	for _, want := range []string{"TPC-DS, scale factor 0.01 (", " >1.00 ", "pgaccel, not compared", "lower bounds, and not compared: q04, q67\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestSlowerThanPostgres(t *testing.T) {
	const ms = time.Millisecond
	one := func(name string, postgres, pgaccel time.Duration) *result {
		return &result{query: statement{Name: name}, postgres: []time.Duration{postgres}, pgaccel: []time.Duration{pgaccel}}
	}
	var out bytes.Buffer
	printResults(&out, []*result{one("few", 10*ms, 29*ms), one("much", 10*ms, 31*ms), one("share", 1000*ms, 1090*ms), one("both", 1000*ms, 1110*ms)}, false)
	if want := "Slower than Postgres by more than 1.1 times and 20ms: much, both\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}
