package replica

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
)

// An address may lead to another server than a moment ago: one that was restarted, a
// standby that was promoted, an older copy of the files put back, the next host of a list.
// Connections to the one before may be there still, and silent, or well. What one server
// says of transactions and positions means nothing on another.
//
// So all of an epoch is of one run of a server (catalog.DatabaseSQL): that of its first
// session, which all others are compared with, the replication connection too. The gate
// compares the client's session with it (RecheckServer). Where one differs, it is looked at
// where the address leads to now, and the epoch ends if it is elsewhere.

// errOtherServer fails a connection that leads to another server than the epoch's, and ends
// the epoch.
var errOtherServer = errors.New("the address leads to another server than before, or to one that has been restarted")

const (
	recheckPause    = time.Second // between two looks, at least
	recheckPauseMax = time.Minute // between two looks for the clients of one other server
)

// rechecks says which clients' sessions on other servers are a reason to look. A client may
// stay on a former server for as long as it lives, and send statements: the looks for that
// server become seldom while the address does not lead away.
type rechecks struct {
	mu      sync.Mutex
	servers map[string]recheckWait
}

// recheckWait is for how long no look is due after one that was in vain.
type recheckWait struct {
	pause time.Duration
	until time.Time
}

// due reports whether to look now, because a session is on that server.
func (r *rechecks) due(server string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.servers[server]
	if now.Before(w.until) {
		return false
	}
	if now.Sub(w.until) > recheckPauseMax { // nobody was there meanwhile
		w.pause = 0
	}
	w.pause = min(max(2*w.pause, recheckPause), recheckPauseMax)
	w.until = now.Add(w.pause)
	if r.servers == nil {
		r.servers = map[string]recheckWait{}
	}
	r.servers[server] = w
	return true
}

// unanswered makes the next look due at once: the last one has not reached any server, so
// that something is changing.
func (r *rechecks) unanswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.servers)
}

// sameServer checks a session once it is logged in. One on another server is a reason to
// look, since not all that opens sessions ends the epoch: a copy only begins anew.
func (e *epoch) sameServer(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, "SELECT "+catalog.DatabaseSQL).ReadAll() // a replication connection knows simple queries only
	switch {
	case err != nil:
		return err
	case len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != e.server:
		signal(e.recheck)
		return errOtherServer
	}
	return nil
}

// onSameServer has sameServer called where afterwards is, and after it.
func (e *epoch) onSameServer(afterwards pgconn.AfterConnectFunc) pgconn.AfterConnectFunc {
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := afterwards(ctx, conn); err != nil || e.server == "" { // the first, which says
			return err
		}
		return e.sameServer(ctx, conn)
	}
}

// connect opens a session on the epoch's server.
func (e *epoch) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := e.connCfg.Copy()
	cfg.AfterConnect = e.onSameServer(cfg.AfterConnect)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	return conn, explained(err)
}

// RecheckServer looks soon at where the address leads to: a client's session is on that
// server, which is another than the stream comes from. Where that has been in vain, it looks
// less often for the same server, once a minute in the end.
func (r *Replicator) RecheckServer(server string) {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e != nil && e.rechecks.due(server, time.Now()) {
		signal(e.recheck)
	}
}

// recheckServer looks when it is asked to, until the address leads to another server.
func (e *epoch) recheckServer(ctx context.Context) error {
	for {
		select {
		case <-e.recheck:
		case <-ctx.Done():
			return ctx.Err()
		}
		conn, err := e.connect(ctx)
		if errors.Is(err, errOtherServer) {
			return errOtherServer
		}
		if err == nil {
			conn.Close(context.WithoutCancel(ctx))
		} else {
			e.rechecks.unanswered()
		}
		if err := sleep(ctx, recheckPause); err != nil {
			return err
		}
	}
}
