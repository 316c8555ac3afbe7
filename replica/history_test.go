package replica

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
)

// openDir returns a temporary folder that the server's account may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copyDir makes to the same as from.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// historyWorld is a server whose files are put back, behind a relay, and a replicator
// with a data directory.
type historyWorld struct {
	t       *testing.T
	server  *pgserver.Server
	dir     string // the server's; "copy" beside it
	between *relay
	data    string
	store   *colstore.Store
	r       *Replicator
}

func (w *historyWorld) startServer() {
	w.t.Helper()
	w.server = privateServer(w.t, pgserver.Options{Dir: filepath.Join(w.dir, "server")})
	if w.between == nil {
		w.between = newRelay(w.t, w.server.Port)
	}
	w.between.to(w.server.Port)
}

func (w *historyWorld) do(sql string) {
	w.t.Helper()
	mustExec(w.t, connectTo(w.t, w.between.url()), sql)
}

func (w *historyWorld) start() {
	w.t.Helper()
	w.store = colstore.New(colstore.Options{})
	w.t.Cleanup(w.store.Close)
	w.r = start(w.t, w.between.url(), Config{Store: w.store, DataDir: w.data, CheckpointInterval: 20 * time.Millisecond})
	ready(w.t, w.r)
}

// right waits until the columns hold what the server shows, and returns how many
// copies this stream has made.
func (w *historyWorld) right(what string) (copies int) {
	w.t.Helper()
	ready(w.t, w.r)
	c := connectTo(w.t, w.between.url())
	eventually(w.t, what, func() bool { return served(w.t, c, w.store, "a", "concat('|', id, '|', n)") })
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.current.reg.mu.Lock()
	defer w.r.current.reg.mu.Unlock()
	for _, t := range w.r.current.reg.tables {
		copies += t.copies
	}
	return copies
}

// saved waits for a checkpoint that has everything that is committed now.
func (w *historyWorld) saved() {
	w.t.Helper()
	now, err := catalog.ParseLSN(queryText(w.t, connectTo(w.t, w.between.url()), "SELECT pg_current_wal_insert_lsn()::text"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.do("INSERT INTO b SELECT coalesce(max(id), 0) + 1, 0 FROM b") // there is something to save
	eventually(w.t, "a checkpoint", func() bool {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		return w.r.current != nil && w.r.current.stream.saved.Load() >= now
	})
}

// TestAnotherHistory: an older copy of the server's files, put back where the server
// was, has its identity, its timeline and, after as many writes, its positions; its log
// is another one all the same.
func TestAnotherHistory(t *testing.T) {
	for _, alive := range []bool{false, true} {
		for _, other := range []bool{true, false} {
			name := map[bool]string{false: "start", true: "reconnect"}[alive] + map[bool]string{false: "-same", true: "-other"}[other]
			t.Run(name, func(t *testing.T) {
				w := &historyWorld{t: t, dir: openDir(t), data: filepath.Join(t.TempDir(), "data")}
				w.startServer()
				w.do(`CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT g, 0 FROM generate_series(1, 1000) g;
					CREATE TABLE b (id int PRIMARY KEY, n int); CREATE TABLE noise (t text)`)
				w.start()
				w.right("the first copy")
				if other {
					w.saved()
				}
				w.r.Close()
				w.server.Shutdown()
				copyDir(t, filepath.Join(w.dir, "server"), filepath.Join(w.dir, "copy"))

				w.startServer()
				w.start()
				w.do("UPDATE a SET n = 1 WHERE id <= 500; INSERT INTO a SELECT g, 1 FROM generate_series(1001, 1100) g")
				w.right("what will not have been")
				w.saved()
				if !alive {
					w.r.Close()
				}
				w.server.Shutdown()
				if other {
					copyDir(t, filepath.Join(w.dir, "copy"), filepath.Join(w.dir, "server"))
				}
				w.server = privateServer(t, pgserver.Options{Dir: filepath.Join(w.dir, "server")})
				c := connectTo(t, w.server.URL("postgres", "postgres"))
				if other {
					mustExec(t, c, "UPDATE a SET n = 2 WHERE id > 500; INSERT INTO a SELECT g, 2 FROM generate_series(1051, 1150) g")
				}
				mustExec(t, c, "INSERT INTO noise SELECT repeat(md5(g::text), 20) FROM generate_series(1, 3000) g; UPDATE a SET n = 3 WHERE id = 7")
				if last := w.savedPosition(); other {
					now, err := catalog.ParseLSN(queryText(t, c, "SELECT pg_current_wal_insert_lsn()::text"))
					if err != nil || now <= last {
						t.Fatalf("the log is at %X, the checkpoint at %X: the test tests nothing (%v)", now, last, err)
					}
				}
				w.between.to(w.server.Port)
				if !alive {
					w.start()
				}
				copies := w.right("what there is")
				if other && copies == 0 {
					t.Error("no table was copied")
				}
				if !other && copies != 0 {
					t.Errorf("%d copies, though the history is the same", copies)
				}
				// And what comes next.
				w.do("UPDATE a SET n = n + 1 WHERE id % 3 = 0; DELETE FROM a WHERE id % 50 = 1")
				w.right("what comes next")
				w.r.Close()
			})
		}
	}
}

// savedPosition is that of the checkpoint on disk.
func (w *historyWorld) savedPosition() uint64 {
	w.t.Helper()
	eventually(w.t, "the end of the stream", func() bool { return errors.Is(w.store.Wait(context.Background(), 0), colstore.ErrStream) })
	last := w.r.disk.Last()
	if last == nil {
		w.t.Fatal("no checkpoint")
	}
	return last.Position
}

// TestMarkersAreFew: markers are written where there is something to save, and an idle
// server's log stays as it is.
func TestMarkersAreFew(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1); CREATE TABLE noise (t text)")
	r := start(t, url, Config{Accelerate: []string{"a"}, DataDir: t.TempDir(), CheckpointInterval: 10 * time.Millisecond, MaxRetainedWAL: 40 << 20})
	ready(t, r)
	stream := r.current.stream
	last := func() string {
		if id := stream.marked.Load(); id != nil {
			return *id
		}
		return ""
	}
	changed := func(what, before string) string {
		t.Helper()
		eventually(t, "a marker after "+what, func() bool { return last() != before })
		return settled(t, last)
	}
	first := changed("the copy", "")
	mustExec(t, c, "INSERT INTO a VALUES (2)")
	second := changed("a change", first)
	mustExec(t, c, "INSERT INTO noise VALUES ('little')")
	if settled(t, last) != second {
		t.Error("a marker where nothing changed")
	}
	// The slot follows a log that grows by other tables' changes.
	mustExec(t, c, "INSERT INTO noise SELECT repeat(md5(g::text), 20) FROM generate_series(1, 20000) g")
	changed("much log", second)
	before := last()
	r.Close()
	if last() != before {
		t.Error("a marker at the end, where nothing changed")
	}
}

// settled waits until a value has not changed for some checkpoints' time.
func settled(t *testing.T, value func() string) string {
	t.Helper()
	was, since := value(), time.Now()
	eventually(t, "nothing changes", func() bool {
		if now := value(); now != was {
			was, since = now, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
	return was
}

// TestNoRightToMark: where no marker can be written nothing is saved, the slot goes on
// all the same, and a restart copies everything.
func TestNoRightToMark(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	version := 0
	if err := c.QueryRow(context.Background(), "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		t.Fatal(err)
	}
	mustExec(t, c, `DROP ROLE IF EXISTS markless; CREATE ROLE markless LOGIN REPLICATION; GRANT CREATE ON DATABASE `+c.Config().Database+` TO markless; GRANT ALL ON SCHEMA public TO markless;
		SET ROLE markless; CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT g, g FROM generate_series(1, 100) g; RESET ROLE;
		REVOKE EXECUTE ON FUNCTION `+emitFunction(version)+` FROM public`)
	url = server.URL("markless", c.Config().Database)
	dir := t.TempDir()
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store, DataDir: dir, CheckpointInterval: 10 * time.Millisecond})
	ready(t, r)
	eventually(t, "no saving", func() bool { return !r.current.stream.saves.Load() })
	mustExec(t, c, "UPDATE a SET n = n + 1")
	eventually(t, "the slot goes on", func() bool {
		return queryText(t, c, "SELECT (confirmed_flush_lsn > '"+pglogrepl.LSN(r.current.stream.saved.Load()).String()+"')::text FROM pg_replication_slots WHERE slot_name = '"+r.name+"'") == "true"
	})
	r.Close()
	if left := queryText(t, c, leftSQL); strings.Contains(left, r.name+" "+r.name) {
		t.Errorf("left behind: %s", left)
	}
	mustExec(t, c, "GRANT EXECUTE ON FUNCTION "+emitFunction(version)+" TO markless")
	r = start(t, url, Config{Store: store, DataDir: dir, CheckpointInterval: 10 * time.Millisecond})
	ready(t, r)
	eventually(t, "served", func() bool { return served(t, c, store, "a", "concat('|', id, '|', n)") })
	if n := copies(r, tableOID(t, c, "a")); n != 1 {
		t.Errorf("%d copies", n)
	}
	eventually(t, "a checkpoint", func() bool { return r.current.stream.marked.Load() != nil })
	r.Close()
	mustExec(t, c, "REVOKE ALL ON SCHEMA public FROM markless; REVOKE ALL ON DATABASE "+c.Config().Database+" FROM markless; GRANT EXECUTE ON FUNCTION "+emitFunction(version)+" TO public; REVOKE EXECUTE ON FUNCTION "+emitFunction(version)+" FROM markless")
}
