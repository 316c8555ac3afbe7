package replica

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
)

// A partitioned table is one table to queries and to the store. Its leaves are its
// parts: they are published, copied and changed one by one. (The parent itself is not
// published: the server would then publish partitions that are attached later, and
// the UPDATEs of one without a replica identity would fail.) Another set of leaves
// makes another table, which is copied again.

// partitions reads what is below the partitioned tables, at any depth.
func (r *catalogReader) partitions(roots []uint32) error {
	if len(roots) == 0 {
		return nil
	}
	rows, err := r.tx.Query(r.ctx, `WITH RECURSIVE t(root, oid, detaching) AS (
			SELECT i.inhparent, i.inhrelid, i.inhdetachpending FROM pg_catalog.pg_inherits i WHERE i.inhparent = ANY($1::oid[])
			UNION ALL SELECT t.root, i.inhrelid, i.inhdetachpending FROM t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid)
		SELECT t.root, c.oid, n.nspname, c.relname, t.detaching
		FROM t JOIN pg_catalog.pg_class c ON c.oid = t.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY c.oid`, roots)
	if err != nil {
		return err
	}
	var root, oid uint32
	var schema, name string
	var detaching bool
	_, err = pgx.ForEachRow(rows, []any{&root, &oid, &schema, &name, &detaching}, func() error {
		rel := r.add(&relation{table: &catalog.Table{OID: oid, Schema: schema, Name: name}})
		parent := r.find(root)
		parent.partitions = append(parent.partitions, rel)
		parent.detaching = parent.detaching || detaching
		return nil
	})
	return err
}

// leaves returns the partitions that hold rows.
func (rel *relation) leaves() (leaves []*relation) {
	for _, p := range rel.partitions {
		if p.kind != "p" {
			leaves = append(leaves, p)
		}
	}
	return leaves
}

// partitionedRefusal is refusal for a partitioned table. All of its leaves must
// qualify. It leaves the table complete.
func (rel *relation) partitionedRefusal() (reason, sql string) {
	t := rel.table
	if rel.detaching {
		return "a partition is being detached", ""
	}
	t.Parts = []catalog.Part{}
	t.Pages, t.Rows = 0, 0
	leaves := rel.leaves()
	for i, leaf := range leaves {
		l := leaf.table
		if reason, sql := leaf.refusal(); reason != "" {
			return fmt.Sprintf("partition %s: %s", l.QualifiedName(), reason), sql
		}
		identity, full, reason := rel.leafColumns(leaf)
		if reason != "" {
			return fmt.Sprintf("partition %s: %s", l.QualifiedName(), reason), ""
		}
		if i == 0 {
			t.Identity, t.IdentityFull = identity, full
		} else if full != t.IdentityFull || !slices.Equal(identity, t.Identity) {
			return "its partitions have different replica identities", ""
		}
		t.Parts = append(t.Parts, catalog.Part{OID: l.OID, Schema: l.Schema, Name: l.Name, Fingerprint: l.Fingerprint, Columns: columnOrder(l)})
		t.Pages, t.Rows = t.Pages+l.Pages, t.Rows+l.Rows
	}
	if len(leaves) == 0 {
		t.Identity, t.IdentityFull = nil, true
	}
	if len(copied(t)) == 0 {
		return "no column that can be copied", ""
	}
	return "", ""
}

// leafColumns compares a leaf's columns, by name, with the table's, gives up columns
// that cannot be copied from the leaf, and returns the leaf's replica identity in
// positions of the table.
func (rel *relation) leafColumns(leaf *relation) (identity []int, full bool, reason string) {
	t := rel.table
	for c := range t.Columns {
		column := &t.Columns[c]
		at := leaf.table.Column(column.Name)
		if at < 0 || leaf.table.Columns[at].TypeOID != column.TypeOID {
			return nil, false, "it has no column " + column.Name + " of the same type"
		}
		if of := leaf.table.Columns[at]; column.Unsupported == "" && of.Unsupported != "" {
			column.Unsupported = of.Unsupported + " in partition " + leaf.table.QualifiedName()
		}
		if slices.Contains(leaf.table.Identity, at) {
			identity = append(identity, c)
		}
	}
	return identity, leaf.table.IdentityFull, ""
}

// choose puts the tables that qualify into the catalog and returns the others that
// match. Partitions of a table that qualifies are no tables of their own.
func (r *catalogReader) choose() (refused []refusedTable) {
	inside := map[*relation]bool{}
	var bad []refusedTable
	qualified := map[*relation]bool{}
	for _, rel := range r.rels {
		if !rel.chosen {
			continue
		}
		reason, sql := rel.refusal()
		if reason != "" {
			bad = append(bad, refusedTable{Table: rel.table, Reason: reason, SQL: sql})
			continue
		}
		qualified[rel] = true
		for _, p := range rel.partitions {
			inside[p] = true
		}
	}
	for _, rel := range r.rels {
		if qualified[rel] && !inside[rel] {
			r.cat.Tables = append(r.cat.Tables, rel.table)
		}
	}
	for _, f := range bad {
		if !inside[r.find(f.Table.OID)] {
			refused = append(refused, f)
		}
	}
	slices.SortFunc(refused, func(a, b refusedTable) int { return cmp.Compare(a.Table.OID, b.Table.OID) })
	return refused
}
