package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

const publicationPrefix = "pgaccel_"

// nameSession gives the control session the name by which others know that we live.
func (e *epoch) nameSession(ctx context.Context) error {
	_, err := e.control.Exec(ctx, "SELECT pg_catalog.set_config('application_name', $1, false)", e.name)
	return err
}

// createPublication makes an empty publication. The end of ctx does not break it off: the
// server might make it after tidy has dropped what is there.
func (e *epoch) createPublication(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := dropPublication(ctx, e.control, e.name); err != nil {
		return err
	}
	if _, err := e.control.Exec(ctx, "CREATE PUBLICATION "+catalog.QuoteIdentifier(e.name)+" WITH ("+e.publicationOptions()+")"); err != nil {
		return fmt.Errorf("creating the publication: %w", withRemedy(err))
	}
	state, err := e.publicationState(ctx)
	e.setPublished(state)
	return err
}

// setPublished notes the publication's state, for us and for checkpoints.
func (e *epoch) setPublished(state map[uint32]string) {
	e.published = state
	e.reg.mu.Lock()
	e.reg.published = state
	e.reg.mu.Unlock()
}

// publicationOptions are the options of the publication. Generated columns are not
// copied, but where the replica identity has them, as REPLICA IDENTITY FULL does, and
// they are not published, UPDATEs fail (18 and later).
func (e *epoch) publicationOptions() string {
	options := "publish = 'insert, update, delete, truncate', publish_via_partition_root = false"
	if e.version >= 180000 {
		options += ", publish_generated_columns = stored"
	}
	return options
}

// publicationIs fails where somebody else altered the publication, or dropped it:
// changes may be missing from the stream then. Tables may come and go: a dropped
// one leaves the publication by itself.
func (e *epoch) publicationIs(ctx context.Context) error {
	_, err := e.publicationBut(ctx, nil)
	return err
}

// publicationBut does the same and returns the state, leaving out the tables that
// were altered by us just now.
func (e *epoch) publicationBut(ctx context.Context, ours []uint32) (map[uint32]string, error) {
	now, err := e.publicationState(ctx)
	if err != nil {
		return nil, err
	}
	for oid, state := range now {
		if e.published[oid] != state && !slices.Contains(ours, oid) {
			return nil, errors.New("somebody altered the publication " + e.name)
		}
	}
	return now, nil
}

// publicationState returns texts that change with every ALTER PUBLICATION: one for
// ours, under 0, and one for each of our tables that exists.
func (e *epoch) publicationState(ctx context.Context) (map[uint32]string, error) {
	return e.publicationStateOf(ctx, e.reg.oids())
}

func (e *epoch) publicationStateOf(ctx context.Context, relations []uint32) (map[uint32]string, error) {
	state := map[uint32]string{}
	rows, err := e.control.Query(ctx, `SELECT 0::oid, coalesce((SELECT pg_catalog.concat_ws(' ', p.oid, p.xmin) FROM pg_catalog.pg_publication p WHERE p.pubname = $1::text), 'none')
		UNION ALL SELECT c.oid, coalesce((SELECT pg_catalog.concat_ws(' ', r.oid, r.xmin) FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
			WHERE r.prrelid = c.oid AND p.pubname = $1::text), 'none')
		FROM pg_catalog.pg_class c WHERE c.oid = ANY($2::oid[])`, e.name, relations)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var oid uint32
		var text string
		if err := rows.Scan(&oid, &text); err != nil {
			return nil, err
		}
		state[oid] = text
	}
	return state, rows.Err()
}

// publish adds tables to the publication and to the registry. A table that the
// server refuses does not stop the others.
func (e *epoch) publish(ctx context.Context, add []*catalog.Table, late bool) error {
	if len(add) == 0 {
		return nil
	}
	if err := e.addTables(ctx, add...); err != nil {
		if !isServerError(err) {
			return err
		}
		var added []*catalog.Table
		for _, meta := range add {
			err := e.addTables(ctx, meta)
			switch {
			case err == nil:
				added = append(added, meta)
			case !isServerError(err):
				return err
			default:
				e.log.Warn("table refused", "table", meta.QualifiedName(), "reason", err)
				e.cfg.Store.SetState(meta, colstore.StateRefused, "cannot be published: "+err.Error())
				e.refusals[meta.OID] = refusal{reason: err.Error(), fingerprint: meta.Fingerprint, retry: time.Now().Add(refusalRetry)}
			}
		}
		add = added
	}
	e.reg.join(add, late)
	var ours []uint32
	for _, meta := range add {
		ours = append(ours, parts(meta)...)
	}
	return e.altered(ctx, ours...)
}

// errReplaced refuses a table that is no longer what the catalog said.
var errReplaced = errors.New("it was replaced, or lost its replica identity, while it was being added")

// addTables adds tables to the publication, all or none. The names may mean other
// tables by now, and an identity may be gone: a table that cannot be updated while
// it is published must not be published for a moment, so that what was added is
// looked at before the transaction ends. Until then ADD TABLE's lock keeps the
// tables as they are.
func (e *epoch) addTables(ctx context.Context, tables ...*catalog.Table) error {
	var names []string
	var oids []uint32
	for _, t := range tables {
		for _, leaf := range leavesOf(t) {
			names, oids = append(names, "ONLY "+catalog.QuoteIdentifier(leaf.Schema)+"."+catalog.QuoteIdentifier(leaf.Name)), append(oids, leaf.OID)
		}
	}
	if len(names) == 0 {
		return nil // partitioned tables without partitions
	}
	return e.locking(ctx, len(oids), func(tx pgx.Tx) error {
		// Somebody else may have put one there; it has to be ours, from now on.
		if _, err := removeTables(ctx, tx, e.name, oids); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "ALTER PUBLICATION "+catalog.QuoteIdentifier(e.name)+" ADD TABLE "+strings.Join(names, ", ")); err != nil {
			return err
		}
		var usable int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
			JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
			WHERE p.pubname = $1::text AND c.oid = ANY($2::oid[]) AND (c.relreplident = 'f' OR `+identityIndexSQL+`)`, e.name, oids).Scan(&usable); err != nil {
			return err
		}
		if usable != len(oids) {
			return errReplaced
		}
		return nil
	})
}

const (
	// lockTogether bounds, in milliseconds, the wait for the lock on one relation while those on others are held. A client that has
	// that one may wait for these; deadlock_timeout after it has begun to, a second by default, PostgreSQL would end its statement.
	lockTogether = 200
	// lockTries is how often that is tried, with lockPause between.
	lockTries = 12
	lockPause = 50 * time.Millisecond
)

// locking runs f, which locks so many relations, in a transaction. Where these are several it lets go of all of them rather than wait long for one. What it
// does not get so, as a vacuum is at it that only a long wait ends, it waits for at last.
func (e *epoch) locking(ctx context.Context, relations int, f func(tx pgx.Tx) error) (err error) {
	for try := 0; relations > 1 && try < lockTries; try++ {
		err = pgx.BeginFunc(ctx, e.control, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT pg_catalog.set_config('lock_timeout', greatest(1, least($1, s.setting::int / 2))::text, true)
				FROM pg_catalog.pg_settings s WHERE s.name = 'deadlock_timeout'`, lockTogether); err != nil {
				return err
			}
			return f(tx)
		})
		if !isLockTimeout(err) {
			return err
		}
		if err := sleep(ctx, lockPause); err != nil {
			return err
		}
	}
	return pgx.BeginFunc(ctx, e.control, f)
}

// isLockTimeout reports whether err says that a lock was not to be had in time.
func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03" // lock_not_available
}

// dropTable takes a table out of the publication and the registry, as far as it is
// there.
func (e *epoch) dropTable(ctx context.Context, oid uint32) error {
	relations := e.reg.leave(oid)
	if len(relations) == 0 {
		return nil
	}
	// A table that is renamed meanwhile is looked up again: one that stays published
	// may fail its UPDATEs some day.
	for range 5 {
		err := e.locking(ctx, len(relations), func(tx pgx.Tx) error {
			_, err := removeTables(ctx, tx, e.name, relations)
			return err
		})
		if err == nil {
			break
		} else if !isGone(err) {
			return err
		}
	}
	return e.altered(ctx, relations...)
}

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// altered notes the publication's state after we altered it for some tables.
func (e *epoch) altered(ctx context.Context, ours ...uint32) (err error) {
	state, err := e.publicationBut(ctx, ours)
	e.setPublished(state)
	return err
}

// isServerError reports whether err is about a table rather than the connection.
func isServerError(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) || errors.Is(err, errReplaced)
}

// isGone reports whether err says that a table or its place in the publication does
// not exist.
func isGone(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "42704")
}
