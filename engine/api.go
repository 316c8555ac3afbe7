package engine

import (
	"context"
	"time"

	"pgaccel/plan"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// Field is one column of a result as Postgres described it (RowDescription).
type Field struct {
	Name    string
	TypeOID uint32
	Typmod  int32
}

// Decider is what a session needs of an engine. *Engine implements it; tests of
// package proxy use small fakes.
type Decider interface {
	// Mentions reports whether sql could concern pgaccel at all: it contains the
	// name of an accelerated table or of the schema pgaccel. It is a cheap scan for
	// substrings; false means: relay without a further look.
	Mentions(sql []byte) bool
	// Plans reports whether Prepare would parse and plan a text so long that nobody else should wait for it.
	Plans(sql string, paramOIDs []uint32) bool
	// Prepare returns what is known of sql. paramOIDs are the parameter types that the
	// client declared, 0 or missing where it left them to the server. Never nil.
	// Statements are shared by sessions, immutable, and cached by text.
	Prepare(sql string, paramOIDs []uint32) Statement
}

// GateForm is one of the gate's forms, which take other parameters and return the same.
type GateForm uint8

// The forms.
const (
	GateFull  GateForm = iota // gateSQL, for any statement
	GatePlain                 // for one table that is not partitioned: a quarter cheaper
	GateForms                 // their number
)

// SQL returns the form's text.
func (f GateForm) SQL() string {
	if f == GatePlain {
		return gatePlainSQL
	}
	return gateSQL
}

// Statement is one SQL text.
type Statement interface {
	// Decide decides on one execution of a session, by the catalog of now. Never nil.
	Decide(Session) Decision
}

// Session is what a decision depends on of the session.
type Session struct {
	// Forces says that it has named the setting pgaccel.mode, and so may insist on what does not pay.
	Forces bool
	// Schemas is what its last gate has shown of its search_path (GateSchemas), "" before the first: which table a name
	// means where several schemas have one. The gate checks that it does.
	Schemas string
	// Executes says that an execution follows, of all rows: it may be one that shows who answers faster.
	Executes bool
}

// Decision is what one execution of a statement follows, from its route through its gate
// to its answer: all of them are of one plan, whatever changes meanwhile. Immutable.
type Decision interface {
	// Route says what to do with it.
	Route() Route
	// View is how to run it, for RouteView; nil otherwise.
	View() *View
	// Split is its parts, for RouteSplit; nil otherwise.
	Split() *Split
	// Copy is, for RouteCandidate, what the statement is where it is no SELECT but COPY ... TO STDOUT:
	// all else is that of the SELECT of its rows. nil otherwise.
	Copy() *Copy
	// Explain is, for RouteCandidate, what the statement is where it is an EXPLAIN, which all else is of; nil
	// otherwise. An error of Execute may be a *Notice then, for the client where the server answers.
	Explain() *Explain
	// Finish is, for RouteCandidate, what the server runs over the result, whose result is the statement's; nil
	// where the result is that itself.
	Finish() *Finish
	// Finished counts an execution whose rest the server has run, which Execute does not; took is from when the
	// statement came until its end.
	Finished(took time.Duration, rows int)
	// Unchanged is nil if a later gate lets the statement pass, too, and its snapshot sees of the tables what an execution has seen. Else it
	// is an error as Execute's is, and counted.
	Unchanged(ctx context.Context, gate Gate, seen *Seen) error
	// Cursor is, for RouteCursor, how its SELECT, whose all else is, is declared; nil otherwise.
	Cursor() *Cursor
	// Gate says, for RouteCandidate and RouteCursor, which form of the gate is the statement's, and the
	// values, in text format, of its parameters $1..$7.
	Gate() GateCall
	// Constants is, for RouteCandidate, what is run behind the gate, in the same transaction; nil for
	// nothing. An error of it is one of the statement's, perhaps: ReasonEvaluation.
	Constants() *Constants
	// ReadsSettings says that literals of the statement may mean what they do by settings, of which
	// those count that the session had when the server parsed it: its TimeZone and DateStyle.
	ReadsSettings() bool
	// Execute checks the gate's answer and computes the result. described are the
	// result columns that Postgres described, params the bound values in the types
	// that Postgres reported for them. On a *plan.Forward error, or any other, nothing
	// has happened and the proxy forwards. ctx ends on cancel and on disconnect: its
	// error is returned as it is.
	//
	// tx is the session's; the proxy calls its End whenever no transaction is open,
	// and its Close when the session ends.
	// What gate.Ahead has computed is taken where it is the answer.
	Execute(ctx context.Context, tx *Transaction, gate Gate, described []Field, params []vector.Datum) (*vector.Batch, error)
	// Prepared says that executions are to come, perhaps, in a while: what can be done for them is, in the background.
	Prepared()
	// Speculate offers to begin an execution while its gate is under way; nil where that
	// does not pay. ctx and tx are those of the Execute to come. values returns the bound
	// values, in the types that Postgres reported or, where it has not yet, in those planned.
	Speculate(ctx context.Context, tx *Transaction, values func(planned []uint32) ([]vector.Datum, bool)) Speculation
	// Comparable says of an execution drawn for a check whether it can be compared with
	// Postgres'. Where not, it is counted as Uncompared, and goes on as if not drawn.
	Comparable() bool
	// Shadow begins a check in place of an Execute: Postgres answers, and what is
	// computed here is compared with it. An error means that this execution would not
	// have been answered here. Either way the proxy forwards.
	Shadow(gate Gate, described []Field, params []vector.Datum) (*Check, error)
	// Forwarded counts an execution that the proxy forwarded without calling Execute:
	// for a reason that it found itself (ReasonParameter, ...), or "" for the decision's
	// own, where its route is RouteForward. It returns when that was, for Completed; zero
	// where nobody asks for it.
	Forwarded(reason plan.Reason) time.Time
	// Listed reports whether its executions are among pgaccel.queries. Those of others, such as UPDATE, are told to the
	// Watcher as if they mentioned nothing.
	Listed() bool
	// Shape returns the text of its shape, as pgaccel.queries shows it, and the reason why it is not, or not wholly, to be answered
	// here; "" each where there is none.
	Shape() (text string, why plan.Reason)
	// Completed counts how long the server took for a forwarded execution, from when it was
	// sent until it was complete.
	Completed(took time.Duration)
}

// Split is a text of several statements. Prefix + SQL is the text that was split.
type Split struct {
	Prefix string   // the statements before the last one
	Begins bool     // the first of them begins a transaction
	SQL    string   // the last one
	Last   Decision // on it: RouteCandidate
}

// Copy is a COPY ... TO STDOUT. It has no parameters.
type Copy struct {
	SQL     string       // the SELECT of its rows, which is described in its place
	Options *syntax.Copy // how they are written
}

// Cursor is a DECLARE of a cursor.
type Cursor struct {
	*syntax.Cursor
	// RowSet is what makes the result's rows again on the server, for its cursor to go on with: ORDER BY does not bring them into one order.
	// nil where it does, so that the server's own has them at the same places.
	RowSet *Finish
	// Scrolls says, with RowSet, that the server may read its own backwards, too, and tells which row of a table it is at; with
	// Decision.Finish the latter.
	Scrolls bool
}

// Gate is the server's answer to gateSQL.
type Gate struct {
	Rows [][]*string // text format; nil for null
	Sent time.Time   // a time before it was sent
	// Asked is the call that Rows answer.
	Asked GateCall
	// Constants are those that Decision.Constants has asked for.
	Constants []vector.Datum
	// Ahead is what was begun of the execution when the gate was sent; nil for nothing.
	Ahead Speculation
	// Seen is where the execution notes what it has seen of the tables; nil for nowhere.
	Seen *Seen
}

// Constants is a SELECT for what the server is to compute of a statement. Its one row has two columns
// for each constant: the OID of its type, and its value.
type Constants struct {
	SQL string
	// Params are the types that the statement's parameters must have, 0 for one that does not occur
	// in SQL; nil where none does. Unread says of which the value is of no use elsewhere.
	Params []uint32
	Unread []bool
}

// Check is one execution that is both forwarded and computed here.
type Check struct {
	// Snapshot is the gate's, as text. It is kept until Done.
	Snapshot string
	// Fixed says that the statement is sure to see Snapshot: its transaction is
	// REPEATABLE READ. Otherwise a second gate behind it has to show the same.
	Fixed bool
	// Ordered says that only one order of the rows is right.
	Ordered bool
	// Run computes the result, on any goroutine. Any error makes the check
	// inconclusive.
	Run func(ctx context.Context) (*vector.Batch, error)
	// Done takes the outcome. It must be called once.
	Done func(Comparison)
}

// Comparison is the outcome of a Check.
type Comparison struct {
	Verdict Verdict
	// Detail says what differs, or why nothing can be said; never with values.
	Detail string
	// Row is the position, from 1, of the first row of Postgres' answer (or of ours
	// where theirs is at its end) that is not in the other; 0 where that is not it.
	Row int
	// Ours and Theirs are that row's bytes as far as they are at hand.
	Ours, Theirs []byte
	// ParamOIDs are the types of the parameters.
	ParamOIDs []uint32
}

// Verdict is what a comparison came to.
type Verdict uint8

// The verdicts.
const (
	Inconclusive Verdict = iota
	Equal
	Different
	Uncompared // not begun: Postgres' own answer is one of several right ones
)

// String returns the label that the metric has for it.
func (v Verdict) String() string {
	return [...]string{"inconclusive", "equal", "different", "not compared"}[v]
}

// Route says which way an execution goes.
type Route uint8

// The routes.
const (
	// RouteForward: Postgres answers.
	RouteForward Route = iota
	// RouteCandidate: gate, then Execute; forward where either says no.
	RouteCandidate
	// RouteView: a SELECT over the virtual schema pgaccel, for Postgres to run with rows
	// from here (View).
	RouteView
	// RouteSplit: a simple Query of BEGIN, SAVEPOINT, RELEASE, SET or SHOW
	// statements followed by one candidate, as ODBC sends them.
	RouteSplit
	// RouteCursor: a statement that declares a cursor, in a simple Query perhaps behind statements as those of
	// RouteSplit and before a FETCH. Postgres runs the DECLARE; what the first FETCH gets is decided as for
	// RouteCandidate.
	RouteCursor
)
