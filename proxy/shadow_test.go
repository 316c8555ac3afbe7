package proxy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/vector"
	"pgaccel/wire"
)

func shadowAll(c *Config) { c.Shadow = 1 }

// ways are those in which a check can know its snapshot, and how the statement is
// sent.
var ways = []struct {
	name, before, after string
	extended            bool
}{
	{"alone", "", "", false},
	{"alone, extended", "", "", true},
	{"REPEATABLE READ", "begin isolation level repeatable read", "commit", false},
	{"REPEATABLE READ, extended", "begin isolation level repeatable read", "commit", true},
	{"READ COMMITTED", "begin", "commit", false},
	{"READ COMMITTED, extended", "begin", "commit", true},
}

// waitsFor reports that a session waits for an event of pg_stat_activity's.
func waitsFor(t *testing.T, pid uint32, event string) func() bool {
	c := mustConnect(t, postgresAddress(), "")
	t.Cleanup(func() { c.Close() })
	return func() bool {
		r := rows(c.exchange(query(fmt.Sprintf("select wait_event from pg_stat_activity where pid = %d and wait_event = '%s'", pid, event))))
		return len(r) == 1
	}
}

// TestShadow: the client sees what Postgres says, and the outcome is told.
func TestShadow(t *testing.T) {
	const sql = "select accel from generate_series(1, 3) accel"
	for _, answer := range []struct {
		name    string
		batch   *vector.Batch
		ordered bool
		want    engine.Verdict
		row     int
		detail  string
	}{
		{"equal", numbers(1, 2, 3), true, engine.Equal, 0, ""},
		{"in another order", numbers(3, 1, 2), false, engine.Equal, 0, ""},
		{"in a wrong order", numbers(1, 3, 2), true, engine.Different, 2, "its place"},
		{"a wrong value", numbers(1, 2, 4), false, engine.Different, 3, "missing"},
		{"a wrong value, ordered", numbers(1, 5, 3), true, engine.Different, 2, "a row"},
		{"twice the same", numbers(1, 1, 3), false, engine.Different, 2, "missing"},
		{"too few", numbers(1, 2), true, engine.Different, 3, "2 rows, Postgres has 3"},
		{"too many", numbers(1, 2, 3, 4), true, engine.Different, 4, "too many"},
		{"too many of one", numbers(1, 2, 2, 3), false, engine.Different, 3, "too many"},
		{"none", numbers(), false, engine.Different, 1, "0 rows"},
		{"not to be written", &vector.Batch{Rows: 3, Columns: []vector.Column{{Type: vector.TypeOf(vector.Text), Strs: []string{"1", "2", "3"}}}}, false, engine.Inconclusive, 0, ""},
	} {
		t.Run(answer.name, func(t *testing.T) {
			forEachModel(t, func(t *testing.T, change func(*Config)) {
				f := newFake()
				st := f.add(sql, candidate(answer.batch))
				st.ordered = answer.ordered
				s := startProxy(t, f, change, shadowAll)
				checks := 0
				for _, w := range ways {
					formats := [][]int16{nil}
					if w.extended {
						formats = [][]int16{nil, {1}}
					}
					for _, format := range formats {
						groups := [][][]byte{g(query("select 1")), g(query(sql)), g(query("select 2"))}
						if w.extended {
							groups[1] = g(parse("", sql), bind("", "", nil, format...), describe('P', ""), execute("", 0), syncing())
						}
						if w.before != "" {
							groups = append([][][]byte{g(query(w.before))}, append(groups, g(query(w.after)))...)
						}
						c := mustConnect(t, s.Addr().String(), "")
						if got, want := show(turns(groups...)(c)), show(direct(t, groups...)); got != want {
							t.Errorf("%s: through pgaccel:\n%s\ndirect:\n%s", w.name, got, want)
						}
						c.Close()
						checks++
						out := st.outcome(t, checks)
						if out.Verdict != answer.want || !strings.Contains(out.Detail, answer.detail) || out.Row != answer.row {
							t.Errorf("%s: %v, row %d, %q", w.name, out.Verdict, out.Row, out.Detail)
						}
					}
				}
				if n := st.executions.Load(); n != 0 {
					t.Errorf("%d executions", n)
				}
			})
		})
	}
}

// TestShadowBatches: what is one statement is wrapped, the rest is answered here.
func TestShadowBatches(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const sql = "select accel from generate_series(1, 3) accel"
		for name, sc := range map[string]struct {
			groups  [][][]byte
			checked bool
		}{
			"prepared":                              {[][][]byte{g(parse("a", sql), describe('S', "a"), syncing()), g(bind("", "a", nil), execute("", 0), syncing()), g(bind("", "a", nil), describe('P', ""), execute("", 0), syncing())}, true},
			"unnamed statement of an earlier batch": {[][][]byte{g(parse("", sql), syncing()), g(bind("", "", nil), execute("", 0), syncing()), g(bind("", "", nil), execute("", 0), syncing())}, true},
			"named portal":                          {[][][]byte{g(parse("s", sql), bind("p", "s", nil), describe('P', "p"), execute("p", 0), closing('P', "p"), syncing())}, true},
			"two statements":                        {[][][]byte{g(parse("", sql), bind("", "", nil), execute("", 0), parse("", "select 5"), bind("", "", nil), execute("", 0), syncing())}, false},
			"twice":                                 {[][][]byte{g(parse("", sql), bind("", "", nil), execute("", 0), bind("", "", nil), execute("", 0), syncing())}, false},
			"a row limit":                           {[][][]byte{g(parse("", sql), bind("", "", nil), execute("", 5), syncing())}, false},
			"with a Flush":                          {[][][]byte{g(parse("", sql), flushing(), bind("", "", nil), execute("", 0), syncing())}, false},
			"BEGIN before":                          {[][][]byte{g(parse("", "begin"), bind("", "", nil), execute("", 0), parse("", sql), bind("", "", nil), execute("", 0), syncing())}, false},
			"in two pieces":                         {[][][]byte{g(parse("a", sql), syncing()), g(query("begin")), g(bind("", "a", nil), execute("", 0), syncing()), g(query("rollback"))}, true},
			"in a failed one":                       {[][][]byte{g(query("begin")), g(query("select 1/0")), g(query(sql)), g(query("rollback"))}, false},
			"serializable":                          {[][][]byte{g(query("set default_transaction_isolation = serializable")), g(query(sql)), g(parse("", sql), bind("", "", nil), execute("", 0), syncing())}, false},
			"repeatable read":                       {[][][]byte{g(query("set default_transaction_isolation = 'repeatable read'")), g(query(sql))}, true},
			"read committed with a timeout":         {[][][]byte{g(query("set statement_timeout = '1min'")), g(query("begin")), g(query(sql)), g(query("commit"))}, false},
			"alone with a timeout":                  {[][][]byte{g(query("set statement_timeout = '1min'")), g(query(sql))}, true},
			"a second statement is not lost":        {[][][]byte{g(query("begin")), g(parse("", sql), bind("", "", nil), execute("", 0), parse("", "select 5"), bind("", "", nil), execute("", 0), syncing()), g(query("commit"))}, true},
		} {
			t.Run(name, func(t *testing.T) {
				f := newFake()
				st := f.add(sql, candidate(numbers(1, 2, 3)))
				s := startProxy(t, f, change, shadowAll)
				c := mustConnect(t, s.Addr().String(), "")
				defer c.Close()
				if got, want := show(turns(sc.groups...)(c)), show(direct(t, sc.groups...)); got != want {
					t.Errorf("through pgaccel:\n%s\ndirect:\n%s", got, want)
				}
				n := st.checked()
				if sc.checked != (n > 0) {
					t.Errorf("%d checks", n)
				}
				for i := range n {
					if out := st.outcome(t, i+1); out.Verdict != engine.Equal {
						t.Errorf("%v: %s", out.Verdict, out.Detail)
					}
				}
				wantRows(t, c.exchange(query("select count(*) from pg_prepared_statements where name like 'pgaccel%' and name <> 'pgaccel_gate'")), "0")
				wantRows(t, c.exchange(query("select 3")), "3")
			})
		}
	})
}

// TestShadowErrors: errors in the statement, in describing it, and of the engine.
func TestShadowErrors(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		for _, sc := range []struct {
			sql    string
			want   engine.Verdict
			checks int // of six
		}{
			{"select 1/(accel - 3) from generate_series(1, 5) accel", engine.Different, 6},
			{"select accel.nosuch from generate_series(1, 5) accel", engine.Inconclusive, 0},
			{"select accel from", engine.Inconclusive, 0},
			{"select accel, pg_cancel_backend(pg_backend_pid()), pg_sleep(5) from generate_series(1, 5) accel", engine.Inconclusive, 6},
		} {
			f := newFake()
			st := f.add(sc.sql, candidate(numbers(1)))
			s := startProxy(t, f, change, shadowAll)
			for _, w := range ways {
				groups := [][][]byte{g(query("select 1")), g(query(sc.sql)), g(query("select 2"))}
				if w.extended {
					groups[1] = g(parse("", sc.sql), bind("", "", nil), describe('P', ""), execute("", 0), syncing())
				}
				if w.before != "" {
					groups = append([][][]byte{g(query(w.before))}, append(groups, g(query("rollback")))...)
				}
				c := mustConnect(t, s.Addr().String(), "")
				if got, want := show(turns(groups...)(c)), show(direct(t, groups...)); got != want {
					t.Errorf("%s, %s: through pgaccel:\n%s\ndirect:\n%s", sc.sql, w.name, got, want)
				}
				c.Close()
			}
			if n := st.checked(); n != sc.checks {
				t.Errorf("%s: %d checks", sc.sql, n)
			}
			for i := range st.checked() {
				want := sc.want
				if i >= 4 {
					want = engine.Inconclusive // READ COMMITTED: nobody knows the snapshot
				}
				if out := st.outcome(t, i+1); out.Verdict != want {
					t.Errorf("%s: %v: %s", sc.sql, out.Verdict, out.Detail)
				}
			}
		}
		// What is not answered here, or fails here, costs the client nothing either.
		for _, err := range []error{&plan.Forward{Reason: plan.ReasonPrivilege}, errors.New("a bug")} {
			for _, shadow := range []bool{true, false} {
				f := newFake()
				st := f.add(candidateSQL, candidate(numbers(7)))
				if shadow {
					st.shadowErr = err
				} else {
					st.err = err
				}
				c := mustConnect(t, startProxy(t, f, change, shadowAll).Addr().String(), "")
				for range 2 {
					wantRows(t, c.exchange(query(candidateSQL)), "1")
					wantRows(t, c.exchange(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing()), "1")
				}
				if !shadow {
					if out := st.outcome(t, 4); out.Verdict != engine.Inconclusive {
						t.Errorf("%v: %s", out.Verdict, out.Detail)
					}
				}
				c.Close()
			}
		}
	})
}

// TestShadowOtherCommits: in READ COMMITTED a commit between the gates leaves nothing
// to compare.
func TestShadowOtherCommits(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const sql = "select 7 as accel from (select pg_advisory_lock_shared(77)) l, (select pg_advisory_unlock_shared(77)) u"
		f := newFake()
		st := f.add(sql, candidate(numbers(7)))
		c := mustConnect(t, startProxy(t, f, change, shadowAll).Addr().String(), "")
		defer c.Close()
		other := mustConnect(t, postgresAddress(), "")
		defer other.Close()
		for i, extended := range []bool{false, true} {
			other.exchange(query("select pg_advisory_lock(77)"))
			c.exchange(query("begin"))
			if extended {
				c.send(parse("", sql), bind("", "", nil), execute("", 0), syncing())
			} else {
				c.send(query(sql))
			}
			waitFor(t, "the statement", waitsFor(t, c.pid(), "advisory"))
			other.exchange(query("create table if not exists committed (a int); insert into committed values (1)"))
			other.exchange(query("select pg_advisory_unlock(77)"))
			wantRows(t, c.until('Z'), "7")
			c.exchange(query("commit"))
			if out := st.outcome(t, i+1); out.Verdict != engine.Inconclusive || !strings.Contains(out.Detail, "others have committed") {
				t.Errorf("%v: %s", out.Verdict, out.Detail)
			}
		}
		other.exchange(query("drop table committed"))
	})
}

// TestShadowCancel cancels while the server answers, in each way.
func TestShadowCancel(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const sql = "select 7 as accel from (select pg_sleep(30)) s"
		f := newFake()
		st := f.add(sql, candidate(numbers(7)))
		s := startProxy(t, f, change, shadowAll)
		for i, w := range ways {
			c := mustConnect(t, s.Addr().String(), "")
			if w.before != "" {
				c.exchange(query(w.before))
			}
			if w.extended {
				c.send(parse("", sql), bind("", "", nil), execute("", 0), syncing())
			} else {
				c.send(query(sql))
			}
			waitFor(t, "the check", func() bool { return st.checked() == i+1 })
			waitFor(t, "the statement", waitsFor(t, c.pid(), "PgSleep"))
			cancel(t, s.Addr().String(), c.key())
			got := without(c.until('Z'), "12T")
			wantTypes(t, got, "EZ")
			wantCode(t, got[0], "57014")
			if want := map[bool]string{true: "I", false: "E"}[w.before == ""]; got[1].body != want {
				t.Errorf("%s: status %q", w.name, got[1].body)
			}
			c.exchange(query("rollback"))
			wantRows(t, c.exchange(query("select 3")), "3")
			c.Close()
			if out := st.outcome(t, i+1); out.Verdict != engine.Inconclusive {
				t.Errorf("%s: %v", w.name, out.Verdict)
			}
		}
	})
}

// TestShadowCancelAnywhere cancels at any moment of a checked statement: the client
// gets the answer or the error, and the session goes on.
func TestShadowCancelAnywhere(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		f.add(candidateSQL, candidate(numbers(1)))
		s := startProxy(t, f, change, shadowAll)
		for _, w := range ways {
			c := mustConnect(t, s.Addr().String(), "")
			for range 15 {
				if w.before != "" {
					c.exchange(query(w.before))
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					cancel(t, s.Addr().String(), c.key())
				}()
				if w.extended {
					c.send(parse("", candidateSQL), bind("", "", nil), execute("", 0), syncing())
				} else {
					c.send(query(candidateSQL))
				}
				got := without(c.until('Z'), "12T")
				<-done
				switch last := got[len(got)-1]; {
				case len(got) == 3 && got[0].typ == 'D' && got[1].typ == 'C' && last.typ == 'Z' && (last.body == "I") == (w.before == ""):
				case len(got) >= 2 && got[len(got)-2].typ == 'E' && last.typ == 'Z' && (last.body == "I") == (w.before == ""):
				default:
					t.Fatalf("%s:\n%s", w.name, show(got))
				}
				// The request may reach the server late.
				c.exchange(query("rollback"))
				c.exchange(query("rollback"))
			}
			wantRows(t, c.exchange(query("select 3")), "3")
			c.Close()
		}
	})
}

// TestShadowSessionEnds: a check whose session ends is given up.
func TestShadowSessionEnds(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const sql = "select 7 as accel from (select pg_sleep(30)) s"
		f := newFake()
		st := f.add(sql, candidate(numbers(7)))
		s := startProxy(t, f, change, shadowAll)
		c := mustConnect(t, s.Addr().String(), "")
		c.send(query(sql))
		waitFor(t, "the statement", waitsFor(t, c.pid(), "PgSleep"))
		other := mustConnect(t, postgresAddress(), "")
		defer other.Close()
		waitFor(t, "the check", func() bool { return st.checked() == 1 })
		other.exchange(query(fmt.Sprintf("select pg_terminate_backend(%d)", c.pid())))
		got := c.until(endOfConnection)
		if e := got[len(got)-2]; e.typ != 'E' || string(wire.ErrorField([]byte(e.body), 'C')) != "57P01" {
			t.Errorf("ended by %v", got)
		}
		c.Close()
		if out := st.outcome(t, 1); out.Verdict != engine.Inconclusive {
			t.Errorf("%v", out)
		}
	})
}

// TestShadowLargeAnswer: beyond the limit nothing is compared, and nothing kept.
func TestShadowLargeAnswer(t *testing.T) {
	for _, sql := range []string{"select repeat('x', 1000000) as accel from generate_series(1, 70)", "select repeat('x', 2000000) as accel"} {
		f := newFake()
		st := f.add(sql, candidate(numbers(7)))
		c := mustConnect(t, startProxy(t, f, shadowAll).Addr().String(), "")
		if got := c.exchange(query(sql)); got[len(got)-1].typ != 'Z' {
			t.Errorf("ended by %v", got[len(got)-1])
		}
		c.Close()
		if out := st.outcome(t, 1); out.Verdict != engine.Inconclusive || !strings.Contains(out.Detail, "larger than") {
			t.Errorf("%v: %s", out.Verdict, out.Detail)
		}
	}
}
