// Package explain writes what EXPLAIN shows of a statement that is answered from columns: the plan.Star as a
// tree of nodes, in PostgreSQL's formats and with its words wherever they mean the same.
//
//	node.go      nodes, and what is said of each
//	star.go      star -> nodes
//	relation.go  the relations and scalars that it reads -> nodes
//	expr.go      expressions, as ruleutils.c writes them
//	estimate.go  rows, widths and costs
//	text.go      FORMAT TEXT
//	group.go     nodes -> groups, which the other formats write: json.go, yaml.go, xml.go
//
// Estimates are by PostgreSQL's defaults for columns without statistics (selfuncs.h) and the rows that the
// copies have; a cost has about the scale of PostgreSQL's. Nothing is decided by them here: they are for who
// reads a plan, and for postgres_fdw with use_remote_estimate.
package explain
