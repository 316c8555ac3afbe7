// Package advise says what pgaccel would do for a database before anything is set up: which tables to
// take, what memory their columns need, and which statements would be accelerated. It asks as a role that may
// only read, in sessions that are read only, and makes no copy, slot or publication.
//
// While pgaccel runs with --accelerate auto, a Chooser (chooser.go) chooses by the same rules, by the statements that it is told of.
//
//	replica.Survey --catalog, samples--> memory.go (bytes of columns) --+
//	pg_stat_user_tables ---------------> tables.go (how they are read) -+--> choose.go --> text.go, JSON
//	pg_stat_statements --> constants.go --> statements.go (routes) -----+
package advise
