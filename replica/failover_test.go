package replica

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
)

// TestFailoverSlot: a standby that has kept the slot takes over, once with all of the log and once without the last of
// it, which the saved columns have. The stream goes on there, or everything is copied; a lost commit never shows.
func TestFailoverSlot(t *testing.T) {
	if v := queryText(t, connectTo(t, server.URL("postgres", "postgres")), "SHOW server_version_num"); v < "170000" {
		t.Skip("standbys keep logical slots from PostgreSQL 17 on")
	}
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("lost commits ", lost), func(t *testing.T) { failsOver(t, lost) })
	}
}

func failsOver(t *testing.T, lost bool) {
	first, second := copiedServer(t, "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT g, g FROM generate_series(1, 5000) g")
	if err := os.WriteFile(filepath.Join(second, "data", "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	primary := privateServer(t, pgserver.Options{Dir: first})
	between := newRelay(t, primary.Port)
	url := between.url()
	c := connectTo(t, url)
	mustExec(t, c, "SELECT pg_create_physical_replication_slot('standby', true)")
	standby := func() *pgserver.Server {
		return privateServer(t, pgserver.Options{Dir: second, Settings: map[string]string{
			"primary_conninfo": fmt.Sprintf("'host=127.0.0.1 port=%d user=postgres dbname=postgres'", primary.Port), "primary_slot_name": "standby", "hot_standby_feedback": "on", "sync_replication_slots": "on"}})
	}
	s := standby()

	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store, DataDir: filepath.Join(t.TempDir(), "data"), CheckpointInterval: 20 * time.Millisecond, RecopyQuiet: time.Millisecond})
	defer r.Close()
	ready(t, r)
	oid := tableOID(t, c, "a")
	rows := "concat('|', id, '|', n)"
	next := 10000
	write := func() {
		t.Helper()
		next++
		mustExec(t, c, fmt.Sprintf("INSERT INTO a VALUES (%d, 0); UPDATE a SET n = n + 1 WHERE id %% 10 = %d", next, next%10))
	}
	confirmed := "SELECT coalesce(max(confirmed_flush_lsn::text), '0/0') FROM pg_replication_slots WHERE slot_type = 'logical'"
	atStandby := connectTo(t, s.URL("postgres", "postgres"))
	// The server's worker looks seldom where it could not keep the slot: up to every 30 seconds.
	for deadline := time.Now().Add(3 * time.Minute); queryText(t, atStandby, "SELECT count(*)::text FROM pg_replication_slots WHERE synced AND NOT temporary") != "1"; time.Sleep(20 * time.Millisecond) {
		write()
		mustExec(t, c, "SELECT pg_log_standby_snapshot()") // so that the slot's xmin moves on
		if time.Now().After(deadline) {
			t.Fatal("the standby does not keep the slot")
		}
	}
	caughtUp := func() {
		t.Helper()
		at := queryText(t, c, "SELECT pg_current_wal_flush_lsn()::text")
		eventually(t, "the standby has the log", func() bool {
			return queryText(t, atStandby, "SELECT (pg_last_wal_replay_lsn() >= '"+at+"')::text") == "true"
		})
	}
	saved := func() { // all that is committed now
		t.Helper()
		at := queryText(t, c, "SELECT pg_current_wal_flush_lsn()::text")
		eventually(t, "saved", func() bool {
			write()
			return queryText(t, c, "SELECT (("+confirmed+")::pg_lsn > '"+at+"')::text") == "true"
		})
	}
	write()
	saved()
	caughtUp()
	if lost {
		s.Shutdown()
		write()
		saved()
	}
	primary.Stop()
	if lost {
		s = standby()
	}
	mustExec(t, connectTo(t, s.URL("postgres", "postgres")), "SELECT pg_promote()")
	between.to(s.Port)
	between.cut()
	eventually(t, "the stream goes on", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.origin.timeline == 2
	})
	ready(t, r)
	c = connectTo(t, url)
	for range 3 {
		write()
		eventually(t, "served after the failover", func() bool { return served(t, c, store, "a", rows) })
	}
	want := 0
	if lost {
		want = 1
	}
	if n := copies(r, oid); n != want {
		t.Errorf("%d copies, want %d", n, want)
	}
	// The next failover finds the slot, too.
	if got := queryText(t, c, "SELECT failover::text FROM pg_replication_slots WHERE slot_type = 'logical'"); got != "true" {
		t.Errorf("failover is %s", got)
	}
}
