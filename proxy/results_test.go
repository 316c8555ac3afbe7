package proxy

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgaccel/vector"
)

// wantHeld waits until sessions hold so many results.
func wantHeld(t *testing.T, n int64) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); heldResults.Load() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d results are held, want %d", heldResults.Load(), n)
		}
	}
}

// TestResultsAreLetGo: a result is held as long as a portal or a slow reader may still read
// of it, and not longer, whichever way that ends.
func TestResultsAreLetGo(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		f.add(candidateSQL, candidate(numbers(1, 2, 3, 4)))
		const large = "select '2'::text as accel"
		strs := slices.Repeat([]string{strings.Repeat("x", 256<<10)}, 128) // more than sockets hold
		f.add(large, candidate(&vector.Batch{Rows: len(strs), Columns: []vector.Column{{Type: vector.TypeOf(vector.Text), Strs: strs}}}))
		failing := f.add("select 3 as accel", candidate(numbers(1)))
		failing.batch.Columns[0].Type = vector.TypeOf(vector.Text) // it cannot be written as the int4 that Postgres describes
		s := startProxy(t, f, change)
		open := func() *rawClient {
			c := mustConnect(t, s.Addr().String(), "")
			c.exchange(query("begin"))
			got := c.exchange(parse("a", candidateSQL), bind("p", "a", nil), execute("p", 1), bind("q", "a", nil), execute("q", 1), syncing())
			wantTypes(t, got, "12Ds2DsZ")
			return c
		}
		for _, way := range []struct {
			name string
			left int64 // of two
			end  func(c *rawClient)
		}{
			{"the portal ends", 1, func(c *rawClient) { c.exchange(execute("p", 0), syncing()) }},
			{"it is read on, not to its end", 2, func(c *rawClient) { c.exchange(execute("p", 2), syncing()) }},
			{"it ends by its last row, and is asked again", 1, func(c *rawClient) { c.exchange(execute("p", 3), execute("p", 1), syncing()) }},
			{"it is closed", 1, func(c *rawClient) { c.exchange(closing('P', "p"), syncing()) }},
			{"its statement is closed", 2, func(c *rawClient) { c.exchange(closing('S', "a"), syncing()) }},
			{"the name is bound anew", 1, func(c *rawClient) { c.exchange(bind("p", "a", nil), syncing()) }}, // an error in Postgres, too
			{"commit", 0, func(c *rawClient) { c.exchange(query("commit")) }},
			{"rollback", 0, func(c *rawClient) { c.exchange(query("rollback")) }},
			{"commit in the extended protocol", 0, func(c *rawClient) {
				c.exchange(parse("", "commit"), bind("", "", nil), execute("", 0), syncing())
			}},
			{"commit before the portal is asked again, in one batch", 0, func(c *rawClient) {
				c.exchange(parse("", "commit"), bind("", "", nil), execute("", 0), execute("p", 1), syncing())
			}},
			{"an error, then rollback", 0, func(c *rawClient) { c.exchange(query("select 1/0")); c.exchange(query("rollback")) }},
			{"the client leaves", 0, func(c *rawClient) { c.send(raw('X', "")); c.until(endOfConnection) }},
			{"the connection is cut", 0, func(c *rawClient) { c.Close() }},
			{"the server ends the session", 0, func(c *rawClient) {
				admin := mustConnect(t, postgresAddress(), "")
				defer admin.Close()
				admin.exchange(query("select pg_terminate_backend(" + strconv.Itoa(int(c.pid())) + ")"))
				c.until(endOfConnection)
			}},
			{"what cannot be followed", 0, func(c *rawClient) { c.send(raw('!', "")); c.until(endOfConnection) }},
		} {
			t.Run(way.name, func(t *testing.T) {
				c := open()
				defer wantHeld(t, 0)
				defer c.Close()
				wantHeld(t, 2)
				way.end(c)
				wantHeld(t, way.left)
			})
		}
		t.Run("outside of a transaction", func(t *testing.T) {
			c := mustConnect(t, s.Addr().String(), "")
			defer c.Close()
			c.exchange(parse("", candidateSQL), bind("", "", nil), execute("", 1), syncing())
			wantHeld(t, 0)
		})
		t.Run("it cannot be written", func(t *testing.T) {
			c := mustConnect(t, s.Addr().String(), "")
			defer c.Close()
			before := failing.executions.Load()
			wantRows(t, c.exchange(query("select 3 as accel")), "3")
			if failing.executions.Load() != before+1 {
				t.Error("it was not executed")
			}
			wantHeld(t, 0)
		})
		for name, end := range map[string]func(c *rawClient){
			"a slow reader is cut": func(c *rawClient) { c.Close() },
			"a slow reader cancels": func(c *rawClient) {
				cancel(t, s.Addr().String(), c.key())
				got := c.until('Z')
				wantCode(t, got[len(got)-2], "57014")
			},
			"a slow reader reads it all": func(c *rawClient) { c.until('Z') },
		} {
			t.Run(name, func(t *testing.T) {
				c := mustConnect(t, s.Addr().String(), "")
				defer c.Close()
				c.send(query(large))
				if m := c.next(patience); m.typ != 'T' {
					t.Fatal(m)
				}
				wantHeld(t, 1)
				end(c)
				wantHeld(t, 0)
			})
		}
	})
}
