package proxy

import (
	"fmt"
	"testing"
)

// TestMissingGate runs conversations in which the gate is deallocated, in every way
// there is, before an accelerated statement: nothing of it shows.
func TestMissingGate(t *testing.T) {
	const functions = "create or replace function gone() returns int language plpgsql as $$begin execute 'deallocate all'; return 3; end$$;" +
		"create or replace function gone_late() returns trigger language plpgsql as $$begin execute 'deallocate all'; return null; end$$;" +
		"create or replace function gone_failing() returns int language plpgsql as $$begin execute 'deallocate all'; return 1/0; end$$;" +
		"create table if not exists late(a int); create or replace procedure gone_called() language plpgsql as $$begin execute 'deallocate all'; end$$;" +
		"drop trigger if exists late on late;" +
		"create constraint trigger late after insert on late deferrable initially deferred for each row execute function gone_late()"
	setup := mustConnect(t, postgresAddress(), "")
	setup.exchange(query(functions))
	setup.Close()
	simple := g(query(candidateSQL))
	extended := g(parse("", candidateSQL), bind("", "", nil), describe('P', ""), execute("", 0), syncing())
	two := g(parse("", candidateSQL), bind("a", "", nil), bind("b", "", nil), execute("a", 0), execute("b", 0), syncing())
	named := g(parse("n", candidateSQL), describe('S', "n"), bind("p", "n", nil), execute("p", 0), closing('S', "n"), closing('P', "p"), syncing())
	limited := g(parse("", "select generate_series(1,3) as accel"), bind("q", "", nil), execute("q", 2), execute("q", 2), closing('P', "q"), syncing())
	f := newFake()
	st := f.add(candidateSQL, candidate(numbers(1)))
	f.add("select generate_series(1,3) as accel", candidate(numbers(1, 2, 3))).plain = true
	s := startProxy(t, f)
	for _, gone := range []string{"deallocate all", "deallocate pgaccel_gate", "discard all", "select gone()", "select gone(), generate_series(1, 3)",
		"do $$begin execute 'deallocate all'; end$$", "call gone_called()", "insert into late values (1)", "select gone_failing()", "select 5", "set application_name = 'x'"} {
		// The gate is not there for Postgres itself.
		mayFail := gone == "deallocate pgaccel_gate"
		for name, accelerated := range map[string][][]byte{"simple": simple, "extended": extended, "two portals": two, "named": named, "limited": limited} {
			within := func(sql string) [][]byte { return cat(pbe(sql), accelerated) }
			suspended := g(parse("", gone), bind("s", "", nil), execute("s", 1), syncing())
			for i, groups := range [][][][]byte{
				{accelerated, g(query(gone)), accelerated, accelerated},
				{accelerated, cat(pbe(gone), g(syncing())), accelerated},
				{accelerated, g(query("begin")), accelerated, g(query("savepoint mine")), g(query(gone)), g(query("rollback to mine")), accelerated, accelerated, g(query("rollback"))},
				{g(query("begin")), accelerated, cat(pbe(gone), g(syncing())), accelerated, g(query("select count(*) from sales")), accelerated, g(query("commit"))},
				{g(query("begin isolation level repeatable read")), accelerated, g(query(gone)), accelerated, g(query("commit")), accelerated},
				{accelerated, g(query("begin")), g(query(gone)), accelerated, g(query("commit and chain")), accelerated, g(query("rollback")), accelerated},
				{accelerated, within(gone), accelerated},
				{accelerated, g(query(gone)), within("begin"), accelerated, cat(pbe("commit"), g(syncing())), accelerated},
				{accelerated, g(query("begin")), within(gone), within("savepoint x"), within(gone), g(query("rollback"))},
				{accelerated, within("insert into sales values (99)"), g(query("delete from sales where id = 99")), accelerated},
				{accelerated, cat(pbe("insert into sales values (98)"), pbe("begin"), pbe(gone), accelerated), g(query("rollback")), accelerated},
				{accelerated, g(query("begin")), suspended, accelerated, g(query("commit"))},
			} {
				if name == "simple" && (i == 6 || i == 7 || i == 8 || i == 9 || i == 10) {
					continue // a Query does not belong into a batch
				}
				if mayFail && i != 0 || name != "extended" && i > 1 && gone != "select gone()" && gone != "discard all" {
					continue
				}
				want := direct(t, groups...)
				c := mustConnect(t, s.Addr().String(), "")
				got := turns(groups...)(c)
				if mayFail {
					wantTypes(t, without(c.exchange(query("select 11")), "T"), "DCZ")
				} else if a, b := show(got), show(want); a != b {
					t.Errorf("%s, %s, conversation %d: through pgaccel:\n%s\ndirect:\n%s", name, gone, i, a, b)
				}
				c.Close()
			}
		}
	}
	if st.executions.Load() == 0 {
		t.Error("nothing was answered here")
	}
}

// TestGateIsPreparedOnce: statements of the client's that leave it alone do not make
// the session prepare the gate again.
func TestGateIsPreparedOnce(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(candidateSQL, candidate(numbers(7)))
		const plainSQL = "select 2 as accel"
		f.add(plainSQL, candidate(numbers(7))).plain = true
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		prepared := func() string {
			// Not by name: a text that the engine takes for its own closes the gates before it.
			got := c.exchange(query("select prepare_time from pg_prepared_statements where name like 'pgac' || 'cel_gate%' order by name"))
			if len(rows(got)) != 2 {
				t.Errorf("not both gates are prepared:\n%s", show(got))
			}
			return show(got)
		}
		forwarded := cat(pbe("select count(*) from sales"), g(syncing()))
		extended := cat(pbe(candidateSQL), g(syncing()))
		c.exchange(extended...)
		c.exchange(query(plainSQL))
		at := prepared()
		for _, groups := range [][][][]byte{
			{forwarded, extended, forwarded, extended},
			{g(query("select 1")), g(query(candidateSQL)), extended},
			{g(query(plainSQL)), extended, forwarded, g(query(plainSQL)), extended, g(query("begin")), forwarded, extended, g(query(plainSQL)), g(query("commit"))},
			{g(query("begin")), forwarded, extended, forwarded, g(query(candidateSQL)), extended, g(query("commit"))},
			{cat(pbe("begin"), extended), forwarded, extended, cat(pbe("commit"), g(syncing()))},
			{forwarded, cat(pbe("begin"), extended), forwarded, cat(pbe("commit"), g(syncing())), cat(pbe("begin"), extended), g(query("commit"))},
			{g(query("begin")), forwarded, cat(pbe("select count(*) from sales"), extended), g(query("rollback"))},
		} {
			before := st.executions.Load()
			turns(groups...)(c)
			if st.executions.Load() == before {
				t.Error("nothing was answered here")
			}
			if now := prepared(); now != at {
				t.Errorf("prepared again: %s, before %s", now, at)
				at = now
			}
		}
	})
}

// TestTimeoutEndsTheGate: a timeout or a cancel that ends the gate is told with the
// server's own error, field by field, and the session is as it would be.
func TestTimeoutEndsTheGate(t *testing.T) {
	locker := mustConnect(t, postgresAddress(), "")
	defer locker.Close()
	errorOf := func(list []message) string {
		for _, m := range list {
			if m.typ == 'E' {
				return string(withoutPosition([]byte(m.body))) // of the text that waits
			}
		}
		return show(list)
	}
	// What the server itself says where nobody is in between.
	want := map[string]string{}
	for _, setting := range []string{"statement_timeout", "lock_timeout", "cancel"} {
		c := mustConnect(t, postgresAddress(), "")
		locker.exchange(query("begin; lock table sales in access exclusive mode"))
		if setting == "cancel" {
			c.send(query("select count(*) from sales"))
			waitFor(t, "the lock", activity(t, c.pid(), "wait_event_type = 'Lock'"))
			locker.exchange(query(fmt.Sprintf("select pg_cancel_backend(%d)", c.pid())))
			want[setting] = errorOf(c.until('Z'))
		} else {
			c.exchange(query("set " + setting + " = 200"))
			want[setting] = errorOf(c.exchange(query("select count(*) from sales")))
		}
		locker.exchange(query("rollback"))
		c.Close()
	}
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		for _, shadow := range []float64{0, 1} {
			s := startProxy(t, everySelect{}, change, func(c *Config) { c.Shadow = shadow })
			for _, setting := range []string{"statement_timeout", "lock_timeout", "cancel"} {
				for _, before := range []string{"select 1", "begin", "begin isolation level repeatable read"} {
					for _, extended := range []bool{false, true} {
						name := fmt.Sprintf("shadow %g, %s, after %s, extended %v", shadow, setting, before, extended)
						c := mustConnect(t, s.Addr().String(), "")
						locked := activity(t, c.pid(), "wait_event_type = 'Lock'")
						locked() // so that its backend has looked up what it needs
						c.exchange(query(before))
						if setting != "cancel" {
							c.exchange(query("set " + setting + " = 200"))
						}
						locker.exchange(query("begin; lock table pg_catalog.pg_operator in access exclusive mode"))
						if extended {
							c.send(parse("", "select 1 as accel"), bind("", "", nil), execute("", 0), syncing())
						} else {
							c.send(query("select 1 as accel"))
						}
						if setting == "cancel" {
							waitFor(t, "the lock", locked)
							locker.exchange(query(fmt.Sprintf("select pg_cancel_backend(%d)", c.pid())))
						}
						got := without(c.until('Z'), "12")
						locker.exchange(query("rollback"))
						wantTypes(t, got, "EZ")
						if e := got[0].body; e != want[setting] {
							t.Errorf("%s:\n%q, want\n%q", name, e, want[setting])
						}
						if status := map[bool]string{true: "I", false: "E"}[before == "select 1"]; got[1].body != status {
							t.Errorf("%s: status %s", name, got[1].body)
						}
						c.exchange(query("rollback"))
						wantRows(t, c.exchange(query("select 3")), "3")
						c.Close()
					}
				}
			}
		}
	})
}
