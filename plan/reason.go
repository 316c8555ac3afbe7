package plan

import "errors"

// Reason says why a statement or one execution of it is forwarded. Reasons are
// few and stable: they are a metric's label and a column of pgaccel.queries.
type Reason string

// The reasons.
const (
	ReasonMode          Reason = "mode off"             // pgaccel.mode = off
	ReasonNotSelect     Reason = "not a plain SELECT"   // DML, utility, cursor, several statements
	ReasonNoTable       Reason = "no accelerated table" // names a table that is not chosen, or none
	ReasonShape         Reason = "unsupported shape"    // subquery, window, set operation, join on no unique key, ...
	ReasonFunction      Reason = "unsupported function"
	ReasonType          Reason = "unsupported type"
	ReasonCollation     Reason = "collation"      // order of text that is not known here
	ReasonShadowed      Reason = "shadowed name"  // a user's function or operator could be meant
	ReasonTimeZone      Reason = "time zone"      // the session's zone is not UTC
	ReasonVolatile      Reason = "volatile"       // random(), nextval(), ...
	ReasonSmall         Reason = "cheap anyway"   // Postgres answers as fast
	ReasonSlower        Reason = "slower here"    // executions have shown that Postgres answers faster
	ReasonTrial         Reason = "trial"          // Postgres answers one execution, which is timed
	ReasonNotReady      Reason = "not copied yet" // first copy under way, or it failed and is tried again
	ReasonRefused       Reason = "table refused"  // it cannot be copied: memory, replica identity, ...
	ReasonChanged       Reason = "table changed"  // changed since its copy
	ReasonDDL           Reason = "definition changed"
	ReasonResolved      Reason = "other table meant" // search_path, or a temporary table: the name means another table in the session
	ReasonPrivilege     Reason = "privilege"
	ReasonRLS           Reason = "row-level security"
	ReasonIsolation     Reason = "isolation level"
	ReasonOwnWrites     Reason = "own writes"
	ReasonSnapshot      Reason = "snapshot" // the store does not hold the transaction's snapshot
	ReasonStale         Reason = "stream behind"
	ReasonServer        Reason = "other server" // than the one that the stream comes from
	ReasonStandby       Reason = "standby"
	ReasonSettings      Reason = "session settings"
	ReasonDescription   Reason = "result description" // Postgres describes other columns than the plan's
	ReasonParameter     Reason = "parameter"          // a value or format that cannot be read
	ReasonEvaluation    Reason = "evaluation"         // overflow, division by zero: Postgres decides
	ReasonTies          Reason = "ties at limit"      // LIMIT cuts between equal keys
	ReasonTimeout       Reason = "statement timeout"
	ReasonMemory        Reason = "memory"          // more than one query may have
	ReasonQueryMemory   Reason = "query memory"    // what all queries together may have is in use
	ReasonTemp          Reason = "temporary files" // they would exceed their limit, or cannot be written
	ReasonShadow        Reason = "shadow check"    // Postgres answers, to be compared with
	ReasonMismatch      Reason = "shadow mismatch" // a shadow check of the shape found a difference
	ReasonInternalError Reason = "internal error"
)

// Forward is the error of a query that must be answered by Postgres. It is not a
// failure: nothing has been sent to the client yet.
type Forward struct {
	Reason Reason
	Detail string // for people; never with values of the user's data
	// Position is the character, from 1, of the statement's text without constants at
	// which what is refused begins; 0 where that is not known.
	Position int
	// Also is what else of the statement is refused, in the order in which it was met, where it
	// was looked for: what depends on something refused is not. These have no Also.
	Also []Forward
}

// Error implements error.
func (f *Forward) Error() string {
	if f.Detail == "" {
		return "forwarded: " + string(f.Reason)
	}
	return "forwarded: " + string(f.Reason) + ": " + f.Detail
}

// ReasonOf returns the reason that err carries, ReasonInternalError for any other
// error.
func ReasonOf(err error) Reason {
	var f *Forward
	if errors.As(err, &f) {
		return f.Reason
	}
	return ReasonInternalError
}
