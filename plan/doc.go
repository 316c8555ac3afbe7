// Package plan holds the words between deciding and doing: the tree of operators (Rel) that
// pushdown makes of SQL, the Star that olap executes, what a statement's answer depends on
// (Deps), for which engine's gate asks, and the reasons for which it is forwarded instead.
//
// Both are logical: they say what Postgres would compute, with every name
// resolved, every implicit cast explicit and every operand of a comparison or
// arithmetic operator of the same kind (all of smallint, integer and bigint count
// as one) and, for Numeric, the same scale in comparisons, additions and
// subtractions. They are immutable once built and shared by concurrent executions.
package plan
