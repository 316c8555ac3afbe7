package catalog

import "strings"

// FingerprintSQL returns a scalar SQL expression for the Fingerprint of the table or view
// whose OID is given by the expression oidExpr; it is null where there is no such
// table. Its parts, separated by colons:
//
//	pg_class.oid, pg_class.xmin, pg_relation_filenode(oid) or, of a view, xmin of pg_rewrite,
//	a 64-bit hash over (attnum, xmin) of pg_attribute, dropped columns included, and, where columns
//	are of enum types, behind a slash one over (oid, xmin) of pg_enum,
//	the publications that name the table: oid/xmin/xmin of pg_publication,
//	and of a partitioned table
//	a hash over pg_inherits of all partitions, at any depth,
//	a hash over the publications of all partitions
//
// VACUUM, ANALYZE, CREATE INDEX, REINDEX and COMMENT leave it as it is; every
// rewrite, TRUNCATE, change of a column, ALTER TYPE ... ADD or RENAME VALUE of an enum that a column has, GRANT, change of row-level security and
// ALTER PUBLICATION ... ADD, SET or DROP of the table changes it, and so does ATTACH
// or DETACH of a partition. CREATE POLICY does not, and of what is done to a partition
// alone nothing: a partition's columns are its parent's, its TRUNCATE is in the stream.
//
// It needs no privilege, takes no locks but those of reading the catalog (as
// pg_partition_tree would), and names everything with its schema, so that no
// search_path changes its meaning.
func FingerprintSQL(oidExpr string) string { return fingerprintSQL(oidExpr, true) }

// PlainFingerprintSQL is FingerprintSQL for a table that is known not to be partitioned:
// of one that is, it gives what no partitioned table's Fingerprint is. It costs less.
func PlainFingerprintSQL(oidExpr string) string { return fingerprintSQL(oidExpr, false) }

// Partitioned reports whether f is a partitioned table's.
func (f Fingerprint) Partitioned() bool { return strings.Count(string(f), ":") >= fingerprintTree }

func fingerprintSQL(oidExpr string, partitioned bool) string {
	const (
		attributes = "(SELECT pg_catalog.hashtextextended(pg_catalog.string_agg(pg_catalog.concat_ws(':', fa.attnum, fa.xmin), ',' ORDER BY fa.attnum), 0) " +
			"FROM pg_catalog.pg_attribute fa WHERE fa.attrelid OPERATOR(pg_catalog.=) fc.oid AND fa.attnum OPERATOR(pg_catalog.>) 0)"
		// Types of the server's own are no enums.
		labels = "(SELECT pg_catalog.hashtextextended(pg_catalog.string_agg(pg_catalog.concat_ws(':', fe.oid, fe.xmin), ',' ORDER BY fe.oid), 0) " +
			"FROM pg_catalog.pg_attribute fa JOIN pg_catalog.pg_enum fe ON fe.enumtypid OPERATOR(pg_catalog.=) fa.atttypid " +
			"WHERE fa.attrelid OPERATOR(pg_catalog.=) fc.oid AND fa.attnum OPERATOR(pg_catalog.>) 0 AND fa.atttypid OPERATOR(pg_catalog.>=) 16384)"
		publications = "(SELECT pg_catalog.string_agg(pg_catalog.concat_ws('/', fr.oid, fr.xmin, fp.xmin), ',' ORDER BY fr.oid) " +
			"FROM pg_catalog.pg_publication_rel fr JOIN pg_catalog.pg_publication fp ON fp.oid OPERATOR(pg_catalog.=) fr.prpubid WHERE fr.prrelid OPERATOR(pg_catalog.=) fc.oid)"
		// Of a partition that DETACH CONCURRENTLY is taking away, some snapshots still see
		// the rows.
		attached = "SELECT fi.inhrelid, pg_catalog.concat_ws(' ', fi.inhrelid, fi.xmin, fi.inhdetachpending) FROM "
		// What has a file needs no more than that.
		file = "COALESCE(pg_catalog.pg_relation_filenode(fc.oid)::pg_catalog.text, CASE WHEN fc.relkind OPERATOR(pg_catalog.=) 'v' THEN " +
			"(SELECT pg_catalog.string_agg(fw.xmin::pg_catalog.text, '/' ORDER BY fw.oid) FROM pg_catalog.pg_rewrite fw WHERE fw.ev_class OPERATOR(pg_catalog.=) fc.oid) END, '0')"
		// A CASE, so that no other table pays for it.
		treeSQL = "CASE WHEN fc.relkind OPERATOR(pg_catalog.=) 'p' THEN (WITH RECURSIVE ft(oid, attached) AS (" +
			attached + "pg_catalog.pg_inherits fi WHERE fi.inhparent OPERATOR(pg_catalog.=) fc.oid UNION ALL " +
			attached + "ft, pg_catalog.pg_inherits fi WHERE fi.inhparent OPERATOR(pg_catalog.=) ft.oid) " +
			"SELECT pg_catalog.concat_ws(':', COALESCE(pg_catalog.hashtextextended(pg_catalog.string_agg(DISTINCT ft.attached, ','), 0), 0), " +
			"COALESCE(pg_catalog.hashtextextended(pg_catalog.string_agg(pg_catalog.concat_ws(' ', fr.oid, fr.xmin), ',' ORDER BY fr.oid), 0), 0)) " +
			"FROM ft LEFT JOIN pg_catalog.pg_publication_rel fr ON fr.prrelid OPERATOR(pg_catalog.=) ft.oid) END"
	)
	tree := ""
	if partitioned {
		tree = ", " + treeSQL
	}
	return "(SELECT pg_catalog.concat_ws(':', fc.oid, fc.xmin, " + file + ", pg_catalog.concat_ws('/', COALESCE(" + attributes + ", 0), " + labels + "), " +
		"COALESCE(" + publications + ", '')" + tree + ") FROM pg_catalog.pg_class fc WHERE fc.oid OPERATOR(pg_catalog.=) " + oidExpr + ")"
}

// Positions of a fingerprint's parts.
const (
	fingerprintOID = iota
	fingerprintClass
	fingerprintFile
	fingerprintAttributes
	fingerprintPublications
	fingerprintTree // of partitioned tables; one more follows
)

// SameRows reports whether the rows of a table are, apart from what the stream brings,
// the same under two definitions: nothing but its name, owner, grants, row security
// and the like has changed, or its rows went to another file as they were. It says
// nothing about the columns, which the caller compares.
//
// A rewrite that changes values (ALTER TYPE ... USING) gives the table another file
// and touches pg_attribute. VACUUM FULL, CLUSTER, SET TABLESPACE and SET ACCESS METHOD
// keep the values and pg_attribute; TRUNCATE does, too, and is in the stream. SET
// UNLOGGED, after which changes would not be in the stream, is refused by the server
// for a published table. Partitions are compared one by one, and must have been
// attached without a break: detached ones can be changed in any way.
// Labels of enums are the caller's to compare, too: SameLabels.
func SameRows(a, b *Table) bool {
	return same(a, b, func(x, y []string) bool {
		return x[fingerprintFile] == y[fingerprintFile] || x[fingerprintAttributes] == y[fingerprintAttributes]
	})
}

// SameFiles reports whether a table has neither been rewritten nor emptied, nor its
// columns touched, between two definitions.
func SameFiles(a, b *Table) bool {
	return same(a, b, func(x, y []string) bool {
		return x[fingerprintFile] == y[fingerprintFile] && x[fingerprintAttributes] == y[fingerprintAttributes]
	})
}

// same compares two definitions, and their partitions one by one, by parts of the
// fingerprints.
func same(a, b *Table, parts func(x, y []string) bool) bool {
	one := func(f, g Fingerprint) bool {
		x, y := strings.Split(string(f), ":"), strings.Split(string(g), ":")
		if len(x) != len(y) || len(x) <= fingerprintPublications || x[fingerprintOID] != y[fingerprintOID] {
			return false
		}
		return (len(x) <= fingerprintTree || x[fingerprintTree] == y[fingerprintTree]) && parts(x, y)
	}
	if len(a.Parts) != len(b.Parts) || (a.Parts == nil) != (b.Parts == nil) || !one(a.Fingerprint, b.Fingerprint) {
		return false
	}
	for i := range a.Parts {
		if !one(a.Parts[i].Fingerprint, b.Parts[i].Fingerprint) {
			return false
		}
	}
	return true
}
