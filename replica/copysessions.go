package replica

import (
	"context"
	"errors"
	"runtime"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/semaphore"
)

const (
	// copySessionsMax is how many sessions copy at once at most where Config.Workers
	// does not say.
	copySessionsMax = 32
	// connectionShare: copies take at most this part of the connections that are free on
	// the server when they begin. The others are for clients.
	connectionShare = 4
	// bufferShare: the buffers of copies take at most this part of the limit of column
	// memory, beside it, but for those of one session.
	bufferShare = 4
)

// cores is GOMAXPROCS as it was at the start: the program raises it (internal/processors).
var cores = runtime.GOMAXPROCS(0)

// copySessions is Config.Workers where it is not set: Postgres spends more on a COPY
// than the copy does, each on a core.
func copySessions() int { return min(copySessionsMax, cores) }

// copySlots bounds the sessions that copy at once, of all tables together, and the
// memory of their buffers.
type copySlots struct {
	sessions *semaphore.Weighted
	buffers  *semaphore.Weighted
	most     int64 // bytes of buffers
}

func newCopySlots(sessions int, memoryLimit int64) *copySlots {
	most := max(memoryLimit/bufferShare, 1)
	return &copySlots{sessions: semaphore.NewWeighted(int64(sessions)), buffers: semaphore.NewWeighted(most), most: most}
}

// acquire waits for the place of a session of h's batch, with buffers of some bytes.
// leave gives it back.
func (s *copySlots) acquire(ctx context.Context, h *holder, bytes int64) (leave func(), err error) {
	bytes = min(bytes, s.most)
	held := 0
	all := []struct {
		of *semaphore.Weighted
		n  int64
	}{{h.connections, 1}, {s.buffers, bytes}, {s.sessions, 1}}
	leave = func() {
		for _, a := range all[:held] {
			a.of.Release(a.n)
		}
	}
	for _, a := range all {
		if err := a.of.Acquire(ctx, a.n); err != nil {
			leave()
			return nil, err
		}
		held++
	}
	return leave, nil
}

// freeConnectionsSQL is how many more sessions the role may open in the database: what
// is left of max_connections without those that are reserved and, for roles that are
// no superusers, of the limits of the role and of the database.
const freeConnectionsSQL = `SELECT least(
	pg_catalog.current_setting('max_connections')::int - pg_catalog.current_setting('superuser_reserved_connections')::int
		- coalesce(pg_catalog.current_setting('reserved_connections', true)::int, 0)
		- (SELECT coalesce(sum(d.numbackends), 0) FROM pg_catalog.pg_stat_database d),
	CASE WHEN NOT r.rolsuper AND r.rolconnlimit >= 0 THEN r.rolconnlimit - (SELECT count(*) FROM pg_catalog.pg_stat_activity a WHERE a.usesysid = r.oid) END,
	CASE WHEN NOT r.rolsuper AND d.datconnlimit >= 0 THEN d.datconnlimit - (SELECT s.numbackends FROM pg_catalog.pg_stat_database s WHERE s.datid = d.oid) END)::int
	FROM pg_catalog.pg_roles r, pg_catalog.pg_database d
	WHERE r.rolname = pg_catalog.session_user() AND d.datname = pg_catalog.current_database()`

// connectionsFor returns how many sessions may copy at once now, at most so many.
func connectionsFor(ctx context.Context, conn *pgx.Conn, most int) (int, error) {
	var free int
	if err := conn.QueryRow(ctx, freeConnectionsSQL).Scan(&free); err != nil {
		return 0, err
	}
	return max(1, min(most, free/connectionShare)), nil
}

// tooManyConnections reports whether the server, the database or the role has no
// connection left (too_many_connections).
func tooManyConnections(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "53300"
}
