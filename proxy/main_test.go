package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgaccel/engine"
	"pgaccel/internal/pgserver"
	"pgaccel/upstream"
)

var postgres *pgserver.Server

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var err error
	if postgres, err = pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"fsync": "off", "max_connections": "300", "autovacuum": "off"}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cancel()
	c := mustConnect(nil, postgresAddress(), "")
	c.exchange(query("create table sales (id int, region text, amount numeric(12,2)); " +
		"insert into sales select g, case when g % 2 = 0 then 'north' else 'south' end, g * 1.5 from generate_series(1, 10) g"))
	c.Close()
	code := m.Run()
	if code == 0 {
		code = leaks()
	}
	postgres.Stop()
	os.Exit(code)
}

// leaks fails the run where sessions have left goroutines behind.
func leaks() int {
	var text string
	for range 100 {
		buf := make([]byte, 1<<20)
		text = string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(text, "pgaccel/proxy.(*Server)") && !strings.Contains(text, "pgaccel/proxy.(*twoPumps)") && !strings.Contains(text, "pgaccel/proxy.(*loop)") {
			return 0
		}
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", text)
	return 1
}

func postgresAddress() string { return fmt.Sprintf("127.0.0.1:%d", postgres.Port) }

// models are the ways to drive a session; every test of behaviour runs with each.
var models = []struct {
	name string
	set  func(*Config)
}{
	{"events", func(*Config) {}},
	{"goroutines", func(c *Config) { c.goroutines = true }},
}

// startProxy serves in front of the tests' Postgres until the test ends.
func startProxy(t testing.TB, d engine.Decider, change ...func(*Config)) *Server {
	t.Helper()
	up, err := upstream.ParseConfig(postgres.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Listen: []string{"127.0.0.1:0"}, Default: &Database{Upstream: up, Engine: d}, Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil))}
	for _, f := range change {
		f(&cfg)
	}
	s, err := Listen(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if n := heldResults.Swap(0); n != 0 {
			t.Errorf("%d results were not let go", n)
		}
	})
	return s
}

// testWriter logs to the test while it runs.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	defer func() { recover() }() // after the end of the test
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

var _ io.Writer = testWriter{}

func dialRaw(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, 5*time.Second) }
