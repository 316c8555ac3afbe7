package engine

import (
	"fmt"
	"strings"
	"testing"

	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// reuseBench is an aheadBench whose engine keeps results.
func reuseBench(t *testing.T) *aheadBench {
	return newAheadBench(t, func(o *Options) { o.ReuseMemory = 1 << 20 })
}

// reuses asserts how many executions f has answered by a kept result.
func (b *aheadBench) reuses(what string, want int64, f func()) {
	b.t.Helper()
	before, _, _ := b.engine.Reused()
	f()
	if now, _, _ := b.engine.Reused(); now-before != want {
		b.t.Errorf("%s: %d executions reused a result, want %d", what, now-before, want)
	}
}

func TestReuse(t *testing.T) {
	b := reuseBench(t)
	st := b.engine.Prepare(countAhead, nil)
	asked := func(what string, change map[int]string) func() {
		return func() {
			t.Helper()
			got, err := b.ask(st, b.gate(change))
			b.answered(what, got, err)
		}
	}
	b.reuses("the first", 0, asked("the first", nil))
	b.reuses("the same", 1, asked("the same", nil))
	b.reuses("off", 0, asked("off", map[int]string{gateReuse: "off"}))
	b.reuses("another device", 1, asked("another device", map[int]string{gateDevice: deviceCPU}))
	before := b.xid
	b.commit()
	b.reuses("after a commit", 0, asked("after a commit", nil))
	b.reuses("the same after a commit", 1, asked("the same after a commit", nil))
	b.rows--
	old := fmt.Sprintf("%d:%d:%d", before, b.xid, before)
	b.reuses("an older snapshot", 0, asked("an older snapshot", map[int]string{gateSnapshot: old}))
	b.rows++
	b.reuses("the new one again", 0, asked("the new one again", nil)) // the older one's has taken its place
	b.reuses("the new one once more", 1, asked("the new one once more", nil))
	b.reuses("not allowed", 0, func() {
		if _, err := b.ask(st, b.gate(map[int]string{gateAllowed: "f"})); err == nil {
			t.Error("answered without the right")
		}
	})
	b.reuses("mode off", 0, func() {
		if _, err := b.ask(st, b.gate(map[int]string{gateMode: "off"})); err == nil {
			t.Error("answered though the mode is off")
		}
	})
	b.reuses("another text", 0, func() {
		got, err := b.ask(b.engine.Prepare(countAhead+" AND a < 1000", nil), b.gate(nil))
		b.answered("another text", got, err)
	})
	// A stream that is connected anew has copied, or may have missed something: View says.
	b.store.SetConnected(false)
	b.reuses("not connected", 0, func() {
		if got, err := b.ask(st, b.gate(nil)); err == nil && got != b.rows {
			t.Errorf("%d rows", got)
		}
	})
}

// TestReuseAhead: a kept result is there before the gate, and taken with its answer.
func TestReuseAhead(t *testing.T) {
	b := reuseBench(t)
	st := b.engine.Prepare(countAhead, nil)
	if _, err := b.ask(st, b.gate(nil)); err != nil {
		t.Fatal(err)
	}
	a := b.begin(st)
	if a == nil || a.cached == nil {
		t.Fatal("no kept result is offered")
	}
	b.reuses("Take", 1, func() {
		batch, ok := a.Take(b.gate(nil), described, nil)
		if !ok {
			t.Fatal("not taken")
		}
		b.answered("Take", batch.Columns[0].Ints[0], nil)
	})
	for what, change := range map[string]map[int]string{"off": {gateReuse: "off"}, "no right": {gateAllowed: "f"}, "another server": {gateServer: "elsewhere"}} {
		a = b.begin(st)
		if _, ok := a.Take(b.gate(change), described, nil); ok {
			t.Errorf("taken: %s", what)
		}
		a.Drop()
	}
	a = b.begin(st)
	b.commit()
	if _, ok := a.Take(b.gate(nil), described, nil); ok {
		t.Error("taken after a commit")
	}
	g := b.gate(nil)
	g.Ahead = a
	got, err := b.ask(st, g)
	b.answered("after a commit", got, err)
	if now := b.engine.Speculations(); now[speculationChanged]+now[speculationLate] != 0 {
		t.Errorf("a kept result counts as work in vain: %v", now)
	}
	// What a speculation has computed is kept.
	a = b.begin(st)
	if a == nil || a.cached == nil {
		t.Fatal("no kept result is offered")
	}
	a.Drop()
	b.commit()
	a = b.begin(st)
	if a == nil || a.cached != nil {
		t.Fatal("the kept one is offered after a commit, or none is begun")
	}
	a.Run()
	if _, ok := a.Take(b.gate(nil), described, nil); !ok {
		t.Fatal("not taken")
	}
	b.reuses("after a speculation", 1, func() {
		got, err := b.ask(st, b.gate(nil))
		b.answered("after a speculation", got, err)
	})
}

func TestReuseOfParameters(t *testing.T) {
	b := reuseBench(t)
	st := b.engine.Prepare("SELECT count(*) FROM t WHERE a > $1", nil)
	for _, c := range []struct{ value, want, reused int64 }{{0, 1, 0}, {0, 1, 1}, {1, 0, 0}, {0, 1, 1}, {1, 0, 1}} {
		b.reuses(fmt.Sprint(c), c.reused, func() {
			if got, err := b.ask(st, b.gate(nil), vector.Int(vector.Int4, c.value)); err != nil || got != c.want {
				t.Errorf("%d: %d, want %d (%v)", c.value, got, c.want, err)
			}
		})
	}
}

// TestResultsAreBounded: by bytes, the least recently used goes first, and a large one is not kept.
func TestResultsAreBounded(t *testing.T) {
	r := newResultCache(64 << 10)
	batch := func(bytes int) *vector.Batch {
		long := strings.Repeat("x", bytes)
		return &vector.Batch{Rows: 1, Columns: []vector.Column{{Type: vector.TypeOf(vector.Text), Strs: []string{long}}}}
	}
	star := new(plan.Star)
	of := func(n int64) *resultInputs {
		return &resultInputs{query: star, params: []vector.Datum{vector.Int(vector.Int8, n)}}
	}
	keep := func(n int64, bytes int) {
		r.put(of(n), []colstore.Version{{OID: 1, ID: uint64(n)}}, batch(bytes), "cpu")
	}
	for n := range int64(100) {
		keep(n, 8<<10)
		if r.bytes > r.limit {
			t.Fatalf("%d bytes after %d", r.bytes, n)
		}
		if r.get(of(0)) == nil {
			t.Fatalf("the one that is used most is gone after %d", n)
		}
	}
	if r.get(of(50)) != nil || r.get(of(99)) == nil || r.lru.Len() < 4 {
		t.Errorf("%d kept", r.lru.Len())
	}
	keep(99, 16<<10)
	if k := r.get(of(99)); k == nil || len(k.result.Columns[0].Strs[0]) != 16<<10 {
		t.Error("the newer result has not taken the older one's place")
	}
	keep(1000, 65<<10)
	if r.get(of(1000)) != nil {
		t.Error("one larger than the limit is kept")
	}
	for r.lru.Len() > 0 {
		r.lru.RemoveOldest()
	}
	if r.bytes != 0 {
		t.Errorf("%d bytes of nothing", r.bytes)
	}
	none := newResultCache(0)
	none.put(of(1), nil, batch(1), "cpu")
	if none.get(of(1)) != nil {
		t.Error("kept without a limit")
	}
	large := newResultCache(64 << 20)
	large.put(of(1), nil, batch(resultMax), "cpu")
	if large.get(of(1)) != nil {
		t.Error("a large result is kept")
	}
}
