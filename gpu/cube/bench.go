package cube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/olap/cube"
)

// Options say what Bench measures. The zero value is the thesis' cubes at their full size:
// 281 and 41 million cells, 14 GB of host memory.
type Options struct {
	BikerCells    int           // 0: as many as the thesis has
	MachinesCells int           // likewise
	BaselineCells int           // the sequential baseline runs on at most so many and is scaled by its additions; 0: 1,000,000
	Rounds        int           // runs that the median is taken of; 0: 7
	Budget        time.Duration // of the runs of one variant, after which no more begin; 0: 1 s
	Variants      []Variant     // nil: Variants()
	Progress      io.Writer     // a line for each row, if not nil
}

// Row is one query in one variant.
type Row struct {
	Cube, Query    string
	Variant        Variant
	Cells, Targets int           // of the cube; filled ones of the answer
	DeviceMillis   float64       // median: clearing of tables, kernels, compaction
	RunMillis      float64       // median: the same and the answer on the host, of a prepared query
	EndToEndMillis float64       // the aggregation map, its copy, and a run, kernels compiled
	BaselineMillis float64       // SourceBased of olap/cube, sequential
	BaselineScaled bool          // it ran on fewer cells, and its time was multiplied
	Factor         float64       // BaselineMillis over EndToEndMillis
	Chosen         bool          // by Choose
	OverBest       float64       // DeviceMillis over the least of the query's rows
	Launches       int           // by the host
	Slots          uint64        // of the hash table
	Unavailable    string        // why there are no times
	Compile        time.Duration // of the first run, compilation included
	Rounds         int           // runs that there was time for
}

// Bench runs the thesis' six queries in all variants on a device, and compares each answer
// with that of olap/cube's Aggregate, and that, where it runs on all cells, with the
// sequential baseline's. Rows come by query, in the order of the variants.
func Bench(ctx context.Context, ex device.Executor, dev int, opt Options) (rows []Row, err error) {
	if opt.BikerCells == 0 {
		opt.BikerCells = cube.BikerCells
	}
	if opt.MachinesCells == 0 {
		opt.MachinesCells = cube.MachinesCells
	}
	if opt.BaselineCells == 0 {
		opt.BaselineCells = 1_000_000
	}
	if opt.Rounds == 0 {
		opt.Rounds = 7
	}
	if opt.Budget == 0 {
		opt.Budget = time.Second
	}
	if opt.Variants == nil {
		opt.Variants = Variants()
	}
	for _, s := range []struct {
		make  func(int) (*cube.Sample, error)
		cells int
	}{{cube.Biker, opt.BikerCells}, {cube.Machines, opt.MachinesCells}} {
		sample, err := s.make(s.cells)
		if err != nil {
			return rows, err
		}
		small := sample
		if s.cells > opt.BaselineCells {
			if small, err = s.make(opt.BaselineCells); err != nil {
				return rows, err
			}
		}
		more, err := benchCube(ctx, ex, dev, sample, small, &opt)
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// benchCube runs the queries of one cube.
func benchCube(ctx context.Context, ex device.Executor, dev int, sample, small *cube.Sample, opt *Options) (rows []Row, err error) {
	u, err := Upload(ctx, ex, dev, sample.Cube)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	for i, sq := range sample.Queries {
		row := Row{Cube: sample.Name, Query: sq.Name, Cells: sample.Cube.Len(), BaselineScaled: small != sample}
		var stats cube.Stats
		start := time.Now()
		sequential, err := cube.SourceBased(ctx, small.Cube, cube.Query{small.Queries[i].Area}, cube.Options{Stats: &stats})
		if err != nil {
			return rows, err
		}
		row.BaselineMillis = millis(time.Since(start))
		if row.BaselineScaled {
			row.BaselineMillis *= float64(sample.Cube.Len()) / float64(small.Cube.Len())
		}
		want, err := cube.Aggregate(ctx, sample.Cube, cube.Query{sq.Area}, cube.Options{MemoryLimit: 8 << 30})
		if err != nil {
			return rows, err
		}
		if !row.BaselineScaled && !sameResult(want[0], sequential[0]) {
			return rows, fmt.Errorf("gpu/cube: %s: olap/cube disagrees with itself", sq.Name)
		}
		more, err := benchQuery(ctx, u, sq.Area, want[0], row, opt)
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// benchQuery runs one query in all variants.
func benchQuery(ctx context.Context, u *Cube[float64], area cube.Area, want cube.Result[float64], row Row, opt *Options) (rows []Row, err error) {
	q, err := u.Prepare(ctx, area)
	if err != nil {
		return nil, err
	}
	chosen := q.Choose()
	variants := opt.Variants
	if !slices.Contains(variants, chosen) {
		variants = append(slices.Clone(variants), chosen)
	}
	row.Targets = len(want.Targets)
	if err := q.Close(); err != nil {
		return nil, err
	}
	for _, v := range variants {
		r := row
		r.Variant, r.Chosen = v, v == chosen
		if err := benchVariant(ctx, u, area, want, &r, opt); err != nil {
			return rows, fmt.Errorf("%s by %v: %w", r.Query, v, err)
		}
		if opt.Progress != nil {
			if _, err := fmt.Fprintln(opt.Progress, r); err != nil {
				return rows, err
			}
		}
		rows = append(rows, r)
	}
	least := 0.0
	for _, r := range rows {
		if r.Unavailable == "" && (least == 0 || r.DeviceMillis < least) {
			least = r.DeviceMillis
		}
	}
	for i := range rows {
		if least > 0 {
			rows[i].OverBest = rows[i].DeviceMillis / least
		}
	}
	return rows, nil
}

// benchVariant fills in a row. Memory is given back before the next variant.
func benchVariant(ctx context.Context, u *Cube[float64], area cube.Area, want cube.Result[float64], r *Row, opt *Options) (err error) {
	start := time.Now()
	q, err := u.Prepare(ctx, area)
	if err != nil {
		return err
	}
	defer func() {
		if q != nil {
			err = errors.Join(err, q.Close())
		}
	}()
	var device, run []float64
	var grown map[tableKey]uint64
	for round := 0; round <= opt.Rounds; round++ {
		begin := time.Now()
		got, stats, err := q.Run(ctx, r.Variant)
		if errors.Is(err, ErrUnavailable) {
			r.Unavailable = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
		if !sameResult(got, want) {
			return errors.New("another answer than olap/cube's")
		}
		took := time.Since(begin)
		if round == 0 {
			r.Compile = took
		}
		late := time.Since(start) > opt.Budget && round > 0
		if round > 0 || took > opt.Budget { // the first run warms up, unless it takes all the time
			device, run = append(device, stats.DeviceMillis), append(run, millis(took))
		}
		r.Launches, r.Slots, grown = stats.Launches, stats.Slots, q.grown
		if late || took > opt.Budget {
			break
		}
	}
	r.DeviceMillis, r.RunMillis, r.Rounds = median(device), median(run), len(device)
	if err := q.Close(); err != nil {
		return err
	}
	q = nil
	begin := time.Now()
	fresh, err := u.Prepare(ctx, area)
	if err != nil {
		return err
	}
	fresh.grown = grown
	_, _, err = fresh.Run(ctx, r.Variant)
	r.EndToEndMillis = millis(time.Since(begin))
	r.Factor = r.BaselineMillis / r.EndToEndMillis
	return errors.Join(err, fresh.Close())
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
