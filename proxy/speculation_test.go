package proxy

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgaccel/engine"
	"pgaccel/vector"
)

// fakeSpeculation answers, where the test lets it, with a batch of its own.
type fakeSpeculation struct {
	batch *vector.Batch
	taken *atomic.Int32
	ran   atomic.Bool
	drops atomic.Int32
	ended chan struct{} // closed by Drop
	once  sync.Once
	stays bool // Run lasts until Drop
	bound []vector.Datum
	seen  struct {
		sync.Mutex
		rows   int
		params []vector.Datum
	}
}

func (f *fakeSpeculation) Run() {
	f.ran.Store(true)
	if f.stays {
		<-f.ended
	}
}

func (f *fakeSpeculation) Take(gate engine.Gate, fields []engine.Field, params []vector.Datum) (*vector.Batch, bool) {
	f.seen.Lock()
	defer f.seen.Unlock()
	f.seen.rows, f.seen.params = len(gate.Rows), params
	if f.batch == nil {
		return nil, false
	}
	f.taken.Add(1)
	return given(f.batch), true
}

func (f *fakeSpeculation) Drop() {
	f.drops.Add(1)
	f.once.Do(func() { close(f.ended) })
}

// speculating has a statement begin ahead; batch is what that computes, nil for what is not
// to be taken. It returns what was begun.
func speculating(st *fakeStatement, batch *vector.Batch, stays bool) (begun func() []*fakeSpeculation, taken *atomic.Int32) {
	var mu sync.Mutex
	var all []*fakeSpeculation
	taken = new(atomic.Int32)
	st.setSpeculate(func(_ context.Context, bound []vector.Datum) engine.Speculation {
		f := &fakeSpeculation{batch: batch, bound: bound, taken: taken, ended: make(chan struct{}), stays: stays}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, f)
		return f
	})
	return func() []*fakeSpeculation {
		mu.Lock()
		defer mu.Unlock()
		return append([]*fakeSpeculation(nil), all...)
	}, taken
}

// TestSpeculationAnswers: what can be taken is sent, by either protocol, and nothing is
// executed; what cannot be is executed and dropped.
func TestSpeculationAnswers(t *testing.T) {
	const withParameter = "select $1::int as accel"
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		for _, take := range []bool{true, false} {
			f := newFake()
			st := f.add(candidateSQL, candidate(numbers(7)))
			param := f.add(withParameter, candidate(numbers(7)))
			var batch *vector.Batch
			want, executed := "7", int32(1)
			if take {
				batch, want, executed = numbers(8), "8", 0
			}
			c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
			defer c.Close()
			c.exchange(parse("p", withParameter), describe('S', "p"), syncing())
			for _, x := range []struct {
				name  string
				st    *fakeStatement
				m     [][]byte
				types string
			}{
				{"simple", st, g(query(candidateSQL)), "TDCZ"},
				{"extended", st, g(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing()), "12DCZ"},
				{"with a limit", st, g(parse("", candidateSQL), bind("", "", nil), execute("", 1), syncing()), "12DsZ"},
				{"prepared", param, g(bind("", "p", []string{"5"}), execute("", 0), syncing()), "2DCZ"},
				{"types to come", param, g(parse("", withParameter), bind("", "", []string{"5"}), execute("", 0), syncing()), "12DCZ"},
			} {
				begun, taken := speculating(x.st, batch, false)
				before := x.st.executions.Load()
				got := c.exchange(x.m...)
				wantTypes(t, got, x.types)
				wantRows(t, got, want)
				if n := x.st.executions.Load() - before; n != executed {
					t.Errorf("%s: %d executions, want %d", x.name, n, executed)
				}
				all := begun()
				if len(all) != 1 || taken.Load() != 1-executed {
					t.Fatalf("%s: begun %d, taken %d", x.name, len(all), taken.Load())
				}
				all[0].seen.Lock()
				if rows, params := all[0].seen.rows, all[0].seen.params; rows != 1 || x.st == param && (len(params) != 1 || params[0].I != 5 || !slices.Equal(all[0].bound, params)) {
					t.Errorf("%s: was shown %d rows and %v, begun with %v", x.name, rows, params, all[0].bound)
				}
				all[0].seen.Unlock()
				waitFor(t, "it was told the end", func() bool { return all[0].drops.Load() > 0 && all[0].ran.Load() })
				x.st.setSpeculate(nil)
			}
			wantRows(t, c.exchange(query("select 3")), "3")
		}
	})
}

// TestSpeculationEnds: whatever becomes of the gate, what was begun is told.
func TestSpeculationEnds(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		broken := "select 1 as accel from nosuchtable"
		waits := "select 1 as accel from sales"
		st, bad, slow := f.add(candidateSQL, candidate(numbers(7))), f.add(broken, candidate(numbers(7))), f.add(waits, candidate(numbers(7)))
		s := startProxy(t, f, change)
		ended := func(name string, begun func() []*fakeSpeculation, taken *atomic.Int32) {
			t.Helper()
			all := begun()
			if len(all) != 1 || taken.Load() != 0 {
				t.Fatalf("%s: begun %d, taken %d", name, len(all), taken.Load())
			}
			waitFor(t, name, func() bool { return all[0].drops.Load() > 0 })
		}
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()

		// Postgres refuses the statement.
		begun, taken := speculating(bad, numbers(8), true)
		got := c.exchange(query(broken))
		wantTypes(t, got, "EZ")
		ended("an error", begun, taken)

		// Another setting of the wire than that known: the gate shows it, the session is told later.
		begun, taken = speculating(st, numbers(8), true)
		got = c.exchange(cat(pbe("begin"), pbe("set timezone = 'Asia/Tokyo'"), pbe(candidateSQL), pbe("commit"), g(syncing()))...)
		wantRows(t, got, "1")
		ended("a setting", begun, taken)
		st.setSpeculate(nil)
		c.exchange(query("set timezone = 'UTC'"))

		// The client cancels while the server waits for a lock, in the gate's batch.
		locker := mustConnect(t, postgresAddress(), "")
		defer locker.Close()
		locker.exchange(query("begin"))
		locker.exchange(query("lock table sales"))
		begun, taken = speculating(slow, numbers(8), true)
		c.send(query(waits))
		waitFor(t, "it has begun", func() bool { return len(begun()) == 1 && begun()[0].ran.Load() })
		waitFor(t, "the lock", activity(t, c.pid(), "wait_event_type = 'Lock'")) // else the cancel may come too early
		cancel(t, s.Addr().String(), c.key())
		got = c.until('Z')
		wantTypes(t, got, "EZ")
		wantCode(t, got[0], "57014")
		ended("a cancel", begun, taken)

		// The client goes.
		begun, taken = speculating(slow, numbers(8), true)
		c.send(query(waits))
		waitFor(t, "it has begun", func() bool { return len(begun()) == 1 && begun()[0].ran.Load() })
		c.Conn.(*net.TCPConn).SetLinger(0) // a reset: else it may still read
		c.Close()
		ended("the end of the session", begun, taken)
		locker.exchange(query("rollback"))
	})
}

// TestSpeculationIsNotSampled: what Postgres is to answer, under watch, is not begun.
func TestSpeculationIsNotSampled(t *testing.T) {
	f := newFake()
	st := f.add(candidateSQL, candidate(numbers(1)))
	begun, _ := speculating(st, numbers(1), false)
	c := mustConnect(t, startProxy(t, f, func(c *Config) { c.Shadow = 1 }).Addr().String(), "")
	defer c.Close()
	wantRows(t, c.exchange(query(candidateSQL)), "1")
	st.outcome(t, 1)
	if n := len(begun()); n != 0 {
		t.Errorf("begun %d", n)
	}
}
