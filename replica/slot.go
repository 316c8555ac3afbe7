package replica

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
)

// slot is an open replication slot: the connection that streams from it, and where
// the stream begins.
type slot struct {
	conn  *pgconn.PgConn
	point uint64
	// exported names the snapshot that the slot's creation exported: the stream brings
	// all that it does not see. It dies with the connection's next command.
	exported string
}

// logOrigin is which server, and which history of its log, positions belong to.
type logOrigin struct {
	systemID string
	timeline int32
}

// checkServer says in words what a replication slot would be refused for.
func (e *epoch) checkServer(ctx context.Context) error {
	var standby bool
	var walLevel string
	err := e.control.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('wal_level'), pg_catalog.current_database()::text, "+catalog.DatabaseSQL).
		Scan(&standby, &e.version, &walLevel, &e.database, &e.server)
	switch {
	case err != nil:
		return err
	case standby:
		return errors.New("the server is a standby: a snapshot there does not say which transactions it sees; connect to the primary")
	case walLevel != "logical":
		return fmt.Errorf("wal_level is %s, a replication slot needs logical: ALTER SYSTEM SET wal_level = 'logical', and restart the server (see pgaccel check)", walLevel)
	case e.version < minVersion:
		return fmt.Errorf("server version %d is too old: PostgreSQL 14 or later is needed", e.version/10000)
	}
	return nil
}

// connectReplication opens the connection that the stream will come on.
func (e *epoch) connectReplication(ctx context.Context) (*pgconn.PgConn, logOrigin, error) {
	cfg := e.copyConfig.Copy()
	cfg.RuntimeParams["replication"] = "database"
	cfg.AfterConnect = e.sameServer
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, logOrigin{}, fmt.Errorf("replication connection: %w", withRemedy(explained(err)))
	}
	id, err := pglogrepl.IdentifySystem(ctx, conn)
	if err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, logOrigin{}, err
	}
	return conn, logOrigin{systemID: id.SystemID, timeline: id.Timeline}, nil
}

// errSlotLost ends a stream whose slot the server has invalidated.
var errSlotLost = errors.New("the replication slot was invalidated: the server removed log that it needs (max_slot_wal_keep_size)")

// errUnsendable ends a stream that comes to a value without a binary form: a table that was published got the column, and a row, before
// it was seen. The log is decoded under the catalog of then, so that the slot would end there each time.
var errUnsendable = errors.New("a table that was published got a column whose values have no binary form: the replication slot cannot go on")

// streamError is the error that a stream ends with, of an ErrorResponse.
func streamError(body []byte) error {
	err := serverError(body)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42883" { // undefined_function, by array_send, record_send or range_send
		return fmt.Errorf("%w: %w", errUnsendable, err)
	}
	return err
}

// openSlot makes a slot. Without a data directory it is temporary: it is gone with the
// connection, and retains no log when we are not there. Its creation waits for every
// transaction that is writing.
func (e *epoch) openSlot(ctx context.Context, conn *pgconn.PgConn) (s slot, err error) {
	stop := e.logBlockers(ctx, "the replication slot waits for open transactions")
	kind := ""
	if e.disk == nil {
		kind = " TEMPORARY"
	}
	options := "EXPORT_SNAPSHOT"
	if e.hasFailoverSlot() {
		options = "(SNAPSHOT 'export', FAILOVER)"
	}
	made, err := pglogrepl.ParseCreateReplicationSlot(conn.Exec(ctx, "CREATE_REPLICATION_SLOT "+catalog.QuoteIdentifier(e.name)+kind+" LOGICAL pgoutput "+options))
	stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return s, fmt.Errorf("creating the replication slot: %w", withRemedy(err))
	}
	point, err := catalog.ParseLSN(made.ConsistentPoint)
	return slot{conn: conn, point: point, exported: made.SnapshotName}, err
}

// hasFailoverSlot reports whether standbys may keep the slot (PostgreSQL 17, sync_replication_slots), so that the stream goes on
// from one that is promoted. Without a data directory there is nothing to go on from.
func (e *epoch) hasFailoverSlot() bool { return e.disk != nil && e.version >= 170000 }

// enableFailover lets standbys keep a slot that an older pgaccel has made, or an older server.
func (e *epoch) enableFailover(ctx context.Context, conn *pgconn.PgConn) error {
	if !e.hasFailoverSlot() {
		return nil
	}
	if _, err := conn.Exec(ctx, "ALTER_REPLICATION_SLOT "+catalog.QuoteIdentifier(e.name)+" (FAILOVER true)").ReadAll(); err != nil {
		return fmt.Errorf("having standbys keep the replication slot: %w", err)
	}
	return nil
}

// withRemedy adds what helps to an error that says that a limit of the server's is
// reached, or that a right is missing.
func withRemedy(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	setting := ""
	switch {
	case pg.Code == "42501": // insufficient_privilege
		return fmt.Errorf("%w: pgaccel check has the SQL that grants it", err)
	case pg.Code == "53400" && pg.File == "slot.c":
		setting = "max_replication_slots"
	case pg.Code == "53300" && pg.Routine == "InitWalSenderSlot", pg.Code == "53300" && pg.File == "walsender.c", pg.Code == "53300" && pg.File == "proc.c":
		setting = "max_wal_senders"
	}
	if setting == "" {
		return err
	}
	return fmt.Errorf("%w; a superuser raises the limit (ALTER SYSTEM SET %s = ..., then restart the server), or drop what is not needed", err, setting)
}

// beginAt takes in which server the stream is of and where it begins. After a failover
// that lost transactions, or a restore, positions mean other things than before: those
// that the store has passed would look seen. No copy is left that they belong to.
func (e *epoch) beginAt(at logOrigin, point uint64) {
	if *e.origin != (logOrigin{}) && *e.origin != at {
		e.log.Warn("another server, or another history of it", "system", at.systemID, "timeline", strconv.Itoa(int(at.timeline)),
			"system_before", e.origin.systemID, "timeline_before", strconv.Itoa(int(e.origin.timeline)))
	}
	*e.origin = at
	e.cfg.Store.Restart(e.server, point)
}
