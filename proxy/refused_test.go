package proxy

import (
	"testing"

	"pgaccel/wire"
)

// TestRefusedGate runs conversations of a role that may not run the gate: it is forwarded,
// and its transaction goes on.
func TestRefusedGate(t *testing.T) {
	setup := mustConnect(t, postgresAddress(), "")
	defer setup.Close()
	admin := func(sql string) {
		t.Helper()
		if got := setup.exchange(query(sql)); len(without(got, "CZN")) > 0 {
			t.Fatalf("%s:\n%s", sql, show(got))
		}
	}
	admin("create role refused login; create table kept(a int); grant all on kept to refused")
	defer admin("drop table kept; drop role refused")
	connect := func(address string) *rawClient {
		return connectWith(t, address, startupPacket(wire.Version30, "user", "refused", "database", "postgres"))
	}
	simple := g(query(candidateSQL))
	extended := g(parse("", candidateSQL), bind("", "", nil), describe('P', ""), execute("", 0), syncing())
	two := g(parse("", candidateSQL), bind("a", "", nil), bind("b", "", nil), execute("a", 0), execute("b", 0), syncing())
	named := g(parse("n", candidateSQL), describe('S', "n"), bind("p", "n", nil), execute("p", 0), closing('S', "n"), closing('P', "p"), syncing())
	typed := g(parse("", "select $1::int4 as accel", 0), bind("", "", []string{"1"}), execute("", 0), syncing())
	insert := "insert into kept values (1)"
	count := g(query("select count(*) from kept"))
	for r, revoked := range []string{
		"execute on function pg_catalog.pg_current_snapshot()", "execute on function pg_catalog.texteq(text, text)",
		"select on pg_catalog.pg_operator", "usage on schema pg_catalog",
	} {
		for name, asked := range map[string][][]byte{"simple": simple, "extended": extended, "two portals": two, "named": named, "parameter": typed} {
			for i, groups := range [][][][]byte{
				{asked, asked},
				{asked, g(query(insert)), asked, count},
				{asked, g(query("begin")), asked, g(query(insert)), asked, g(query("commit")), asked, count},
				{g(query("begin")), asked, g(query(insert)), asked, g(query("commit")), count},
				{g(query("begin")), g(query(insert)), asked, g(query("savepoint mine")), asked, g(query("rollback to mine")), asked, g(query("rollback")), count},
				{g(query("begin isolation level repeatable read")), asked, asked, g(query("commit")), asked},
				{cat(pbe("begin"), pbe(insert), asked), asked, g(query("commit")), count},
				{cat(pbe(insert), asked), asked, count},
				{cat(pbe(insert), pbe("commit"), asked), count},
				{g(query("begin")), asked, g(query("select nosuch")), asked, g(query("rollback")), asked},
			} {
				if r > 0 && i > 3 && i != 6 {
					continue // the same for every right
				}
				if name == "simple" && (i == 6 || i == 7 || i == 8) {
					continue // a Query does not belong into a batch
				}
				f := newFake()
				st := f.add(candidateSQL, candidate(numbers(1)))
				with := f.add("select $1::int4 as accel", candidate(numbers(1)))
				st.plain = i%2 == 0
				admin("truncate kept; revoke " + revoked + " from public")
				d := connect(postgresAddress())
				want := turns(groups...)(d)
				d.Close()
				admin("truncate kept")
				through := connect(startProxy(t, f).Addr().String())
				got := turns(groups...)(through)
				if a, b := show(mask(got)), show(mask(want)); a != b {
					t.Errorf("%s revoked, %s, conversation %d: through pgaccel:\n%s\ndirect:\n%s", revoked, name, i, a, b)
				}
				if n := st.executions.Load() + with.executions.Load(); n != 0 {
					t.Errorf("%s revoked, %s, conversation %d: %d executions were answered here", revoked, name, i, n)
				}
				through.Close()
				admin("truncate kept; grant " + revoked + " to public")
				// It is not run behind other statements outside of a block.
				again := connect(startProxy(t, f).Addr().String())
				turns(groups...)(again)
				again.Close()
				if n := st.executions.Load() + with.executions.Load(); n == 0 && i != 8 {
					t.Errorf("%s granted, %s, conversation %d: nothing was answered here", revoked, name, i)
				}
			}
		}
	}
}

// TestRevokedMeanwhile: another session's REVOKE comes between two gates of a session.
func TestRevokedMeanwhile(t *testing.T) {
	setup := mustConnect(t, postgresAddress(), "")
	defer setup.Close()
	const right = "execute on function pg_catalog.pg_current_snapshot()"
	admin := func(sql string) {
		t.Helper()
		if got := setup.exchange(query(sql)); len(without(got, "CZN")) > 0 {
			t.Fatalf("%s:\n%s", sql, show(got))
		}
	}
	admin("create role meanwhile login; create table stayed(a int); grant all on stayed to meanwhile;" +
		"create function revoking() returns int language plpgsql security definer as $$begin revoke " + right + " from public; return 1; end$$")
	defer admin("drop table stayed; drop function revoking(); drop role meanwhile")
	const revoking = "select revoking() as accel"
	one := func(sql string) [][]byte { return g(query(sql)) }
	simple := one(candidateSQL)
	extended := g(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())
	asked := extended[:3]
	typed := g(parse("t", "select $1::int4 as accel", 0), bind("tp", "t", []string{"1"}), execute("tp", 0), closing('P', "tp"), closing('S', "t"))
	insert, count := "insert into stayed values (1)", one("select count(*) from stayed")
	series := "select generate_series(1, 5)"
	groups := func(list ...[][]byte) [][][]byte { return list }
	for name, c := range map[string]struct {
		before, after [][][]byte
		answered      int32 // executions before it
		shadow        float64
	}{
		"simple":              {groups(one("begin"), simple, simple), groups(simple, one(insert), simple, one("commit"), count), 2, 0},
		"extended":            {groups(one("begin"), extended, extended), groups(extended, one(insert), extended, one("commit"), count), 2, 0},
		"behind an INSERT":    {groups(simple, one("begin"), one(insert), simple), groups(simple, extended, one("commit"), count), 2, 0},
		"the block's first":   {groups(simple, one("begin"), one(insert)), groups(simple, one("commit"), count), 1, 0},
		"noticed in a block":  {groups(one("begin"), simple, extended), groups(g(parse("", "select 1 from pg_tablespace"), syncing()), simple, extended, one("commit"), count), 2, 0},
		"a first gate":        {groups(simple, one("begin")), groups(simple, one("commit"), count), 1, 0},
		"a savepoint's first": {groups(simple, one("begin"), one("savepoint s")), groups(extended, one(insert), one("release s"), one("commit"), count), 1, 0},
		"behind SET":          {groups(simple, one("begin"), one("set work_mem = '7MB'")), groups(g(bind("", "", nil), syncing())[1:], extended, simple, one("commit"), count), 1, 0},
		"REPEATABLE READ":     {groups(one("begin isolation level repeatable read"), extended), groups(extended, one(insert), one("commit"), count), 1, 0},
		"READ ONLY":           {groups(one("begin read only"), extended), groups(extended, one("select 5"), one("commit")), 1, 0},
		"in a batch's block":  {groups(extended), groups(cat(pbe("begin"), pbe(insert), asked, pbe("select 5"), extended), one("commit"), count), 1, 0},
		"behind a batch's":    {groups(extended), groups(cat(pbe("begin"), pbe(insert), asked, pbe("commit"), pbe(insert), extended), count), 1, 0},
		"in a transaction":    {groups(extended), groups(cat(pbe(insert), asked, pbe(insert), extended), count), 1, 0},
		"behind a candidate":  {groups(extended, cat(asked, extended)), groups(cat(asked, typed, asked, pbe(insert), extended), count), 3, 0},
		"with Describe":       {groups(extended), groups(cat(g(parse("n", candidateSQL), describe('S', "n"), bind("p", "n", nil), bind("q", "n", nil), describe('P', "q"), execute("q", 0), execute("p", 0)), extended)), 1, 0},
		"portals": {groups(extended), groups(g(parse("n", candidateSQL), bind("a", "n", nil), bind("b", "n", nil), bind("c", "n", nil), closing('P', "b"), bind("b", "n", nil),
			execute("b", 0), execute("a", 0), execute("c", 0), execute("nosuch", 0), syncing())), 1, 0},
		"a portal of theirs": {groups(extended), groups(cat(g(parse("o", series), bind("o", "o", nil), parse("n", candidateSQL), bind("a", "n", nil), execute("a", 0), execute("o", 2), execute("o", 2)), extended)), 1, 0},
		"a portal read on": {groups(one("begin"), g(parse("", series), bind("o", "", nil), execute("o", 2), syncing()), extended),
			groups(extended, g(execute("o", 2), syncing()), extended, g(execute("o", 2), syncing()), one("commit")), 1, 0},
		"a cursor":        {groups(one("begin"), one("declare c cursor for "+series), simple, one("fetch 2 from c")), groups(simple, one("fetch 2 from c"), extended, one("fetch from c"), one("commit")), 1, 0},
		"their own names": {groups(one("begin"), one(savepointSQL), one(insert), simple), groups(simple, one(insert), one(rollbackToSQL), simple, one(releaseSQL), one(releaseSQL), one("rollback"), count), 1, 0},
		"SET LOCAL": {groups(one("begin"), one("set local work_mem = '7MB'"), one("savepoint s"), one("set local work_mem = '8MB'"), simple),
			groups(simple, one("show work_mem"), one("rollback to s"), one("show work_mem"), one("commit"), one("show work_mem")), 1, 0},
		"checked":           {groups(one("begin"), one(insert), one(revoking)), groups(simple, one("commit"), count), 0, 1},
		"checked, extended": {groups(one("begin"), one(insert), cat(pbe(revoking), pbe("select 5"), g(syncing()))), groups(extended, one("commit"), count), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer admin("grant " + right + " to public; truncate stayed")
			f := newFake()
			st := f.add(candidateSQL, candidate(numbers(1))) // as the server says
			f.add("select $1::int4 as accel", candidate(numbers(1)))
			f.add(revoking, candidate(numbers(1)))
			through := func(address string) string {
				client := connectWith(t, address, startupPacket(wire.Version30, "user", "meanwhile", "database", "postgres"))
				defer client.Close()
				admin("grant " + right + " to public; truncate stayed")
				got := turns(c.before...)(client)
				if n := st.executions.Load(); address != postgresAddress() && n != c.answered {
					t.Errorf("%d executions were answered here, want %d", n, c.answered)
				}
				if c.shadow == 0 {
					admin("revoke " + right + " from public")
				}
				return show(mask(append(got, turns(c.after...)(client)...)))
			}
			want := through(postgresAddress())
			if got := through(startProxy(t, f, func(o *Config) { o.Shadow = c.shadow }).Addr().String()); got != want {
				t.Errorf("through pgaccel:\n%s\ndirect:\n%s", got, want)
			}
		})
	}
}

// TestRevokedByTheSession: what a session has taken away itself, or a function that it has
// called, counts at once, whatever role it goes on as and before anything is committed.
func TestRevokedByTheSession(t *testing.T) {
	setup := mustConnect(t, postgresAddress(), "")
	defer setup.Close()
	setup.exchange(query("create role limited login; create table stays(a int); grant all on stays to limited"))
	defer setup.exchange(query("drop table stays; drop role limited"))
	const revoke = "revoke execute on function pg_catalog.pg_current_snapshot() from public"
	one := func(sql string) [][]byte { return g(query(sql)) }
	asked := g(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())
	insert, count := "insert into stays values (1)", one("select count(*) from stays")
	for name, c := range map[string][][][]byte{
		"before any gate":      {one("begin"), one(revoke), one("set local role limited"), one(insert), asked, count, one("rollback")},
		"a Query":              {one("begin"), one(revoke), one("set local role limited"), one(insert), one(candidateSQL), count, one("rollback")},
		"behind gates":         {asked, one("begin"), one(insert), asked, one(revoke), asked, one("set local role limited"), asked, count, one("rollback")},
		"in a batch":           {cat(pbe("begin"), pbe(revoke), pbe("set local role limited"), pbe(insert), asked), count, one("rollback")},
		"in a block's batch":   {asked, one("begin"), cat(pbe(revoke), pbe("set local role limited"), pbe(insert), asked), asked, count, one("rollback")},
		"without a block":      {cat(pbe(revoke), pbe("set local role limited"), pbe(insert), asked), count},
		"known without":        {asked, cat(pbe(revoke), pbe("set local role limited"), pbe(insert), asked), count},
		"committed":            {asked, one(revoke), asked, asked, one("begin"), one("set local role limited"), asked, one(insert), count, one("commit")},
		"in DO":                {asked, one("begin"), one(insert), one("do $$ begin " + revoke + "; end $$"), asked, one("set local role limited"), asked, count, one("rollback")},
		"in another savepoint": {one("begin"), asked, one("savepoint mine"), one(revoke), one("set local role limited"), one(insert), asked, one("rollback to mine"), asked, count, one("rollback")},
	} {
		t.Run(name, func(t *testing.T) {
			through := func(address string) string {
				client := mustConnect(t, address, "")
				defer client.Close()
				defer setup.exchange(query("grant execute on function pg_catalog.pg_current_snapshot() to public; truncate stays"))
				return show(without(mask(turns(c...)(client)), "S")) // a ParameterStatus may come earlier
			}
			f := newFake()
			f.add(candidateSQL, candidate(numbers(1))) // as the server says
			want := through(postgresAddress())
			if got := through(startProxy(t, f).Addr().String()); got != want {
				t.Errorf("through pgaccel:\n%s\ndirect:\n%s", got, want)
			}
		})
	}
}

// TestRevokedAmidABatch: what was answered here before a gate that is refused stays as it was,
// portals that are read on among it.
func TestRevokedAmidABatch(t *testing.T) {
	setup := mustConnect(t, postgresAddress(), "")
	defer setup.Close()
	const right = "execute on function pg_catalog.pg_current_snapshot()"
	setup.exchange(query("create role amid login"))
	defer setup.exchange(query("drop role amid"))
	const series = "select generate_series(1,3) as accel"
	for _, name := range []string{"", "a"} {
		f := newFake()
		several := f.add(series, candidate(numbers(1, 2, 3)))
		f.add(candidateSQL, candidate(numbers(1)))
		through := func(address string) string {
			c := connectWith(t, address, startupPacket(wire.Version30, "user", "amid", "database", "postgres"))
			defer c.Close()
			defer setup.exchange(query("grant " + right + " to public"))
			c.send(parse("s", series), bind(name, "s", nil), parse("o", candidateSQL), bind("c", "o", nil), execute(name, 1), flushing())
			got := c.until('s')
			setup.exchange(query("revoke " + right + " from public"))
			// The lock on a table not used before has the server look at what others have changed.
			c.send(parse("", "select 1 from pg_tablespace"), bind("b", "o", nil), execute("b", 0), execute(name, 1), describe('P', name), execute("c", 0), execute(name, 0), closing('P', name), execute("c", 0), syncing())
			return show(append(got, c.until('Z')...))
		}
		want := through(postgresAddress())
		if got := through(startProxy(t, f).Addr().String()); got != want {
			t.Errorf("portal %q, through pgaccel:\n%s\ndirect:\n%s", name, got, want)
		}
		if several.executions.Load() != 1 {
			t.Errorf("%d executions, want that before the REVOKE", several.executions.Load())
		}
	}
}
