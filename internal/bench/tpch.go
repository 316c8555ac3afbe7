package bench

import (
	"context"
	"io"

	"pgaccel/internal/tpch"
)

// TPCHOptions are those of `pgaccel-bench tpch`. The zero value is the full benchmark at
// scale factor 1.
type TPCHOptions struct {
	RunOptions
	Scale float64 // scale factor; 0 is 1, or 0.05 with Quick
}

func (o *TPCHOptions) fill() error {
	orDefault(o.Quick, &o.Scale, 1, 0.05)
	return o.RunOptions.fill()
}

// TPCH runs the 22 queries of TPC-H against a private Postgres server and against a
// pgaccel in front of it, each round with other parameters, and writes tables of medians
// and ratios to out. It returns an error, after the tables, where a query was not
// accelerated or an answer is not Postgres', byte for byte. Postgres is slow here and has
// one measured run a round.
func TPCH(ctx context.Context, o TPCHOptions, out io.Writer) error {
	if err := o.fill(); err != nil {
		return err
	}
	w, err := tpchWorkload(o.Scale)
	if err != nil {
		return err
	}
	w.copies, w.direct = 3, effort{runs: 1}
	return compare(ctx, w, o.RunOptions, out)
}

func tpchWorkload(scale float64) (workload, error) {
	w, err := generated(tpch.Source, scale)
	for _, q := range tpch.Queries() {
		of := drawnStatement(q.Name, func(round int) string { return q.Draw(round, scale) })
		if q.Name == "q11" { // parts of one value, of which there are some at larger scales
			of.tied = []int{0}
		}
		w.queries = append(w.queries, of)
	}
	return w, err
}
