package proxy

import (
	"slices"
	"strings"
	"testing"
)

// TestPortalsThatSQLUses: a portal that was begun here is used by SQL. What the client gets is
// what it gets from Postgres, or an error that says why not; the session's next attempt is
// left to the server.
func TestPortalsThatSQLUses(t *testing.T) {
	setup := mustConnect(t, postgresAddress(), "")
	defer setup.Close()
	setup.exchange(query("create table if not exists touched (a int); truncate touched; insert into touched values (1), (2), (3), (4);" +
		"create or replace function touch(n text) returns int language plpgsql as $$declare c refcursor := n; r record; begin fetch c into r; return r.accel; end$$;" +
		"create or replace function replace_portal(n text) returns int language plpgsql as $$declare c refcursor := n; begin close c; open c for explain select 1; return 1; end$$"))
	const sql = "select a as accel from touched"
	begin, end := g(query("begin")), g(query("rollback"))
	open := func(name string, rows ...int32) [][]byte {
		list := g(parse("", sql), bind(name, "", nil))
		for _, n := range rows {
			list = append(list, execute(name, n))
		}
		return append(list, syncing())
	}
	more := g(execute("p", 2), syncing())
	long := strings.Repeat("n", 63)
	touchUnnamed := g(closing('S', "t"), parse("t", "select touch('')"), bind("q", "t", nil), execute("q", 0), syncing())
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(sql, candidate(numbers(1, 2, 3, 4)))
		s := startProxy(t, f, change)
		play := func(c *rawClient, groups [][][]byte) []message { return withoutSource(turns(groups...)(c)) }
		for _, c := range []struct {
			name    string
			groups  [][][]byte
			refused bool // where the server alone does not
		}{
			{"fetch", [][][]byte{begin, open("p", 1), g(query("fetch 1 from p")), more, end}, true},
			{"fetch by no row", [][][]byte{begin, open("p", 1), g(query("fetch 0 from p")), more, end}, true},
			{"fetch absolute 0", [][][]byte{begin, open("p", 1), g(query("fetch absolute 0 from p")), more, end}, true},
			{"fetch all, quoted", [][][]byte{begin, open("P 1", 1), g(query(`fetch all from "P 1"`)), end}, true},
			{"fetch in the extended protocol", [][][]byte{begin, open("p", 1), g(parse("", "fetch 1 from p"), bind("", "", nil), execute("", 0), syncing()), more, end}, true},
			{"fetch in the same batch", [][][]byte{begin, cat(open("p", 1)[:3], pbe("fetch 1 from p"), g(execute("p", 1), syncing())), end}, true},
			{"fetch after the end", [][][]byte{begin, open("p", 0), g(query("fetch all from p")), end}, true},
			{"fetch before the first Execute", [][][]byte{begin, open("p"), g(query("fetch 1 from p")), more, more, end}, false},
			{"fetch before the first Execute, in one batch", [][][]byte{begin, cat(open("p")[:2], pbe("fetch 1 from p"), g(execute("p", 1), syncing())), end}, false},
			{"move", [][][]byte{begin, open("p", 1), g(query("move 1 in p")), more, end}, true},
			{"move by no row", [][][]byte{begin, open("p", 1), g(query("move 0 in p")), more, end}, true},
			{"where current of", [][][]byte{begin, open("p", 1), g(query("delete from touched where current of p")), g(query("select * from touched")), end}, true},
			{"a function", [][][]byte{begin, open("p", 1), g(query("select touch('p')")), more, end}, true},
			{"a built-in function", [][][]byte{begin, open("p", 1), g(query("select cursor_to_xml('p', 1, false, false, '')")), end}, true},
			{"the unnamed one, by a function", [][][]byte{begin, open("", 1), touchUnnamed, end}, true},
			{"the unnamed one, by a function in a batch", [][][]byte{begin, cat(open("", 1)[:3], touchUnnamed), end}, true},
			{"the unnamed one, behind an error", [][][]byte{begin, cat(open("", 1), g(query("savepoint x"))), open("", 1), cat(g(parse("", "selec"), syncing()), pbe("rollback"), g(syncing()))}, false},
			{"the unnamed one, behind a savepoint and an error", [][][]byte{begin, g(query("savepoint x")), open("", 1), g(parse("", "selec"), syncing()), cat(pbeNamed("rollback to x"), g(syncing())), cat(pbeNamed("select 5"), g(syncing())), g(execute("", 1), syncing()), end}, false},
			{"the unnamed one, in another transaction", [][][]byte{cat(open("", 1)[:3], g(syncing()), pbeNamed("select 5"), g(syncing())), g(flushing())}, false},
			{"the unnamed one, by a function that finds another", [][][]byte{begin, open("", 1), g(parse("t", "select 5"), bind("q", "t", nil), execute("q", 0), syncing()), g(execute("", 1), describe('P', ""), syncing()), end}, false},
			{"close", [][][]byte{begin, open("p", 1), g(query("close p")), more, end}, false},
			{"close all", [][][]byte{begin, open("p", 1), g(query("close all")), more, end}, false},
			{"declare", [][][]byte{begin, open("p", 1), g(query("declare p cursor for select 1")), more, end}, false},
			{"close, declare", [][][]byte{begin, open("p", 1), g(query("close p; declare p cursor for select generate_series(11, 14)")), more, g(query("fetch 1 from p")), more, end}, false},
			{"another one by a function", [][][]byte{begin, open("p", 1), g(query("select replace_portal('p')")), more, end}, false},
			{"another transaction's", [][][]byte{begin, open("p", 1), g(query("commit; begin; declare p cursor for select generate_series(11, 14)")), more, end}, false},
			{"described", [][][]byte{begin, open("p", 1), g(describe('P', "p"), execute("p", 1), describe('P', "p"), describe('S', ""), syncing()), end}, false},
			{"closed, declared, described", [][][]byte{begin, open("p", 1), g(query("close p; declare p cursor for select 'x' as y")), g(describe('P', "p"), syncing()), end}, false},
			{"savepoint", [][][]byte{begin, open("p", 1), g(query("savepoint x")), g(query("rollback to x")), more, end}, false},
			{"savepoint before Bind", [][][]byte{begin, g(query("savepoint x")), open("p", 1), g(query("rollback to x")), more, end}, false},
			{"savepoint between Bind and Execute", [][][]byte{begin, open("p"), g(query("savepoint x")), more, g(query("rollback to x")), more, end}, false},
			{"a fetch that fails, and another", [][][]byte{begin, open("p", 1), g(query("savepoint x")), g(query("fetch 1 from p")), g(query("rollback to x")), g(query("fetch 1 from p")), end}, true},
			{"bound anew", [][][]byte{begin, open("p", 1), g(query("savepoint x")), open("p"), g(query("rollback to x")), more, end}, true},
			{"another cursor", [][][]byte{begin, open("p", 1), g(query("declare c cursor for select generate_series(1, 9)")), g(query("fetch 2 from c")), g(query("delete from touched where current of c")), end}, false},
			{"bound in binary", [][][]byte{begin, g(parse("", sql), bind("p", "", nil, 1), execute("p", 1), syncing()), g(describe('P', "p"), execute("p", 1), syncing()), end}, false},
			{"names that Postgres cuts", [][][]byte{begin, open(long+"x", 1), g(execute(long+"y", 1), execute(long, 1), closing('P', long+"z"), execute(long+"x", 1), syncing()), end}, false},
			{"a name that another one is cut to", [][][]byte{begin, open(long, 1), g(closing('P', long+"z"), syncing()), g(execute(long, 1), syncing()), end}, false},
			{"FunctionCall", [][][]byte{begin, open("p", 1), g(raw('F', "\x00\x00\x00\xb1\x00\x01\x00\x00\x00\x02\x00\x00\x00\x012\x00\x00\x00\x013\x00\x00")), more, end}, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				want := play(mustConnectDirect(t), c.groups)
				before := st.executions.Load()
				conn := mustConnect(t, s.Addr().String(), "")
				defer conn.Close()
				got := play(conn, c.groups)
				if !c.refused {
					if show(got) != show(want) {
						t.Errorf("through pgaccel:\n%s\ndirect:\n%s", show(got), show(want))
					}
					return
				}
				// T stands before the rows of a FETCH, but not before an error.
				at := slices.IndexFunc(got, func(m message) bool { return strings.Contains(m.body, placeholderError.Message) })
				if at < 0 || got[at].typ != 'E' || show(without(got[:at], "T")) != show(without(want, "T")[:len(without(got[:at], "T"))]) {
					t.Fatalf("through pgaccel:\n%s\ndirect:\n%s", show(got), show(want))
				}
				if st.executions.Load() == before {
					t.Error("nothing was answered here")
				}
				if got := play(conn, c.groups); show(got) != show(want) {
					t.Errorf("again, through pgaccel:\n%s\ndirect:\n%s", show(got), show(want))
				}
			})
		}
	})
}

// pbeNamed runs a statement by names, so that the unnamed ones stay.
func pbeNamed(sql string) [][]byte {
	return g(closing('S', "n"), parse("n", sql), closing('P', "q"), bind("q", "n", nil), execute("q", 0))
}

func mustConnectDirect(t *testing.T) *rawClient {
	c := mustConnect(t, postgresAddress(), "")
	t.Cleanup(func() { c.Close() })
	return c
}
