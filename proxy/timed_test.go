package proxy

import (
	"errors"
	"testing"
	"time"

	"pgaccel/engine"
)

// TestForwardedIsTimed: what the server completes in the place of pgaccel is timed, once
// an execution, and nothing else is.
func TestForwardedIsTimed(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const sleeps, fails, rowsSQL, brokenSQL = "select pg_sleep(0.02) as accel", "select 1/0 as accel", "select generate_series(1, 3) as accel", "select 3 as accel"
		f := newFake()
		slow := f.add(sleeps, &fakeStatement{})
		failing := f.add(fails, &fakeStatement{})
		series := f.add(rowsSQL, &fakeStatement{})
		broken := f.add(brokenSQL, &fakeStatement{route: engine.RouteCandidate, err: errors.New("a bug")})
		answered := f.add(candidateSQL, candidate(numbers(7)))
		c := mustConnect(t, startProxy(t, f, change).Addr().String(), "")
		defer c.Close()
		extended := func(sql string) [][]byte { return g(parse("", sql), bind("", "", nil), execute("", 0)) }
		for _, step := range []struct {
			name     string
			of       *fakeStatement
			messages [][]byte
			n        int32
		}{
			{"simple", slow, g(query(sleeps)), 1},
			{"extended", slow, cat(extended(sleeps), g(syncing())), 1},
			{"two in a pipeline, another between", slow, cat(extended(sleeps), extended("select 1"), extended(sleeps), g(syncing())), 2},
			{"one before an error, one behind it", slow, cat(extended(sleeps), extended(fails), extended(sleeps), g(syncing())), 1},
			{"an error", failing, g(query(fails)), 0},
			{"an error, extended", failing, cat(extended(fails), g(syncing())), 0},
			{"in parts, between which the client takes its time", series, g(parse("", rowsSQL), bind("p", "", nil), execute("p", 2), execute("p", 0), syncing()), 0},
			{"given up behind the gate", broken, g(query(brokenSQL)), 1},
			{"given up, extended", broken, cat(extended(brokenSQL), g(syncing())), 1},
			{"answered here", answered, g(query(candidateSQL)), 0},
		} {
			before, took := step.of.completed.Load(), step.of.took.Load()
			c.exchange(step.messages...)
			if n := step.of.completed.Load() - before; n != step.n {
				t.Errorf("%s: %d timed, want %d", step.name, n, step.n)
			}
			if took := time.Duration(step.of.took.Load() - took); step.of == slow && took < time.Duration(step.n)*20*time.Millisecond || took < 0 {
				t.Errorf("%s: took %v", step.name, took)
			}
		}
		if answered.executions.Load() != 1 {
			t.Error("nothing was answered here")
		}
	})
}

// TestTimingIsBounded: a session whose pipeline is never empty keeps no more than what is
// on its way.
func TestTimingIsBounded(t *testing.T) {
	var q replies
	st := &fakeStatement{}
	for range 10_000 {
		q.push(replyExecute)
		q.timed(st, time.Now())
		if q.len() > 3 {
			q.completed(true)
			q.pop()
		}
	}
	if n := st.completed.Load(); n != 9_997 || cap(q.refs) > 64 {
		t.Errorf("%d timed, room for %d", n, cap(q.refs))
	}
}
