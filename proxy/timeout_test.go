package proxy

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgaccel/engine"
	"pgaccel/wire"
)

// TestTransactionTimeouts: the server ends a session by a timeout of its transaction
// while the gate runs, while an answer is computed here, and while its rows are sent. The
// client sees the server's FATAL as on a direct connection, and nothing behind it.
// transaction_timeout is one of PostgreSQL 17 and later; the other does not run in the
// middle of a batch.
func TestTransactionTimeouts(t *testing.T) {
	admin := mustConnect(t, postgresAddress(), "")
	defer admin.Close()
	version, err := strconv.Atoi(rows(admin.exchange(query("show server_version_num")))[0])
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{"idle_in_transaction_session_timeout": "25P03"}
	if version >= 170000 {
		codes["transaction_timeout"] = "25P04"
	}
	// fatal is what a client is told in the end; before are the types of the messages that
	// come before that.
	fatal := func(list []message) (before, last string) {
		for _, m := range list {
			if m.typ == 'E' {
				e := []byte(m.body)
				last += fmt.Sprintf("%s %s %s %s;", wire.ErrorField(e, 'V'), wire.ErrorField(e, 'C'), wire.ErrorField(e, 'M'), wire.ErrorField(e, 'R'))
			} else if m.typ == endOfConnection {
				last += "end"
			} else if last != "" {
				if !strings.HasSuffix(last, string(m.typ)) {
					last += string(m.typ)
				}
			} else if !strings.HasSuffix(before, string(m.typ)) {
				before += string(m.typ)
			}
		}
		return before, last
	}
	extended := g(parse("", candidateSQL), bind("", "", nil), describe('P', ""), execute("", 0), syncing())
	for setting, code := range codes {
		begin := query("set " + setting + " = 150; begin")
		// Directly, in the middle of a statement or idle.
		c := mustConnect(t, postgresAddress(), "")
		c.exchange(begin)
		if setting == "transaction_timeout" {
			c.send(query("select pg_sleep(60)"))
		}
		_, want := fatal(c.until(endOfConnection))
		if c.Close(); !strings.HasPrefix(want, "FATAL "+code) || !strings.HasSuffix(want, ";end") {
			t.Fatalf("%s: directly: %s", setting, want)
		}
		forEachModel(t, func(t *testing.T, change func(*Config)) {
			f := newFake()
			st := f.add(candidateSQL, &fakeStatement{route: engine.RouteCandidate, batch: numbers(7), block: make(chan struct{})})
			many := make([]int64, 2_000_000)
			f.add("select 5 as accel", candidate(numbers(many...)))
			s := startProxy(t, f, change)
			run := func(what, types string, messages [][]byte, meanwhile func(c *rawClient)) {
				t.Helper()
				c := mustConnect(t, s.Addr().String(), "")
				defer c.Close()
				c.exchange(begin)
				c.send(messages...)
				meanwhile(c)
				if before, last := fatal(c.until(endOfConnection)); last != want || before != types {
					t.Errorf("%s, %s: %s, %s; want %s, %s", setting, what, before, last, types, want)
				}
			}
			nothing := func(*rawClient) {}
			executions := st.executions.Load()
			run("computing", "", g(query(candidateSQL)), nothing)
			if st.executions.Load() != executions+1 {
				t.Errorf("%s: nothing was computed here", setting)
			}
			gone := func(c *rawClient) {
				waitFor(t, "the backend is gone", func() bool {
					return rows(admin.exchange(query(fmt.Sprintf("select count(*) from pg_stat_activity where pid = %d", c.pid()))))[0] == "0"
				})
			}
			run("sending", "TD", g(query("select 5 as accel")), gone)
			if setting == "transaction_timeout" {
				// The gate waits for a lock.
				admin.exchange(query("begin; lock table pg_catalog.pg_operator in access exclusive mode"))
				run("computing, extended", "12T", extended, nothing)
				run("the gate", "", g(query(candidateSQL)), nothing)
				run("the gate, extended", "12T", extended, nothing)
				admin.exchange(query("rollback"))
			}
		})
	}
}
