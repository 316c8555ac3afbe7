package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/clickbench"
	"pgaccel/internal/pgserver"
	"pgaccel/internal/tpch"
)

// clickbench measures the 43 statements of ClickBench, and tpch the 22 of TPC-H, as a client sees them.
func (r *gpuRun) clickbench(ctx context.Context) error {
	w, err := r.clickbenchWorkload()
	if err != nil {
		return err
	}
	return r.statements(ctx, "clickbench", w)
}

func (r *gpuRun) tpch(ctx context.Context) error {
	w, err := r.tpchWorkload()
	if err != nil {
		return err
	}
	return r.statements(ctx, "tpch", w)
}

func (r *gpuRun) clickbenchWorkload() (workload, error) {
	w, err := clickbenchWorkload(r.Rows)
	return inPieces(w, clickbench.Source, clickbench.ScaleOf(r.Rows)), err
}

func (r *gpuRun) tpchWorkload() (workload, error) {
	w, err := tpchWorkload(r.TPCH)
	return inPieces(w, tpch.Source, r.TPCH), err
}

// statementsRun is a pgaccel with a device before a server with a workload's tables.
type statementsRun struct {
	*gpuRun
	kind   string // of the device
	server *pgserver.Server
	child  *child
	conn   *pgconn.PgConn // to child
	duckdb *duckdb        // nil without
}

// statementTimes are one statement's. A client's are from sending it until its last row.
type statementTimes struct {
	rows                int
	first, second, auto time.Duration // where pgaccel chooses, from the first execution on
	device, processor   time.Duration
	duckdb              time.Duration
	compute             time.Duration // on the device, of an execution that demands it
	bytes               int64         // of columns that it reads, as encoded there
	chosen, ran         bool          // by auto at last; where it was demanded, too
}

// statements measures a workload through the wire: where pgaccel chooses, on the device, on the processor, and in DuckDB.
// Answers are compared with each other; those of Postgres are other benchmarks'.
func (r *gpuRun) statements(ctx context.Context, part string, w workload) (err error) {
	if err := r.choose(&w); err != nil {
		return err
	}
	s := &statementsRun{gpuRun: r, kind: r.handOver()}
	defer s.closeAll()
	if err := s.start(ctx, w); err != nil {
		return err
	}
	t := gpuTable{Part: part, Title: fmt.Sprintf("Through the wire: %s; medians of %d runs in ms, 1 client, simple protocol", w.title, r.Runs),
		Columns: []string{"query", "rows", "first", "second", "auto", "device", "CPU", "DuckDB", "CPU / device", "DuckDB / device", "DuckDB / auto", "computing", "MB read", "over floor", "answered by"},
		Notes: []string{
			"first, second: the first executions of all, where pgaccel chooses (kernels not compiled, columns not on the device); auto: later ones. device: where it is demanded. CPU: where it is not allowed.",
			"computing: of it the time of kernels. over floor: that, as a multiple of what reading these bytes takes at the bandwidth of a copy within the device. answered by: in auto at last, and where the device was demanded.",
			"The rows of the largest table come by as many connections as there are cores, so that they are in no order.",
		}}
	all := make([]statementTimes, len(w.queries))
	var wrong []string
	var failed error
	for i := range w.queries {
		q := &w.queries[i]
		fmt.Fprintf(r.Progress, "%s: %s\n", part, q.Name)
		w, err := s.measure(ctx, q, &all[i])
		wrong = append(wrong, w...)
		if err != nil {
			failed = fmt.Errorf("%s: %w", q.Name, err)
			break
		}
		t.Rows = append(t.Rows, all[i].row(q.Name, r.copies.Device))
	}
	t.Rows = append(t.Rows, summary(all[:len(t.Rows)], s.duckdb != nil)...)
	if err := r.showSoFar(t, failed); err != nil {
		return errors.Join(err, wrongAnswers(wrong))
	}
	return errors.Join(s.coldStarts(ctx, part, w.queries, all), wrongAnswers(wrong))
}

// start loads DuckDB first, whose files are gone when the server's are written. environment is the child's.
func (s *statementsRun) start(ctx context.Context, w workload, environment ...string) (err error) {
	p := newProgress(s.Progress)
	if s.server, err = startPostgres(ctx, ""); err != nil {
		return err
	}
	if s.DuckDB != "" && w.schema != "" {
		began := time.Now()
		if s.duckdb, err = startDuckDB(ctx, s.DuckDB, s.server.Dir, w); err != nil {
			return err
		}
		s.took("DuckDB's load", began)
	}
	began := time.Now()
	if err := w.load(ctx, s.server.URL("postgres", "postgres"), p); err != nil {
		return err
	}
	s.took("the load", began)
	return s.serve(ctx, w, environment...)
}

func (s *statementsRun) took(what string, since time.Time) {
	fmt.Fprintf(s.Progress, "%s took %v\n", what, time.Since(since).Round(100*time.Millisecond))
}

// serve starts a pgaccel before the server, in place of the one that there may be.
func (s *statementsRun) serve(ctx context.Context, w workload, environment ...string) (err error) {
	if s.child != nil {
		s.conn.Close(ctx)
		s.child.stop()
		s.conn, s.child = nil, nil
	}
	memory := physicalMemory()
	args := []string{"--device", s.Device, "--device-memory", strconv.FormatInt(s.DeviceMemory, 10),
		"--memory", strconv.FormatInt(memory/2, 10), "--query-memory", strconv.FormatInt(memory/8, 10)}
	if s.DeviceWorker != "" {
		args = append(args, "--device-worker", s.DeviceWorker)
	}
	began := time.Now()
	if s.child, err = startChild(ctx, s.Binary, s.server.URL("postgres", "postgres"), s.server.Dir, "127.0.0.1:0", "127.0.0.1:0", args, nil, environment...); err != nil {
		return err
	}
	s.took("the first copy", began)
	if err := s.child.checkTables(ctx, w.tables); err != nil {
		return err
	}
	s.conn, err = s.connect(ctx)
	return err
}

func (s *statementsRun) connect(ctx context.Context) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, "postgres://postgres@"+s.child.Addr+"/postgres?sslmode=disable")
}

func (s *statementsRun) closeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.conn != nil {
		s.conn.Close(ctx)
	}
	if s.child != nil {
		s.child.stop()
	}
	if s.duckdb != nil {
		s.duckdb.stop()
	}
	if s.server != nil {
		s.server.Stop()
	}
}

// on sets who answers: the device, the processor, or who pgaccel chooses.
func (s *statementsRun) on(ctx context.Context, device string) error {
	_, err := s.conn.Exec(ctx, "SET pgaccel.mode = force; SET pgaccel.device = "+device).ReadAll()
	return err
}

// deviceCounts is what the devices have done so far.
type deviceCounts struct {
	queries int64         // executions that they answered
	bitmaps int64         // of these such as asked bitmap indexes
	bytes   int64         // of columns that they have read
	compute time.Duration // of their kernels
}

// since is what they have done after an earlier count.
func (c deviceCounts) since(b deviceCounts) deviceCounts {
	return deviceCounts{c.queries - b.queries, c.bitmaps - b.bitmaps, c.bytes - b.bytes, c.compute - b.compute}
}

func (s *statementsRun) counted(ctx context.Context) (c deviceCounts, err error) {
	m, err := s.child.metrics(ctx)
	for _, v := range m {
		if v.name == "pgaccel_device_queries_total" && v.labels["device"] != "cpu" {
			c.queries += int64(v.value)
		}
	}
	c.bitmaps, c.bytes = int64(m.sum("pgaccel_device_bitmap_queries_total")), int64(m.sum("pgaccel_device_read_bytes_total"))
	c.compute = time.Duration(m.sum("pgaccel_device_kernel_seconds_total") * 1e9)
	return c, err
}

// slow ends the measuring of a statement on one side: runs beyond the first are not worth their time.
const slow = 2 * time.Second

// times runs a statement some times and compares its answers with want, the first where want is empty.
func (s *statementsRun) times(ctx context.Context, c *pgconn.PgConn, q *statement, runs int, want *answer) (times []time.Duration, wrong string, err error) {
	for len(times) < runs {
		a, took, err := ask(ctx, c, q.SQL)
		if err != nil {
			return nil, "", err
		}
		if want.tag == "" {
			*want = a
		}
		if d := q.difference(*want, a); d != "" && wrong == "" {
			wrong = d
		}
		if times = append(times, took); took > slow {
			break
		}
	}
	return times, wrong, nil
}

// measure asks one statement on all sides.
func (s *statementsRun) measure(ctx context.Context, q *statement, t *statementTimes) (wrong []string, err error) {
	var want answer
	side := func(device string, runs int) (times []time.Duration, ran bool, err error) {
		if err := s.on(ctx, device); err != nil {
			return nil, false, err
		}
		before, err := s.counted(ctx)
		if err != nil {
			return nil, false, err
		}
		times, bad, err := s.times(ctx, s.conn, q, runs, &want)
		if bad != "" {
			wrong = append(wrong, fmt.Sprintf("%s (%s): %s", q.Name, device, bad))
		}
		if err != nil {
			return nil, false, err
		}
		after, err := s.counted(ctx)
		did, n := after.since(before), int64(len(times))
		t.bytes, t.compute = did.bytes/n, did.compute/time.Duration(n)
		return times, did.queries == n, err
	}
	times, _, err := side("auto", 2)
	if err != nil {
		return wrong, err
	}
	t.rows, t.first, t.second = want.n, times[0], times[len(times)-1]
	if times, _, err = side("cpu", 1+s.Runs); err != nil {
		return wrong, err
	}
	t.processor = median(times[min(1, len(times)-1):])
	if _, _, err = side(s.kind, 1); err != nil { // compiles
		return wrong, err
	}
	if times, t.ran, err = side(s.kind, s.Runs); err != nil {
		return wrong, err
	}
	t.device = median(times)
	bytes, compute := t.bytes, t.compute
	for range 3 { // it may try the other side now and then
		if times, t.chosen, err = side("auto", s.Runs); err != nil {
			return wrong, err
		}
	}
	t.auto, t.bytes, t.compute = median(times), bytes, compute
	if s.duckdb == nil {
		return wrong, nil
	}
	d, err := s.duckdb.measure(q.Name, q.SQL, s.Runs)
	if err != nil {
		return wrong, fmt.Errorf("in DuckDB: %w", err)
	}
	t.duckdb = median(d.times)
	if diff := q.duckdbDiffers(want, d.rows); diff != "" && q.differs == "" {
		wrong = append(wrong, q.Name+": DuckDB's answer: "+diff)
	}
	return wrong, nil
}

// row is the statement's in the table, where the device copies so many GB a second.
func (t *statementTimes) row(name string, bandwidth float64) []any {
	device, processor := milliseconds(t.device), milliseconds(t.processor)
	row := []any{name, t.rows, milliseconds(t.first), milliseconds(t.second), milliseconds(t.auto), device, processor, nil, processor / device, nil, nil,
		milliseconds(t.compute), float64(t.bytes) / 1e6, nil, "CPU"}
	if t.duckdb > 0 {
		duckdb := milliseconds(t.duckdb)
		row[7], row[9], row[10] = duckdb, duckdb/device, duckdb/milliseconds(t.auto)
	}
	if t.bytes > 0 && bandwidth > 0 {
		row[13] = milliseconds(t.compute) / (float64(t.bytes) / bandwidth / 1e6)
	}
	if t.chosen {
		row[14] = "device"
	}
	if !t.ran {
		row[14] = row[14].(string) + ", CPU"
	}
	return row
}

// summary are the lines below all statements'.
func summary(all []statementTimes, duckdb bool) [][]any {
	if len(all) == 0 {
		return nil
	}
	of := func(time func(t *statementTimes) time.Duration) (mean, sum float64) {
		var list []float64
		for i := range all {
			ms := milliseconds(time(&all[i]))
			list, sum = append(list, ms), sum+ms
		}
		return geomean(list), sum
	}
	mean, sum := make([]any, 15), make([]any, 15)
	mean[0], sum[0] = "geomean", "sum"
	var values [8][2]float64
	for i, f := range []func(t *statementTimes) time.Duration{
		2: func(t *statementTimes) time.Duration { return t.first }, 3: func(t *statementTimes) time.Duration { return t.second },
		4: func(t *statementTimes) time.Duration { return t.auto }, 5: func(t *statementTimes) time.Duration { return t.device },
		6: func(t *statementTimes) time.Duration { return t.processor }, 7: func(t *statementTimes) time.Duration { return t.duckdb },
	} {
		if f == nil || i == 7 && !duckdb {
			continue
		}
		values[i][0], values[i][1] = of(f)
		mean[i], sum[i] = values[i][0], values[i][1]
	}
	for k, line := range [][]any{mean, sum} {
		line[8] = values[6][k] / values[5][k]
		if duckdb {
			line[9], line[10] = values[7][k]/values[5][k], values[7][k]/values[4][k]
		}
	}
	return [][]any{mean, sum}
}

// coldStarts has the device's process end, and the statements asked again once another is there: its kernels are
// kept, its columns are brought again.
func (s *statementsRun) coldStarts(ctx context.Context, part string, queries []statement, all []statementTimes) error {
	time.Sleep(5 * time.Second) // it notes which columns the device has
	if err := s.restartWorker(ctx); err != nil {
		return err
	}
	t := gpuTable{Part: part, Title: "The first executions after a start of the device's process, where the device is demanded; ms",
		Columns: []string{"query", "first", "second", "first - second"}, Notes: []string{"Columns that the device had are brought again before."}}
	if err := s.on(ctx, s.kind); err != nil {
		return err
	}
	var failed error
	for i := range all {
		if !all[i].ran || all[i].device > slow {
			continue
		}
		var want answer
		times, _, err := s.times(ctx, s.conn, &queries[i], 2, &want)
		if err != nil {
			failed = fmt.Errorf("%s: %w", queries[i].Name, err)
			break
		}
		first, second := milliseconds(times[0]), milliseconds(times[len(times)-1])
		t.Rows = append(t.Rows, []any{queries[i].Name, first, second, first - second})
	}
	return s.showSoFar(t, failed)
}

// restartWorker kills the device's process and waits for the next.
func (s *statementsRun) restartWorker(ctx context.Context) error {
	restarts := func() (n, up float64, err error) {
		m, err := s.child.metrics(ctx)
		return m.sum("pgaccel_device_worker_restarts_total"), m.sum("pgaccel_device_up"), err
	}
	before, _, err := restarts()
	if err != nil {
		return err
	}
	workers := childrenOf(s.child.cmd.Process.Pid)
	if len(workers) == 0 {
		return errors.New("pgaccel has no process for the device")
	}
	if err := syscall.Kill(workers[0], syscall.SIGKILL); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		n, up, err := restarts()
		if err != nil {
			return err
		}
		if n > before && up == 1 {
			time.Sleep(5 * time.Second) // it loads the kernels and columns that it had
			return ctx.Err()
		}
	}
	return errors.New("the device's process did not come back")
}

// childrenOf are the processes that a process has started, as far as they can be read.
func childrenOf(pid int) (children []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				children = append(children, n)
			}
		}
	}
	return children
}

// choose leaves the statements that Queries names, and with Quick the first of them: each has kernels to be compiled, which takes seconds
// for the emulator.
func (r *gpuRun) choose(w *workload) error {
	if err := w.only(r.Queries); err != nil {
		return err
	}
	if r.Quick {
		w.queries = w.queries[:min(3, len(w.queries))]
	}
	return nil
}
