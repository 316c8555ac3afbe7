package replica

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
)

// TestServerElsewhere: the address leads to another server while the sessions on the one
// before are well. Who is told so looks, and follows; who is told so in vain stays.
func TestServerElsewhere(t *testing.T) {
	first, second := privateServer(t, pgserver.Options{}), privateServer(t, pgserver.Options{})
	for i, s := range []*pgserver.Server{first, second} {
		c := connectTo(t, s.URL("postgres", "postgres"))
		mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY)")
		for range i + 1 {
			mustExec(t, c, "INSERT INTO a SELECT coalesce(max(id), 0) + 1 FROM a")
		}
	}
	between, store, r := startBehindRelay(t, first)
	server := func(s *pgserver.Server) string {
		c := connectTo(t, s.URL("postgres", "postgres"))
		return queryText(t, c, "SELECT "+catalog.DatabaseSQL)
	}
	if got := store.Server(); got != server(first) {
		t.Errorf("the stream is from %q", got)
	}
	// Looked at in vain: it is asked for twice, so that the first look is over.
	generation := store.Generation()
	epoch := r.current
	for _, former := range []string{"one", "two"} {
		r.RecheckServer(former)
		eventually(t, "a look", func() bool { return len(epoch.recheck) == 0 })
	}
	if store.Generation() != generation {
		t.Error("the stream was given up though the address leads where it did")
	}

	between.to(second.Port)
	r.RecheckServer(server(second))
	eventually(t, "the other server's stream", func() bool { return store.Server() == server(second) })
	ready(t, r)
	c := connectTo(t, second.URL("postgres", "postgres"))
	eventually(t, "the other server's rows", func() bool { return served(t, c, store, "a", "concat('|', id)") })
	rows, err := r.Look(context.Background(), "SELECT "+catalog.DatabaseSQL+" WHERE $1::text = ''", []string{""})
	if err != nil || len(rows) != 1 || *rows[0][0] != server(second) {
		t.Errorf("it looks at another server: %v, %v", rows, err)
	}
}

// startBehindRelay starts a replicator whose address can be led to another server.
func startBehindRelay(t *testing.T, s *pgserver.Server) (*relay, *colstore.Store, *Replicator) {
	between := newRelay(t, s.Port)
	store := colstore.New(colstore.Options{})
	t.Cleanup(store.Close)
	r := start(t, between.url(), Config{Store: store})
	t.Cleanup(r.Close)
	ready(t, r)
	return between, store, r
}

// TestCopyFindsServerElsewhere: a session that copies and finds itself on another server has
// the address looked at, as a client's has. Nobody else may open one for long.
func TestCopyFindsServerElsewhere(t *testing.T) {
	first, second := privateServer(t, pgserver.Options{}), privateServer(t, pgserver.Options{})
	for _, s := range []*pgserver.Server{first, second} {
		mustExec(t, connectTo(t, s.URL("postgres", "postgres")), "CREATE TABLE a (id int PRIMARY KEY)")
	}
	between, store, r := startBehindRelay(t, first)
	epoch, server := r.current, store.Server()
	between.to(second.Port)
	c := copySession{config: epoch.copyConfig, queue: newPageQueue(nil, 1)}
	if err := c.run(context.Background()); !errors.Is(err, errOtherServer) {
		t.Fatalf("the copy: %v", err)
	}
	eventually(t, "the other server's stream", func() bool { return store.Server() != server })
	ready(t, r)
}

// TestRechecksBecomeSeldom: a client that stays on a former server has the address looked at
// less and less often, and nobody else has to wait for that.
func TestRechecksBecomeSeldom(t *testing.T) {
	var r rechecks
	now := time.Now()
	looks := func(server string, d time.Duration) (n int) {
		for end := now.Add(d); now.Before(end); now = now.Add(10 * time.Millisecond) {
			if r.due(server, now) {
				n++
			}
		}
		return n
	}
	for _, want := range []int{7, 1, 1, 1} { // after 0, 1, 3, 7, 15, 31, 63 seconds, then each minute
		d := time.Minute
		if want > 1 {
			d += 10 * time.Second
		}
		if n := looks("former", d); n != want {
			t.Errorf("%d looks, want %d", n, want)
		}
	}
	if !r.due("another", now) {
		t.Error("none for another server")
	}
	if r.due("former", now) || r.due("another", now) {
		t.Error("one for a server that was looked for")
	}
	r.unanswered()
	if !r.due("former", now) {
		t.Error("none after one that did not reach a server")
	}
	now = now.Add(time.Hour)
	if n := looks("former", 5*time.Second); n != 3 { // after 0, 1, 3 seconds
		t.Errorf("%d looks after a long time, want 3", n)
	}
}

// TestSessionsOfOneServer: none of an epoch's sessions is on another server than the first.
func TestSessionsOfOneServer(t *testing.T) {
	other := privateServer(t, pgserver.Options{})
	between := newRelay(t, server.Port)
	cfg, err := connConfig(between.url(), "test")
	if err != nil {
		t.Fatal(err)
	}
	e := &epoch{connCfg: cfg, copyConfig: &cfg.Copy().Config}
	e.copyConfig.AfterConnect = e.onSameServer(e.copyConfig.AfterConnect)
	ctx := context.Background()
	if e.control, err = e.connect(ctx); err != nil {
		t.Fatal(err)
	}
	defer e.control.Close(ctx)
	if err := e.checkServer(ctx); err != nil {
		t.Fatal(err)
	}
	connects := map[string]func() error{
		"a session": func() error {
			c, err := e.connect(ctx)
			if err == nil {
				c.Close(ctx)
			}
			return err
		},
		"the replication connection": func() error {
			c, _, err := e.connectReplication(ctx)
			if err == nil {
				c.Close(ctx)
			}
			return err
		},
		"a session that copies": func() error {
			c, err := connectRaw(ctx, e.copyConfig)
			if err == nil {
				c.Close()
			}
			return err
		},
	}
	for what, connect := range connects {
		between.to(server.Port)
		if err := connect(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		between.to(other.Port)
		var failed *pgconn.ConnectError
		if err := connect(); !errors.Is(err, errOtherServer) || !errors.As(err, &failed) {
			t.Errorf("%s on another server: %v", what, err)
		}
	}
}
