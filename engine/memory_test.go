package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

const rowsAhead = "SELECT a FROM t WHERE a > 0"

var describedRows = []Field{{Name: "a", TypeOID: sqltype.OIDInt4, Typmod: -1}}

// used asserts what executions and results hold.
func (b *aheadBench) used(what string, want int64) {
	b.t.Helper()
	if used, _ := b.engine.QueryMemory(); used != want {
		b.t.Errorf("%s: %d bytes are held, want %d", what, used, want)
	}
}

// TestQueryMemory: results count until they are let go, once, and an execution that does not
// fit beside them is forwarded with a reason of its own.
func TestQueryMemory(t *testing.T) {
	b := newAheadBench(t, func(o *Options) { o.QueryMemory = 800 })
	for range 9 {
		b.commit()
	}
	st := b.engine.Prepare(rowsAhead, nil)
	execute := func() (*vector.Batch, error) {
		return st.Decide(Session{Forces: true}).Execute(context.Background(), &b.tx, b.gate(nil), describedRows, nil)
	}
	first, err := execute()
	if err != nil {
		t.Fatal(err)
	}
	if first.Rows != 10 || first.Bytes != 10*24 {
		t.Fatalf("%d rows of %d bytes", first.Rows, first.Bytes)
	}
	b.used("one result", 240)
	second, err := execute()
	if err != nil {
		t.Fatal(err)
	}
	b.used("two results", 480)
	// A third needs 240 bytes, and its intermediate results, of the 320 that are left.
	third, err := execute()
	if plan.ReasonOf(err) != plan.ReasonQueryMemory || third != nil {
		t.Errorf("%v, %v", third, err)
	}
	b.used("after one that does not fit", 480)
	if n := b.engine.counted(plan.ReasonQueryMemory); n != 1 {
		t.Errorf("%d are counted", n)
	}
	first.Release()
	first.Release()
	b.used("one was let go, twice", 240)
	if third, err = execute(); err != nil {
		t.Fatal(err)
	}
	second.Release()
	third.Release()
	b.used("all were let go", 0)

	// What one execution may have for itself has another reason.
	b.engine.SetQueryMemory(100)
	if _, err := execute(); plan.ReasonOf(err) != plan.ReasonMemory {
		t.Error(err)
	}
	b.used("larger than the limit", 0)
}

// counted returns how many executions were forwarded for a reason.
func (e *Engine) counted(reason plan.Reason) (n int64) {
	for _, c := range e.Counts() {
		if c.Reason == reason {
			n += c.N
		}
	}
	return n
}

// TestQueryMemoryOfSpeculations: what is begun ahead counts, and is let go where it is not
// taken, whenever it is dropped.
func TestQueryMemoryOfSpeculations(t *testing.T) {
	b := newAheadBench(t)
	st := b.engine.Prepare(countAhead, nil)
	a := b.begun(st)
	if used, _ := b.engine.QueryMemory(); used == 0 {
		t.Error("its result does not count")
	}
	a.Drop()
	b.released("dropped after its end")

	a = b.begun(st)
	batch, ok := a.Take(b.gate(nil), described, nil)
	if !ok {
		t.Fatal("not taken")
	}
	a.Drop()
	if used, _ := b.engine.QueryMemory(); used == 0 {
		t.Error("a result that was taken does not count")
	}
	batch.Release()
	b.released("taken")

	a = b.begun(st)
	b.commit()
	if _, ok := a.Take(b.gate(nil), described, nil); ok {
		t.Fatal("taken")
	}
	g := b.gate(nil)
	g.Ahead = a
	if _, err := b.ask(st, g); err != nil {
		t.Fatal(err)
	}
	b.released("missed")

	for range 200 { // Drop while Run ends
		if a = b.beginAnyway(st); a == nil {
			continue
		}
		var both sync.WaitGroup
		both.Go(a.Run)
		both.Go(a.Drop)
		both.Wait()
	}
	b.released("dropped meanwhile")
	b.engine.opt.Device = idleDevice{}
	b.engine.opt.DeviceKind = "emu"
	if _, err := st.Decide(Session{Forces: true}).Execute(context.Background(), &b.tx, b.gate(map[int]string{gateDevice: "emu"}), described, nil); err == nil {
		t.Fatal("no panic")
	}
	b.released("a panic")
	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("cancelled"))
	if _, err := st.Decide(Session{Forces: true}).Execute(cancelled, &b.tx, b.gate(nil), described, nil); err == nil {
		t.Fatal("not cancelled")
	}
	b.released("cancelled")
}

// released asserts that nothing is held.
func (b *aheadBench) released(what string) {
	b.t.Helper()
	b.used(what, 0)
}

// beginAnyway begins ahead although others have been in vain.
func (b *aheadBench) beginAnyway(st Statement) *speculation {
	b.engine.Prepare(countAhead, nil).(*statement).Decide(Session{Forces: true}).(*decision).shape.ahead.hit()
	return b.begin(st)
}
