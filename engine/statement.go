package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// statement is one SQL text with the newest decision on it. Sessions hold it for
// as long as a prepared statement lives, so that it decides anew when the catalog
// has changed. The text is parsed for that: its tree would take fifty times the text.
type statement struct {
	engine    *Engine
	sql       string
	paramOIDs []uint32
	decided   atomic.Pointer[decision]
	elsewhere atomic.Pointer[elsewhere] // decisions under other search_paths; nil for none

	fixed *decision  // for what needs no text; nil otherwise
	like  *statement // a statement of the same text but for constants, which is refused

	split   *Split         // RouteSplit, without Last
	copy    *Copy          // COPY ... TO STDOUT
	cursor  *syntax.Cursor // DECLARE CURSOR
	explain *explained     // EXPLAIN
	last    *statement     // of split, of the rows of copy or cursor, or what is explained; nil otherwise
}

// decision is what one catalog makes of a statement. Immutable: an execution follows
// one from its route to its answer, so that the gate, which is asked for what this plan
// depends on, is never taken for another plan's.
type decision struct {
	statement   *statement
	catalog     *catalog.Catalog
	deps        *plan.Deps
	query       *plan.Star
	forward     *plan.Forward // nil where query can be taken
	forced      *plan.Forward // query can be taken, but pays only by force
	unforced    *decision     // for sessions that never force, where forced is set
	form        GateForm
	gate        []string
	constants   *Constants
	uncertain   *atomic.Int64                // when the server had an error for constants, in nanoseconds since 1970
	finish      *Finish                      // nil but for a statement whose rest is the server's, query being that of its core
	left        *plan.Forward                // why there is finish
	tooMany     *atomic.Int64                // when finish would have had too many rows, likewise
	lateFailure *atomic.Pointer[lateFailure] // the last execution that was computed in vain
	partly      bool                         // the server completes an execution before it has all rows: a cursor is declared
	shape       *shape
	view        *View      // nil but for a statement over the schema pgaccel
	split       *Split     // nil but for one of several statements, of which it is the last one's
	copy        *Copy      // nil but for COPY, of whose rows it is
	names       []string   // of the columns of query
	cursor      *Cursor    // nil but for DECLARE, of whose SELECT it is
	explain     *explained // nil but for EXPLAIN, of whose SELECT it is
}

func (s *statement) decide(cat *catalog.Catalog, text *syntax.Text) *decision {
	d := s.decisionOn(cat, text)
	s.decided.Store(d)
	return d
}

// decisionOn decides on the text by a catalog.
func (s *statement) decisionOn(cat *catalog.Catalog, text *syntax.Text) *decision {
	p := pushdown.Plan(text, s.paramOIDs, cat)
	shape, f := s.engine.stats.shapeOf(text, p.Refused, false)
	d := &decision{statement: s, catalog: cat, deps: &p.Deps, query: p.Star, forward: f, forced: p.Small, shape: shape, names: p.Names,
		constants: constantsOf(&p.Deps), uncertain: new(atomic.Int64), tooMany: new(atomic.Int64), lateFailure: new(atomic.Pointer[lateFailure])}
	if f != nil && p.Finishable(text) && s.finishOf(text, f, d) {
		d.forward = nil
	}
	if d.forward == nil {
		if f := olap.Supports(d.query); f != nil {
			d.forward = f
		} else {
			d.form, d.gate = gateFor(d.deps)
		}
	}
	if d.forward == nil && d.forced != nil {
		d.unforced = d.forwarding(d.forced)
	}
	return d
}

// forwarding returns the decision to forward the statement because of f.
func (d *decision) forwarding(f *plan.Forward) *decision {
	return &decision{statement: d.statement, catalog: d.catalog, forward: f, shape: d.shape}
}

// refused reports whether statements like this one are not taken whatever their
// constants are (or, for a forced one, not unless the session insists).
func (d *decision) refused() bool {
	if d.forward == nil {
		return d.forced != nil
	}
	switch d.forward.Reason {
	case plan.ReasonNotSelect, plan.ReasonNoTable, plan.ReasonShape, plan.ReasonFunction, plan.ReasonVolatile:
		return true
	}
	return false
}

func (s *statement) current() *decision {
	if s.fixed != nil {
		return s.fixed
	}
	cat := s.engine.catalog()
	if d := s.decided.Load(); d != nil && d.catalog == cat {
		return d
	}
	return s.decide(cat, syntax.Parse(s.sql))
}

// Decide implements Statement.
func (s *statement) Decide(in Session) Decision {
	if s.explain != nil {
		return s.explain.decide(s, in)
	}
	if s.last != nil {
		in.Executes = in.Executes && s.cursor == nil
		last := s.last.choose(in)
		if s.cursor != nil {
			return last.declared(s.cursor)
		}
		if last.forward != nil {
			return last
		}
		whole := *last
		if s.copy != nil {
			if f := s.copy.refused(last.deps); f != nil {
				return last.forwarding(f)
			}
			whole.copy = s.copy
			return &whole
		}
		split := *s.split
		split.Last, whole.split = last, &split
		return &whole
	}
	return s.choose(in)
}

// choose is Decide for a text of one statement.
func (s *statement) choose(in Session) *decision {
	force, ambiguous := in.Forces, in.Schemas != "" && s.fixed == nil && s.engine.names.Load().ambiguous
	if !ambiguous && s.like != nil && s.decided.Load() == nil {
		// As far as the decision does not depend on constants, the text need not be parsed.
		if d := s.like.current(); d.forward != nil && d.refused() {
			return d
		} else if u := d.unlessForced(force); u != d {
			return u
		}
	}
	d := s.current()
	if ambiguous {
		d = s.under(in.Schemas, d)
	}
	if d.forward != nil {
		return d
	}
	if u := d.unlessForced(force); u != d {
		return u
	}
	if f := d.unable(); f != nil {
		return d.forwarding(f)
	}
	return d.routed(in)
}

// unlessForced returns what becomes of d in a session that may force it, or does not.
func (d *decision) unlessForced(force bool) *decision {
	if d.unforced != nil && !force && !d.catalog.ModeSet {
		return d.unforced
	}
	return d
}

// unable returns why the statement cannot be answered now, before a gate is spent
// on it: one of its tables cannot be read, or its shape was answered wrongly.
func (d *decision) unable() *plan.Forward {
	e := d.statement.engine
	if e.stats.wrong(d.shape) {
		return forward(plan.ReasonMismatch, "")
	}
	if at := d.uncertain.Load(); at != 0 && time.Since(time.Unix(0, at)) < uncertainFor {
		return errUncertain
	}
	if at := d.tooMany.Load(); at != 0 && time.Since(time.Unix(0, at)) < tooManyFor {
		return errTooMany
	}
	for i := range d.deps.Tables {
		if st := e.store.State(d.deps.Tables[i].Meta.OID); st != colstore.StateReady {
			return e.stateReason(st, d.deps.Tables[i].Meta)
		}
	}
	return nil
}

// stateReason says why a table cannot be read.
func (e *Engine) stateReason(st colstore.State, t *catalog.Table) *plan.Forward {
	detail := t.QualifiedName()
	if why := e.store.Detail(t.OID); why != "" {
		detail += ": " + why
	}
	switch st {
	case colstore.StateChanged:
		return forward(plan.ReasonChanged, detail)
	case colstore.StateRefused:
		return forward(plan.ReasonRefused, detail)
	}
	return forward(plan.ReasonNotReady, detail)
}

// Route implements Decision.
func (d *decision) Route() Route {
	switch {
	case d.view != nil:
		return RouteView
	case d.split != nil:
		return RouteSplit
	case d.cursor != nil:
		return RouteCursor
	case d.forward != nil:
		return RouteForward
	}
	return RouteCandidate
}

// View implements Decision.
func (d *decision) View() *View { return d.view }

// Copy implements Decision.
func (d *decision) Copy() *Copy { return d.copy }

// Cursor implements Decision.
func (d *decision) Cursor() *Cursor { return d.cursor }

// Split implements Decision.
func (d *decision) Split() *Split { return d.split }

// Constants implements Decision.
func (d *decision) Constants() *Constants { return d.constants }

// ReadsSettings implements Decision.
func (d *decision) ReadsSettings() bool {
	return d.deps != nil && (d.finish != nil || d.deps.NeedsUTC || d.deps.NeedsISO || d.deps.ReadsZone ||
		slices.ContainsFunc(d.deps.ServerConsts, func(c plan.ServerConst) bool { return literalOfTime.MatchString(c.SQL) }))
}

// literalOfTime finds what may be a literal of a date or a time that is read by the settings: it begins
// with digits, or with the name of a month, a day, a moment or an era (datetktbl).
var literalOfTime = regexp.MustCompile(`(?i)'\s*([-+]?\d|j\d|now|today|tomorrow|yesterday|epoch|[-+]?infinity|allballs|ad|bc|am|pm|` +
	`jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)`)

// Gate implements Decision.
func (d *decision) Gate() GateCall {
	if d.gate == nil {
		return GateCall{Form: d.form}
	}
	return d.statement.engine.call(d.form, d.gate, d.deps)
}

// Forwarded implements Decision.
func (d *decision) Forwarded(reason plan.Reason) time.Time {
	if d.explain != nil {
		return time.Time{}
	}
	f := forward(reason, proxyDetails[reason])
	if reason == plan.ReasonEvaluation && (d.finish != nil || d.constants != nil && len(d.constants.Params) == 0) {
		d.uncertain.Store(time.Now().UnixNano())
	}
	if d.finish != nil && reason == plan.ReasonStale {
		d.pauseForChanges()
	} else if d.finish != nil && reason == plan.ReasonMemory {
		d.tooMany.Store(time.Now().UnixNano())
	}
	if reason == "" {
		f.Reason = plan.ReasonInternalError
		if d.forward != nil {
			f = d.forward
		}
	}
	return d.statement.engine.stats.forwarded(d.shape, f)
}

// Listed implements Decision.
func (d *decision) Listed() bool { return d.explain != nil || d.shape != nil && d.shape.text != "" }

// Shape implements Decision.
func (d *decision) Shape() (text string, why plan.Reason) {
	switch {
	case d.forward != nil:
		why = d.forward.Reason
	case d.left != nil:
		why = d.left.Reason
	}
	if d.shape != nil {
		text = d.shape.text
	}
	return text, why
}

// Completed implements Decision.
func (d *decision) Completed(took time.Duration) {
	if d.explain == nil {
		d.served(took)
	}
}

// proxyDetails are the details of the reasons that the proxy finds.
var proxyDetails = map[plan.Reason]string{
	plan.ReasonNotSelect:   "amid other statements of a pipeline, or with parameters in a simple Query",
	plan.ReasonSettings:    "client_encoding is not UTF8, or a setting was changed in the same pipeline",
	plan.ReasonParameter:   "a parameter's value or type cannot be read here",
	plan.ReasonEvaluation:  errUncertain.Detail,
	plan.ReasonType:        "a constant that the server has computed cannot be read",
	plan.ReasonStale:       "others have committed between DECLARE and the first FETCH, or have altered a table that is not copied",
	plan.ReasonMemory:      "the rows that PostgreSQL makes for COPY, or of tables that are not copied, are more than are held back",
	plan.ReasonDescription: "the server refused the statement when it was described",
}

// answered is an execution that came to something.
type answered struct {
	batch  *vector.Batch
	device string        // that computed it
	took   time.Duration // without the gate
	reused bool          // it was computed before
}

// Execute implements Decision.
func (d *decision) Execute(ctx context.Context, tx *Transaction, gate Gate, described []Field, params []vector.Datum) (*vector.Batch, error) {
	if d.explain != nil {
		return d.explainExecution(ctx, tx, gate, described, params)
	}
	a, err := d.execute(ctx, tx, gate, described, params)
	if f := d.finishable(a.batch); err == nil && f != nil {
		a.batch.Release()
		err = f
	}
	switch {
	case err == nil && d.finish != nil:
		return a.batch, nil // counted once it is finished
	case err == nil:
		return d.answered(a, params), nil
	}
	outcome := speculationDropped
	if ctx.Err() == nil { // else cancelled: neither answered nor forwarded
		outcome = speculationRefused
		d.failed(err)
	}
	if ahead := gate.ahead(); ahead != nil {
		ahead.settle(outcome)
	}
	return nil, err
}

// answered counts an execution that is answered.
func (d *decision) answered(a answered, params []vector.Datum) *vector.Batch {
	d.statement.engine.stats.accelerated(d.shape, a.took, a.batch.Rows, a.device, d.statement.engine.trials.unit())
	if !a.reused {
		d.timed(a.took, func() (float64, error) { return d.costOf(params) })
	}
	return a.batch
}

// failed counts an execution that is forwarded because of err.
func (d *decision) failed(err error) {
	var f *plan.Forward
	if !errors.As(err, &f) {
		f = forward(plan.ReasonInternalError, "see the log")
		d.statement.engine.log.Error("accelerated execution failed, forwarding", "error", err)
	}
	d.statement.engine.stats.forwarded(d.shape, f)
}

// recovered turns a panic into an error: a bug of ours must cost speed, never an
// answer.
func recovered(b **vector.Batch, err *error) {
	if p := recover(); p != nil {
		(*b).Release()
		*b, *err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// admit reads the gate and says whether it lets the statement pass, with the values
// in place. It may wait for the rules of a time zone.
func (d *decision) admit(ctx context.Context, gate Gate, described []Field, params []vector.Datum) (*gateRow, *plan.Star, error) {
	if d.forward != nil {
		return nil, nil, d.forward
	}
	g, err := parseGate(gate, len(d.deps.Tables)+len(d.deps.Views))
	if err != nil {
		return nil, nil, err
	}
	if d.cursor != nil {
		g.staleness = 0 // the server's cursor is of one snapshot
	}
	if d.cursor != nil && d.finish == nil {
		g.ties = tiesForward // and at the same rows
	}
	if d.finish != nil && d.finish.Reads {
		g.staleness = 0
	}
	if f := d.statement.engine.checkGate(d, g); f != nil {
		return g, nil, f
	}
	d.statement.engine.learn(g, d.gate[gateFunctions])
	if d.finish == nil { // else the rest is described
		if f := checkDescription(d.query, described); f != nil {
			return g, nil, f
		}
	}
	zones, f := d.statement.engine.zonesOf(ctx, d.deps, d.inSessionZone(params), g.timeZone)
	if f != nil {
		return g, nil, f
	}
	bound, f := d.bind(params, gate.Constants, plan.Rules{Zones: zones, Cases: d.statement.engine.casesOf(d.deps)})
	if f != nil {
		return g, nil, f
	}
	return g, bound, nil
}

func (d *decision) execute(ctx context.Context, tx *Transaction, gate Gate, described []Field, params []vector.Datum) (a answered, err error) {
	defer recovered(&a.batch, &err)
	start, e := time.Now(), d.statement.engine
	g, bound, err := d.admit(ctx, gate, described, params)
	if g != nil && g.badStaleness {
		e.badStaleness.Add(1)
	}
	if g != nil && g.repeatable() && g.server == e.store.Server() {
		// Kept whatever becomes of this statement: later ones see the same.
		tx.keep(e, g.snapshot, g.text)
	}
	if err == nil {
		if f := d.failedBefore(g, params, gate.Constants); f != nil {
			err = f
		}
	}
	if err != nil {
		tx.refused(d.shape)
		return a, err
	}
	if !sqltype.IsUTC(g.timeZone) && returns(d.query, vector.TimestampTZ) {
		_, _ = e.zone(ctx, g.timeZone) // to write them with
	}
	tx.passed(d.shape, supposition{device: g.device, index: g.index, reuse: g.reuse, timeZone: g.timeZone})
	if g.timeout > 0 {
		// Postgres is the one to say that it took too long, after its own time.
		limited, cancel := context.WithTimeoutCause(ctx, g.timeout, forward(plan.ReasonTimeout, ""))
		defer cancel()
		defer func(parent context.Context) {
			if err != nil && limited.Err() != nil && parent.Err() == nil {
				a, err = answered{}, context.Cause(limited)
			}
		}(ctx)
		ctx = limited
	}
	if g.repeatable() {
		if _, err := e.checkPresent(ctx, d, g.server); err != nil {
			return a, err
		}
	}
	if x := d.explain; x != nil {
		if x.bound = bound; !x.options.Analyze {
			return d.explainable(ctx, g)
		}
	}
	ahead := gate.ahead()
	if ahead != nil && !ahead.supposed(d, g, params) {
		ahead.settle(speculationSettings)
		ahead = nil
	}
	a, err = d.compute(ctx, tx, g, bound, start, ahead, d.resultInputs(params, gate.Constants, g.timeZone, g.reuse))
	if err == nil && !d.cursor.holds(a.batch) {
		a.batch.Release()
		err = errCursorRows
	}
	if err != nil {
		d.failedLate(a.took, g, params, gate.Constants, err)
	}
	return a, err
}

// compute waits for the moment and has the answer computed, unless it was already.
func (d *decision) compute(ctx context.Context, tx *Transaction, g *gateRow, bound *plan.Star, start time.Time, ahead *speculation, inputs *resultInputs) (a answered, err error) {
	e := d.statement.engine
	hit := false
	var cached *cachedResult
	in, f := e.moment(ctx, g, func(snap colstore.Snapshot) (olap.Input, *plan.Forward) {
		if ahead != nil && ahead.sees(snap) {
			hit = true
			return olap.Input{}, nil
		}
		if cached = e.cached(inputs, snap); cached != nil {
			return olap.Input{}, nil
		}
		return e.view(d.deps, snap)
	})
	if f != nil {
		return a, f
	}
	if cached != nil {
		if ahead != nil {
			ahead.missed()
		}
		if g.seen != nil {
			g.seen.tables = cached.versions
		}
		if a = (answered{cached.batch(), cached.device, time.Since(start), true}); !g.takes(a.batch) {
			return a, errTies
		}
		e.results.reused.Add(1)
		return a, nil
	}
	if hit {
		ok, err := ahead.wait(ctx)
		if ok && !g.takes(ahead.result.batch) {
			ahead.settle(speculationSettings)
			a.took = ahead.result.took
			return a, errTies
		}
		if ok {
			return ahead.adopt(), nil
		}
		if err != nil {
			return a, err
		}
		if in, f = e.snapshot(ctx, d.deps, g); f != nil {
			return a, f
		}
	}
	defer releaseAll(in)
	if g.seen != nil {
		g.seen.tables = versionsOf(in)
	}
	if ahead != nil {
		ahead.missed()
	}
	began := time.Now()
	if a.batch, a.device, err = e.run(ctx, d, g, tx.caller(), bound, inputs, in); err != nil {
		e.learnCases(d.deps)
		start = began // it is worth remembering by what was computed
	}
	a.took = time.Since(start)
	return a, err
}
