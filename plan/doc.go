// Package plan holds the words between deciding and doing: the query that
// pushdown makes of SQL, that olap executes, that engine passes between them,
// and the reasons for which a statement is forwarded instead.
//
// A Query is logical: it says what Postgres would compute, with every name
// resolved, every implicit cast explicit and every operand of a comparison or
// arithmetic operator of the same kind (all of smallint, integer and bigint count
// as one) and, for Numeric, the same scale in comparisons, additions and
// subtractions. It is immutable once built and shared by concurrent executions.
package plan
