package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// answer is what a client sees of a query: everything but the time it took.
type answer struct {
	columns string // name, type, typmod and format of each column
	types   []uint32
	rows    []byte // COPY text: values separated by tabs, a line a row, \N for null
	n       int
	tag     string
}

// ask runs one query by the simple protocol and returns its answer, and the time from
// sending the query until the last row was read.
func ask(ctx context.Context, c *pgconn.PgConn, sql string) (answer, time.Duration, error) {
	var a answer
	start := time.Now()
	results := c.Exec(ctx, sql)
	for results.NextResult() {
		if err := a.read(results.ResultReader()); err != nil {
			results.Close()
			return answer{}, 0, err
		}
	}
	err := results.Close()
	return a, time.Since(start), err
}

// askPrepared is ask for a statement without parameters that was prepared, by the extended protocol.
func askPrepared(ctx context.Context, c *pgconn.PgConn, name string) (answer, time.Duration, error) {
	var a answer
	start := time.Now()
	err := a.read(c.ExecPrepared(ctx, name, nil, nil, nil))
	return a, time.Since(start), err
}

// read adds the result of a statement.
func (a *answer) read(r *pgconn.ResultReader) error {
	for r.NextRow() {
		for i, v := range r.Values() {
			if i > 0 {
				a.rows = append(a.rows, '\t')
			}
			if v == nil {
				a.rows = append(a.rows, `\N`...)
			}
			a.rows = append(a.rows, v...)
		}
		a.rows = append(a.rows, '\n')
		a.n++
	}
	for _, f := range r.FieldDescriptions() {
		a.types = append(a.types, f.DataTypeOID)
		a.columns += fmt.Sprintf("%s type %d typmod %d format %d\n", f.Name, f.DataTypeOID, f.TypeModifier, f.Format)
	}
	tag, err := r.Close()
	a.tag += tag.String()
	return err
}

// result is all that was seen of one query.
type result struct {
	query     statement
	answer    answer // Postgres'
	postgres  []time.Duration
	pgaccel   []time.Duration
	duckdb    []time.Duration
	base      []time.Duration
	forwarded map[string]int64 // executions that pgaccel did not take, by reason
	wrong     []string         // differences between the answers
	differs   string           // DuckDB's answer, where it may be another

	baseForwarded bool // the other pgaccel did not take all executions
	limited       bool // Postgres took longer than the workload's limit, which stands for its time: nothing to compare with
}

func (r *result) speedup() float64 {
	return float64(median(r.postgres)) / float64(median(r.pgaccel))
}

// comparison holds both sides, ready to be asked.
type comparison struct {
	postgres, pgaccel *pgconn.PgConn
	child             *child
	duckdb            *duckdb // nil without
	base              *base   // nil without
	direct            effort
	limit             time.Duration // of a statement in Postgres
}

// base is another pgaccel before the same server.
type base struct {
	child *child
	conn  *pgconn.PgConn
}

// repeat runs a query once unmeasured and runs times measured, and checks each answer
// against want (the first answer where want is nil).
func (q statement) repeat(ctx context.Context, c *pgconn.PgConn, runs int, want *answer) (times []time.Duration, first answer, wrong string, err error) {
	for i := range runs + 1 {
		a, took, err := ask(ctx, c, q.SQL)
		if err != nil {
			return nil, answer{}, "", err
		}
		if i == 0 {
			first = a
			if want == nil {
				want = &first
			}
		} else {
			times = append(times, took)
		}
		if d := q.difference(*want, a); d != "" && wrong == "" {
			wrong = d
		}
	}
	return times, first, wrong, nil
}

// measure runs one query on every side. The order of the sides is the other way round in
// every other round, so that none always runs on what another left in the caches; the
// answers are therefore compared once all are there.
func (c *comparison) measure(ctx context.Context, r *result, round, runs int) error {
	type side struct {
		of  string
		ask func() (compare func(), err error)
	}
	sides := []side{{"through pgaccel", func() (func(), error) { return c.measurePgaccel(ctx, r, runs) }}}
	if r.query.draw != nil {
		r.query.SQL, r.answer = r.query.draw(round), answer{}
	}
	if !r.limited && (c.direct.rounds == 0 || round < c.direct.rounds || r.query.draw != nil) {
		direct := runs
		if c.direct.runs > 0 {
			direct = c.direct.runs
		}
		sides = append([]side{{"on Postgres", func() (func(), error) { return c.measurePostgres(ctx, r, direct) }}}, sides...)
	}
	if c.duckdb != nil {
		sides = append(sides, side{"in DuckDB", func() (func(), error) { return c.measureDuckDB(r, runs) }})
	}
	if c.base != nil {
		sides = append(sides, side{"through the other pgaccel", func() (func(), error) { return c.measureBase(ctx, r, runs) }})
	}
	if round%2 == 1 {
		slices.Reverse(sides)
	}
	var compare []func()
	for _, s := range sides {
		one, err := s.ask()
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.query.Name, s.of, err)
		}
		compare = append(compare, one)
	}
	for _, one := range compare {
		one()
	}
	return nil
}

// wrongIn notes a difference, and in which text where each round has its own.
func (r *result) wrongIn(difference string) {
	if r.query.draw != nil {
		difference += "\nin " + r.query.SQL
	}
	r.wrong = append(r.wrong, difference)
}

const queryCanceled = "57014" // SQLSTATE of what statement_timeout ends

func (c *comparison) measurePostgres(ctx context.Context, r *result, runs int) (compare func(), err error) {
	var want *answer
	if r.answer.tag != "" {
		want = &r.answer
	}
	times, first, wrong, err := r.query.repeat(ctx, c.postgres, runs, want)
	if pgErr := (*pgconn.PgError)(nil); c.limit > 0 && errors.As(err, &pgErr) && pgErr.Code == queryCanceled {
		r.limited, r.postgres = true, []time.Duration{c.limit}
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	if want == nil {
		r.answer = first
	}
	r.postgres = append(r.postgres, times...)
	return func() {
		if wrong != "" {
			r.wrongIn("Postgres itself answers differently: " + wrong)
		}
	}, nil
}

func (c *comparison) measurePgaccel(ctx context.Context, r *result, runs int) (compare func(), err error) {
	times, first, wrong, forwarded, err := r.query.through(ctx, c.child, c.pgaccel, runs)
	if err != nil {
		return nil, err
	}
	r.pgaccel = append(r.pgaccel, times...)
	for reason, n := range forwarded {
		r.forward(reason, n)
	}
	return func() {
		if wrong != "" {
			r.wrongIn("pgaccel's answers differ among themselves: " + wrong)
		}
		if d := r.query.difference(r.answer, first); d != "" && !r.limited {
			r.wrongIn("pgaccel's answer is not Postgres': " + d)
		}
	}, nil
}

func (c *comparison) measureBase(ctx context.Context, r *result, runs int) (compare func(), err error) {
	times, first, wrong, forwarded, err := r.query.through(ctx, c.base.child, c.base.conn, runs)
	if err != nil {
		return nil, err
	}
	r.base = append(r.base, times...)
	r.baseForwarded = r.baseForwarded || len(forwarded) > 0
	return func() {
		if wrong == "" && !r.limited {
			wrong = r.query.difference(r.answer, first)
		}
		if wrong != "" {
			r.wrongIn("the other pgaccel's answer is not Postgres': " + wrong)
		}
	}, nil
}

func (c *comparison) measureDuckDB(r *result, runs int) (compare func(), err error) {
	d, err := c.duckdb.measure(r.query.Name, r.query.SQL, runs)
	if err != nil {
		return nil, err
	}
	r.duckdb = append(r.duckdb, d.times...)
	return func() {
		diff := r.query.duckdbDiffers(r.answer, d.rows)
		switch {
		case diff == "" || r.limited:
		case r.query.differs != "":
			r.differs = diff
		default:
			r.wrongIn("DuckDB's answer is not Postgres': " + diff)
		}
	}, nil
}

// through is repeat through a pgaccel, which is asked who answered: forwarded are the
// executions that it did not take, by reason.
func (q statement) through(ctx context.Context, c *child, conn *pgconn.PgConn, runs int) (times []time.Duration, first answer, wrong string, forwarded map[string]int64, err error) {
	m, err := c.metrics(ctx)
	if err != nil {
		return nil, answer{}, "", nil, err
	}
	acceleratedBefore, forwardedBefore := m.routes()
	if times, first, wrong, err = q.repeat(ctx, conn, runs, nil); err != nil {
		return nil, answer{}, "", nil, err
	}
	if m, err = c.metrics(ctx); err != nil {
		return nil, answer{}, "", nil, err
	}
	accelerated, now := m.routes()
	missing := int64(runs+1) - (accelerated - acceleratedBefore)
	forwarded = map[string]int64{}
	for reason, n := range now {
		if n -= forwardedBefore[reason]; n > 0 {
			forwarded[reason] = n
			missing -= n
		}
	}
	if missing != 0 {
		forwarded["not counted by pgaccel"] = missing
	}
	return times, first, wrong, forwarded, nil
}

func (r *result) forward(reason string, n int64) {
	if r.forwarded == nil {
		r.forwarded = map[string]int64{}
	}
	r.forwarded[reason] += n
}

// cheap is the reason for which pgaccel leaves a query over few rows to the server, that is as fast:
// no failure (TPC-DS q41 reads item alone).
const cheap = "cheap anyway"

// check is an error where a query was not accelerated or an answer is wrong.
func check(results []*result) error {
	var bad []string
	for _, r := range results {
		for _, reason := range slices.Sorted(maps.Keys(r.forwarded)) {
			if reason == cheap {
				continue
			}
			bad = append(bad, fmt.Sprintf("%s: %d executions were not accelerated: %s", r.query.Name, r.forwarded[reason], reason))
		}
		for _, w := range slices.Compact(slices.Sorted(slices.Values(r.wrong))) {
			bad = append(bad, r.query.Name+": "+w)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("the benchmark failed:\n  %s", strings.Join(bad, "\n  "))
	}
	return nil
}
