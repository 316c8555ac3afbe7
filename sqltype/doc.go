// Package sqltype knows the types that pgaccel computes with as Postgres shows them
// outside: their text and binary forms, both ways, and what these depend on, such as
// the calendar and the names of time zones. Package vector says how a value is held
// inside. There is a file for each type or family of types, and a table of them: what other
// packages need to know of a type is in its entry, Type.
//
// Functions that parse take only forms whose meaning depends on no setting, and never
// guess: ok is false for what is wrong as well as for what only Postgres can judge.
package sqltype
