package replica

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
)

// Level says how a finding bears on acceleration.
type Level uint8

// The levels.
const (
	LevelOK    Level = iota
	LevelWarn        // works, but less of it than there could be
	LevelError       // pgaccel forwards everything, or all of this table, until it is mended
)

// String returns ok, warn or error.
func (l Level) String() string { return [...]string{"ok", "warn", "error"}[l] }

// Finding is one thing that Check looked at.
type Finding struct {
	Level   Level
	Subject string // a setting, the role, a table
	Text    string
	SQL     string // what mends it, to be run by whom Text names; empty where nothing does or needs to
}

// Check looks at whether the server and the role of dsn serve for the tables that
// match patterns, and whether clients can log in as the server's rules mean it; it
// changes nothing. certificate, DER, is the one that clients are shown, nil without
// TLS. The error is that the server cannot be asked at all.
func Check(ctx context.Context, dsn string, patternTexts []string, certificate []byte) ([]Finding, error) {
	p, err := parsePatterns(patternTexts)
	if err != nil {
		return nil, err
	}
	cfg, err := connConfig(dsn, "pgaccel check")
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, explained(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	c := checker{ctx: ctx, conn: conn, cfg: cfg}
	if err := c.server(); err != nil {
		return nil, err
	}
	if err := c.role(); err != nil {
		return nil, err
	}
	if err := c.access(certificate); err != nil {
		return nil, err
	}
	if err := c.tables(p); err != nil {
		return nil, err
	}
	return c.found, nil
}

type checker struct {
	ctx        context.Context
	conn       *pgx.Conn
	cfg        *pgx.ConnConfig
	quotedRole string
	found      []Finding
}

func (c *checker) add(l Level, subject, text, sql string) {
	c.found = append(c.found, Finding{Level: l, Subject: subject, Text: text, SQL: sql})
}

// addIf adds an ok finding, or the other one where bad is set.
func (c *checker) addIf(bad bool, l Level, subject, good, text, sql string) {
	if bad {
		c.add(l, subject, text, sql)
	} else {
		c.add(LevelOK, subject, good, "")
	}
}

func (c *checker) server() error {
	var version, slots, usedSlots, senders, usedSenders, prepared int
	var versionText, walLevel, encoding, syncNames string
	var standby bool
	err := c.conn.QueryRow(c.ctx, `SELECT pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('server_version'), pg_catalog.pg_is_in_recovery(),
		pg_catalog.current_setting('wal_level'), pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('synchronous_standby_names'),
		pg_catalog.current_setting('max_replication_slots')::int, (SELECT count(*) FROM pg_catalog.pg_replication_slots)::int,
		pg_catalog.current_setting('max_wal_senders')::int, (SELECT count(*) FROM pg_catalog.pg_stat_activity a WHERE a.backend_type = 'walsender')::int,
		(SELECT count(*) FROM pg_catalog.pg_prepared_xacts)::int`).Scan(
		&version, &versionText, &standby, &walLevel, &encoding, &syncNames, &slots, &usedSlots, &senders, &usedSenders, &prepared)
	if err != nil {
		return err
	}
	c.addIf(version < minVersion, LevelError, "server version", versionText, versionText+" is too old: PostgreSQL 14 or later is needed", "")
	c.addIf(standby, LevelError, "primary", "the server is a primary", "the server is a standby, where snapshots do not say which transactions they see: connect to the primary", "")
	c.addIf(walLevel != "logical", LevelError, "wal_level", "logical", "wal_level is "+walLevel+"; a superuser changes it, and the server must be restarted", "ALTER SYSTEM SET wal_level = 'logical'")
	c.addIf(usedSlots >= slots, LevelError, "max_replication_slots", fmt.Sprintf("%d of %d in use", usedSlots, slots),
		fmt.Sprintf("all %d replication slots are in use; the server must be restarted", slots), fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d", slots+4))
	c.addIf(usedSenders >= senders, LevelError, "max_wal_senders", fmt.Sprintf("%d of %d in use", usedSenders, senders),
		fmt.Sprintf("all %d WAL senders are in use; the server must be restarted", senders), fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d", senders+4))
	c.addIf(encoding != "UTF8", LevelWarn, "server_encoding", encoding, "the database's encoding is "+encoding+": text columns are not copied", "")
	if err := c.leftovers(); err != nil {
		return err
	}
	if prepared > 0 {
		c.add(LevelWarn, "prepared transactions", fmt.Sprintf("%d prepared transactions: the first copy waits until they end (SELECT gid, prepared FROM pg_prepared_xacts)", prepared), "")
	}
	if strings.Contains(syncNames, "*") {
		c.add(LevelWarn, "synchronous_standby_names", "'"+syncNames+"' counts every receiver, this one too: commits may wait for it; name the standbys instead", "")
	}
	return nil
}

// leftovers looks for what pgaccels that are not running have left: with --data-dir
// their slots wait for them.
func (c *checker) leftovers() error {
	slots, err := idleSlots(c.ctx, c.conn, "", nil)
	if err != nil {
		return err
	}
	for _, s := range slots {
		sql := s.remedy()
		if s.database == c.conn.Config().Database {
			sql += "; DROP PUBLICATION IF EXISTS " + catalog.QuoteIfNeeded(s.name)
		}
		c.add(LevelWarn, "slot "+s.name, "it waits for a pgaccel of database "+s.database+" to come back with its data directory, and retains "+s.retained+" of write-ahead log; if that is gone for good, drop it", sql)
	}
	publications, err := strayPublications(c.ctx, c.conn, "")
	if err != nil {
		return err
	}
	for _, p := range publications {
		c.add(LevelWarn, "publication "+p.name, "its pgaccel is gone, or it came with pg_dump (see --no-publications): UPDATEs and DELETEs of its tables fail where they have no replica identity", p.remedy())
	}
	return nil
}

func (c *checker) role() error {
	var role, db string
	var replication, super, create bool
	err := c.conn.QueryRow(c.ctx, `SELECT r.rolname, r.rolreplication, r.rolsuper, pg_catalog.current_database(), pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
		FROM pg_catalog.pg_roles r WHERE r.rolname = current_user`).Scan(&role, &replication, &super, &db, &create)
	if err != nil {
		return err
	}
	c.quotedRole = catalog.QuoteIdentifier(role)
	c.addIf(!create, LevelError, "CREATE on the database", "granted to "+role, role+" may not create a publication in "+db+"; the database's owner grants it",
		"GRANT CREATE ON DATABASE "+catalog.QuoteIdentifier(db)+" TO "+c.quotedRole)
	var emits bool
	var emit string
	if err := c.conn.QueryRow(c.ctx, `SELECT p.oid::regprocedure::text, pg_catalog.has_function_privilege(p.oid, 'EXECUTE') FROM pg_catalog.pg_proc p
		WHERE p.proname = 'pg_logical_emit_message' AND p.pronamespace = 'pg_catalog'::regnamespace AND p.proargtypes[2] = 'text'::regtype`).Scan(&emit, &emits); err != nil {
		return err
	}
	c.addIf(!emits, LevelWarn, "logical messages", role+" may write them", role+" may not write logical messages: queries that wait for what is not flushed are forwarded, and nothing is saved in --data-dir; a superuser grants it",
		"GRANT EXECUTE ON FUNCTION "+emit+" TO "+c.quotedRole)
	// Managed services have rights of their own beside the attribute (rds_replication):
	// what counts is whether a replication connection opens.
	err = c.replication()
	var pg *pgconn.PgError
	switch {
	case err == nil:
		c.add(LevelOK, "replication", "the role "+role+" may replicate", "")
	case !replication && !super:
		c.add(LevelError, "replication", role+" may not replicate; a superuser grants it (on RDS: GRANT rds_replication)", "ALTER ROLE "+c.quotedRole+" REPLICATION")
	case errors.As(err, &pg):
		c.add(LevelError, "replication", "a replication connection is refused: "+pg.Message+" (pg_hba.conf?)", "")
	default:
		c.add(LevelError, "replication", "a replication connection fails: "+err.Error(), "")
	}
	return nil
}

// replication tries a replication connection.
func (c *checker) replication() error {
	cfg := c.cfg.Config.Copy()
	cfg.RuntimeParams["replication"] = "database"
	cfg.AfterConnect = nil
	conn, err := pgconn.ConnectConfig(c.ctx, cfg)
	if err != nil {
		return explained(err)
	}
	defer conn.Close(context.WithoutCancel(c.ctx))
	_, err = conn.Exec(c.ctx, "IDENTIFY_SYSTEM").ReadAll()
	return err
}

func (c *checker) tables(p patterns) error {
	cat, refused, err := readCatalog(c.ctx, c.conn, p.all(), nil)
	if err != nil {
		return err
	}
	for _, f := range refused {
		level := LevelError
		if strings.Contains(f.Reason, "view") || strings.HasPrefix(f.Reason, "partitioned") || strings.HasPrefix(f.Reason, "foreign") {
			level = LevelWarn // caught by a broad pattern; nothing to mend
		}
		if !p.match(f.Table.Schema, f.Table.Name) {
			level = LevelWarn // auto leaves it
		}
		c.add(level, "table "+f.Table.QualifiedName(), f.Reason, f.SQL)
	}
	for _, t := range cat.Tables {
		c.table(t)
	}
	if len(cat.Tables) == 0 && len(refused) == 0 {
		c.add(LevelWarn, "tables", "no table matches the patterns", "")
	}
	missing, err := p.unmatched(c.ctx, c.conn)
	for _, text := range missing {
		c.add(LevelWarn, "pattern "+text, noMatch, "")
	}
	return err
}

func (c *checker) table(t *catalog.Table) {
	subject := "table " + t.QualifiedName()
	var left []string
	for _, col := range t.Columns {
		if col.Unsupported != "" {
			left = append(left, col.Name+" ("+col.Unsupported+")")
		}
	}
	if len(left) == 0 {
		c.add(LevelOK, subject, fmt.Sprintf("%d columns", len(t.Columns)), "")
		return
	}
	sql := ""
	if strings.Contains(strings.Join(left, " "), "no SELECT privilege") {
		sql = "GRANT SELECT ON " + quoteTable(t) + " TO " + c.quotedRole
	}
	c.add(LevelWarn, subject, "not copied, so that queries over them are forwarded: "+strings.Join(left, ", "), sql)
}
