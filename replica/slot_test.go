package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
)

// privateServer starts a server of the test's own.
func privateServer(t *testing.T, o pgserver.Options) *pgserver.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if o.Settings == nil {
		o.Settings = map[string]string{}
	}
	o.Settings["shared_buffers"] = "16MB"
	s, err := pgserver.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func failsWith(t *testing.T, r *Replicator, parts ...string) {
	t.Helper()
	eventually(t, "an error with "+strings.Join(parts, ", "), func() bool {
		err := r.Err()
		for _, p := range parts {
			if err == nil || !strings.Contains(err.Error(), p) {
				return false
			}
		}
		return true
	})
}

// TestRetainedLogIsBounded: an open transaction keeps the slot from moving on; beyond
// the limit the slot is gone, and with the transaction's end all is well again.
func TestRetainedLogIsBounded(t *testing.T) {
	url := database(t)
	c, open := connectTo(t, url), connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE noise (t text)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store, Accelerate: []string{"a"}, MaxRetainedWAL: 4 << 20})
	defer r.Close()
	ready(t, r)
	mustExec(t, open, "BEGIN; INSERT INTO a VALUES (1)")
	mustExec(t, c, "INSERT INTO noise SELECT repeat(md5(g::text), 20) FROM generate_series(1, 20000) g; CHECKPOINT")
	failsWith(t, r, "retains", "max-retained-wal")
	if got := queryText(t, c, leftSQL); got != "" {
		t.Errorf("left behind: %s", got)
	}
	if st := store.State(tableOID(t, c, "a")); st == colstore.StateReady {
		t.Error("served without a slot")
	}
	mustExec(t, open, "COMMIT")
	ready(t, r)
	eventually(t, "served again", func() bool { return served(t, c, store, "a", "concat('|', id)") })
	eventually(t, "the metric", func() bool { return r.RetainedWAL() > 0 })
}

// TestIdleTablesRetainNothing: the slot follows a log in which nothing concerns it.
func TestIdleTablesRetainNothing(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
	r := start(t, url, Config{})
	ready(t, r)
	busy := connectTo(t, database(t))
	mustExec(t, busy, "CREATE TABLE noise (t text)")
	mustExec(t, busy, "INSERT INTO noise SELECT repeat(md5(g::text), 20) FROM generate_series(1, 20000) g")
	target := queryText(t, c, "SELECT pg_current_wal_flush_lsn()::text")
	eventually(t, "the slot has passed "+target, func() bool {
		// A restart point is found where the server logs its running transactions.
		mustExec(t, c, "CHECKPOINT")
		return queryText(t, c, "SELECT (confirmed_flush_lsn >= '"+target+"' AND restart_lsn >= '"+target+"')::text FROM pg_replication_slots WHERE slot_name = '"+r.name+"'") == "true"
	})
}

// TestLimitsAreExplained: what the server must be set up with is said.
func TestLimitsAreExplained(t *testing.T) {
	for setting, want := range map[string][]string{
		"wal_level=replica":       {"wal_level is replica", "ALTER SYSTEM SET wal_level = 'logical'"},
		"max_replication_slots=1": {"all replication slots are in use", "ALTER SYSTEM SET max_replication_slots"},
		"max_wal_senders=0":       {"ALTER SYSTEM SET max_wal_senders"},
	} {
		t.Run(setting, func(t *testing.T) {
			name, value, _ := strings.Cut(setting, "=")
			s := privateServer(t, pgserver.Options{Settings: map[string]string{name: value}})
			url := s.URL("postgres", "postgres")
			c := connectTo(t, url)
			mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
			if name == "max_replication_slots" {
				mustExec(t, c, "SELECT pg_create_physical_replication_slot('mine')")
			}
			store := colstore.New(colstore.Options{})
			defer store.Close()
			r := start(t, url, Config{Store: store})
			defer r.Close()
			failsWith(t, r, want...)
			if name == "max_replication_slots" { // what can be mended without a restart
				mustExec(t, c, "SELECT pg_drop_replication_slot('mine')")
				ready(t, r)
			}
		})
	}
}

// copiedServer returns the folders of a server that has run some SQL and is stopped, and of a copy of it.
func copiedServer(t *testing.T, sql string) (first, second string) {
	t.Helper()
	first, second = t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} { // the server runs as another user
		for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
			os.Chmod(d, 0o755)
		}
	}
	s := privateServer(t, pgserver.Options{Dir: first})
	mustExec(t, connectTo(t, s.URL("postgres", "postgres")), sql)
	s.Shutdown()
	if out, err := exec.Command("cp", "-a", first+"/.", second).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	return first, second
}

// TestServerRestartAndFailover: a server that stops and starts; then a standby in its
// place, which lags behind and takes over: its log is shorter than what was followed.
func TestServerRestartAndFailover(t *testing.T) {
	ctx := context.Background()
	first, second := copiedServer(t, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
	s := privateServer(t, pgserver.Options{Dir: first})
	between := newRelay(t, s.Port)
	url := between.url()
	c := connectTo(t, url)
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	rows := "concat('|', id)"
	mustExec(t, c, "INSERT INTO a SELECT g FROM generate_series(2, 100000) g")
	waitInsert(t, c, store)

	s.Shutdown()
	eventually(t, "no stream", func() bool { return errors.Is(store.Wait(ctx, 0), colstore.ErrStream) })
	s = privateServer(t, pgserver.Options{Dir: first})
	between.to(s.Port)
	c = connectTo(t, url)
	eventually(t, "served after the restart", func() bool { return served(t, c, store, "a", rows) })

	ahead := store.Applied()
	s.Shutdown()
	if err := os.WriteFile(filepath.Join(second, "data", "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s = privateServer(t, pgserver.Options{Dir: second})
	between.to(s.Port)
	failsWith(t, r, "the server is a standby")
	mustExec(t, connectTo(t, url), "SELECT pg_promote()")
	ready(t, r)
	c = connectTo(t, url)
	mustExec(t, c, "INSERT INTO a VALUES (-1)")
	eventually(t, "served after the failover", func() bool { return served(t, c, store, "a", rows) })
	if now := store.Applied(); now >= ahead {
		t.Errorf("the log did not go back: %X, was %X: the test tests nothing", now, ahead)
	}
	if r.origin.timeline != 2 {
		t.Errorf("timeline %d", r.origin.timeline)
	}
}

// TestCutAndSlowConnections: sessions that are cut, at any time, and a stream that
// brings nothing: what is served stays right, and comes back.
func TestCutAndSlowConnections(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a SELECT g FROM generate_series(1, 100000) g")
	between := newRelay(t, server.Port)
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, strings.Replace(url, fmt.Sprint(":", server.Port), fmt.Sprint(":", between.port), 1), Config{Store: store})
	defer r.Close()
	for i := range 12 {
		time.Sleep(time.Duration(i*i) * time.Millisecond) // in the middle of setting up, copying, streaming
		mustExec(t, c, fmt.Sprintf("DELETE FROM a WHERE id = %d", i))
		switch i % 3 {
		case 0:
			between.cut()
		case 1:
			between.stall(true)
			time.Sleep(20 * time.Millisecond)
			mustExec(t, c, fmt.Sprintf("DELETE FROM a WHERE id = %d", i+1000))
			if store.Wait(ended(), ^uint64(0)) == nil {
				t.Error("a position that was never reached")
			}
			between.stall(false)
		}
		if i > 5 {
			eventually(t, "served", func() bool { return served(t, c, store, "a", "concat('|', id)") })
		}
	}
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
