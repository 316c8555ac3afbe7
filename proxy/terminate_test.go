package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/upstream"
	"pgaccel/wire"
)

// startEnding is startProxy with the context that ends Serve, and what waits for its end.
func startEnding(t *testing.T, d engine.Decider, change func(*Config)) (s *Server, end func()) {
	t.Helper()
	up, err := upstream.ParseConfig(postgres.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Listen: []string{"127.0.0.1:0"}, Default: &Database{Upstream: up, Engine: d}, Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	change(&cfg)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if s, err = Listen(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	return s, func() {
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("Serve does not end")
		}
	}
}

// TestTermination: a client is told of the server's end where a message can begin, and
// nothing of its session runs on in the server.
func TestTermination(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		f := newFake()
		st := f.add(candidateSQL, &fakeStatement{route: engine.RouteCandidate, batch: numbers(7), block: make(chan struct{})})
		s, end := startEnding(t, f, change)
		const sleep = "select pg_sleep(600), 'accel'"
		asleep := func(c *rawClient) { waitFor(t, "the query", sleeps(t, c.pid())) }
		var clients []*rawClient
		var names []string
		begin := func(name string, ready func(*rawClient), groups ...[][]byte) *rawClient {
			c := mustConnect(t, s.Addr().String(), "")
			t.Cleanup(func() { c.Close() })
			for i, g := range groups {
				if c.send(g...); i < len(groups)-1 {
					c.until('Z')
				}
			}
			if ready != nil {
				ready(c)
			}
			clients, names = append(clients, c), append(names, name)
			return c
		}
		begin("at rest", nil)
		begin("in a block", func(c *rawClient) { c.until('Z') }, g(query("begin")))
		begin("a Query", asleep, g(query(sleep)))
		begin("a Query in a block", asleep, g(query("begin")), g(query(sleep)))
		begin("a pipeline", asleep, g(parse("", sleep), bind("", "", nil), execute("", 0), syncing(), query("select 1")))
		begin("computed here", func(*rawClient) {
			waitFor(t, "the execution", func() bool { return st.executions.Load() > 0 })
		}, g(query(candidateSQL)))
		begin("a copy in", func(c *rawClient) { c.until('G') }, g(query("create temp table c (a int)")), g(query("copy c from stdin"), raw('d', "1\n")))
		begin("half a message", nil, g(query("select 1")[:7]))
		reader := begin("rows that are not read", nil, g(query("select repeat('x', 100000) from generate_series(1, 100000)")))
		waitFor(t, "the server to be held up", activity(t, reader.pid(), "wait_event = 'ClientWrite'"))
		watch := mustConnect(t, postgresAddress(), "")
		defer watch.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			end()
		}()
		for i, c := range clients {
			list := c.until(endOfConnection)
			if len(list) < 2 || list[len(list)-2].typ != 'E' {
				t.Errorf("%s: the last message is not an error: %s", names[i], show(list[max(0, len(list)-3):]))
				continue
			}
			e := []byte(list[len(list)-2].body)
			if text := fmt.Sprintf("%s %s %s", wire.ErrorField(e, 'V'), wire.ErrorField(e, 'C'), wire.ErrorField(e, 'M')); text != "FATAL 57P01 terminating connection due to administrator command" {
				t.Errorf("%s: %s", names[i], text)
			}
		}
		<-done
		waitFor(t, "the server's sessions to end", func() bool {
			r := rows(watch.exchange(query("select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() and query not like '%wait_event%'")))
			return len(r) == 1 && r[0] == "0"
		})
	})
}

// TestTerminationDoesNotWait: a client that reads nothing holds nobody up for long.
func TestTerminationDoesNotWait(t *testing.T) {
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		s, end := startEnding(t, nil, change)
		c := mustConnect(t, s.Addr().String(), "")
		defer c.Close()
		c.send(query("select repeat('x', 100000) from generate_series(1, 100000)"))
		waitFor(t, "the server to be held up", activity(t, c.pid(), "wait_event = 'ClientWrite'"))
		end()
		if _, err := io.Copy(io.Discard, c); err != nil && errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
