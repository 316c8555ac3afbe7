package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// compare runs a workload on all sides and writes its tables to out.
func compare(ctx context.Context, load workload, o RunOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	if err := load.only(o.Queries); err != nil {
		return err
	}
	s, err := startSession(ctx, load, o, "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer s.close()
	if o.DuckDB != "" {
		w := s.progress.start("loading DuckDB", 0)
		s.duckdb, err = startDuckDB(ctx, o.DuckDB, s.server.Dir, load)
		w.done()
		if err != nil {
			return err
		}
	}
	if o.Base != "" {
		if err := s.startBase(ctx, o); err != nil {
			return err
		}
	}
	if err := s.run(ctx, o.Rounds, o.Runs); err != nil {
		if ctx.Err() != nil {
			s.printUntilInterrupted(out, o)
		}
		return err
	}
	s.printHeader(out, o)
	printResults(out, s.results, s.duckdb != nil)
	printBase(out, s.results)
	s.printFacts(out)
	if o.Bytes {
		columns, err := pgaccelColumns(ctx, s.pgaccel)
		if err != nil {
			return err
		}
		var theirs []columnBytes
		if s.duckdb != nil {
			theirs = s.duckdb.Storage
		}
		printBytes(out, columns, theirs)
	}
	return s.judge()
}

// interrupted replaces what fails because ctx has ended (a connection closed in the
// middle of something) by the reason.
func interrupted(ctx context.Context, err *error) {
	if *err != nil && ctx.Err() != nil {
		*err = context.Cause(ctx)
	}
}

// printUntilInterrupted prints what was measured before ctx ended: queries that ran on
// all sides at least once, the unfinished round's runs among them.
func (s *session) printUntilInterrupted(out io.Writer, o RunOptions) {
	if s.untilInterrupted(out) {
		s.printHeader(out, o)
		s.printInterrupted(out, o)
		s.printFacts(out)
		s.printJudgement(out)
	}
}

// untilInterrupted keeps the results of these queries. Where there are none it says so
// and is false.
func (s *session) untilInterrupted(out io.Writer) bool {
	s.results = slices.DeleteFunc(s.results, func(r *result) bool {
		return len(r.postgres) == 0 || len(r.pgaccel) == 0 || s.duckdb != nil && len(r.duckdb) == 0 || s.base != nil && len(r.base) == 0
	})
	if len(s.results) == 0 {
		fmt.Fprintln(out, "Interrupted before a query had run on all sides: no medians.")
	}
	return len(s.results) > 0
}

func (s *session) printInterrupted(out io.Writer, o RunOptions) {
	fmt.Fprintf(out, "INTERRUPTED after %d of %d rounds: medians of the runs until then, of %d of %d queries.\n\n", s.rounds, o.Rounds, len(s.results), len(s.workload.queries))
	printResults(out, s.results, s.duckdb != nil)
	printBase(out, s.results)
}

func (s *session) printJudgement(out io.Writer) {
	if err := s.judge(); err != nil {
		fmt.Fprintln(out, err) // the interruption is what is returned
	}
}

// session is a private server with a workload's tables, and pgaccel in front of it.
type session struct {
	comparison
	workload workload
	progress *progress
	server   *pgserver.Server
	url      string // of the server, for its superuser
	version  string // of the server
	warm     bool   // pg_prewarm has been run
	results  []*result
	rounds   int // that have been measured whole

	storeBytes, heapBytes, peakBytes int64
	copyBytes                        int64
	loading                          time.Duration   // of the workload into Postgres
	copyFloors, firstCopies          []time.Duration // of the COPYs into nothing, and of those into the store
}

// startSession starts and loads the server and starts pgaccel; it returns once every
// table is copied.
func startSession(ctx context.Context, load workload, o RunOptions, listen, http string) (_ *session, err error) {
	s := &session{workload: load, progress: newProgress(o.Progress), comparison: comparison{direct: load.direct, limit: load.limit}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for _, q := range load.queries {
		s.results = append(s.results, &result{query: q})
	}
	if s.server, err = startPostgres(ctx, o.PGBinDir); err != nil {
		return nil, err
	}
	s.url = s.server.URL("postgres", "postgres")
	begun := time.Now()
	if err = load.load(ctx, s.url, s.progress); err != nil {
		return nil, err
	}
	s.loading = time.Since(begun)
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
	if load.limit > 0 {
		if _, err = s.postgres.Exec(ctx, fmt.Sprintf("SET statement_timeout = %d", max(load.limit.Milliseconds(), 1))).ReadAll(); err != nil {
			return nil, err
		}
	}
	// Both kinds of copy take turns, so that they meet the same machine; the last
	// pgaccel stays.
	times := max(1, load.copies)
	for i := range times {
		if load.copies > 0 {
			if err = s.measureCopy(ctx); err != nil {
				return nil, err
			}
		}
		w := s.progress.start("first copy", load.rows)
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
	if err = s.child.checkTables(ctx, load.tables); err != nil {
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

// startBase starts the other pgaccel before the same server. Both are asked in turns, and
// Postgres for its answers only.
func (s *session) startBase(ctx context.Context, o RunOptions) (err error) {
	w := s.progress.start("first copy of the other pgaccel", 0)
	defer w.done()
	dir := filepath.Join(s.server.Dir, "base")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s.base, s.direct = &base{}, effort{rounds: 1, runs: 1}
	if slices.ContainsFunc(s.workload.queries, func(q statement) bool { return q.draw != nil }) {
		s.direct.rounds = 0 // each has answers of its own
	}
	if s.base.child, err = startChild(ctx, o.Base, s.url, dir, "127.0.0.1:0", "127.0.0.1:0", o.ServeArgs, nil); err != nil {
		return err
	}
	if s.base.conn, err = pgconn.Connect(ctx, "postgres://postgres@"+s.base.child.Addr+"/postgres?sslmode=disable"); err != nil {
		return err
	}
	// Its publication is a change of definitions, which the first pgaccel looks at again.
	for range 100 {
		_, _, _, forwarded, err := s.workload.queries[0].through(ctx, s.child, s.pgaccel, 0)
		if err != nil {
			return err
		}
		if len(forwarded) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// close stops everything that startSession has started.
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
	if s.base != nil {
		if s.base.conn != nil {
			s.base.conn.Close(ctx)
		}
		if s.base.child != nil {
			s.base.child.stop()
		}
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
			if err := s.measure(ctx, r, round, runs); err != nil {
				return errors.Join(err, s.ended())
			}
			w.set("", int64(round*len(s.results)+i+1))
		}
		s.rounds = round + 1
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
	s.copyBytes, err = copyToNothing(ctx, s.url, s.workload.tables)
	s.copyFloors = append(s.copyFloors, time.Since(start))
	return err
}

func (s *session) printHeader(out io.Writer, o RunOptions) {
	cached := "tables in shared_buffers"
	if !s.warm {
		cached = "no pg_prewarm"
	}
	fmt.Fprintf(out, "%s; PostgreSQL %s, %d cores, %s.\n", s.workload.title, s.version, runtime.NumCPU(), cached)
	fmt.Fprintf(out, "Medians of %d x %d runs a side, each round after one run that is not measured; simple protocol, one client.\n", o.Rounds, o.Runs)
	if d := s.direct; d.runs > 0 {
		fmt.Fprintf(out, "Postgres by itself: %d x %d runs.\n", cmp.Or(d.rounds, o.Rounds), d.runs)
	}
	fmt.Fprintln(out)
}

func (s *session) printFacts(out io.Writer) {
	fmt.Fprintf(out, "\nLoad into Postgres %s, with primary keys, VACUUM and ANALYZE\n", seconds(s.loading))
	first, floor := median(s.firstCopies), median(s.copyFloors)
	fmt.Fprintf(out, "First copy         %s, the same COPYs to nothing %s (%.2fx, medians of %d); %s of COPY data\n",
		seconds(first), seconds(floor), first.Seconds()/floor.Seconds(), len(s.firstCopies), size(s.copyBytes))
	fmt.Fprintf(out, "Columns in memory  %s, the tables in Postgres %s (%.2fx smaller); most memory while copying %s\n",
		size(s.storeBytes), size(s.heapBytes), float64(s.heapBytes)/float64(max(s.storeBytes, 1)), size(s.peakBytes))
	fmt.Fprintf(out, "Slowest run        %.2fx the fastest of the same query on Postgres, %.2fx through pgaccel (medians over the queries)\n",
		spread(s.results, func(r *result) []time.Duration { return r.postgres }), spread(s.results, func(r *result) []time.Duration { return r.pgaccel }))
	if s.duckdb != nil {
		fmt.Fprintf(out, "DuckDB             %s, %d threads, loaded from text in %.1f s; file %s, %s without its free blocks: pgaccel's columns are %.2f of that\n",
			s.duckdb.Version, s.duckdb.Threads, s.duckdb.LoadSeconds, size(s.duckdb.FileBytes), size(s.duckdb.UsedBytes), float64(s.storeBytes)/float64(max(s.duckdb.UsedBytes, 1)))
	}
}
