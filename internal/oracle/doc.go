// Package oracle executes a tree of operators, one by one and row by row: slow, obvious,
// right. It is the reference against which package olap is tested, and shares no code with
// it. It keeps every exact numeric as a big.Int and every row as datums.
//
// Where Postgres would raise an error, or where its answer depends on the order
// in which it meets the rows, Run returns a *plan.Forward.
package oracle
