package replica

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
)

// identityIndexSQL says whether the pg_class row c has an index that serves as its
// replica identity.
const identityIndexSQL = `EXISTS (SELECT FROM pg_catalog.pg_index i WHERE ` + identityIndexCondition + `)`

// identityIndexCondition says whether the pg_index row i is that index.
const identityIndexCondition = `i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
			AND (c.relreplident = 'd' AND i.indisprimary OR c.relreplident = 'i' AND i.indisreplident)`

// identities reads which columns are the replica identity of each relation.
func (r *catalogReader) identities() error {
	rows, err := r.tx.Query(r.ctx, `SELECT c.oid, (SELECT (i.indkey::int2[])[0:i.indnkeyatts - 1] FROM pg_catalog.pg_index i WHERE `+identityIndexCondition+`)
		FROM pg_catalog.pg_class c WHERE c.oid = ANY($1::oid[])`, r.oids)
	if err != nil {
		return err
	}
	var oid uint32
	var key []int16
	_, err = pgx.ForEachRow(rows, []any{&oid, &key}, func() error {
		rel := r.find(oid)
		if rel.identity == "f" {
			rel.table.IdentityFull = true
			for i := range rel.columns {
				if a := &rel.columns[i]; a.virtual { // cannot be published, and must be
					rel.badIdentity = "its replica identity, the whole row, has the virtual generated column " + a.name + ": its UPDATEs would fail"
				}
			}
			return nil
		}
		for i := range rel.columns {
			if slices.Contains(key, rel.columns[i].num) {
				rel.identityColumn(i)
			}
		}
		if rel.unusable {
			rel.table.Identity = nil
		}
		return nil
	})
	return err
}

// identityColumn adds a column to the identity.
func (rel *relation) identityColumn(i int) {
	a := &rel.columns[i]
	switch {
	case a.generated:
		// Not in the stream before 18; there, the table's UPDATEs fail.
		rel.badIdentity = "its replica identity has the generated column " + a.name
	case rel.table.Columns[i].Unsupported != "" && (!a.readable || !a.sendable):
		rel.unusable = true
	}
	rel.table.Identity = append(rel.table.Identity, i)
}

// noIdentity explains a missing replica identity: publishing such a table would
// make its UPDATEs and DELETEs fail.
func (rel *relation) noIdentity(name string) (reason, sql string) {
	if rel.identity == "d" && rel.deferrablePK {
		return "no replica identity: its primary key is deferrable", "ALTER TABLE " + name + " REPLICA IDENTITY FULL"
	}
	if rel.identity == "n" {
		return "no replica identity: it is set to NOTHING", "ALTER TABLE " + name + " REPLICA IDENTITY DEFAULT"
	}
	// A unique index over NOT NULL columns is as good as a primary key.
	for _, ix := range rel.table.Indexes {
		if ix.Unique && !slices.ContainsFunc(ix.Columns, func(c int) bool { return !rel.table.Columns[c].NotNull }) {
			return "no replica identity", "ALTER TABLE " + name + " REPLICA IDENTITY USING INDEX " + catalog.QuoteIdentifier(ix.Name)
		}
	}
	return "no replica identity", "ALTER TABLE " + name + " ADD PRIMARY KEY (...); or, if there is no key, ALTER TABLE " + name + " REPLICA IDENTITY FULL"
}
