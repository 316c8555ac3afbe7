// Package pushdown plans SQL. It makes a tree of operators (plan.Rel) of a syntax.Text, and of
// the tree the plan.Star by which it is answered from columns, or says why it must be
// forwarded. It does no I/O: all it knows of the server is the catalog.
//
// The stages, one file each:
//
//	from.go      FROM -> tables, the names that expressions see, join conditions
//	block.go     SELECTs within SELECTs: put in place, or blocks of the tree
//	with.go      WITH
//	view.go      views, read as the SELECTs that they are
//	setop.go     UNION, INTERSECT, EXCEPT, VALUES
//	subselect.go sub-selects in expressions -> joins
//	window.go    window functions
//	frame.go     their frames
//	cut.go       DISTINCT ON
//	series.go    functions in FROM
//	setfunction.go  functions that return rows for an array or a document
//	expr.go      syntax -> typed plan.Expr, as PostgreSQL's parse_expr.c does
//	operator.go  which operator is meant, and the casts it implies
//	rowcompare.go  comparisons of rows
//	compare.go   comparisons, and constants brought to the column's own scale
//	coerce.go    implicit and explicit casts, common types
//	loose.go     text of nondeterministic collations
//	literal.go   constants from text
//	function.go  functions
//	calls.go     the built-in functions that the server may call, for the rights to them
//	aggregate.go aggregates
//	sets.go      grouping sets, and GROUPING()
//	grouping.go  expressions over rows -> expressions over groups
//	clause.go    GROUP BY, ORDER BY, LIMIT, the names of outputs
//	select.go    all of it, in PostgreSQL's order: a tree
//	star.go      tree -> star
//	relation.go  what a star does not have itself -> relations, other stars
//	semijoin.go  sub-selects -> joins that ask for existence, scalars
//	unnest.go    what reads rows around it -> once for all of them
//	sink.go      conditions that are computed below what they stand over
//	setrelation.go, fulljoin.go, windowrelation.go, cut.go  relations of these
//	common.go    what all arms of an OR have in common
//	tableoperator.go  operators and casts that are functions of package sqlfn
//	arraycolumn.go, arrayfunction.go  what is asked of arrays
//	interval.go  constant intervals
//	intervalfields.go  intervals of any fields
//	spelling.go  values that are equal and print apart
//	citext.go    citext
//	serverconst.go, servercalls.go  expressions over no rows that are left to the server
//	name.go      text beside current_user and the like
//	zone.go      time zones that calls depend on; dates and timestamps beside moments
//	transfer.go  conditions that go to what a join equates them with
//	join.go      the driving table, and lookups by unique key for all others but one
//	setorder.go  orders of grouping sets that PostgreSQL gets wrong
//	small.go     what is not worth taking
//	refusal.go   what is refused: all of it, as far as that can be said
//
// The rule for everything here: where the meaning is not certain, forward. A
// statement that PostgreSQL would reject may be planned all the same, because
// PostgreSQL describes every statement first and its error is what the client
// sees; a statement must never be planned with another meaning.
package pushdown
