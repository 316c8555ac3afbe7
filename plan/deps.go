package plan

import (
	"pgaccel/catalog"
	"pgaccel/vector"
)

// Deps is what a statement's answer depends on beside the rows: what the gate asks the
// client's session for, in one question for all of the statement.
type Deps struct {
	// Tables are all references to tables of the statement, those of its views included, in
	// order of appearance, and Views those to views.
	Tables, Views []Table
	Params        []vector.Type // types of $1, $2, ...
	// ServerConsts are what the server is to compute, by ServerConst.Index.
	ServerConsts []ServerConst
	// ServerParams are the OIDs of the types that $1, $2, ... have there, 0 of those that do not occur;
	// nil where none does. One that occurs nowhere else has no kind in Params.
	ServerParams []uint32
	// Functions are the names of functions that the statement calls without a schema,
	// sorted: it is these that somebody's functions could take the place of.
	Functions []string
	// Calls are the OIDs of the built-in functions, sorted, that Postgres may call for the
	// statement, those of operators, casts and aggregates included: EXECUTE on each is
	// checked. What it calls for an index or a sort is not: it does not check that either.
	Calls []uint32
	// NeedsUTC is true where the statement means what is planned only in UTC: the gate lets it pass only
	// where that is the session's time zone.
	NeedsUTC bool
	// SessionZone is true where calls depend on the session's time zone, and Zones are those that the
	// statement names: Bind needs their rules.
	SessionZone bool
	Zones       []string
	// Cased are the OIDs of the collations under which the statement changes the case of letters: Bind can do with their cases.
	Cased []uint32
	// ReadsZone is true where the statement has literals that the server reads in the session's time zone of
	// when it parses the statement: that must still be the same.
	ReadsZone bool
	// NamesUTC is true where the statement names UTC as a time zone: from PostgreSQL 18 on that is first
	// an abbreviation of the session's own zone, which a zone such as UTC+5 has with another meaning.
	NamesUTC bool
	// NeedsISO is true where a date or timestamp is made text: the gate lets it pass only
	// where the session's DateStyle is ISO.
	NeedsISO bool
	// NeedsIntervalStyle is true where an interval is made text: the gate lets it pass only where the
	// session's IntervalStyle is postgres.
	NeedsIntervalStyle bool
	// NeedsMonetary is true where text is read as money: the gate lets it pass only where lc_monetary has
	// amounts written as C does.
	NeedsMonetary bool
}

// Table is one reference to a table or view. The same one may occur more than once.
type Table struct {
	Meta *catalog.Table
	// Ref is the name as the statement wrote it, quoted so that to_regclass in the
	// client's session resolves it as the statement would be: the gate compares. Empty in
	// a view, whose definition names tables by OID.
	Ref string
	// Role is whose rights count, by OID: the owner's of the view that the reference is in, 0
	// for the session's.
	Role uint32
	// Columns lists the positions of all columns that the statement mentions,
	// whether they are needed for the answer or not: SELECT on each is checked.
	// Empty where none is (count(*)): then SELECT on any column suffices.
	Columns []int
}
