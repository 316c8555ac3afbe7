package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

func TestMentions(t *testing.T) {
	s := newNameSet(&catalog.Catalog{Tables: []*catalog.Table{{Schema: "public", Name: "lineorder"}, {Schema: "public", Name: "Order Items"},
		{Schema: "public", Name: "Été"}}})
	f := func(sql string, want bool) {
		t.Helper()
		if got := s.in([]byte(sql)); got != want {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	f("", false)
	f("lineorder", true)
	f("select * from LineOrder;", true)
	f(`select * from public."lineorder"l`, true)
	f("select * from lineorder2", false)
	f("select * from xlineorder", false)
	f(`select * from "Order Items"`, true)
	f("select 1 from order", true) // one word of the name decides: seen, then forwarded
	f("select * from pgaccel.tables", true)
	f("set pgaccel.mode = 'off'", true)
	f("select * from pg_prepared_statements", true)
	f("select 'é' from t", false)
	f("select * from ÉTÉ", false) // which Postgres folds to Été no more than we do
	f(`select * from "Été"`, true)
}

func TestBindParams(t *testing.T) {
	numeric := func(text string) vector.Datum {
		d, ok := vector.ParseDecimal(text)
		if !ok {
			t.Fatal(text)
		}
		return vector.Datum{Type: vector.NumericType(vector.VaryingScale), Num: d}
	}
	f := func(want vector.Type, v vector.Datum, ok bool, bound int64) {
		t.Helper()
		d := &decision{deps: &plan.Deps{Params: []vector.Type{want}}, query: &plan.Star{Filter: []plan.Expr{plan.Param{Index: 0, T: want}}}}
		b, fwd := d.bind([]vector.Datum{v}, nil, plan.Rules{})
		if (fwd == nil) != ok {
			t.Errorf("%v for %v: forwarded %v, want ok %v", v, want, fwd, ok)
			return
		}
		if ok {
			if c := b.Filter[0].(plan.Const); c.I != bound || c.Datum.Type != want {
				t.Errorf("%v for %v: bound %+v", v, want, c)
			}
		}
	}
	f(vector.TypeOf(vector.Int4), vector.Int(vector.Int4, 7), true, 7)
	f(vector.TypeOf(vector.Int4), vector.Int(vector.Int8, 7), false, 0)
	f(vector.NumericType(2), numeric("1.5"), true, 150)
	f(vector.NumericType(2), numeric("1.555"), false, 0)
	f(vector.NumericType(2), numeric("100000000000000000000"), false, 0)
	f(vector.TypeOf(vector.Varchar), vector.String("x"), true, 0)
	f(vector.TypeOf(vector.BPChar), vector.String("x"), false, 0)
	server := func(want vector.Type, v vector.Datum, ok bool, bound int64) {
		t.Helper()
		c := plan.ServerConst{SQL: "x", T: want}
		d := &decision{deps: &plan.Deps{ServerConsts: []plan.ServerConst{c}}, query: &plan.Star{Filter: []plan.Expr{c}}}
		b, fwd := d.bind(nil, []vector.Datum{v}, plan.Rules{})
		if (fwd == nil) != ok || ok && b.Filter[0].(plan.Const).I != bound {
			t.Errorf("%v for %v: forwarded %v, want ok %v, bound %v", v, want, fwd, ok, b)
		}
		if _, fwd := d.bind(nil, nil, plan.Rules{}); fwd == nil {
			t.Error("a constant was missing")
		}
	}
	server(vector.TypeOf(vector.Date), vector.Int(vector.Date, 7), true, 7)
	server(vector.TypeOf(vector.Date), vector.Int(vector.Timestamp, 7), false, 0)
	server(vector.TypeOf(vector.Date), vector.Null(vector.TypeOf(vector.Date)), false, 0)
	server(vector.NumericType(0), numeric("2026"), true, 2026)
	server(vector.NumericType(6), numeric("2026"), false, 0)
	server(vector.NumericType(vector.VaryingScale), numeric("2.50"), true, 0)
	// A parameter that the server alone reads is not looked at.
	unread := &decision{deps: &plan.Deps{Params: make([]vector.Type, 1), ServerParams: []uint32{1186}}, query: &plan.Star{}}
	if _, fwd := unread.bind(make([]vector.Datum, 1), nil, plan.Rules{}); fwd != nil {
		t.Error(fwd)
	}
	d := &decision{deps: &plan.Deps{}, query: &plan.Star{}}
	if _, fwd := d.bind([]vector.Datum{vector.Int(vector.Int4, 1)}, nil, plan.Rules{}); fwd == nil {
		t.Error("a value too many was taken")
	}
}

func TestParseTimeout(t *testing.T) {
	f := func(text string, want time.Duration) {
		t.Helper()
		if got := parseTimeout(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	f("0", 0)
	f("1ms", time.Millisecond)
	f("90s", 90*time.Second)
	f("3min", 3*time.Minute)
	f("2h", 2*time.Hour)
	f("1d", 24*time.Hour)
	f("0 0", 0)
	f("0 150ms", 150*time.Millisecond)
	f("2s 0", 2*time.Second)
	f("2s 1min", 2*time.Second)
	f("1min x", 1)
	f("", 1)
	f("soon", 1)
	f("-1", 1)
}

// TestSnapshotRule checks when a copy may answer: it holds no more than the gate's
// snapshot sees, and the stream has shown that it holds no less.
func TestSnapshotRule(t *testing.T) {
	store := colstore.New(colstore.Options{MemoryLimit: 64 << 20})
	defer store.Close()
	meta := &catalog.Table{OID: 42, Schema: "public", Name: "t", Fingerprint: "x",
		Columns: []catalog.Column{{Name: "a", AttNum: 1, Type: vector.TypeOf(vector.Int4)}}}
	store.SetCatalog(&catalog.Catalog{Tables: []*catalog.Table{meta}, WALSegmentSize: 16 << 20, WALBlockSize: 8192})
	e := New(Options{Store: store})
	q := &plan.Deps{Tables: []plan.Table{{Meta: meta, Ref: `"t"`}}}
	want := func(what, snapshot string, lsn uint64, reason plan.Reason) {
		t.Helper()
		snap, err := colstore.ParseSnapshot(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		in, fwd := e.snapshot(context.Background(), q, &gateRow{snapshot: snap, text: snapshot, insertLSN: lsn})
		got := plan.Reason("")
		if fwd != nil {
			got = fwd.Reason
		} else {
			in.Tables[0].Release()
		}
		if got != reason {
			t.Errorf("%s: %q, want %q", what, got, reason)
		}
	}
	publish := func(snapshot string, meta *catalog.Table) {
		t.Helper()
		l := store.NewLoader(meta)
		w := l.NewWriter()
		w.Int(0, 1)
		if err := errors.Join(w.EndRow(), w.Close()); err != nil {
			t.Fatal(err)
		}
		table, err := l.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if table.Snapshot, err = colstore.ParseSnapshot(snapshot); err != nil {
			t.Fatal(err)
		}
		store.Publish(store.NewRelation(table))
	}
	store.SetConnected(true)
	store.Advance(1000)
	want("before the copy", "10:10:", 500, plan.ReasonNotReady)
	publish("10:20:15", meta)
	want("the copy's own snapshot", "10:20:15", 500, "")
	want("a later snapshot", "15:30:15,22", 1000, "")
	want("15 still runs and 30 has begun", "15:30:15", 1000, "")
	want("an older snapshot", "10:18:15", 500, plan.ReasonSnapshot)
	want("12 is invisible, though the copy has it", "10:20:12,15", 500, plan.ReasonSnapshot)
	want("a position that the stream has not reached", "10:20:15", 2000, plan.ReasonStale)
	store.MarkChanged(42)
	want("changed", "10:20:15", 500, plan.ReasonChanged)
	changed := *meta
	changed.Fingerprint = "y"
	publish("10:20:15", &changed)
	want("copied with another definition than the plan's", "10:20:15", 500, plan.ReasonDDL)
	publish("10:20:15", meta)
	want("copied again", "10:20:15", 500, "")
	store.SetConnected(false)
	want("the stream is down", "10:20:15", 2000, plan.ReasonStale)
}

// TestDecisionOutlivesTheCatalog: an execution follows one decision to its end, whatever
// the catalog has become since.
func TestDecisionOutlivesTheCatalog(t *testing.T) {
	b := newAheadBench(t)
	st := b.engine.Prepare(countAhead, nil)
	d := st.Decide(Session{Forces: true})
	if d.Route() != RouteCandidate {
		t.Fatalf("route %d", d.Route())
	}
	before := d.Gate().Params
	b.store.SetCatalog(&catalog.Catalog{WALSegmentSize: 16 << 20, WALBlockSize: 8192})
	if r := st.Decide(Session{Forces: true}).Route(); r != RouteForward {
		t.Errorf("a new execution: route %d", r)
	}
	if params := d.Gate().Params; d.Route() != RouteCandidate || !slices.Equal(params, before) || len(params) != 7 {
		t.Errorf("route %d, gate parameters %q, were %q", d.Route(), params, before)
	}
	b.tx.End()
	if batch, err := d.Execute(context.Background(), &b.tx, b.gate(map[int]string{gateOperators: ""}), described, nil); plan.ReasonOf(err) != plan.ReasonShadowed {
		t.Errorf("%v, %v: the gate is that of another catalog", batch, err)
	}
	batch, err := d.Execute(context.Background(), &b.tx, b.gate(nil), described, nil)
	if err != nil || batch.Columns[0].Ints[0] != b.rows {
		t.Errorf("%v, %v: the gate vouches for what was decided", batch, err)
	}
}

// TestConstantsOfAnotherText: what is known of a text that differs in its constants says
// only whether to forward, never what to ask the gate.
func TestConstantsOfAnotherText(t *testing.T) {
	b := newAheadBench(t)
	b.engine.Prepare("SELECT a FROM t WHERE a = 5", nil) // rows as few as these are forced
	for _, sql := range []string{"SELECT a FROM t WHERE a = 5", "SELECT a FROM t WHERE a = 6", "SELECT a FROM t WHERE a = 6.5",
		"SELECT a FROM t WHERE a = 'x'", "SELECT a FROM t WHERE a = 99999999999"} {
		for _, force := range []bool{false, true, false} {
			d := b.engine.Prepare(sql, nil).Decide(Session{Forces: force})
			params := d.Gate().Params
			if candidate := d.Route() == RouteCandidate; candidate != (len(params) == 7) || candidate && !force {
				t.Errorf("%s, force %v: route %d, %d parameters of the gate", sql, force, d.Route(), len(params))
			}
		}
	}
}

// TestPlans: a long text that is neither known nor like a refused one is planned aside.
func TestPlans(t *testing.T) {
	e := newAheadBench(t).engine
	long := "SELECT sum(a) FROM t WHERE a > 1" + strings.Repeat(" AND a > 1", plansLong/10)
	refused := "SELECT sum(b) FROM t WHERE a > 1" + strings.Repeat(" AND a > 1", plansLong/10)
	for _, c := range []struct {
		sql          string
		before, then bool // once it has been prepared
	}{
		{"SELECT sum(a) FROM t", false, false},
		{"UPDATE t SET a = 1 -- " + strings.Repeat("x", plansLong), false, false},
		{long, true, false},
		{refused, true, false},
		{strings.ReplaceAll(refused, "1", "2"), false, false},
	} {
		if got := e.Plans(c.sql, nil); got != c.before {
			t.Errorf("%.40s: %v at first", c.sql, got)
		}
		e.Prepare(c.sql, nil)
		if got := e.Plans(c.sql, nil); got != c.then {
			t.Errorf("%.40s: %v then", c.sql, got)
		}
	}
}
