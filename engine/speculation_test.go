package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// aheadBench is a store with table t of a column a, which the stream changes, and a gate
// that says what a test wants.
type aheadBench struct {
	t        *testing.T
	store    *colstore.Store
	relation *colstore.Relation
	meta     *catalog.Table
	engine   *Engine
	tx       Transaction
	xid      uint64
	rows     int64
	before   map[string]int64
}

func newAheadBench(t *testing.T, change ...func(*Options)) *aheadBench {
	t.Helper()
	b := &aheadBench{t: t, store: colstore.New(colstore.Options{MemoryLimit: 64 << 20}), xid: 100}
	t.Cleanup(b.store.Close)
	b.meta = &catalog.Table{OID: 42, Schema: "public", Name: "t", Fingerprint: "x", Identity: []int{0},
		Columns: []catalog.Column{{Name: "a", AttNum: 1, TypeOID: sqltype.OIDInt4, Type: vector.TypeOf(vector.Int4)}}}
	b.store.SetCatalog(&catalog.Catalog{Tables: []*catalog.Table{b.meta}, WALSegmentSize: 16 << 20, WALBlockSize: 8192, Operators: "n"})
	o := Options{Store: b.store, WaitLimit: 5 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	b.engine = New(o)
	l := b.store.NewLoader(b.meta)
	w := l.NewWriter()
	w.Int(0, 1)
	b.rows = 1
	if err := errors.Join(w.EndRow(), w.Close()); err != nil {
		t.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	table.Snapshot = mustSnapshot(t, "100:100:")
	b.relation = b.store.NewRelation(table)
	b.store.Publish(b.relation)
	b.store.SetConnected(true)
	b.store.Advance(1000)
	t.Cleanup(func() {
		// One that was taken is counted until its goroutine has ended, a moment later.
		running := func() int64 {
			return int64(b.engine.speculations.running.Load() + b.engine.speculations.processor.Load())
		}
		for limit := time.Now().Add(30 * time.Second); running() != 0 && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		if n := running(); n != 0 {
			t.Errorf("%d are still counted as running", n)
		}
		b.store.Remove(42)
		used, _ := b.store.Usage()
		for limit := time.Now().Add(30 * time.Second); used != 0 && time.Now().Before(limit); used, _ = b.store.Usage() {
			time.Sleep(time.Millisecond) // what builds indexes may have one yet
		}
		if used != 0 {
			t.Errorf("%d bytes of versions were not released", used)
		}
	})
	b.before = b.engine.Speculations()
	return b
}

// commit has the stream bring a row.
func (b *aheadBench) commit() {
	b.t.Helper()
	r := colstore.NewRow(b.meta)
	r.State[0], r.Int[0] = colstore.ColumnValue, b.rows+1
	if err := errors.Join(b.relation.Insert(42, r), b.relation.Commit(b.xid, b.xid)); err != nil {
		b.t.Fatal(err)
	}
	b.xid++
	b.rows++
}

// gate is one that sees all commits so far and lets the statement pass, with changes.
func (b *aheadBench) gate(change map[int]string) Gate {
	values := map[int]string{gateSnapshot: fmt.Sprintf("%d:%d:", b.xid, b.xid), gateInsertLSN: "0/1F4", gateNoXID: "t",
		gateIsolation: "read committed", gateTimeZone: "UTC", gateFloatDigits: "1", gateByteaOutput: "hex", gateMonetary: "C", gateReading: "on off on", gateDateStyle: "ISO, MDY", gateIntervalStyle: "postgres",
		gateClientEncoding: "UTF8", gateTimeout: "0", gateSchemas: "{pg_catalog,public}", gateMode: "force", gateOperators: "n",
		gateShadowed: "f", gateCallable: "t", gateOID: "42", gateAllowed: "t", gateRowSecurity: "f", gateFingerprint: "x"}
	for k, v := range change {
		values[k] = v
	}
	row := make([]*string, gateColumns)
	for k, v := range values {
		row[k] = &v
	}
	return Gate{Rows: [][]*string{row}, Sent: time.Now()}
}

var described = []Field{{Name: "count", TypeOID: sqltype.OIDInt8}}

const countAhead = "SELECT count(*) FROM t WHERE a > 0"

// ask executes and returns the count, or why not.
func (b *aheadBench) ask(st Statement, g Gate, params ...vector.Datum) (int64, error) {
	batch, err := st.Decide(Session{Forces: true}).Execute(context.Background(), &b.tx, g, described, params)
	if err != nil {
		return 0, err
	}
	defer batch.Release()
	return batch.Columns[0].Ints[0], nil
}

// begun returns a speculation that has ended, after a gate that let the statement pass.
func (b *aheadBench) begun(st Statement, params ...vector.Datum) *speculation {
	b.t.Helper()
	if _, err := b.ask(st, b.gate(nil), params...); err != nil {
		b.t.Fatal(err)
	}
	a := b.begin(st, params...)
	if a == nil {
		b.t.Fatal("nothing was begun")
	}
	a.Run()
	return a
}

func (b *aheadBench) begin(st Statement, params ...vector.Datum) *speculation {
	a, _ := st.Decide(Session{Forces: true}).Speculate(context.Background(), &b.tx, func(planned []uint32) ([]vector.Datum, bool) {
		if len(planned) != len(params) || planned[0] != sqltype.OIDInt4 {
			b.t.Errorf("%v planned", planned)
		}
		return params, true
	}).(*speculation)
	return a
}

// outcome asserts that one speculation has come to something since.
func (b *aheadBench) outcome(what, want string) {
	b.t.Helper()
	now := b.engine.Speculations()
	for o, n := range now {
		if got := n - b.before[o]; got != 0 && o != want || got != 1 && o == want {
			b.t.Errorf("%s: %d %s, want one %s", what, got, o, want)
		}
	}
	b.before = now
}

// answered asserts a count.
func (b *aheadBench) answered(what string, got int64, err error) {
	b.t.Helper()
	if err != nil || got != b.rows {
		b.t.Errorf("%s: %d rows, want %d (%v)", what, got, b.rows, err)
	}
}

// accelerated returns the executions counted as answered here.
func (b *aheadBench) accelerated() (n int64) {
	for _, c := range b.engine.Counts() {
		if c.Route == "accelerated" {
			n += c.N
		}
	}
	return n
}

func TestSpeculationIsTaken(t *testing.T) {
	b := newAheadBench(t)
	st := b.engine.Prepare(countAhead, nil)
	if b.begin(st) != nil {
		t.Error("begun though no gate has let it pass yet")
	}
	a := b.begun(st)
	n := b.accelerated()
	batch, ok := a.Take(b.gate(nil), described, nil)
	if !ok {
		t.Fatal("not taken")
	}
	b.answered("Take", batch.Columns[0].Ints[0], nil)
	b.outcome("Take", speculationHit)
	if b.accelerated() != n+1 {
		t.Error("not counted as accelerated")
	}
	a.Drop()
	if now := b.engine.Speculations(); now[speculationDropped] != 0 {
		t.Errorf("dropped after it was taken: %v", now)
	}
	// One that the gate overtakes is waited for.
	a = b.begin(st)
	if _, ok := a.Take(b.gate(nil), described, nil); ok {
		t.Error("taken before it was computed")
	}
	g := b.gate(nil)
	g.Ahead = a
	in, f := b.engine.view(a.decision.deps, colstore.Everything)
	if f != nil {
		t.Fatal(f)
	}
	releaseAll(in)
	versions := versionsOf(in)
	a.tables.Store(&versions) // as Run does first
	a.stage.Store(speculationRunning)
	go func() {
		time.Sleep(time.Millisecond)
		a.stage.Store(speculationWaiting)
		a.Run()
	}()
	got, err := b.ask(st, g)
	b.answered("one that is overtaken", got, err)
	b.outcome("one that is overtaken", speculationHit)
	// After a commit the newest version is another one, which is taken as well.
	b.commit()
	a = b.begin(st)
	a.Run()
	if batch, ok = a.Take(b.gate(nil), described, nil); !ok {
		t.Fatal("not taken after a commit")
	}
	b.answered("after a commit", batch.Columns[0].Ints[0], nil)
	b.outcome("after a commit", speculationHit)
	// So is one from before a commit that the gate's snapshot does not see.
	a = b.begun(st)
	b.commit()
	b.rows--
	g = b.gate(map[int]string{gateSnapshot: fmt.Sprintf("%d:%d:%d", b.xid-1, b.xid, b.xid-1)})
	if batch, ok = a.Take(g, described, nil); !ok {
		t.Fatal("not taken beside a commit that is not seen")
	}
	b.answered("beside a commit that is not seen", batch.Columns[0].Ints[0], nil)
	b.outcome("beside a commit that is not seen", speculationHit)
}

// TestSpeculationIsNotTaken: where the gate says anything else than was supposed, the
// result is not the one that was begun.
func TestSpeculationIsNotTaken(t *testing.T) {
	b := newAheadBench(t, func(o *Options) { o.Device, o.DeviceKind = idleDevice{}, "cuda" })
	b.tx.passed(nil, supposition{device: deviceCPU})
	cpu := map[int]string{gateDevice: deviceCPU}
	st := b.engine.Prepare(countAhead, nil)
	fresh := func() *speculation {
		t.Helper()
		b.tx.End()
		st.(*statement).current().shape.ahead.hit() // no pause
		if _, err := b.ask(st, b.gate(cpu)); err != nil {
			t.Fatal(err)
		}
		a := b.begin(st)
		if a == nil {
			t.Fatal("nothing was begun")
		}
		a.Run()
		if a.result.err != nil {
			t.Fatal(a.result.err)
		}
		// So that it shows if it is used.
		a.result.batch = &vector.Batch{Rows: 1, Columns: []vector.Column{{Type: vector.TypeOf(vector.Int8), Ints: []int64{-1}}}}
		return a
	}
	f := func(what, outcome string, reason plan.Reason, change map[int]string, between func()) {
		t.Helper()
		a := fresh()
		if between != nil {
			between()
		}
		g := b.gate(cpu)
		for k, v := range change {
			g.Rows[0][k] = &v
		}
		n := b.accelerated()
		if _, ok := a.Take(g, described, nil); ok {
			t.Errorf("%s: taken", what)
		}
		if b.accelerated() != n {
			t.Errorf("%s: counted though it was not taken", what)
		}
		g.Ahead = a
		got, err := b.ask(st, g)
		if reason != "" {
			if plan.ReasonOf(err) != reason {
				t.Errorf("%s: %d, %v, want %s", what, got, err, reason)
			}
		} else {
			b.answered(what, got, err)
		}
		b.outcome(what, outcome)
		a.Drop()
	}
	f("a commit in between", speculationChanged, "", nil, b.commit)
	f("no right", speculationRefused, plan.ReasonPrivilege, map[int]string{gateAllowed: "f"}, nil)
	f("row-level security", speculationRefused, plan.ReasonRLS, map[int]string{gateRowSecurity: "t"}, nil)
	f("own writes", speculationRefused, plan.ReasonOwnWrites, map[int]string{gateNoXID: "f"}, nil)
	f("another table of the name", speculationRefused, plan.ReasonResolved, map[int]string{gateOID: "43"}, nil)
	f("another definition", speculationRefused, plan.ReasonDDL, map[int]string{gateFingerprint: "y"}, nil)
	f("mode off", speculationRefused, plan.ReasonMode, map[int]string{gateMode: "off"}, nil)
	f("a stream that is behind", speculationRefused, plan.ReasonStale, map[int]string{gateInsertLSN: "1/0", gateSnapshot: fmt.Sprintf("%d:%d:", b.xid, b.xid+1)}, nil)
	f("another server", speculationRefused, plan.ReasonServer, map[int]string{gateServer: "elsewhere"}, nil)
	f("another device", speculationSettings, "", map[int]string{gateDevice: "emu"}, nil)
	f("a timeout that cannot be read", speculationRefused, plan.ReasonTimeout, map[int]string{gateTimeout: "soon"}, nil)
	// Another decision's, as after a change of the catalog.
	other := fresh()
	c := *b.store.Catalog()
	b.store.SetCatalog(&c)
	g := b.gate(cpu)
	g.Ahead = other
	got, err := b.ask(st, g)
	b.answered("another catalog", got, err)
	b.outcome("another catalog", speculationSettings)
	b.commit()
	b.rows-- // as that snapshot has it
	f("a snapshot that does not see the last commit", speculationChanged, "", map[int]string{gateSnapshot: fmt.Sprintf("%d:%d:%d", b.xid-1, b.xid, b.xid-1)}, nil)
	b.rows++
	// A gate that refused is not expected to let the next one pass.
	a := fresh()
	g = b.gate(map[int]string{gateDevice: deviceCPU, gateAllowed: "f"})
	g.Ahead = a
	b.ask(st, g)
	if b.begin(st) != nil {
		t.Error("begun after a refusal")
	}
	// Nor is one in a transaction whose snapshot is kept.
	g = b.gate(map[int]string{gateDevice: deviceCPU, gateIsolation: repeatableRead, gateNames: "public.t.a"})
	if got, err := b.ask(st, g); err != nil {
		t.Errorf("REPEATABLE READ: %d, %v", got, err)
	}
	if b.begin(st) != nil {
		t.Error("begun in REPEATABLE READ")
	}
	b.tx.End()
	if a := b.begin(st); a == nil {
		t.Error("not begun after REPEATABLE READ")
	} else {
		a.Drop()
	}
}

// TestSpeculationParameters: the values are those of the execution.
func TestSpeculationParameters(t *testing.T) {
	b := newAheadBench(t)
	st := b.engine.Prepare("SELECT count(*) FROM t WHERE a > $1", []uint32{sqltype.OIDInt4})
	zero, one := vector.Int(vector.Int4, 0), vector.Int(vector.Int4, 1)
	a := b.begun(st, zero)
	if _, ok := a.Take(b.gate(nil), described, []vector.Datum{one}); ok {
		t.Error("taken for another value")
	}
	g := b.gate(nil)
	g.Ahead = a
	if got, err := b.ask(st, g, one); got != 0 || err != nil {
		t.Errorf("%d rows, %v", got, err)
	}
	b.outcome("another value", speculationSettings)
	if b.begin(st, zero) != nil {
		t.Error("begun right after another value came")
	}
	a = b.begun(st, zero)
	if _, ok := a.Take(b.gate(nil), described, []vector.Datum{zero}); !ok {
		t.Error("not taken")
	}
	b.outcome("the same value", speculationHit)
}

// TestSpeculationFails: an error of what was begun is nobody's; the execution is made anew.
func TestSpeculationFails(t *testing.T) {
	b := newAheadBench(t)
	st := b.engine.Prepare(countAhead, nil)
	again := func() *speculation {
		st.(*statement).current().shape.ahead.hit()
		return b.begun(st)
	}
	a := again()
	a.result = computed{err: errors.New("made up")}
	g := b.gate(nil)
	g.Ahead = a
	if _, ok := a.Take(g, described, nil); ok {
		t.Error("an error was taken")
	}
	got, err := b.ask(st, g)
	b.answered("an error", got, err)
	b.outcome("an error", speculationFailed)

	// One that never began.
	st.(*statement).current().shape.ahead.hit()
	a = b.begin(st)
	g.Ahead = a
	got, err = b.ask(st, g)
	b.answered("never begun", got, err)
	b.outcome("never begun", speculationLate)
	a.Run() // comes to nothing
	if a.tables.Load() != nil {
		t.Error("begun after it was given up")
	}

	// Dropped, and cancelled while it is waited for.
	a = again()
	a.Drop()
	a.Drop()
	b.outcome("dropped", speculationDropped)
	if _, ok := a.Take(g, described, nil); ok {
		t.Error("taken after it was dropped")
	}
	a = again()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.Ahead = a
	n := b.accelerated()
	if _, err := st.Decide(Session{Forces: true}).Execute(ctx, &b.tx, g, described, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled execution: %v", err)
	}
	b.outcome("cancelled", speculationDropped)
	if b.accelerated() != n {
		t.Error("a cancelled execution was counted")
	}
	// A panic of what was begun.
	st.(*statement).current().shape.ahead.hit()
	a = b.begin(st)
	a.bound = nil
	a.Run()
	g.Ahead = a
	got, err = b.ask(st, g)
	b.answered("a panic", got, err)
	b.outcome("a panic", speculationFailed)
}

// TestSpeculationBounds: no more at a time than there are processors, and none beside other
// executions there.
func TestSpeculationBounds(t *testing.T) {
	b := newAheadBench(t)
	st := b.engine.Prepare(countAhead, nil)
	if _, err := b.ask(st, b.gate(nil)); err != nil {
		t.Fatal(err)
	}
	var all []*speculation
	for {
		a := b.begin(st)
		if a == nil {
			break
		}
		if all = append(all, a); len(all) > 10_000 {
			t.Fatal("no end of them")
		}
	}
	for i, a := range all {
		if i%2 == 0 {
			a.Run()
		}
		a.Drop()
		a.Run()
		if a.ctx.Err() == nil {
			t.Error("one that was dropped goes on")
		}
	}
	b.engine.speculations.processor.Add(1 << 20)
	if b.begin(st) != nil {
		t.Error("begun beside many executions")
	}
	b.engine.speculations.processor.Add(-1 << 20)
	a := b.begin(st)
	if a == nil {
		t.Fatal("nothing was begun once the others had ended")
	}
	a.Run()
	a.Drop()
}

// TestSpeculationBackoff plays executions whose speculations miss, or hit.
func TestSpeculationBackoff(t *testing.T) {
	var b backoff
	tried := 0
	for range 10_000 {
		if b.allows() {
			tried++
			b.missed()
		}
	}
	if tried < 10 || tried > 60 {
		t.Errorf("%d of 10000 were tried though all missed", tried)
	}
	for !b.allows() {
	}
	b.hit()
	for range 100 {
		if !b.allows() {
			t.Fatal("paused after a hit")
		}
		b.hit()
	}
}
