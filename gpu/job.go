package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
	"pgaccel/internal/bulk"
)

// job is a query, or one device's part of it, from its admission to its result.
type job struct {
	d     *dev
	ctx   context.Context
	stats Stats
	since time.Time // what is spent has not been added to stats.Times
	// What the counters count.
	imageHits, imageMisses uint64
	streamed, rode         bool

	kernels   []kernel // of the query, then of the lookups that it builds
	lanes     device.Module
	explicit  bool // no images: what fits is kept segment by segment, the rest streams through
	exclusive bool
	unindexed bool // there was no room for indexes

	// What the job holds, and gives back at its end.
	pins  []*item
	temps []*span
	// own is what the job brings and others may wait for; built the lookups that it builds,
	// for which nobody waits.
	own, built *load
	// later is columns that come with what streams through, and are kept. Of queries that stream
	// nobody waits for them, so that they may come last.
	later *load
	waits []*load

	parts      []*part
	slots      []device.Pointer // buffers that columns come through, of bufferSize
	bufferSize int64
	set        *bufferSet     // that the job has, all the while; nil: none
	fromSet    bool           // slots are its
	orders     device.Pointer // to transcode, of all chunks
	lists      device.Pointer // of segments, of all chunks of a batch
	// layout is what the job found, or is to leave behind: of pins and temps those from layoutPins and
	// layoutTemps on, where columns began.
	layout                  *layout
	layoutPins, layoutTemps int
	direct                  []direct
	chunks                  []*chunk // that bring what is kept
	blob                    []byte   // data of this query only; package bulk's
	fixups                  []fixup
	stringScans             []*stringsScan
	hashes                  []*hashTable
}

// kernel is what computes a query, or a lookup's build.
type kernel struct {
	q       *program.Query
	shape   *shape
	module  device.Module
	formats []format
}

// part is a query or a lookup's build, ready to be run.
type part struct {
	*kernel
	j        *job
	b        program.Buffers
	list     []uint32 // segments
	resident []uint32 // those of them that are not streamed
	streams  []*chunk
	narrows  *program.Narrowing // of live rows by bitmap indexes; nil: none
	indexes  []*image           // of these
	item     *item              // of a build that is kept
	data     []byte             // the result's first part
}

// direct is a copy to its place: of host memory, or within the device.
type direct struct {
	dst   device.Pointer
	data  []byte
	from  device.Pointer
	bytes int64
}

// fixup is a pointer to data in the blob.
type fixup struct {
	to *device.Pointer
	at int
}

// errNoRoom says that device memory is short of what the way of running needs.
var errNoRoom = errors.New("no room in device memory")

// errKernels says that lookups need to be built that seemed to be there.
var errKernels = errors.New("lookups must be built")

// run computes the segments in list.
func (j *job) run(q *program.Query, list []uint32, opt RunOptions) (*program.Result, error) {
	if opt.Prewarm {
		return nil, j.prewarm(q, list, opt)
	}
	if rows := rowsOf(q, list); rows > math.MaxUint32 {
		return nil, &refused{device.Fault{Kind: device.FaultLaunch, Text: fmt.Sprintf("%d rows are more than one device counts", rows)}}
	}
	if err := j.compile(q, false, opt.compiling()); err != nil {
		return nil, err
	}
	maxWait := j.d.m.opt.MaxWait
	if opt.Wait {
		maxWait = -1
	}
	j.explicit = !j.fits()
	if j.rides(q, list) {
		if r, err := j.ride(q, list, opt, maxWait); err != errAlone {
			return r, err
		}
	}
	r, err := j.inTurn(q, list, opt, maxWait)
	if err == errNoRoom && q.Indexed != nil {
		j.unindexed = true
		r, err = j.inTurn(q, list, opt, maxWait)
	}
	if err == errNoRoom {
		// What others have pinned. Buffers are waited for with nothing in hand.
		j.explicit = true
		r, err = j.inTurn(q, list, opt, maxWait)
	}
	return r, err
}

// inTurn computes the segments in list when it is the query's turn.
func (j *job) inTurn(q *program.Query, list []uint32, opt RunOptions, maxWait time.Duration) (*program.Result, error) {
	j.spent(&j.stats.Times.Prepare)
	stream, leave, err := j.enter(opt, maxWait)
	j.spent(&j.stats.Times.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	return j.alone(q, list, opt, stream)
}

// alone computes the segments in list, in one way after the other. errNoRoom: in none without
// buffers that columns stream through.
func (j *job) alone(q *program.Query, list []uint32, opt RunOptions, stream int) (*program.Result, error) {
	tries := 0
	for {
		r, err := j.attempt(q, list, stream)
		switch {
		case err == nil:
			return r, nil
		case err == errKernels:
			err = j.compile(q, true, opt.compiling())
		case err == errAgain && tries < 3:
			tries++
			continue
		case err != errNoRoom && err != errAgain:
			return nil, err
		case !j.explicit:
			return nil, errNoRoom
		case !j.exclusive:
			j.exclusive = true
			continue
		default:
			err = &device.Fault{Kind: device.FaultMemory, Text: fmt.Sprintf("a query does not fit %d bytes", j.d.budget)}
		}
		if err != nil {
			return nil, err
		}
	}
}

// rowsOf counts the rows of segments, where they can be too many for 32 bits.
func rowsOf(q *program.Query, list []uint32) (rows int64) {
	if len(list) < 1<<16 {
		return 0
	}
	for _, i := range list {
		rows += int64(q.Segments[i].Rows)
	}
	return rows
}

// attempt runs the query in one way.
func (j *job) attempt(q *program.Query, list []uint32, stream int) (*program.Result, error) {
	if j.exclusive {
		j.d.gate.Lock()
		defer j.d.gate.Unlock()
	} else {
		j.d.gate.RLock()
		defer j.d.gate.RUnlock()
	}
	j.stats.Indexed = 0
	err := j.acquire(q, list)
	var r *program.Result
	if err == nil {
		r, err = j.execute(stream)
		if err != nil {
			j.blame(err)
		} else {
			for i := range j.kernels {
				j.d.m.shapes.ended(j.kernels[i].shape, nil)
			}
		}
	}
	if j.release(err); err == nil {
		j.spent(&j.stats.Times.Result)
	}
	return r, err
}

// blame notes a fault with the shapes that ran.
func (j *job) blame(err error) {
	var fault *device.Fault
	if !errors.As(err, &fault) || fault.Kind == device.FaultMemory || fault.Kind == device.FaultUnavailable {
		return
	}
	for i := range j.kernels {
		j.d.m.shapes.ended(j.kernels[i].shape, err)
	}
}

// fits says whether the columns of the query can all be kept.
func (j *job) fits() bool {
	var bytes int64
	for _, f := range j.kernels[0].formats {
		bytes += f.bytes
	}
	if s := j.d.m.current(); s != nil {
		bytes /= int64(len(s.devs))
	}
	return bytes <= j.d.budget/4*3
}

// compile sees to the kernels of q; with all, also of lookups that are there already.
func (j *job) compile(q *program.Query, all bool, maxWait time.Duration) error {
	j.kernels = j.kernels[:0]
	if err := j.collect(q, all); err != nil {
		return err
	}
	module := func(maxWait time.Duration) (err error) {
		first := error(nil)
		if j.lanes, err = j.d.transcode(j.ctx, maxWait); err != nil {
			first = err
		}
		for i := range j.kernels {
			k := &j.kernels[i]
			if k.module, err = j.d.modules.get(j.ctx, j.d, &k.shape.g.Source, maxWait); err != nil && (first == nil || first == ErrCompiling) {
				first = err
			}
		}
		return first
	}
	err := module(noWait) // all begin to be compiled
	if err == ErrCompiling && maxWait > 0 {
		j.spent(&j.stats.Times.Prepare)
		err = module(maxWait)
		j.spent(&j.stats.Compile)
	}
	return err
}

// collect adds the kernels of q and of what it builds.
func (j *job) collect(q *program.Query, all bool) error {
	formats := j.d.m.formats.of(q)
	sh, err := j.d.m.shapes.of(q, &j.d.info, formats)
	if err != nil {
		return err
	}
	if n := sh.g.SharedBytes(q); n > int64(j.d.info.SharedPerBlock) {
		return &refused{device.Fault{Kind: device.FaultLaunch, Call: "kernel " + sh.g.Source.Name,
			Text: fmt.Sprintf("%d bytes of shared memory of %d", n, j.d.info.SharedPerBlock)}}
	}
	j.kernels = append(j.kernels, kernel{q: q, shape: sh, formats: formats})
	for i := range q.Lookups {
		l := &q.Lookups[i]
		if l.Build == nil {
			continue
		}
		if l.Build.Sink.Kind != program.SinkBuild {
			return errors.New("gpu: a lookup is built by a program that builds none")
		}
		if !all && l.ID != 0 {
			j.d.mu.Lock()
			it := j.d.cache.items[lookupKey(&q.Program.Lookups[i], l)]
			there := it != nil && it.load == nil
			j.d.mu.Unlock()
			if there {
				continue
			}
		}
		if err := j.collect(l.Build, all); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) kernelOf(q *program.Query) *kernel {
	for i := range j.kernels {
		if j.kernels[i].q == q {
			return &j.kernels[i]
		}
	}
	return nil
}

// release gives back what the job holds. What it did not bring is forgotten.
func (j *job) release(err error) {
	good := err == nil
	if good {
		err = errors.New("gpu: not brought") // of what is left to settle: a fault of its rows
	}
	j.settle(&j.own, err)
	j.settle(&j.built, err)
	j.settle(&j.later, err)
	d := j.d
	d.mu.Lock()
	defer d.mu.Unlock()
	switch l := j.layout; {
	case l == nil:
	case l.it != nil && !good:
		d.cache.drop(l.it)
	case l.it == nil && good && d.gone == nil:
		j.leaveLayout()
	}
	for _, it := range j.pins {
		d.cache.unpin(it)
	}
	for _, s := range j.temps {
		d.cache.arena.dealloc(s)
	}
	j.pins, j.temps, j.waits, j.layout = nil, nil, nil, nil
	j.bufferSize, j.orders, j.lists, j.fromSet = 0, 0, 0, false
	bulk.Done(j.blob)
	j.parts, j.slots, j.direct, j.chunks, j.blob, j.fixups, j.stringScans, j.hashes = nil, nil, nil, nil, nil, nil, nil, nil
}

// settle ends a load: what it brought is there, or with err, is not.
func (j *job) settle(v **load, err error) {
	l := *v
	if l == nil {
		return
	}
	*v = nil
	c := j.d.cache
	j.d.mu.Lock()
	defer j.d.mu.Unlock()
	for _, it := range l.items {
		it.load = nil
		if err != nil {
			c.drop(it)
		}
	}
	for _, img := range l.images {
		img.settled(l)
		if err != nil {
			c.drop(img.it)
		}
	}
	l.err = err
	close(l.done)
}

// loadOf returns the job's, to which something is about to be added.
func loadOf(v **load) *load {
	if *v == nil {
		*v = &load{done: make(chan struct{})}
	}
	return *v
}

// alloc returns memory of the job's own, until its end.
func (j *job) alloc(bytes int64) (device.Pointer, error) {
	s, err := j.d.cache.alloc(bytes)
	if err != nil {
		return 0, err
	}
	if s == nil {
		return 0, errNoRoom
	}
	j.temps = append(j.temps, s)
	return s.addr, nil
}

// get returns a kept item, pinned by who asks; what another job brings is waited for.
func (j *job) get(key itemKey) *item {
	it := j.d.cache.get(key)
	if it != nil && it.load != nil {
		j.await(it.load)
	}
	return it
}

func (j *job) await(l *load) {
	if !j.brings(l) && !slices.Contains(j.waits, l) {
		j.waits = append(j.waits, l)
	}
}

// brings says whether a load is the job's own.
func (j *job) brings(l *load) bool {
	return l != nil && (l == j.own || l == j.built || l == j.later)
}

// put makes room for an item that the job brings, pinned by who asks.
func (j *job) put(key itemKey, bytes int64, v **load) (*item, error) {
	l := loadOf(v)
	it, err := j.d.cache.put(key, bytes, l)
	if it == nil {
		if err == nil {
			err = errNoRoom
		}
		return nil, err
	}
	l.items = append(l.items, it)
	return it, nil
}
