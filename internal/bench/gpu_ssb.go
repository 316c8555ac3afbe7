package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/olap"
	"pgaccel/vector"
)

// published are, for the 13 queries, the best of six modes of other people's kernels that
// were measured on an H200 at scale factor 20 (119,994,608 rows of the original
// generator): Crystal with plain columns, with predicated loads, GPU-FOR, GPU-*, and the
// layout of FastLanes with blocks of 32 and of 128 threads. Milliseconds of all kernels
// of a query, building the dimensions' hash tables included; L2 flushed before each.
var published = map[string]float64{
	"q1.1": 0.259, "q1.2": 0.255, "q1.3": 0.256, "q2.1": 0.686, "q2.2": 0.650, "q2.3": 0.528,
	"q3.1": 1.548, "q3.2": 0.757, "q3.3": 0.686, "q3.4": 0.676, "q4.1": 2.017, "q4.2": 1.005, "q4.3": 0.734,
}

// publishedScale is the scale factor of published.
const publishedScale = 20

// referenceRows are those of lineorder that dbgen makes at publishedScale (-T l by itself).
const referenceRows = 119_994_608

// reference are the answers to the 13 queries over dbgen's tables at publishedScale by the
// kernels of published, which agreed with a CPU. In q2.3 they ask for referenceBrand.
var reference = map[string]ssbAnswer{
	"q1.1": {1, 8939702894840, 2_384_676}, "q1.2": {1, 1926447117517, 84_281}, "q1.3": {1, 519638498830, 18_923},
	"q2.1": {280, 3486763739747, 959_237}, "q2.2": {56, 700821504086, 192_335}, "q2.3": {7, 87659861329, 23_985},
	"q3.1": {150, 15989638944645, 4_401_939}, "q3.2": {600, 633071295494, 173_941}, "q3.3": {24, 25155524311, 6_912}, "q3.4": {4, 286375576, 88},
	"q4.1": {35, 6769298729036, 1_911_336}, "q4.2": {100, 1625923852654, 459_564}, "q4.3": {800, 31927941254, 9_035},
}

// ssb measures the 13 queries in this process, columns resident: everything that a query
// through the wire pays but the wire. First one after the other, then several clients'.
func (r *gpuRun) ssb(ctx context.Context) error {
	d, err := r.ssbData(ctx)
	if err != nil {
		return err
	}
	queries, err := d.queries()
	if err != nil {
		return err
	}
	err = errors.Join(r.ssbAlone(ctx, d, queries), r.ssbClients(ctx, d, queries))
	if r.hasReference(d) && ctx.Err() == nil {
		err = errors.Join(err, d.compare(ctx, reference))
	}
	return err
}

// ssbAlone has one query run at a time.
func (r *gpuRun) ssbAlone(ctx context.Context, d *ssbData, queries []ssbPlanned) error {
	m, err := r.manager(d.store, r.DeviceMemory, false)
	if err != nil {
		return err
	}
	defer m.close()
	flush, err := newCacheFlush(r.ex)
	if err != nil {
		return err
	}
	defer flush.close()

	t := gpuTable{Part: "ssb", Title: fmt.Sprintf("Star Schema Benchmark%s, scale factor %v, %d rows of lineorder, columns resident; medians of %d runs in ms", r.whoseData(), r.Scale, d.rows, r.Runs),
		Columns: []string{"query", "groups", "kernels", "kernels cold", "in process", "cold", "CPU", "CPU / GPU", "MB read", "GB/s", "of copy", "best published", "published / kernels cold"}}
	var logs [4][]float64
	var wrong []string
	var failed error
	for i := range queries {
		q := &queries[i]
		fmt.Fprintf(r.Progress, "ssb: %s\n", q.name)
		x, err := r.measureQuery(ctx, m, q, flush)
		if err != nil {
			failed = fmt.Errorf("%s: %w", q.name, err)
			break
		}
		if x.wrong != "" {
			wrong = append(wrong, q.name+": "+x.wrong)
		}
		row := []any{q.name, x.rows, x.kernel, x.kernelCold, x.total, x.totalCold, x.cpu, x.cpu / x.total,
			float64(x.bytes) / 1e6, gbps(x.bytes, x.kernel), share(gbps(x.bytes, x.kernel), r.copies.Device), nil, nil}
		if best, ok := published[q.name]; ok && r.Scale == publishedScale {
			row[11], row[12] = best, best/x.kernelCold
			logs[3] = append(logs[3], best/x.kernelCold)
		}
		for k, v := range []float64{x.kernel, x.kernelCold, x.total} {
			logs[k] = append(logs[k], v)
		}
		t.Rows = append(t.Rows, row)
	}
	mean := []any{"geomean", nil, geomean(logs[0]), geomean(logs[1]), geomean(logs[2]), nil, nil, nil, nil, nil, nil, nil, nil}
	if len(logs[3]) > 0 {
		mean[12] = geomean(logs[3])
	}
	if len(t.Rows) > 0 {
		t.Rows = append(t.Rows, mean)
	}
	t.Notes = []string{
		"kernels: time on the device, what a query keeps of earlier ones included; cold: the dimensions are filtered and looked up again, as for the first query that asks so and as the published numbers have it. The L2 cache is flushed before each run. In process: from the plan to the rows.",
		"MB read: of columns, as encoded on the device, where the whole of a column counts that is not read in full. of copy: of the bandwidth of a copy within the device, measured in this run.",
		r.dataNote(d),
	}
	return errors.Join(r.showSoFar(t, failed), wrongAnswers(wrong))
}

func wrongAnswers(list []string) error {
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("wrong answers:\n  %s", strings.Join(list, "\n  "))
}

// gbps is GB/s.
func gbps(bytes int64, ms float64) float64 {
	if ms <= 0 {
		return 0
	}
	return float64(bytes) / ms / 1e6
}

// share is a share of what was measured, in percent.
func share(v, of float64) any {
	if of <= 0 {
		return nil
	}
	return fmt.Sprintf("%.0f %%", 100*v/of)
}

// ssbData brings the tables once for all parts. What failed is not tried again: a named pipe
// has nothing the second time, and nobody who would open it.
func (r *gpuRun) ssbData(ctx context.Context) (*ssbData, error) {
	if r.data == nil && r.dataErr == nil {
		r.data, r.dataErr = r.loadData(ctx)
	}
	return r.data, r.dataErr
}

func (r *gpuRun) loadData(ctx context.Context) (*ssbData, error) {
	began := time.Now()
	var source ssbSource = generatedSSB{r.Scale}
	how := "generated"
	if r.SSBFiles != "" {
		files, err := findTblFiles(r.SSBFiles)
		if err != nil {
			return nil, err
		}
		source, how = files, fmt.Sprintf("read from %d files", files.count())
	}
	d, err := loadSSB(ctx, source, ssbMemory(r.Scale))
	if err != nil {
		return nil, err
	}
	if r.SSBFiles != "" {
		if err := d.checkScale(r.Scale); err != nil {
			d.close()
			return nil, fmt.Errorf("--ssb-files %s: %w", r.SSBFiles, err)
		}
	}
	took := time.Since(began)
	fmt.Fprintf(r.Progress, "%d rows of lineorder, scale factor %v, %s of columns, %s in %v, %.0f rows/s\n",
		d.rows, r.Scale, size(d.bytes), how, took.Round(100*time.Millisecond), float64(d.rows)/took.Seconds())
	return d, nil
}

// ssbMemory is enough column memory for a scale factor: 26 bytes a row are usual.
func ssbMemory(scale float64) int64 { return int64(scale*6e6*50) + 1<<30 }

// measured is one query's.
type measured struct {
	rows               int
	cpu                float64 // ms, as are the others
	kernel, kernelCold float64
	total, totalCold   float64
	bytes              int64
	wrong              string
	device             string
}

// measureQuery runs a query on the processor, then on the device with everything kept
// between runs, then with the dimensions' filters dropped before each.
func (r *gpuRun) measureQuery(ctx context.Context, m *gpuManager, q *ssbPlanned, flush *cacheFlush) (x measured, err error) {
	var want *vector.Batch
	var times []time.Duration
	for range min(r.Runs, 5) {
		began := time.Now()
		if want, err = olap.Execute(ctx, q.q, q.in, olap.Options{}); err != nil {
			return x, fmt.Errorf("on the processor: %w", err)
		}
		times = append(times, time.Since(began))
	}
	x.cpu, x.rows = milliseconds(median(times)), want.Rows
	once := func() (time.Duration, olap.Report, error) {
		if err := flush.run(ctx); err != nil {
			return 0, olap.Report{}, err
		}
		began := time.Now()
		got, did, err := q.onDevice(ctx, m, 0)
		took := time.Since(began)
		if err != nil {
			return 0, did, err
		}
		if x.wrong == "" {
			x.wrong = differentRows(want, got)
		}
		return took, did, nil
	}
	for _, cold := range []bool{false, true} {
		var took []time.Duration
		var kernel []float64
		for i := range r.Runs + 2 {
			if cold {
				m.Forget()
				olap.ForgetLookups()
			}
			t, did, err := once()
			if err != nil {
				return x, err
			}
			if i < 2 {
				continue // compiles, brings the columns, warms up
			}
			took, kernel = append(took, t), append(kernel, did.Stats.Kernel)
			x.bytes, x.device = did.Stats.BytesRead, did.Device
		}
		slices.Sort(kernel)
		middle := (kernel[(len(kernel)-1)/2] + kernel[len(kernel)/2]) / 2
		if cold {
			x.kernelCold, x.totalCold = middle, milliseconds(median(took))
		} else {
			x.kernel, x.total = middle, milliseconds(median(took))
		}
	}
	return x, nil
}

// differentRows says where two answers differ, "" where they do not.
func differentRows(want, got *vector.Batch) string {
	if want.Rows != got.Rows {
		return fmt.Sprintf("%d rows instead of %d", got.Rows, want.Rows)
	}
	for i := range want.Columns {
		a, b := &want.Columns[i], &got.Columns[i]
		if a.Type != b.Type || !slices.Equal(a.Ints, b.Ints) || !slices.Equal(a.Decimals, b.Decimals) ||
			!slices.Equal(a.Strs, b.Strs) || !slices.Equal(a.Nulls, b.Nulls) {
			return fmt.Sprintf("column %d differs", i+1)
		}
	}
	return ""
}

// cacheFlush empties the devices' L2 caches by writing more than they hold.
type cacheFlush struct {
	ex    device.Executor
	at    []device.Pointer
	bytes []int64
}

func newCacheFlush(ex device.Executor) (*cacheFlush, error) {
	f := &cacheFlush{ex: ex}
	for dev, info := range ex.Devices() {
		n := (2*info.L2 + 255) &^ 255
		if n <= 0 {
			n = 1 << 20
		}
		p, err := ex.Alloc(dev, n)
		if err != nil {
			f.close()
			return nil, err
		}
		f.at, f.bytes = append(f.at, p), append(f.bytes, n)
	}
	return f, nil
}

func (f *cacheFlush) run(ctx context.Context) error {
	for dev, p := range f.at {
		b := &device.Batch{Commands: []device.Command{{Op: device.OpFill, Dst: p, Value: 0x5a5a5a5a, Bytes: uint64(f.bytes[dev])}}}
		if _, err := f.ex.Run(ctx, dev, b); err != nil {
			return err
		}
	}
	return nil
}

func (f *cacheFlush) close() {
	for dev, p := range f.at {
		f.ex.Free(dev, p)
	}
}
