package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// FreshnessOptions are those of `pgaccel-bench freshness`. The zero value is the full
// benchmark, some five minutes.
type FreshnessOptions struct {
	Quick     bool          // about a minute
	Duration  time.Duration // of each load; 0 is 12 s, or 2 s with Quick
	Rate      int           // transactions a second of the limited load; 0 is 2,000
	Clients   int           // writers; 0 is 4
	Loads     []string      // which loads to wait beside (idle, own, limited, full); nil is all
	Scale     int           // of pgbench's tables, 100,000 accounts each; 0 is 10, or 1 with Quick
	Rows      int           // changed by one statement; 0 is 1,000,000, or 100,000 with Quick
	Binary    string        // the pgaccel to measure; "" is the one beside this program
	ServeArgs []string      // more flags for `pgaccel serve`
	PGBinDir  string        // folder of postgres, pgbench and pg_recvlogical; "" looks for one
	Progress  io.Writer     // progress lines; nil is standard error
}

func (o *FreshnessOptions) fill() error {
	orDefault(o.Quick, &o.Rate, 2000, 2000)
	orDefault(o.Quick, &o.Clients, 4, 4)
	orDefault(o.Quick, &o.Scale, 10, 1)
	orDefault(o.Quick, &o.Rows, 1_000_000, 100_000)
	orDefault(o.Quick, &o.Duration, 12*time.Second, 2*time.Second)
	if o.Rate < 0 || o.Clients < 0 || o.Scale < 0 || o.Rows < 0 || o.Duration < time.Second {
		return fmt.Errorf("%s at %d transactions a second by %d clients, scale %d, %d rows: use positive numbers and a second at least", o.Duration, o.Rate, o.Clients, o.Scale, o.Rows)
	}
	for _, l := range o.Loads {
		if !slices.Contains(loadKinds, l) {
			return fmt.Errorf("load %s: use some of %s", l, strings.Join(loadKinds, ", "))
		}
	}
	err := orPgaccel(&o.Progress, &o.Binary)
	if err == nil && o.PGBinDir == "" {
		o.PGBinDir, err = pgserver.FindBinDir()
	}
	return err
}

// freshness is a server and a pgaccel before it.
type freshness struct {
	o        FreshnessOptions
	progress *progress
	server   *pgserver.Server
	child    *child
	direct   *pgconn.PgConn
	through  *pgconn.PgConn // mode force
	passing  *pgconn.PgConn // through pgaccel too, for what it passes on
	version  string
	probe    string // the probe's right answer

	loads   []*loadCost
	applied []*applyRate
	history *historyRun
	checks  struct{ exact, accelerated int64 } // comparisons with Postgres, and how many pgaccel answered
	wrong   []string
}

// freshSchema: a small table that the measured query reads, one for large changes, and
// pgbench's, of which the history gets a replica identity, so that all are published.
const freshSchema = `
CREATE TABLE public.probe (id int PRIMARY KEY, v bigint NOT NULL);
INSERT INTO public.probe SELECT i, i FROM generate_series(1, 1000) i;
CREATE TABLE public.bulk (id bigint PRIMARY KEY, a int NOT NULL, b numeric(12,2), c date, d varchar(20));
ALTER TABLE pgbench_history REPLICA IDENTITY FULL;
VACUUM ANALYZE;
CHECKPOINT`

const probeSQL = "SELECT count(*), sum(v) FROM probe"

// Freshness measures what it costs that answers are never stale: the wait before each
// accelerated query, how fast changes are applied, and the memory that an old snapshot
// holds on to. Answers are compared with Postgres' at the same snapshot. It writes
// tables to out.
func Freshness(ctx context.Context, o FreshnessOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	if err := o.fill(); err != nil {
		return err
	}
	f := &freshness{o: o, progress: newProgress(o.Progress)}
	defer f.close()
	for _, step := range []func(context.Context) error{f.start, f.cost, f.apply, f.longReader} {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				f.printUntilInterrupted(out)
			} else if f.child != nil {
				err = errors.Join(err, errors.New(strings.Join(f.child.complaints(), "\n")))
			}
			return err
		}
	}
	f.print(out)
	if len(f.wrong) > 0 {
		return fmt.Errorf("the benchmark failed:\n  %s", strings.Join(slices.Compact(f.wrong), "\n  "))
	}
	return nil
}

func (f *freshness) start(ctx context.Context) (err error) {
	settings := postgresSettings(physicalMemory())
	// What is measured is waiting for the log: it has to reach the disk.
	settings["fsync"], settings["full_page_writes"] = "on", "on"
	settings["wal_sender_timeout"] = "0" // receivers are halted on purpose
	if f.server, err = pgserver.Start(ctx, pgserver.Options{BinDir: f.o.PGBinDir, Settings: settings}); err != nil {
		return err
	}
	w := f.progress.start("loading", 0)
	if _, err := f.pgbench(ctx, "on", "-i", "-q", "-s", strconv.Itoa(f.o.Scale)); err != nil {
		return err
	}
	url := f.server.URL("postgres", "postgres")
	if f.direct, err = pgconn.Connect(ctx, url); err != nil {
		return err
	}
	f.version = f.direct.ParameterStatus("server_version")
	if err := runScript(ctx, f.direct, freshSchema); err != nil {
		return err
	}
	w.done()
	if f.child, err = startChild(ctx, f.o.Binary, url, f.server.Dir, "127.0.0.1:0", "127.0.0.1:0", f.o.ServeArgs, nil); err != nil {
		return err
	}
	if f.through, err = f.connect(ctx); err != nil {
		return err
	}
	if f.passing, err = f.connect(ctx); err != nil {
		return err
	}
	for _, c := range []*pgconn.PgConn{f.direct, f.through, f.passing} {
		if err := f.prepare(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// connect opens a session through pgaccel that wants every query accelerated.
func (f *freshness) connect(ctx context.Context) (*pgconn.PgConn, error) {
	c, err := pgconn.Connect(ctx, "postgres://postgres@"+f.child.Addr+"/postgres?sslmode=disable")
	if err == nil {
		_, err = c.Exec(ctx, "SET pgaccel.mode = 'force'").ReadAll()
	}
	return c, err
}

// prepare prepares the statements that are timed.
func (f *freshness) prepare(ctx context.Context, c *pgconn.PgConn) error {
	for name, sql := range map[string]string{"one": "SELECT 1", "probe": probeSQL} {
		if _, err := c.Prepare(ctx, name, sql, nil); err != nil {
			return err
		}
	}
	return nil
}

// run executes a prepared statement and returns its first row, separated by commas.
func run(ctx context.Context, c *pgconn.PgConn, name string) (row string, took time.Duration, err error) {
	start := time.Now()
	r := c.ExecPrepared(ctx, name, nil, nil, nil).Read()
	took = time.Since(start)
	if r.Err != nil {
		return "", 0, r.Err
	}
	return firstRow(r), took, nil
}

func firstRow(r *pgconn.Result) string {
	var values []string
	if len(r.Rows) > 0 {
		for _, v := range r.Rows[0] {
			values = append(values, string(v))
		}
	}
	return strings.Join(values, ", ")
}

// query runs statements by the simple protocol and returns the first row of the last.
func query(ctx context.Context, c *pgconn.PgConn, sql string) (string, error) {
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return "", err
	}
	return firstRow(results[len(results)-1]), nil
}

// accelerations returns how many executions pgaccel has answered itself.
func (f *freshness) accelerations(ctx context.Context) (int64, error) {
	m, err := f.child.metrics(ctx)
	if err != nil {
		return 0, err
	}
	n, _ := m.routes()
	return n, nil
}

// compare runs queries on Postgres and through pgaccel at one snapshot, whatever is
// written meanwhile, and notes a difference.
func (f *freshness) compare(ctx context.Context, queries ...string) error {
	before, err := f.accelerations(ctx)
	if err != nil {
		return err
	}
	snapshot, err := query(ctx, f.direct, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_export_snapshot()")
	if err == nil {
		_, err = query(ctx, f.through, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	}
	if err == nil {
		_, err = query(ctx, f.through, "SET TRANSACTION SNAPSHOT '"+snapshot+"'")
	}
	for _, sql := range queries {
		if err != nil {
			break
		}
		var want, got string
		if want, err = query(ctx, f.direct, sql); err != nil {
			break
		}
		if got, err = query(ctx, f.through, sql); err == nil && got != want {
			f.wrong = append(f.wrong, fmt.Sprintf("%s: pgaccel says %s, Postgres %s at the same snapshot", sql, got, want))
		}
		f.checks.exact++
	}
	for _, c := range []*pgconn.PgConn{f.direct, f.through} {
		if _, e := query(ctx, c, "COMMIT"); err == nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	after, err := f.accelerations(ctx)
	f.checks.accelerated += after - before
	return err
}

// hot are queries over tables that pgbench changes all the time; whole reads the large one.
var hot = []string{"SELECT count(*), sum(bbalance) FROM pgbench_branches", "SELECT count(*), sum(tbalance), min(tbalance) FROM pgbench_tellers"}

const whole = "SELECT count(*), sum(abalance), max(abalance) FROM pgbench_accounts"

func (f *freshness) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, c := range []*pgconn.PgConn{f.direct, f.through, f.passing} {
		if c != nil {
			c.Close(ctx)
		}
	}
	if f.child != nil {
		f.child.stop()
	}
	if f.server != nil {
		f.server.Stop()
	}
}

// pgbench runs pgbench on the server itself and returns what it says.
func (f *freshness) pgbench(ctx context.Context, synchronous string, args ...string) (string, error) {
	args = append(args, "-h", "127.0.0.1", "-p", strconv.Itoa(f.server.Port), "-U", "postgres", "postgres")
	cmd := exec.CommandContext(ctx, filepath.Join(f.o.PGBinDir, "pgbench"), args...)
	cmd.Env = append(os.Environ(), "PGSSLMODE=disable", "PGGSSENCMODE=disable", "PGOPTIONS=-c synchronous_commit="+synchronous)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is for us; ctx ends it
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	return string(out), nil
}
