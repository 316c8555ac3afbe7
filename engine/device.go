package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/internal/trace"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/vector"
)

// The values of pgaccel.device. Any other text counts as auto.
const (
	deviceAuto = "auto" // where the shape was faster
	deviceCPU  = "cpu"  // never a device
	// "cuda" and "emu", a device's kind: whatever can run there does, and waits for its
	// kernel to be compiled. Where that is not the kind of device that there is, the
	// processor answers.
)

// indexUses are the values of pgaccel.index. Any other text counts as auto.
var indexUses = map[string]olap.IndexUse{"force": olap.IndexForce, "off": olap.IndexOff}

// deviceChoice decides, for the executions of one shape, where they run. The zero value
// has seen none.
type deviceChoice struct {
	mu sync.Mutex
	sideTimings
	read     int64 // bytes of columns that the device read last; 0 before
	warming  bool  // see warmUp
	prepared bool  // see Prepared
}

// choose returns whether the device is to be tried. It is where nothing is known of
// it: where its kernel is being compiled the processor answers meanwhile, and is timed, and
// the device is timed behind that (warmUp), while the processor answers what comes. Then the faster side is used, and the other one now and
// then, because data and load change.
func (c *deviceChoice) choose(p *processorRate) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cpu, dev := c.timings[onCPU].smoothed, c.timings[onDevice].smoothed
	if c.timings[onDevice].n < warmUps {
		return !c.warming
	}
	if n := c.timings[onCPU].n; n < 2 {
		if n == 0 {
			cpu = p.time(c.read)
		}
		if cpu < estimateDoubt*dev {
			return false
		}
	}
	best, other := onDevice, cpu
	if cpu < dev {
		best, other = onCPU, dev
	}
	c.lead(best)
	if c.due(other) {
		return best != onDevice
	}
	return best == onDevice
}

// add counts an execution that was answered. read is the bytes that a device has read for it.
func (c *deviceChoice) add(s side, d time.Duration, read int64, p *processorRate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timings[s].add(d)
	if read > 0 {
		c.read = read
	}
	if cpu := &c.timings[onCPU]; cpu.n > 0 && c.read > 0 {
		p.learn(cpu.smoothed, c.read)
	}
}

// processorRate is what the processor takes for as much as a device reads a byte for, by the shapes that both have
// computed: an estimate for those that the processor has not, which need not be as much slower there as it says. The zero
// value has none.
type processorRate struct {
	mu      sync.Mutex
	perByte float64 // nanoseconds, a moving average; 0: not known
}

// estimateDoubt is how many times a device's time the processor's is to be, for it not to be timed at once, where that is an
// estimate, or what the first execution took, beside which kernels were compiled.
const estimateDoubt = 4

func (p *processorRate) learn(took time.Duration, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := float64(took) / float64(bytes)
	if p.perByte == 0 {
		p.perByte = one
	}
	p.perByte += (one - p.perByte) / 16
}

// time is the estimate; 0: there is none.
func (p *processorRate) time(bytes int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.perByte * float64(bytes))
}

// offer says whether an execution with this setting of pgaccel.device may use the
// device, and whether it waits for it.
func (e *Engine) offer(setting string, c *deviceChoice) (r gpu.Runner, wait bool) {
	switch {
	case e.opt.Device == nil, setting == deviceCPU:
		return nil, false
	case setting == e.opt.DeviceKind:
		return e.opt.Device, true
	case setting == "cuda", setting == "emu":
		return nil, false
	}
	if _, ok := e.opt.Device.Limits(); ok && c.choose(&e.devices.processor) {
		return e.opt.Device, false
	}
	return nil, false
}

// computed is what an execution came to.
type computed struct {
	batch   *vector.Batch
	err     error
	report  olap.Report
	offered bool          // the device
	took    time.Duration // without the gate
}

// run computes a query and accounts for it; it returns what computed it.
func (e *Engine) run(ctx context.Context, d *decision, g *gateRow, caller uint64, bound *plan.Star, inputs *resultInputs, in olap.Input) (*vector.Batch, string, error) {
	r := e.compute(ctx, d, g.device, g.index, caller, bound, inputs, in)
	if r.batch != nil && !g.takes(r.batch) {
		r.batch.Release()
		r.batch, r.err = nil, errTies
	}
	device := e.account(d, &r)
	return r.batch, device, r.err
}

// tracedDevice records what a device does for an execution.
type tracedDevice struct {
	gpu.Runner
	below *trace.Span
}

// Run implements gpu.Runner.
func (t tracedDevice) Run(ctx context.Context, q *program.Query, opt gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	began := time.Now()
	result, stats, err := t.Runner.Run(ctx, q, opt)
	if ended := time.Now(); !opt.Prepare {
		span := t.below.Begin("device", began)
		onDevice := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
		for _, part := range []struct {
			name string
			took time.Duration
		}{
			{"compile", stats.Compile}, {"wait", stats.Times.Wait}, {"prepare", stats.Times.Prepare}, {"round_trip", stats.Times.RoundTrip},
			{"worker", stats.Times.Executor}, {"enqueue", stats.Times.Enqueue}, {"busy", onDevice(stats.Copy + stats.Kernel)}, {"kernels", onDevice(stats.Kernel)},
			{"result", stats.Times.Result},
		} {
			span.Milliseconds("pgaccel.device."+part.name+"_ms", part.took)
		}
		span.End(ended)
	}
	return result, stats, err
}

// compute computes a query, on the device where it may and does. caller stands for the
// client, among whom a device is shared fairly. Nothing but the device's work is counted:
// the result may not be used. It is kept for those with the same inputs, unless these are nil.
func (e *Engine) compute(ctx context.Context, d *decision, device, index string, caller uint64, bound *plan.Star, inputs *resultInputs, in olap.Input) (r computed) {
	memory := &reservation{of: &e.memory}
	defer func() {
		if r.batch == nil { // an error, or a panic
			memory.release()
		}
	}()
	opt := e.execution()
	if opt.Rank != nil {
		opt.Rank = d.rank
	}
	opt.Reserve, opt.Temp = memory.grow, e.opt.Temp
	opt.Device, opt.DeviceWait = e.offer(device, &d.shape.choice)
	opt.DeviceCaller = caller
	opt.Indexes = indexUses[index]
	opt.Report = &r.report
	opt.Ties = true
	if d.explain != nil {
		opt.Scanned = d.explain.scanned
	}
	opt.Kept = e.results.segments(inputs)
	r.offered = opt.Device != nil
	if !r.offered {
		e.speculations.processor.Add(1)
		defer e.speculations.processor.Add(-1)
	}
	start := time.Now()
	span := trace.Of(ctx).Begin("execute", start)
	if span != nil && opt.Device != nil {
		opt.Device = tracedDevice{opt.Device, span}
	}
	batch, err := olap.Execute(ctx, bound, in, opt)
	if err == nil && !memory.keep(batch.Bytes) {
		batch.Release()
		err = forward(plan.ReasonQueryMemory, "")
	}
	if r.err = err; err == nil {
		batch.Reserved, r.batch = memory.release, batch
	}
	r.took = time.Since(start)
	span.End(start.Add(r.took), "pgaccel.device", cmp.Or(r.report.Device, deviceCPU))
	if r.report.Fallback == olap.FallbackCompiling && !opt.DeviceWait && r.err == nil {
		e.warmUp(d, bound, opt.Indexes)
	}
	e.devices.add(r.report.Stats)
	e.results.segmentsKept(inputs, opt.Kept)
	if inputs != nil && !inputs.explained && r.err == nil {
		e.results.put(inputs, versionsOf(in), r.batch, cmp.Or(r.report.Device, deviceCPU))
	}
	return r
}

// account counts an execution that counts, and returns what computed it, "" where nothing
// did.
func (e *Engine) account(d *decision, r *computed) string {
	if r.offered && r.report.Fallback != "" {
		bump(&e.devices.fallbacks, r.report.Fallback)
		if r.report.Fallback == "device fault" {
			e.log.Warn("a device failed, the processor computes", "error", r.report.Err, "query", d.shape.text)
		}
	}
	if r.err != nil {
		return ""
	}
	device, ran := deviceCPU, onCPU
	if r.report.Device != "" {
		device, ran = r.report.Device, onDevice
	}
	if d.explain == nil {
		bump(&e.devices.queries, device)
	} else {
		d.explain.onDevice = r.report.Stats
	}
	// What was lost on the way to the processor says nothing about it, but of the device.
	switch {
	case e.opt.Device == nil, ran == onDevice && r.report.Stats.Compile > 0: // the next one does not wait for kernels
	case !r.offered || ran == onDevice || r.report.Stats.Kernel == 0:
		d.shape.choice.add(ran, r.took, r.report.Stats.BytesRead, &e.devices.processor)
	default: // what a device computed in vain it took, too
		d.shape.choice.add(onDevice, r.took, 0, &e.devices.processor)
	}
	return device
}

// deviceStats counts executions by device, and what a device was offered and did not
// answer.
type deviceStats struct {
	queries   sync.Map     // device -> *atomic.Int64
	fallbacks sync.Map     // reason -> *atomic.Int64
	copied    atomic.Int64 // bytes, host to device
	read      atomic.Int64 // bytes of columns
	kernel    atomic.Int64 // nanoseconds
	indexed   atomic.Int64 // executions that asked bitmap indexes
	warming   atomic.Int64 // shapes that are being warmed up
	preparing sync.Mutex   // of what is done for prepared statements: one at a time
	prepares  atomic.Int64 // that wait for it, or have it
	processor processorRate
}

func (d *deviceStats) add(s gpu.Stats) {
	d.copied.Add(s.BytesCopied)
	d.read.Add(s.BytesRead)
	d.kernel.Add(int64(s.Kernel * 1e6))
	if s.Indexed > 0 {
		d.indexed.Add(1)
	}
}

func bump(m *sync.Map, key string) {
	c, ok := m.Load(key)
	if !ok {
		c, _ = m.LoadOrStore(key, new(atomic.Int64))
	}
	c.(*atomic.Int64).Add(1)
}

func counts(m *sync.Map) map[string]int64 {
	out := map[string]int64{}
	m.Range(func(k, v any) bool {
		out[k.(string)] = v.(*atomic.Int64).Load()
		return true
	})
	return out
}

// DeviceQueries returns the accelerated executions by what ran them: "cpu", "cuda:0".
func (e *Engine) DeviceQueries() map[string]int64 { return counts(&e.devices.queries) }

// DeviceFallbacks returns, by reason, the executions that a device was offered and that
// the processor answered.
func (e *Engine) DeviceFallbacks() map[string]int64 { return counts(&e.devices.fallbacks) }

// DeviceWork is what the devices have done for queries.
type DeviceWork struct {
	Kernel time.Duration // of kernels
	Copied int64         // bytes, host to device
	Read   int64         // bytes of columns, as encoded on the device
	// Indexed is the executions of which bitmap indexes said, on a device, which rows to look at.
	Indexed int64
}

// DeviceWork returns the sums over all executions so far.
func (e *Engine) DeviceWork() DeviceWork {
	return DeviceWork{time.Duration(e.devices.kernel.Load()), e.devices.copied.Load(), e.devices.read.Load(), e.devices.indexed.Load()}
}

// ErrNotCopied is of Prewarm: there is no such table, or it is being copied.
var ErrNotCopied = errors.New("the table is not copied")

// Prewarm brings a column of a table to the devices, or the strings of its dictionary. What is no longer there, or not held, is
// no error. gpu.ErrNoRoom: what is there would have to give way.
func (e *Engine) Prewarm(ctx context.Context, oid uint32, column string, dictionary bool) (bytes int64, err error) {
	t, err := e.store.View(oid, colstore.Everything)
	if err != nil {
		return 0, ErrNotCopied
	}
	defer t.Release()
	col := slices.IndexFunc(t.Meta.Columns, func(c catalog.Column) bool { return c.Name == column && c.Unsupported == "" })
	if e.opt.Device == nil || col < 0 {
		return 0, nil
	}
	stats, err := olap.Prewarm(ctx, e.opt.Device, t, col, dictionary)
	return stats.BytesCopied, err
}

// residentOf returns the bytes of device memory that segments' columns have, by
// colstore.Column.ID.
func (e *Engine) residentOf(ids []uint64) int64 {
	if e.opt.Resident == nil || len(ids) == 0 {
		return 0
	}
	return e.opt.Resident(ids)
}

// resident returns the bytes of device memory that tables' columns have, by table.
func (e *Engine) resident() map[string]int64 {
	if e.opt.Resident == nil {
		return nil
	}
	tables := map[string]int64{}
	for _, c := range e.store.ColumnSizes() {
		tables[c.Table] += e.residentOf(c.IDs)
	}
	return tables
}
