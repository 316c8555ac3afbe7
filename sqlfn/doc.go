// Package sqlfn is the table of the built-in functions that pgaccel computes, a file a
// family. An entry says all that is to be known of one overload: its signature in pg_proc,
// what becomes of nulls, how it is computed by rows and, where that pays, by a kernel over
// the 64-bit words of columns. Binding, execution, the slow reference, the generator of
// random queries and docs/sql.md read the table; none of them names a function.
//
// Which overload a call means is PostgreSQL's own answer: pushdown/builtins.txt has, for
// every combination of argument types, the functions that its parser chose.
//
// Functions that return rows are apart (SetFunction): they are operators of a plan, not expressions.
//
// What is an operator by another name (abs, mod) is not here: operators are plan's.
package sqlfn
