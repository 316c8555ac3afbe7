package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// shapesMax is how many kernels are remembered.
const shapesMax = 4096

// shape is a kernel: what was generated, and how it fares.
type shape struct {
	g   *program.Generated
	err error // of the generator

	// Under shapes.mu: faults in a row, and until when they keep the shape off devices.
	faults int
	until  time.Time
}

// shapes remembers generated kernels by the program and the choices they were made of.
type shapes struct {
	mu  sync.Mutex
	lru *simplelru.LRU[string, *shape]
	key []byte
}

func newShapes() *shapes {
	l, err := simplelru.NewLRU[string, *shape](shapesMax, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &shapes{lru: l}
}

// of returns the shape of a query on such a device; a *device.Fault where it is refused.
func (s *shapes) of(q *program.Query, info *device.Info, formats []format) (*shape, error) {
	t := program.TuningFor(q, info, widths(formats)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = appendTuning(appendProgram(s.key[:0], q.Program), &t)
	sh, ok := s.lru.Get(string(s.key))
	if !ok {
		sh = &shape{}
		sh.g, sh.err = program.Generate(q.Program, t)
		s.lru.Add(string(s.key), sh)
	}
	if sh.err != nil {
		return nil, &device.Fault{Kind: device.FaultCompile, Call: "program.Generate", Text: sh.err.Error()}
	}
	if sh.faults >= faultsInARow {
		if wait := time.Until(sh.until); wait > 0 {
			return nil, &refused{device.Fault{Kind: device.FaultLaunch, Call: "kernel " + sh.g.Source.Name,
				Text: fmt.Sprintf("after %d faults it is not tried for %v", sh.faults, wait.Round(time.Millisecond))}}
		}
	}
	return sh, nil
}

// latest returns the sources of shapes that were generated, the latest used first.
func (s *shapes) latest(n int) []*device.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*device.Source
	all := s.lru.Values() // the oldest comes first
	for i := len(all) - 1; i >= 0 && len(out) < n; i-- {
		if all[i].err == nil && all[i].faults == 0 {
			out = append(out, &all[i].g.Source)
		}
	}
	return out
}

// refused is a fault that did not happen again: it is not counted once more.
type refused struct{ fault device.Fault }

func (r *refused) Error() string { return r.fault.Error() }

// Unwrap has errors.As find the fault.
func (r *refused) Unwrap() error { return &r.fault }

// So many faults in a row keep a shape off devices for backOff, and twice as long with each
// further one.
const (
	faultsInARow = 2
	backOff      = time.Second
	backOffMax   = time.Hour
)

// ended notes how a query of the shape went.
func (s *shapes) ended(sh *shape, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		sh.faults = 0
		return
	}
	sh.faults++
	if n := sh.faults - faultsInARow; n >= 0 {
		sh.until = time.Now().Add(min(backOff<<min(n, 20), backOffMax))
	}
}

// modules are what a device has compiled, or is compiling, by the source's name, which ends
// with a hash of the source.
type modules struct {
	mu       sync.Mutex
	byName   map[string]*module
	wanted   int        // being compiled that queries have asked for
	unwanted *sync.Cond // of mu: wanted is 0
	waiting  int        // for a turn of later
	turn     sync.Mutex // of ahead
	compiles uint64     // that have ended
	failures uint64
	hits     uint64
	took     time.Duration // to compile, or to load what was compiled before
}

type module struct {
	began time.Time
	done  chan struct{}
	id    device.Module
	err   error
	told  atomic.Bool // of a source that does not compile
}

// How long a kernel is waited for since it began to be compiled. An image that an earlier process has
// compiled is loaded in less than loadWait.
const (
	noWait   = time.Duration(0)
	loadWait = 10 * time.Millisecond
	anyWait  = time.Duration(math.MaxInt64)
)

// get returns a compiled source. Where it is not compiled it begins to be, in the background:
// ErrCompiling, unless it is within the limit. A source that did not compile is not tried
// again; other failures are.
func (ms *modules) get(ctx context.Context, d *dev, s *device.Source, maxWait time.Duration) (device.Module, error) {
	ms.mu.Lock()
	m := ms.byName[s.Name]
	if m == nil {
		m = ms.begin(s)
		ms.wanted++
		go func() {
			ms.compile(m, d, s)
			ms.mu.Lock()
			defer ms.mu.Unlock()
			if ms.wanted--; ms.wanted == 0 {
				ms.unwanted.Broadcast()
			}
		}()
	} else {
		select {
		case <-m.done:
			ms.hits++
		default:
		}
	}
	ms.mu.Unlock()
	if left := maxWait - time.Since(m.began); left > 0 {
		end := time.NewTimer(left)
		defer end.Stop()
		select {
		case <-m.done:
		case <-end.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	select {
	case <-m.done:
	default:
		return 0, ErrCompiling
	}
	var fault *device.Fault
	if errors.As(m.err, &fault) && fault.Kind == device.FaultCompile && m.told.Swap(true) {
		return 0, &refused{*fault}
	}
	return m.id, m.err
}

// begin notes, with mu held, that a source begins to be compiled.
func (ms *modules) begin(s *device.Source) *module {
	m := &module{began: time.Now(), done: make(chan struct{})}
	ms.byName[s.Name] = m
	return m
}

// waitingMost bounds the sources that wait to be compiled for nobody: more are compiled when queries need them.
const waitingMost = 64

// later is ahead, in the background.
func (ms *modules) later(d *dev, s *device.Source) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.byName[s.Name] != nil || ms.waiting == waitingMost {
		return
	}
	ms.waiting++
	go func() {
		_ = ms.ahead(d, s) // it is in the log, and what a query will meet
		ms.mu.Lock()
		defer ms.mu.Unlock()
		ms.waiting--
	}()
}

// ahead compiles a source that no query has asked for yet, one at a time, once none waits for another.
func (ms *modules) ahead(d *dev, s *device.Source) error {
	ms.turn.Lock()
	defer ms.turn.Unlock()
	ms.mu.Lock()
	for ms.wanted > 0 {
		ms.unwanted.Wait()
	}
	m := ms.byName[s.Name]
	if m != nil {
		ms.mu.Unlock()
		return nil
	}
	m = ms.begin(s)
	ms.mu.Unlock()
	ms.compile(m, d, s)
	return m.err
}

// refused reports whether a source does not compile.
func (ms *modules) refused(name string) bool {
	ms.mu.Lock()
	m := ms.byName[name]
	ms.mu.Unlock()
	if m == nil {
		return false
	}
	select {
	case <-m.done:
		return m.err != nil
	default:
		return false
	}
}

func (ms *modules) compile(m *module, d *dev, s *device.Source) {
	m.id, m.err = d.ex.Compile(d.alive, d.index, *s)
	ms.mu.Lock()
	close(m.done)
	ms.compiles++
	ms.took += time.Since(m.began)
	if m.err == nil {
		ms.mu.Unlock()
		return
	}
	ms.failures++
	if device.KindOf(m.err) != device.FaultCompile {
		delete(ms.byName, s.Name)
	}
	ms.mu.Unlock()
	if errors.Is(m.err, context.Canceled) {
		return // the device is gone, or the manager closes
	}
	d.m.opt.Log.Warn("a kernel does not compile", "device", d.name, "kernel", s.Name, "error", m.err)
}

// appendProgram appends what distinguishes a program from others.
func appendProgram(b []byte, p *program.Program) []byte {
	b = binary.AppendUvarint(b, uint64(len(p.Columns)))
	for _, c := range p.Columns {
		b = append(b, flags(c.Wide, c.Nullable))
	}
	b = binary.AppendUvarint(b, uint64(len(p.Lookups)))
	for _, l := range p.Lookups {
		b = append(b, byte(l.Kind), flags(l.Left, l.Many))
		b = appendInts(b, l.Key, len(l.Outs))
		for _, o := range l.Outs {
			b = append(b, flags(o.Nullable, o.Wide))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(p.Tables)))
	for _, t := range p.Tables {
		b = append(b, flags(t.Nulls, t.Faults, t.Wide))
	}
	b = binary.AppendUvarint(b, uint64(len(p.Nodes)))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		b = append(b, byte(n.Op), flags(n.Nullable, n.Wide, n.Checked))
		b = appendInts(b, n.Index, n.Out, len(n.Args))
		b = appendInts(b, n.Args...)
		b = binary.AppendVarint(binary.AppendVarint(b, n.Min), n.Max)
	}
	b = binary.AppendUvarint(b, uint64(len(p.Steps)))
	for _, s := range p.Steps {
		b = append(b, byte(s.Kind), flags(s.Risky))
		b = appendInts(b, s.Node, s.Index, int(s.Permille))
	}
	s := &p.Sink
	b = append(b, byte(s.Kind), byte(s.Place), byte(s.Build), byte(s.TopThen), flags(s.Repeats, s.Distinct, s.Counted, s.Top, s.TopDesc, s.TopThenDesc))
	b = appendInts(b, s.Key, s.Prefix, s.TopBy, len(s.Digits), len(s.Accs))
	for _, d := range s.Digits {
		b = append(b, flags(d.Nullable))
		b = appendInts(b, d.Node)
	}
	b = appendInts(b, len(s.Having))
	b = appendInts(b, s.Having...)
	for _, a := range s.Accs {
		b = append(b, byte(a.Kind))
		b = appendInts(b, a.Arg, a.Filter)
	}
	return b
}

// appendTuning appends all choices.
func appendTuning(b []byte, t *program.Tuning) []byte {
	b = appendInts(b, t.Threads, t.BlocksPerSM, t.Positions, len(t.Order))
	if t.Order == nil {
		b = append(b, 1)
	}
	b = appendInts(b, t.Order...)
	b = append(b, flags(t.Queue, t.Carries, t.Together, t.Indexed))
	b = appendInts(b, t.Dense, t.Rows, t.TableBytes, len(t.StageLookups))
	for _, on := range t.StageLookups {
		b = append(b, flags(on))
	}
	for _, list := range [][]bool{t.StageBits, t.WindowLookups} {
		b = appendInts(b, len(list))
		for _, on := range list {
			b = append(b, flags(on))
		}
	}
	b = appendInts(b, len(t.Widths))
	for _, w := range t.Widths {
		b = append(b, byte(w))
	}
	return b
}

func appendInts(b []byte, values ...int) []byte {
	for _, v := range values {
		b = binary.AppendVarint(b, int64(v))
	}
	return b
}

func flags(on ...bool) (f byte) {
	for i, o := range on {
		if o {
			f |= 1 << i
		}
	}
	return f
}
