package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// Options says how a Manager uses devices.
type Options struct {
	// Memory is the budget of each device in bytes. 0: 85 % of what is free when it comes.
	Memory int64
	// Devices are those to use, by their number. nil: all.
	Devices []int
	// File is column memory, Offset says where in it a piece lies. What has no place in it,
	// and all where File is nil, is sent to the executor.
	File   *os.File
	Offset func(mem []byte) (off int64, ok bool)
	// MaxWait is how long a query without RunOptions.Wait waits for a stream before the
	// processor is to answer, and besides, for a scan of its table to end that others share, at least
	// as long as the last one took. 0: 20 ms.
	MaxWait time.Duration
	// Streams is how many queries a device computes at once, at most those that are not for copies.
	// 0: 4.
	Streams int
	// Share has queries that are equal to one that waits or runs get its result, and others over
	// a table that does not fit a device's memory scan it together.
	Share bool
	// Kernels is the path of a file that lists the kernels that were used last: those of the process before are compiled
	// for a device when it comes. "": none is kept.
	Kernels string
	Log     *slog.Logger // nil: slog.Default()

	// Of tests: bytes of a buffer that columns stream through, 0: by the budget; bytes that one
	// batch copies, 0: batchBytes; and an Executor.Alloc for every piece of memory, so that the
	// emulator sees its bounds.
	chunk, batch int64
	pieces       bool
}

// Manager is a Runner over the devices of an Executor that comes and goes: Attach, Detach. It
// is safe for concurrent use.
type Manager struct {
	opt     Options
	shapes  *shapes
	formats *formats
	flights flights
	grown   *grown
	set     *set // of now; nil while there is none
	reason  string
	closed  bool

	mu         sync.Mutex // of set, reason, closed, counters, generation
	now        atomic.Pointer[set]
	counters   []*counters // by position in set.devs
	generation int
	leaving    sync.WaitGroup

	listed  []*device.Source // of Options.Kernels, as the process before left it
	written map[string]bool  // the names of those that are there now; of keepKernels
	// closing ends keepKernels, listKept says that it has.
	closing, listKept chan struct{}
}

// set is the devices of one Executor.
type set struct {
	ex    device.Executor
	devs  []*dev
	gone  context.CancelFunc // ends what goes on in the background
	alive context.Context
}

// dev is one device of one Executor.
type dev struct {
	m        *Manager
	ex       device.Executor
	alive    context.Context
	index    int // the executor's
	position int // in set.devs
	name     string
	info     device.Info
	budget   int64
	file     device.File
	shared   bool // file is Options.File
	modules  modules
	queue    *queue
	convoys  convoys
	// sets are the buffers that columns stream through, setQueue is for turns at them.
	sets     []*bufferSet
	setQueue *queue
	// gate is held for reading by queries that run, for writing by one that found no room
	// beside them.
	gate sync.RWMutex

	mu    sync.Mutex // of what is below
	cache *cache
	short time.Time // when the device had less memory than the budget
	// How long no more is asked for then, and when that ended last.
	shortFor time.Duration
	lifted   time.Time
	lines    map[uint64][]*item
	stock    stock
	hints    *simplelru.LRU[itemKey, *hint]
	layouts  []*layout
	layoutID uint64 // the last one's
	gone     error  // no query begins any more
}

// After a device had less memory than the budget, the manager makes do with what it has, for
// shortLeast first and twice as long each time.
const shortLeast, shortMost = time.Second, time.Minute

// New returns a Manager without devices.
func New(opt Options) *Manager {
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	opt.MaxWait = cmp.Or(opt.MaxWait, 20*time.Millisecond)
	if opt.Streams <= 0 {
		opt.Streams = 4
	}
	opt.Streams = min(opt.Streams, device.Streams-device.CopyStreams)
	if opt.File == nil || opt.Offset == nil {
		opt.File = nil
		opt.Offset = func([]byte) (int64, bool) { return 0, false }
	}
	m := &Manager{opt: opt, shapes: newShapes(), formats: newFormats(), grown: newGrown(), reason: "not started", closing: make(chan struct{}), listKept: make(chan struct{})}
	if opt.Kernels == "" {
		close(m.listKept)
	} else {
		m.listed = m.readKernels()
		go m.keepKernels()
	}
	return m
}

// Attach has the manager use an executor's devices, with nothing in their memory, until
// Detach. It does not close the executor. Where the executor has no device that is to be
// used, it is as if Detach were called, and the error says so.
func (m *Manager) Attach(ex device.Executor) error {
	alive, gone := context.WithCancel(context.Background())
	s := &set{ex: ex, gone: gone, alive: alive}
	var file device.File
	shared := false
	if m.opt.File != nil {
		f, err := ex.Share(m.opt.File)
		if err != nil {
			m.opt.Log.Warn("column memory cannot be shared with the device", "error", err)
		}
		file, shared = f, err == nil
	}
	for i, info := range ex.Devices() {
		if m.opt.Devices != nil && !slices.Contains(m.opt.Devices, i) {
			continue
		}
		d := &dev{m: m, ex: ex, alive: alive, index: i, position: len(s.devs), name: fmt.Sprintf("%s:%d", info.Kind, i), info: info,
			file: file, shared: shared, queue: newQueue(m.opt.Streams), lines: map[uint64][]*item{}, hints: newHints()}
		d.modules.byName, d.modules.unwanted = map[string]*module{}, sync.NewCond(&d.modules.mu)
		d.budget = m.opt.Memory
		if d.budget <= 0 {
			d.budget = info.Free / 100 * 85
		}
		d.sets = newSets(d)
		d.setQueue = newQueue(len(d.sets))
		d.cache = newCache(newArena(d.budget,
			func(bytes int64) (device.Pointer, error) { return ex.Alloc(i, bytes) },
			func(p device.Pointer) {
				if err := ex.Free(i, p); err != nil && device.KindOf(err) != device.FaultLost {
					m.opt.Log.Warn("device memory was not given back", "device", i, "error", err)
				}
			}))
		if m.opt.pieces {
			d.cache.arena.slab = granule
		}
		s.devs = append(s.devs, d)
	}
	m.Detach("another executor came")
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(s.devs) == 0 {
		gone()
		if m.closed {
			return errors.New("gpu: attach to a manager that is closed")
		}
		m.reason = fmt.Sprintf("none of the %d devices is to be used", len(ex.Devices()))
		return &device.Fault{Kind: device.FaultUnavailable, Text: m.reason}
	}
	for len(m.counters) < len(s.devs) {
		m.counters = append(m.counters, &counters{faults: map[device.FaultKind]uint64{}})
	}
	m.set, m.reason = s, ""
	m.generation++
	m.now.Store(s)
	known := m.kernels()
	for _, d := range s.devs {
		go d.warm(known)
	}
	return nil
}

// warm compiles what queries will need, one kernel after the other.
func (d *dev) warm(known []*device.Source) {
	_, err := d.transcode(d.alive, anyWait)
	for _, k := range known {
		if err != nil || d.alive.Err() != nil {
			return
		}
		if err = d.modules.ahead(d, k); device.KindOf(err) == device.FaultCompile {
			err = nil
		}
	}
}

// leave gives all memory back once no query runs: the executor may go on.
func (d *dev) leave() {
	d.gate.Lock()
	defer d.gate.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.cache.evict() {
	}
	d.cache.arena.trim()
}

// Detach forgets the devices and all that was in their memory: queries in flight get their
// executor's fault, later ones device.FaultUnavailable with the reason.
func (m *Manager) Detach(reason string) {
	m.mu.Lock()
	s := m.set
	m.reason = reason
	m.mu.Unlock()
	if s != nil {
		m.detach(s, reason)
	}
}

// detach does so if s is what is attached.
func (m *Manager) detach(s *set, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set != s {
		return
	}
	m.set, m.reason = nil, reason
	m.now.Store(nil)
	s.gone()
	for i, d := range s.devs {
		gone := &device.Fault{Kind: device.FaultLost, Text: reason}
		d.queue.close(gone)
		d.setQueue.close(gone)
		d.mu.Lock()
		d.gone = gone
		d.mu.Unlock()
		m.leaving.Go(d.leave)
		var last DeviceStatus
		d.addTo(&last)
		c := m.counters[i]
		c.compiles += last.Compiles
		c.compileFaults += last.CompileFaults
		c.compileSeconds += last.CompileSeconds
		c.cacheHits += last.CacheHits
		c.evictions += last.Evictions
	}
}

// Close detaches for good, when the queries in flight have ended, and gives the memory of the
// devices back.
func (m *Manager) Close() error {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	m.mu.Unlock()
	if first {
		close(m.closing)
	}
	<-m.listKept // which knows of the devices what does not compile
	m.Detach("shut down")
	m.leaving.Wait()
	return nil
}

// Generation is how often devices have come, with nothing in their memory. ok is false while there is none.
func (m *Manager) Generation() (n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation, m.set != nil
}

func (m *Manager) current() *set { return m.now.Load() }

// Limits implements Runner.
func (m *Manager) Limits() (Limits, bool) {
	s := m.current()
	if s == nil {
		return Limits{}, false
	}
	l := Limits{SharedBytes: s.devs[0].info.SharedPerBlock, Memory: s.devs[0].budget}
	for _, d := range s.devs[1:] {
		l.SharedBytes = min(l.SharedBytes, d.info.SharedPerBlock)
		l.Memory = min(l.Memory, d.budget)
	}
	return l, true
}

// Run implements Runner. Query's memory must stay as it is until Run returns.
func (m *Manager) Run(ctx context.Context, q *program.Query, opt RunOptions) (*program.Result, Stats, error) {
	s := m.current()
	if s == nil {
		m.mu.Lock()
		reason := m.reason
		m.mu.Unlock()
		return nil, Stats{}, &device.Fault{Kind: device.FaultUnavailable, Text: reason}
	}
	if q.Sink.Kind == program.SinkBuild {
		return nil, Stats{}, errors.New("gpu: a lookup is built for a query, not by itself")
	}
	if opt.Prepare {
		return nil, Stats{}, m.prepare(s, q, opt.Ahead)
	}
	if opt.Prewarm {
		return m.compute(ctx, s, q, opt)
	}
	if !m.opt.Share || !sharable(q) {
		return m.fit(ctx, s, q, opt)
	}
	r, stats, err, computed := m.flights.share(ctx, q, opt.Wait, func() (*program.Result, Stats, error) { return m.fit(ctx, s, q, opt) })
	if !computed {
		m.mu.Lock()
		m.counters[0].shared++
		m.mu.Unlock()
	}
	return r, stats, err
}

// prepare has the kernels of q begin to be compiled, or with ahead, be compiled in a while.
func (m *Manager) prepare(s *set, q *program.Query, ahead bool) (err error) {
	for _, d := range s.devs {
		j := &job{d: d, ctx: s.alive}
		if !ahead {
			err = cmp.Or(err, j.compile(q, false, noWait))
			continue
		}
		err = cmp.Or(err, j.collect(q, false))
		for i := range j.kernels {
			d.modules.later(d, &j.kernels[i].shape.g.Source)
		}
	}
	return err
}

// compute has the devices compute q, or bring what it reads, each its part.
func (m *Manager) compute(ctx context.Context, s *set, q *program.Query, opt RunOptions) (*program.Result, Stats, error) {
	opt.began = time.Now()
	formats := m.formats.of(q)
	list := m.formats.surviving(q, formats)
	if q.MostRows == 0 && len(formats) > 0 {
		known := *q
		known.MostRows = formats[0].rows
		q = &known
	}
	if len(s.devs) == 1 {
		return s.devs[0].run(ctx, s, q, list, opt)
	}
	whole := q
	if q.Sink.Counted || q.Top > 0 || len(q.Sink.Having) > 0 { // groups of several devices may be the same
		groups := *q.Program
		groups.Sink.Counted, groups.Sink.Having = false, nil
		groups.Sink.Top = q.Sink.Top && !q.Sink.Counted
		if !groups.Sink.Top {
			groups.Sink.TopThen = program.TopAll
		}
		parts := *q
		parts.Program, parts.Top, parts.Having = &groups, 0, nil
		q = &parts
	}
	lists := spread(q, list, len(s.devs))
	type answer struct {
		r     *program.Result
		stats Stats
		err   error
	}
	answers := make([]answer, len(s.devs))
	var wg sync.WaitGroup
	for i, d := range s.devs {
		if len(lists[i]) == 0 && (i > 0 || len(list) > 0) && !opt.Prewarm { // strings are in no segment
			continue
		}
		wg.Go(func() {
			a := &answers[i]
			a.r, a.stats, a.err = d.run(ctx, s, q, lists[i], opt)
		})
	}
	wg.Wait()
	var stats Stats
	var parts []*program.Result
	var failed error
	for i := range answers {
		a := &answers[i]
		// Of several errors a fault says most.
		if a.err != nil && (failed == nil || errors.Is(failed, ErrCompiling) || errors.Is(failed, ErrBusy)) {
			failed = a.err
		}
		if a.r != nil {
			parts = append(parts, a.r)
		}
		stats.BytesCopied += a.stats.BytesCopied
		stats.BytesRead += a.stats.BytesRead
		stats.Indexed += a.stats.Indexed
		stats.Kernel, stats.Copy = max(stats.Kernel, a.stats.Kernel), max(stats.Copy, a.stats.Copy)
		stats.Compile = max(stats.Compile, a.stats.Compile)
		stats.Times.beside(a.stats.Times)
		if a.stats.Device != "" {
			if stats.Device != "" {
				stats.Device += ","
			}
			stats.Device += a.stats.Device
		}
	}
	if failed != nil || opt.Prewarm {
		return nil, stats, failed
	}
	return program.Wanted(whole, program.Count(whole, merge(q.Program, parts))), stats, nil
}

// spread says which device has which segments.
func spread(q *program.Query, list []uint32, devices int) [][]uint32 {
	lists := make([][]uint32, devices)
	for _, i := range list {
		place := uint64(i)
		if id := q.Segments[i].ID; id != 0 {
			place = id
		}
		d := place % uint64(devices)
		lists[d] = append(lists[d], i)
	}
	return lists
}

// run computes the part of a query that list says, and counts what comes of it.
func (d *dev) run(ctx context.Context, s *set, q *program.Query, list []uint32, opt RunOptions) (*program.Result, Stats, error) {
	j := &job{d: d, ctx: ctx, stats: Stats{Device: d.name}, since: opt.began}
	r, err := j.run(q, list, opt)
	if err != nil && s.alive.Err() != nil && ctx.Err() == nil && device.KindOf(err) != device.FaultLost {
		err = &device.Fault{Kind: device.FaultLost, Text: err.Error()} // detached meanwhile
	}
	m := d.m
	m.mu.Lock()
	c := m.counters[d.position]
	c.bytesCopied += uint64(j.stats.BytesCopied)
	c.kernelMillis += j.stats.Kernel
	c.imageHits += j.imageHits
	c.imageMisses += j.imageMisses
	if j.streamed {
		c.streamed++
	}
	if j.rode {
		c.rides++
	}
	var refusal *refused
	var fault *device.Fault
	switch {
	case opt.Prewarm && err == nil:
	case err == nil:
		c.queries++
	case errors.Is(err, ErrBusy):
		c.busy++
	case errors.Is(err, ErrCompiling):
		c.compiling++
	case errors.As(err, &refusal):
		c.refused++
	case errors.As(err, &fault):
		c.faults[fault.Kind]++
	}
	m.mu.Unlock()
	if fault != nil && fault.Kind == device.FaultLost {
		m.detach(s, fault.Text)
	}
	if err != nil {
		return nil, j.stats, err
	}
	return r, j.stats, nil
}

// transcode is the module that makes device lanes.
func (d *dev) transcode(ctx context.Context, maxWait time.Duration) (device.Module, error) {
	return d.modules.get(ctx, d, transcodeSource(), maxWait)
}

var transcodeSource = sync.OnceValue(func() *device.Source {
	s := program.TranscodeSource()
	return &s
})
