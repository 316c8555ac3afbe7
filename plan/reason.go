package plan

import "errors"

// Reason says why a statement or one execution of it is forwarded. Reasons are
// few and stable: they are a metric's label and a column of pgaccel.queries.
type Reason string

// The reasons. Their comments are what docs/forwarding.md says of them (go test ./engine -update).
const (
	ReasonMode          Reason = "mode off"             // pgaccel.mode is off in the session
	ReasonNotSelect     Reason = "not a plain SELECT"   // DML, a utility statement, several statements in one message, or one amid others of a pipeline
	ReasonNoTable       Reason = "no accelerated table" // it names a table that --accelerate does not choose, or none
	ReasonShape         Reason = "unsupported shape"    // a form of SELECT, or of a part of it, that is not executed here
	ReasonFunction      Reason = "unsupported function" // a function, an aggregate or an operator that is not computed here
	ReasonType          Reason = "unsupported type"     // a type that is not held here, or not under this operator
	ReasonCollation     Reason = "collation"            // the order or the case of text is not known here
	ReasonShadowed      Reason = "shadowed name"        // a function, an operator or a cast that somebody has made could be meant
	ReasonTimeZone      Reason = "time zone"            // the session's zone is not UTC where it must be, or its rules are not known
	ReasonVolatile      Reason = "volatile"             // random(), nextval() and their likes
	ReasonSmall         Reason = "cheap anyway"         // PostgreSQL answers as fast, by an index
	ReasonSlower        Reason = "slower here"          // executions have shown that PostgreSQL answers faster
	ReasonTrial         Reason = "trial"                // PostgreSQL answers one execution, which is timed
	ReasonNotReady      Reason = "not copied yet"       // the first copy is under way, or has failed and is tried again
	ReasonRefused       Reason = "table refused"        // the table cannot be copied: memory, replica identity, a column's type
	ReasonChanged       Reason = "table changed"        // the stream brought a change that the copy does not hold
	ReasonDDL           Reason = "definition changed"   // the table is not defined any more as its copy is
	ReasonResolved      Reason = "other table meant"    // search_path, or a temporary table: the name means another table in the session
	ReasonPrivilege     Reason = "privilege"            // the role may not read a table or a column, or not call a function
	ReasonRLS           Reason = "row-level security"   // a policy of a table holds for the role
	ReasonIsolation     Reason = "isolation level"      // SERIALIZABLE
	ReasonOwnWrites     Reason = "own writes"           // the transaction has written
	ReasonSnapshot      Reason = "snapshot"             // the versions that the transaction's snapshot sees are not held any more
	ReasonStale         Reason = "stream behind"        // the replication stream did not come in time (--wait-limit)
	ReasonServer        Reason = "other server"         // the session is on another server, or in another database, than the one that the stream comes from
	ReasonStandby       Reason = "standby"              // the session is on a standby
	ReasonSettings      Reason = "session settings"     // a setting of the session under which the answer is not known here
	ReasonDescription   Reason = "result description"   // PostgreSQL describes other columns than the plan's, or refuses the statement
	ReasonParameter     Reason = "parameter"            // a parameter's type, value or format that cannot be read here
	ReasonEvaluation    Reason = "evaluation"           // a row decides: an overflow, a division by zero, a value that is not read here
	ReasonTies          Reason = "ties at limit"        // LIMIT cuts between rows that ORDER BY leaves equal
	ReasonTimeout       Reason = "statement timeout"    // statement_timeout would have ended it here
	ReasonMemory        Reason = "memory"               // it needs more than one query may have
	ReasonQueryMemory   Reason = "query memory"         // what all queries together may have is in use
	ReasonTemp          Reason = "temporary files"      // they would exceed --temp-limit, or cannot be written
	ReasonShadow        Reason = "shadow check"         // PostgreSQL answers, to be compared with (--shadow)
	ReasonMismatch      Reason = "shadow mismatch"      // a shadow check of the shape has found a difference
	ReasonInternalError Reason = "internal error"       // a fault of pgaccel's: its log has more
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
