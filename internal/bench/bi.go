package bench

import (
	"context"
	"fmt"
	"io"

	"pgaccel/internal/events"
)

// BIOptions are those of `pgaccel-bench bi`. The zero value is the full benchmark over
// ten million rows.
type BIOptions struct {
	RunOptions
	Rows int64 // of the table; 0 is ten million, or a million with Quick
}

func (o *BIOptions) fill() error {
	orDefault(o.Quick, &o.Rows, 10_000_000, 1_000_000)
	return o.RunOptions.fill()
}

// BI runs 20 queries as business intelligence tools write them over one wide table of
// events, against a private Postgres server and against a pgaccel in front of it, and
// writes tables of medians and ratios to out. It returns an error, after the tables, where
// a query was not accelerated or an answer is not Postgres': byte for byte, but for the
// last digits of averages over double precision, which Postgres itself gives differently
// from run to run. Postgres is slow here and runs in the first round only.
func BI(ctx context.Context, o BIOptions, out io.Writer) error {
	if err := o.fill(); err != nil {
		return err
	}
	w := biWorkload(o.Rows)
	w.copies = 1
	if w.direct = (effort{rounds: 1, runs: 2}); o.Quick {
		w.direct.runs = 1
	}
	return compare(ctx, w, o.RunOptions, out)
}

func biWorkload(rows int64) workload {
	w := workload{
		title:  fmt.Sprintf("Business intelligence over %d events", rows),
		schema: events.Schema(), tables: []string{"events"}, rows: rows,
		write: func(ctx context.Context, _ string, out io.Writer) error { return events.Generate(ctx, rows, out) },
		load: func(ctx context.Context, dsn string, p *progress) error {
			bar := p.start("loading", rows)
			defer bar.done()
			return events.Load(ctx, dsn, rows, func(step string, n int64) {
				bar.set("events", n)
				bar.note(step)
			})
		},
	}
	for _, q := range events.Queries(rows) {
		w.queries = append(w.queries, statement{Name: q.Name, SQL: q.SQL, unordered: q.Unordered, inexact: q.Inexact})
	}
	return w
}
