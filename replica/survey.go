package replica

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
)

// Survey is what a role finds that has no more rights than to look: the catalog as it would be
// if all that can be mended were, and what that is. Nothing on the server is changed.
type Survey struct {
	// Conn may write nothing, and has an empty search_path but for what Under runs.
	Conn *pgx.Conn
	// Role is who asks.
	Role string
	// Catalog has the tables that are copied, or could be.
	Catalog *catalog.Catalog
	// Refused are relations that match, and are not copied whatever is done.
	Refused []RefusedTable
	// Missing are patterns that match nothing.
	Missing []string

	needs      map[uint32][]Need
	unreadable map[uint32][]string
	searchPath string
}

// RefusedTable is a relation that cannot be copied.
type RefusedTable struct {
	Schema, Name string
	Need
}

// Need is what stands against a copy, and the SQL that mends it, if any.
type Need struct{ Reason, SQL string }

// NewSurvey connects to the server and reads its catalog. The caller closes it. Where auto is among the patterns, all tables
// are looked at that it may stand for.
func NewSurvey(ctx context.Context, dsn string, patternTexts []string) (*Survey, error) {
	p, err := parsePatterns(patternTexts)
	if err != nil {
		return nil, err
	}
	cfg, err := connConfig(dsn, "pgaccel advise")
	if err != nil {
		return nil, err
	}
	delete(cfg.RuntimeParams, "search_path") // that of clients says what names mean
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	cfg.RuntimeParams["lock_timeout"] = "2s" // who has a table is not waited for
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, explained(err)
	}
	s := &Survey{Conn: conn, needs: map[uint32][]Need{}, unreadable: map[uint32][]string{}}
	if err := s.read(ctx, p); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the session.
func (s *Survey) Close() { s.Conn.Close(context.Background()) }

// Needs returns what has to be mended before the table can be copied.
func (s *Survey) Needs(t *catalog.Table) []Need { return s.needs[t.OID] }

// Unreadable returns the table's columns that the role may not read.
func (s *Survey) Unreadable(t *catalog.Table) []string { return s.unreadable[t.OID] }

// Under runs f with the search_path that the role's sessions have in this database.
func (s *Survey) Under(ctx context.Context, f func() error) error {
	const set = "SELECT pg_catalog.set_config('search_path', $1, false)"
	if _, err := s.Conn.Exec(ctx, set, s.searchPath); err != nil {
		return err
	}
	err := f()
	_, reset := s.Conn.Exec(context.WithoutCancel(ctx), set, "")
	return firstError(err, reset)
}

func (s *Survey) read(ctx context.Context, p patterns) error {
	var version int
	var schemas []string
	err := s.Conn.QueryRow(ctx, `SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4, pg_catalog.current_setting('search_path'), pg_catalog.current_schemas(false)::pg_catalog.text[]`).Scan(
		&version, &s.searchPath, &schemas)
	if err != nil {
		return err
	}
	if version < minVersion {
		return fmt.Errorf("the server is too old: PostgreSQL 14 or later is needed")
	}
	if _, err := s.Conn.Exec(ctx, "SET search_path = ''"); err != nil {
		return err
	}
	for again := true; again; {
		if again, err = s.readOnce(ctx, p); err != nil {
			return fmt.Errorf("reading the catalog: %w", err)
		}
	}
	s.Catalog.SearchPath = schemas
	s.Missing, err = p.unmatched(ctx, s.Conn)
	return err
}

// readOnce reads the catalog; again says that it changed meanwhile.
func (s *Survey) readOnce(ctx context.Context, p patterns) (again bool, err error) {
	err = pgx.BeginTxFunc(ctx, s.Conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		r := catalogReader{ctx: ctx, tx: tx, cat: &catalog.Catalog{Shadowed: map[string]bool{}}, supposed: true}
		if err := r.read(p.all()); err != nil {
			return err
		}
		s.Role = r.role
		s.suppose(&r)
		refused := r.choose()
		s.Catalog = r.cat
		if err := r.views(nil); err != nil {
			return err
		}
		s.Refused = nil
		for _, f := range r.notViews(refused) {
			s.Refused = append(s.Refused, RefusedTable{f.Table.Schema, f.Table.Name, Need{f.Reason, f.SQL}})
		}
		return nil
	})
	if err == errTorn {
		return true, nil
	}
	return false, err
}

// suppose notes what is to be mended, and takes it for done.
func (s *Survey) suppose(r *catalogReader) {
	clear(s.needs)
	clear(s.unreadable)
	for _, rel := range r.rels {
		for need, ok := rel.mend(); ok; need, ok = rel.mend() {
			s.needs[rel.table.OID] = append(s.needs[rel.table.OID], need)
		}
		for i := range rel.columns {
			if rel.columns[i].supposed {
				s.unreadable[rel.table.OID] = append(s.unreadable[rel.table.OID], rel.columns[i].name)
			}
		}
		if len(s.unreadable[rel.table.OID]) > 0 {
			s.needs[rel.table.OID] = append(s.needs[rel.table.OID], Need{"no SELECT privilege", "GRANT SELECT ON " + quoteTable(rel.table) + " TO " + catalog.QuoteIdentifier(s.Role)})
		}
	}
	for _, rel := range r.rels {
		t := rel.table.OID
		for _, leaf := range rel.leaves() {
			for _, need := range s.needs[leaf.table.OID] {
				s.needs[t] = append(s.needs[t], Need{"partition " + leaf.table.QualifiedName() + ": " + need.Reason, need.SQL})
			}
			for _, name := range s.unreadable[leaf.table.OID] { // a copy reads the partitions themselves
				if !slices.Contains(s.unreadable[t], name) {
					s.unreadable[t] = append(s.unreadable[t], name)
				}
			}
		}
	}
}

// mend supposes that the first thing is mended which stands against a copy, and says what it
// is. False where there is none, or nothing helps.
func (rel *relation) mend() (need Need, ok bool) {
	if rel.kind != "r" {
		return need, false
	}
	need.Reason, need.SQL = rel.refusal()
	switch {
	case rel.persistence == "u":
		rel.persistence = "p"
	case rel.hasSubclass: // most likely it has children
		return need, false
	case rel.own != "":
		rel.own = ""
	case rel.identity != "f" && !rel.identityIndex:
		rel.identityIndex = true
	case rel.badIdentity != "" && !rel.table.IdentityFull:
		rel.badIdentity = ""
	default:
		return need, false
	}
	return need, true
}
