package proxy

import (
	"testing"

	"pgaccel/wire"
)

// TestRefusedGate runs conversations of a role that may not run the gate: it is forwarded,
// and its transaction goes on. Before the engine knows that something has been revoked,
// that holds where the gate is alone in its transaction, and in a transaction block.
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
			for i, c := range []struct {
				groups [][][]byte
				known  bool // what was revoked has to be known
			}{
				{[][][]byte{asked, asked}, false},
				{[][][]byte{asked, g(query(insert)), asked, count}, false},
				{[][][]byte{asked, g(query("begin")), asked, g(query(insert)), asked, g(query("commit")), asked, count}, false},
				{[][][]byte{g(query("begin")), asked, g(query(insert)), asked, g(query("commit")), count}, false},
				{[][][]byte{g(query("begin")), g(query(insert)), asked, g(query("savepoint mine")), asked, g(query("rollback to mine")), asked, g(query("rollback")), count}, false},
				{[][][]byte{g(query("begin isolation level repeatable read")), asked, asked, g(query("commit")), asked}, false},
				{[][][]byte{cat(pbe("begin"), pbe(insert), asked), asked, g(query("commit")), count}, false},
				{[][][]byte{cat(pbe(insert), asked), asked, count}, true},
				{[][][]byte{cat(pbe(insert), pbe("commit"), asked), count}, true},
				{[][][]byte{g(query("begin")), asked, g(query("select nosuch")), asked, g(query("rollback")), asked}, false},
			} {
				if r > 0 && i > 3 && i != 6 {
					continue // the same for every right
				}
				if name == "simple" && (i == 6 || i == 7 || i == 8) {
					continue // a Query does not belong into a batch
				}
				for _, known := range []bool{false, true} {
					if !known && (c.known || name == "two portals") {
						continue // an error of the gate undoes a Bind
					}
					f := newFake()
					st := f.add(candidateSQL, candidate(numbers(1)))
					with := f.add("select $1::int4 as accel", candidate(numbers(1)))
					st.mayFail, with.mayFail, st.plain = known, known, i%2 == 0
					admin("truncate kept; revoke " + revoked + " from public")
					d := connect(postgresAddress())
					want := turns(c.groups...)(d)
					d.Close()
					admin("truncate kept")
					through := connect(startProxy(t, f).Addr().String())
					got := turns(c.groups...)(through)
					if a, b := show(mask(got)), show(mask(want)); a != b {
						t.Errorf("%s revoked, %s, conversation %d, known %v: through pgaccel:\n%s\ndirect:\n%s", revoked, name, i, known, a, b)
					}
					if n := st.executions.Load() + with.executions.Load(); n != 0 {
						t.Errorf("%s revoked, %s, conversation %d: %d executions were answered here", revoked, name, i, n)
					}
					through.Close()
					admin("truncate kept; grant " + revoked + " to public")
					// Where it may fail, it is not run behind other statements outside of a block.
					again := connect(startProxy(t, f).Addr().String())
					turns(c.groups...)(again)
					again.Close()
					if n := st.executions.Load() + with.executions.Load(); n == 0 && !(known && (name == "two portals" || i == 7 || i == 8)) {
						t.Errorf("%s granted, %s, conversation %d, known %v: nothing was answered here", revoked, name, i, known)
					}
				}
			}
		}
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
