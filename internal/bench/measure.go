package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/ssb"
)

// answer is what a client sees of a query: everything but the time it took.
type answer struct {
	columns string // name, type, typmod and format of each column
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
		r := results.ResultReader()
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
			a.columns += fmt.Sprintf("%s type %d typmod %d format %d\n", f.Name, f.DataTypeOID, f.TypeModifier, f.Format)
		}
		tag, err := r.Close()
		if err != nil {
			results.Close()
			return answer{}, 0, err
		}
		a.tag += tag.String()
	}
	err := results.Close()
	return a, time.Since(start), err
}

// hash identifies the rows; bench/duckdb computes the same of its own.
func (a answer) hash() string {
	sum := sha256.Sum256(a.rows)
	return fmt.Sprintf("%x", sum[:16])
}

// difference says where b is not a, "" if nowhere.
func (a answer) difference(b answer) string {
	switch {
	case a.columns != b.columns:
		return fmt.Sprintf("columns:\n%sinstead of\n%s", b.columns, a.columns)
	case a.tag != b.tag:
		return fmt.Sprintf("%s instead of %s", b.tag, a.tag)
	case bytes.Equal(a.rows, b.rows):
		return ""
	}
	want, got := bytes.Split(a.rows, []byte{'\n'}), bytes.Split(b.rows, []byte{'\n'})
	for i := range min(len(want), len(got)) {
		if !bytes.Equal(want[i], got[i]) {
			return fmt.Sprintf("row %d is %q instead of %q", i+1, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d rows instead of %d", b.n, a.n)
}

// result is all that was seen of one query.
type result struct {
	query     ssb.Query
	answer    answer // Postgres'
	postgres  []time.Duration
	pgaccel   []time.Duration
	duckdb    []time.Duration
	forwarded map[string]int64 // executions that pgaccel did not take, by reason
	wrong     []string         // differences between the answers
}

func (r *result) speedup() float64 {
	return float64(median(r.postgres)) / float64(median(r.pgaccel))
}

// comparison holds both sides, ready to be asked.
type comparison struct {
	postgres, pgaccel *pgconn.PgConn
	child             *child
	duckdb            *duckdb // nil without
}

// repeat runs a query once unmeasured and runs times measured, and checks each answer
// against want (the first answer where want is nil).
func repeat(ctx context.Context, c *pgconn.PgConn, sql string, runs int, want *answer) (times []time.Duration, first answer, wrong string, err error) {
	for i := range runs + 1 {
		a, took, err := ask(ctx, c, sql)
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
		if d := want.difference(a); d != "" && wrong == "" {
			wrong = d
		}
	}
	return times, first, wrong, nil
}

// measure runs one query on every side. The order of Postgres and pgaccel changes with
// swap, so that neither always runs on what the other left in the caches.
func (c *comparison) measure(ctx context.Context, r *result, runs int, swap bool) error {
	direct := func() error {
		var want *answer
		if r.answer.tag != "" {
			want = &r.answer
		}
		times, first, wrong, err := repeat(ctx, c.postgres, r.query.SQL, runs, want)
		if err != nil {
			return fmt.Errorf("%s on Postgres: %w", r.query.Name, err)
		}
		if want == nil {
			r.answer = first
		}
		if wrong != "" {
			r.wrong = append(r.wrong, "Postgres itself answers differently: "+wrong)
		}
		r.postgres = append(r.postgres, times...)
		return nil
	}
	through := func() error {
		times, first, wrong, err := c.through(ctx, r, runs)
		if err != nil {
			return fmt.Errorf("%s through pgaccel: %w", r.query.Name, err)
		}
		r.pgaccel = append(r.pgaccel, times...)
		if wrong != "" {
			r.wrong = append(r.wrong, "pgaccel's answers differ among themselves: "+wrong)
		}
		if d := r.answer.difference(first); d != "" {
			r.wrong = append(r.wrong, "pgaccel's answer is not Postgres': "+d)
		}
		return nil
	}
	sides := []func() error{direct, through}
	if swap && r.answer.tag != "" {
		slices.Reverse(sides)
	}
	for _, side := range sides {
		if err := side(); err != nil {
			return err
		}
	}
	if c.duckdb == nil {
		return nil
	}
	d, err := c.duckdb.measure(r.query.Name, runs)
	if err != nil {
		return fmt.Errorf("%s in DuckDB: %w", r.query.Name, err)
	}
	r.duckdb = append(r.duckdb, d.times...)
	if d.hash != r.answer.hash() {
		r.wrong = append(r.wrong, fmt.Sprintf("DuckDB's answer (%d rows) is not Postgres' (%d rows)", d.rows, r.answer.n))
	}
	return nil
}

// through measures pgaccel and asks it who answered.
func (c *comparison) through(ctx context.Context, r *result, runs int) (times []time.Duration, first answer, wrong string, err error) {
	m, err := c.child.metrics(ctx)
	if err != nil {
		return nil, answer{}, "", err
	}
	acceleratedBefore, forwardedBefore := m.routes()
	times, first, wrong, err = repeat(ctx, c.pgaccel, r.query.SQL, runs, nil)
	if err != nil {
		return nil, answer{}, "", err
	}
	if m, err = c.child.metrics(ctx); err != nil {
		return nil, answer{}, "", err
	}
	accelerated, forwarded := m.routes()
	missing := int64(runs+1) - (accelerated - acceleratedBefore)
	for reason, n := range forwarded {
		if n -= forwardedBefore[reason]; n > 0 {
			r.forward(reason, n)
			missing -= n
		}
	}
	if missing != 0 {
		r.forward("not counted by pgaccel", missing)
	}
	return times, first, wrong, nil
}

func (r *result) forward(reason string, n int64) {
	if r.forwarded == nil {
		r.forwarded = map[string]int64{}
	}
	r.forwarded[reason] += n
}

// check is an error where a query was not accelerated or an answer is wrong.
func check(results []*result) error {
	var bad []string
	for _, r := range results {
		for _, reason := range slices.Sorted(maps.Keys(r.forwarded)) {
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
