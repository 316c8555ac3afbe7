package catalog

// ServerStartSQL is an SQL expression, a text that names one run of a server: the moment,
// in microseconds, at which it was started, written alike under all settings of a session.
// A restart, another server behind the same address, or another copy of its files has
// another one. All sessions that run on one server see the same.
const ServerStartSQL = "pg_catalog.encode(pg_catalog.timestamptz_send(pg_catalog.pg_postmaster_start_time()), 'hex')"
