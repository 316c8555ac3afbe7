package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// connectionLine is a line of the log of connections, in JSON.
type connectionLine struct {
	Msg, Level, Client, User, Database, Reason string
	Application                                string `json:"application_name"`
	PID                                        uint32 `json:"server_pid"`
	TLS                                        *bool
	Duration                                   string
}

// connectionLines returns those of a user.
func (s *stack) connectionLines(t *testing.T, user string) (list []connectionLine) {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var one connectionLine
		if json.Unmarshal([]byte(line), &one) == nil && one.User == user {
			list = append(list, one)
		}
	}
	return list
}

// TestLogConnections: with --log-connections the log has who comes and goes, and why; without, before SIGHUP and after,
// nothing. Constants of statements are not in it.
func TestLogConnections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serve.yml")
	reloads := 0
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure("log-format: json\n")
	s := privateStack(t, "CREATE TABLE lc (id int PRIMARY KEY);\nCREATE ROLE lc_off LOGIN;\nCREATE ROLE lc_on LOGIN;\nGRANT SELECT ON lc TO lc_on, lc_off", "--config", file)
	visit := func(user string, end func(*pgconn.PgConn)) uint32 {
		t.Helper()
		c := connect(t, s.proxy.url(user)+"&application_name=visitor")
		if a := ask(t, c, "SELECT count(*), 'constant-of-lc' FROM lc", nil); a.err != "" {
			t.Fatal(a)
		}
		end(c)
		return c.PID()
	}
	politely := func(c *pgconn.PgConn) { c.Close(t.Context()) }
	reload := func(text string) {
		t.Helper()
		configure(text)
		reloads++
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.logged(t, "is read anew", reloads)
	}
	visit("lc_off", politely)
	reload("log-format: json\nlog-connections: true\n")

	killed := func(c *pgconn.PgConn) {
		if a := ask(t, connect(t, s.direct.url("postgres")), fmt.Sprintf("SELECT pg_terminate_backend(%d)", c.PID()), nil); a.err != "" {
			t.Fatal(a)
		}
	}
	reasons := []string{"client terminated", "client closed the connection", "FATAL 57P01"}
	for i, end := range []func(*pgconn.PgConn){politely, func(c *pgconn.PgConn) { c.Conn().Close() }, killed} {
		pid := visit("lc_on", end)
		waitFor(t, reasons[i], func() bool { return len(s.connectionLines(t, "lc_on")) >= 2*i+2 })
		lines := s.connectionLines(t, "lc_on")[2*i:]
		if len(lines) != 2 {
			t.Fatalf("%s: %+v", reasons[i], lines)
		}
		for _, l := range lines {
			if l.Level != "INFO" || !strings.HasPrefix(l.Client, "127.0.0.1:") || l.Database != "postgres" || l.Application != "visitor" || l.PID != pid || l.TLS == nil || *l.TLS {
				t.Errorf("%s: %+v", reasons[i], l)
			}
		}
		if first, last := lines[0], lines[1]; first.Msg != "connection authorized" || first.Duration != "" || first.Reason != "" ||
			last.Msg != "disconnection" || last.Duration == "" || last.Reason != reasons[i] {
			t.Errorf("%s: %+v", reasons[i], lines)
		}
	}
	if _, err := pgconn.Connect(t.Context(), s.proxy.url("lc_nobody")); err == nil {
		t.Fatal("a role that there is not is let in")
	}
	waitFor(t, "the end of a login that failed", func() bool { return len(s.connectionLines(t, "lc_nobody")) > 0 })
	if l := s.connectionLines(t, "lc_nobody"); len(l) != 1 || l[0].Msg != "disconnection" || l[0].Reason != "FATAL 28000" {
		t.Errorf("a login that failed: %+v", l)
	}

	reload("log-format: json\n")
	visit("lc_off", politely)
	reload("log-format: json\nlog-connections: true\n")
	visit("lc_on", politely) // its lines come behind those of the visit before
	waitFor(t, "the last visit", func() bool { return len(s.connectionLines(t, "lc_on")) >= 8 })
	if l := s.connectionLines(t, "lc_off"); len(l) > 0 {
		t.Errorf("logged without being asked for: %+v", l)
	}
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "constant-of-lc") {
		t.Error("a statement's constant is in the log")
	}
}

// TestLogConnectionKinds: clients of a Unix socket, with TLS, and those that get no session, whose user is not known yet.
func TestLogConnectionKinds(t *testing.T) {
	dir := t.TempDir()
	cert, key, socket := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, ".s.PGSQL.6432")
	writeCertificate(t, 1, cert, key)
	s := privateStack(t, "CREATE TABLE lk (id int PRIMARY KEY);\nCREATE ROLE lk_on LOGIN", "--log-format", "json", "--log-connections", "--listen", socket,
		"--tls-cert", cert, "--tls-key", key, "--tls-require=on", "--max-clients", "2")
	secure := s.proxy.url("lk_on") + "&sslmode=require"
	local := "host=" + dir + " port=6432 user=lk_on dbname=postgres"
	for i, one := range []struct {
		url    string
		tls    bool
		client string
	}{{secure, true, "127.0.0.1:"}, {local, false, "[local]"}} {
		c := connect(t, one.url)
		c.Close(t.Context())
		waitFor(t, one.client, func() bool { return len(s.connectionLines(t, "lk_on")) >= 2*i+2 })
		for _, l := range s.connectionLines(t, "lk_on")[2*i:] {
			if l.TLS == nil || *l.TLS != one.tls || !strings.HasPrefix(l.Client, one.client) {
				t.Errorf("%s: %+v", one.url, l)
			}
		}
	}
	refusal := func(url, reason string, tls bool) {
		t.Helper()
		before := len(s.connectionLines(t, ""))
		if _, err := pgconn.Connect(t.Context(), url); err == nil {
			t.Fatalf("%s: a client is let in", reason)
		}
		refused := func() (list []connectionLine) {
			for _, l := range s.connectionLines(t, "")[before:] {
				if l.Msg == "connection refused" {
					list = append(list, l)
				}
			}
			return list
		}
		waitFor(t, reason, func() bool { return len(refused()) > 0 })
		if l := refused()[0]; l.Reason != reason || l.TLS == nil || *l.TLS != tls || !strings.HasPrefix(l.Client, "127.0.0.1:") {
			t.Errorf("%s: %+v", reason, l)
		}
	}
	refusal(s.proxy.url("lk_on")+"&sslmode=disable", "tls", false)
	connect(t, secure)
	connect(t, local)
	refusal(secure, "limit", true)
}
