package integration

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

const databasesSchema = `CREATE TABLE sale (id int PRIMARY KEY, store int NOT NULL, amount int NOT NULL);
INSERT INTO sale SELECT i, i % 7, i FROM generate_series(1, 30000) i`

const databasesQuery = "SELECT store, count(*), sum(amount) FROM sale GROUP BY store ORDER BY store"

// TestDatabasesOfOneProcess: a file with two databases of one server and one of another, for serve, check and advise; what SIGHUP
// changes; the device serves all of them; SIGTERM leaves nothing on either server.
func TestDatabasesOfOneProcess(t *testing.T) {
	bin, worker := pgaccelProgram(t), emulatorProgram(t)
	s := &stack{}
	var err error
	if s.pg, err = pgserver.Start(t.Context(), pgserver.Options{}); err != nil {
		t.Fatal(err)
	}
	s.direct = target{"direct", s.pg.Port, "shop"}
	s.stopAtEnd(t)
	other, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Stop)
	far := target{"direct", other.Port, "postgres"}
	postgres := target{"direct", s.pg.Port, "postgres"}
	must(t, connect(t, postgres.url("postgres")), "CREATE DATABASE shop")
	func() {
		c := connect(t, s.direct.url("postgres"))
		defer c.Close(t.Context())
		for sql := range strings.SplitSeq(databasesSchema, ";\n") {
			must(t, c, sql)
		}
	}()
	must(t, connect(t, postgres.url("postgres")), "CREATE DATABASE twin TEMPLATE shop")
	twin := target{"direct", s.pg.Port, "twin"}
	must(t, connect(t, twin.url("postgres")), "UPDATE sale SET amount = -amount")
	for sql := range strings.SplitSeq(databasesSchema, ";\n") {
		must(t, connect(t, far.url("postgres")), sql)
	}
	must(t, connect(t, far.url("postgres")), "UPDATE sale SET amount = 2 * amount")

	dir := t.TempDir()
	file := filepath.Join(dir, "serve.yml")
	write := func(shop, more string) {
		t.Helper()
		text := fmt.Sprintf("databases:\n  shop: {upstream: '%s', accelerate: %s}\n  far away: {upstream: '%s', accelerate: [sale]}\n  twin: {upstream: '%s', accelerate: [sale]}\n%s",
			s.pg.URL("postgres", "shop"), shop, other.URL("postgres", "postgres"), s.pg.URL("postgres", "twin"), more)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[nothing.*]", "")
	command := func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(bin, append(args, "--config", file)...)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, status := command("check"); status != 0 || strings.Count(out, "\n# ") != 2 || !strings.HasPrefix(out, "# shop\n") || !strings.Contains(out, "# far away\n") || strings.Count(out, "columns of 1 tables") != 2 {
		t.Errorf("check: %d %s", status, out)
	}
	if out, status := command("advise", "--format", "json"); status != 0 || strings.Count(out, `"database": `) != 3 {
		t.Errorf("advise: %d %s", status, out)
	}

	ports, err := freePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(ports, exec.Command(bin, "serve", "--config", file, "--listen", fmt.Sprintf("127.0.0.1:%d", ports[0]), "--http", fmt.Sprintf("127.0.0.1:%d", ports[1]),
		"--trials=off", "--wait-limit=5s", "--data-dir", filepath.Join(dir, "data"), "--reuse-memory=0", "--device", "emu", "--device-worker", worker)); err != nil {
		t.Fatal(err)
	}
	if err := s.await(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.deviceIs(t, 1)
	through := func(name string) target { return target{"pgaccel", ports[0], strings.ReplaceAll(name, " ", "%20")} }
	same := func(name string, direct target, how string) {
		t.Helper()
		want := ask(t, connect(t, direct.url("postgres")), databasesQuery, nil).String()
		if got := ask(t, connect(t, through(name).url("postgres", how)), databasesQuery, nil).String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	const force = "&options=-c%20pgaccel.mode%3Dforce"
	s.accelerates(t, 2, func() { same("far away", far, force); same("twin", twin, force) })
	s.runsOnDevice(t, 2, func() { same("twin", twin, demandDevice); same("far away", far, demandDevice) })
	s.forwardsAll(t, func() { same("shop", s.direct, force) })

	// Its table is chosen now, and there is a database that waits for a restart.
	write("[sale]", "  later: {upstream: 'postgres://a@b/c'}\n")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.logged(t, "flags=databases", 1)
	s.logged(t, "changed=databases", 1)
	s.logged(t, `msg="table copied" database=shop table=public.sale`, 1)
	s.accelerates(t, 1, func() { same("shop", s.direct, force) })
	s.runsOnDevice(t, 3, func() {
		same("shop", s.direct, demandDevice)
		same("far away", far, demandDevice)
		same("twin", twin, demandDevice)
	})
	if c, err := pgconn.Connect(t.Context(), through("later").url("postgres")); err == nil || !strings.Contains(err.Error(), "3D000") {
		t.Errorf("later: %v, %v", c, err)
	}

	// A transaction on either server may end, and the slots wait for the next process.
	open, twinOpen := connect(t, through("far away").url("postgres")), connect(t, through("twin").url("postgres"))
	must(t, open, "BEGIN")
	must(t, twinOpen, "BEGIN")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.logged(t, "SIGTERM: no new connections", 1)
	must(t, open, "UPDATE sale SET amount = 7 WHERE id = 1")
	must(t, twinOpen, "UPDATE sale SET amount = 8 WHERE id = 1")
	must(t, open, "COMMIT")
	must(t, twinOpen, "COMMIT")
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	for _, c := range []struct {
		at    target
		slots int
	}{{postgres, 2}, {far, 1}} {
		got := ask(t, connect(t, c.at.url("postgres")), "SELECT count(*) FROM pg_replication_slots WHERE NOT active AND NOT temporary", nil)
		if want := fmt.Sprintf("%q", fmt.Sprint(c.slots)); !strings.Contains(got.String(), want) {
			t.Errorf("slots: %s, want %s", got, want)
		}
	}
	if _, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0])); err == nil {
		t.Error("it still listens")
	}
}
