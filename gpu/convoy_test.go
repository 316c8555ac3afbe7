package gpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// TestTogether compares what riders share with a plain count.
func TestTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 31))
	alone, all := 0, 0
	for range 2000 {
		segments := make([]program.Segment, 1)
		segments[0].Columns = make([]program.SegmentColumn, 8)
		formats := make([]format, 8)
		for c := range formats {
			segments[0].Columns[c].ID = uint64(100 - c)
			formats[c] = format{bytes: int64(1 + r.IntN(100)), width: int8(c)}
		}
		riders := make([]*rider, 1+r.IntN(6))
		for i := range riders {
			own := program.Segment{}
			var of []format
			for n := 1 + r.IntN(6); n > 0; n-- {
				c := r.IntN(8)
				own.Columns, of = append(own.Columns, segments[0].Columns[c]), append(of, formats[c])
			}
			if r.IntN(40) == 0 {
				for c := range of {
					if own.Columns[c].ID == own.Columns[0].ID {
						of[c].width = 99
					}
				}
			}
			list := []uint32{}
			for k := range uint32(20) {
				if r.IntN(3) > 0 {
					list = append(list, k)
				}
			}
			riders[i] = newRider(&job{kernels: []kernel{{formats: of}}}, &program.Query{Segments: []program.Segment{own}}, list)
		}
		sum := func(riders ...*rider) (bytes int64, widths map[uint64]int8) {
			widths = map[uint64]int8{}
			for _, o := range riders {
				for c, f := range o.j.kernels[0].formats {
					id := o.q.Segments[0].Columns[c].ID
					w, ok := widths[id]
					if !ok {
						bytes += f.bytes
						widths[id] = f.width
					} else if w != f.width {
						return 0, nil
					}
				}
			}
			return bytes, widths
		}
		first, n := riders[0], len(riders)
		got := together(slices.Clone(riders))
		if got[0] != first {
			t.Fatal("who leads does not ride")
		}
		if len(got) == 1 {
			alone++
			continue
		}
		if len(got) == n {
			all++
		}
		columns, bytes, ok := union(got)
		want, widths := sum(got...)
		if !ok || bytes != want || len(columns) != len(widths) {
			t.Fatalf("%d columns of %d bytes, not %d of %d", len(columns), bytes, len(widths), want)
		}
		in := map[uint32]bool{}
		for _, o := range got {
			if own, _ := sum(o); bytes > own*int64(len(got)) {
				t.Fatalf("%d ride, %d bytes for one that reads %d", len(got), bytes, own)
			}
			for _, pos := range o.list {
				in[pos] = true
			}
		}
		list := lists(got)
		if len(list) != len(in) || !slices.IsSorted(list) || slices.ContainsFunc(list, func(pos uint32) bool { return !in[pos] }) {
			t.Fatalf("segments %v of %v", list, in)
		}
	}
	if alone == 0 || all == 0 {
		t.Errorf("%d alone, %d all together", alone, all)
	}
}

// streaming are the shapes of queries that may ride.
var streaming = []func(r *rand.Rand, fact, dim *testTable) *program.Query{single, shared, bitmap, hashed, hostLookup, joined, twice}

// named gives lookups of a query's own data an ID, as tables of queries that equal ones join have.
func streamingQuery(r *rand.Rand, fact, dim *testTable, i int) *program.Query {
	q := streaming[i%len(streaming)](r, fact, dim)
	q.TableID = fact.id
	return q
}

// convoyOf returns a manager of a device whose memory is too small for a table, what holds its
// batches, and the table.
func convoyOf(t *testing.T, r *rand.Rand, opt Options) (m *Manager, f *flaky, hold *atomic.Bool, waits, release chan struct{}, fact, dim *testTable) {
	hold = new(atomic.Bool)
	f, waits, release = held(newEmulator(t, emulator.Options{}), hold)
	mem := newMemory(t, 4<<20)
	opt.Memory, opt.chunk, opt.File, opt.Offset, opt.Share = 400<<10, 8<<10, mem.f, mem.offset, true
	m = newManager(t, opt, f)
	fact = newTable(r, mem, factColumns, slices.Repeat([]int{500}, 60)...)
	dim = newTable(r, mem, dimensionColumns, 700, 1, 799)
	return m, f, hold, waits, release, fact, dim
}

func waiting(t *testing.T, m *Manager, n int) {
	t.Helper()
	for range 10000 {
		if m.Status()[0].Waiting == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d wait, not %d", m.Status()[0].Waiting, n)
}

// wide are queries that are well off together: of many columns each.
func wide(r *rand.Rand, fact *testTable, n int) (list []*program.Query) {
	for i := range n {
		q := single(r, fact, nil)
		if i%3 == 1 {
			q = shared(r, fact, nil)
		}
		list = append(list, q)
	}
	return list
}

// TestConvoy has queries that come while one scans the table scan it together: its columns are
// copied once for all of them.
func TestConvoy(t *testing.T) {
	r := rand.New(rand.NewPCG(32, 32))
	m, f, hold, waits, release, fact, _ := convoyOf(t, r, Options{Streams: 2})
	queries := wide(r, fact, 7)
	for range 3 {
		for _, q := range queries {
			if err := compare(m, q); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := m.Status()[0]; s.Rides != 0 || s.Streamed == 0 {
		t.Fatalf("nobody else was there: %+v", s)
	}
	before := m.Status()[0]
	results := make(chan error, len(queries))
	hold.Store(true)
	go func() { results <- compare(m, queries[0]) }()
	<-waits
	var copied, scans atomic.Int64
	run := f.run
	f.run = func(n int64, b *device.Batch) error {
		for i := range b.Commands {
			for _, p := range b.Commands[i].Pieces {
				copied.Add(p.Bytes)
			}
			if b.Commands[i].Op == device.OpLaunch && b.Commands[i].Side == 0 {
				scans.Add(1)
			}
		}
		return run(n, b)
	}
	for _, q := range queries[1:] {
		go func() { results <- compare(m, q) }()
	}
	waiting(t, m, 6)
	if n := m.Status()[0].Running; n != 1 {
		t.Errorf("%d run", n)
	}
	hold.Store(false)
	close(release)
	for range queries {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
	after := m.Status()[0]
	if n := after.Rides - before.Rides; n != 6 || after.Streamed-before.Streamed != 7 || after.Queries-before.Queries != 7 {
		t.Errorf("%d of 6 rode: %+v", n, after)
	}
	// Each of the file's bytes at most once: with what lies between two pieces.
	var all int64
	for i := range fact.segments {
		for _, c := range []int{0, 1, 2, 3, 5, 6} {
			all += int64(4*len(fact.segments[i].Columns[c].Words)) + granule
		}
	}
	if n := copied.Load(); n == 0 || n > all {
		t.Errorf("%d bytes are copied for 6 queries, of %d", n, all)
	}
}

// lapOf has queries ride a lap, and compares their results.
func lapOf(t *testing.T, m *Manager, queries ...*program.Query) {
	t.Helper()
	for i, err := range lapErrors(t, m, queries...) {
		if err != nil {
			t.Fatalf("query %d: %v", i, err)
		}
	}
}

func lapErrors(t *testing.T, m *Manager, queries ...*program.Query) []error {
	t.Helper()
	errs := make([]error, len(queries))
	d := m.current().devs[0]
	var riders []*rider
	for _, q := range queries {
		j := &job{d: d, ctx: context.Background(), explicit: true}
		if err := j.compile(q, false, anyWait); err != nil {
			t.Fatal(err)
		}
		list := m.formats.surviving(q, m.formats.of(q))
		if !j.rides(q, list) {
			t.Fatal("a query cannot ride")
		}
		riders = append(riders, newRider(j, q, list))
	}
	d.lap(riders, 0)
	for i, r := range riders {
		if errs[i] = r.err; r.err != nil {
			continue
		}
		got, err := r.part.shape.g.Parse(r.q, r.part.data, r.rest)
		if err != nil {
			t.Fatal(err)
		}
		want, err := program.Reference(r.q)
		if err != nil {
			t.Fatal(err)
		}
		if err := sameResult(r.q.Program, got, want); err != nil {
			t.Fatalf("query %d: %v", i, err)
		}
	}
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
	return errs
}

// TestLapRoom has one ride for which there is no room, before one that needs what it was to bring.
func TestLapRoom(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 40))
	m, _, _, _, _, fact, _ := convoyOf(t, r, Options{})
	small := bitmap(r, fact, nil)
	small.Bits[0].ID = newID()
	p := *small.Program
	p.Sink = program.Sink{Place: program.PlaceHash, Digits: []program.Digit{{Node: 1}}}
	large := *small
	large.Program, large.Digits, large.Groups, large.Expect = &p, []program.DigitData{{Stride: 1 << 40}}, 100<<40, 1<<20
	for range 2 {
		errs := lapErrors(t, m, single(r, fact, nil), &large, small, shared(r, fact, nil))
		if errs[0] != nil || errs[1] != errAlone || errs[2] != nil || errs[3] != nil {
			t.Fatal(errs)
		}
	}
}

// TestLapLayout has a lap find what the one before left behind: with the same columns in the same
// places, whoever reads them.
func TestLapLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(39, 39))
	m, _, _, _, _, fact, dim := convoyOf(t, r, Options{})
	d := m.current().devs[0]
	all := func(q *program.Query) *program.Query { // no zone map excludes anything
		q.Ranges[0] = program.Range{Lo: -1 << 62, Hi: 1 << 62}
		return q
	}
	last := func() *layout {
		t.Helper()
		for _, l := range d.layouts {
			if l.donors != nil && !l.it.dead {
				return l
			}
		}
		return nil
	}
	settle := func(queries ...*program.Query) *layout {
		t.Helper()
		for range 6 {
			if lapOf(t, m, queries...); last() != nil {
				lapOf(t, m, queries...)
				return last()
			}
		}
		t.Fatal("no layout")
		return nil
	}
	a, b := all(single(r, fact, nil)), all(shared(r, fact, nil))
	l := settle(a, b)
	if lapOf(t, m, a, b); last() != l {
		t.Error("another layout of the same queries")
	}
	// Lists made anew, in another order, and by more.
	c, e := all(shared(r, fact, nil)), all(single(r, fact, nil))
	if lapOf(t, m, c, e, b); last() != l {
		t.Error("another layout of columns in the same places")
	}
	if n := len(l.donors[0]); n != 2 {
		t.Errorf("segments are known in %d places", n)
	}
	// One more column.
	if got := settle(a, b, hostLookup(r, fact, dim)); got == l {
		t.Error("the same layout of more columns")
	}
	for d.cache.evict() {
	}
	l = settle(a, b)
	// The words of one column moved: its memory may be anybody's now.
	moved := func(q *program.Query, column int) *program.Query {
		q = copyOf(q)
		for i := range q.Segments {
			s := &q.Segments[i]
			s.Columns = slices.Clone(s.Columns)
			s.Columns[column].Words = slices.Clone(s.Columns[column].Words)
		}
		return q
	}
	used := func() bool { return !l.it.dead && l.it.tick == d.cache.tick }
	if lapOf(t, m, a, b); !used() {
		t.Error("the layout is not used")
	}
	if lapOf(t, m, moved(a, 2), b); used() {
		t.Error("words that moved are taken for those that were there")
	}
	l = settle(a, b)
	if lapOf(t, m, moved(a, 0), a, b); !used() {
		t.Error("one has the columns where they were, and the layout is not used")
	}
}

// TestConvoyRandom has many queries come at any time, to changing tables and devices of any size,
// with copies as early or as late as may be.
func TestConvoyRandom(t *testing.T) {
	var rides, faults uint64
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 33))
		mem := newMemory(t, 8<<20)
		opt := Options{Memory: int64(200<<10 + r.IntN(300<<10)), chunk: int64(4<<10 + r.IntN(24<<10)), File: mem.f, Offset: mem.offset, Share: true,
			pieces: r.IntN(2) == 0, Streams: 1 + r.IntN(4)}
		f := &flaky{Executor: &reordered{Executor: newEmulator(t, emulator.Options{Devices: 1 + int(seed%2)}), rand: rand.New(rand.NewPCG(seed, 34)), side: r.Float64()}}
		failing := seed%3 == 2
		if failing {
			f.run = func(n int64, _ *device.Batch) error {
				if n%23 == 22 {
					return &device.Fault{Kind: device.FaultOther, Call: "test", Text: "a batch failed"}
				}
				return nil
			}
		}
		m := newManager(t, opt, f)
		fact := newTable(r, mem, factColumns, append(slices.Repeat([]int{400}, 30), edgeRows...)...)
		dim := newTable(r, mem, dimensionColumns, 700, 1, 799)
		var queries []*program.Query
		for i := range 40 {
			if i%13 == 12 {
				fact.change(r)
			}
			queries = append(queries, streamingQuery(r, fact, dim, r.IntN(100)))
		}
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(g)))
				for i := range 16 {
					q := queries[min(i*2+r.IntN(8), len(queries)-1)]
					if r.IntN(8) == 0 { // given up at any time
						ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(20_000))*time.Microsecond)
						_, _, err := m.Run(ctx, q, RunOptions{Wait: true})
						cancel()
						var fault *device.Fault
						if err != nil && !errors.Is(err, context.DeadlineExceeded) && !(failing && errors.As(err, &fault)) {
							t.Errorf("seed %d: %v", seed, err)
						}
						continue
					}
					err := compare(m, q)
					var fault *device.Fault
					if err != nil && !(failing && errors.As(err, &fault)) {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := m.idle(); err != nil {
			t.Fatal(seed, err)
		}
		for _, s := range m.Status() {
			rides += s.Rides
			faults += s.Faults[device.FaultOther]
		}
		d := m.current().devs[0]
		d.mu.Lock()
		for d.cache.evict() {
		}
		if n := d.cache.arena.used; n != 0 {
			t.Errorf("seed %d: %d bytes are left", seed, n)
		}
		d.mu.Unlock()
		_ = m.Close()
	}
	if rides < 20 || faults == 0 {
		t.Errorf("%d rides, %d faults", rides, faults)
	}
}

// ride has queries wait for the lap that a held one is in the way of, and returns their errors: the
// first's is of the one that was held. Before the lap begins it calls ready.
func ride(t *testing.T, m *Manager, hold *atomic.Bool, waits, release chan struct{}, first *program.Query, run []func() error, ready func()) []error {
	t.Helper()
	errs := make([]error, 1+len(run))
	var wg sync.WaitGroup
	hold.Store(true)
	wg.Go(func() { errs[0] = compare(m, first) })
	<-waits
	for i := range run {
		wg.Go(func() { errs[1+i] = run[i]() })
		waiting(t, m, i+1) // in this order
	}
	ready()
	hold.Store(false)
	close(release)
	wg.Wait()
	return errs
}

// TestConvoyCancel has the one that would lead, one that waits, and one that rides given up: the
// others' results are right.
func TestConvoyCancel(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 35))
	m, f, hold, waits, release, fact, _ := convoyOf(t, r, Options{Streams: 1, batch: 32 << 10})
	queries := wide(r, fact, 7)
	for _, q := range queries {
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
	}
	var cancels [7]context.CancelFunc
	var run []func() error
	for i, q := range queries[1:] {
		ctx, cancel := context.WithCancel(context.Background())
		cancels[i] = cancel
		run = append(run, func() error {
			want, err := program.Reference(q)
			if err != nil {
				return err
			}
			got, _, err := m.Run(ctx, q, RunOptions{Wait: true})
			if err != nil {
				return err
			}
			return sameResult(q.Program, got, want)
		})
	}
	before := m.Status()[0].Rides
	errs := ride(t, m, hold, waits, release, queries[0], run, func() {
		cancels[0]()
		cancels[2]()
		waiting(t, m, 4)
		inner := f.run
		f.run = func(n int64, b *device.Batch) error {
			if m.Status()[0].Running > 1 { // they ride
				cancels[4]()
			}
			return inner(n, b)
		}
	})
	for i, err := range errs {
		if i == 1 || i == 3 || i == 5 {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("query %d: %v", i, err)
			}
		} else if err != nil {
			t.Errorf("query %d: %v", i, err)
		}
	}
	if n := m.Status()[0].Rides - before; n != 3 {
		t.Errorf("%d rode", n)
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
	for _, cancel := range cancels[:6] {
		cancel()
	}
}

// TestConvoyFault has the kernel of one that rides fail: it alone gets the fault.
func TestConvoyFault(t *testing.T) {
	r := rand.New(rand.NewPCG(36, 36))
	m, f, hold, waits, release, fact, _ := convoyOf(t, r, Options{Streams: 2})
	queries := wide(r, fact, 5)
	guilty := single(r, fact, nil) // of another shape
	guilty.Sink.Accs = guilty.Sink.Accs[1:]
	for _, q := range append(queries, guilty) {
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
	}
	formats := m.formats.of(guilty)
	sh, err := m.shapes.of(guilty, &m.current().devs[0].info, formats)
	if err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int64
	inner := f.run
	f.run = func(n int64, b *device.Batch) error {
		if err := inner(n, b); err != nil {
			return err
		}
		for i := range b.Commands {
			if b.Commands[i].Function == sh.g.Scan {
				failed.Add(1)
				return &device.Fault{Kind: device.FaultLaunch, Call: "test", Text: "a kernel failed"}
			}
		}
		return nil
	}
	var run []func() error
	for _, q := range append(queries[1:], guilty) {
		run = append(run, func() error { return compare(m, q) })
	}
	errs := ride(t, m, hold, waits, release, queries[0], run, func() {})
	last := len(errs) - 1
	for i, err := range errs[:last] {
		if err != nil {
			t.Errorf("query %d: %v", i, err)
		}
	}
	if device.KindOf(errs[last]) != device.FaultLaunch || failed.Load() != 2 {
		t.Errorf("%v after %d faults", errs[last], failed.Load())
	}
	if s := m.Status()[0]; s.Faults[device.FaultLaunch] != 1 {
		t.Errorf("%+v", s)
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
}

// TestConvoyDetach has the device go while queries ride and wait.
func TestConvoyDetach(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 37))
	m, f, hold, waits, release, fact, _ := convoyOf(t, r, Options{Streams: 1})
	c := &counted{Executor: f, held: map[device.Pointer]int64{}}
	if err := m.Attach(c); err != nil {
		t.Fatal(err)
	}
	queries := wide(r, fact, 6)
	for _, q := range queries {
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
	}
	var run []func() error
	for _, q := range queries[1:] {
		run = append(run, func() error { return compare(m, q) })
	}
	var once sync.Once
	errs := ride(t, m, hold, waits, release, queries[0], run, func() {
		f.run = func(int64, *device.Batch) error {
			if m.current() != nil && m.Status()[0].Running > 1 {
				once.Do(func() { m.Detach("a test") })
				return &device.Fault{Kind: device.FaultLost, Text: "a test"}
			}
			return nil
		}
	})
	lost := 0
	for i, err := range errs {
		if device.KindOf(err) == device.FaultLost {
			lost++
		} else if err != nil && device.KindOf(err) != device.FaultUnavailable {
			t.Errorf("query %d: %v", i, err)
		}
	}
	if lost == 0 {
		t.Error("no query met that the device went")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if len(c.held) != 0 || c.freed == 0 {
		t.Errorf("%d pieces are held, %d were freed", len(c.held), c.freed)
	}
}

// TestConvoyMaxWait has queries without RunOptions.Wait not wait for a lap longer than they may,
// and none wait where nobody is to share anything.
func TestConvoyMaxWait(t *testing.T) {
	r := rand.New(rand.NewPCG(38, 38))
	m, _, hold, waits, release, fact, _ := convoyOf(t, r, Options{Streams: 1, MaxWait: time.Millisecond})
	queries := wide(r, fact, 3)
	for _, q := range queries {
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
	}
	var got error
	errs := ride(t, m, hold, waits, release, queries[0], []func() error{func() error { return compare(m, queries[1]) }}, func() {
		_, _, got = m.Run(context.Background(), queries[2], RunOptions{})
	})
	if got != ErrBusy {
		t.Errorf("got %v", got)
	}
	for i, err := range errs {
		if err != nil {
			t.Error(i, err)
		}
	}
	m.opt.Share = false
	before := m.Status()[0]
	var wg sync.WaitGroup
	for _, q := range queries {
		wg.Go(func() {
			for range 3 {
				if err := compare(m, q); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s := m.Status()[0]; s.Rides != before.Rides || s.Queries-before.Queries != 9 {
		t.Errorf("%+v", s)
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
}
