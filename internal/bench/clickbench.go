package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"pgaccel/internal/clickbench"
)

// ClickBenchOptions are those of `pgaccel-bench clickbench`. The zero value is the full benchmark over
// ten million rows.
type ClickBenchOptions struct {
	RunOptions
	Rows  int64         // of the table; 0 is ten million, or 200,000 with Quick
	Limit time.Duration // of a statement in Postgres; 0 is a minute
}

func (o *ClickBenchOptions) fill() error {
	orDefault(o.Quick, &o.Rows, 10_000_000, 200_000)
	orDefault(o.Quick, &o.Limit, time.Minute, time.Minute)
	return o.RunOptions.fill()
}

// ClickBench runs 43 statements of ClickBench's meanings, and two of them with the order of ties left open,
// against a private Postgres server and against a pgaccel in front of it, and writes tables of medians and
// ratios to out. It returns an error, after the tables, where a statement was not accelerated or an answer is
// not Postgres', byte for byte, but for what ties leave open. Postgres is slow here: it has one measured run in
// the first round only.
func ClickBench(ctx context.Context, o ClickBenchOptions, out io.Writer) error {
	if err := o.fill(); err != nil {
		return err
	}
	w, err := clickbenchWorkload(o.Rows)
	if err != nil {
		return err
	}
	w.copies, w.direct, w.limit = 1, effort{rounds: 1, runs: 1}, o.Limit
	return compare(ctx, w, o.RunOptions, out)
}

func clickbenchWorkload(rows int64) (workload, error) {
	w, err := generated(clickbench.Source, clickbench.ScaleOf(rows))
	w.title = fmt.Sprintf("ClickBench's table of %d rows", rows)
	for _, q := range append(clickbench.Queries(rows), clickbench.Variants(rows)...) {
		w.queries = append(w.queries, statement{Name: q.Name, SQL: q.SQL, open: q.Open})
	}
	return w, err
}
