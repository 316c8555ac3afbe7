package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/plan"
	"pgaccel/wire"
)

// lineCollector collects the slow-query log.
type lineCollector struct {
	slog.Handler
	mu    sync.Mutex
	lines []map[string]string
}

func (l *lineCollector) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != "slow query" {
		return l.Handler.Handle(ctx, r)
	}
	line := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		line[a.Key] = a.Value.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// take waits for so many lines of kinds that count, and takes all.
func (l *lineCollector) take(t *testing.T, what string, n int, count func([]map[string]string) int) (list []map[string]string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d lines of %s", n, what), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if count(l.lines) < n {
			return false
		}
		list, l.lines = l.lines, nil
		return true
	})
	return list
}

func all(lines []map[string]string) int { return len(lines) }

// logAll has every statement in a log.
func logAll(t *testing.T) (*lineCollector, func(*Config)) {
	l := &lineCollector{Handler: slog.NewTextHandler(testWriter{t}, nil)}
	return l, func(c *Config) { c.Logger, c.SlowQueryLog = slog.New(l), new(time.Duration) }
}

// completedTags are those that a client has got, as the log has them.
func completedTags(got []message) (list []string) {
	for _, m := range got {
		if m.typ == wire.CommandComplete {
			tag, _, _ := wire.CString([]byte(m.body))
			command, rows := splitTag(tag)
			list = append(list, fmt.Sprintf("%s %d", command, rows))
		}
	}
	return list
}

// loggedTags are those of lines.
func loggedTags(lines []map[string]string) (list []string) {
	for _, l := range lines {
		if l["sqlstate"] == "" && l["command"] != "" {
			list = append(list, l["command"]+" "+l["rows"])
		}
	}
	return list
}

// TestSlowQueryLog: one line for each statement, whoever answers it, and none for what takes less time than is asked for.
func TestSlowQueryLog(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		const failsSQL, refusedSQL, seriesSQL = "select 1/(select 0) as accel", "select 4 as accel", "select generate_series(1, 3) as accel"
		f := newFake()
		f.add(candidateSQL, candidate(numbers(7)))
		f.add(seriesSQL, candidate(numbers(1, 2, 3)))
		f.add(failsSQL, &fakeStatement{})
		f.add(refusedSQL, &fakeStatement{route: engine.RouteCandidate, err: &plan.Forward{Reason: plan.ReasonMemory}})
		l, logged := logAll(t)
		s := startProxy(t, f, change, logged)
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		extended := func(sql string) [][]byte { return g(parse("", sql), bind("", "", nil), execute("", 0)) }
		for _, step := range []struct {
			name     string
			messages [][]byte
			want     []string // route, reason, sqlstate, command, rows
		}{
			{"relayed", g(query("select 5")), []string{"forwarded  SELECT 1 "}},
			{"several in one", g(query("begin; select 5; select 6; commit")), []string{"forwarded  COMMIT 2 "}},
			{"empty", g(query("")), []string{"forwarded   0 "}},
			{"answered", g(query(candidateSQL)), []string{"accelerated  SELECT 1 "}},
			{"answered, extended, two of a pipeline", cat(extended(candidateSQL), extended("select 5"), extended(seriesSQL), g(syncing())),
				[]string{"accelerated  SELECT 1 ", "forwarded  SELECT 1 ", "forwarded " + string(plan.ReasonNotSelect) + " SELECT 3 "}},
			{"in parts", g(parse("", seriesSQL), bind("p", "", nil), execute("p", 2), execute("p", 0), syncing()), []string{"accelerated   2 ", "accelerated  SELECT 1 "}},
			{"relayed in parts", g(parse("", "select generate_series(1, 3)"), bind("p", "", nil), execute("p", 2), execute("p", 0), syncing()), []string{"forwarded   2 ", "forwarded  SELECT 1 "}},
			{"refused behind the gate", g(query(refusedSQL)), []string{"forwarded " + string(plan.ReasonMemory) + " SELECT 1 "}},
			{"failed", g(query(failsSQL)), []string{"forwarded   0 22012"}},
			{"failed, what follows is skipped", cat(extended(failsSQL), extended(candidateSQL), g(syncing())), []string{"forwarded   0 22012"}},
			{"not executed", g(parse("", "selec"), bind("", "", nil), execute("", 0), syncing()), nil},
			{"not parsed", g(query("selec")), []string{"forwarded   0 42601"}},
			{"COPY", g(query("copy sales to stdout")), []string{"forwarded  COPY 10 "}},
		} {
			got := c.exchange(step.messages...)
			var have []string
			for _, x := range l.take(t, step.name, len(step.want), all) {
				have = append(have, fmt.Sprintf("%s %s %s %s %s", x["route"], x["reason"], x["command"], max(x["rows"], "0"), x["sqlstate"]))
				if x["server_pid"] == "0" || x["user"] != "postgres" || x["database"] != "postgres" {
					t.Errorf("%s: %v", step.name, x)
				}
			}
			if !slices.Equal(have, step.want) {
				t.Errorf("%s: %q, want %q: %v", step.name, have, step.want, got)
			}
		}
		hour := time.Hour
		if err := s.Reload(Settings{SlowQueryLog: &hour}); err != nil {
			t.Fatal(err)
		}
		c.exchange(query(candidateSQL))
		c.exchange(query("select 5"))
		if err := s.Reload(Settings{SlowQueryLog: new(time.Duration)}); err != nil {
			t.Fatal(err)
		}
		c.exchange(query("set application_name = 'me'"))
		c.exchange(query("select 1 from sales limit 0"))
		if list := l.take(t, "two reloads", 2, all); len(list) != 2 || list[1]["command"] != "SELECT" || list[1]["application_name"] != "me" {
			t.Errorf("after two reloads: %v", list)
		}
	})
}

// mentionsNothing has everything relayed without a look.
type mentionsNothing struct{ engine.Decider }

func (mentionsNothing) Mentions([]byte) bool { return false }

// TestSlowLogOff: nothing is noted of a statement while the log is off.
func TestSlowLogOff(t *testing.T) {
	s := newSession(t.Context(), mentionsNothing{}, noObserver{})
	s.slow = &statementLog{}
	s.slow.least.Store(slowOff)
	s.started, s.opaque = true, false
	s.queue = replies{}
	message := query("select 1")
	var before []byte
	if n := testing.AllocsPerRun(100, func() {
		s.fromClient(wire.Query, message, len(message), &before)
		if s.queue.at != nil || s.queue.observed() != nil {
			t.Error("it is observed")
		}
		s.queue.pop()
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
