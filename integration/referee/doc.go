// Package referee asks random questions twice: of PostgreSQL, and of a pgaccel in
// front of it. Whatever a client can see of the two answers must be equal: the
// description of the columns, each value's bytes, the order of the rows where ORDER
// BY decides it, the command tag, errors and notices. Only sums of floats, whose last
// digits depend in PostgreSQL on the order of rows, may differ by a billionth.
//
//	schema.go   random tables: types, edge values, keys, distributions
//	values.go   the values themselves
//	node.go     expressions as trees that can be written and cut down
//	expr.go     random expressions of the types that are accelerated
//	number.go   those whose result is a number
//	query.go    a query as a tree, and how it is written
//	clone.go    copies of queries
//	aggregate.go random aggregate calls
//	window.go   random window functions
//	sets.go     random grouping sets
//	generate.go random queries
//	tree.go     statements of several blocks: derived tables, WITH, set operations
//	nested.go   sub-selects in expressions
//	block.go    queries within queries, and how they are walked
//	forms.go    which forms of blocks were asked, and how many were accelerated
//	outside.go  hand-written questions, many of which are left to PostgreSQL
//	literals.go constants that are read in ways of their own, parameters of other types
//	served.go   constants that the server computes
//	limits.go   what is computed at the limits of types, where an expression may stand
//	collation.go the collations that a run may be under
//	signature.go what the server has over the types that are accelerated
//	expression.go random expressions of these, over a table of hard values
//	expressionrun.go a run of them
//	change.go   random INSERT, UPDATE, DELETE, TRUNCATE and ALTER TABLE
//	ask.go      one question to one session, and the comparison of two answers
//	run.go      servers, sessions in parallel
//	report.go   what a run found, and what pgaccel logged as errors meanwhile
//	shrink.go   a difference made small
//	script.go   a difference as a file of SQL, kept in testdata
//
// Each session of a run has a schema of its own, so that the changes of one do not
// disturb what another compares, while all go through one server and one stream.
// Every choice comes from the seed that the run prints.
package referee
