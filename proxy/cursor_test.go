package proxy

import (
	"strings"
	"testing"

	"pgaccel/engine"
	"pgaccel/syntax"
)

const (
	cursorDeclare = "declare c cursor for select 1/(4-g) as accel from generate_series(1,9) g"
	cursorFetch   = "fetch 3 from c"
)

// declared makes the fake answer the FETCHes from a cursor of which the server's fourth row is an error.
func declared(f *fake) *fakeStatement {
	st := f.add(cursorDeclare, candidate(numbers(7, 8, 9, 10, 11)))
	st.route, st.cursor = engine.RouteCursor, &engine.Cursor{Cursor: &syntax.Cursor{Name: "c", Declare: cursorDeclare}}
	glued := f.add("begin;"+cursorDeclare+";"+cursorFetch, candidate(numbers(7, 8, 9, 10, 11)))
	glued.route, glued.cursor = engine.RouteCursor, &engine.Cursor{Cursor: &syntax.Cursor{Name: "c", Prefix: "begin;", Begins: true, Declare: cursorDeclare + ";", Fetch: cursorFetch, Rows: 3}}
	return st
}

// TestCursor: FETCHes are answered from the engine, until something else comes: then the server's cursor
// is moved there, an error of which is the answer to that.
func TestCursor(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := declared(f)
		held := heldResults.Load()
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		rows := func(want string, messages ...[]byte) {
			t.Helper()
			if got := show(c.exchange(messages...)); !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		}
		extended := g(parse("", "select 3"), bind("", "", nil), execute("", 0), syncing())
		for range 2 {
			wantTypes(t, c.exchange(query("begin;"+cursorDeclare+";"+cursorFetch)), "CCTDDDCZ")
			rows("FETCH 2", query(cursorFetch))
			wantTypes(t, c.exchange(query("rollback")), "CZ")
		}
		for _, next := range [][][]byte{{query("select 3")}, extended, {query("savepoint a")}, {query("fetch -1 from c")}, {describe('P', "c"), syncing()}} {
			wantTypes(t, c.exchange(query("begin")), "CZ")
			wantTypes(t, c.exchange(query(cursorDeclare)), "CZ")
			wantTypes(t, c.exchange(query(cursorFetch)), "TDDDCZ")
			rows("FETCH 2", query(cursorFetch))
			got := c.exchange(next...)
			if wantTypes(t, got, "EZ"); !strings.Contains(show(got), "22012") {
				t.Errorf("%s", show(got))
			}
			rows("25P02", query("select 4"))
			rows("25P02", extended...)
			wantTypes(t, c.exchange(query("rollback")), "CZ")
			wantTypes(t, c.exchange(query("select 3")), "TDCZ")
		}
		if n := st.executions.Load(); n != 5 {
			t.Errorf("%d executions", n)
		}
		// All at once.
		c.send(query("begin"), query(cursorDeclare), query(cursorFetch), query(cursorFetch), query("close c"), query("commit"), query("select 3"))
		var types []string
		for range 7 {
			types = append(types, typesOf(c.until('Z')))
		}
		// The DECLARE comes amid other Queries, and is forwarded.
		if got := strings.Join(types, " "); got != "CZ CZ TDDDCZ EZ EZ CZ TDCZ" && got != "CZ CZ TDDDCZ TDDCZ CZ CZ TDCZ" {
			t.Error(got)
		}
		wantTypes(t, c.exchange(query("begin")), "CZ")
		wantTypes(t, c.exchange(query(cursorDeclare)), "CZ")
		wantTypes(t, c.exchange(query(cursorFetch)), "TDDDCZ")
		c.send(query("close c"), query(cursorFetch), query("rollback"), query("select 3"))
		types = nil
		for range 4 {
			types = append(types, typesOf(c.until('Z')))
		}
		if got := strings.Join(types, " "); got != "CZ EZ CZ TDCZ" {
			t.Error(got)
		}
		// The client goes amid its rows.
		c.exchange(query("begin"))
		c.exchange(query(cursorDeclare))
		c.exchange(query(cursorFetch))
		c.Close()
		waitFor(t, "results", func() bool { return heldResults.Load() == held })
	})
}

func typesOf(list []message) (types string) {
	for _, m := range list {
		types += string(m.typ)
	}
	return types
}
