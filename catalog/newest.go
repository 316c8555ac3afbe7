package catalog

// NewestSQL is an SQL expression, a text, that changes when a function, an operator or
// a cast is created: the largest OIDs, which an index has at hand. (The counter of
// OIDs is the cluster's and goes up until it wraps around after four thousand
// millions; a rename or a move to another schema does not show.)
const NewestSQL = `pg_catalog.concat_ws(' ', (SELECT pg_catalog.max(f.oid) FROM pg_catalog.pg_proc f),
 (SELECT pg_catalog.max(o.oid) FROM pg_catalog.pg_operator o), (SELECT pg_catalog.max(k.oid) FROM pg_catalog.pg_cast k))`
