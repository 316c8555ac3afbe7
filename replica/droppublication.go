package replica

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
)

// An UPDATE or DELETE looks up which publications its table is in, and then each of them
// (RelationBuildPublicationDesc in relcache.c). It fails with "cache lookup failed for publication" where one is
// dropped between the two. So a publication is emptied first, and dropped when the statements have ended that were
// writing to its tables then: who comes later does not find it any more.
//
// What keeps us from that, as a VACUUM that somebody has begun, does so for emptyTimeout each; then the publication
// is dropped as it is, for one that stays may fail UPDATEs for good.
const emptyTimeout = 500 * time.Millisecond

// dropPublication drops a publication of ours, where there is one.
func dropPublication(ctx context.Context, conn *pgx.Conn, name string) error {
	if tables, err := emptyPublication(ctx, conn, name); err == nil && len(tables) > 0 {
		awaitWriters(ctx, conn, tables)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "DROP PUBLICATION IF EXISTS "+catalog.QuoteIdentifier(name))
	return err
}

// emptyPublication takes all tables out of a publication and returns them.
func emptyPublication(ctx context.Context, conn *pgx.Conn, name string) (tables []uint32, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config('lock_timeout', $1, true)", emptyTimeout.String()); err != nil {
			return err
		}
		tables, err = removeTables(ctx, tx, name, nil)
		return err
	})
	return tables, err
}

// awaitWriters waits until the statements have ended that are writing to the tables now.
func awaitWriters(ctx context.Context, conn *pgx.Conn, tables []uint32) {
	limited, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	before, err := activeWriters(ctx, conn, tables)
	for err == nil && len(before) > 0 && sleep(limited, 5*time.Millisecond) == nil {
		var now []string
		now, err = activeWriters(ctx, conn, tables)
		before = slices.DeleteFunc(before, func(w string) bool { return !slices.Contains(now, w) })
	}
}

// activeWriters are the virtual transactions in which a statement runs and that have written to one of the tables. State is null
// where our role may not see it. Prepared transactions have no process.
func activeWriters(ctx context.Context, conn *pgx.Conn, tables []uint32) ([]string, error) {
	rows, err := conn.Query(ctx, `SELECT DISTINCT l.virtualtransaction FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'relation' AND l.granted AND l.relation = ANY($1::oid[]) AND l.mode = 'RowExclusiveLock' AND l.pid <> pg_catalog.pg_backend_pid()
		AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
		AND coalesce(a.state, 'active') = 'active'`, tables)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// removeTables takes those of the tables out of the publication that are in it, all without a list, and returns them.
func removeTables(ctx context.Context, q querier, publication string, tables []uint32) (removed []uint32, err error) {
	rows, err := q.Query(ctx, `SELECT c.oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
		FROM pg_catalog.pg_publication_rel r JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid
		JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE p.pubname = $1 AND ($2::oid[] IS NULL OR c.oid = ANY($2))`, publication, tables)
	if err != nil {
		return nil, err
	}
	var name string
	var oid uint32
	var names []string
	if _, err := pgx.ForEachRow(rows, []any{&oid, &name}, func() error {
		removed, names = append(removed, oid), append(names, "ONLY "+name)
		return nil
	}); err != nil || len(names) == 0 {
		return nil, err
	}
	_, err = q.Exec(ctx, "ALTER PUBLICATION "+catalog.QuoteIdentifier(publication)+" DROP TABLE "+strings.Join(names, ", "))
	return removed, err
}
