package replica

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/colstore"
)

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// line returns the first line that has all the words, "" where there is none.
func (b *logBuffer) line(words ...string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
lines:
	for line := range strings.SplitSeq(b.text.String(), "\n") {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		return line
	}
	return ""
}

func slotsNow(t *testing.T, c *pgx.Conn) string {
	t.Helper()
	return queryText(t, c, "SELECT coalesce(string_agg(slot_name, ' ' ORDER BY slot_name), '') FROM pg_replication_slots WHERE database = current_database()")
}

// TestDamagedDataDirectory: a data directory that is of no use any more is said, and its
// slot is dropped where it is known; where it is not, it is named. That of another
// pgaccel, which is stopped, stays.
func TestDamagedDataDirectory(t *testing.T) {
	for name, damage := range map[string]struct {
		do    func(dir string) error
		said  string
		known bool
	}{
		"damaged manifest": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "manifest"), []byte("{}\n0\n"), 0o600) }, "checksum", true},
		"empty manifest":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "manifest"), nil, 0o600) }, "checksum", true},
		"no manifest":      {func(dir string) error { return os.Remove(filepath.Join(dir, "manifest")) }, "no manifest", true},
		"other format": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "manifest"), []byte("{\"Format\":99}\nc3c33d58\n"), 0o600)
		}, "", true},
		"no lock file, no manifest": {func(dir string) error {
			os.Remove(filepath.Join(dir, "lock"))
			return os.Remove(filepath.Join(dir, "manifest"))
		}, "no manifest", false},
		"emptied": {func(dir string) error { return os.RemoveAll(dir) }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			url := database(t)
			c := connectTo(t, url)
			mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a SELECT g FROM generate_series(1, 100) g")
			saves := func(dir string) *Replicator {
				r := start(t, url, Config{DataDir: dir, CheckpointInterval: 10 * time.Millisecond})
				ready(t, r)
				eventually(t, "a checkpoint", func() bool { return r.current.stream.marked.Load() != nil })
				r.Close()
				return r
			}
			dir := filepath.Join(t.TempDir(), "data")
			other, first := saves(t.TempDir()), saves(dir)
			slotsAreFree(t, c) // the server may end a session later than its client does
			if err := damage.do(dir); err != nil {
				t.Fatal(err)
			}
			log := &logBuffer{}
			store := colstore.New(colstore.Options{})
			defer store.Close()
			r := start(t, url, Config{Store: store, DataDir: dir, CheckpointInterval: 10 * time.Millisecond, Logger: log.logger()})
			ready(t, r)
			eventually(t, "served", func() bool { return served(t, c, store, "a", "concat('|', id)") })
			if name != "emptied" && log.line("level=ERROR", dir, damage.said) == "" {
				t.Errorf("nothing said about the folder: %s", log.text.String())
			}
			left := slotsNow(t, c)
			if !strings.Contains(left, other.name) {
				t.Errorf("the slot of a stopped pgaccel is gone: %s", left)
			}
			for _, idle := range []*Replicator{other, first} {
				if idle == first && damage.known {
					if r.name != first.name || len(strings.Fields(left)) != 2 {
						t.Errorf("slots %s, now as %s, was %s", left, r.name, first.name)
					}
					continue
				}
				command := "SELECT pg_drop_replication_slot('" + idle.name + "')"
				if !strings.Contains(left, idle.name) || log.line("level=WARN", command) == "" {
					t.Errorf("slot %s of %s, not named: %s", idle.name, left, log.text.String())
				}
				found, err := Check(context.Background(), url, []string{"public.*"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				f := finding(t, found, "slot "+idle.name)
				if f.Level != LevelWarn || !strings.HasPrefix(f.SQL, command) {
					t.Errorf("%+v", f)
				}
				mustExec(t, c, f.SQL)
			}
			r.Close()
			slotsAreFree(t, c)
			mustExec(t, c, "SELECT pg_drop_replication_slot('"+r.name+"')")
		})
	}
}

// TestDumpedPublications: pg_dump carries the publication of a living pgaccel; a restore
// makes it in another database, where nobody uses it.
func TestDumpedPublications(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT g, g FROM generate_series(1, 100) g")
	source := start(t, url, Config{})
	ready(t, source)
	restored := database(t)
	out, err := exec.Command("bash", "-c", "set -o pipefail; pg_dump '"+url+"' | psql -v ON_ERROR_STOP=1 '"+restored+"'").CombinedOutput()
	switch {
	case err == nil:
	case strings.Contains(string(out), "server version mismatch"): // a newer server, without programs of its own
		mustExec(t, connectTo(t, restored), "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT g, g FROM generate_series(1, 100) g; CREATE PUBLICATION "+source.name+" FOR TABLE a")
	default:
		t.Fatalf("%v: %s", err, out)
	}
	d := connectTo(t, restored)
	publications := "SELECT coalesce(string_agg(pubname, ' '), '') FROM pg_publication"
	if got := queryText(t, d, publications); got != source.name {
		t.Fatalf("the restore has the publications %q", got)
	}
	mustExec(t, d, "CREATE ROLE "+d.Config().Database+"; CREATE PUBLICATION pgaccel_00000000beef; CREATE PUBLICATION pgaccel_mine")
	found, err := Check(context.Background(), restored, []string{"public.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := finding(t, found, "publication "+source.name); f.Level != LevelWarn || f.SQL != "DROP PUBLICATION "+source.name {
		t.Errorf("%+v", f)
	}
	r := start(t, restored, Config{})
	ready(t, r)
	if got := queryText(t, d, publications+" WHERE pubname <> 'pgaccel_mine'"); got != r.name {
		t.Errorf("publications: %s, ours is %s", got, r.name)
	}
	r.Close()
	if got := queryText(t, c, publications); got != source.name {
		t.Errorf("publications of the source: %q", got)
	}
	// What the role may not drop is named.
	role := "p" + d.Config().Database
	mustExec(t, d, "CREATE ROLE "+role+" LOGIN REPLICATION; GRANT CREATE ON DATABASE "+d.Config().Database+" TO "+role+"; ALTER TABLE a OWNER TO "+role+"; CREATE PUBLICATION pgaccel_00000000beef")
	log := &logBuffer{}
	r = start(t, server.URL(role, d.Config().Database), Config{Logger: log.logger()})
	ready(t, r)
	if log.line("level=WARN", `DROP PUBLICATION pgaccel_00000000beef`) == "" {
		t.Errorf("not named: %s", log.text.String())
	}
	r.Close()
}

// TestDropDatabaseAfterClose: what a stopped pgaccel leaves, with a data directory, is not
// in the way of DROP DATABASE and CREATE DATABASE ... TEMPLATE.
func TestDropDatabaseAfterClose(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	name := c.Config().Database
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
	c.Close(context.Background())
	r := start(t, url, Config{DataDir: t.TempDir(), CheckpointInterval: 10 * time.Millisecond})
	ready(t, r)
	eventually(t, "a checkpoint", func() bool { return r.current.stream.marked.Load() != nil })
	admin := connectTo(t, server.URL("postgres", "postgres"))
	for _, sql := range []string{"DROP DATABASE " + name + " WITH (FORCE)", "CREATE DATABASE " + name + "x TEMPLATE " + name} {
		if _, err := admin.Exec(context.Background(), sql); err == nil {
			t.Errorf("%s works while attached, though docs/differences.md says that it does not", sql)
		}
	}
	r.Close()
	eventually(t, "the sessions have ended", func() bool {
		return queryText(t, admin, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = '"+name+"'") == "0"
	})
	mustExec(t, admin, "CREATE DATABASE "+name+"x TEMPLATE "+name)
	if got := slotsNow(t, connectTo(t, server.URL("postgres", name))); got != r.name {
		t.Errorf("slots: %q", got)
	}
	mustExec(t, admin, "DROP DATABASE "+name+" WITH (FORCE)")
	if got := queryText(t, admin, "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = '"+r.name+"'"); got != "0" {
		t.Error("the slot outlives its database")
	}
}

// TestCutStreamIsExplained: without a data directory a cut stream costs every copy, and
// it is said why.
func TestCutStreamIsExplained(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
	log := &logBuffer{}
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store, Logger: log.logger()})
	ready(t, r)
	open := connectTo(t, url)
	mustExec(t, open, "BEGIN; SELECT pg_current_xact_id()") // the slot waits for it, so that the reason can be seen
	mustExec(t, c, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = current_database()")
	eventually(t, "the reason is shown", func() bool {
		for _, st := range store.Statuses() {
			if st.State == colstore.StateCopying && strings.Contains(st.Detail, nothingKept) {
				return true
			}
		}
		return false
	})
	mustExec(t, open, "COMMIT")
	eventually(t, "served", func() bool { return served(t, c, store, "a", "concat('|', id)") })
	if log.line("level=WARN", "replication ended", nothingKept) == "" {
		t.Errorf("not logged: %s", log.text.String())
	}
	for _, st := range store.Statuses() {
		if st.Detail != "" {
			t.Errorf("still said of a table that is ready: %+v", st)
		}
	}
}
