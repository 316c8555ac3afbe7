package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
)

// forsaker stands between pgaccel and a server. Once it leads to another server, the
// connections to the one before are silent, neither closed nor answered: as where a host
// is gone.
type forsaker struct {
	port   int
	target atomic.Int64
}

func newForsaker(t *testing.T) *forsaker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forsaker{port: l.Addr().(*net.TCPAddr).Port}
	over := make(chan struct{})
	t.Cleanup(func() { l.Close(); close(over) })
	pass := func(to, from net.Conn, port int64) {
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			if f.target.Load() != port {
				<-over
			} else if err == nil {
				_, err = to.Write(b[:n])
			}
			if err != nil {
				break
			}
		}
		if f.target.Load() != port {
			<-over
		}
		to.Close()
		from.Close()
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			port := f.target.Load()
			server, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
			if err != nil {
				client.Close()
				continue
			}
			go pass(server, client, port)
			go pass(client, server, port)
		}
	}()
	return f
}

// TestServerReplaced: a server goes without a word, and an older copy of its files comes
// up at its address. The stream still waits for the one that is gone, and has passed the
// position that the other one's log is at; whose commits it has none of.
func TestServerReplaced(t *testing.T) {
	dir, err := os.MkdirTemp("", "pgaccel-history-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	between := newForsaker(t)
	s := &stack{}
	startServer := func(name string) {
		t.Helper()
		pg, err := pgserver.Start(ctx, pgserver.Options{Dir: filepath.Join(dir, name), Settings: map[string]string{"shared_buffers": "16MB", "autovacuum": "off"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pg.Stop)
		s.pg, s.direct = pg, target{"direct", pg.Port, "postgres"}
	}
	upstream := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", between.port)
	serve := func() {
		t.Helper()
		between.target.Store(int64(s.pg.Port))
		if err := s.serve(ctx, pgaccelProgram(t), "--upstream", upstream, "--data-dir", filepath.Join(dir, "columns")); err != nil {
			t.Fatal(err)
		}
	}
	end := func() {
		s.cmd.Process.Signal(syscall.SIGTERM)
		<-s.exited
	}
	do := func(sql string) {
		t.Helper()
		if a := ask(t, connect(t, s.direct.url("postgres")), sql, nil); a.err != "" {
			t.Fatalf("%s: %s", sql, a.err)
		}
	}
	at := func() (lsn, xid int) {
		a := ask(t, connect(t, s.direct.url("postgres")), "SELECT (pg_current_wal_insert_lsn() - '0/0')::text || ' ' || pg_snapshot_xmax(pg_current_snapshot())::text", nil)
		if _, err := fmt.Sscan(a.column(), &lsn, &xid); err != nil {
			t.Fatal(a, err)
		}
		return lsn, xid
	}

	// With a data directory, the publication is on both servers.
	startServer("server")
	do("CREATE TABLE a (id int PRIMARY KEY, v bigint NOT NULL)")
	do("INSERT INTO a SELECT g, 1 FROM generate_series(1, 20000) g")
	serve()
	end()
	s.pg.Shutdown()
	if out, err := exec.Command("cp", "-a", filepath.Join(dir, "server"), filepath.Join(dir, "copy")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	startServer("server")
	serve()
	defer end()
	const sql = "SELECT count(*), sum(v) FROM a"
	do("UPDATE a SET v = 2 WHERE id <= 10000")
	old := connect(t, s.proxy.url("postgres"))
	s.eventually(t, old, sql)
	lsn, xid := at()

	gone := s.pg
	startServer("copy")
	do("DO $$ BEGIN FOR i IN 1..300 LOOP UPDATE a SET v = 10 WHERE id = i; COMMIT; END LOOP; END $$") // many transactions, and little log
	if l, x := at(); l >= lsn || x <= xid {
		t.Fatalf("the log is at %d, that of before at %d; transactions are at %d and %d: the test tests nothing", l, lsn, x, xid)
	}
	between.target.Store(int64(s.pg.Port))
	gone.Stop()
	direct, client := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	same(t, direct, client, sql)
	ask(t, client, "SET pgaccel.max_staleness = '1h'", nil)
	same(t, direct, client, sql)
	ask(t, client, "RESET pgaccel.max_staleness", nil)
	ask(t, client, "BEGIN ISOLATION LEVEL REPEATABLE READ", nil)
	same(t, direct, client, sql)
	ask(t, client, "COMMIT", nil)
	// The stream finds its way to the server that there is.
	s.eventually(t, client, sql)
	same(t, direct, client, sql)
}
