package gpucube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/papers/cube"
)

// Options say what Bench measures. The zero value takes some two minutes of a device and 5 GB
// of host memory.
type Options struct {
	BikerCells    int           // 0: 80,000,000; cube.BikerCells, 281 million, is the thesis' size
	MachinesCells int           // 0: cube.MachinesCells, 41 million, the thesis' size
	BaselineCells int           // the sequential baseline runs on at most so many and is scaled; 0: 250,000
	Rounds        int           // runs that the median is taken of; 0: 7
	Budget        time.Duration // of the runs of one variant, after which no more begin; 0: 250 ms
	Limit         time.Duration // of Bench, after which no variant of the thesis begins; 0: 140 s
	Variants      []Variant     // nil: Variants()
	Progress      io.Writer     // a line for each row, if not nil
}

// slowest is how many times the best variant's time one may take to be run more than once.
const slowest = 50

// Row is one query in one variant.
type Row struct {
	Cube, Query    string
	Variant        Variant
	Cells, Targets int           // of the cube; filled ones of the answer
	DeviceMillis   float64       // median: clearing of tables, kernels, compaction
	RunMillis      float64       // median: the same and the answer on the host, of a prepared query
	EndToEndMillis float64       // median: the aggregation map, its copy, and a run, kernels compiled
	BaselineMillis float64       // SourceBased of papers/cube, sequential
	BaselineScaled bool          // it ran on fewer cells, and its time was multiplied
	Factor         float64       // BaselineMillis over EndToEndMillis
	Chosen         bool          // by Tune
	OverBest       float64       // DeviceMillis over the least of the query's rows
	Launches       int           // by the host
	Slots          uint64        // of the hash table
	Unavailable    string        // why there are no times
	Compile        time.Duration // of kernels, before the first run
	Rounds         int           // runs that there was time for; 1: the first one, not warm, of a slow variant
}

// Bench runs the thesis' six queries in all variants on a device, and compares each answer
// with that of papers/cube's Aggregate, and that, where it runs on all cells, with the
// sequential baseline's. Our variants are measured first, then the thesis' without launches
// by the device, then those. A variant that fails has a row that says so; another answer is an
// error beside the rows, and where the device is lost the rows are those so far. Rows come by
// query, in the order in which they were measured.
func Bench(ctx context.Context, ex device.Executor, dev int, opt Options) (rows []Row, err error) {
	opt.fill()
	b := &bench{opt: opt, until: time.Now().Add(opt.Limit)}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, s := range []struct {
		make  func(int) (*cube.Sample, error)
		cells int
	}{{cube.Biker, opt.BikerCells}, {cube.Machines, opt.MachinesCells}} {
		sample, err := s.make(s.cells)
		if err != nil {
			return nil, err
		}
		small := sample
		if s.cells > opt.BaselineCells {
			if small, err = s.make(opt.BaselineCells); err != nil {
				return nil, err
			}
		}
		if err := b.prepare(ctx, ex, dev, sample, small); err != nil {
			return nil, err
		}
	}
	err = b.run(ctx)
	return b.rows(), err
}

// fill puts in what is meant by 0.
func (o *Options) fill() {
	for _, d := range []struct {
		value  *int
		normal int
	}{{&o.BikerCells, 80_000_000}, {&o.MachinesCells, cube.MachinesCells}, {&o.BaselineCells, 250_000}, {&o.Rounds, 7}} {
		if *d.value == 0 {
			*d.value = d.normal
		}
	}
	if o.Budget == 0 {
		o.Budget = 250 * time.Millisecond
	}
	if o.Limit == 0 {
		o.Limit = 140 * time.Second
	}
	if o.Variants == nil {
		o.Variants = Variants()
	}
}

// bench is Bench under way.
type bench struct {
	opt     Options
	until   time.Time
	cubes   []*Cube[float64]
	queries []*benchQuery
	lost    bool
}

// benchQuery is a query and its rows so far.
type benchQuery struct {
	u      *Cube[float64]
	area   cube.Area
	want   cube.Result[float64]
	row    Row // what all rows have
	chosen Variant
	grown  map[tableKey]uint64 // so that tables grow once
	best   float64             // DeviceMillis
	rows   []Row
}

// close gives device memory back. What cannot be reached any more is no error.
func (b *bench) close() (err error) {
	for _, u := range b.cubes {
		err = errors.Join(err, u.Close())
	}
	if b.lost {
		return nil
	}
	return err
}

// prepare uploads a cube, and has its queries answered by the processor.
func (b *bench) prepare(ctx context.Context, ex device.Executor, dev int, sample, small *cube.Sample) error {
	u, err := uploadCube(ctx, ex, dev, sample.Cube)
	if err != nil {
		return err
	}
	b.cubes = append(b.cubes, u)
	for i, sq := range sample.Queries {
		q := &benchQuery{u: u, area: sq.Area, grown: map[tableKey]uint64{},
			row: Row{Cube: sample.Name, Query: sq.Name, Cells: sample.Cube.Len(), BaselineScaled: small != sample}}
		start := time.Now()
		sequential, err := cube.SourceBased(ctx, small.Cube, cube.Query{small.Queries[i].Area}, cube.Options{})
		if err != nil {
			return err
		}
		q.row.BaselineMillis = millis(time.Since(start))
		if q.row.BaselineScaled {
			q.row.BaselineMillis *= float64(sample.Cube.Len()) / float64(small.Cube.Len())
		}
		want, err := cube.Aggregate(ctx, sample.Cube, cube.Query{sq.Area}, cube.Options{MemoryLimit: 8 << 30})
		if err != nil {
			return err
		}
		if !q.row.BaselineScaled && !sameResult(want[0], sequential[0]) {
			return fmt.Errorf("gpucube: %s: papers/cube disagrees with itself", sq.Name)
		}
		q.want = want[0]
		q.row.Targets = len(q.want.Targets)
		b.queries = append(b.queries, q)
	}
	return nil
}

// run measures our variants of all queries, then the thesis'.
func (b *bench) run(ctx context.Context) error {
	var errs []error
	for _, q := range b.queries {
		if err := q.tune(ctx); err != nil {
			if ctx.Err() != nil || b.isLost(err) {
				return fmt.Errorf("%s: %w", q.row.Query, err)
			}
			errs = append(errs, fmt.Errorf("%s: %w", q.row.Query, err))
		}
	}
	phase := func(v Variant) Method { return min(v.Method, Queue) }
	// What a query does not need of its share of the time is for those after it. Replicas of
	// the source-based variants make more of them worth a look than children's.
	weights := map[Method]int{Queue: 2, Source: 2, Children: 1}
	left := 5 * len(b.queries)
	for _, now := range []Method{Queue, Source, Children} {
		for _, q := range b.queries {
			variants := slices.DeleteFunc(slices.Clone(b.opt.Variants), func(v Variant) bool { return phase(v) != now })
			if !slices.Contains(b.opt.Variants, q.chosen) && phase(q.chosen) == now {
				variants = append(variants, q.chosen)
			}
			until := time.Now().Add(time.Until(b.until) * time.Duration(weights[now]) / time.Duration(left))
			left -= weights[now]
			for i, v := range variants {
				r := q.row
				r.Variant, r.Chosen = v, v == q.chosen
				err := b.measure(ctx, q, &r, time.Until(until)/time.Duration(len(variants)-i))
				if ctx.Err() != nil {
					return errors.Join(append(errs, err)...)
				}
				if err != nil {
					err = fmt.Errorf("%s by %v: %w", r.Query, v, err)
					r.Unavailable = line(err)
					errs = append(errs, err)
				}
				q.rows = append(q.rows, r)
				if b.opt.Progress != nil {
					if _, err := fmt.Fprintln(b.opt.Progress, r); err != nil {
						return err
					}
				}
				if b.lost {
					return errors.Join(errs...)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// isLost notes whether the device is gone with an error.
func (b *bench) isLost(err error) bool {
	b.lost = b.lost || device.KindOf(err) == device.FaultLost
	return b.lost
}

// tune has the query choose.
func (q *benchQuery) tune(ctx context.Context) error {
	p, err := q.u.Prepare(ctx, q.area)
	if err != nil {
		return err
	}
	q.chosen = p.Choose()
	v, err := p.Tune(ctx)
	if err != nil {
		_ = p.Close() // the first error is the one to tell
		return err
	}
	q.chosen = v
	return p.Close()
}

// line makes one line of an error, of bearable length.
func line(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > 240 {
		text = text[:240] + " .."
	}
	return text
}

// measure fills in a row, in about the given time. A failure of the device that other
// variants survive is in the row.
func (b *bench) measure(ctx context.Context, q *benchQuery, r *Row, share time.Duration) error {
	budget := min(b.opt.Budget, share)
	if r.Variant.Thesis() && budget <= 0 {
		r.Unavailable = fmt.Sprintf("no time was left of the query's share of %v", b.opt.Limit)
		return nil
	}
	err := q.measure(ctx, r, budget, b.opt.Rounds)
	var fault *device.Fault
	switch {
	case err == nil:
		return nil
	case b.isLost(err):
		return err
	case errors.Is(err, errUnavailable), errors.As(err, &fault):
		r.Unavailable = line(err)
		return nil
	}
	return err
}

func (q *benchQuery) measure(ctx context.Context, r *Row, budget time.Duration, rounds int) (err error) {
	begin := time.Now()
	p, err := q.prepared(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	_, s, err := q.once(ctx, p, r)
	if err != nil {
		return err
	}
	r.Compile = s.Compile
	r.EndToEndMillis = millis(time.Since(begin) - s.Compile)
	r.DeviceMillis, r.RunMillis, r.Rounds = s.DeviceMillis, r.EndToEndMillis, 1
	r.Factor = r.BaselineMillis / r.EndToEndMillis
	if q.best > 0 && s.DeviceMillis > slowest*q.best {
		return nil
	}
	// Runs of a prepared query, then whole ones, in turns of the budget.
	var times, run, whole []float64
	for start := time.Now(); len(run) < rounds && (len(run) == 0 || time.Since(start) < budget); {
		took, s, err := q.once(ctx, p, r)
		if err != nil {
			return err
		}
		times, run = append(times, s.DeviceMillis), append(run, millis(took))
	}
	err = p.Close()
	p = nil
	if err != nil {
		return err
	}
	for start := time.Now(); len(whole) < rounds && (len(whole) == 0 || time.Since(start) < budget); {
		begin := time.Now()
		fresh, err := q.prepared(ctx)
		if err != nil {
			return err
		}
		_, _, err = q.once(ctx, fresh, r)
		if err := errors.Join(err, fresh.Close()); err != nil {
			return err
		}
		whole = append(whole, millis(time.Since(begin)))
	}
	r.DeviceMillis, r.RunMillis, r.EndToEndMillis, r.Rounds = median(times), median(run), median(whole), len(times)
	r.Factor = r.BaselineMillis / r.EndToEndMillis
	if q.best == 0 || r.DeviceMillis < q.best {
		q.best = r.DeviceMillis
	}
	return nil
}

// prepared prepares the query with tables of the sizes that were enough.
func (q *benchQuery) prepared(ctx context.Context) (*Query[float64], error) {
	p, err := q.u.Prepare(ctx, q.area)
	if err == nil {
		p.grown = q.grown
	}
	return p, err
}

// once runs the row's variant and compares the answer.
func (q *benchQuery) once(ctx context.Context, p *Query[float64], r *Row) (took time.Duration, s Stats, err error) {
	begin := time.Now()
	got, s, err := p.Run(ctx, r.Variant)
	took = time.Since(begin)
	if err == nil && !sameResult(got, q.want) {
		err = errors.New("another answer than papers/cube's")
	}
	r.Launches, r.Slots = s.Launches, s.Slots
	return took, s, err
}

// rows returns all rows.
func (b *bench) rows() (all []Row) {
	for _, q := range b.queries {
		for _, r := range q.rows {
			if q.best > 0 && r.Unavailable == "" {
				r.OverBest = r.DeviceMillis / q.best
			}
			all = append(all, r)
		}
	}
	return all
}

// Summary is what the rows of a query say. Its rows are nil where there is none that ran.
type Summary struct {
	Cube, Query  string
	Best, Chosen *Row // by DeviceMillis
	Ours         *Row // the fastest of our variants, by DeviceMillis
	BestThesis   *Row // likewise
	WorstThesis  *Row
}

// Summarize returns a summary for each query, in the order of the rows.
func Summarize(rows []Row) (all []Summary) {
	better := func(best **Row, r *Row, sign float64) {
		if *best == nil || sign*r.DeviceMillis < sign*(*best).DeviceMillis {
			*best = r
		}
	}
	for i := range rows {
		r := &rows[i]
		if len(all) == 0 || all[len(all)-1].Query != r.Query {
			all = append(all, Summary{Cube: r.Cube, Query: r.Query})
		}
		s := &all[len(all)-1]
		if r.Unavailable != "" {
			continue
		}
		better(&s.Best, r, 1)
		if r.Chosen {
			s.Chosen = r
		}
		if r.Variant.Thesis() {
			better(&s.BestThesis, r, 1)
			better(&s.WorstThesis, r, -1)
		} else {
			better(&s.Ours, r, 1)
		}
	}
	return all
}

// String returns a line.
func (s Summary) String() string {
	text := fmt.Sprintf("%s %s:", s.Cube, s.Query)
	if s.Best == nil {
		return text + " no variant ran"
	}
	text += fmt.Sprintf(" best %v, %.4g ms on the device, %.4g ms end to end, %.4g times the sequential CPU", s.Best.Variant, s.Best.DeviceMillis, s.Best.EndToEndMillis, s.Best.Factor)
	if s.Chosen != nil {
		text += fmt.Sprintf("; chosen %v, %.2f of the best one's time", s.Chosen.Variant, s.Chosen.DeviceMillis/s.Best.DeviceMillis)
	}
	if t := s.BestThesis; t != nil {
		if o := s.Ours; o != nil {
			text += fmt.Sprintf("; ours %.1f times as fast as the thesis' best (%v) on the device, %.1f end to end", t.DeviceMillis/math.Max(o.DeviceMillis, 1e-6), t.Variant, t.EndToEndMillis/math.Max(o.EndToEndMillis, 1e-6))
		}
		text += fmt.Sprintf("; the thesis' worst (%v) %.4g times the sequential CPU", s.WorstThesis.Variant, s.WorstThesis.Factor)
	}
	return text
}

// String returns a line.
func (r Row) String() string {
	mark := " "
	if r.Chosen {
		mark = "*"
	}
	if r.Unavailable != "" {
		return fmt.Sprintf("%s %s%-34s %s", r.Query, mark, r.Variant, r.Unavailable)
	}
	return fmt.Sprintf("%s %s%-34s device %10.3f ms, run %10.3f ms, end to end %10.3f ms, %9.1f times the sequential CPU, %d launches, %d slots, %d runs",
		r.Query, mark, r.Variant, r.DeviceMillis, r.RunMillis, r.EndToEndMillis, r.Factor, r.Launches, r.Slots, r.Rounds)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median returns the middle of values, the lower one of two.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

func sameResult(a, b cube.Result[float64]) bool {
	return slices.Equal(a.Targets, b.Targets) && slices.Equal(a.Values, b.Values)
}
