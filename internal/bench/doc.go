// Package bench measures pgaccel against the Postgres server behind it, in one run and on
// one machine: it starts a private server and a pgaccel of its own, alternates between
// the two as a client sees them, compares the answers byte for byte, makes sure who gave
// them, and prints medians and ratios.
package bench
