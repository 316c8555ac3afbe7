package proxy

import (
	"encoding/binary"
	"strings"
	"testing"

	"pgaccel/wire"
)

// TestViews compares conversations over the schema pgaccel with those over the same
// rows as a table of the server's, message by message.
func TestViews(t *testing.T) {
	setup := mustConnect(t, postgresAddress(), "")
	setup.exchange(query("drop schema if exists accel cascade; create schema accel; create table accel.tables as select 'rows' as name"))
	setup.Close()
	const table = "select name from accel.tables"
	const values = "select $1::int4, name, $2 as t from accel.tables"
	const hole = "select $2::text from accel.tables"
	const into = "select name into temp copied from accel.tables"
	f := newFake()
	rows := func(sql string) string { return strings.Replace(sql, "accel.tables", "(select $N::text as name) t", 1) }
	for _, sql := range []string{table, into, "select nosuch from accel.tables", "select 1/0, name from accel.tables", "select pg_sleep(9), name from accel.tables",
		"select name, generate_series(1,4) from accel.tables", "select name from accel.tables for update"} {
		f.add(sql, viewing(strings.Replace(rows(sql), "$N", "$1", 1), 1, "rows"))
	}
	f.add(values, viewing(strings.Replace(rows(values), "$N", "$3", 1), 3, "rows"))
	f.add(hole, viewing(strings.Replace(rows(hole), "$N", "$3", 1), 3, "rows"))
	// Both formats of values, null among them.
	binaryBind := appendCString(appendCString(open(nil, wire.Bind), ""), "")
	binaryBind = append(binaryBind, ints16(1, 0)...)
	binaryBind = append(binaryBind, 0, 2, 0, 0, 0, 4, 0, 0, 0, 9)
	binaryBind = binary.BigEndian.AppendUint32(binaryBind, 0xffffffff)
	binaryBind = seal(append(binaryBind, ints16(1, 0, 1)...), 0)
	allBinary := appendCString(appendCString(open(nil, wire.Bind), ""), "")
	allBinary = append(allBinary, ints16(1)...)
	allBinary = append(allBinary, 0, 2, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, 2, 'y', 'z')
	allBinary = seal(append(allBinary, ints16(1)...), 0)
	large := parse("", "select 77 /*"+strings.Repeat("x", lookLimit)+"*/")
	largeNamed := parse("a", "select 77 /*"+strings.Repeat("x", lookLimit)+"*/")
	pbe := func(sql string) [][]byte {
		return g(parse("", sql), bind("", "", nil), describe('P', ""), execute("", 0))
	}
	list := []script{
		{0, "simple", turns(g(query(table)), g(query("begin")), g(query(table)), g(query("commit")))},
		{0, "simple, several", readies(4, query(table), query("select 1"), query(table), query(table))},
		{0, "simple, errors", turns(g(query("select nosuch from accel.tables")), g(query(table)), g(query("begin")), g(query("select 1/0, name from accel.tables")),
			g(query(table)), g(query("rollback")), g(query(table)))},
		{0, "simple, a parameter", turns(g(query("select 1 where $1 = 2")), g(query(table)))},
		{0, "simple, the unnamed statement goes", turns(g(parse("", "select 1"), bind("", "", nil), execute("", 0), syncing()), g(query(table)), g(bind("", "", nil), syncing()))},
		{0, "simple, the unnamed statement goes in a failed transaction", readies(4, parse("", "begin"), bind("", "", nil), execute("", 0), execute("nosuch", 0), syncing(),
			query(table), bind("", "", nil), syncing(), query("rollback"))},
		{0, "simple, INTO", turns(g(query(into)), g(query("select * from copied")), g(query("drop table copied")))},
		{0, "simple, implicit transaction", readies(2, cat(pbe("create temp table tt (a int)"), g(query("select 1/0, name from accel.tables")), g(query("select * from tt")))...)},
		{0, "simple, ignored", readies(2, cat(pbe("select 1/0"), g(query(table)), g(syncing()), g(query(table)))...)},
		{0, "extended", once(cat(pbe(table), g(syncing()))...)},
		{0, "extended, INTO", turns(cat(pbe(into), g(syncing())), g(query("select * from copied")), g(query("drop table copied")))},
		{0, "parameters", once(parse("", values), describe('S', ""), bind("", "", []string{"5", "x"}), describe('P', ""), execute("", 0), syncing())},
		{0, "parameters, declared", once(parse("", values, 23, 25), describe('S', ""), bind("", "", []string{"5", "x"}, 1), describe('P', ""), execute("", 0), syncing())},
		{0, "parameters, one declared", once(parse("", values, 23), describe('S', ""), bind("", "", []string{"5", "x"}, 1), describe('P', ""), execute("", 0), syncing())},
		{0, "parameters, a hole", once(parse("", hole), describe('S', ""), bind("", "", []string{"5", "x"}), execute("", 0), syncing())},
		{0, "parameters, formats", once(parse("", values), binaryBind, describe('P', ""), execute("", 0), allBinary, execute("", 0), syncing())},
		{0, "parameters, a bad value", turns(g(parse("", values), bind("", "", []string{"z", "x"}), execute("", 0), syncing()), g(query(table)))},
		{0, "described alone", turns(g(parse("a", values), describe('S', "a"), syncing()), g(bind("", "a", []string{"1", "2"}), execute("", 0), syncing()), g(describe('S', "a"), syncing()))},
		{0, "portals", turns(g(query("begin")), g(parse("a", "select name, generate_series(1,4) from accel.tables"), bind("p", "a", nil), bind("q", "a", nil), execute("p", 1), execute("q", 2), execute("p", 0), closing('P', "q"), execute("q", 0), syncing()), g(query("rollback")))},
		{0, "errors amid", turns(g(parse("a", table), syncing()), g(bind("", "nosuch", nil), bind("", "a", nil), execute("", 0), syncing()),
			cat(pbe("select 1/0"), g(bind("", "a", nil), execute("", 0), syncing())), g(bind("", "a", nil), execute("", 0), syncing()))},
		{0, "a failed transaction", turns(g(parse("a", table), syncing()), g(query("begin")), g(query("select 1/0")), g(bind("", "a", nil), execute("", 0), syncing()), cat(pbe(table), g(syncing())), g(query("rollback")), g(bind("", "a", nil), execute("", 0), syncing()))},
		{0, "names", turns(g(parse("a", table), syncing()), g(parse("a", "select 5"), syncing()), g(bind("", "a", nil), execute("", 0), syncing()),
			g(closing('S', "a"), parse("a", "select 5"), bind("", "a", nil), execute("", 0), syncing()), g(parse("a", table), syncing()), g(bind("", "a", nil), execute("", 0), syncing()))},
		{0, "names, undone", turns(g(parse("a", table), parse("", table), syncing()),
			cat(pbe("select 1/0"), g(closing('S', "a"), parse("a", "select 6"), closing('S', "a"), parse("", "select 7"), syncing())),
			g(bind("", "a", nil), execute("", 0), bind("", "", nil), syncing()), g(bind("", "a", nil), execute("", 0), syncing()))},
		{0, "names, a Query that is ignored", readies(3, execute("nosuch", 0), parse("b", table), parse("b", "select 5"), query("savepoint s"), closing('S', ""), syncing(), parse("b", table), syncing(), query("select 6"))},
		{0, "names, the unnamed one and a Query that is ignored", readies(3, parse("", table), syncing(), execute("nosuch", 0), query("select 5"), syncing(), bind("", "", nil), execute("", 0), syncing())},
		{0, "names, the unnamed one and a Query of rows that is ignored", readies(3, parse("", table), syncing(), execute("nosuch", 0), query(table), syncing(), bind("", "", nil), execute("", 0), syncing())},
		{0, "names, the unnamed one and a Query of rows", readies(3, parse("", table), syncing(), query(table), bind("", "", nil), execute("", 0), syncing())},
		{0, "names, the unnamed one and a Parse that fails", readies(8, parse("", table), syncing(), parse("", "select nosuch"), syncing(), bind("", "", nil), syncing(),
			parse("", table), syncing(), parse("", "selec"), parse("", table), syncing(), bind("", "", nil), syncing(),
			parse("", table), syncing(), bind("", "", nil), execute("", 0), syncing())},
		{0, "names, the unnamed one and a Parse that fails in a transaction", readies(7, parse("b", "begin"), bind("", "b", nil), execute("", 0), parse("", table), syncing(),
			execute("nosuch", 0), syncing(), parse("", table), syncing(), bind("", "", nil), syncing(), query("rollback"), bind("", "", nil), syncing(),
			parse("", table), bind("", "", nil), execute("", 0), syncing())},
		{0, "names, the unnamed one and a Parse that is ignored", readies(3, parse("", table), syncing(), parse("a", "selec"), parse("", "select nosuch"), syncing(), bind("", "", nil), execute("", 0), syncing())},
		{0, "names, a large Parse that is ignored", readies(3, parse("", table), parse("a", table), syncing(), parse("b", "select 1/0 from pg_sleep(0.2)"), bind("", "b", nil), execute("", 0), large, largeNamed, syncing(), bind("", "", nil), execute("", 0), bind("", "a", nil), execute("", 0), syncing())},
		{0, "names, a large Parse that fails", readies(3, parse("", table), syncing(), parse("", "selec /*"+strings.Repeat("x", lookLimit)+"*/"), syncing(), bind("", "", nil), syncing())},
		{0, "names, a copy", readies(2, cat(g(parse("b", table)), pbe("copy sales from stdin"), g(syncing(), wire.AppendMessage(nil, wire.CopyDone, nil), closing('S', "b"), syncing(), query("select 6")))...)},
		{0, "names, by SQL", turns(g(parse("a", table), parse("b", table), syncing()), g(query("deallocate a")), g(query("prepare a as select 8")), g(bind("", "a", nil), execute("", 0), bind("", "b", nil), execute("", 0), syncing()),
			g(query("deallocate b")), g(bind("", "b", nil), syncing()), cat(pbe("prepare b as select 4"), g(bind("", "b", nil), execute("", 0), syncing())))},
		{0, "names, by SQL in a pipeline", turns(g(parse("a", table), syncing()), cat(pbe("deallocate a"), pbe("prepare a as select 8"), g(bind("", "a", nil), execute("", 0), syncing())))},
		{0, "names, discarded", turns(g(parse("a", table), syncing()), g(query("discard all")), g(bind("", "a", nil), execute("", 0), syncing()), g(parse("a", "select 3"), bind("", "a", nil), execute("", 0), syncing()))},
		{0, "names, a large Parse", turns(g(parse("", table), parse("a", table), syncing()), g(large, bind("", "", nil), execute("", 0), syncing()), g(bind("", "a", nil), execute("", 0), syncing()), g(closing('S', "a"), largeNamed, bind("", "a", nil), execute("", 0), syncing()))},
		{0, "Flush", func(c *rawClient) []message {
			c.send(cat(pbe(table), g(flushing()))...)
			list := c.until('C')
			return append(list, c.exchange(syncing())...)
		}},
		{0, "timeout", turns(g(query("set statement_timeout = 50")), g(query("select pg_sleep(9), name from accel.tables")), cat(pbe("select pg_sleep(9), name from accel.tables"), g(syncing())))},
	}
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, f, change)
		before := f.texts[table].executions.Load()
		for _, sc := range list {
			var out [2]string
			for i, address := range []string{postgresAddress(), s.Addr().String()} {
				c := mustConnect(t, address, "")
				got := sc.run(c)
				for _, m := range got {
					if i == 0 && m.typ == nothingCame {
						t.Fatalf("%s: the server is silent", sc.name)
					}
				}
				out[i] = show(withoutPlace(withoutSource(got)))
				c.Close()
			}
			if out[0] != out[1] {
				t.Errorf("%s: through pgaccel:\n%s\ndirect:\n%s", sc.name, out[1], out[0])
			}
		}
		if n := f.texts[table].executions.Load() - before; n < 20 {
			t.Errorf("rows were sent %d times", n)
		}
	})
}

// withoutPlace leaves out what tells one text from the other: the position in it, and
// the table that a column is of.
func withoutPlace(list []message) []message {
	for i, m := range list {
		switch m.typ {
		case 'E':
			var b strings.Builder
			for _, field := range strings.Split(m.body, "\x00") {
				if !strings.HasPrefix(field, "P") {
					b.WriteString(field + "\x00")
				}
			}
			list[i].body = b.String()
		case 'T':
			b := []byte(m.body)
			for rest := b[2:]; len(rest) > 0; {
				_, after, _ := wire.CString(rest)
				clear(after[:6])
				rest = after[18:]
			}
			list[i].body = string(b)
		}
	}
	return list
}

// TestViewWithoutRights: what the role may not ask fails as any statement does.
func TestViewWithoutRights(t *testing.T) {
	const table = "select name from accel.tables"
	f := newFake()
	f.add(table, viewing("select $1::text as name", 1, "rows"))
	s := startProxy(t, f)
	setup := mustConnect(t, postgresAddress(), "")
	defer setup.Close()
	setup.exchange(query("drop role if exists viewer; create role viewer login; revoke execute on function pg_catalog.pg_has_role(name, text) from public"))
	defer setup.exchange(query("grant execute on function pg_catalog.pg_has_role(name, text) to public; drop role viewer"))
	c := connectWith(t, s.Addr().String(), startupPacket(wire.Version30, "user", "viewer", "database", "postgres"))
	defer c.Close()
	const denied = "permission denied for function pg_has_role"
	for _, m := range [][][]byte{g(query(table)), g(parse("", table), bind("", "", nil), execute("", 0), syncing())} {
		got := c.exchange(m...)
		if text := show(got); !strings.Contains(text, denied) || got[len(got)-1].body != "I" {
			t.Errorf("the client got %s", text)
		}
		wantRows(t, c.exchange(query("select 5")), "5")
	}
}

// TestDescribeBeforeAnswer: the description of a statement over the schema pgaccel is not
// taken for one of a statement that is answered here behind it, in the same pipeline.
func TestDescribeBeforeAnswer(t *testing.T) {
	const table = "select name from accel.tables"
	f := newFake()
	f.add(table, viewing("select $1::text as name", 1, "rows"))
	st := f.add(candidateSQL, candidate(numbers(7)))
	f.add("select 2 as accel_begun", candidate(numbers(7, 8)))
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s := startProxy(t, f, change)
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		before := st.executions.Load()
		got := c.exchange(parse("v", table), describe('S', "v"), parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())
		wantTypes(t, got, "1tT12DCZ")
		wantRows(t, got, "7")
		if n := st.executions.Load() - before; n != 1 {
			t.Errorf("answered here %d times", n)
		}
		// And of a portal that goes on.
		c.exchange(query("begin"))
		c.exchange(parse("", "select 2 as accel_begun"), bind("p", "", nil), execute("p", 1), syncing())
		got = c.exchange(describe('S', "v"), execute("p", 0), syncing())
		wantTypes(t, got, "tTDCZ")
		wantRows(t, got, "8")
	})
}
