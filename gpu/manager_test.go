package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// modulesDir keeps compiled kernels while the tests run: they have the same few.
var modulesDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pgaccel-gpu-test-")
	if err != nil {
		panic(err)
	}
	modulesDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func newEmulator(t testing.TB, opt emulator.Options) *emulator.Emulator {
	t.Helper()
	opt.Dir = modulesDir
	e, err := emulator.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newManager(t testing.TB, opt Options, ex device.Executor) *Manager {
	t.Helper()
	opt.Log = quiet()
	m := New(opt)
	t.Cleanup(func() { _ = m.Close() })
	if ex != nil {
		if err := m.Attach(ex); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// compare runs a query and compares with Reference.
func compare(m *Manager, q *program.Query) error {
	want, err := program.Reference(q)
	if err != nil {
		return err
	}
	got, _, err := m.Run(context.Background(), q, RunOptions{Wait: true})
	if err != nil {
		return err
	}
	return sameResult(q.Program, got, want)
}

// idle reports what is still held though no query runs.
func (m *Manager) idle() error {
	s := m.current()
	if s == nil {
		return errors.New("no device")
	}
	for _, d := range s.devs {
		d.mu.Lock()
		defer d.mu.Unlock()
		c := d.cache
		refs := map[*item]int{}
		var used int64
		for _, it := range c.items {
			if it.load != nil {
				return fmt.Errorf("%s %d waits to be brought", itemNames[it.key.kind], it.key.id)
			}
			for _, p := range it.parts {
				if p != nil {
					refs[p]++
				}
			}
			if it.span != nil {
				used += it.span.bytes
			}
			for _, s := range it.spans {
				used += s.bytes
			}
		}
		loose := 0
		for _, it := range c.items {
			if it.refs == 0 {
				loose++
			}
			if it.refs != refs[it] {
				return fmt.Errorf("%s %d has %d references, not %d", itemNames[it.key.kind], it.key.id, it.refs, refs[it])
			}
		}
		if loose != c.loose {
			return fmt.Errorf("%d items are pinned by nobody, not %d", loose, c.loose)
		}
		if used != c.arena.used {
			return fmt.Errorf("%d bytes are used, %d by what is kept", c.arena.used, used)
		}
		d.queue.mu.Lock()
		free := len(d.queue.free)
		d.queue.mu.Unlock()
		if free != d.queue.streams {
			return fmt.Errorf("%d streams of %d", free, d.queue.streams)
		}
	}
	return nil
}

// edgeRows are lengths of segments at which words, vectors and blocks end.
var edgeRows = []int{1, 31, 32, 33, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 2500}

func testTables(r *rand.Rand, mem *memory) (fact, dim *testTable) {
	return newTable(r, mem, factColumns, edgeRows...), newTable(r, mem, dimensionColumns, 700, 1, 799)
}

// TestQueries runs random queries over tables that change: all kept, under a budget that
// forces eviction and streaming, without names of tables, on two devices.
func TestQueries(t *testing.T) {
	for _, test := range []struct {
		name    string
		opt     Options
		emu     emulator.Options
		unnamed bool // tables
		memory  bool // columns in a shared file
		check   func(t *testing.T, s []DeviceStatus)
	}{
		{name: "resident", opt: Options{Memory: 64 << 20, pieces: true}, memory: true, check: func(t *testing.T, s []DeviceStatus) {
			if s[0].ImageHits == 0 || s[0].Streamed > 0 {
				t.Errorf("%+v", s[0])
			}
		}},
		{name: "unnamed", opt: Options{Memory: 64 << 20, pieces: true}, unnamed: true},
		{name: "cold chunks", opt: Options{Memory: 64 << 20, chunk: 8 << 10, pieces: true}, memory: true},
		{name: "eviction", opt: Options{Memory: 600 << 10, chunk: 16 << 10}, memory: true, check: func(t *testing.T, s []DeviceStatus) {
			if s[0].Evictions == 0 {
				t.Errorf("%+v", s[0])
			}
		}},
		{name: "streaming", opt: Options{Memory: 280 << 10, chunk: 8 << 10, pieces: true}, memory: true, check: func(t *testing.T, s []DeviceStatus) {
			if s[0].Streamed == 0 || s[0].Evictions == 0 {
				t.Errorf("%+v", s[0])
			}
		}},
		{name: "two devices", opt: Options{Memory: 64 << 20}, emu: emulator.Options{Devices: 2}, check: func(t *testing.T, s []DeviceStatus) {
			if len(s) != 2 || s[0].Queries == 0 || s[1].Queries == 0 {
				t.Errorf("%+v", s)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, uint64(len(test.name))))
			var mem *memory
			if test.memory {
				mem = newMemory(t, 4<<20)
				test.opt.File, test.opt.Offset = mem.f, mem.offset
			}
			m := newManager(t, test.opt, newEmulator(t, test.emu))
			fact, dim := testTables(r, mem)
			for i := range 60 {
				if r.IntN(6) == 0 {
					fact.change(r)
				}
				q := testShapes[r.IntN(len(testShapes))](r, fact, dim)
				if test.unnamed {
					q.TableID = 0
				} else if r.IntN(4) == 0 {
					if err := prewarm(m, prewarming(fact, 1+r.IntN(len(factColumns)-1))); err != nil && err != ErrNoRoom {
						t.Fatalf("before query %d: %v", i, err)
					}
				}
				if err := compare(m, q); err != nil {
					t.Fatalf("query %d: %v", i, err)
				}
				if err := m.idle(); err != nil {
					t.Fatalf("after query %d: %v", i, err)
				}
			}
			if test.check != nil {
				test.check(t, m.Status())
			}
		})
	}
}

// TestFirstGroups asks for the first groups of a table that changes: on one device, in chunks, and on two, none of which
// has all rows of a group.
func TestFirstGroups(t *testing.T) {
	for _, devices := range []int{1, 2} {
		r := rand.New(rand.NewPCG(6, uint64(devices)))
		m := newManager(t, Options{Memory: 64 << 20, chunk: 8 << 10}, newEmulator(t, emulator.Options{Devices: devices}))
		fact, dim := testTables(r, nil)
		for i := range 12 {
			if r.IntN(3) == 0 {
				fact.change(r)
			}
			if err := compare(m, first(r, fact, dim)); err != nil {
				t.Fatalf("%d devices, query %d: %v", devices, i, err)
			}
			if err := compare(m, firstCounts(r, fact, dim)); err != nil {
				t.Fatalf("%d devices, query %d: %v", devices, i, err)
			}
		}
	}
}

// queriesAmidChanges returns n queries of all shapes, over versions of a table: it changes before one of every so many.
func queriesAmidChanges(r *rand.Rand, fact, dim *testTable, n, every int) (queries []*program.Query) {
	for i := range n {
		if i%every == every-1 {
			fact.change(r)
		}
		queries = append(queries, testShapes[i%len(testShapes)](r, fact, dim))
	}
	return queries
}

// TestConcurrent has many queries at once, over versions of a table, with little memory.
func TestConcurrent(t *testing.T) {
	for _, budget := range []int64{400 << 10, 64 << 20} {
		r := rand.New(rand.NewPCG(6, uint64(budget)))
		mem := newMemory(t, 4<<20)
		m := newManager(t, Options{Memory: budget, Share: true, chunk: 16 << 10, File: mem.f, Offset: mem.offset}, newEmulator(t, emulator.Options{}))
		fact, dim := testTables(r, mem)
		queries := queriesAmidChanges(r, fact, dim, 48, 8)
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				for i := range 16 {
					q := queries[(g*7+i*5)%len(queries)]
					if len(q.Columns) > 0 && i%4 == g%4 {
						if err := prewarm(m, justColumns(q)); err != nil && err != ErrNoRoom {
							t.Errorf("budget %d, caller %d, before query %d: %v", budget, g, i, err)
							return
						}
					}
					if err := compare(m, q); err != nil {
						t.Errorf("budget %d, caller %d, query %d: %v", budget, g, i, err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := m.idle(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCompile has the first query of a kernel go to the processor, and a kernel that does not
// compile tried once.
func TestCompile(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	gate := make(chan struct{})
	var tries atomic.Int64
	f.compile = func(s *device.Source) error {
		if s.Name == transcodeSource().Name {
			return nil
		}
		<-gate
		tries.Add(1)
		return &device.Fault{Kind: device.FaultCompile, Call: "test", Text: "no"}
	}
	m := newManager(t, Options{Memory: 64 << 20}, f)
	fact, dim := testTables(r, nil)
	q := testShapes[0](r, fact, dim)
	if _, _, err := m.Run(context.Background(), q, RunOptions{}); err != ErrCompiling {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, _, err := m.Run(ctx, q, RunOptions{Wait: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	close(gate)
	for range 3 {
		if _, _, err := m.Run(context.Background(), q, RunOptions{Wait: true}); device.KindOf(err) != device.FaultCompile {
			t.Fatal(err)
		}
	}
	s := m.Status()[0]
	if tries.Load() != 1 || s.CompileFaults != 1 || s.Faults[device.FaultCompile] != 1 || s.Refused != 2 || s.Compiling != 1 {
		t.Fatalf("%d tries, %+v", tries.Load(), s)
	}
}

// TestPrepare has kernels compiled that a query then finds.
func TestPrepare(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var runs, compiled atomic.Int64
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	f.run = func(int64, *device.Batch) error { runs.Add(1); return nil }
	f.compile = func(*device.Source) error { compiled.Add(1); return nil }
	m := newManager(t, Options{Memory: 64 << 20}, f)
	fact, dim := testTables(r, nil)
	q := testShapes[0](r, fact, dim)
	if got, _, err := m.Run(context.Background(), q, RunOptions{Prepare: true}); got != nil || err != nil && err != ErrCompiling {
		t.Fatal(got, err)
	}
	if runs.Load() != 0 {
		t.Fatalf("%d batches ran", runs.Load())
	}
	modules := &m.current().devs[0].modules
	modules.mu.Lock()
	begun := uint64(len(modules.byName))
	modules.mu.Unlock()
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
	if s := m.Status()[0]; s.Compiles != begun || compiled.Load() != int64(begun) || begun < 2 {
		t.Errorf("%d kernels were begun by Prepare, %d in all, %d compiled", begun, s.Compiles, compiled.Load())
	}
}

// TestBackOff keeps a kernel off the device after faults, and lets it come back.
func TestBackOff(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	var broken atomic.Bool
	broken.Store(true)
	f.run = func(int64, *device.Batch) error {
		if broken.Load() {
			return &device.Fault{Kind: device.FaultLaunch, Call: "test", Text: "too much"}
		}
		return nil
	}
	m := newManager(t, Options{Memory: 64 << 20}, f)
	fact, dim := testTables(r, nil)
	q := testShapes[0](r, fact, dim)
	for range 4 {
		if err := compare(m, q); device.KindOf(err) != device.FaultLaunch {
			t.Fatal(err)
		}
	}
	if s := m.Status()[0]; s.Faults[device.FaultLaunch] != faultsInARow || s.Refused != 4-faultsInARow {
		t.Fatalf("%+v", s)
	}
	broken.Store(false)
	for _, key := range m.shapes.lru.Keys() {
		sh, _ := m.shapes.lru.Peek(key)
		sh.until = time.Now()
	}
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
}

// TestBusy has queries that do not wait leave a device that is busy to others.
func TestBusy(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	hold, held := make(chan struct{}), make(chan struct{}, 10)
	var holding atomic.Bool
	f.run = func(int64, *device.Batch) error {
		if holding.Load() {
			held <- struct{}{}
			<-hold
		}
		return nil
	}
	m := newManager(t, Options{Memory: 64 << 20, Streams: 1, MaxWait: time.Millisecond}, f)
	fact, dim := testTables(r, nil)
	q := testShapes[0](r, fact, dim)
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
	holding.Store(true)
	done := make(chan error)
	go func() { done <- compare(m, q) }()
	<-held
	if _, _, err := m.Run(context.Background(), q, RunOptions{}); err != ErrBusy {
		t.Fatal(err)
	}
	holding.Store(false)
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := m.Status()[0]; s.Busy != 1 || s.Queries != 2 {
		t.Fatalf("%+v", s)
	}
}

// TestResident tells what is kept, and that a detached device keeps nothing.
func TestResident(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	m := newManager(t, Options{Memory: 64 << 20}, newEmulator(t, emulator.Options{}))
	fact, dim := testTables(r, nil)
	q := testShapes[1](r, fact, dim)
	q.Ranges[0] = program.Range{Lo: factColumns[3].lo, Hi: factColumns[3].hi}
	ids := []uint64{}
	for _, s := range q.Segments {
		ids = append(ids, s.Columns[1].ID)
	}
	if n, _ := m.Resident(ids); n != 0 {
		t.Fatal(n)
	}
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
	first := m.Status()[0].BytesCopied
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
	if again := m.Status()[0].BytesCopied - first; again > first/10 {
		t.Fatalf("%d bytes were copied at first, %d then", first, again)
	}
	if n, _ := m.Resident(ids); n < 37*int64(fact.rows)/8 {
		t.Fatalf("%d bytes of %d rows", n, fact.rows)
	}
	m.Detach("test")
	if n, _ := m.Resident(ids); n != 0 {
		t.Fatal(n)
	}
	if _, _, err := m.Run(context.Background(), q, RunOptions{}); device.KindOf(err) != device.FaultUnavailable {
		t.Fatal(err)
	}
}

// counted counts what is allocated.
type counted struct {
	device.Executor
	mu    sync.Mutex
	held  map[device.Pointer]int64
	freed int
}

func (c *counted) Alloc(dev int, bytes int64) (device.Pointer, error) {
	p, err := c.Executor.Alloc(dev, bytes)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held[p] = bytes
	}
	return p, err
}

func (c *counted) Free(dev int, p device.Pointer) error {
	c.mu.Lock()
	delete(c.held, p)
	c.freed++
	c.mu.Unlock()
	return c.Executor.Free(dev, p)
}

// TestClose gives all memory back to an executor that goes on, after the queries in flight.
func TestClose(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	c := &counted{Executor: newEmulator(t, emulator.Options{}), held: map[device.Pointer]int64{}}
	for range 2 {
		m := newManager(t, Options{Memory: 8 << 20}, c)
		fact, dim := testTables(r, nil)
		if err := compare(m, testShapes[2](r, fact, dim)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			q := testShapes[r.IntN(len(testShapes))](r, fact, dim)
			wg.Go(func() {
				if err := compare(m, q); err != nil && device.KindOf(err) != device.FaultLost && device.KindOf(err) != device.FaultUnavailable {
					t.Error(err)
				}
			})
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		if len(c.held) != 0 || c.freed == 0 {
			t.Errorf("%d pieces are held, %d were freed", len(c.held), c.freed)
		}
		c.mu.Unlock()
		wg.Wait()
		if err := m.Attach(c); err == nil {
			t.Fatal("a manager that is closed got devices")
		}
	}
}
