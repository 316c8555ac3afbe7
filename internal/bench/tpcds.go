package bench

import (
	"context"
	"io"
	"time"

	"pgaccel/internal/tpcds"
)

// TPCDSOptions are those of `pgaccel-bench tpcds`. The zero value is the full benchmark at
// scale factor 1.
type TPCDSOptions struct {
	RunOptions
	Scale float64       // scale factor; 0 is 1, or 0.05 with Quick
	Limit time.Duration // of a statement in Postgres; 0 is a minute
}

func (o *TPCDSOptions) fill() error {
	orDefault(o.Quick, &o.Scale, 1, 0.05)
	orDefault(o.Quick, &o.Limit, time.Minute, time.Minute)
	return o.RunOptions.fill()
}

// TPCDS runs 99 statements of TPC-DS' shapes against a private Postgres server and against a
// pgaccel in front of it, each round with other parameters, and writes tables of medians
// and ratios to out. It returns an error, after the tables, where a statement was not
// accelerated or an answer is not Postgres', byte for byte. Postgres is slow here: it has one
// measured run a round, and is not asked again what takes it longer than the limit.
func TPCDS(ctx context.Context, o TPCDSOptions, out io.Writer) error {
	if err := o.fill(); err != nil {
		return err
	}
	w, err := tpcdsWorkload(o.Scale)
	if err != nil {
		return err
	}
	w.copies, w.direct, w.limit = 3, effort{runs: 1}, o.Limit
	return compare(ctx, w, o.RunOptions, out)
}

func tpcdsWorkload(scale float64) (workload, error) {
	w, err := generated(tpcds.Source, scale)
	for _, q := range tpcds.Queries() {
		s := drawnStatement(q.Name, func(round int) string { return q.Draw(round, scale) })
		if q.Name == "q49" {
			s.differs = "quotients of decimals are doubles there, so that other ones tie in rank"
		}
		w.queries = append(w.queries, s)
	}
	return w, err
}
