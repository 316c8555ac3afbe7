package bench

import (
	"context"
	"io"

	"pgaccel/internal/ssb"
)

// SSBOptions are those of `pgaccel-bench ssb`. The zero value is the full benchmark at
// scale factor 1.
type SSBOptions struct {
	RunOptions
	Scale float64 // scale factor; 0 is 1, or 0.1 with Quick
}

func (o *SSBOptions) fill() error {
	orDefault(o.Quick, &o.Scale, 1, 0.1)
	return o.RunOptions.fill()
}

// SSB runs the Star Schema Benchmark against a private Postgres server and against a
// pgaccel in front of it, and writes tables of medians and ratios to out. It returns an
// error, after the tables, where a query was not accelerated or an answer is not
// Postgres', byte for byte.
func SSB(ctx context.Context, o SSBOptions, out io.Writer) error {
	if err := o.fill(); err != nil {
		return err
	}
	w, err := ssbWorkload(o.Scale)
	if err != nil {
		return err
	}
	w.copies = 3
	return compare(ctx, w, o.RunOptions, out)
}

func ssbWorkload(scale float64) (workload, error) {
	w, err := generated(ssb.Source, scale)
	for _, q := range ssb.Queries() {
		w.queries = append(w.queries, statement{Name: q.Name, SQL: q.SQL})
	}
	return w, err
}
