package replica

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
)

// TestIdlePollsAreFew: where nothing happens the server is asked seldom, and once
// something does, at once.
func TestIdlePollsAreFew(t *testing.T) {
	s := privateServer(t, pgserver.Options{Settings: map[string]string{"autovacuum": "off", "log_statement": "all", "log_line_prefix": "'%a: '"}})
	statements := func() int {
		text, err := os.ReadFile(filepath.Join(s.Dir, "postgres.log"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(line, []byte("pgaccel")) && bytes.Contains(line, []byte("LOG: ")) {
				n++
			}
		}
		return n
	}
	url := s.URL("postgres", "postgres")
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, x text); INSERT INTO a VALUES (1, 'a'); CREATE TABLE b (id int PRIMARY KEY)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	ready(t, r)
	a := r.current.activity
	idle := func() bool { return a.watch.waiting.Load() && a.look.waiting.Load() }
	eventually(t, "idle", idle)
	// A table that is made, and one that loses its identity, are noticed long before the
	// polls of an idle server would.
	for i, what := range []struct {
		sql  string
		seen func() bool
	}{
		{"CREATE TABLE c (id int PRIMARY KEY)", func() bool { return r.Ready() && len(store.Statuses()) == 3 }},
		{"ALTER TABLE b DROP CONSTRAINT b_pkey", func() bool {
			return queryText(t, c, "SELECT count(*)::text FROM pg_publication_tables WHERE tablename = 'b'") == "0"
		}},
		{"SET synchronous_commit = off; ALTER TABLE c REPLICA IDENTITY NOTHING", func() bool {
			return queryText(t, c, "SELECT count(*)::text FROM pg_publication_tables WHERE tablename = 'c'") == "0"
		}},
		{"INSERT INTO a VALUES (2, 'new')", func() bool { return served(t, c, store, "a", "concat('|', id, '|', x)") }},
	} {
		eventually(t, "idle", idle)
		moves := a.moves.Load()
		began := time.Now()
		mustExec(t, c, what.sql)
		eventually(t, fmt.Sprint("step ", i, " is seen"), what.seen)
		t.Logf("%s: seen after %v", what.sql, time.Since(began))
		if a.moves.Load() == moves {
			t.Errorf("%s: seen, but not by a move of the stream", what.sql)
		}
	}
	// Idle, statements are few. The server writes to its log by itself now and then: such
	// a while does not count.
	for range 10 {
		// Waiting, and no move for a while: just after one they poll for activeFor again.
		var moves uint64
		var since time.Time
		eventually(t, "idle", func() bool {
			if n := a.moves.Load(); n != moves || since.IsZero() || !idle() {
				moves, since = n, time.Now()
			}
			return time.Since(since) > time.Second
		})
		began, before := time.Now(), statements()
		eventually(t, "some time passes", func() bool { return time.Since(began) > 6*time.Second })
		n, spent := statements()-before, time.Since(began)
		if a.moves.Load() != moves {
			continue
		}
		if n == 0 || float64(n)/spent.Seconds() > 8 {
			t.Errorf("%d statements in %v of idleness", n, spent)
		}
		return
	}
	t.Error("never idle for six seconds")
}
