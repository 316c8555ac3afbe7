package bench

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
)

func TestParsePgbench(t *testing.T) {
	const good = "number of failed transactions: 0 (0.000%)\nlatency average = 0.090 ms\ninitial connection time = 2.1 ms\ntps = 11078.25 (without initial connection time)\n"
	if tps, err := parsePgbench(good); err != nil || tps != 11078.25 {
		t.Error(tps, err)
	}
	if _, err := parsePgbench(strings.Replace(good, "failed transactions: 0", "failed transactions: 3", 1)); err == nil {
		t.Error("failed transactions went unnoticed")
	}
	if _, err := parsePgbench("pgbench: error"); err == nil {
		t.Error("no rate, but no error")
	}
}

func TestDrainCountsAndSums(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	drain := func(sql string) drained {
		t.Helper()
		d, took, err := drainOnce(ctx, s.URL("postgres", "postgres"), sql)
		if err != nil || took <= 0 {
			t.Fatal(sql, took, err)
		}
		return d
	}
	a := drain("SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 3000) i")
	if a.rows != 3000 || a.bytes < 3000*1000 {
		t.Errorf("%+v", a)
	}
	if b := drain("SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 3000) i"); b != a {
		t.Errorf("%+v, then %+v", a, b)
	}
	// One byte differs.
	if b := drain("SELECT i, CASE i WHEN 2000 THEN 'y' ELSE 'x' END || repeat('x', 999) AS t FROM generate_series(1, 3000) i"); b.bytes != a.bytes || b.sum == a.sum {
		t.Errorf("%+v and %+v", a, b)
	}
	if c := drain("COPY (SELECT generate_series(1, 10)) TO STDOUT"); c.rows != 10 {
		t.Errorf("%+v", c)
	}
	if _, _, err := drainOnce(ctx, s.URL("postgres", "postgres"), "SELECT 1/0"); err == nil || !strings.Contains(err.Error(), "22012") {
		t.Error(err)
	}
}

// TestPassthroughRuns runs the whole benchmark, small, through the fake pgaccel of
// fake_test.go.
func TestPassthroughRuns(t *testing.T) {
	saved := passCases
	passCases = []passCase{{"simple", 1}, {"extended", 1}, {"prepared", 2}}
	defer func() { passCases = saved }()
	var out, log bytes.Buffer
	err := Passthrough(context.Background(), PassthroughOptions{Quick: true, Rounds: 1, Rows: 2000, Idle: 10, Binary: self, ServeArgs: []string{"--fake", "forward"}, Progress: &log}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Log(out.String())
	for _, want := range []string{"direct", "pgbouncer session", "pgbouncer transaction", "pgaccel, copied", "prepared", "SELECT", "COPY", "10 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the tables", want)
		}
	}
	// PgBouncer's transaction pooling has no prepared statements: a dash, no number.
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "prepared        2") && strings.Count(line, " - ") == 0 {
			t.Errorf("no dash in %q", line)
		}
	}
}
