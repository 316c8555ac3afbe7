package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
	"pgaccel/internal/ssb"
)

// SSBOptions are those of `pgaccel bench ssb`. The zero value is the full benchmark at
// scale factor 1.
type SSBOptions struct {
	Scale     float64   // scale factor; 0 is 1, or 0.1 with Quick
	Quick     bool      // one round of 1 + 3 runs
	Rounds    int       // rounds over all queries; 0 is 3, or 1 with Quick
	Runs      int       // measured runs a query, side and round, after an unmeasured one; 0 is 5, or 3 with Quick
	Binary    string    // the pgaccel to measure; "" is the running program
	ServeArgs []string  // more flags for `pgaccel serve`, such as --workers 1
	DuckDB    string    // program of bench/duckdb; "" leaves the column out
	PGBinDir  string    // folder of initdb and postgres; "" looks for one
	Progress  io.Writer // progress bars or lines; nil is standard error

	copyFloor bool // measure the COPYs of the first copy by themselves
}

func (o *SSBOptions) fill() error {
	set := func(v *int, full, quick int) {
		if *v == 0 {
			if *v = full; o.Quick {
				*v = quick
			}
		}
	}
	set(&o.Rounds, 3, 1)
	set(&o.Runs, 5, 3)
	if o.Scale == 0 {
		if o.Scale = 1; o.Quick {
			o.Scale = 0.1
		}
	}
	if o.Rounds < 0 || o.Runs < 0 {
		return fmt.Errorf("%d rounds of %d runs: use positive numbers", o.Rounds, o.Runs)
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.Binary == "" {
		var err error
		if o.Binary, err = os.Executable(); err != nil {
			return err
		}
	}
	return nil
}

// SSB runs the Star Schema Benchmark against a private Postgres server and against a
// pgaccel in front of it, and writes tables of medians and ratios to out. It returns an
// error, after the tables, where a query was not accelerated or an answer is not
// Postgres', byte for byte.
func SSB(ctx context.Context, o SSBOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	if err := o.fill(); err != nil {
		return err
	}
	o.copyFloor = true
	s, err := startSSB(ctx, o, "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.close()
	if o.DuckDB != "" {
		w := s.progress.start("loading DuckDB", 0)
		s.duckdb, err = startDuckDB(ctx, o.DuckDB, s.server.Dir, o.Scale)
		w.done()
		if err != nil {
			return err
		}
	}
	if err := s.run(ctx, o.Rounds, o.Runs); err != nil {
		return err
	}
	s.printHeader(out, o)
	printResults(out, s.results, s.duckdb != nil)
	s.printFacts(out)
	return s.judge()
}

// interrupted replaces what fails because ctx has ended (a connection closed in the
// middle of something) by the reason.
func interrupted(ctx context.Context, err *error) {
	if *err != nil && ctx.Err() != nil {
		*err = context.Cause(ctx)
	}
}

// session is a private server with the benchmark's tables, and pgaccel in front of it.
type session struct {
	comparison
	progress *progress
	server   *pgserver.Server
	url      string // of the server, for its superuser
	version  string // of the server
	warm     bool   // pg_prewarm has been run
	results  []*result

	storeBytes, heapBytes, peakBytes int64
	copyBytes                        int64
	copyFloors, firstCopies          []time.Duration // of the COPYs into nothing, and of those into the store
}

// copyRounds is how often the first copy is measured.
const copyRounds = 3

// startSSB starts and loads the server and starts pgaccel; it returns once every table
// is copied.
func startSSB(ctx context.Context, o SSBOptions, listen, http string) (_ *session, err error) {
	s := &session{progress: newProgress(o.Progress)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, q := range ssb.Queries() {
		s.results = append(s.results, &result{query: q})
	}
	if s.server, err = startPostgres(ctx, o.PGBinDir); err != nil {
		return nil, err
	}
	s.url = s.server.URL("postgres", "postgres")
	if err = loadSSB(ctx, s.url, o.Scale, s.progress); err != nil {
		return nil, err
	}
	if s.postgres, err = pgconn.Connect(ctx, s.url); err != nil {
		return nil, err
	}
	s.version = s.postgres.ParameterStatus("server_version")
	if s.warm, err = prewarm(ctx, s.postgres); err != nil {
		return nil, err
	}
	if s.heapBytes, err = heapBytes(ctx, s.postgres); err != nil {
		return nil, err
	}
	var rows int64
	for _, table := range ssb.Tables() {
		n, _ := ssb.Rows(table, o.Scale)
		rows += n
	}
	// Both kinds of copy take turns, so that they meet the same machine; the last
	// pgaccel stays.
	times := 1
	if o.copyFloor {
		times = copyRounds
	}
	for i := range times {
		if o.copyFloor {
			if err = s.measureCopy(ctx); err != nil {
				return nil, err
			}
		}
		w := s.progress.start("first copy", rows)
		s.child, err = startChild(ctx, o.Binary, s.url, s.server.Dir, listen, http, o.ServeArgs, func(n int64) { w.set("", n) })
		w.done()
		if err != nil {
			return nil, err
		}
		s.firstCopies = append(s.firstCopies, s.child.FirstCopy)
		if i < times-1 {
			s.child.stop()
			s.child = nil
		}
	}
	if err = s.child.checkTables(ctx, ssb.Tables()); err != nil {
		return nil, err
	}
	m, err := s.child.metrics(ctx)
	if err != nil {
		return nil, err
	}
	s.storeBytes = int64(m.sum("pgaccel_table_bytes"))
	s.peakBytes, _ = s.child.residentBytes()
	s.pgaccel, err = pgconn.Connect(ctx, "postgres://postgres@"+s.child.Addr+"/postgres?sslmode=disable")
	return s, err
}

// close stops everything that startSSB has started.
func (s *session) close() {
	// What is being waited for may have been cancelled: a context of its own.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, c := range []*pgconn.PgConn{s.pgaccel, s.postgres} {
		if c != nil {
			c.Close(ctx)
		}
	}
	if s.duckdb != nil {
		s.duckdb.stop()
	}
	if s.child != nil {
		s.child.stop()
	}
	if s.server != nil {
		s.server.Stop()
	}
}

// run measures all queries, rounds times.
func (s *session) run(ctx context.Context, rounds, runs int) error {
	w := s.progress.start("queries", int64(rounds*len(s.results)))
	defer w.done()
	for round := range rounds {
		for i, r := range s.results {
			w.note(r.query.Name)
			if err := s.measure(ctx, r, runs, round%2 == 1); err != nil {
				return errors.Join(err, s.ended())
			}
			w.set("", int64(round*len(s.results)+i+1))
		}
	}
	return nil
}

// ended is an error where pgaccel has ended, with what it said.
func (s *session) ended() error {
	select {
	case <-s.child.exited:
		return fmt.Errorf("pgaccel has ended:\n%s", s.child.tail())
	default:
		return nil
	}
}

// judge is check's error, with what pgaccel itself complained of.
func (s *session) judge() error {
	err := check(s.results)
	if complaints := s.child.complaints(); err != nil && len(complaints) > 0 {
		err = fmt.Errorf("%w\npgaccel's log says:\n  %s", err, strings.Join(complaints, "\n  "))
	}
	return err
}

// measureCopy takes the time of the first copy's COPYs without a first copy.
func (s *session) measureCopy(ctx context.Context) (err error) {
	w := s.progress.start("COPY to nothing", 0)
	defer w.done()
	start := time.Now()
	s.copyBytes, err = copyToNothing(ctx, s.url)
	s.copyFloors = append(s.copyFloors, time.Since(start))
	return err
}

func (s *session) printHeader(out io.Writer, o SSBOptions) {
	rows, _ := ssb.Rows("lineorder", o.Scale)
	cached := "tables in shared_buffers"
	if !s.warm {
		cached = "no pg_prewarm"
	}
	fmt.Fprintf(out, "Star Schema Benchmark, scale factor %v (%d lineorder rows); PostgreSQL %s, %d cores, %s.\n",
		o.Scale, rows, s.version, runtime.NumCPU(), cached)
	fmt.Fprintf(out, "Medians of %d x %d runs a side, each round after one run that is not measured; simple protocol, one client.\n\n", o.Rounds, o.Runs)
}

func (s *session) printFacts(out io.Writer) {
	first, floor := median(s.firstCopies), median(s.copyFloors)
	fmt.Fprintf(out, "\nFirst copy         %s, the same COPYs to nothing %s (%.2fx, medians of %d); %s of COPY data\n",
		seconds(first), seconds(floor), first.Seconds()/floor.Seconds(), len(s.firstCopies), size(s.copyBytes))
	fmt.Fprintf(out, "Columns in memory  %s, the tables in Postgres %s (%.2fx smaller); most memory while copying %s\n",
		size(s.storeBytes), size(s.heapBytes), float64(s.heapBytes)/float64(max(s.storeBytes, 1)), size(s.peakBytes))
	fmt.Fprintf(out, "Slowest run        %.2fx the fastest of the same query on Postgres, %.2fx through pgaccel (medians over the queries)\n",
		spread(s.results, func(r *result) []time.Duration { return r.postgres }), spread(s.results, func(r *result) []time.Duration { return r.pgaccel }))
	if s.duckdb != nil {
		fmt.Fprintf(out, "DuckDB             %s, %d threads, file %s, loaded from text in %.1f s\n",
			s.duckdb.Version, s.duckdb.Threads, size(s.duckdb.FileBytes), s.duckdb.LoadSeconds)
	}
}
