package rowout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"pgaccel/gpu/device"
)

// Options say what Bench measures. The zero value is the paper's experiment.
type Options struct {
	Objects    int       // points, and queries; 700,000
	Results    []float64 // results per query, on average: what the range's size comes of; 1, 4, 16, 64, 256
	CellPoints int       // points of a cell on average, at least; 128
	Runs       int       // of which the median counts; 9
	Warm       int       // before them; 2
	Progress   func(results float64)
}

func (o *Options) defaults() {
	if o.Objects <= 0 {
		o.Objects = 700_000
	}
	if len(o.Results) == 0 {
		o.Results = []float64{1, 4, 16, 64, 256}
	}
	if o.CellPoints <= 0 {
		o.CellPoints = 128
	}
	if o.Runs <= 0 {
		o.Runs = 9
	}
	if o.Warm <= 0 {
		o.Warm = 2
	}
}

// Row is one measurement.
type Row struct {
	Method   string
	PerQuery float64 // results, on average
	Queries  int
	Entries  int    // queries by cells
	Tests    uint64 // evaluations of the predicate; of recount twice as many are made
	Results  uint64
	Bitmap   int64 // bytes of the intermediate bitmap, linear or interlaced; 0 where there is none
	Output   int64 // bytes of the results

	Millis                             float64 // median of all, on the device
	Filter, Linearise, Sums, Decode    float64 // of that run
	OverAtomicRow, OverAtomicWarp, CPU float64 // how often faster; milliseconds of all cores here
}

// Bench answers batches of queries by each method, and checks the results against those of
// the CPU: their number, and a sum over all of them. Before each run the second-level
// cache is filled with something else.
func Bench(ctx context.Context, ex device.Executor, dev int, opt Options) ([]Row, error) {
	opt.defaults()
	devices := ex.Devices()
	if dev < 0 || dev >= len(devices) {
		return nil, fmt.Errorf("rowout: there is no device %d", dev)
	}
	flushBytes := max(2*devices[dev].L2, 1<<16) &^ 3
	flush, err := ex.Alloc(dev, flushBytes)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for i, results := range opt.Results {
		if opt.Progress != nil {
			opt.Progress(results)
		}
		more, err := benchSize(ctx, ex, dev, device.Command{Op: device.OpFill, Dst: flush, Bytes: uint64(flushBytes)}, uniform(opt.Objects, results, opt.CellPoints, uint64(i)), opt)
		rows = append(rows, more...)
		if err != nil {
			return rows, errors.Join(fmt.Errorf("%v results per query: %w", results, err), ex.Free(dev, flush))
		}
	}
	return rows, ex.Free(dev, flush)
}

func benchSize(ctx context.Context, ex device.Executor, dev int, flush device.Command, w *workload, opt Options) (_ []Row, err error) {
	start := time.Now()
	results, sum := w.sum()
	cpu := float64(time.Since(start)) / float64(time.Millisecond)
	b, err := upload(ctx, ex, dev, w, results)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Free()) }()
	base := Row{PerQuery: float64(results) / float64(max(len(w.Queries), 1)), Queries: len(w.Queries), Entries: len(w.Entries), Results: results, CPU: cpu}
	for _, c := range w.Cells {
		base.Tests += uint64(c.Points) * uint64(c.Entries)
	}
	var rows []Row
	for _, m := range methods() {
		if err := b.check(ctx, m, results, sum); err != nil {
			return rows, fmt.Errorf("%s: %w", m.Name, err)
		}
		var all []Row
		for i := range opt.Warm + opt.Runs {
			reply, err := ex.Run(ctx, dev, &device.Batch{Commands: append([]device.Command{flush}, b.Commands(m)...)})
			if err != nil {
				return rows, fmt.Errorf("%s: %w", m.Name, err)
			}
			if i < opt.Warm {
				continue
			}
			r := base
			r.Method, r.Output = m.Name, 4*int64(results)
			if m.Pairs {
				r.Output *= 2
			}
			if m.Name == "bitmap" || m.Name == "ballot" {
				r.Bitmap = 4 * w.words
			}
			for s, millis := range reply.Millis {
				r.Millis += millis
				switch m.stages[s].name {
				case stageFilter:
					r.Filter = millis
				case stageLinearise:
					r.Linearise = millis
				case stageSums:
					r.Sums = millis
				case stageDecode:
					r.Decode = millis
				}
			}
			all = append(all, r)
		}
		slices.SortFunc(all, func(x, y Row) int { return int(1e6 * (x.Millis - y.Millis)) })
		rows = append(rows, all[len(all)/2])
	}
	for i := range rows {
		for _, r := range rows {
			switch r.Method {
			case "atomic row":
				rows[i].OverAtomicRow = r.Millis / rows[i].Millis
			case "atomic warp":
				rows[i].OverAtomicWarp = r.Millis / rows[i].Millis
			}
		}
	}
	return rows, nil
}

// Print writes what Bench measured as a table.
func Print(out io.Writer, rows []Row) {
	last := -1.0
	for _, r := range rows {
		if r.PerQuery != last {
			last = r.PerQuery
			fmt.Fprintf(out, "\n%d queries, %.1f results each (%d in all), %d entries, %.1f million tests; the CPU: %.1f ms\n", r.Queries, r.PerQuery, r.Results, r.Entries, float64(r.Tests)/1e6, r.CPU)
			fmt.Fprintf(out, "%-12s %9s %9s %9s %9s %9s %9s %9s %10s %10s\n", "method", "ms", "filter", "linearise", "sums", "decode", "MB bitmap", "MB output", "/ atomic", "/ by warp")
		}
		fmt.Fprintf(out, "%-12s %9.3f %9.3f %9.3f %9.3f %9.3f %9.1f %9.1f %10.2f %10.2f\n", r.Method, r.Millis, r.Filter, r.Linearise, r.Sums, r.Decode,
			float64(r.Bitmap)/1e6, float64(r.Output)/1e6, r.OverAtomicRow, r.OverAtomicWarp)
	}
}
