package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

const transferScript = `\set n random(1, 20000)
BEGIN;
UPDATE ex SET v = v + 1 WHERE id = :n;
SELECT v FROM ex WHERE id = :n;
END;
SELECT count(*), min(v) >= 0 FROM ex;
`

// TestExchange: another process takes over the address while clients of pgbench connect, work in
// transactions and leave. None sees an error, whoever has the columns.
func TestExchange(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("listeners are handed over by abstract Unix sockets, which are Linux'")
	}
	pgbench := need(t, "pgbench", "apt-get install -y postgresql-contrib")
	script := filepath.Join(t.TempDir(), "transfer.sql")
	if err := os.WriteFile(script, []byte(transferScript), 0o600); err != nil {
		t.Fatal(err)
	}
	const schema = "CREATE TABLE ex (id int PRIMARY KEY, v int NOT NULL);\nINSERT INTO ex SELECT g, 0 FROM generate_series(1, 20000) g"
	for name, more := range map[string][]string{"memory": nil, "data": {"--data-dir", filepath.Join(t.TempDir(), "columns")}} {
		t.Run(name, func(t *testing.T) {
			more = append(more, "--reuse-port", "--drain-timeout=60s")
			s := privateStack(t, schema, more...)
			var runs [2]atomic.Int64
			var stop atomic.Bool
			var clients sync.WaitGroup
			for i, protocol := range []string{"simple", "prepared"} {
				clients.Go(func() {
					for !stop.Load() && !t.Failed() {
						cmd := exec.Command(pgbench, "-h", "127.0.0.1", "-p", fmt.Sprint(s.proxy.port), "-U", "postgres", "-n", "-C", "-c", "2", "-t", "3", "-M", protocol, "-f", script, s.proxy.db)
						if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "actually processed: 6/6") {
							t.Errorf("%v:\n%s\n%s", err, out, strings.Join(regexp.MustCompile("(?m)^.*error.*$").FindAllString(string(out), -1), "\n"))
						}
						runs[i].Add(1)
					}
				})
			}
			defer clients.Wait()
			defer stop.Store(true)
			work := func() {
				t.Helper()
				for i := range runs {
					before := runs[i].Load()
					waitFor(t, "pgbench to run", func() bool { return runs[i].Load() > before+1 || t.Failed() })
				}
			}
			work()
			ports, err := freePorts(1)
			if err != nil {
				t.Fatal(err)
			}
			next := &stack{pg: s.pg, direct: s.direct}
			if err := next.begin(pgaccelProgram(t), []int{s.proxy.port, ports[0]}, more...); err != nil {
				t.Fatal(err)
			}
			defer func() {
				next.cmd.Process.Signal(syscall.SIGINT)
				<-next.exited
			}()
			next.logged(t, "pgaccel is listening", 1)
			work()
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-s.exited
			if err := next.await(t.Context()); err != nil {
				t.Fatal(err)
			}
			work()
			next.eventually(t, connect(t, next.proxy.url("postgres")), "SELECT count(*), min(v) FROM ex")
			stop.Store(true)
			clients.Wait()
		})
	}
}
