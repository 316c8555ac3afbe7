package olap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"pgaccel/catalog"
	"pgaccel/gpu"
	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// plainDevice computes programs a row at a time, and notes what it was asked.
type plainDevice struct {
	limits gpu.Limits
	absent bool
	// fail, if not nil, says what becomes of the n-th query instead.
	fail func(n int) (*program.Result, error)

	mu                          sync.Mutex
	asked                       int
	places                      map[program.Place]int
	sinks                       map[program.SinkKind]int
	built                       int // lookups that it was to build
	hashed                      int // whose hash table it was to make
	repeats                     int // of keys that come again
	prefixes, distinct, counted int // sinks
	tops, thens, having         int
	topCounts                   int // of tops, of numbers that are counted
	ops                         map[program.Op]int
	steps                       map[program.StepKind]int
	kinds                       map[program.LookupKind]int
	left, many                  int
	relations                   int // scanned
	risky                       int

	indexed indexedOf
	// askedIndexes are the columns whose indexes it was asked with, by their IDs in the first segment.
	askedIndexes []uint64
}

func newPlainDevice() *plainDevice {
	return &plainDevice{limits: gpu.Limits{SharedBytes: 227 << 10, Memory: 1 << 30},
		places: map[program.Place]int{}, sinks: map[program.SinkKind]int{}, ops: map[program.Op]int{},
		steps: map[program.StepKind]int{}, kinds: map[program.LookupKind]int{}}
}

func (d *plainDevice) Limits() (gpu.Limits, bool) { return d.limits, !d.absent }

func (d *plainDevice) Run(ctx context.Context, q *program.Query, opt gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	d.mu.Lock()
	d.asked++
	n := d.asked
	d.noteIndexed(q)
	d.sinks[q.Sink.Kind]++
	d.relations += int(b2i(q.TableID == 0))
	if q.Sink.Kind == program.SinkGroups {
		d.places[q.Sink.Place]++
		d.prefixes += int(b2i(q.Sink.Prefix > 0))
		d.distinct += int(b2i(q.Sink.Distinct))
		d.counted += int(b2i(q.Sink.Counted))
		d.tops += int(b2i(q.Sink.Top))
		d.topCounts += int(b2i(q.Sink.Top && q.Sink.Counted))
		d.thens += int(b2i(q.Sink.TopThen != program.TopAll))
		d.having += int(b2i(len(q.Sink.Having) > 0))
	}
	for i := range q.Lookups {
		if d.kinds[q.Program.Lookups[i].Kind]++; q.Lookups[i].Build != nil {
			d.built++
			d.repeats += int(b2i(q.Lookups[i].Build.Sink.Repeats))
		}
		if q.Program.Lookups[i].Left {
			d.left++
		}
		d.hashed += int(b2i(q.Lookups[i].Keys != nil))
		d.many += int(b2i(q.Program.Lookups[i].Many))
	}
	for _, n := range q.Nodes {
		d.ops[n.Op]++
	}
	for _, s := range q.Steps {
		if d.steps[s.Kind]++; s.Risky {
			d.risky++
		}
	}
	d.mu.Unlock()
	if d.fail != nil {
		if r, err := d.fail(n); r != nil || err != nil {
			return r, gpu.Stats{Device: "plain:0"}, err
		}
	}
	if err := generates(q, d.limits.SharedBytes); err != nil {
		panic(err)
	}
	r, err := program.Reference(q)
	return r, gpu.Stats{Device: "plain:0"}, err
}

// generates reports why q would not run on a Hopper GPU, without running it.
func generates(q *program.Query, shared int) error {
	info := &device.Info{Kind: device.CUDA, SMs: 132, SharedPerBlock: max(shared, 227<<10)}
	g, err := program.Generate(q.Program, program.TuningFor(q, info))
	if err != nil {
		return err
	}
	if n := g.SharedBytes(q); n > int64(info.SharedPerBlock) {
		return fmt.Errorf("%d bytes of shared memory of %d: groups %d, place %d, accs %d", n, info.SharedPerBlock, q.Groups, q.Sink.Place, len(q.Sink.Accs))
	}
	for i := range q.Lookups {
		if b := q.Lookups[i].Build; b != nil {
			if err := generates(b, shared); err != nil {
				return err
			}
		}
	}
	return nil
}

// buildsSmall has a device make the lookups of small tables, too.
func buildsSmall(t testing.TB) {
	was, after := deviceBuild, keepAfter
	deviceBuild, keepAfter = 1, 2
	t.Cleanup(func() { deviceBuild, keepAfter = was, after })
}

// hashesAll has lookups be hash tables, but for those without outputs, and devices make them.
func hashesAll(t testing.TB) {
	array, spread, keys := lookupArray, lookupSpread, deviceHashKeys
	lookupArray, lookupSpread, deviceHashKeys = 0, 0, 1
	t.Cleanup(func() { lookupArray, lookupSpread, deviceHashKeys = array, spread, keys })
}

// deviceLimits have groups kept in every place.
var deviceLimits = []gpu.Limits{{SharedBytes: 227 << 10, Memory: 1 << 30}, {SharedBytes: 64, Memory: 1 << 30}, {SharedBytes: 2000, Memory: 1 << 16}}

// onPlainDevice compares the processor and a device with the oracle.
type onPlainDevice struct {
	device    *plainDevice
	runner    gpu.Runner // the device, or another
	queries   int
	answered  int
	fallbacks map[string]int
	used      int
	narrowed  int // segments, by indexes
}

func newOnPlainDevice() *onPlainDevice {
	d := newPlainDevice()
	return &onPlainDevice{device: d, runner: d, fallbacks: map[string]int{}}
}

func (o *onPlainDevice) check(t *testing.T, what string, w *world, q *plan.Star) {
	t.Helper()
	if o.queries%2 == 0 { // of every other query small tables are runs, too
		defer func(was int) { tableRuns = was }(tableRuns)
		tableRuns = 1
	}
	want, wantErr := w.reference(q)
	opt := w.options
	opt.Workers = 2
	got, err := Execute(t.Context(), q, w.input(), opt)
	if problem, _ := compareOutcomes(q, got, err, want, wantErr); problem != "" {
		t.Fatalf("%s on the processor: %s\n%s", what, problem, queryText(q))
	}
	var report Report
	opt.Device, opt.DeviceWait, opt.Report = o.runner, true, &report
	var why plan.Reason
	for range 1 + 2*min(len(q.Joins), 1) { // the device makes lookups, the processor does, they are kept
		report = Report{}
		onDevice, deviceErr := Execute(t.Context(), q, w.input(), opt)
		var problem string
		problem, why = compareOutcomes(q, onDevice, deviceErr, want, wantErr)
		// Whether strings are compared whose order nobody knows depends on which rows are looked at.
		if problem == "" && (err == nil) != (deviceErr == nil) && !isCollation(err) && !isCollation(deviceErr) {
			problem = fmt.Sprintf("the processor: %v, the device: %v", err, deviceErr)
		}
		if problem != "" {
			t.Fatalf("%s on the device (%+v): %s\n%s", what, report, problem, queryText(q))
		}
	}
	if o.queries++; why != "" {
		return
	}
	o.answered++
	if (report.Device != "") == (report.Fallback != "") && q.Grouped && !(q.Limit != nil && report == Report{}) {
		t.Fatalf("%s: report %+v\n%s", what, report, queryText(q))
	}
	if report.Device != "" {
		o.used++
		o.narrowed += report.Stats.Indexed
	} else {
		o.fallbacks[report.Fallback]++
	}
}

func isCollation(err error) bool {
	var f *plan.Forward
	return errors.As(err, &f) && f.Reason == plan.ReasonCollation
}

func (o *onPlainDevice) log(t *testing.T) {
	t.Helper()
	o.device.mu.Lock()
	defer o.device.mu.Unlock()
	t.Logf("operations %v, steps %v, lookups %v, %d left, %d risky", o.device.ops, o.device.steps, o.device.kinds, o.device.left, o.device.risky)
	t.Logf("%d queries, %d answered, %d by the device; not: %v; places %v, sinks %v, %d lookups built", o.queries, o.answered, o.used,
		o.fallbacks, o.device.places, o.device.sinks, o.device.built)
}

// deviceQuery is a query of which a device can often compute the groups: few conditions,
// and aggregates that it has accumulators for.
func (w *world) deviceQuery() *plan.Star {
	q := w.query()
	for !q.Grouped {
		q = w.query()
	}
	q.Filter = q.Filter[:min(len(q.Filter), w.r.IntN(3))]
	for i := range q.Aggs {
		for {
			a := randomAggregate(w.r, &gen{r: w.r, tables: []int{w.r.IntN(len(w.tables))}, tame: w.r.IntN(4) > 0})
			if aggregatesOnDevice(&a) && (a.Arg == nil || !a.Arg.Type().Kind.IsFloat() || a.Func.State == sqlfn.AggregateSum) {
				q.Aggs[i] = a
				break
			}
		}
	}
	q.Having, q.Output, q.Order, q.Limit, q.Offset = nil, nil, nil, nil, nil
	for i, k := range q.Group {
		q.Output = append(q.Output, plan.Key{Index: i, T: k.Type()})
	}
	for i, a := range q.Aggs {
		q.Output = append(q.Output, plan.Agg{Index: i, T: a.T})
	}
	return q
}

// TestDeviceAgainstOracle runs random queries, with grouping sets and without, on the
// processor and on a device.
func TestDeviceAgainstOracle(t *testing.T) {
	worlds := 80
	if testing.Short() {
		worlds = 25
	}
	buildsSmall(t)
	o := newOnPlainDevice()
	for seed := range uint64(worlds) {
		make := newWorld
		if seed%3 == 2 {
			make = func(t testing.TB, seed uint64) *world { return newWorldOf(t, seed, mortal) }
		}
		w := make(t, 6000+seed)
		o.device.limits = deviceLimits[seed%uint64(len(deviceLimits))]
		for n := range 25 {
			q := w.deviceQuery()
			if n%5 == 0 {
				q = w.query()
			}
			if q.Grouped && n%4 == 0 {
				addSets(w.r, q)
			}
			o.check(t, fmt.Sprintf("seed %d query %d", seed, n), w, q)
		}
	}
	o.log(t)
	if o.used*4 < o.answered {
		t.Errorf("the device computed %d of %d queries", o.used, o.answered)
	}
	if o.fallbacks[fallbackFault] > 0 {
		t.Errorf("%d programs were refused", o.fallbacks[fallbackFault])
	}
	for op := plan.OpAdd; op <= program.OpFixedLow; op++ {
		is := op <= plan.OpCoalesce && op != plan.OpNeg && op != plan.OpLike || op >= program.OpConst
		if is && o.device.ops[op] == 0 && !testing.Short() {
			t.Errorf("operation %d was never met", op)
		}
	}
	if d := o.device; d.prefixes == 0 || d.counted == 0 || d.distinct == d.counted {
		t.Errorf("%d programs with a prefix, %d of distinct values, of which %d count them", d.prefixes, d.distinct, d.counted)
	}
	if o.device.built < 20 {
		t.Errorf("only %d lookups were to be built", o.device.built)
	}
	for _, p := range []program.Place{program.PlaceSingle, program.PlaceShared, program.PlaceGlobal, program.PlaceHash} {
		if o.device.places[p] == 0 {
			t.Errorf("no groups were kept in place %d: %v", p, maps.All(o.device.places))
		}
	}
}

// TestLeftJoinBehindInner filters by left joins whose keys come from inner joins: these are
// to be looked up before.
func TestLeftJoinBehindInner(t *testing.T) {
	o := newOnPlainDevice()
	found := 0
	for seed := range uint64(200) {
		w := newWorld(t, 9000+seed)
		q := w.deviceQuery()
		inner := uint64(0)
		for _, j := range q.Joins {
			if j.Kind == plan.Inner {
				inner |= 1 << uint(j.Table)
				continue
			}
			var from uint64
			for _, e := range j.Outer {
				from |= plan.Tables(e)
			}
			if from&inner != 0 {
				found++
				q.Filter = []plan.Expr{call(plan.OpIsNull, vector.Bool, w.columnOf(j.Table, "tz"))}
				o.check(t, fmt.Sprintf("seed %d", seed), w, q)
			}
		}
	}
	if o.log(t); found < 10 || o.used == 0 {
		t.Errorf("%d such joins, %d on the device", found, o.used)
	}
}

// TestDeviceFails has a device fail in every way: the answers stay the same, and the
// reasons are told.
func TestDeviceFails(t *testing.T) {
	buildsSmall(t)
	r := rand.New(rand.NewPCG(3, 3))
	o := newOnPlainDevice()
	o.device.fail = func(int) (*program.Result, error) {
		switch r.IntN(8) {
		case 0:
			return nil, gpu.ErrBusy
		case 1:
			return nil, fmt.Errorf("waiting: %w", gpu.ErrCompiling)
		case 2:
			return nil, errors.New("device lost")
		case 3:
			return &program.Result{Fault: true}, nil
		case 4:
			return &program.Result{Full: true}, nil
		}
		return nil, nil
	}
	for seed := range uint64(15) {
		w := newWorld(t, 7000+seed)
		for n := range 20 {
			q := w.deviceQuery()
			if n%2 == 0 {
				addSets(w.r, q)
			}
			o.check(t, fmt.Sprintf("seed %d query %d", seed, n), w, q)
		}
	}
	o.log(t)
	for _, why := range []string{fallbackBusy, FallbackCompiling, fallbackFault, fallbackData, fallbackFull} {
		if o.fallbacks[why] == 0 {
			t.Errorf("%q was never told", why)
		}
	}
}

// TestRowsOnDevice has a device find the rows of random queries.
func TestRowsOnDevice(t *testing.T) {
	buildsSmall(t)
	defer func(n, m int) { pruneRows, bitmapMin = n, m }(pruneRows, bitmapMin)
	worlds := 60
	if testing.Short() {
		worlds = 20
	}
	o := newOnPlainDevice()
	for seed := range uint64(worlds) {
		pruneRows, bitmapMin = 20, []int{1, 1 << 16}[seed%2]
		make := newWorld
		if seed%3 == 2 {
			make = func(t testing.TB, seed uint64) *world { return newWorldOf(t, seed, mortal) }
		}
		w := make(t, 9000+seed)
		for n := range 20 {
			q := w.rowQuery()
			for n%2 == 0 {
				if q = w.query(); !q.Grouped {
					break
				}
			}
			q.Filter = q.Filter[:min(len(q.Filter), 1+w.r.IntN(2))]
			o.check(t, fmt.Sprintf("seed %d query %d", seed, n), w, q)
		}
	}
	o.log(t)
	if o.used*8 < o.answered || o.device.sinks[program.SinkBitmap] < o.used {
		t.Errorf("the device found the rows of %d of %d queries", o.used, o.answered)
	}
}

// TestUnitsOnDevice groups by every unit of time, and filters by it.
func TestUnitsOnDevice(t *testing.T) {
	used := map[string]int{}
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 9))
		store := newStore(t, 1024)
		var rows [][]vector.Datum
		for i := range 1500 + 1000*int(seed) {
			var row []vector.Datum
			for c, col := range shape {
				d := randomDatum(r, col.Type, i, 30, false)
				if c == colID {
					d.I = int64(i)
				}
				if !col.NotNull && r.IntN(9) == 0 {
					d = vector.Null(col.Type)
				}
				row = append(row, d)
			}
			rows = append(rows, row)
		}
		meta := &catalog.Table{OID: 1, Schema: "public", Name: "t0", Columns: shape}
		w := &world{r: r, tables: []*randomTable{{meta, rows, load(t, store, meta, rows)}}}
		o := newOnPlainDevice()
		group := func(name string, key plan.Expr) {
			q := &plan.Star{Tables: []plan.Source{{Meta: meta}}, Grouped: true, Group: []plan.Expr{key},
				Aggs:   []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}},
				Output: []plan.Expr{plan.Key{Index: 0, T: key.Type()}, plan.Agg{Index: 0, T: vector.TypeOf(vector.Int8)}}}
			was := o.used
			o.check(t, name, w, q)
			used[name] += o.used - was
		}
		for _, column := range []string{"ts", "tz"} {
			e := w.columnOf(0, column)
			for _, unit := range []string{"year", "quarter", "month", "week", "day", "hour", "minute", "second"} {
				group("trunc "+unit, timeFunction("date_trunc", unit, e))
				group("extract "+unit, timeFunction("extract", unit, e))
			}
			group("date", call(plan.OpCast, vector.Date, e))
		}
		e := w.columnOf(0, "d")
		for _, unit := range []string{"year", "month", "dow", "doy", "epoch"} {
			group("date "+unit, timeFunction("extract", unit, e))
		}
	}
	t.Logf("%v", used)
	for _, name := range []string{"trunc year", "trunc quarter", "trunc month", "trunc week", "trunc day", "extract year", "extract month", "extract day", "date", "date year", "date dow"} {
		if used[name] == 0 {
			t.Errorf("%s is not for a device: %v", name, used)
		}
	}
}

// TestShares checks that shares are told closely, in few values.
func TestShares(t *testing.T) {
	values := map[uint16]bool{}
	for i := range 100001 {
		share := float64(i) / 100000
		permille := permille(share)
		if p := float64(permille) / 1000; permille == 0 || share > 0.004 && (p > share*1.6 || p < share/1.6) {
			t.Fatalf("%v is %d thousandths", share, permille)
		}
		values[permille] = true
	}
	if len(values) > 16 {
		t.Errorf("%d values", len(values))
	}
}

// TestDeviceConcurrently has many executions of the same queries share what is kept.
func TestDeviceConcurrently(t *testing.T) {
	buildsSmall(t)
	d := newPlainDevice()
	ran := 0
	for seed := uint64(0); ran < 12 && seed < 400; seed++ {
		w := newWorld(t, 15000+seed)
		q := w.deviceQuery()
		if q.Filter = nil; len(q.Joins) == 0 {
			continue
		}
		want, err := Execute(t.Context(), q, w.input(), Options{Workers: 1})
		if err != nil {
			continue
		}
		var wg sync.WaitGroup
		for k := range 8 {
			wg.Go(func() {
				var did Report
				got, err := Execute(t.Context(), q, w.input(), Options{Workers: 1 + k%2, Device: d, DeviceWait: true, Report: &did})
				if problem, why := compareOutcomes(q, got, err, want, nil); problem != "" || why != "" {
					t.Errorf("seed %d: %s %s, %+v\n%s", seed, problem, why, did, queryText(q))
				}
			})
		}
		wg.Wait()
		ran++
	}
	if d.asked < 20 || ran < 12 {
		t.Errorf("%d worlds, the device was asked %d times", ran, d.asked)
	}
}
