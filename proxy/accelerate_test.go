package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
	"pgaccel/wire"
)

// forEachModel runs a test with both drivers.
func forEachModel(t *testing.T, f func(t *testing.T, change func(*Config))) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) { f(t, m.set) })
	}
}

// candidateSQL has one int4 column; Postgres would answer 1.
const candidateSQL = "select 1 as accel"

func wantTypes(t *testing.T, got []message, want string) {
	t.Helper()
	var b strings.Builder
	for _, m := range got {
		if m.typ <= 1 {
			b.WriteString(m.String())
		} else {
			b.WriteByte(m.typ)
		}
	}
	if b.String() != want {
		t.Fatalf("messages %s, want %s:\n%s", b.String(), want, show(got))
	}
}

// rows returns the text values of one-column rows.
func rows(list []message) (out []string) {
	for _, m := range list {
		if m.typ == 'D' {
			out = append(out, m.body[6:])
		}
	}
	return out
}

func wantRows(t *testing.T, got []message, want ...string) {
	t.Helper()
	if r := rows(got); !slices.Equal(r, want) {
		t.Fatalf("rows %q, want %q:\n%s", r, want, show(got))
	}
}

// direct is what Postgres itself says.
func direct(t *testing.T, groups ...[][]byte) []message {
	c := mustConnect(t, postgresAddress(), "")
	defer c.Close()
	return turns(groups...)(c)
}

func without(list []message, types string) (out []message) {
	for _, m := range list {
		if !strings.ContainsRune(types, rune(m.typ)) {
			out = append(out, m)
		}
	}
	return out
}

func TestSimpleQueryIsAnswered(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(candidateSQL, candidate(numbers(7, 8)))
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		for _, status := range []string{"I", "T", "T"} {
			if status == "T" {
				c.exchange(query("begin"))
			}
			got := c.exchange(query(candidateSQL))
			wantTypes(t, got, "TDDCZ")
			wantRows(t, got, "7", "8")
			if want := direct(t, g(query(candidateSQL))); got[0] != want[0] {
				t.Errorf("RowDescription %v, Postgres says %v", got[0], want[0])
			}
			if got[3].body != "SELECT 2\x00" || got[4].body != status {
				t.Errorf("ended by %v", got[3:])
			}
		}
		if n := st.executions.Load(); n != 3 {
			t.Errorf("%d executions", n)
		}
		if st.saw().gateRows != 1 {
			t.Errorf("gate gave %d rows", st.saw().gateRows)
		}
		if len(st.saw().fields) != 1 || st.saw().fields[0] != (engine.Field{Name: "accel", TypeOID: sqltype.OIDInt4, Typmod: -1}) {
			t.Errorf("described as %v", st.saw().fields)
		}
		// The server's state is as if it had answered.
		wantRows(t, c.exchange(query("select count(*) from pg_prepared_statements where name = 'pgaccel_query'")), "0")
	})
}

func TestEmptyAndLargeAnswers(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		n := 300_000
		big := make([]int64, n)
		for i := range big {
			big[i] = int64(i)
		}
		f.add("select 1 as accel_big", candidate(numbers(big...)))
		f.add("select 1 as accel_none", candidate(numbers()))
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		got := c.exchange(query("select 1 as accel_big"))
		if r := rows(got); len(r) != n || r[n-1] != fmt.Sprint(n-1) || got[len(got)-2].body != fmt.Sprintf("SELECT %d\x00", n) {
			t.Fatalf("%d rows, tag %v", len(r), got[len(got)-2])
		}
		wantTypes(t, c.exchange(query("select 1 as accel_none")), "TCZ")
		wantRows(t, c.exchange(query("select 3")), "3")
	})
}

// TestForwardedAsIfNothingHadBeen covers every way in which the gate's round trip
// ends in the server's own answer.
func TestForwardedAsIfNothingHadBeen(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		refused := f.add("select 2 as accel", &fakeStatement{route: engine.RouteCandidate, err: &plan.Forward{Reason: plan.ReasonPrivilege}})
		broken := f.add("select 3 as accel", &fakeStatement{route: engine.RouteCandidate, err: errors.New("a bug")})
		unwritable := f.add("select 'x'::text as accel", candidate(numbers(1))) // an integer is no text
		f.add("select nosuch as accel", candidate(numbers(1)))
		f.add("select 1/0 as accel", candidate(numbers(1)))
		f.add(candidateSQL, candidate(numbers(7)))
		s := startProxy(t, f, change)
		for _, sql := range []string{"select 2 as accel", "select 3 as accel", "select 'x'::text as accel", "select nosuch as accel",
			"select $1 as accel", "select 5 as accel", "create temp table accel(a int)"} {
			for _, begin := range []string{"select 0", "begin"} {
				groups := [][][]byte{g(query(begin)), g(query(sql)), g(query("select 4")), g(parse("", sql), describe('S', ""), bind("", "", nil), execute("", 0), syncing()),
					g(parse("", "select 6"), bind("", "", nil), execute("", 0), syncing()), g(query("rollback"))}
				c := mustConnect(t, s.Addr().String(), "")
				got, want := show(turns(groups...)(c)), show(direct(t, groups...))
				c.Close()
				if got != want {
					t.Errorf("%s; %s: through pgaccel:\n%s\ndirect:\n%s", begin, sql, got, want)
				}
			}
		}
		if refused.executions.Load() != 4 || broken.executions.Load() != 4 || refused.forwarded.Load() != 0 {
			t.Errorf("executions %d, %d; forwarded by the proxy %d", refused.executions.Load(), broken.executions.Load(), refused.forwarded.Load())
		}
		if unwritable.saw().reason != plan.ReasonSettings {
			t.Errorf("reason %q", unwritable.saw().reason)
		}
	})
}

func TestFailedTransactionIsForwarded(t *testing.T) {
	f := newFake()
	st := f.add(candidateSQL, candidate(numbers(7)))
	s := startProxy(t, f)
	groups := [][][]byte{g(query("begin")), g(query("select 1/0")), g(query(candidateSQL)), g(parse("", candidateSQL), syncing()), g(query("rollback"))}
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	if got, want := show(turns(groups...)(c)), show(direct(t, groups...)); got != want {
		t.Errorf("through pgaccel:\n%s\ndirect:\n%s", got, want)
	}
	if st.executions.Load() != 0 {
		t.Error("executed in a failed transaction")
	}
}

// TestExtendedIsAnswered walks through the batches that drivers send.
func TestExtendedIsAnswered(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(candidateSQL, candidate(numbers(7, 8)))
		s := startProxy(t, f, change)
		for name, sc := range map[string]struct {
			groups [][][]byte
			want   string
		}{
			"psycopg":         {[][][]byte{g(parse("", candidateSQL), bind("", "", nil), describe('P', ""), execute("", 0), syncing())}, "12TDDCZ"},
			"no Describe":     {[][][]byte{g(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())}, "12DDCZ"},
			"pgx":             {[][][]byte{g(parse("a", candidateSQL), describe('S', "a"), syncing()), g(bind("", "a", nil), execute("", 0), syncing()), g(bind("", "a", nil), execute("", 0), syncing())}, "1tTZ2DDCZ2DDCZ"},
			"BEGIN in batch":  {[][][]byte{g(parse("", "begin"), bind("", "", nil), execute("", 0), parse("", candidateSQL), bind("", "", nil), describe('P', ""), execute("", 0), syncing())}, "12C12TDDCZ"},
			"twice in batch":  {[][][]byte{g(parse("", candidateSQL), bind("", "", nil), execute("", 0), bind("", "", nil), execute("", 0), syncing())}, "12DDC2DDCZ"},
			"finished":        {[][][]byte{g(parse("", candidateSQL), bind("", "", nil), execute("", 0), execute("", 0), syncing())}, "12DDCCZ"},
			"closed names":    {[][][]byte{g(parse("s", candidateSQL), bind("p", "s", nil), closing('S', "s"), execute("p", 0), closing('P', "p"), syncing())}, "123DDC3Z"},
			"others follow":   {[][][]byte{g(parse("", candidateSQL), bind("", "", nil), execute("", 0), parse("", "select 5"), bind("", "", nil), execute("", 0), syncing())}, "12DDC12DCZ"},
			"an error before": {[][][]byte{g(parse("", "select 1/0"), bind("", "", nil), execute("", 0), parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())}, "1EZ"},
			"an error after":  {[][][]byte{g(parse("", candidateSQL), bind("", "", nil), execute("", 0), bind("", "nope", nil), execute("", 0), syncing())}, "12DDCEZ"},
		} {
			t.Run(name, func(t *testing.T) {
				c := mustConnect(t, s.Addr().String(), "")
				defer c.Close()
				before := st.executions.Load()
				got := turns(sc.groups...)(c)
				wantTypes(t, got, sc.want)
				// Everything but the rows and their number is what Postgres says.
				if got, want := show(without(got, "DC")), show(without(direct(t, sc.groups...), "DC")); got != want {
					t.Errorf("through pgaccel:\n%s\ndirect:\n%s", got, want)
				}
				if n := st.executions.Load() - before; n == 0 && name != "an error before" {
					t.Error("not executed")
				}
				wantRows(t, c.exchange(query("select 11")), "11")
			})
		}
	})
}

// TestPrepared: the engine is told of statements that will be executed later, if at all.
func TestPrepared(t *testing.T) {
	f := newFake()
	st := f.add(candidateSQL, candidate(numbers(7)))
	s := startProxy(t, f)
	for name, sc := range map[string]struct {
		messages [][]byte
		want     int32
	}{
		"named":                {g(parse("a", candidateSQL), describe('S', "a"), syncing()), 1},
		"named, not described": {g(parse("a", candidateSQL), syncing()), 1},
		"described":            {g(parse("", candidateSQL), describe('S', ""), syncing()), 1},
		"executed at once":     {g(parse("", candidateSQL), bind("", "", nil), describe('P', ""), execute("", 0), syncing()), 0},
		"a simple Query":       {g(query(candidateSQL)), 0},
	} {
		c := mustConnect(t, s.Addr().String(), "")
		before := st.prepared.Load()
		c.exchange(sc.messages...)
		if n := st.prepared.Load() - before; n != sc.want {
			t.Errorf("%s: prepared %d times, want %d", name, n, sc.want)
		}
		c.Close()
	}
}

func TestFlushedExtendedIsAnswered(t *testing.T) {
	f := newFake()
	f.add(candidateSQL, candidate(numbers(7)))
	c := mustConnect(t, startProxy(t, f).Addr().String(), "")
	defer c.Close()
	c.send(parse("a", candidateSQL), describe('S', "a"), flushing())
	wantTypes(t, c.until('T'), "1tT")
	c.send(bind("", "a", nil), execute("", 0), flushing())
	wantTypes(t, c.until('C'), "2DC")
	wantTypes(t, c.exchange(syncing()), "Z")
}

// TestRowLimits is W15 for answers of our own.
func TestRowLimits(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const sql = "select generate_series(1,3) as accel"
		f := newFake()
		f.add(sql, candidate(numbers(1, 2, 3)))
		s := startProxy(t, f, change)
		begin := g(query("begin"))
		for _, groups := range [][][][]byte{
			{g(parse("", sql), bind("", "", nil), execute("", 3), execute("", 3), syncing())},
			{g(parse("", sql), bind("", "", nil), execute("", 2), execute("", 0), syncing())},
			{g(parse("", sql), bind("", "", nil), execute("", 2), execute("", 2), execute("", 2), execute("", 0), syncing())},
			{g(parse("", sql), bind("", "", nil), execute("", 0), execute("", 0), syncing())},
			{g(parse("", sql), bind("p", "", nil), execute("p", 2), syncing()), g(execute("p", 2), syncing())},
			{begin, g(parse("", sql), bind("p", "", nil), execute("p", 2), syncing()), g(execute("p", 2), syncing()), g(query("commit")), g(execute("p", 2), syncing())},
			{begin, g(parse("", sql), bind("p", "", nil), execute("p", 1), syncing()), g(query("savepoint s")), g(query("rollback to s")), g(execute("p", 1), syncing()), g(query("rollback"))},
			{begin, g(parse("", sql), bind("p", "", nil), execute("p", 1), syncing()), g(query("select 1/0")), g(execute("p", 1), syncing()), g(query("rollback"))},
			{begin, g(parse("", sql), bind("p", "", nil), execute("p", 1), closing('P', "p"), syncing()), g(execute("p", 1), syncing()), g(query("rollback"))},
			{begin, g(parse("", sql), bind("p", "", nil), execute("p", 1), syncing()), g(parse("", "commit"), bind("", "", nil), execute("", 0), execute("p", 1), syncing())},
			{begin, g(parse("", sql), bind("", "", nil), execute("", 1), syncing()), g(query("select 1")), g(execute("", 1), syncing()), g(query("rollback"))},
			{begin, g(parse("x", sql), bind("p", "x", nil), execute("p", 1), syncing()), g(query("deallocate x")), g(execute("p", 1), syncing()), g(query("rollback"))},
			{begin, g(parse("", sql), bind("p", "", nil), execute("p", 1), syncing()), g(query("savepoint s")), g(parse("", sql), bind("q", "", nil), execute("q", 1), syncing()), g(query("rollback to s")), g(execute("q", 1), syncing()), g(query("rollback"))},
		} {
			c := mustConnect(t, s.Addr().String(), "")
			// That a portal is gone is found by Describe, so that the error names another
			// place in Postgres' source.
			if got, want := show(withoutSource(turns(groups...)(c))), show(withoutSource(direct(t, groups...))); got != want {
				t.Errorf("through pgaccel:\n%s\ndirect:\n%s", got, want)
			}
			c.Close()
		}
	})
}

var source = regexp.MustCompile(`\x00L\d+\x00R\w+\x00`)

func withoutSource(list []message) []message {
	for i := range list {
		if list[i].typ == 'E' {
			list[i].body = source.ReplaceAllString(list[i].body, "\x00")
		}
	}
	return list
}

func TestParametersAndFormats(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const sql = "select $1::int4 as accel, $2::text, $3::date, $4::numeric"
		f := newFake()
		st := f.add(sql, candidate(&vector.Batch{Rows: 1, Columns: []vector.Column{
			{Type: vector.TypeOf(vector.Int4), Ints: []int64{41}}, {Type: vector.TypeOf(vector.Text), Strs: []string{"é"}},
			{Type: vector.TypeOf(vector.Date), Ints: []int64{0}}, {Type: vector.NumericType(vector.VaryingScale), Decimals: []vector.Decimal{{Unscaled: vector.Int128Of(125), Scale: 2}}}}}))
		s := startProxy(t, f, change)
		for _, formats := range [][]int16{nil, {1}, {0, 1, 1, 0}, {1, 0, 0, 1}} {
			for _, late := range []bool{false, true} { // whether Describe comes from the client
				c := mustConnect(t, s.Addr().String(), "")
				first := g(parse("a", sql), syncing())
				if !late {
					first = g(parse("a", sql), describe('S', "a"), syncing())
				}
				groups := [][][]byte{first, g(bind("", "a", []string{"41", "é", "2000-01-01", "1.25"}, formats...), execute("", 0), syncing())}
				if got, want := show(turns(groups...)(c)), show(direct(t, groups...)); got != want {
					t.Errorf("formats %v: through pgaccel:\n%s\ndirect:\n%s", formats, got, want)
				}
				c.Close()
			}
		}
		if n := st.executions.Load(); n != 8 {
			t.Errorf("%d executions", n)
		}
		if len(st.saw().params) != 4 || st.saw().params[0].I != 41 || st.saw().params[1].Str != "é" || st.saw().params[2].Type.Kind != vector.Date {
			t.Errorf("parameters %v", st.saw().params)
		}
		// Binary values, as asyncpg sends them; and null.
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		var b []byte
		b = appendCString(appendCString(open(b, wire.Bind), ""), "")
		b = append(b, ints16(1, 0, 1, 0)...)
		b = append(b, 0, 4, 0, 0, 0, 4, 0, 0, 0, 9)
		b = binary.BigEndian.AppendUint32(b, 0xffffffff)
		b = append(b, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, '2', 0, 0)
		wantTypes(t, c.exchange(parse("", sql), seal(b, 0), execute("", 0), syncing()), "12DCZ")
		if st.saw().params[0].I != 9 || !st.saw().params[1].Null || st.saw().params[2].I != 1 {
			t.Errorf("parameters %v", st.saw().params)
		}
		// A value that cannot be read is Postgres' business.
		before := st.executions.Load()
		wantTypes(t, c.exchange(parse("", sql), bind("", "", []string{"1", "x", "tomorrow", "1"}), execute("", 0), syncing()), "12DCZ")
		if st.executions.Load() != before || st.saw().reason != plan.ReasonParameter {
			t.Errorf("a parameter of no fixed meaning: %d executions, reason %q", st.executions.Load()-before, st.saw().reason)
		}
	})
}

func TestForcedNeedsTheSetting(t *testing.T) {
	f := newFake()
	f.word = "accel"
	st := f.add(candidateSQL, &fakeStatement{route: engine.RouteCandidate, forced: true, batch: numbers(7)})
	s := startProxy(t, f)
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	wantRows(t, c.exchange(query(candidateSQL)), "1")
	if st.forwarded.Load() != 1 || st.executions.Load() != 0 {
		t.Errorf("forwarded %d, executed %d", st.forwarded.Load(), st.executions.Load())
	}
	c.exchange(query("SET PgAccel.Mode = 'force'"))
	wantRows(t, c.exchange(query(candidateSQL)), "7")
	o := mustConnect(t, s.Addr().String(), "-c pgaccel.mode=force")
	defer o.Close()
	wantRows(t, o.exchange(query(candidateSQL)), "7")
}

func TestSplitQueries(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		last := candidate(numbers(7))
		add := func(prefix, sql string) {
			f.add(prefix+sql, &fakeStatement{route: engine.RouteSplit, prefix: prefix, last: sql, lastSt: last})
		}
		add("BEGIN;", candidateSQL)
		add("SAVEPOINT s;", candidateSQL)
		add("SAVEPOINT 'é;", candidateSQL)
		add("SET datestyle = 'ISO';", candidateSQL)
		add("BEGIN;", "select nosuch as accel")
		add("BEGIN; /* é */", "select nosuch as accel")
		s := startProxy(t, f, change)
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		got := c.exchange(query("BEGIN;" + candidateSQL))
		wantTypes(t, got, "CTDCZ")
		wantRows(t, got, "7")
		if got[4].body != "T" {
			t.Errorf("status %v", got[4])
		}
		wantTypes(t, c.exchange(query("SAVEPOINT s;"+candidateSQL)), "CTDCZ")
		if n := last.executions.Load(); n != 2 {
			t.Errorf("%d executions", n)
		}
		c.exchange(query("rollback"))
		// SET and SELECT in one implicit transaction stay one.
		wantRows(t, c.exchange(query("SET datestyle = 'ISO';"+candidateSQL)), "1")
		for _, sql := range []string{"BEGIN;select nosuch as accel", "BEGIN; /* é */select nosuch as accel", "SAVEPOINT 'é;" + candidateSQL, "SAVEPOINT s;" + candidateSQL} {
			groups := [][][]byte{g(query(sql)), g(query("select 1")), g(query("rollback"))}
			n := mustConnect(t, s.Addr().String(), "")
			if got, want := show(turns(groups...)(n)), show(direct(t, groups...)); got != want {
				t.Errorf("%s: through pgaccel:\n%s\ndirect:\n%s", sql, got, want)
			}
			n.Close()
		}
	})
}

// TestStatementsOfUnknownMeaning covers statements whose names may mean something
// else by the time they are executed.
func TestStatementsOfUnknownMeaning(t *testing.T) {
	f := newFake()
	st := f.add(candidateSQL, candidate(numbers(7)))
	s := startProxy(t, f)
	for name, groups := range map[string][][][]byte{
		"deallocated":         {g(parse("a", candidateSQL), syncing()), g(query("deallocate a; prepare a as select 2")), g(bind("", "a", nil), execute("", 0), syncing())},
		"discarded":           {g(parse("a", candidateSQL), syncing()), g(query("discard all")), g(query("prepare a as select 2")), g(bind("", "a", nil), execute("", 0), syncing())},
		"replaced":            {g(parse("a", candidateSQL), closing('S', "a"), parse("a", "select 2"), syncing()), g(bind("", "a", nil), execute("", 0), syncing())},
		"unnamed replaced":    {g(parse("", candidateSQL), parse("", "select 2"), syncing()), g(bind("", "", nil), execute("", 0), syncing())},
		"unnamed destroyed":   {g(parse("", candidateSQL), syncing()), g(query("select 1")), g(bind("", "", nil), execute("", 0), syncing())},
		"name taken":          {g(parse("a", "select 2"), syncing()), g(parse("a", candidateSQL), syncing()), g(bind("", "a", nil), execute("", 0), syncing())},
		"portal name of SQL":  {g(query("begin")), g(parse("", candidateSQL), bind("p", "", nil), syncing()), g(query("close p; declare p cursor for select 3")), g(execute("p", 0), syncing()), g(query("rollback"))},
		"bound, then renewed": {g(parse("a", "select 2"), bind("", "a", nil), parse("", candidateSQL), execute("", 0), syncing())},
	} {
		t.Run(name, func(t *testing.T) {
			before := st.executions.Load()
			c := mustConnect(t, s.Addr().String(), "")
			defer c.Close()
			if got, want := show(turns(groups...)(c)), show(direct(t, groups...)); got != want {
				t.Errorf("through pgaccel:\n%s\ndirect:\n%s", got, want)
			}
			if st.executions.Load() != before {
				t.Error("executed")
			}
		})
	}
	// Pipelined: at the time of Execute nothing of this is known yet.
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	got := readies(3, parse("a", candidateSQL), syncing(), query("deallocate a; prepare a as select 2"), bind("", "a", nil), execute("", 0), syncing())(c)
	wantRows(t, got, "2")
}

// TestGateIsDeallocated takes the gate's statement away in every way.
func TestGateIsDeallocated(t *testing.T) {
	f := newFake()
	f.add(candidateSQL, candidate(numbers(7)))
	c := mustConnect(t, startProxy(t, f).Addr().String(), "")
	defer c.Close()
	ext := g(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())
	for _, away := range []string{"deallocate all", "discard all", "do $$begin execute 'deallocate all'; end$$", "select 1"} {
		wantRows(t, c.exchange(query(candidateSQL)), "7")
		c.exchange(query(away))
		wantRows(t, c.exchange(query(candidateSQL)), "7")
		c.exchange(query(away))
		wantRows(t, c.exchange(ext...), "7")
		c.exchange(query("begin"))
		wantRows(t, c.exchange(query(candidateSQL)), "7")
		if away != "discard all" {
			c.exchange(query(away))
		}
		wantRows(t, c.exchange(query(candidateSQL)), "7")
		wantRows(t, c.exchange(ext...), "7")
		c.exchange(query("commit"))
	}
	// Pipelined with what takes it away.
	got := c.exchange(cat(pbe("deallocate all"), ext)...)
	wantTypes(t, got, "12C12DCZ")
}

func TestOwnStatementsAreHidden(t *testing.T) {
	f := newFake()
	f.word = ""
	f.add(candidateSQL, candidate(numbers(7)))
	c := mustConnect(t, startProxy(t, f).Addr().String(), "")
	defer c.Close()
	for range 2 {
		wantRows(t, c.exchange(query(candidateSQL)), "7")
		wantRows(t, c.exchange(query("select name from pg_prepared_statements")))
		wantRows(t, c.exchange(query(candidateSQL)), "7")
		wantRows(t, c.exchange(parse("mine", "select name from pg_prepared_statements"), bind("", "mine", nil), execute("", 0), syncing()), "mine")
		c.exchange(closing('S', "mine"), syncing())
	}
}

// TestOwnMessagesOfSeveralKinds: the messages that hide the gate and those of an
// execution in one batch, and an error between them.
func TestOwnMessagesOfSeveralKinds(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		f.word = ""
		f.add(candidateSQL, candidate(numbers(7)))
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		hidden := pbe("select count(*) from pg_prepared_statements where name like 'pgaccel%'")
		own := pbe(candidateSQL)
		for range 3 {
			wantRows(t, c.exchange(cat(own, g(syncing()))...), "7")
			got := c.exchange(cat(pbe("begin"), hidden, own, pbe("commit"), g(syncing()))...)
			wantTypes(t, got, "12C12DC12DC12CZ")
			wantRows(t, got, "0", "7")
			got = c.exchange(cat(own, hidden, own, g(syncing()))...)
			wantTypes(t, got, "12DC12DC12DCZ")
			wantRows(t, got, "7", "0", "1") // no gate behind what the server has run, without a block
			got = readies(2, cat(hidden, pbe("select 1/0"), g(syncing()), own, g(syncing()))...)(c)
			wantTypes(t, got, "12DC1EZ12DCZ")
			wantRows(t, got, "0", "7")
		}
	})
}

// TestQueryForgetsUnnamed is W11 for a Query that is answered here.
func TestQueryForgetsUnnamed(t *testing.T) {
	f := newFake()
	f.add(candidateSQL, candidate(numbers(7)))
	c := mustConnect(t, startProxy(t, f).Addr().String(), "")
	defer c.Close()
	c.exchange(parse("", "select 1"), syncing())
	c.exchange(query(candidateSQL))
	got := c.exchange(bind("", "", nil), execute("", 0), syncing())
	wantTypes(t, got, "EZ")
	if code := wire.ErrorField([]byte(got[0].body), 'C'); string(code) != "26000" {
		t.Errorf("SQLSTATE %s", code)
	}
}

// TestNoticesOfAnalysis: what the server warns of while it describes comes once.
func TestNoticesOfAnalysis(t *testing.T) {
	long := "select 1 as accel_" + strings.Repeat("x", 70) // NOTICE: identifier will be truncated
	for _, refuse := range []bool{false, true} {
		f := newFake()
		st := f.add(long, candidate(numbers(1)))
		if refuse {
			st.err = &plan.Forward{Reason: plan.ReasonSmall}
		}
		c := mustConnect(t, startProxy(t, f).Addr().String(), "")
		if got, want := show(c.exchange(query(long))), show(direct(t, g(query(long)))); got != want {
			t.Errorf("refused %v: through pgaccel:\n%s\ndirect:\n%s", refuse, got, want)
		}
		c.Close()
	}
}

func TestPipelinedQueriesKeepTheirOrder(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		f.add(candidateSQL, candidate(numbers(7)))
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		ext := g(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())
		got := readies(5, cat(g(query("select 2")), ext, g(query("select 3")), ext, g(query(candidateSQL)))...)(c)
		if r := rows(got); len(r) != 5 || strings.Join(r[:4], "") != "2737" || r[4] != "1" && r[4] != "7" {
			t.Errorf("rows %v", r)
		}
		// Sent one by one, all are accelerated.
		wantRows(t, c.exchange(query(candidateSQL)), "7")
	})
}

func TestOtherEncodingsAreForwarded(t *testing.T) {
	f := newFake()
	st := f.add("select 1 as accel, '\xe9'", candidate(numbers(7)))
	f.add(candidateSQL, candidate(numbers(7)))
	c := mustConnect(t, startProxy(t, f).Addr().String(), "-c client_encoding=LATIN1")
	defer c.Close()
	wantTypes(t, c.exchange(query("select 1 as accel, '\xe9'")), "TDCZ")
	wantTypes(t, c.exchange(parse("", "select 1 as accel, '\xe9'"), bind("", "", nil), execute("", 0), syncing()), "12DCZ")
	if st.executions.Load() != 0 || st.saw().reason != plan.ReasonSettings {
		t.Errorf("%d executions, reason %q", st.executions.Load(), st.saw().reason)
	}
	wantRows(t, c.exchange(query(candidateSQL)), "7")
}

// waitFor waits until a condition holds; timing does not decide, patience does.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
