package replica

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

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
	between := newRelay(t, first.Port)
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, between.url(), Config{Store: store})
	defer r.Close()
	ready(t, r)
	server := func(s *pgserver.Server) string {
		c := connectTo(t, s.URL("postgres", "postgres"))
		return queryText(t, c, "SELECT encode(timestamptz_send(pg_postmaster_start_time()), 'hex')")
	}
	if got := store.Server(); got != server(first) {
		t.Errorf("the stream is from %q", got)
	}
	// Looked at in vain: it is asked for twice, so that the first look is over.
	generation := store.Generation()
	epoch := r.current
	for range 2 {
		r.RecheckServer()
		eventually(t, "a look", func() bool { return len(epoch.recheck) == 0 })
	}
	if store.Generation() != generation {
		t.Error("the stream was given up though the address leads where it did")
	}

	between.to(second.Port)
	r.RecheckServer()
	eventually(t, "the other server's stream", func() bool { return store.Server() == server(second) })
	ready(t, r)
	c := connectTo(t, second.URL("postgres", "postgres"))
	eventually(t, "the other server's rows", func() bool { return served(t, c, store, "a", "concat('|', id)") })
	rows, err := r.Look(context.Background(), "SELECT encode(timestamptz_send(pg_postmaster_start_time()), 'hex') WHERE $1::text = ''", []string{""})
	if err != nil || len(rows) != 1 || *rows[0][0] != server(second) {
		t.Errorf("it looks at another server: %v, %v", rows, err)
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
