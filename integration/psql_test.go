package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func needPsql(t *testing.T) string {
	return need(t, "psql", "apt-get install -y postgresql-client")
}

func psqlArgs(tg target, more ...string) []string {
	return append([]string{"-X", "-h", "127.0.0.1", "-p", fmt.Sprint(tg.port), "-U", "postgres", tg.db}, more...)
}

// watchTitle is the line that \watch puts above each answer: it has the time.
var watchTitle = regexp.MustCompile(`(?m)^.*\(every [0-9.]+s\)\n`)

// serverLocation is where in the server's source an error was raised; the pid of
// NOTIFY is the session's.
var sessionOwn = regexp.MustCompile(`server process with PID \d+`)

func TestPsql(t *testing.T) {
	s, psql := sharedStack(t), needPsql(t)
	script, err := os.ReadFile("testdata/psql.sql")
	if err != nil {
		t.Fatal(err)
	}
	// Plain SELECTs of the script, \watch's four included.
	s.accelerates(t, 12, func() {
		s.both(t, func(tg target) []byte {
			cmd := exec.Command(psql, psqlArgs(tg, "-a", "-f", "-")...)
			cmd.Env = append(os.Environ(), "PGTZ=UTC")
			cmd.Stdin = bytes.NewReader(script)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return sessionOwn.ReplaceAll(watchTitle.ReplaceAll(out, nil), []byte("server process"))
		})
	})
}

// TestPsqlCopies moves a table out and in again with \copy, text and binary.
func TestPsqlCopies(t *testing.T) {
	s, psql := sharedStack(t), needPsql(t)
	for _, format := range []string{"text", "csv", "binary"} {
		var files [2][]byte
		for i, tg := range []target{s.direct, s.proxy} {
			file := filepath.Join(t.TempDir(), "typed")
			out := run(t, nil, strings.NewReader(fmt.Sprintf(`
\copy (SELECT * FROM typed ORDER BY id) to '%[1]s' with (format %[2]s)
CREATE TEMP TABLE again (LIKE typed);
\copy again from '%[1]s' with (format %[2]s)
SELECT count(*) FROM (SELECT * FROM again EXCEPT SELECT * FROM typed) x;
SELECT count(*) FROM again;
`, file, format)), psql, psqlArgs(tg, "-q", "-At", "-f", "-")...)
			if string(out) != "0\n2000\n" {
				t.Errorf("%s %s: %q", tg.name, format, out)
			}
			var err error
			if files[i], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: files differ", format)
		}
	}
}

// TestCtrlC interrupts psql: in a running query, and in \watch.
func TestCtrlC(t *testing.T) {
	s, psql := sharedStack(t), needPsql(t)
	for _, tg := range []target{s.direct, s.proxy} {
		t.Run(tg.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, psql, psqlArgs(tg, "-At")...)
			var out lockedBuffer
			cmd.Stdout, cmd.Stderr = &out, &out
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			io.WriteString(in, "SELECT 'first';\nSELECT 'never' FROM pg_sleep(50);\nSELECT count(*) FROM lineorder;\n\\echo watching\nSELECT count(*) FROM dates \\watch 0.05\n")
			out.wait(t, "first", 1)
			waitActive(t, s, "SELECT 'never'%")
			cmd.Process.Signal(syscall.SIGINT)
			out.wait(t, "canceling statement due to user request", 1)
			out.wait(t, "\n60000\n", 1)
			out.wait(t, "2557", 3)
			cmd.Process.Signal(syscall.SIGINT)
			io.WriteString(in, "\\echo after\nSELECT count(*) FROM lineorder;\n\\q\n")
			out.wait(t, "after", 1)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			if text := out.String(); strings.Contains(text, "never") || strings.Count(text, "60000") != 2 {
				t.Errorf("output:\n%s", text)
			}
		})
	}
}

// waitActive waits until the server runs a query like pattern.
func waitActive(t *testing.T, s *stack, pattern string) {
	t.Helper()
	conn := connect(t, s.direct.url("postgres"))
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if a := ask(t, conn, "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE $1", []int16{0}, pattern); len(a.rows) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no query like %s is running", pattern)
}

// TestCancelHitsOnlyItsQuery cancels at random moments: an execution is answered
// whole or fails with 57014, and the one after it is not touched once the cancel's
// connection has closed.
func TestCancelHitsOnlyItsQuery(t *testing.T) {
	s, ctx := sharedStack(t), context.Background()
	conn := connect(t, s.proxy.url("postgres"))
	const sql = "SELECT lo_discount, count(*), sum(lo_revenue) FROM lineorder GROUP BY lo_discount ORDER BY lo_discount"
	want := ask(t, connect(t, s.direct.url("postgres")), sql, nil)
	cancelled := 0
	for i := range 60 {
		done := make(chan error)
		go func() {
			time.Sleep(time.Duration(i%20) * 300 * time.Microsecond)
			done <- conn.CancelRequest(ctx)
		}()
		got := ask(t, conn, sql, protocols[i%3].format)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(got.err, "57014 canceling statement due to user request"):
			cancelled++
		case got.err != "" || len(got.rows) != len(want.rows):
			t.Fatalf("neither answered nor cancelled: %s", got)
		}
		if after := ask(t, conn, sql, nil); after.String() != want.String() {
			t.Fatalf("the query after a cancel: %s", after)
		}
	}
	t.Logf("%d of 60 were cancelled", cancelled)
	// One that surely runs when it is cancelled.
	go func() {
		time.Sleep(300 * time.Millisecond)
		conn.CancelRequest(ctx)
	}()
	if _, err := conn.Exec(ctx, "SELECT count(*) FROM lineorder; SELECT pg_sleep(30)").ReadAll(); err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("pg_sleep: %v", err)
	}
	// A wrong key cancels nothing.
	if err := wrongCancel(ctx, conn, s.proxy); err != nil {
		t.Error(err)
	}
	if after := ask(t, conn, sql, nil); after.String() != want.String() {
		t.Errorf("after a cancel with a wrong key: %s", after)
	}
}

func wrongCancel(ctx context.Context, conn *pgconn.PgConn, tg target) error {
	key := append([]byte(nil), conn.SecretKey()...)
	key[0] ^= 0xff
	return sendCancel(ctx, tg, conn.PID(), key)
}
