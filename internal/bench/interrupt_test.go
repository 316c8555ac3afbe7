package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/papers/wahbits"
)

// TestInterruptedPrintsMedians: the second query of the second round hangs, and the
// benchmark is interrupted then. The round before is printed, with who was wrong.
func TestInterruptedPrintsMedians(t *testing.T) {
	for _, fake := range []string{"right", "lie"} {
		out, err := interruptedRun(t, fake, 6, compare)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("--fake %s: error %v", fake, err)
		}
		want := []string{"INTERRUPTED after 1 of 3 rounds: medians of the runs until then, of 2 of 2 queries", "first ", "second ", "geomean", "Columns in memory"}
		if fake == "lie" {
			want = append(want, "WRONG ANSWER", "the benchmark failed", "pgaccel's answer is not Postgres'")
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("--fake %s: no %q in\n%s", fake, w, out)
			}
		}
	}
	// Where no round was whole, the query that is has its line.
	out, err := interruptedRun(t, "right", 1, compare)
	if !errors.Is(err, context.Canceled) || !strings.Contains(out, "after 0 of 3 rounds") || !strings.Contains(out, "of 1 of 2 queries") || strings.Contains(out, "second") {
		t.Errorf("%v\n%s", err, out)
	}
}

// interruptedRun has two queries run, and is interrupted once the second has been
// executed calls times on both sides together and hangs. Each side executes it twice a
// round.
func interruptedRun(t *testing.T, fake string, calls int, run func(context.Context, workload, RunOptions, io.Writer) error) (string, error) {
	t.Helper()
	limited, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	ctx, interrupt := context.WithCancel(limited)
	defer interrupt()
	load := workload{title: "a test", tables: []string{"events"}, queries: []statement{{Name: "first", SQL: "SELECT 2"}, {Name: "second", SQL: "SELECT hangs_after(" + string(rune('0'+calls)) + ")"}}}
	load.load = func(ctx context.Context, dsn string, _ *progress) error {
		c, err := pgconn.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, `CREATE TABLE events (id int); CREATE SEQUENCE calls; CREATE TABLE hanging (id int);
			CREATE FUNCTION hangs_after(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('calls') > n THEN PERFORM pg_advisory_lock(7), pg_sleep(600); END IF;
				RETURN 2;
			END $$`).ReadAll()
		if err != nil {
			return err
		}
		go func() {
			defer interrupt()
			defer c.Close(context.WithoutCancel(ctx))
			for limited.Err() == nil {
				held, err := queryInt(limited, c, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
				if err != nil || held > 0 {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		return nil
	}
	load.write = func(context.Context, string, io.Writer) error { return nil }
	var out, log bytes.Buffer
	err := run(ctx, load, RunOptions{Rounds: 3, Runs: 1, Binary: self, ServeArgs: []string{"--fake", fake}, Progress: &log}, &out)
	if limited.Err() != nil {
		t.Fatalf("%v: %s", limited.Err(), log.String())
	}
	return out.String(), err
}

// TestInterruptedPassthrough: tables of some runs, of which one has nothing to be
// compared with.
func TestInterruptedPassthrough(t *testing.T) {
	p := &passthrough{o: PassthroughOptions{Rounds: 3, Duration: time.Second}, rounds: 1, drained: map[string]drained{}}
	for _, name := range []string{"direct", "pgaccel"} {
		p.targets = append(p.targets, &passTarget{name: name, rates: map[passCase][]float64{}, drains: map[string][]time.Duration{}})
	}
	print := func() string {
		var out bytes.Buffer
		p.printUntilInterrupted(&out)
		return out.String()
	}
	p.targets[1].rates[passCases[1]] = []float64{700}
	if got := print(); !strings.HasPrefix(got, "Interrupted before ") {
		t.Errorf("%s", got)
	}
	p.targets[0].rates[passCases[0]] = []float64{1000, 1100, 1200}
	p.targets[1].rates[passCases[0]] = []float64{550}
	got := print()
	for _, want := range []string{"INTERRUPTED after 1 of 3 rounds", "1100", " 550  50.0%", " 700\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, never := range []string{"NaN", "Inf", "Large results", "Memory"} {
		if strings.Contains(got, never) {
			t.Errorf("%q in\n%s", never, got)
		}
	}
	p.drained["SELECT"], p.drained["COPY"] = drained{rows: 1, bytes: 2e6}, drained{rows: 1, bytes: 1e6}
	for _, d := range drainSQL {
		p.targets[0].drains[d.name] = []time.Duration{time.Second}
	}
	p.targets[1].drains["SELECT"] = []time.Duration{2 * time.Second}
	if got := print(); !strings.Contains(got, "Large results") || !strings.Contains(got, " 50.0%") || strings.Contains(got, "Inf") || strings.Contains(got, "NaN") {
		t.Errorf("%s", got)
	}
}

// TestInterruptedFreshness interrupts the benchmark beside its second load.
func TestInterruptedFreshness(t *testing.T) {
	ctx, interrupt := context.WithTimeout(context.Background(), 5*time.Minute)
	defer interrupt()
	var out bytes.Buffer
	log := &watchedLog{after: "beside idle: ", then: interrupt}
	err := Freshness(ctx, FreshnessOptions{Binary: self, Quick: true, Duration: time.Second, Rows: 1000, Rate: 50, Clients: 1, Loads: []string{"idle", "limited"}, ServeArgs: []string{"--fake", "right"}, Progress: log}, &out)
	if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "INTERRUPTED after 1 of 3 loads and 0 of 8 changes") ||
		!strings.Contains(out.String(), "accelerated") || strings.Contains(out.String(), "Applying changes") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// watchedLog calls then once a line begins with after.
type watchedLog struct {
	after string
	then  func()
}

func (l *watchedLog) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), l.after) {
		l.then()
	}
	return len(p), nil
}

// TestInterruptedDemo: the demo prints the queries that have run.
func TestInterruptedDemo(t *testing.T) {
	out, err := interruptedRun(t, "right", 1, func(ctx context.Context, load workload, o RunOptions, out io.Writer) error {
		o.Rounds = 1
		err := DemoOptions{Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0"}.run(ctx, load, o, out)
		interrupted(ctx, &err)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"INTERRUPTED after 0 of 1 rounds: medians of the runs until then, of 1 of 2 queries", "first ", "geomean"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "second ") || strings.Contains(out, "pgaccel copied") {
		t.Errorf("%s", out)
	}
}

// endsAfter is a context that has ended once it was asked n times.
type endsAfter struct {
	context.Context
	n int
}

func (c *endsAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterruptedPapers: rows of what was measured in full, and of what has run at least
// once in each way.
func TestInterruptedPapers(t *testing.T) {
	strategies := len(wahbits.Strategies())
	for _, c := range []struct {
		section string
		asked   int // of ctx, before it ends
		want    string
		never   string
	}{
		// Columns; six rounds of five ways of one width, and three of the next.
		{"compression", len(lineorderNames) + 6*5 + 3*5, "\n    4 ", "\n    6 "},
		{"compression", len(lineorderNames) + 6*5 + 4, "\n    2 ", "\n    4 "},
		// One size of four runs, and two runs of the next.
		{"wah", 4*strategies + 2*strategies, wahbits.Fused.String(), "one segment"},
	} {
		var out bytes.Buffer
		err := Papers(&endsAfter{context.Background(), c.asked}, PapersOptions{Quick: true, Only: c.section}, &out)
		if got := out.String(); err != context.Canceled || !strings.Contains(got, c.want) || strings.Contains(got, c.never) || !strings.Contains(got, "INTERRUPTED in section "+c.section) {
			t.Errorf("%s: %v\n%s", c.section, err, got)
		}
	}
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	var out bytes.Buffer
	err := Papers(ctx, PapersOptions{Quick: true, Only: "cube"}, writerFunc(func(p []byte) (int, error) {
		if out.Write(p); strings.Contains(out.String(), "Biker         B2 ") && strings.HasSuffix(out.String(), "\n") {
			interrupt()
		}
		return len(p), nil
	}))
	if got := out.String(); err != context.Canceled || strings.Count(got, "B2 ") != 2 || strings.Contains(got, "B3 ") || !strings.Contains(got, "geomean") {
		t.Errorf("cube: %v\n%s", err, got)
	}
}
