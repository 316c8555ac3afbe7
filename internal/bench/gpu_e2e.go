package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// endToEnd is what clients see: a private Postgres with the benchmark's tables, a pgaccel
// in front of it, and clients that ask through the wire. The same queries are asked with
// pgaccel.device = cpu besides.
func (r *gpuRun) endToEnd(ctx context.Context) error {
	kind := r.handOver()
	w, err := ssbWorkload(r.Scale)
	if err != nil {
		return err
	}
	w.direct = effort{rounds: 1, runs: 1}
	o := RunOptions{Quick: r.Quick, Rounds: 1, Runs: r.Runs, Binary: r.Binary, Progress: r.Progress,
		ServeArgs: []string{"--device", r.Device, "--device-memory", strconv.FormatInt(r.DeviceMemory, 10), "--device-worker", r.DeviceWorker,
			"--memory", strconv.FormatInt(ssbMemory(r.Scale), 10)}}
	if r.DeviceWorker == "" {
		o.ServeArgs = append(o.ServeArgs[:4], o.ServeArgs[6:]...)
	}
	s, err := startSession(ctx, w, o, "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.close()
	set := func(c *pgconn.PgConn, device string) error {
		_, err := c.Exec(ctx, "SET pgaccel.mode = force; SET pgaccel.device = "+device).ReadAll()
		return err
	}
	onDevice := func() (n int64, err error) {
		m, err := s.child.metrics(ctx)
		for _, v := range m {
			if v.name == "pgaccel_device_queries_total" && v.labels["device"] != "cpu" {
				n += int64(v.value)
			}
		}
		return n, err
	}
	t := gpuTable{Part: "e2e", Title: fmt.Sprintf("Through the wire: Star Schema Benchmark, scale factor %v; medians of %d runs in ms, 1 client", r.Scale, r.Runs),
		Columns: []string{"query", "rows", "device", "CPU", "Postgres", "CPU / device", "Postgres / device"}}
	if err := set(s.pgaccel, kind); err != nil {
		return err
	}
	before, err := onDevice()
	if err != nil {
		return err
	}
	row := func(q *result, cpu []time.Duration) []any {
		device, postgres := milliseconds(median(q.pgaccel)), milliseconds(median(q.postgres))
		row := []any{q.query.Name, q.answer.n, device, nil, postgres, nil, postgres / device}
		if cpu != nil {
			alone := milliseconds(median(cpu))
			row[3], row[5] = alone, alone/device
		}
		return row
	}
	if err := s.run(ctx, 1, r.Runs); err != nil {
		for _, q := range s.results {
			if len(q.pgaccel) > 0 && len(q.postgres) > 0 {
				t.Rows = append(t.Rows, row(q, nil))
			}
		}
		return r.showSoFar(t, err)
	}
	ran, err := onDevice()
	if err != nil {
		return err
	}
	var errs []error
	if want := int64(len(s.results) * (r.Runs + 1)); ran-before < want {
		errs = append(errs, fmt.Errorf("%d of %d executions ran on the device; pgaccel's log says:\n  %s", ran-before, want, strings.Join(s.child.complaints(), "\n  ")))
	}
	errs = append(errs, check(s.results))
	if err := set(s.pgaccel, "cpu"); err != nil {
		return err
	}
	var devices, ratios []float64
	for _, q := range s.results {
		times, _, wrong, err := q.query.repeat(ctx, s.pgaccel, r.Runs, &q.answer)
		if err != nil {
			return errors.Join(append(errs, r.showSoFar(t, fmt.Errorf("%s: %w", q.query.Name, err)))...)
		}
		if wrong != "" {
			errs = append(errs, fmt.Errorf("%s on the processor: %s", q.query.Name, wrong))
		}
		devices, ratios = append(devices, milliseconds(median(q.pgaccel))), append(ratios, q.speedup())
		t.Rows = append(t.Rows, row(q, times))
	}
	t.Rows = append(t.Rows, []any{"geomean", nil, geomean(devices), nil, nil, nil, geomean(ratios)})
	r.show(t)

	many := gpuTable{Part: "e2e", Title: fmt.Sprintf("%d clients, the 13 queries in turns: queries a second", clientsMany), Columns: []string{"pgaccel.device", "queries", "queries/s", "on a device"}}
	for _, where := range []string{kind, "auto", "cpu"} {
		before, err := onDevice()
		if err != nil {
			return r.showSoFar(many, err)
		}
		n, took, err := s.many(ctx, func(c *pgconn.PgConn) error { return set(c, where) }, r.Quick)
		if err != nil {
			return r.showSoFar(many, fmt.Errorf("%d clients: %w", clientsMany, err))
		}
		after, err := onDevice()
		if err != nil {
			return r.showSoFar(many, err)
		}
		many.Rows = append(many.Rows, []any{where, n, float64(n) / took.Seconds(), share(float64(after-before), float64(n))})
	}
	r.show(many)
	return errors.Join(errs...)
}

// many has clientsMany clients ask for a while, and checks each answer.
func (s *session) many(ctx context.Context, prepare func(*pgconn.PgConn) error, quick bool) (int64, time.Duration, error) {
	duration := 10 * time.Second
	if quick {
		duration = time.Second
	}
	clients := make([]*pgconn.PgConn, clientsMany)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close(context.WithoutCancel(ctx))
			}
		}
	}()
	for i := range clients {
		var err error
		if clients[i], err = pgconn.Connect(ctx, "postgres://postgres@"+s.child.Addr+"/postgres?sslmode=disable"); err != nil {
			return 0, 0, err
		}
		if err := prepare(clients[i]); err != nil {
			return 0, 0, err
		}
	}
	// Each begins with another query.
	return askAtOnce(ctx, clientsMany, duration, func(ctx context.Context, client, k int) error {
		q := s.results[(client+k)%len(s.results)]
		a, _, err := ask(ctx, clients[client], q.query.SQL)
		if err == nil {
			if d := q.query.difference(q.answer, a); d != "" {
				err = errors.New(d)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", q.query.Name, err)
		}
		return nil
	})
}
