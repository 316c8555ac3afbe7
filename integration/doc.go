// Package integration runs the same SQL directly and through pgaccel, over the
// wire only, with the clients that people use, and compares what they print byte
// for byte. It asserts from /metrics who answered: forwarding everything must not
// pass. It has no code of its own outside of tests.
//
// corpus/ has what tools and people ask, in their clients' forms and settings (TestCorpus).
//
// The client programs are in clients/; install-clients.sh installs what they need.
// regress/ runs PostgreSQL's own test suites, pgx's and node-postgres' through
// pgaccel (make regress).
package integration
