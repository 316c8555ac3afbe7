package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"pgaccel/internal/tpcdata"
)

// RunOptions are what the comparisons with Postgres and DuckDB have in common.
type RunOptions struct {
	Quick     bool      // less data, one round of 1 + 3 runs
	Rounds    int       // rounds over all queries; 0 is 3, or 1 with Quick
	Runs      int       // measured runs a query, side and round, after an unmeasured one; 0 is 5, or 3 with Quick
	Queries   []string  // names of the queries to run; nil is all
	Binary    string    // the pgaccel to measure; "" is the one beside this program
	ServeArgs []string  // more flags for `pgaccel serve`, such as --workers 1
	DuckDB    string    // program of bench/duckdb; "" leaves the column out
	Base      string    // another pgaccel, an older one, to compare with; "" leaves the column out
	Bytes     bool      // also print the columns' bytes, and by what they are compressed
	PGBinDir  string    // folder of initdb and postgres; "" looks for one
	Progress  io.Writer // progress bars or lines; nil is standard error
}

func (o *RunOptions) fill() error {
	orDefault(o.Quick, &o.Rounds, 3, 1)
	orDefault(o.Quick, &o.Runs, 5, 3)
	if o.Rounds < 0 || o.Runs < 0 {
		return fmt.Errorf("%d rounds of %d runs: use positive numbers", o.Rounds, o.Runs)
	}
	return orPgaccel(&o.Progress, &o.Binary)
}

// workload is what a comparison runs: tables, ways to make them, queries.
type workload struct {
	title   string   // with its size, for the first line of the report
	schema  string   // CREATE TABLE statements, without keys; "": they are not for DuckDB
	tables  []string // in the order in which they are loaded
	rows    int64    // of all tables
	queries []statement
	load    func(ctx context.Context, dsn string, p *progress) error   // into Postgres, keys included
	write   func(ctx context.Context, table string, w io.Writer) error // a table as COPY text
	piece   func(table string, piece, pieces int, w io.Writer) error   // a piece of it; nil where tables are written whole
	direct  effort                                                     // of Postgres; a zero is as much as of the others
	limit   time.Duration                                              // of a statement in Postgres by itself; 0 is none
	copies  int                                                        // how often the first copy is measured, beside its COPYs alone; 0: once, without them
}

// generated is the workload of the tables of a generator, without queries.
func generated(source tpcdata.Source, scale float64) (workload, error) {
	w := workload{schema: source.Schema(), tables: source.Tables}
	largest := w.tables[len(w.tables)-1]
	for _, table := range w.tables {
		n, err := source.Rows(table, scale)
		if err != nil {
			return workload{}, err
		}
		w.rows += n
		if table == largest {
			w.title = fmt.Sprintf("%s, scale factor %v (%d %s rows)", source.Name, scale, n, largest)
		}
	}
	w.write = func(_ context.Context, table string, out io.Writer) error {
		return source.Generate(table, scale, 0, 1, out)
	}
	w.load = func(ctx context.Context, dsn string, p *progress) error {
		bar := p.start("loading", w.rows)
		defer bar.done()
		return source.Load(ctx, dsn, scale, bar.tables(largest))
	}
	return w, nil
}

// inPieces is the workload of the tables of a generator, which are loaded by as many connections as there are processors: for
// what does not measure Postgres.
func inPieces(w workload, source tpcdata.Source, scale float64) workload {
	w.piece = func(table string, piece, pieces int, out io.Writer) error {
		return source.Generate(table, scale, piece, pieces, out)
	}
	w.load = func(ctx context.Context, dsn string, p *progress) error {
		bar := p.start("loading", 0)
		defer bar.done()
		return source.LoadInPieces(ctx, dsn, scale, runtime.GOMAXPROCS(0))
	}
	return w
}

// only leaves out the queries that are not named; nil names all.
func (w *workload) only(names []string) error {
	if names == nil {
		return nil
	}
	var some []statement
	for _, q := range w.queries {
		if slices.Contains(names, q.Name) {
			some = append(some, q)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(some, func(q statement) bool { return q.Name == name }) {
			return fmt.Errorf("no query %s", name)
		}
	}
	w.queries = some
	return nil
}

// effort is how often a query is measured.
type effort struct{ rounds, runs int }

// statement is one query of a workload's.
type statement struct {
	Name, SQL string
	draw      func(round int) string // where each round has parameters of its own: the text of a round, which becomes SQL
	unordered bool                   // the rows come in any order
	inexact   []int                  // result columns, from 0, whose last digits differ from run to run in Postgres itself
	open      []int                  // result columns, from 0, in which ties at LIMIT leave the values open
	tied      []int                  // result columns, from 0: rows that differ in these alone come in any order
	differs   string                 // why DuckDB answers differently, "" where it must not
}

// drawnStatement is one that has parameters of its own in each round.
func drawnStatement(name string, draw func(round int) string) statement {
	return statement{Name: name, SQL: draw(0), draw: draw}
}
