package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

// The benchmark's own judgement: it passes what is right, and nothing else. The pgaccel
// here is a fake (fake_test.go).
func TestSSBJudges(t *testing.T) {
	f := func(fake, wantErr string, wantOut ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		var out, progress bytes.Buffer
		err := SSB(ctx, SSBOptions{Scale: 0.01, RunOptions: RunOptions{Binary: self, Rounds: 2, Runs: 1, ServeArgs: []string{"--fake", fake}, Progress: &progress}}, &out)
		if wantErr == "" && err != nil || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("--fake %s: error %v, want %q\n%s", fake, err, wantErr, progress.String())
		}
		for _, want := range wantOut {
			if !strings.Contains(out.String(), want) {
				t.Errorf("--fake %s: no %q in\n%s", fake, want, out.String())
			}
		}
	}
	f("right", "", "q1.1         1", "q4.3", "geomean", "pgaccel, same answer", "First copy", "Columns in memory  0.0 MB")
	f("forward", "q4.3: 4 executions were not accelerated: too cheap\npgaccel's log says:\n  ERROR msg=\"forward\"", "q1.1         1", "Postgres: too cheap\n")
	f("lie", "q2.1: pgaccel's answer is not Postgres': row ", "WRONG ANSWER")
	f("refuse", "pgaccel's copy of part is refused")
	f("die", "the fake dies of public.*")
}

func TestSSBBesideAnother(t *testing.T) {
	for fake, want := range map[string][]string{
		"right":   {"base ms", "ratio: pgaccel ms / base ms"},
		"forward": {"base: by Postgres\n"},
		"lie":     {"the other pgaccel's answer is not Postgres': row "},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		var out bytes.Buffer
		err := SSB(ctx, SSBOptions{Scale: 0.01, RunOptions: RunOptions{Binary: self, Base: self, Rounds: 1, Runs: 1, ServeArgs: []string{"--fake", fake}, Progress: io.Discard}}, &out)
		if (err == nil) != (fake == "right") {
			t.Errorf("--fake %s: error %v", fake, err)
		}
		for _, w := range want {
			if text := out.String() + fmt.Sprint(err); !strings.Contains(text, w) {
				t.Errorf("--fake %s: no %q in\n%s", fake, w, text)
			}
		}
	}
}

func TestDemo(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out bytes.Buffer
	// With Keep it lasts until the context ends: here when the last line has come.
	w := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("Connect yourself")) {
			cancel()
		}
		return out.Write(p)
	})
	if err := Demo(ctx, DemoOptions{Binary: self, Scale: 0.01, Keep: true, ServeArgs: []string{"--fake", "right"}, Progress: io.Discard}, w); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"q3.4", "geomean", "psql -h 127.0.0.1 -p ", "pgaccel copied the tables"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// In the middle of the load.
	progress := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("A private Postgres")) {
			time.AfterFunc(2*time.Second, cancel)
		}
		return len(p), nil
	})
	err := Demo(ctx, DemoOptions{Binary: self, Scale: 100, ServeArgs: []string{"--fake", "right"}, Progress: progress}, io.Discard)
	if err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWithoutPostgres(t *testing.T) {
	t.Setenv("PATH", "")
	err := SSB(context.Background(), SSBOptions{Scale: 0.01, RunOptions: RunOptions{Binary: self, PGBinDir: t.TempDir(), Progress: io.Discard}}, io.Discard)
	if err == nil {
		t.Error("no error without initdb")
	}
}

func TestDifference(t *testing.T) {
	base := answer{columns: "a type 23\n", rows: []byte("1\n2\n"), n: 2, tag: "SELECT 2"}
	f := func(change func(*answer), want string) {
		t.Helper()
		other := base
		change(&other)
		if got := (statement{}).difference(base, other); got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("difference %q, want %q", got, want)
		}
	}
	f(func(*answer) {}, "")
	f(func(a *answer) { a.rows = []byte("1\n3\n") }, `row 2 is "3" instead of "2"`)
	f(func(a *answer) { a.rows = []byte("2\n1\n") }, "row 1")
	f(func(a *answer) { a.rows, a.n = []byte("1\n2\n2\n"), 3 }, "3 rows instead of 2")
	f(func(a *answer) { a.columns = "a type 20\n" }, "columns")
	f(func(a *answer) { a.tag = "SELECT 3" }, "SELECT 3 instead of SELECT 2")
}

func TestStats(t *testing.T) {
	d := func(v ...time.Duration) []time.Duration { return v }
	if median(nil) != 0 || median(d(3)) != 3 || median(d(9, 1, 5)) != 5 || median(d(8, 2, 4, 6)) != 5 {
		t.Error("median")
	}
	if geomean(nil) != 0 || math.Abs(geomean([]float64{1, 4, 16})-4) > 1e-12 {
		t.Error("geomean")
	}
}

func TestSpread(t *testing.T) {
	results := []*result{{postgres: []time.Duration{4, 2}}, {postgres: []time.Duration{9, 3, 5}}, {postgres: []time.Duration{5, 1}}, {}}
	if got := spread(results, func(r *result) []time.Duration { return r.postgres }); got != 3 {
		t.Errorf("spread %v", got)
	}
}

func TestPostgresSettings(t *testing.T) {
	if s := postgresSettings(64 << 30); s["shared_buffers"] != "6144MB" || s["work_mem"] != "256MB" || s["maintenance_work_mem"] != "1024MB" {
		t.Errorf("64 GiB: %v", s)
	}
	if s := postgresSettings(4 << 30); s["shared_buffers"] != "1024MB" || s["work_mem"] != "128MB" {
		t.Errorf("4 GiB: %v", s)
	}
}
