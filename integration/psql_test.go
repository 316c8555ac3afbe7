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
	"golang.org/x/sys/unix"
)

func needPsql(t *testing.T) string {
	return need(t, "psql", "apt-get install -y postgresql-client")
}

func psqlArgs(tg target, more ...string) []string {
	return append([]string{"-X", "-h", "127.0.0.1", "-p", fmt.Sprint(tg.port), "-U", "postgres", tg.db}, more...)
}

// watchTitle is the line that \watch puts above each answer: it has the time.
var watchTitle = regexp.MustCompile(`(?m)^.*\(every [0-9.]+s\)\n`)

// sessionOwn is what two sessions cannot have in common.
var sessionOwn = regexp.MustCompile(`server process with PID \d+`)

func TestPsql(t *testing.T) {
	s, psql := sharedStack(t), needPsql(t)
	script, err := os.ReadFile("testdata/psql.sql")
	if err != nil {
		t.Fatal(err)
	}
	// The script's plain SELECTs from copied tables, alone in their message.
	s.accelerates(t, 10, func() {
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

// TestCtrlC sits at a terminal and presses Ctrl-C: in a running query, and in
// \watch. (At the end of a pipe psql would exit instead.)
func TestCtrlC(t *testing.T) {
	s, psql := sharedStack(t), needPsql(t)
	for _, tg := range []target{s.direct, s.proxy} {
		t.Run(tg.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			terminal, tty, err := openTerminal()
			if err != nil {
				t.Fatal(err)
			}
			defer terminal.Close()
			cmd := exec.CommandContext(ctx, psql, psqlArgs(tg, "-n", "-At", "-P", "pager=off")...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			tty.Close()
			var out lockedBuffer
			go io.Copy(&out, terminal)
			const ctrlC = "\x03"
			// The terminal echoes what is typed: what is waited for stands in no input.
			io.WriteString(terminal, "SELECT 'fi' || 'rst';\nSELECT 'ne' || 'ver' FROM pg_sleep(50);\n")
			out.wait(t, "first", 1)
			waitActive(t, s, "SELECT 'ne'%")
			io.WriteString(terminal, ctrlC)
			out.wait(t, "canceling statement due to user request", 1)
			io.WriteString(terminal, "SELECT count(*) FROM lineorder;\n")
			out.wait(t, "60000", 1)
			watch := func() {
				io.WriteString(terminal, "SELECT count(*) FROM dates \\watch 0.05\n")
				out.wait(t, "2557", 5)
			}
			if tg == s.proxy {
				s.accelerates(t, 5, watch)
			} else {
				watch()
			}
			io.WriteString(terminal, ctrlC)
			io.WriteString(terminal, "SELECT 'af' || 'ter', count(*) FROM lineorder;\n")
			out.wait(t, "after|60000", 1)
			io.WriteString(terminal, "\\q\n")
			if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "never") {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// openTerminal makes a pseudo-terminal: our side and the program's.
func openTerminal() (ours, program *os.File, err error) {
	if ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	if err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		var n int
		if n, err = unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN); err == nil {
			program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
		}
	}
	if err != nil {
		ours.Close()
	}
	return ours, program, err
}

// waitActive waits until the server runs a query like pattern.
func waitActive(t *testing.T, s *stack, pattern string) {
	t.Helper()
	activeBefore(t, connect(t, s.direct.url("postgres")), pattern, nil)
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
