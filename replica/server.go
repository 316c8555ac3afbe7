package replica

import (
	"context"
	"errors"
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
// So all of an epoch is of one run of a server (catalog.ServerStartSQL): that of its first
// session, which all others are compared with, the replication connection too. The gate
// compares the client's session with it. Where one differs (RecheckServer), it is looked at
// where the address leads to now, and the epoch ends if it is elsewhere.

// errOtherServer fails a connection that leads to another server than the epoch's, and ends
// the epoch.
var errOtherServer = errors.New("the address leads to another server than before, or to one that has been restarted")

// recheckPause is the time between two looks.
const recheckPause = time.Second

// sameServer checks a session once it is logged in.
func (e *epoch) sameServer(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, "SELECT "+catalog.ServerStartSQL).ReadAll() // a replication connection knows simple queries only
	switch {
	case err != nil:
		return err
	case len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != e.server:
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

// RecheckServer looks soon at where the address leads to: a client's session is on another
// server than the stream comes from.
func (r *Replicator) RecheckServer() {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e != nil {
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
		}
		if err := sleep(ctx, recheckPause); err != nil {
			return err
		}
	}
}
