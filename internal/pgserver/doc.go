// Package pgserver starts private PostgreSQL servers: for the demo, the
// benchmarks and the tests. A server lives in a directory of its own, listens on
// 127.0.0.1 and on a Unix socket in that directory, trusts local connections, and
// ends with the process that started it.
package pgserver
