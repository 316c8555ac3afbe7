package gpu

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// most asks for the largest value of each of some columns.
func most(fact *testTable, columns ...int) *program.Query {
	p := &program.Program{Columns: columnsOf(factColumns, columns...), Sink: program.Sink{Place: program.PlaceSingle}}
	for i, c := range columns {
		p.Nodes = append(p.Nodes, columnNode(factColumns, i, c))
		p.Sink.Accs = append(p.Sink.Accs, program.Acc{Kind: program.AccMax, Arg: i, Filter: -1})
	}
	return &program.Query{Program: p, Segments: fact.of(columns...), TableID: fact.id, Groups: 1}
}

// stockOf returns a manager of a device whose memory is too small for two columns of a table.
func stockOf(t *testing.T) (*Manager, *dev, *testTable) {
	r := rand.New(rand.NewPCG(50, 50))
	mem := newMemory(t, 4<<20)
	m := newManager(t, Options{Memory: 400 << 10, chunk: 8 << 10, File: mem.f, Offset: mem.offset}, newEmulator(t, emulator.Options{}))
	return m, m.current().devs[0], newTable(r, mem, factColumns, slices.Repeat([]int{500}, 60)...)
}

// TestStockTurns has queries in turns, each of other columns than the last: what is kept stays, and
// each finds the layout that it left.
func TestStockTurns(t *testing.T) {
	m, d, fact := stockOf(t)
	queries := []*program.Query{most(fact, 1, 3), most(fact, 3, 6), most(fact, 6, 1)}
	all := int64(0)
	for _, q := range queries {
		for _, f := range m.formats.of(q) {
			all += f.bytes
		}
	}
	round := func() int64 {
		t.Helper()
		before := m.Status()[0].BytesCopied
		for _, q := range queries {
			if err := compare(m, q); err != nil {
				t.Fatal(err)
			}
		}
		return int64(m.Status()[0].BytesCopied - before)
	}
	for range 20 {
		round()
	}
	copied, epoch, evictions := round(), d.cache.epoch, m.Status()[0].Evictions
	if copied > all*9/10 {
		t.Errorf("%d bytes of %d are copied each time: nothing is kept", copied, all)
	}
	layouts := slices.Clone(d.layouts)
	for range 20 {
		if n := round(); n != copied {
			t.Fatalf("%d bytes are copied, and before %d", n, copied)
		}
	}
	if d.cache.epoch != epoch || m.Status()[0].Evictions != evictions || !slices.Equal(layouts, d.layouts) || len(layouts) != len(queries) {
		t.Errorf("columns came and went: %d evictions, %d layouts", m.Status()[0].Evictions-evictions, len(d.layouts))
	}
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
}

// TestStockShift has other columns read than before: those are kept then.
func TestStockShift(t *testing.T) {
	m, d, fact := stockOf(t)
	scan := func(columns []int, n int) (last int64) {
		t.Helper()
		q := most(fact, columns...)
		for range n {
			before := m.Status()[0].BytesCopied
			if err := compare(m, q); err != nil {
				t.Fatal(err)
			}
			last = int64(m.Status()[0].BytesCopied - before)
		}
		return last
	}
	kept := func(column int) int64 { return d.stock.columns[fact.segments[0].Columns[column].ID].kept }
	scan([]int{1, 3}, 5*stockScans)
	if kept(1) == 0 {
		t.Fatal("nothing is kept of what all scans read")
	}
	before := kept(1)
	once := scan([]int{6}, 2)
	if kept(1) != before {
		t.Error("two scans of other columns had what is kept evicted")
	}
	if n := scan([]int{6}, 5*stockScans); n >= once || kept(6) == 0 || kept(1)+kept(3) > kept(6)/4 {
		t.Errorf("%d bytes are copied at last, %d at first; of what is read %d bytes are kept, of what is not %d", n, once, kept(6), kept(1)+kept(3))
	}
	// What nobody has read for long goes when others need the room.
	var bytes int64
	for _, col := range d.stock.columns {
		bytes += col.kept
	}
	if bytes != d.cache.bytes[itemColumn] {
		t.Errorf("%d bytes of columns are kept, by column %d", d.cache.bytes[itemColumn], bytes)
	}
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
}

// TestStockChanges has a table change all the while: what is kept of segments that are gone makes
// room for those that came.
func TestStockChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(53, 53))
	mem := newMemory(t, 4<<20)
	m := newManager(t, Options{Memory: 2150 << 10, chunk: 8 << 10, File: mem.f, Offset: mem.offset}, &null{}) // which answers nothing
	d := m.current().devs[0]
	fact := newTable(r, mem, factColumns, slices.Repeat([]int{500}, 200)...)
	all := func() (bytes int64) {
		for _, f := range m.formats.of(most(fact, 1, 3)) {
			bytes += f.bytes
		}
		return bytes
	}()
	var copied [2]int64
	for i := range 30 * stockScans {
		if i%4 == 0 { // but for the first, which names the columns
			fact.segments = slices.Clone(fact.segments)
			fact.add(r, 500)
			last := len(fact.segments) - 1
			fact.segments[1+r.IntN(last-1)], fact.segments = fact.segments[last], fact.segments[:last]
			fact.id = newID()
		}
		before := m.Status()[0].BytesCopied
		if _, _, err := m.Run(t.Context(), most(fact, 1, 3), RunOptions{Wait: true}); err != nil {
			t.Fatal(err)
		}
		if i >= 26*stockScans {
			copied[1] += int64(m.Status()[0].BytesCopied - before)
		} else if i >= 2*stockScans && i < 6*stockScans {
			copied[0] += int64(m.Status()[0].BytesCopied - before)
		}
	}
	for i := range copied {
		copied[i] /= 4 * stockScans
	}
	if copied[0] > all*3/4 || copied[1] > copied[0]*2 {
		t.Errorf("of %d bytes %d are copied for each scan at first, %d later", all, copied[0], copied[1])
	}
	live := map[uint64]bool{}
	for i := range fact.segments {
		for c := range fact.segments[i].Columns {
			live[fact.segments[i].Columns[c].ID] = true
		}
	}
	gone, kept := 0, 0
	for _, it := range d.cache.items {
		if it.of != nil {
			if kept++; !live[it.key.id] {
				gone++
			}
		}
	}
	if gone > kept/2 {
		t.Errorf("%d of %d columns that are kept are of segments that are gone", gone, kept)
	}
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
}

// TestStockQuotas has room shared out: the most read first, and not anew for little.
func TestStockQuotas(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 51))
	for range 200 {
		d := &dev{cache: testCache(1 << 20), budget: 1 << 20}
		d.stock.columns = map[uint64]*stocked{}
		for id := range uint64(1 + r.IntN(12)) {
			d.stock.columns[id+1] = &stocked{heat: r.Float64() * 20, bytes: 1 + r.Int64N(1<<18)}
		}
		room := r.Int64N(1 << 20)
		d.restock(room)
		spared := 0.0
		least, left, partial := 21.0, room, 0
		for _, col := range d.stock.columns {
			spared += col.heat * float64(col.quota)
			left -= col.quota
			if col.quota > 0 {
				least = min(least, col.heat)
			}
			if col.quota > 0 && col.quota < col.bytes {
				partial++
			}
		}
		for id, col := range d.stock.columns {
			if col.quota < 0 || col.quota > col.bytes || col.quota < col.bytes && (col.heat > least || left > 0) {
				t.Fatalf("column %d, read %v times, has %d of %d bytes, %d are left, others that are read %v times have some", id, col.heat, col.quota, col.bytes, left, least)
			}
		}
		if left < 0 || partial > 1 {
			t.Fatalf("%d bytes left, %d columns in part", left, partial)
		}
		epoch := d.cache.epoch
		d.restock(room + int64(0.05*spared/21))
		if d.cache.epoch != epoch {
			t.Fatal("columns are exchanged for little")
		}
	}
}

// TestBuffersTurn has a query that finds no room wait for buffers with nothing in hand: others run.
func TestBuffersTurn(t *testing.T) {
	r := rand.New(rand.NewPCG(52, 52))
	var hold atomic.Bool
	f, waits, release := held(newEmulator(t, emulator.Options{}), &hold)
	mem := newMemory(t, 4<<20)
	m := newManager(t, Options{Memory: 400 << 10, chunk: 8 << 10, File: mem.f, Offset: mem.offset, Streams: 2}, f)
	fact := newTable(r, mem, factColumns, slices.Repeat([]int{500}, 60)...)
	other := newTable(r, mem, factColumns, slices.Repeat([]int{500}, 40)...)
	streams, fits, none := most(fact, 1, 3), most(other, 1, 8), rowsOnly(r, fact, nil)
	for range 3 {
		for _, q := range []*program.Query{fits, none, streams} {
			if err := compare(m, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	d := m.current().devs[0]
	results := make(chan error, 3)
	hold.Store(true)
	go func() { results <- compare(m, streams) }()
	<-waits
	// All but what that one has pinned goes, and what is free is taken.
	d.mu.Lock()
	for d.cache.evict() {
	}
	var taken []*span
	for n := int64(64 << 10); n >= granule; n /= 2 {
		for d.cache.arena.limit-d.cache.arena.used > 24<<10 {
			s, err := d.cache.alloc(n)
			if err != nil {
				t.Fatal(err)
			}
			if s == nil {
				break
			}
			taken = append(taken, s)
		}
	}
	d.mu.Unlock()
	go func() { results <- compare(m, fits) }()
	waiting(t, m, 1)
	hold.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, _, err := m.Run(ctx, none, RunOptions{Wait: true}); err != nil {
		t.Errorf("a query that needs no buffers, beside one that waits for some: %v", err)
	}
	if n := m.Status()[0].Waiting; n != 1 {
		t.Errorf("%d wait for buffers", n)
	}
	d.mu.Lock()
	for _, s := range taken {
		d.cache.arena.dealloc(s)
	}
	d.mu.Unlock()
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
}
