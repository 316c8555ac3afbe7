package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestInterruptedPrintsMedians: the second query of the second round hangs, and the
// benchmark is interrupted then. The round before is printed, with who was wrong.
func TestInterruptedPrintsMedians(t *testing.T) {
	for _, fake := range []string{"right", "lie"} {
		out, err := interruptedRun(t, fake, 6)
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
	out, err := interruptedRun(t, "right", 1)
	if !errors.Is(err, context.Canceled) || !strings.Contains(out, "after 0 of 3 rounds") || !strings.Contains(out, "of 1 of 2 queries") || strings.Contains(out, "second") {
		t.Errorf("%v\n%s", err, out)
	}
}

// interruptedRun compares two queries, and is interrupted once the second has been
// executed calls times on both sides together and hangs. Each side executes it twice a
// round.
func interruptedRun(t *testing.T, fake string, calls int) (string, error) {
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	err = compare(ctx, load, RunOptions{Rounds: 3, Runs: 1, Binary: self, ServeArgs: []string{"--fake", fake}, Progress: &log}, &out)
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
	err := Freshness(ctx, FreshnessOptions{Quick: true, Duration: time.Second, Rows: 1000, Rate: 50, Clients: 1, Loads: []string{"idle", "limited"}, ServeArgs: []string{"--fake", "right"}, Progress: log}, &out)
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
