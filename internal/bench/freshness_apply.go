package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// applyRate is how fast one kind of change was taken in. Receivers, and the walsenders
// that serve them, are halted while the changes are made, and woken one after the other:
// first pg_recvlogical, which throws everything away, then pgaccel. So both get the same
// changes as fast as they can, neither has any of them in advance, and neither has the
// other beside it.
type applyRate struct {
	name    string
	rows    int64
	written time.Duration    // that Postgres took for the changes
	sink    time.Duration    // until the server had sent all to pg_recvlogical
	pgaccel time.Duration    // until pgaccel's stream had passed them
	used    [2]time.Duration // processor time of the walsender for the sink, and of pgaccel
	busy    bool             // pgaccel answered queries meanwhile
	queries int              // so many
	shown   time.Duration    // from then until a query showed them
	reasons map[string]int64 // why not, where that query was forwarded
}

func (f *freshness) changes() []struct{ name, sql string } {
	n := strconv.Itoa(f.o.Rows)
	return []struct{ name, sql string }{
		{"INSERT ... SELECT", "INSERT INTO bulk SELECT i, i % 1000, i / 7.0, '2020-01-01'::date + (i % 3650)::int, 'text ' || i % 5000 FROM generate_series(1, " + n + ") i"},
		{"UPDATE of all", "UPDATE bulk SET a = a + 1, b = b + 0.5"},
		{"small transactions", ""},
		{"DELETE of half", "DELETE FROM bulk WHERE id % 2 = 0"},
	}
}

const bulkSQL = "SELECT count(*), sum(a), sum(b), max(c) FROM bulk"

// apply measures the rate at which changes are applied, alone and beside queries.
func (f *freshness) apply(ctx context.Context) error {
	w := f.progress.start("applying changes", 0)
	defer w.done()
	for _, busy := range []bool{false, true} {
		if _, err := query(ctx, f.direct, "TRUNCATE bulk"); err != nil {
			return err
		}
		if err := f.settle(ctx); err != nil {
			return err
		}
		for _, c := range f.changes() {
			r := &applyRate{name: c.name, busy: busy}
			if err := f.applyOne(ctx, r, c.sql); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			f.applied = append(f.applied, r)
			if err := f.compare(ctx, bulkSQL); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *freshness) applyOne(ctx context.Context, r *applyRate, sql string) (err error) {
	sink, err := f.startSink(ctx)
	if err != nil {
		return err
	}
	defer sink.stop()
	ours := []int{sink.cmd.Process.Pid}
	theirs := []int{f.child.cmd.Process.Pid}
	for _, side := range []struct {
		pids      *[]int
		condition string
	}{{&ours, "="}, {&theirs, "<>"}} {
		walsender, err := queryInt(ctx, f.direct, "SELECT coalesce(max(pid), 0) FROM pg_stat_replication WHERE application_name "+side.condition+" '"+sinkName+"'")
		if err != nil {
			return err
		}
		*side.pids = append(*side.pids, int(walsender))
	}
	time.Sleep(50 * time.Millisecond) // walsenders have nothing left to do, and hold no lock
	signalAll(append(theirs, ours...), syscall.SIGSTOP)
	defer signalAll(append(theirs, ours...), syscall.SIGCONT)
	begin := time.Now()
	if r.rows, err = f.change(ctx, sql); err != nil {
		return err
	}
	r.written = time.Since(begin)
	// Something small that is flushed, so that all before it is.
	if _, err := query(ctx, f.direct, "SET synchronous_commit = on; UPDATE probe SET v = v WHERE id = 1"); err != nil {
		return err
	}
	lsn, err := queryInt(ctx, f.direct, "SELECT (pg_current_wal_flush_lsn() - '0/0')::int8")
	if err != nil {
		return err
	}
	begin = time.Now()
	before := processorTime(ours[1])
	signalAll(ours, syscall.SIGCONT)
	if err := sink.sent(ctx, f.direct, lsn); err != nil {
		return err
	}
	r.sink = time.Since(begin)
	r.used[0] = processorTime(ours[1]) - before
	sink.stop()

	asking, enough := context.WithCancel(ctx)
	asked := make(chan error, 1)
	begin = time.Now()
	before = processorTime(f.child.cmd.Process.Pid)
	signalAll(theirs, syscall.SIGCONT)
	if r.busy {
		go func() { asked <- f.ask(asking, &r.queries) }()
	} else {
		asked <- nil
	}
	at, err := f.caughtUp(ctx, lsn)
	enough()
	if err = errors.Join(err, <-asked); err != nil {
		return err
	}
	r.pgaccel = at.Sub(begin)
	r.used[1] = processorTime(f.child.cmd.Process.Pid) - before
	m, err := f.child.metrics(ctx)
	if err != nil {
		return err
	}
	answered, reasons := m.routes()
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		begin = time.Now()
		if _, err := query(ctx, f.through, bulkSQL); err != nil {
			return err
		}
		r.shown = time.Since(begin)
		if m, err = f.child.metrics(ctx); err != nil {
			return err
		}
		after, now := m.routes()
		r.reasons = nil
		if after > answered {
			return nil
		}
		for reason, n := range now {
			if n > reasons[reason] {
				r.reasons = map[string]int64{reason: n - reasons[reason]}
			}
		}
	}
	return nil
}

func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		if pid > 0 { // 0 is a walsender that is not there, and to kill it would mean us
			syscall.Kill(pid, s)
		}
	}
}

// processorTime is what a process's threads have used; 0 where that cannot be read.
func processorTime(pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range threads {
		var used int64
		if text, err := os.ReadFile(name); err == nil {
			fmt.Sscan(string(text), &used)
		}
		sum += time.Duration(used)
	}
	return sum
}

// change runs sql, or small transactions for Duration, and returns the rows changed.
func (f *freshness) change(ctx context.Context, sql string) (int64, error) {
	if sql != "" {
		r := f.direct.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
		return r.CommandTag.RowsAffected(), r.Err
	}
	script := filepath.Join(f.server.Dir, "small.sql")
	text := fmt.Sprintf("\\set id random(1, %d)\nUPDATE bulk SET a = a + 1 WHERE id = :id;\n", f.o.Rows)
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		return 0, err
	}
	before, err := queryInt(ctx, f.direct, "SELECT sum(a) FROM bulk")
	if err != nil {
		return 0, err
	}
	if _, err := f.pgbench(ctx, "off", "-n", "-M", "prepared", "-c", strconv.Itoa(f.o.Clients), "-j", "1", "-T", strconv.Itoa(max(int(f.o.Duration/time.Second)/2, 1)), "-f", script); err != nil {
		return 0, err
	}
	after, err := queryInt(ctx, f.direct, "SELECT sum(a) FROM bulk")
	return after - before, err
}

// ask runs a query through pgaccel again and again; it may be answered from what
// pgaccel has.
func (f *freshness) ask(ctx context.Context, n *int) error {
	c, err := f.connect(ctx)
	if err != nil {
		return ignoreCancelled(ctx, err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if _, err := query(ctx, c, "SET pgaccel.max_staleness = '10min'"); err != nil {
		return ignoreCancelled(ctx, err)
	}
	for ctx.Err() == nil {
		if _, err := query(ctx, c, whole); err != nil {
			return ignoreCancelled(ctx, err)
		}
		*n++
	}
	return nil
}

func ignoreCancelled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// sink is a pg_recvlogical that writes to /dev/null.
type sink struct {
	cmd     *exec.Cmd
	exited  chan struct{}
	stopped bool
	direct  *pgconn.PgConn
}

const sinkName = "bench_sink" // of slot and session

var startOptions = regexp.MustCompile(`\((.*)publication_names '[^']*'(.*)\)`)

// startSink starts pg_recvlogical with the stream options that pgaccel uses.
func (f *freshness) startSink(ctx context.Context) (*sink, error) {
	if err := runScript(ctx, f.direct, "CREATE PUBLICATION "+sinkName+" FOR TABLE bulk, probe;\nSELECT pg_create_logical_replication_slot('"+sinkName+"', 'pgoutput')"); err != nil {
		return nil, err
	}
	started, err := query(ctx, f.direct, "SELECT query FROM pg_stat_activity WHERE backend_type = 'walsender' AND query LIKE 'START_REPLICATION%'")
	if err != nil {
		return nil, err
	}
	args := []string{"-d", f.server.URL("postgres", "postgres") + "&application_name=" + sinkName, "--slot", sinkName, "--start", "--no-loop", "-f", os.DevNull, "-o", "publication_names=" + sinkName}
	options := startOptions.FindStringSubmatch(started)
	if options == nil { // no pgaccel of ours
		options = []string{"", "proto_version '2', streaming 'true'", ""}
	}
	for _, o := range regexp.MustCompile(`(\w+) '([^']*)'`).FindAllStringSubmatch(options[1]+options[2], -1) {
		args = append(args, "-o", o[1]+"="+o[2])
	}
	s := &sink{cmd: exec.Command(filepath.Join(f.o.PGBinDir, "pg_recvlogical"), args...), exited: make(chan struct{}), direct: f.direct}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.cmd.Wait(); close(s.exited) }()
	if err := s.until(ctx, f.direct, "state = 'streaming'"); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// sent waits until the server has sent everything up to lsn.
func (s *sink) sent(ctx context.Context, c *pgconn.PgConn, lsn int64) error {
	return s.until(ctx, c, fmt.Sprintf("sent_lsn - '0/0' >= %d", lsn))
}

func (s *sink) until(ctx context.Context, c *pgconn.PgConn, condition string) error {
	sql := "SELECT count(*) FROM pg_stat_replication WHERE application_name = '" + sinkName + "' AND " + condition
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
		if n, err := queryInt(ctx, c, sql); err != nil || n > 0 {
			return err
		}
		select {
		case <-s.exited:
			return errors.New("pg_recvlogical ended")
		case <-time.After(5 * time.Millisecond):
		}
	}
	return errors.New("pg_recvlogical does not catch up")
}

// stop ends the program and drops its slot.
func (s *sink) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	s.cmd.Process.Signal(syscall.SIGCONT)
	s.cmd.Process.Kill()
	<-s.exited
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		_, err := query(ctx, s.direct, "SELECT pg_drop_replication_slot('"+sinkName+"')")
		if err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond) // it is in use for a moment
	}
	query(ctx, s.direct, "DROP PUBLICATION IF EXISTS "+sinkName)
}
