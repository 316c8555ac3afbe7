package bench

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestFreshnessRuns runs the whole benchmark, small, on a real pgaccel: every number is
// there, and answers were compared.
func TestFreshnessRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, log bytes.Buffer
	err := Freshness(ctx, FreshnessOptions{Binary: self, Quick: true, Duration: time.Second, Rows: 5000, Rate: 200, Clients: 2, Loads: []string{"idle", "limited"}, Progress: &log}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for _, want := range []string{
		`idle +0  passed on +\d+`, `200/s, async +[1-9]\d* `, `freshness +\d+ +\d+ +\d+ +\d+`,
		`INSERT ... SELECT +5000 +\d+ +\d+ +\d+ +[\d.]+x`, `small transactions \* +[1-9]`, `DELETE of half +2500 `,
		` held .*MB`, ` released .*MB`, `[1-9]\d* answers were compared .*: no difference`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("nothing like %q in the tables", want)
		}
	}
}

// TestFreshnessJudges: answers that are not the server's fail the benchmark.
func TestFreshnessJudges(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, log bytes.Buffer
	err := Freshness(ctx, FreshnessOptions{Binary: self, Quick: true, Duration: time.Second, Rows: 1000, Rate: 50, Clients: 1, Loads: []string{"idle"}, ServeArgs: []string{"--fake", "lie"}, Progress: &log}, &out)
	if err == nil || !strings.Contains(err.Error(), "at the same snapshot") || !strings.Contains(out.String(), "DIFFERENCES") {
		t.Errorf("%v\n%s", err, log.String())
	}
}

func TestQuantiles(t *testing.T) {
	d := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 1: 5} {
		if got := quantile(d, q); got != want {
			t.Errorf("quantile %v: %d, want %d", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("a quantile of nothing")
	}
	before := metric{value: 10, buckets: []bucket{{0.001, 10}, {0.002, 10}, {0.004, 10}}}
	after := metric{value: 20, buckets: []bucket{{0.001, 16}, {0.002, 19}, {0.004, 19}}}
	for q, want := range map[float64]time.Duration{0.5: time.Millisecond, 0.9: 2 * time.Millisecond, 1: time.Hour} {
		if got, there := waited(before, after, q); got != want || !there {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if _, there := waited(before, before, 0.5); there {
		t.Error("a quantile of nothing")
	}
}
