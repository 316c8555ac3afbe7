package engine

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/vector"
)

// snapshotBench is a store with one table of one row, copied at 10:20:15, and a plan
// over it.
type snapshotBench struct {
	t      *testing.T
	store  *colstore.Store
	engine *Engine
	query  *plan.Deps
	waits  int // gates that waited
	passed []time.Duration
}

func newSnapshotBench(t *testing.T) *snapshotBench {
	t.Helper()
	b := &snapshotBench{t: t, store: colstore.New(colstore.Options{MemoryLimit: 64 << 20})}
	t.Cleanup(b.store.Close)
	meta := &catalog.Table{OID: 42, Schema: "public", Name: "t", Fingerprint: "x",
		Columns: []catalog.Column{{Name: "a", AttNum: 1, Type: vector.TypeOf(vector.Int4)}}}
	b.store.SetCatalog(&catalog.Catalog{Tables: []*catalog.Table{meta}, WALSegmentSize: 16 << 20, WALBlockSize: 8192})
	b.engine = New(Options{Store: b.store, WaitLimit: 5 * time.Millisecond, Waited: func(d time.Duration) {
		if d > 0 {
			b.waits++
		}
	}, Passed: func(d time.Duration) { b.passed = append(b.passed, d) }})
	b.query = &plan.Deps{Tables: []plan.Table{{Meta: meta, Ref: `"t"`}}}
	l := b.store.NewLoader(meta)
	w := l.NewWriter()
	w.Int(0, 1)
	if err := errors.Join(w.EndRow(), w.Close()); err != nil {
		t.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	table.Snapshot = mustSnapshot(t, "10:20:15")
	b.store.Publish(b.store.NewRelation(table))
	return b
}

func mustSnapshot(t *testing.T, text string) colstore.Snapshot {
	t.Helper()
	s, err := colstore.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *snapshotBench) want(what string, g gateRow, snapshot string, reason plan.Reason) {
	b.t.Helper()
	g.snapshot, g.text = mustSnapshot(b.t, snapshot), snapshot
	if g.isolation == "" {
		g.isolation = "read committed"
	}
	in, fwd := b.engine.snapshot(context.Background(), b.query, &g)
	got := plan.Reason("")
	if fwd != nil {
		got = fwd.Reason
	}
	releaseAll(in)
	if got != reason {
		b.t.Errorf("%s: %q, want %q", what, got, reason)
	}
}

// TestSameSnapshotNeedsNoWait: what the stream was once seen to have passed for a
// snapshot holds for every gate that shows it, on the same connection of the stream.
func TestSameSnapshotNeedsNoWait(t *testing.T) {
	b := newSnapshotBench(t)
	b.store.SetConnected(true)
	b.store.Advance(1000)
	b.want("not seen before", gateRow{insertLSN: 2000}, "20:20:", plan.ReasonStale)
	b.want("reached", gateRow{insertLSN: 1000}, "20:20:", "")
	waits := b.waits
	b.want("the same snapshot, further in the log", gateRow{insertLSN: 2000, sent: time.Now().Add(-time.Hour)}, "20:20:", "")
	if len(b.passed) != 1 || b.passed[0] < time.Hour {
		t.Errorf("a gate that was sent an hour ago: %v", b.passed)
	}
	if b.waits != waits {
		t.Error("waited for a snapshot that was satisfied")
	}
	b.want("in REPEATABLE READ the position counts", gateRow{insertLSN: 2000, isolation: repeatableRead}, "20:20:", plan.ReasonStale)
	b.want("another snapshot", gateRow{insertLSN: 2000}, "20:21:", plan.ReasonStale)
	b.want("which leaves the other as it was", gateRow{insertLSN: 2000}, "20:20:", "")
	b.store.SetConnected(false)
	b.want("the stream is down", gateRow{insertLSN: 500}, "20:20:", plan.ReasonStale)
	b.store.SetConnected(true)
	b.want("another connection", gateRow{insertLSN: 2000}, "20:20:", plan.ReasonStale)
	b.want("reached by that one", gateRow{insertLSN: 500}, "20:20:", "")
	b.want("and known again", gateRow{insertLSN: 2000}, "20:20:", "")
}

// TestReconnectionDuringWait: a wait that is satisfied by a later connection than it
// began in proves nothing of either.
func TestReconnectionDuringWait(t *testing.T) {
	b := newSnapshotBench(t)
	b.engine.opt.WaitLimit = time.Minute
	b.store.SetConnected(true)
	b.store.Advance(1000)
	b.store.OnWait(func(uint64) { // reconnects while nobody waits yet
		b.store.SetConnected(false)
		b.store.SetConnected(true)
		b.store.Advance(3000)
	})
	// The waiter is woken by the end of the first connection.
	b.want("reconnected during the wait", gateRow{insertLSN: 2000}, "20:20:", plan.ReasonStale)
	b.store.OnWait(func(uint64) {})
	b.engine.opt.WaitLimit = time.Millisecond
	b.want("a position that was not reached", gateRow{insertLSN: 4000}, "20:20:", plan.ReasonStale)
}

// TestSessionOnAnotherServer: snapshots and positions of another server than the stream's
// say nothing, whatever they are, be the stream connected or not.
func TestSessionOnAnotherServer(t *testing.T) {
	b := newSnapshotBench(t)
	told := 0
	b.engine.opt.CheckServer = func(server string) {
		if told++; server != "two" {
			t.Errorf("told of %q", server)
		}
	}
	b.store.Restart("one", 0)
	b.store.SetConnected(true)
	b.store.Advance(1000)
	b.want("the same", gateRow{server: "one", insertLSN: 500, sent: time.Now()}, "20:20:", "")
	if told != 0 {
		t.Error("told of the server itself")
	}
	b.want("another, at a position that was passed", gateRow{server: "two", insertLSN: 500}, "20:30:", plan.ReasonServer)
	b.want("with a snapshot that is known", gateRow{server: "two", insertLSN: 500}, "20:20:", plan.ReasonServer)
	b.want("further in its log", gateRow{server: "two", insertLSN: 2000}, "20:30:", plan.ReasonServer)
	b.want("in REPEATABLE READ", gateRow{server: "two", insertLSN: 500, isolation: repeatableRead}, "20:20:", plan.ReasonServer)
	b.want("with staleness", gateRow{server: "two", insertLSN: 2000, staleness: time.Hour}, "20:30:", plan.ReasonServer)
	b.store.SetConnected(false)
	b.want("with staleness, while the stream is down", gateRow{server: "two", insertLSN: 2000, staleness: time.Hour}, "20:30:", plan.ReasonServer)
	if told != 6 {
		t.Errorf("told %d times", told)
	}
	b.engine.opt.CheckServer = nil
	b.store.Restart("two", 0)
	b.store.SetConnected(true)
	b.store.Advance(1000)
	b.want("the stream has moved", gateRow{server: "two", insertLSN: 500}, "20:20:", "")
	b.want("a session that has not", gateRow{server: "one", insertLSN: 500}, "20:20:", plan.ReasonServer)
}

// TestDefinitionsOnAnotherServer: what names, rights and definitions another server has says
// nothing of the tables that were copied; the server is looked at, not the table.
func TestDefinitionsOnAnotherServer(t *testing.T) {
	b := newAheadBench(t)
	told := 0
	b.engine.opt.CheckServer = func(server string) {
		if told++; server != "elsewhere" {
			t.Errorf("told of %q", server)
		}
	}
	b.engine.opt.CheckDefinition = func(uint32) { t.Error("a table is looked at") }
	st := b.engine.Prepare(countAhead, nil)
	for i, change := range []map[int]string{{gateFingerprint: "y"}, {gateOID: "43"}, {gateAllowed: "f"}, {gateShadowed: "t"}, {gateOperators: "m"},
		{gateCallable: "f"}, {gateFingerprint: "y", gateIsolation: repeatableRead}, {gateNoXID: "f"}} {
		change[gateServer] = "elsewhere"
		b.tx.End()
		if _, err := b.ask(st, b.gate(change)); plan.ReasonOf(err) != plan.ReasonServer || told != i+1 {
			t.Errorf("%v: %v, told %d times", change, err, told)
		}
		if b.tx.snapshot != "" {
			t.Errorf("%v: history is kept for a snapshot of another server", change)
		}
	}
	for what, reason := range map[int]plan.Reason{gateMode: plan.ReasonMode, gateInsertLSN: plan.ReasonStandby} {
		g := b.gate(map[int]string{gateServer: "elsewhere", gateMode: "off"})
		if what == gateInsertLSN {
			g = b.gate(map[int]string{gateServer: "elsewhere"})
			g.Rows[0][gateInsertLSN] = nil
		}
		if _, err := b.ask(st, g); plan.ReasonOf(err) != reason {
			t.Errorf("%v, want %s", err, reason)
		}
	}
}

// TestReconnectionWhileTaken: tables are of the connection that the gate was compared with.
func TestReconnectionWhileTaken(t *testing.T) {
	b := newSnapshotBench(t)
	b.store.Restart("one", 0)
	b.store.SetConnected(true)
	b.store.Advance(1000)
	g := &gateRow{server: "one", insertLSN: 500, snapshot: mustSnapshot(t, "20:20:"), text: "20:20:", isolation: "read committed"}
	in, f := b.engine.moment(context.Background(), g, func(snap colstore.Snapshot) (olap.Input, *plan.Forward) {
		b.store.SetConnected(false)
		b.store.Restart("two", 1000)
		b.store.SetConnected(true)
		return b.engine.view(b.query, snap)
	})
	if f == nil || f.Reason != plan.ReasonStale || len(in.Tables) != 0 {
		t.Errorf("%v, %d tables", f, len(in.Tables))
	}
}

func TestParseStaleness(t *testing.T) {
	f := func(text string, want time.Duration, ok bool) {
		t.Helper()
		if got, gotOK := parseStaleness(text); got != want || gotOK != ok {
			t.Errorf("%q: %v, %v, want %v, %v", text, got, gotOK, want, ok)
		}
	}
	f("", 0, true)
	f("0", 0, true)
	f("250", 250*time.Millisecond, true)
	f("5s", 5*time.Second, true)
	f(" 5 s ", 5*time.Second, true)
	f("1.5s", 1500*time.Millisecond, true)
	f(".5s", 500*time.Millisecond, true)
	f("500ms", 500*time.Millisecond, true)
	f("90us", 90*time.Microsecond, true)
	f("1min", time.Minute, true)
	f("2h", 2*time.Hour, true)
	f("1d", 24*time.Hour, true)
	f("-1", 0, false)
	f("soon", 0, false)
	f("5 sec", 0, false)
	f("5S", 0, false)
	f("1e400", 0, false)
	f("99999999999999999999999d", 0, false)
	f(".", 0, false)
}

// TestTransactionKeepsOneSnapshot counts what is kept for REPEATABLE READ.
func TestTransactionKeepsOneSnapshot(t *testing.T) {
	b := newSnapshotBench(t)
	want := func(what string, n int64) {
		t.Helper()
		if got := b.engine.Pins(); got != n {
			t.Errorf("%s: %d snapshots are kept, want %d", what, got, n)
		}
	}
	keep := func(tx *Transaction, text string) { tx.keep(b.engine, mustSnapshot(t, text), text) }
	var tx, other Transaction
	tx.End()
	want("ended before it began", 0)
	keep(&tx, "20:20:")
	keep(&tx, "20:20:")
	want("two statements of one transaction", 1)
	keep(&other, "20:20:")
	want("two sessions", 2)
	keep(&tx, "20:30:25")
	want("COMMIT AND CHAIN", 2)
	tx.End()
	tx.End()
	want("one ended", 1)
	keep(&tx, "20:20:")
	want("and began another", 2)
	tx.Close()
	want("a session closed", 1)
	keep(&tx, "20:20:")
	want("an execution that outlives its session", 1)
	other.Close()
	want("all closed", 0)
}

// TestGateIsKept: the first gate of a REPEATABLE READ transaction is kept, whatever
// becomes of its statement.
func TestGateIsKept(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	d := &decision{statement: &statement{engine: b.engine}, deps: b.query, query: &plan.Star{}, catalog: &catalog.Catalog{Operators: "something else"}, shape: &shape{}}
	var tx Transaction
	execute := func(what string, reason plan.Reason, kept int64) {
		t.Helper()
		_, err := d.execute(context.Background(), &tx, b.gate(c, b.query), nil, nil)
		if r := plan.ReasonOf(err); r != reason {
			t.Errorf("%s: %v, want %q", what, err, reason)
		}
		if n := b.engine.Pins(); n != kept {
			t.Errorf("%s: %d snapshots are kept, want %d", what, n, kept)
		}
	}
	execute("READ COMMITTED", plan.ReasonShadowed, 0)
	b.exec(c, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	execute("REPEATABLE READ", plan.ReasonShadowed, 1)
	b.exec(b.admin, "CREATE TABLE anything (a int)")
	execute("its second statement", plan.ReasonShadowed, 1)
	b.exec(c, "COMMIT AND CHAIN")
	execute("the next transaction", plan.ReasonShadowed, 1)
	tx.End()
	if n := b.engine.Pins(); n != 0 {
		t.Errorf("%d snapshots are kept after the end", n)
	}
}

// TestStalenessIsSeen: the gate returns pgaccel.max_staleness, and what cannot be read
// is counted and forwards nothing.
func TestStalenessIsSeen(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	f := func(sql string, want time.Duration, bad bool) {
		t.Helper()
		b.exec(c, sql)
		g, err := parseGate(b.gate(c, b.query), len(b.query.Tables))
		if err != nil || g.staleness != want || g.badStaleness != bad {
			t.Errorf("%s: %v, bad %v, %v", sql, g.staleness, g.badStaleness, err)
		}
		b.want(c, sql, "")
	}
	f("SELECT 1", 0, false)
	f("SET pgaccel.max_staleness = '5s'", 5*time.Second, false)
	f("SET pgaccel.max_staleness = 250", 250*time.Millisecond, false)
	f("SET pgaccel.max_staleness = 'a while'", 0, true)
	f("BEGIN; SET LOCAL pgaccel.max_staleness = '1min'", time.Minute, false)
	f("ROLLBACK; RESET pgaccel.max_staleness", 0, false)
}

// TestStalenessSkipsTheWait: where the stream is behind, the newest snapshot that it
// has passed answers, if it is young enough.
func TestStalenessSkipsTheWait(t *testing.T) {
	b := newSnapshotBench(t)
	b.store.SetConnected(true)
	b.store.Advance(1000)
	now := time.Now()
	b.want("nothing to fall back on", gateRow{insertLSN: 2000, sent: now, staleness: time.Hour}, "20:21:", plan.ReasonStale)
	b.want("satisfied", gateRow{insertLSN: 1000, sent: now}, "20:20:", "")
	waits := b.waits
	b.want("behind", gateRow{insertLSN: 2000, sent: now, staleness: time.Hour}, "20:21:", "")
	if b.waits != waits {
		t.Error("waited")
	}
	b.want("not allowed to be stale", gateRow{insertLSN: 2000, sent: now}, "20:21:", plan.ReasonStale)
	b.want("too old", gateRow{insertLSN: 2000, sent: now, staleness: 1}, "20:21:", plan.ReasonStale)
	b.want("REPEATABLE READ", gateRow{insertLSN: 2000, sent: now, staleness: time.Hour, isolation: repeatableRead}, "20:21:", plan.ReasonStale)
}

// TestWrongShapeIsForwarded: a shape that a check found wrong is not answered any more.
func TestWrongShapeIsForwarded(t *testing.T) {
	b := newSnapshotBench(t)
	b.store.SetConnected(true)
	st := b.engine.Prepare("SELECT a FROM t WHERE a > 5", nil).(*statement)
	if r := st.Decide(Session{Forces: true}).Route(); r != RouteCandidate {
		t.Fatalf("route %d: %v", r, st.current().forward)
	}
	d := st.current()
	b.engine.checked(d, &gateRow{}, Comparison{Verdict: Inconclusive})
	b.engine.checked(d, &gateRow{}, Comparison{Verdict: Equal})
	if r := st.Decide(Session{Forces: true}).Route(); r == RouteForward {
		t.Error("forwarded after an equal answer")
	}
	b.engine.log = slog.New(slog.DiscardHandler)
	b.engine.checked(d, &gateRow{}, Comparison{Verdict: Different})
	other := b.engine.Prepare("SELECT a FROM t WHERE a > 6", nil)
	for _, x := range []Statement{st, other} {
		if r := x.Decide(Session{Forces: true}).Route(); r != RouteForward {
			t.Errorf("route %d after a difference", r)
		}
		x.Decide(Session{Forces: true}).Forwarded("")
	}
	if f := b.engine.checkGate(d, &gateRow{}); f == nil || f.Reason != plan.ReasonMismatch {
		t.Errorf("an execution under way: %v", f)
	}
	if r := b.engine.Prepare("SELECT max(a) FROM t", nil).Decide(Session{Forces: true}).Route(); r == RouteForward {
		t.Error("another shape is forwarded, too")
	}
	rows := b.engine.queryRows(true)
	if len(rows) != 1 || rows[0].Checks != 2 || rows[0].Mismatches != 1 || rows[0].Reason != string(plan.ReasonMismatch) {
		t.Errorf("pgaccel.queries: %+v", rows)
	}
	// The shape may be forgotten by the statistics; what is known of it may not.
	b.engine.stats.shapes.Purge()
	if r := b.engine.Prepare("SELECT a FROM t WHERE a > 7", nil).Decide(Session{Forces: true}).Route(); r != RouteForward {
		t.Errorf("route %d of a shape that the statistics have forgotten", r)
	}
	if n := b.engine.Verdicts(Equal) + 10*b.engine.Verdicts(Different) + 100*b.engine.Verdicts(Inconclusive); n != 111 {
		t.Errorf("verdicts %d", n)
	}
}

func TestTotalOrder(t *testing.T) {
	meta := &catalog.Table{Name: "t", Columns: []catalog.Column{{Name: "a"}, {Name: "b"}}, Indexes: []catalog.Index{{Columns: []int{0}, Unique: true}}}
	column := func(table, c int) plan.Order { return plan.Order{Expr: plan.Column{Table: table, Column: c}} }
	key := func(i int) plan.Order { return plan.Order{Expr: plan.Key{Index: i}} }
	f := func(want bool, q plan.Star) {
		t.Helper()
		q.Tables = []plan.Source{{Meta: meta}, {Meta: meta}}
		if got := totalOrder(&q); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	groups := []plan.Expr{plan.Column{Column: 0}, plan.Column{Column: 1}}
	f(false, plan.Star{})
	f(true, plan.Star{Order: []plan.Order{column(0, 1), column(0, 0)}})
	f(false, plan.Star{Order: []plan.Order{column(0, 1)}})
	f(false, plan.Star{Order: []plan.Order{column(1, 0)}})
	f(true, plan.Star{Grouped: true})
	f(false, plan.Star{Grouped: true, Group: groups})
	f(false, plan.Star{Grouped: true, Group: groups, Order: []plan.Order{key(1)}})
	f(true, plan.Star{Grouped: true, Group: groups, Order: []plan.Order{key(1), key(0)}})
	f(false, plan.Star{Grouped: true, Group: groups, Order: []plan.Order{key(1), key(0)}, Sets: []uint64{3, 1}})
	f(false, plan.Star{Order: []plan.Order{column(0, 0)}, Joins: []plan.StarJoin{{Table: 1, Many: true}}})
	f(true, plan.Star{Order: []plan.Order{column(0, 0)}, Joins: []plan.StarJoin{{Table: 1}}})
}

// TestFloatSumSetting: who wants Postgres' own sums of floats gets them, and everything
// else from here.
func TestFloatSumSetting(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	float := plan.Star{Grouped: true}
	float.Aggs = []plan.AggregateCall{{Func: plan.Avg, Arg: plan.Const{Datum: vector.Float(1)}, T: vector.TypeOf(vector.Float8)}}
	step := func(sql string, reason plan.Reason) {
		t.Helper()
		b.exec(c, sql)
		b.star = &plan.Star{}
		b.want(c, sql+", no floats", "")
		b.star = &float
		b.want(c, sql, reason)
	}
	step("SELECT 1", "")
	step("SET pgaccel.float_sum = 'forward'", plan.ReasonSettings)
	step("SET pgaccel.float_sum = 'exact'", "")
	step("BEGIN; SET LOCAL pgaccel.float_sum = 'forward'", plan.ReasonSettings)
	step("ROLLBACK; RESET pgaccel.float_sum", "")
}
