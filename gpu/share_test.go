package gpu

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/compress"
	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// held returns an executor whose batches wait while hold is set, and the channel that lets
// them go on.
func held(ex device.Executor, hold *atomic.Bool) (f *flaky, waits chan struct{}, release chan struct{}) {
	f = &flaky{Executor: ex}
	waits, release = make(chan struct{}, 64), make(chan struct{})
	f.run = func(int64, *device.Batch) error {
		if hold.Load() {
			waits <- struct{}{}
			<-release
		}
		return nil
	}
	return f, waits, release
}

// joined waits until so many queries have joined the flights of a manager.
func joinedQueries(t *testing.T, m *Manager, n int) {
	t.Helper()
	for range 10000 {
		m.flights.mu.Lock()
		have := 0
		for _, f := range m.flights.list {
			have += f.joined
		}
		m.flights.mu.Unlock()
		if have == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("no %d queries joined", n)
}

// copyOf is an equal query, made anew.
func copyOf(q *program.Query) *program.Query {
	c := *q
	p := *q.Program
	p.Nodes, p.Steps = slices.Clone(p.Nodes), slices.Clone(p.Steps)
	c.Program = &p
	c.Constants, c.Ranges, c.Segments = slices.Clone(q.Constants), slices.Clone(q.Ranges), slices.Clone(q.Segments)
	return &c
}

// TestShare has equal queries that arrive while one runs get its result, each its own.
func TestShare(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 21))
	var hold atomic.Bool
	f, waits, release := held(newEmulator(t, emulator.Options{}), &hold)
	m := newManager(t, Options{Memory: 64 << 20, Share: true}, f)
	fact, dim := testTables(r, nil)
	q := hashed(r, fact, dim)
	q.TableID = fact.id
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
	want, err := program.Reference(q)
	if err != nil {
		t.Fatal(err)
	}
	before := f.batches.Load()
	hold.Store(true)
	var wg sync.WaitGroup
	run := func(q *program.Query) {
		wg.Go(func() {
			got, stats, err := m.Run(context.Background(), copyOf(q), RunOptions{Wait: true})
			if err == nil {
				err = sameResult(q.Program, got, want)
			}
			if err != nil || stats.Device == "" {
				t.Error(err, stats)
				return
			}
			for i := range got.Rows { // it is ours
				got.Numbers[i], got.Rows[i] = 99, 99
			}
		})
	}
	run(q)
	<-waits
	for range 7 {
		run(q)
	}
	joinedQueries(t, m, 7)
	hold.Store(false)
	close(release)
	wg.Wait()
	if s := m.Status()[0]; s.Shared != 7 || s.Queries != 2 {
		t.Errorf("%+v", s)
	}
	if n := f.batches.Load() - before; n > 2 {
		t.Errorf("%d batches for 8 queries", n)
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
}

// TestShareLeaderLeaves cancels a query that another one has joined: that one computes.
func TestShareLeaderLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	var hold atomic.Bool
	f, waits, release := held(newEmulator(t, emulator.Options{}), &hold)
	m := newManager(t, Options{Memory: 64 << 20, Share: true, Streams: 1}, f)
	fact, dim := testTables(r, nil)
	other, q := single(r, fact, dim), shared(r, fact, dim)
	for _, q := range []*program.Query{other, q} {
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
	}
	hold.Store(true)
	results := make(chan error, 3)
	go func() { results <- compare(m, other) }()
	<-waits // it has the only stream
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error)
	go func() {
		_, _, err := m.Run(ctx, q, RunOptions{Wait: true})
		left <- err
	}()
	for m.Status()[0].Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		go func() { results <- compare(m, copyOf(q)) }()
	}
	joinedQueries(t, m, 2)
	cancel()
	if err := <-left; err != context.Canceled {
		t.Fatal(err)
	}
	joinedQueries(t, m, 1) // one of the two leads
	hold.Store(false)
	close(release)
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// TestShareFault has a fault reach all that wait, and one who waits leave by its own context.
func TestShareFault(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 23))
	var hold atomic.Bool
	f, waits, release := held(newEmulator(t, emulator.Options{}), &hold)
	run := f.run
	f.run = func(n int64, b *device.Batch) error {
		if !hold.Load() {
			return nil
		}
		_ = run(n, b)
		return &device.Fault{Kind: device.FaultLaunch, Text: "a test"}
	}
	m := newManager(t, Options{Memory: 64 << 20, Share: true}, f)
	fact, dim := testTables(r, nil)
	q := single(r, fact, dim)
	if err := compare(m, q); err != nil {
		t.Fatal(err)
	}
	hold.Store(true)
	errs := make(chan error, 2)
	get := func(ctx context.Context) {
		_, _, err := m.Run(ctx, copyOf(q), RunOptions{Wait: true})
		errs <- err
	}
	go get(context.Background())
	<-waits
	go get(context.Background())
	joinedQueries(t, m, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := m.Run(ctx, q, RunOptions{Wait: true}); err != context.Canceled {
		t.Error(err)
	}
	close(release)
	for range 2 {
		if err := <-errs; device.KindOf(err) != device.FaultLaunch {
			t.Error(err)
		}
	}
	if s := m.Status()[0]; s.Faults[device.FaultLaunch] != 1 {
		t.Errorf("%+v", s)
	}
}

// TestSameQuery changes every field of a query's data: each makes another query, but for what
// names stand for.
func TestSameQuery(t *testing.T) {
	newQuery := func() *program.Query {
		return &program.Query{Program: &program.Program{}, TableID: 1,
			Segments:  []program.Segment{{Rows: 1, Columns: []program.SegmentColumn{{ID: 2}}}},
			Constants: make([]int64, 1), Ranges: make([]program.Range, 1), Bits: []program.Bits{{Set: compress.Set{Bits: make([]uint64, 1)},
				Match: &program.Match{Strings: program.Strings{ID: 4}, Next: make([]uint8, 1), Rest: make([]uint16, 1)}}},
			Sets:    [][]int64{{1}},
			Tables:  []program.TableData{{Values: make([]int64, 1), Lengths: &program.Lengths{Strings: program.Strings{ID: 5}, CodeLengths: make([]uint8, 1), Rest: make([]int32, 1)}, Nulls: make([]uint8, 1), Faults: make([]uint8, 1)}},
			Lookups: []program.LookupData{{ID: 3}}, Digits: make([]program.DigitData, 1)}
	}
	names := map[string]bool{ // of content that is compared, or named by another field
		".Program": true, ".Bits[].ID": true, ".Tables[].ID": true, ".BuildLo": true, ".MostRows": true, ".BuildSize": true, ".Indexed": true,
		".Bits[].Match.Strings.N": true, ".Bits[].Match.Strings.Data": true, ".Bits[].Match.Strings.Starts": true, ".Bits[].Match.Host": true,
		".Tables[].Lengths.Strings.N": true, ".Tables[].Lengths.Strings.Data": true, ".Tables[].Lengths.Strings.Starts": true, ".Tables[].Lengths.Host": true,
		".Segments[].ID": true, ".Segments[].Rows": true, ".Segments[].Live": true, ".Segments[].LiveID": true,
	}
	for _, f := range []string{"Words", "Nulls", "Min", "Max"} {
		names[".Segments[].Columns[]."+f] = true
	}
	for _, f := range []string{"Bits", "E8", "E16", "E32", "HashKeys", "HashEntries", "Keys", "Entries", "First", "Partners", "Outs", "Build"} {
		names[".Lookups[]."+f] = true
	}
	base, q := newQuery(), newQuery()
	if !sharable(q) || !sameQuery(base, q) {
		t.Fatal("a query is not the same as itself")
	}
	seen := 0
	var change func(v reflect.Value, path string)
	change = func(v reflect.Value, path string) {
		if names[path] {
			return
		}
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				change(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
			return
		case reflect.Pointer:
			change(v.Elem(), path)
			v.SetZero()
		case reflect.Array:
			for i := range v.Len() {
				change(v.Index(i), path+"[]")
			}
			return
		case reflect.Slice:
			for i := range v.Len() {
				change(v.Index(i), path+"[]")
			}
			v.Set(reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int32, reflect.Int64:
			v.SetInt(v.Int() + 5)
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.SetUint(v.Uint() + 5)
		default:
			t.Fatalf("%s is a %v", path, v.Type())
		}
		seen++
		if sameQuery(base, q) {
			t.Errorf("%s does not count", path)
		}
		v.Set(old)
	}
	change(reflect.ValueOf(q).Elem(), "")
	if !sameQuery(base, q) || seen < 30 {
		t.Fatalf("%d fields changed", seen)
	}
	for _, spoil := range []func(q *program.Query){
		func(q *program.Query) { q.TableID = 0 },
		func(q *program.Query) { q.Lookups[0].ID = 0 },
		func(q *program.Query) { q.Segments[0].Columns[0].ID = 0 },
		func(q *program.Query) { q.Segments = nil },
	} {
		q := newQuery()
		if spoil(q); sharable(q) {
			t.Error("a query without names is shared")
		}
	}
}

// TestGrow has more groups than were expected: tables grow until they hold them, or may not.
func TestGrow(t *testing.T) {
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	table := newTable(rand.New(rand.NewPCG(24, 24)), nil, []testColumn{{lo: 0, hi: 1 << 20, unique: true}}, 9000, 9000)
	q := &program.Query{Program: &program.Program{
		Columns: []program.Column{{}},
		Nodes:   []program.Node{{Op: program.OpColumn}},
		Sink: program.Sink{Place: program.PlaceHash, Digits: []program.Digit{{Node: 0}},
			Accs: []program.Acc{{Kind: program.AccSum, Arg: 0, Filter: -1}}},
	}, Segments: table.of(0), TableID: table.id, Digits: []program.DigitData{{Stride: 1}}, Groups: 1<<20 + 1, Expect: 1}
	m := newManager(t, Options{Memory: 64 << 20}, f)
	for turn, want := range []uint64{2, 2} {
		if err := compare(m, q); err != nil {
			t.Fatal(err)
		}
		if got := m.Status()[0].Grown; got != want {
			t.Errorf("turn %d: %d tables grew instead of %d", turn, got, want)
		}
	}
	m = newManager(t, Options{Memory: 4 << 20}, f)
	r, _, err := m.Run(context.Background(), q, RunOptions{Wait: true})
	if err != nil || !r.Full {
		t.Fatalf("%v, %+v", err, r)
	}
	if err := m.idle(); err != nil {
		t.Error(err)
	}
}
