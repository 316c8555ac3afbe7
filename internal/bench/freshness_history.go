package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// historySample is what pgaccel held at one moment.
type historySample struct {
	at             time.Duration // since the old snapshot was taken
	bytes, commits int64         // -1 where pgaccel does not say
	resident       int64
	view           time.Duration // median of another reader's query
	held           bool          // the old snapshot was still in use
	accelerated    bool          // its query was answered by pgaccel
}

// historyRun is a long reader beside a load.
type historyRun struct {
	tps     float64
	samples []historySample
}

// longReader holds a snapshot through pgaccel while tables change, looks at what that
// costs and whether its answer stays, and lets it go.
func (f *freshness) longReader(ctx context.Context) error {
	w := f.progress.start("beside a long reader", 0)
	defer w.done()
	f.history = &historyRun{}
	reader, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer reader.Close(context.WithoutCancel(ctx))
	if _, err := query(ctx, reader, "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	queries := append([]string{whole}, hot...)
	want := make([]string, len(queries))
	for i, sql := range queries {
		if want[i], err = query(ctx, reader, sql); err != nil {
			return err
		}
	}
	begin := time.Now()
	var out string
	var benchErr error
	ended := make(chan struct{})
	length := 2 * f.o.Duration
	go func() {
		out, benchErr = f.pgbench(ctx, "off", "-n", "-M", "prepared", "-c", strconv.Itoa(f.o.Clients), "-j", "1", "-R", strconv.Itoa(f.o.Rate), "-T", strconv.Itoa(int(length/time.Second)))
		close(ended)
	}()
	const samples = 8
	for i := range samples {
		time.Sleep(time.Until(begin.Add(length * time.Duration(i) / samples)))
		s, err := f.sampleHistory(ctx, reader, queries, want)
		if err != nil {
			return err
		}
		s.at = time.Since(begin)
		f.history.samples = append(f.history.samples, s)
	}
	<-ended
	if benchErr != nil {
		return benchErr
	}
	if f.history.tps, err = parsePgbench(out); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	for _, released := range []bool{false, true} {
		if released {
			if _, err := query(ctx, reader, "COMMIT"); err != nil {
				return err
			}
			time.Sleep(2 * time.Second) // what nobody needs any more is folded in the background
		}
		r := reader
		if released {
			r = nil
		}
		s, err := f.sampleHistory(ctx, r, queries, want)
		if err != nil {
			return err
		}
		s.at = time.Since(begin)
		f.history.samples = append(f.history.samples, s)
	}
	return f.compare(ctx, append(queries, probeSQL, bulkSQL)...)
}

// sampleHistory looks once; reader is nil when it has ended.
func (f *freshness) sampleHistory(ctx context.Context, reader *pgconn.PgConn, queries, want []string) (s historySample, err error) {
	if reader != nil {
		s.held = true
		before, err := f.accelerations(ctx)
		if err != nil {
			return s, err
		}
		for i, sql := range queries {
			got, err := query(ctx, reader, sql)
			if err != nil {
				return s, err
			}
			if got != want[i] {
				f.wrong = append(f.wrong, fmt.Sprintf("a long reader's %s: %s, then %s", sql, want[i], got))
			}
			f.checks.exact++
		}
		after, err := f.accelerations(ctx)
		if err != nil {
			return s, err
		}
		f.checks.accelerated += after - before
		s.accelerated = after-before == int64(len(queries))
	}
	var times []time.Duration
	for range 20 {
		_, took, err := ask(ctx, f.through, hot[0])
		if err != nil {
			return s, err
		}
		times = append(times, took)
	}
	s.view = median(times)
	m, err := f.child.metrics(ctx)
	if err != nil {
		return s, err
	}
	s.bytes, s.commits = -1, -1
	if _, there := m.get("pgaccel_table_history_bytes"); there {
		s.bytes, s.commits = int64(m.sum("pgaccel_table_history_bytes")), int64(m.sum("pgaccel_table_history_commits"))
	}
	_, s.resident = f.child.residentBytes()
	return s, nil
}
