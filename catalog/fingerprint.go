package catalog

// FingerprintSQL returns a scalar SQL expression for the Fingerprint of the table
// whose OID is given by the expression oidExpr; it is null where there is no such
// table. Its parts, separated by colons:
//
//	pg_class.oid, pg_class.xmin, pg_relation_filenode(oid),
//	a 64-bit hash over (attnum, xmin) of pg_attribute, dropped columns included
//
// VACUUM, ANALYZE, CREATE INDEX, REINDEX and COMMENT leave it as it is; every
// rewrite, TRUNCATE, change of a column, GRANT and change of row-level security
// changes it. CREATE POLICY does not. It needs no privilege, and names everything
// with its schema, so that no search_path changes its meaning.
func FingerprintSQL(oidExpr string) string {
	return "(SELECT pg_catalog.concat_ws(':', fc.oid, fc.xmin, pg_catalog.pg_relation_filenode(fc.oid), " +
		"(SELECT pg_catalog.hashtextextended(pg_catalog.string_agg(pg_catalog.concat_ws(':', fa.attnum, fa.xmin), ',' ORDER BY fa.attnum), 0) " +
		"FROM pg_catalog.pg_attribute fa WHERE fa.attrelid OPERATOR(pg_catalog.=) fc.oid AND fa.attnum OPERATOR(pg_catalog.>) 0)) " +
		"FROM pg_catalog.pg_class fc WHERE fc.oid OPERATOR(pg_catalog.=) " + oidExpr + ")"
}
