// Package bench measures pgaccel against the Postgres server behind it, in one run and on
// one machine: it starts a private server and a pgaccel of its own, alternates between
// the two (and DuckDB, where it is given its program) as a client sees them, compares the
// answers byte for byte, makes sure who gave them, and prints medians and ratios.
//
// A workload is tables with a way to make them and queries over them, whose parameters may
// change from round to round. SSB, TPCH, TPCDS and BI are workloads; compare runs one: load
// Postgres, copy the tables into pgaccel, load DuckDB from the same text, ask, judge.
// DuckDB's answers are compared by value, because it writes numbers otherwise.
package bench
