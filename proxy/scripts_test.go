package proxy

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// script is a conversation whose bytes must be the same through pgaccel as with
// Postgres itself. w is the number in docs/wire.md, section 2.
type script struct {
	w    int
	name string
	run  func(c *rawClient) []message
}

// once sends everything and reads up to one ReadyForQuery.
func once(m ...[]byte) func(*rawClient) []message {
	return func(c *rawClient) []message { return c.exchange(m...) }
}

// turns sends each group in turn, reading up to ReadyForQuery after each.
func turns(groups ...[][]byte) func(*rawClient) []message {
	return func(c *rawClient) (list []message) {
		for _, g := range groups {
			list = append(list, c.exchange(g...)...)
		}
		return list
	}
}

func g(m ...[]byte) [][]byte { return m }

// readies sends everything and reads up to n ReadyForQuery.
func readies(n int, m ...[]byte) func(*rawClient) []message {
	return func(c *rawClient) (list []message) {
		c.send(m...)
		for range n {
			list = append(list, c.until('Z')...)
		}
		return list
	}
}

// theEnd is a last Query, for conversations in which the number of ReadyForQuery is
// what matters.
var theEnd = query("select 'the end'")

// silence is how long nothing must come.
const silence = 150 * time.Millisecond

// toEnd sends everything and reads until the server closes.
func toEnd(m ...[]byte) func(*rawClient) []message {
	return func(c *rawClient) []message {
		c.send(m...)
		return c.until(endOfConnection)
	}
}

var (
	pbe   = func(sql string) [][]byte { return g(parse("", sql), bind("", "", nil), execute("", 0)) }
	three = "select generate_series(1,3)"
)

func cat(lists ...[][]byte) (all [][]byte) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func scripts() []script {
	return []script{
		{6, "unknown database and role", func(c *rawClient) (list []message) {
			for _, p := range [][]string{{"user", "postgres", "database", "nosuch"}, {"user", "nosuch"}, {"database", "postgres"}} {
				list = append(list, connectWith(c.t, c.RemoteAddr().String(), startupPacket(196608, p...)).start...)
			}
			return list
		}},
		{5, "startup settings", func(c *rawClient) (list []message) {
			for _, p := range [][]string{
				{"user", "postgres", "database", "postgres", "options", `-c search_path=a\ b --statement_timeout=77`},
				{"user", "postgres", "database", "postgres", "DateStyle", "SQL, DMY", "TimeZone", "Asia/Tokyo", "extra_float_digits", "0", "client_encoding", "LATIN1"},
				{"user", "postgres", "database", "postgres", "nosuch_setting", "1"},
				{"user", "postgres", "database", "postgres", "application_name", "a", "application_name", "b"},
				{"user", "postgres", "database", "postgres", "options", "-c " + strings.Repeat("x", 9000) + ".y=1"},
			} {
				n := connectWith(c.t, c.RemoteAddr().String(), startupPacket(196608, p...))
				list = append(list, n.start...)
				if n.start[len(n.start)-1].typ == 'Z' {
					list = append(list, n.exchange(query("show search_path; show datestyle; show statement_timeout; show application_name"))...)
				}
				n.Close()
			}
			return list
		}},
		{7, "messages after authentication", func(c *rawClient) []message { return c.start }},
		{11, "several statements in a Query", once(query("select 1; select 2; "))},
		{11, "empty Query", turns(g(query("")), g(query("-- hi")), g(query(";;")))},
		{11, "Query destroys the unnamed statement", turns(g(parse("", "select 1"), syncing()), g(query("select 9")), g(bind("", "", nil), execute("", 0), syncing()))},
		{11, "failed transaction", turns(g(query("begin")), g(query("select 1/0")), g(query("select 1")), g(parse("", "select 1"), bind("", "", nil), execute("", 0), syncing()), g(query("rollback")))},
		{11, "empty extended", once(parse("", ""), bind("", "", nil), describe('P', ""), execute("", 0), syncing())},
		{12, "error amid rows", once(query("select 1/(3-g) from generate_series(1,5) g"))},
		{12, "error amid rows, extended", once(cat(pbe("select 1/(3-g) from generate_series(1,5) g"), g(syncing()))...)},
		{13, "Flush gives answers without ReadyForQuery", func(c *rawClient) []message {
			c.send(parse("", "select 1"), bind("", "", nil), describe('P', ""), execute("", 0), flushing())
			list := c.until('C')
			return append(list, c.exchange(syncing())...)
		}},
		{13, "nothing without Flush or Sync", func(c *rawClient) []message {
			c.send(pbe("select 1")...)
			list := c.untilIn('Z', silence)
			return append(list, c.exchange(syncing())...)
		}},
		{13, "an error is flushed at once", func(c *rawClient) []message {
			c.send(parse("", "selec 1"))
			list := c.until('E')
			c.send(bind("", "", nil), execute("", 0), query("select 5"), flushing())
			list = append(list, c.untilIn('Z', silence)...)
			return append(list, c.exchange(syncing())...)
		}},
		{14, "two Syncs, two ReadyForQuery", readies(2, cat(pbe("select 1"), g(syncing(), syncing()))...)},
		{14, "everything is skipped up to Sync", readies(2, cat(pbe("select 1/0"), pbe("select 2"), g(query("select 3"), syncing()), pbe("select 4"), g(syncing()))...)},
		{14, "the implicit transaction is rolled back", turns(g(query("create temp table tt(a int)")),
			cat(pbe("insert into tt values(1)"), pbe("select 1/0"), g(syncing())), g(query("select count(*) from tt")))},
		{14, "error at commit", turns(g(query("create temp table d (a int unique deferrable initially deferred)")),
			cat(pbe("insert into d values (1), (1)"), g(syncing())), g(query("select count(*) from d")))},
		{15, "as many rows as the limit", once(parse("", three), bind("", "", nil), execute("", 3), execute("", 3), syncing())},
		{15, "limit, then the rest", once(parse("", three), bind("", "", nil), execute("", 2), execute("", 0), syncing())},
		{15, "a finished portal again", once(parse("", three), bind("", "", nil), execute("", 0), execute("", 0), syncing())},
		{15, "the portal ends with its transaction", turns(g(parse("", three), bind("p1", "", nil), execute("p1", 2), syncing()), g(execute("p1", 2), syncing()))},
		{15, "the portal lives in a transaction block", turns(g(query("begin")), g(parse("", three), bind("p1", "", nil), execute("p1", 2), syncing()), g(execute("p1", 2), syncing()), g(query("commit")), g(execute("p1", 2), syncing()))},
		{15, "rollback to a savepoint keeps older portals", turns(g(query("begin")), g(parse("", three), bind("p1", "", nil), execute("p1", 1), syncing()), g(query("savepoint s")), g(query("rollback to s")), g(execute("p1", 1), syncing()), g(query("rollback")))},
		{16, "a failed Bind", once(parse("", "select 1"), bind("", "", nil), bind("", "nope", nil), execute("", 0), syncing())},
		{16, "a name twice", turns(g(parse("a", "select 1"), syncing()), g(parse("a", "select 2"), syncing()), g(bind("", "a", nil), execute("", 0), syncing()))},
		{16, "a name twice, pipelined", readies(3, parse("a", "select 1"), syncing(), parse("a", "select 2"), syncing(), bind("", "a", nil), execute("", 0), syncing())},
		{16, "PREPARE is visible to Bind", turns(g(query("prepare zz as select 7")), g(bind("", "zz", nil), execute("", 0), syncing()))},
		{16, "DEALLOCATE and PREPARE under the same name", turns(g(parse("a", "select 1"), syncing()), g(query("deallocate a; prepare a as select 2")), g(bind("", "a", nil), execute("", 0), syncing()))},
		{16, "the same, pipelined", readies(3, parse("a", "select 1"), syncing(), query("deallocate a; prepare a as select 2"), bind("", "a", nil), execute("", 0), syncing())},
		{16, "DECLARE makes a portal", turns(g(query("begin; declare cc cursor for select 1")), g(describe('P', "cc"), execute("cc", 0), syncing()))},
		{16, "CLOSE and DECLARE under a portal's name", turns(g(query("begin")), g(parse("", three), bind("cc", "", nil), syncing()), g(query("close cc")), g(query("declare cc cursor for select 5")), g(execute("cc", 0), syncing()))},
		{16, "closing what is not there", once(closing('S', "nope"), closing('P', "nope"), syncing())},
		{16, "Close of a statement keeps its portals", once(parse("s", "select 1"), bind("p", "s", nil), closing('S', "s"), execute("p", 0), syncing())},
		{16, "Close of a portal", once(parse("s", "select 1"), bind("p", "s", nil), closing('P', "p"), execute("p", 0), syncing())},
		{16, "DISCARD ALL", turns(g(parse("a", "select 1"), syncing()), g(query("discard all")), g(bind("", "a", nil), execute("", 0), syncing()))},
		{16, "DISCARD ALL in a pipeline", once(cat(pbe("select 1"), pbe("discard all"), g(syncing()))...)},
		{16, "a portal twice", turns(g(query("begin")), g(parse("", "select 1"), bind("p", "", nil), bind("p", "", nil), execute("p", 0), syncing()), g(query("rollback")))},
		{17, "Describe of both kinds", once(parse("", "select 1 as a"), describe('S', ""), bind("", "", nil, 1), describe('P', ""), execute("", 0), syncing())},
		{17, "no columns", turns(g(query("select from sales limit 1")), g(parse("", "select from sales limit 1"), describe('S', ""), bind("", "", nil), describe('P', ""), execute("", 0), syncing()))},
		{17, "no rows", once(parse("", "create temp table nr(a int)"), describe('S', ""), bind("", "", nil), describe('P', ""), execute("", 0), syncing())},
		{17, "Describe of nothing", turns(g(describe('S', "nope"), syncing()), g(describe('P', "nope"), syncing()), g(describe('X', "nope"), syncing()))},
		{18, "formats", once(parse("", "select 1,2"), bind("", "", nil, 1), describe('P', ""), execute("", 0), bind("", "", nil, 1, 0), execute("", 0), syncing())},
		{18, "too many formats", once(parse("", "select 1,2"), bind("", "", nil, 1, 0, 1), syncing())},
		{18, "parameters", once(parse("", "select $1::int + 1, $2::text", 0, 25), describe('S', ""), bind("", "", []string{"41", "x"}), execute("", 0), syncing())},
		{18, "too few values", once(parse("", "select $1::int", 23), bind("", "", nil), execute("", 0), syncing())},
		{19, "columns of tables", once(parse("", "select id, amount, sum(amount) over (), amount * 2 as x from sales"), describe('S', ""), syncing())},
		{20, "BEGIN and SELECT in one batch", once(parse("", "BEGIN"), bind("", "", nil), execute("", 0), parse("", "select 1"), bind("", "", nil), describe('P', ""), execute("", 1), syncing())},
		{20, "Parse alone, then Bind", turns(g(parse("n", "select 5"), syncing()), g(bind("", "n", nil), describe('P', ""), execute("", 0), syncing()), g(bind("", "n", nil), execute("", 0), syncing()))},
		{20, "Parse, Describe, Flush", func(c *rawClient) []message {
			c.send(parse("n", "select 5"), describe('S', "n"), flushing())
			list := c.until('T')
			return append(list, c.exchange(bind("", "n", nil), execute("", 0), syncing())...)
		}},
		{21, "simple and extended, pipelined", readies(4, cat(g(query("select 1")), pbe("select 2"), g(syncing(), query("select 3; select 4")), pbe("select 5"), g(syncing()))...)},
		{21, "a Query inside a batch", readies(2, cat(pbe("select 2"), g(query("select 3"), bind("", "", nil), syncing()))...)},
		{22, "settings are reported before ReadyForQuery", once(cat(pbe("set application_name='x1'"), pbe("set datestyle='sql'"), pbe("select 1"), g(syncing()))...)},
		{22, "settings by function and rollback", turns(g(query("select set_config('TimeZone', 'Asia/Tokyo', false), set_config('IntervalStyle', 'iso_8601', false)")), g(query("begin; set local datestyle to german")), g(query("rollback")))},
		{22, "a warning", once(query("commit"))},
		{22, "notices", turns(g(query("drop table if exists nosuch")), g(query("do $$begin raise notice 'a'; raise warning 'b'; end$$")))},
		{22, "notifications", turns(g(query("listen a")), g(query("notify a,'x'")), g(query("begin; notify a; ")), g(query("commit")))},
		{23, "COPY in, Sync too early", func(c *rawClient) []message {
			c.exchange(query("create temp table ct(a int)"))
			c.send(parse("", "copy ct from stdin"), bind("", "", nil), execute("", 0), syncing(), raw('d', "1\n"), raw('c', ""), syncing())
			c.send(query("select count(*) from ct"), theEnd)
			return untilTheEnd(c)
		}},
		{23, "COPY in fails at once", func(c *rawClient) []message {
			c.send(parse("", "copy nosuch from stdin"), bind("", "", nil), execute("", 0), syncing(), raw('d', "1\n"), raw('c', ""), syncing())
			c.send(theEnd)
			return untilTheEnd(c)
		}},
		{23, "COPY in fails later", func(c *rawClient) []message {
			c.exchange(query("create temp table ct(a int)"))
			c.send(query("copy ct from stdin"), raw('d', "x\n"), raw('d', "2\n"), raw('c', ""))
			c.send(query("select count(*) from ct"), theEnd)
			return untilTheEnd(c)
		}},
		{23, "COPY in, in turns", func(c *rawClient) []message {
			c.exchange(query("create temp table ct(a int)"))
			c.send(query("copy ct from stdin"))
			list := c.until('G')
			c.send(raw('d', "1\n"), raw('d', "2\n"))
			list = append(list, c.exchange(raw('c', ""))...)
			c.send(parse("", "copy ct from stdin"), bind("", "", nil), execute("", 0), flushing())
			list = append(list, c.until('G')...)
			c.send(raw('d', "3\n"), raw('H', ""))
			list = append(list, c.exchange(raw('c', ""), syncing())...)
			c.send(query("copy ct from stdin"))
			list = append(list, c.until('G')...)
			list = append(list, c.exchange(raw('f', "no more\x00"))...)
			return append(list, c.exchange(query("select sum(a) from ct"))...)
		}},
		{23, "CopyFail outside of a copy", func(c *rawClient) []message {
			c.send(raw('f', "x\x00"), query("select 1"), theEnd)
			return untilTheEnd(c)
		}},
		{23, "a Query inside a copy", func(c *rawClient) []message {
			c.exchange(query("create temp table ct(a int)"))
			c.send(query("copy ct from stdin"))
			list := c.until('G')
			c.send(query("select 1"))
			return append(list, c.until(endOfConnection)...)
		}},
		{23, "COPY out", turns(g(query("copy sales to stdout")), cat(pbe("copy (select id from sales order by id) to stdout"), g(syncing())))},
		{24, "FunctionCall", once(raw('F', "\x00\x00\x04\xd2\x00\x00\x00\x00\x00\x00"))}, // a function that is not there
		{24, "FunctionCall of int4pl", once(raw('F', "\x00\x00\x00\xb1\x00\x01\x00\x00\x00\x02\x00\x00\x00\x012\x00\x00\x00\x013\x00\x00"))},
		{26, "Terminate behind a Query", toEnd(query("select 1"), raw('X', ""))},
		{26, "Terminate behind a batch", toEnd(cat(pbe("select 1"), g(syncing(), raw('X', "")))...)},
		{26, "an unknown type", toEnd(raw('@', ""))},
		{26, "a bad length", toEnd([]byte{'Q', 0, 0, 0, 1, 0, 0})},
		{27, "a FATAL ends the session", toEnd(query("select pg_terminate_backend(pg_backend_pid())"))},
		{27, "a FATAL amid a batch", toEnd(cat(pbe("select 1"), pbe("select pg_terminate_backend(pg_backend_pid())"), pbe("select 2"), g(syncing()))...)},
		{28, "large messages", turns(g(query("select length('"+strings.Repeat("x", 3<<20)+"')")),
			g(parse("big", "select length($1::text), "+strings.Repeat("/* */", 300_000)+" 1"), bind("", "big", []string{strings.Repeat("y", 2<<20)}), execute("", 0), syncing()),
			g(query("select repeat('z', 2000000), generate_series(1, 3)")))},
		{29, "statement_timeout", turns(g(query("set statement_timeout = 400")), g(query("select pg_sleep(5)")), cat(pbe("select pg_sleep(5)"), g(syncing())))},
		{29, "idle_in_transaction_session_timeout", func(c *rawClient) []message {
			list := c.exchange(query("set idle_in_transaction_session_timeout = 50; begin"))
			return append(list, c.until(endOfConnection)...)
		}},
		{30, "errors keep all their fields", turns(g(query("create temp table e (a int not null check (a > 0))")), g(query("insert into e values (null)")), g(query("insert into e values (-1)")), g(query("select 1 + 'x' from sales")), cat(pbe("select nosuch from sales"), g(syncing())))},
	}
}

var temporary = regexp.MustCompile(`pg_temp_\d+`)

// mask hides what differs from session to session: process ids, keys
// and temporary schemas.
func mask(list []message) []message {
	out := append([]message(nil), list...)
	for i, m := range out {
		switch {
		case m.typ == 'K':
			out[i].body = fmt.Sprintf("%d bytes", len(m.body))
		case m.typ == 'A' && len(m.body) > 4:
			out[i].body = m.body[4:]
		case m.typ == 'E':
			out[i].body = temporary.ReplaceAllString(m.body, "pg_temp_N")
		}
	}
	return out
}
