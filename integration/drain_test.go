package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFreedMemory: serve has the kernel keep what it gives back until that is needed, under its own name.
func TestFreedMemory(t *testing.T) {
	s := privateStack(t, "CREATE TABLE fm (id int PRIMARY KEY)")
	process := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	environ, err := os.ReadFile(process + "environ")
	if err != nil || !strings.Contains("\x00"+string(environ), "\x00GODEBUG=madvdontneed=0\x00") {
		t.Errorf("%v: %q", err, environ)
	}
	if comm, err := os.ReadFile(process + "comm"); err != nil || strings.TrimSpace(string(comm)) != filepath.Base(s.cmd.Path)[:min(15, len(filepath.Base(s.cmd.Path)))] {
		t.Errorf("the process is called %q, of %s (%v)", comm, s.cmd.Path, err)
	}
}

// TestDrainAndReload: SIGHUP takes over what may change and nothing of a bad file; SIGTERM
// lets a transaction end, refuses new clients, and leaves nothing on the server.
func TestDrainAndReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "serve.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("max-clients: 10\nworkers: 1\n")
	s := privateStack(t, "CREATE TABLE dr (id int PRIMARY KEY);\nINSERT INTO dr SELECT generate_series(1, 20000)", "--config", file, "--drain-timeout", "60s")
	hangUp := func() {
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write("max-clients: 1\nworkers: -3\n")
	hangUp()
	s.logged(t, "serve.yml:2: workers: -3", 1)
	a := connect(t, s.proxy.url("postgres"))
	b := connect(t, s.proxy.url("postgres"))
	write("max-clients: 2\nworkers: 2\nlog-level: debug\n")
	hangUp()
	s.logged(t, "flags=workers", 1)
	s.logged(t, `changed="log-level, max-clients"`, 1)
	direct := connect(t, s.direct.url("postgres"))
	if status := get(t, s.http+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: %d", status)
	}
	if _, err := a.Exec(t.Context(), "BEGIN; SELECT count(*) FROM dr").ReadAll(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := b.ReceiveMessage(ctx); err == nil || !strings.Contains(err.Error(), "57P01") {
		t.Errorf("at rest: %v", err)
	}
	if status := get(t, s.http+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz while it drains: %d", status)
	}
	if status := get(t, s.http+"/livez"); status != http.StatusOK {
		t.Errorf("/livez while it drains: %d", status)
	}
	if _, err := a.Exec(ctx, "SELECT count(*) FROM dr; COMMIT").ReadAll(); err != nil {
		t.Errorf("in a transaction: %v", err)
	}
	select {
	case <-s.exited:
	case <-ctx.Done():
		t.Fatal("the process does not end")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("status %d", code)
	}
	r := direct.ExecParams(ctx, "SELECT (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_publication)", nil, nil, nil, nil).Read()
	if r.Err != nil || string(r.Rows[0][0]) != "0" {
		t.Errorf("left behind: %s, %v", r.Rows, r.Err)
	}
}

func get(t *testing.T, url string) int {
	t.Helper()
	r, err := web.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}
