package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// refusedTable is a relation that matches the patterns but cannot be copied. Table has
// the OID, schema and name, and columns where the relation is a table.
type refusedTable struct {
	Table  *catalog.Table
	Reason string // a clause, such as "no replica identity"
	SQL    string // what would mend it; empty where nothing simple does
}

// errTorn says that a table was rewritten while the catalog was read: a fingerprint has
// the file as of now and all else as of the snapshot. Two changes of a definition that
// are one, taken apart so, would each look harmless.
var errTorn = errors.New("a table was rewritten, or a schema renamed, while the catalog was read")

// readCatalog reads the catalog. known is what was read last, nil for nothing.
func readCatalog(ctx context.Context, conn *pgx.Conn, p patterns, known *catalog.Catalog) (cat *catalog.Catalog, refused []refusedTable, err error) {
	for {
		cat, refused, err = readCatalogOnce(ctx, conn, p, known)
		if !errors.Is(err, errTorn) {
			return cat, refused, err
		}
	}
}

func readCatalogOnce(ctx context.Context, conn *pgx.Conn, p patterns, known *catalog.Catalog) (cat *catalog.Catalog, refused []refusedTable, err error) {
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		r := catalogReader{ctx: ctx, tx: tx, cat: &catalog.Catalog{Shadowed: map[string]bool{}}}
		if err := r.read(p); err != nil {
			return err
		}
		refused = r.choose()
		cat = r.cat
		if err := r.views(known); err != nil {
			return err
		}
		refused = r.notViews(refused)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the catalog: %w", err)
	}
	return cat, refused, nil
}

// read reads all but what follows from which tables qualify.
func (r *catalogReader) read(p patterns) error {
	for _, step := range []func() error{r.server, func() error { return r.relations(p) }, r.enums, r.readDomains, r.columns, r.indexes, r.identities, r.shadowed, r.mode} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// notViews leaves out what is read as a view.
func (r *catalogReader) notViews(refused []refusedTable) []refusedTable {
	return slices.DeleteFunc(refused, func(f refusedTable) bool {
		return slices.ContainsFunc(r.cat.Views, func(v *catalog.Table) bool { return v.OID == f.Table.OID })
	})
}

// catalogReader reads one snapshot of the catalog, step by step.
type catalogReader struct {
	ctx     context.Context
	tx      pgx.Tx
	cat     *catalog.Catalog
	domains map[uint32]domain
	db      dbCollation
	role    string      // who reads
	rels    []*relation // those that match the patterns, and the partitions of those; by OID
	oids    []uint32
	// supposed takes columns that the role may not read for such as it may.
	supposed bool
}

// relation is a pg_class row.
type relation struct {
	table         *catalog.Table
	chosen        bool // it matches the patterns
	columns       []attribute
	kind          string // relkind
	persistence   string // relpersistence
	hasSubclass   bool
	own           string // SQL after which the role may publish the table, as owners may; empty where it may
	identity      string // relreplident
	identityIndex bool   // there is a usable index for it
	deferrablePK  bool
	badIdentity   string // why the table must not be published with the identity that it has
	unstreamable  string // why the stream could not bring the table's rows
	unusable      bool   // rows cannot be found by the identity: a changed table is copied again

	// Of a partitioned table, all that is below it, at any depth, by OID.
	partitions []*relation
	detaching  bool // DETACH CONCURRENTLY of one of them is under way
}

func (r *catalogReader) server() error {
	var segment, block, locale string
	// datlocprovider is new in 15; the locale's column has another name in each of
	// 15, 17 (and the provider's locale is in datcollate before).
	err := r.tx.QueryRow(r.ctx, `SELECT pg_catalog.current_setting('server_version_num')::int,
		(SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
		pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size'))::text, pg_catalog.current_setting('wal_block_size'),
		pg_catalog.current_setting('server_encoding') = 'UTF8',
		coalesce(pg_catalog.to_jsonb(d)->>'datlocprovider', 'c'),
		CASE WHEN coalesce(pg_catalog.to_jsonb(d)->>'datlocprovider', 'c') = 'c' THEN d.datcollate
		     ELSE coalesce(pg_catalog.to_jsonb(d)->>'datlocale', pg_catalog.to_jsonb(d)->>'daticulocale', '') END,
		coalesce(pg_catalog.to_jsonb(d)->>'datlocale', pg_catalog.to_jsonb(d)->>'daticulocale', d.datctype),
		current_user::pg_catalog.text FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()`).Scan(
		&r.cat.ServerVersion, &r.cat.SystemID, &segment, &block, &r.db.utf8, &r.db.provider, &locale, &r.db.ctype, &r.role)
	if err != nil {
		return err
	}
	r.db.locale, r.cat.OtherEncoding = locale, !r.db.utf8
	r.cat.ASCIICase = r.db.casesASCII()
	r.cat.Collation = r.db.collation()
	if _, err = fmt.Sscan(segment, &r.cat.WALSegmentSize); err != nil {
		return err
	}
	_, err = fmt.Sscan(block, &r.cat.WALBlockSize)
	return err
}

// matchable are the relations that patterns are about.
const matchable = ` FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
	AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'`

// ownSQL is the field own. Of a superuser nobody should be a member for that.
const ownSQL = `coalesce((SELECT CASE WHEN pg_catalog.pg_has_role(o.oid, 'USAGE') THEN ''
		WHEN o.rolsuper THEN pg_catalog.format('ALTER TABLE %s.%I OWNER TO %I', c.relnamespace::pg_catalog.regnamespace, c.relname, current_user)
		ELSE pg_catalog.format('GRANT %I TO %I', o.rolname, current_user) END FROM pg_catalog.pg_roles o WHERE o.oid = c.relowner), '')`

// relations reads the tables that match, and their partitions: their names first,
// because the rest of what is asked costs some 50 us a table.
func (r *catalogReader) relations(p patterns) error {
	rows, err := r.tx.Query(r.ctx, `SELECT c.oid, n.nspname, c.relname, c.relkind::text`+matchable+` ORDER BY c.oid`)
	if err != nil {
		return err
	}
	var oid uint32
	var schema, name, kind string
	var partitioned []uint32
	_, err = pgx.ForEachRow(rows, []any{&oid, &schema, &name, &kind}, func() error {
		if p.match(schema, name) {
			r.add(&relation{table: &catalog.Table{OID: oid, Schema: schema, Name: name}, chosen: true})
			if kind == "p" {
				partitioned = append(partitioned, oid)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.partitions(partitioned); err != nil {
		return err
	}
	for _, rel := range r.rels {
		r.oids = append(r.oids, rel.table.OID)
	}
	rows, err = r.tx.Query(r.ctx, `SELECT c.oid, c.relkind::text, c.relpersistence::text, c.relhassubclass,
		c.relpages::bigint, greatest(c.reltuples, 0)::bigint, `+ownSQL+`, c.relreplident::text,
		`+identityIndexSQL+`,
		EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND NOT i.indimmediate),
		coalesce(`+catalog.FingerprintSQL("c.oid")+`, ''),
		c.relkind = 'r' AND c.relfilenode IS DISTINCT FROM pg_catalog.pg_relation_filenode(c.oid)
		FROM pg_catalog.pg_class c WHERE c.oid = ANY($1::oid[])`, r.oids)
	if err != nil {
		return err
	}
	var rel relation
	var t catalog.Table
	var torn bool
	_, err = pgx.ForEachRow(rows, []any{&oid, &rel.kind, &rel.persistence, &rel.hasSubclass, &t.Pages, &t.Rows,
		&rel.own, &rel.identity, &rel.identityIndex, &rel.deferrablePK, (*string)(&t.Fingerprint), &torn}, func() error {
		if torn {
			return errTorn
		}
		to := r.find(oid)
		to.table.Pages, to.table.Rows, to.table.Fingerprint = t.Pages, t.Rows, t.Fingerprint
		to.kind, to.persistence, to.hasSubclass, to.own = rel.kind, rel.persistence, rel.hasSubclass, rel.own
		to.identity, to.identityIndex, to.deferrablePK = rel.identity, rel.identityIndex, rel.deferrablePK
		return nil
	})
	return err
}

// add puts a relation in its place; one that is there already is returned in its
// stead.
func (r *catalogReader) add(rel *relation) *relation {
	i, there := slices.BinarySearchFunc(r.rels, rel.table.OID, func(x *relation, o uint32) int { return cmp.Compare(x.table.OID, o) })
	if there {
		return r.rels[i]
	}
	r.rels = slices.Insert(r.rels, i, rel)
	return rel
}

func (r *catalogReader) find(oid uint32) *relation {
	i, _ := slices.BinarySearchFunc(r.rels, oid, func(rel *relation, o uint32) int { return cmp.Compare(rel.table.OID, o) })
	return r.rels[i]
}

// enums reads the enum types of the columns.
func (r *catalogReader) enums() error {
	rows, err := r.tx.Query(r.ctx, `SELECT y.oid, n.nspname, y.typname, coalesce(e.oid, 0), coalesce(e.xmin, '0'), coalesce(e.enumlabel::text, '')
		FROM pg_catalog.pg_type y JOIN pg_catalog.pg_namespace n ON n.oid = y.typnamespace LEFT JOIN pg_catalog.pg_enum e ON e.enumtypid = y.oid
		WHERE y.typtype = 'e' AND y.oid IN (SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0)
		ORDER BY y.oid, e.enumsortorder`, r.oids)
	if err != nil {
		return err
	}
	var of catalog.Enum
	var l catalog.Label
	_, err = pgx.ForEachRow(rows, []any{&of.OID, &of.Schema, &of.Name, &l.OID, &l.XMin, &l.Text}, func() error {
		last := len(r.cat.Enums) - 1
		if last < 0 || r.cat.Enums[last].OID != of.OID {
			e := of
			r.cat.Enums = append(r.cat.Enums, &e)
			last++
		}
		if l.OID != 0 { // a type may have no labels
			r.cat.Enums[last].Labels = append(r.cat.Enums[last].Labels, l)
		}
		return nil
	})
	return err
}

func (r *catalogReader) columns() error {
	rows, err := r.tx.Query(r.ctx, `SELECT a.attrelid, a.attnum, a.attname, a.atttypid, pg_catalog.format_type(a.atttypid, a.atttypmod), coalesce((SELECT `+sqltype.OpaqueExtensionSQL+` FROM pg_catalog.pg_type y WHERE y.oid = a.atttypid), ''), a.atttypmod,
		a.attnotnull, a.attgenerated <> '', a.attgenerated = 'v', coalesce(pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT'), false), a.attcollation,
		coalesce(l.collprovider::text, ''),
		coalesce(pg_catalog.to_jsonb(l)->>'collcollate', pg_catalog.to_jsonb(l)->>'colllocale', pg_catalog.to_jsonb(l)->>'colliculocale', ''),
		coalesce(pg_catalog.to_jsonb(l)->>'collctype', pg_catalog.to_jsonb(l)->>'colllocale', pg_catalog.to_jsonb(l)->>'colliculocale', ''),
		coalesce(l.collisdeterministic, true), EXISTS (SELECT FROM pg_catalog.pg_type y WHERE y.oid = a.atttypid AND y.typsend <> 0), `+sendFailsSQL+`
		FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
		WHERE a.attrelid = ANY($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`, r.oids)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a attribute
		var oid uint32
		var sendFails bool
		if err := rows.Scan(&oid, &a.num, &a.name, &a.typeOID, &a.typeName, &a.extension, &a.typmod, &a.notNull, &a.generated, &a.virtual, &a.readable,
			&a.collation, &a.collProvider, &a.collName, &a.collCtype, &a.deterministic, &a.sendable, &sendFails); err != nil {
			return err
		}
		a.enum, a.base = r.cat.Enum(a.typeOID), a.typeOID
		d, isDomain := r.domains[a.typeOID]
		if isDomain {
			a.base, a.typmod = d.base, d.typmod
		}
		readable := a.readable
		a.readable = readable || r.supposed
		typ, unsupported := typeOf(&a, &r.db)
		a.supposed = !readable && unsupported == ""
		rel := r.find(oid)
		rel.columns = append(rel.columns, a)
		if sendFails && !a.generated {
			rel.unstreamable = "column " + a.name + " of type " + a.typeName + " would end the stream: a type within it has no binary form"
		}
		t := rel.table
		t.Columns = append(t.Columns, catalog.Column{Name: a.name, AttNum: a.num, TypeOID: a.typeOID, Type: typ, NotNull: a.notNull, Domain: isDomain, Enum: a.enum, Unsupported: unsupported})
	}
	return rows.Err()
}

// indexes reads the indexes over plain columns. The index's own column list ends
// with INCLUDEd columns, which are no part of the key.
func (r *catalogReader) indexes() error {
	rows, err := r.tx.Query(r.ctx, `SELECT i.indrelid, x.relname, (i.indkey::int2[])[0:i.indnkeyatts - 1],
		i.indisunique AND i.indimmediate, coalesce((pg_catalog.to_jsonb(i)->>'indnullsnotdistinct')::bool, false)
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
		WHERE i.indrelid = ANY($1::oid[]) AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
		ORDER BY i.indrelid, x.relname`, r.oids)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var oid uint32
		var name string
		var key []int16
		var unique, nullsEqual bool
		if err := rows.Scan(&oid, &name, &key, &unique, &nullsEqual); err != nil {
			return err
		}
		t := r.find(oid).table
		ix := catalog.Index{Name: name, Unique: unique}
		for _, num := range key {
			c := slices.IndexFunc(t.Columns, func(c catalog.Column) bool { return c.AttNum == num })
			if c < 0 {
				ix.Columns = nil // a system column
				break
			}
			ix.Columns = append(ix.Columns, c)
			ix.Unique = ix.Unique && (nullsEqual || t.Columns[c].NotNull)
		}
		if ix.Columns != nil {
			t.Indexes = append(t.Indexes, ix)
		}
	}
	return rows.Err()
}

// shadowed reads the names of functions and operators that somebody has added.
func (r *catalogReader) shadowed() error {
	if err := r.tx.QueryRow(r.ctx, "SELECT "+catalog.OperatorsSQL).Scan(&r.cat.Operators); err != nil {
		return err
	}
	rows, err := r.tx.Query(r.ctx, catalog.ShadowedSQL)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		r.cat.Shadowed[name] = true
	}
	return rows.Err()
}

// mode reads whether some session begins with a pgaccel.mode of the server's.
func (r *catalogReader) mode() error {
	return r.tx.QueryRow(r.ctx, `SELECT COALESCE(pg_catalog.current_setting('pgaccel.mode', true), '') <> ''
		OR EXISTS (SELECT FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) c(t)
			WHERE pg_catalog.lower(c.t) LIKE 'pgaccel.mode=%')`).Scan(&r.cat.ModeSet)
}

// Reasons for which nothing can be done.
const (
	refusedView         = "view over no table that is copied"
	refusedMaterialized = "materialized view"
	refusedForeign      = "foreign table"
)

// refusal returns why the relation cannot be copied, and what would mend that.
func (rel *relation) refusal() (reason, sql string) {
	name := quoteTable(rel.table)
	switch {
	case rel.kind == "p":
		return rel.partitionedRefusal()
	case rel.kind == "v":
		return refusedView, ""
	case rel.kind == "m":
		return refusedMaterialized, ""
	case rel.kind == "f":
		return refusedForeign, ""
	case rel.kind != "r":
		return "not a table", ""
	case rel.persistence == "u":
		return "unlogged table: its changes are not in the stream", "ALTER TABLE " + name + " SET LOGGED"
	case rel.hasSubclass:
		// Reading it reads its children, too; the flag outlives the last child until
		// the next ANALYZE.
		return "it has, or had, inheritance children", "ANALYZE " + name
	case rel.own != "":
		return "not owned by this role, or by one that it is a member of, which is needed to publish it", rel.own
	case rel.identity != "f" && !rel.identityIndex:
		return rel.noIdentity(name)
	case rel.badIdentity != "" && rel.table.IdentityFull:
		return rel.badIdentity, ""
	case rel.badIdentity != "":
		return rel.badIdentity, "ALTER TABLE " + name + " REPLICA IDENTITY FULL"
	case rel.unstreamable != "":
		return rel.unstreamable, ""
	case len(rel.table.Columns) == 0:
		return "no columns", ""
	case !slices.ContainsFunc(rel.table.Columns, func(c catalog.Column) bool { return c.Unsupported == "" }):
		return "no column that can be copied: " + rel.table.Columns[0].Name + " is " + rel.table.Columns[0].Unsupported, ""
	}
	return "", ""
}

// copied returns the positions of the columns that are copied.
func copied(t *catalog.Table) []int {
	var cols []int
	for i := range t.Columns {
		if isCopied(&t.Columns[i]) {
			cols = append(cols, i)
		}
	}
	return cols
}

func isCopied(c *catalog.Column) bool { return c.Unsupported == "" && c.Type.Kind != vector.Invalid }

func quoteTable(t *catalog.Table) string {
	return catalog.QuoteIdentifier(t.Schema) + "." + catalog.QuoteIdentifier(t.Name)
}
