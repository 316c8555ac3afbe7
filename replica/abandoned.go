package replica

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
)

// What a pgaccel leaves on a server outlives it where it was killed, where its data
// directory was lost, and where pg_dump carried its publication to another database. A
// publication that nobody uses makes UPDATEs of its tables fail once they lose their
// replica identity; a slot that nobody uses retains the log for ever. Whether the
// pgaccel of a slot is gone for good or merely stopped cannot be known here: slots are
// named, never dropped, but for our own.

// namePattern is a regular expression for the names of publications and slots of all
// pgaccels.
const namePattern = "^" + publicationPrefix + "[0-9a-f]{12}$"

var nameRegexp = regexp.MustCompile(namePattern)

// idleSlot is a permanent slot of a pgaccel that is not running.
type idleSlot struct {
	name, database string
	retained       string // log, for people
}

// remedy is what gives the slot up.
func (s idleSlot) remedy() string {
	return "SELECT pg_drop_replication_slot(" + catalog.QuoteLiteral(s.name) + ")"
}

// idleSlots lists the slots of pgaccels that are not running, in all databases but others, but for
// the one called not.
func idleSlots(ctx context.Context, conn *pgx.Conn, not string, others []string) ([]idleSlot, error) {
	rows, err := conn.Query(ctx, `SELECT s.slot_name::text, s.database::text, coalesce(pg_catalog.pg_size_pretty(pg_catalog.pg_wal_lsn_diff(
			CASE WHEN pg_catalog.pg_is_in_recovery() THEN s.confirmed_flush_lsn ELSE pg_catalog.pg_current_wal_lsn() END, s.restart_lsn)), 'no part')
		FROM pg_catalog.pg_replication_slots s WHERE s.slot_name ~ $1::text AND s.slot_name <> $2::text AND s.slot_type = 'logical' AND NOT s.active AND NOT s.temporary
		AND s.database::text <> ALL (coalesce($3::text[], '{}')) ORDER BY 1`, namePattern, not, others)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s idleSlot, err error) {
		err = row.Scan(&s.name, &s.database, &s.retained)
		return s, err
	})
}

// strayPublication is a publication of this database whose pgaccel is gone: no session
// here bears its name, and no slot waits for it to come back. (An advisory lock would
// say the same, but users see those in pg_locks.)
type strayPublication struct {
	name string
	mine bool // our role may drop it
}

func (p strayPublication) remedy() string {
	return "DROP PUBLICATION " + catalog.QuoteIfNeeded(p.name)
}

// strayPublications lists them, but for the one called not. Sessions and slots of other
// databases do not count: pg_dump carries a publication, its name with it, while its
// pgaccel goes on where it was.
func strayPublications(ctx context.Context, conn *pgx.Conn, not string) ([]strayPublication, error) {
	rows, err := conn.Query(ctx, `SELECT p.pubname::text, pg_catalog.pg_has_role(p.pubowner, 'USAGE') FROM pg_catalog.pg_publication p
		WHERE p.pubname ~ $1::text AND p.pubname <> $2::text
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.application_name = p.pubname AND a.datname = pg_catalog.current_database())
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = p.pubname AND s.database = pg_catalog.current_database())
		ORDER BY 1`, namePattern, not)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p strayPublication, err error) {
		err = row.Scan(&p.name, &p.mine)
		return p, err
	})
}

// clearAbandoned drops the publications of pgaccels that are gone, and names what it
// may not drop: each thing once in the Replicator's life.
func (e *epoch) clearAbandoned(ctx context.Context) error {
	publications, err := strayPublications(ctx, e.control, e.name)
	if err != nil {
		return err
	}
	for _, p := range publications {
		err := fmt.Errorf("the role %s does not own it", e.connCfg.User)
		if p.mine {
			err = dropPublication(ctx, e.control, p.name)
		}
		switch {
		case err == nil:
			e.log.Info("dropped a publication left behind", "publication", p.name)
		case ctx.Err() != nil:
			return ctx.Err()
		case e.named.add(p.name):
			e.log.Warn("a publication was left behind by a pgaccel that is gone, or came with pg_dump, and could not be dropped: UPDATEs of its tables may fail",
				"publication", p.name, "error", err, "remedy", p.remedy())
		}
	}
	slots, err := idleSlots(ctx, e.control, e.name, e.cfg.OtherDatabases)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if e.named.add(s.name) {
			e.log.Warn("a replication slot waits for a pgaccel that is not running, and retains log; drop it if that will not come back with its data directory",
				"slot", s.name, "database", s.database, "retained", s.retained, "remedy", s.remedy())
		}
	}
	return nil
}

// nameSet is a set of names. It belongs to one goroutine.
type nameSet map[string]bool

// add reports whether the name is new.
func (n nameSet) add(name string) bool {
	was := n[name]
	n[name] = true
	return !was
}
