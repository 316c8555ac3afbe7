package catalog

import "strings"

// serverStartSQL is an SQL expression, a text that names one run of a server: the moment,
// in microseconds, at which it was started, written alike under all settings of a session.
// A restart, another server behind the same address, or another copy of its files has
// another one. All sessions that run on one server see the same.
const serverStartSQL = "pg_catalog.encode(pg_catalog.timestamptz_send(pg_catalog.pg_postmaster_start_time()), 'hex')"

// DatabaseSQL is an SQL expression, a text that names one database of one run of a server. A copy that CREATE DATABASE ... TEMPLATE
// makes has the tables of its template under the same OIDs, in files of the same numbers, in the same publications: nothing else
// tells them apart. A database is not renamed while it has a session.
const DatabaseSQL = "pg_catalog.concat_ws('/', " + serverStartSQL + ", pg_catalog.hashnameextended(pg_catalog.current_database(), 0))"

// SameServer reports whether two values of DatabaseSQL are of one run of one server.
func SameServer(a, b string) bool {
	a, _, _ = strings.Cut(a, "/")
	b, _, _ = strings.Cut(b, "/")
	return a == b
}
