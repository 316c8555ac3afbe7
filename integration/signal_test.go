package integration

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// TestSignals: SIGHUP does no harm; SIGTERM and SIGINT tell clients of the end, and leave
// neither a statement nor a slot nor a publication on the server; a second signal ends
// the process at once.
func TestSignals(t *testing.T) {
	const schema = "CREATE TABLE sig (id int PRIMARY KEY, v int);\nINSERT INTO sig SELECT i, i % 10 FROM generate_series(1, 20000) i;\nANALYZE sig"
	s := privateStack(t, schema)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	count := func(c *pgconn.PgConn, sql string) string {
		t.Helper()
		r := c.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
		if r.Err != nil || len(r.Rows) != 1 {
			t.Fatalf("%s: %v", sql, r.Err)
		}
		return string(r.Rows[0][0])
	}
	connect := func(tg target) *pgconn.PgConn {
		t.Helper()
		c, err := pgconn.Connect(ctx, tg.url("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
		return c
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waited in vain for %s", what)
			}
		}
	}
	direct := connect(s.direct)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		idle := connect(s.proxy)
		busy := connect(s.proxy)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		wait("the log of SIGHUP", func() bool {
			text, err := os.ReadFile(s.log)
			return err == nil && strings.Contains(string(text), "SIGHUP")
		})
		s.accelerates(t, 1, func() {
			if n := count(idle, "SELECT sum(v) FROM sig"); n != "90000" {
				t.Errorf("after SIGHUP: %s", n)
			}
		})
		answer := make(chan error, 1)
		go func() {
			answer <- busy.ExecParams(ctx, "SELECT pg_sleep(600), 'signal test'", nil, nil, nil, nil).Read().Err
		}()
		const asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
		wait("the statement", func() bool { return count(direct, asleep) == "1" })
		if err := s.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		told := func(what string, err error) {
			t.Helper()
			var e *pgconn.PgError
			if !errors.As(err, &e) || e.Severity != "FATAL" || e.Code != "57P01" || e.Message != "terminating connection due to administrator command" {
				t.Errorf("%v, %s: %v", signal, what, err)
			}
		}
		told("a session with a statement running", <-answer)
		_, err := idle.ReceiveMessage(ctx)
		told("a session at rest", err)
		<-s.exited
		wait("the statement to end", func() bool { return count(direct, asleep) == "0" })
		if n := count(direct, "SELECT (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_publication)"); n != "0" {
			t.Errorf("%v left %s slots and publications behind", signal, n)
		}
		if err := s.serve(ctx, pgaccelProgram(t)); err != nil {
			t.Fatal(err)
		}
	}
	// A client that takes nothing keeps the process for its time of grace; a second signal
	// does not wait.
	c := connect(s.proxy)
	if err := c.SyncConn(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := c.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Conn.Close()
	h.Frontend.SendQuery(&pgproto3.Query{String: "SELECT repeat('x', 100000) FROM generate_series(1, 100000)"})
	if err := h.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	wait("the server to be held up", func() bool {
		return count(direct, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'") == "1"
	})
	wait("the end", func() bool {
		s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.exited:
			return true
		default:
			return false
		}
	})
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("%v: the second signal did not end it", s.cmd.ProcessState)
	}
}
