package engine

import "pgaccel/catalog"

// The gate is one SELECT that runs in the client's own session and transaction and
// returns everything on which it depends whether an answer may be given, and which.
// It must not be able to fail, because an error would end the client's transaction:
// only functions that return null for what does not exist are used, and
// to_regclass is guarded because it raises an error where a named schema may not be
// used.
//
// Functions on the syscache (pg_relation_filenode, has_*_privilege, to_regclass,
// row_security_active) answer as of now even inside an old REPEATABLE READ snapshot,
// as Postgres' own name resolution does.

// gateSQL is the gate: the SELECT that the proxy runs on the client's own upstream
// connection, in the client's transaction, just before Execute. As long as the
// session's role has the rights that it needs it cannot fail; it has to be prepared,
// has the parameters $1..$8 of type text, returns one row for each table and view of the
// statement, and takes no locks that matter.
//
// Planning it costs ten times what running it does, so that a session prepares it
// once under a name of its own and only binds it afterwards. A statement of the
// client's may deallocate it, be it in a function; package proxy bears that (gate.go
// there says how).
//
// A session that looks at pg_prepared_statements would see it: a statement that
// names that view (Decider.Mentions is true for it) is preceded by its Close.
//
// It is one statement for all queries, so that a session needs to prepare it only
// once: the tables are rows of its parameters. Names are qualified throughout,
// because the session's search_path is the client's.
//
// The arrays come through subqueries, which hide their lengths from the planner: it
// would take a plan made for one row to be so much cheaper than the generic one that
// it planned the gate anew each time, which costs more than running it.
//
// The snapshot of a statement is taken before its functions run, so that the
// position read here covers every commit that the snapshot sees.
var gateSQL = gateTableSQL{resolved: `CASE WHEN t.ref IS NULL THEN t.oid ELSE ` + resolvedSQL("t.ref", "t.schema", "t.schema IS NULL") + ` END`,
	allowed: `CASE WHEN t.role OPERATOR(pg_catalog.=) 0 THEN ` + allowedSQL("", "t.oid", "t.attnums") + ` ELSE ` + allowedSQL("t.role, ", "t.oid", "t.attnums") + ` END`,
	secured: `CASE WHEN t.role OPERATOR(pg_catalog.=) 0 THEN pg_catalog.row_security_active(t.oid) ELSE
	 (SELECT c.relrowsecurity FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) t.oid) END`,
	oid: "t.oid", attnums: "t.attnums", fingerprint: catalog.FingerprintSQL("t.oid"), known: knownSQL("$8")}.gate() + `
FROM ROWS FROM (pg_catalog.unnest((SELECT $1::pg_catalog.text[])), pg_catalog.unnest((SELECT $2::pg_catalog.text[])),
 pg_catalog.unnest((SELECT $3::pg_catalog.oid[])), pg_catalog.unnest((SELECT $4::pg_catalog.text[])), pg_catalog.unnest((SELECT $7::pg_catalog.oid[]))) WITH ORDINALITY AS t(ref, schema, oid, attnums, role, i)
ORDER BY t.i`

// gatePlainSQL is the gate for one table that is not partitioned, the parameters being
// scalars: what is not there need not be set up by the executor each time, which saves a
// quarter. $2 is empty where the statement has not written a schema.
var gatePlainSQL = gateTableSQL{resolved: resolvedSQL("$1", "$2", "$2::pg_catalog.text OPERATOR(pg_catalog.=) ''"),
	allowed: allowedSQL("", "$3::pg_catalog.oid", "$4::pg_catalog.text"), secured: `pg_catalog.row_security_active($3::pg_catalog.oid)`,
	oid: "$3::pg_catalog.oid", attnums: "$4::pg_catalog.text", fingerprint: catalog.PlainFingerprintSQL("$3::pg_catalog.oid"), known: knownSQL("$7")}.gate()

// knownSQL says whether the snapshot is one that a text is of, at which what is read of the catalogs is known; see known.
func knownSQL(text string) string {
	return `(SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text OPERATOR(pg_catalog.=) ` + text + `::pg_catalog.text
  AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.<>) 'repeatable read')`
}

// gateTableSQL are the expressions for what the gate is told of a table, and for what it says.
type gateTableSQL struct{ resolved, allowed, secured, oid, attnums, fingerprint, known string }

// resolvedSQL is the OID of what a name means in the session. to_regclass must not be asked for
// what is in a schema that the role may not use.
func resolvedSQL(ref, schema, schemaless string) string {
	return `CASE WHEN ` + schemaless + ` OR pg_catalog.has_schema_privilege(
   (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname OPERATOR(pg_catalog.=) ` + schema + `::pg_catalog.name), 'USAGE')
  THEN pg_catalog.to_regclass(` + ref + `)::pg_catalog.oid END`
}

// allowedSQL says whether a role may read columns of a table, any where none are given. role is
// empty for the session's.
func allowedSQL(role, oid, attnums string) string {
	return `CASE WHEN ` + attnums + ` OPERATOR(pg_catalog.=) '{}' THEN pg_catalog.has_any_column_privilege(` + role + oid + `, 'SELECT')
  ELSE (SELECT pg_catalog.bool_and(COALESCE(pg_catalog.has_column_privilege(` + role + oid + `, a.n, 'SELECT'), false))
   FROM pg_catalog.unnest(` + attnums + `::pg_catalog.int2[]) a(n)) END`
}

func (t gateTableSQL) gate() string {
	return `SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text,
 CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL ELSE pg_catalog.pg_current_wal_insert_lsn()::pg_catalog.text END,
 ` + catalog.DatabaseSQL + `,
 pg_catalog.pg_current_xact_id_if_assigned() IS NULL,
 pg_catalog.current_setting('transaction_isolation'),
 pg_catalog.current_setting('TimeZone'),
 pg_catalog.current_setting('extra_float_digits'),
 pg_catalog.current_setting('bytea_output'),
 pg_catalog.current_setting('lc_monetary'),
 pg_catalog.concat_ws(' ', pg_catalog.current_setting('standard_conforming_strings'), pg_catalog.current_setting('transform_null_equals'),
  pg_catalog.current_setting('array_nulls')),
 pg_catalog.current_setting('DateStyle'),
 pg_catalog.current_setting('IntervalStyle'),
 pg_catalog.current_setting('client_encoding'),
 pg_catalog.concat_ws(' ', pg_catalog.current_setting('statement_timeout'), pg_catalog.current_setting('transaction_timeout', true)),
 pg_catalog.current_schemas(true)::pg_catalog.text,
 pg_catalog.current_setting('pgaccel.mode', true),
 pg_catalog.current_setting('pgaccel.max_staleness', true),
 pg_catalog.current_setting('pgaccel.float_sum', true),
 pg_catalog.current_setting('pgaccel.ties', true),
 pg_catalog.current_setting('pgaccel.device', true),
 pg_catalog.current_setting('pgaccel.index', true),
 pg_catalog.current_setting('pgaccel.reuse', true),
 CASE WHEN ` + t.known + ` THEN NULL ELSE ` + catalog.OperatorsSQL + ` END,
 ` + catalog.ShadowedNowSQL("(SELECT $5::pg_catalog.name[])::pg_catalog.name[]", t.known) + `,
 NOT EXISTS (SELECT FROM pg_catalog.unnest((SELECT $6::pg_catalog.oid[])) f(o) WHERE pg_catalog.has_function_privilege(f.o, 'EXECUTE') IS FALSE),
 ` + t.resolved + `,
 ` + t.allowed + `,
 ` + t.secured + `,
 CASE WHEN ` + t.known + ` THEN NULL ELSE ` + t.fingerprint + ` END,
 CASE WHEN pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'repeatable read'
  THEN (SELECT pg_catalog.string_agg((pg_catalog.pg_identify_object(1259::pg_catalog.oid, ` + t.oid + `, a.n)).identity, ',' ORDER BY a.i)
   FROM ROWS FROM (pg_catalog.unnest(` + t.attnums + `::pg_catalog.int2[])) WITH ORDINALITY a(n, i)) END`
}
