package gpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// TestLayout has a query that streams find what the one before left behind, until something
// changes.
func TestLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 17))
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	var written atomic.Int64
	var broken atomic.Bool
	f.run = func(_ int64, b *device.Batch) error {
		for i := range b.Commands {
			written.Add(int64(len(b.Commands[i].Data)))
		}
		if broken.Load() {
			return &device.Fault{Kind: device.FaultOther, Call: "test", Text: "a batch failed"}
		}
		return nil
	}
	mem := newMemory(t, 8<<20)
	m := newManager(t, Options{Memory: 200 << 10, chunk: 16 << 10, File: mem.f, Offset: mem.offset}, f)
	columns := slices.Clone(factColumns)
	columns[2].nullable = false // all that is copied lies in the file
	fact := newTable(r, mem, columns, slices.Repeat([]int{500}, 40)...)
	other := newTable(r, mem, columns, 500)
	query := func(table *testTable) *program.Query {
		q := single(r, table, nil)
		q.Program.Columns[1].Nullable, q.Program.Nodes[1].Nullable = false, false
		q.Ranges[0] = program.Range{Lo: 0, Hi: 1 << 40}
		return q
	}
	q := query(fact)
	d := m.current().devs[0]
	run := func() *layout {
		t.Helper()
		written.Store(0)
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
		if err := m.idle(); err != nil {
			t.Fatal(err)
		}
		var live *layout
		for _, l := range d.layouts {
			if !l.it.dead {
				if live != nil {
					t.Fatal("two layouts of one query")
				}
				live = l
			}
		}
		return live
	}
	settle := func() *layout {
		t.Helper()
		for range 6 {
			if l := run(); l != nil {
				return l
			}
		}
		t.Fatal("no layout")
		return nil
	}
	l := settle()
	before := written.Load()
	if again := run(); again != l {
		t.Fatal("another layout of the same columns")
	}
	if n := written.Load(); n >= before/2 {
		t.Errorf("%d bytes are written for a layout that is there, %d for one that is made", n, before)
	}
	// Other constants of the same query have the same layout.
	q.Ranges = []program.Range{{Lo: factColumns[1].lo + 1000, Hi: 1 << 40}}
	if run() != l {
		t.Error("another layout for another constant")
	}
	// Another version of the table, even with the same segments, has another.
	same := *q
	same.TableID = newID()
	if q = &same; settle() == l {
		t.Error("another version of the table has the same layout")
	}
	// A column that comes takes memory that this one had.
	l = settle()
	if err := compare(m, query(other)); err != nil {
		t.Fatal(err)
	}
	if got := settle(); got == l {
		t.Error("a column came, and the layout is the same")
	}
	// Room that comes is used.
	l = settle()
	d.mu.Lock()
	resident := len(l.resident)
	d.cache.arena.limit += 60 << 10
	d.mu.Unlock()
	if got := settle(); got == l || len(got.resident) <= resident {
		t.Errorf("there is more room, and %d segments are resident, not more than %d", len(got.resident), resident)
	}
	// What failed is not used again, and gives everything back.
	settle()
	broken.Store(true)
	_, _, err := m.Run(context.Background(), q, RunOptions{Wait: true})
	var fault *device.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got %v", err)
	}
	broken.Store(false)
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(d.layouts, func(l *layout) bool { return !l.it.dead }) {
		t.Error("the layout of a query that failed is there")
	}
	settle()
	// Memory that others want is taken from it.
	d.mu.Lock()
	for d.cache.evict() {
	}
	left := d.cache.arena.used
	d.mu.Unlock()
	if left != 0 {
		t.Errorf("%d bytes are left", left)
	}
	settle()
}
