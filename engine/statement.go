package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/vector"
)

// statement is one SQL text with the newest decision on it. Sessions hold it for
// as long as a prepared statement lives, so that it decides anew when the catalog
// has changed.
type statement struct {
	engine    *Engine
	sql       string
	paramOIDs []uint32
	decided   atomic.Pointer[decision]

	fixed *decision  // for what needs no text; nil otherwise
	like  *statement // a statement of the same text but for constants, which is refused

	prefix, lastSQL string     // RouteSplit
	last            *statement // likewise; nil otherwise
}

// decision is what one catalog makes of a statement. Immutable.
type decision struct {
	catalog *catalog.Catalog
	query   *plan.Query
	forward *plan.Forward // nil where query can be taken
	forced  *plan.Forward // query can be taken, but pays only by force
	form    GateForm
	gate    []string
	shape   *shape
}

func (s *statement) decide(cat *catalog.Catalog) *decision {
	p := pushdown.Plan(s.sql, s.paramOIDs, cat)
	d := &decision{catalog: cat, query: p.Query, forward: p.Forward, forced: p.Small, shape: s.engine.stats.shapeOf(s.sql)}
	if d.forward == nil {
		if f := olap.Supports(d.query); f != nil {
			d.forward = f
		} else {
			d.form, d.gate = gateFor(d.query)
		}
	}
	s.decided.Store(d)
	return d
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
	cat := s.engine.store.Catalog()
	if d := s.decided.Load(); d != nil && d.catalog == cat {
		return d
	}
	return s.decide(cat)
}

// outline is the decision as far as it does not depend on constants: that on a
// statement of the same text but for them, so that this one need not be parsed.
func (s *statement) outline() *decision {
	if s.like != nil && s.decided.Load() == nil {
		if d := s.like.current(); d.refused() {
			return d
		}
	}
	return s.current()
}

// Route implements Statement.
func (s *statement) Route() Route {
	if s.last != nil {
		switch s.last.Route() {
		case RouteCandidate, RouteForced:
			return RouteSplit
		}
		return RouteForward
	}
	d := s.outline()
	switch {
	case d.forward != nil, s.unable(d) != nil:
		return RouteForward
	case d.forced != nil && !d.catalog.ModeSet:
		return RouteForced
	}
	return RouteCandidate
}

// unable returns why the statement cannot be answered now, before a gate is spent
// on it: one of its tables cannot be read, or its shape was answered wrongly.
func (s *statement) unable(d *decision) *plan.Forward {
	if s.engine.stats.wrong(d.shape) {
		return forward(plan.ReasonMismatch, "")
	}
	for i := range d.query.Tables {
		if st := s.engine.store.State(d.query.Tables[i].Meta.OID); st != colstore.StateReady {
			return stateReason(st)
		}
	}
	return nil
}

func stateReason(st colstore.State) *plan.Forward {
	if st == colstore.StateChanged {
		return forward(plan.ReasonChanged, "")
	}
	return forward(plan.ReasonNotReady, "")
}

// Rewritten implements Statement.
func (s *statement) Rewritten() string { return "" }

// Split implements Statement.
func (s *statement) Split() (prefix, lastSQL string, last Statement) {
	return s.prefix, s.lastSQL, s.last
}

// Gate implements Statement.
func (s *statement) Gate() (GateForm, []string) {
	d := s.current()
	return d.form, d.gate
}

// Forwarded implements Statement.
func (s *statement) Forwarded(reason plan.Reason) {
	if s.last != nil {
		s.last.Forwarded(reason)
		return
	}
	d := s.outline()
	if reason == "" {
		switch {
		case d.forward != nil:
			reason = d.forward.Reason
		case s.unable(d) != nil:
			reason = s.unable(d).Reason
		case d.forced != nil:
			reason = d.forced.Reason
		default:
			reason = plan.ReasonInternalError
		}
	}
	s.engine.stats.forwarded(d.shape, reason)
}

// answered is an execution that came to something.
type answered struct {
	batch  *vector.Batch
	device string        // that computed it
	took   time.Duration // without the gate
}

// Execute implements Statement.
func (s *statement) Execute(ctx context.Context, tx *Transaction, gate Gate, described []Field, params []vector.Datum) (*vector.Batch, error) {
	d := s.current()
	a, err := s.execute(ctx, tx, d, gate, described, params)
	if err == nil {
		return s.answered(d, a), nil
	}
	outcome := speculationDropped
	if ctx.Err() == nil { // else cancelled: neither answered nor forwarded
		outcome = speculationRefused
		s.failed(d, err)
	}
	if ahead := gate.ahead(); ahead != nil {
		ahead.settle(outcome)
	}
	return nil, err
}

// answered counts an execution that is answered.
func (s *statement) answered(d *decision, a answered) *vector.Batch {
	s.engine.stats.accelerated(d.shape, a.took, a.batch.Rows, a.device)
	return a.batch
}

// failed counts an execution that is forwarded because of err.
func (s *statement) failed(d *decision, err error) {
	s.engine.stats.forwarded(d.shape, plan.ReasonOf(err))
	var f *plan.Forward
	if !errors.As(err, &f) {
		s.engine.log.Error("accelerated execution failed, forwarding", "error", err)
	}
}

// recovered turns a panic into an error: a bug of ours must cost speed, never an
// answer.
func recovered(b **vector.Batch, err *error) {
	if p := recover(); p != nil {
		*b, *err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// admit reads the gate and says whether it lets the statement pass, with the values
// in place.
func (s *statement) admit(d *decision, gate Gate, described []Field, params []vector.Datum) (*gateRow, *plan.Query, error) {
	if d.forward != nil {
		return nil, nil, d.forward
	}
	g, err := parseGate(gate, len(d.query.Tables))
	if err != nil {
		return nil, nil, err
	}
	if f := s.engine.checkGate(d, g); f != nil {
		return g, nil, f
	}
	if f := checkDescription(d.query, described); f != nil {
		return g, nil, f
	}
	bound, f := bindParams(d.query, params)
	if f != nil {
		return g, nil, f
	}
	return g, bound, nil
}

func (s *statement) execute(ctx context.Context, tx *Transaction, d *decision, gate Gate, described []Field, params []vector.Datum) (a answered, err error) {
	defer recovered(&a.batch, &err)
	start := time.Now()
	g, bound, err := s.admit(d, gate, described, params)
	if g != nil && g.badStaleness {
		s.engine.badStaleness.Add(1)
	}
	if g != nil && g.repeatable() {
		// Kept whatever becomes of this statement: later ones see the same.
		tx.keep(s.engine, g.snapshot, g.text)
	}
	if err != nil {
		tx.refused(d.shape)
		return a, err
	}
	tx.passed(d.shape, g.device)
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
		if _, err := s.engine.checkPresent(ctx, d); err != nil {
			return a, err
		}
	}
	ahead := gate.ahead()
	if ahead != nil && !ahead.supposed(d, g, params) {
		ahead.settle(speculationSettings)
		ahead = nil
	}
	return s.compute(ctx, tx, d, g, bound, start, ahead)
}

// compute waits for the moment and has the answer computed, unless it was already.
func (s *statement) compute(ctx context.Context, tx *Transaction, d *decision, g *gateRow, bound *plan.Query, start time.Time, ahead *speculation) (a answered, err error) {
	e := s.engine
	var at colstore.Snapshot
	hit := false
	in, f := e.moment(ctx, g, func(snap colstore.Snapshot) (olap.Input, *plan.Forward) {
		if ahead != nil && ahead.sees(snap) {
			at, hit = snap, true
			return olap.Input{}, nil
		}
		return e.view(bound, snap)
	})
	if f != nil {
		return a, f
	}
	if hit {
		ok, err := ahead.wait(ctx)
		if ok {
			return ahead.adopt(), nil
		}
		if err != nil {
			return a, err
		}
		if in, f = e.view(bound, at); f != nil {
			return a, f
		}
	}
	defer releaseAll(in)
	if ahead != nil {
		ahead.missed()
	}
	a.batch, a.device, err = e.run(ctx, d, g, tx.caller(), bound, in)
	a.took = time.Since(start)
	return a, err
}

// rewritten is a statement over the schema pgaccel.
type rewritten struct {
	engine *Engine
	text   string
}

func (r *rewritten) Route() Route                       { return RouteRewrite }
func (r *rewritten) Rewritten() string                  { return r.text }
func (r *rewritten) Split() (string, string, Statement) { return "", "", nil }
func (r *rewritten) Gate() (GateForm, []string)         { return GateFull, nil }
func (r *rewritten) Forwarded(plan.Reason)              {}
func (r *rewritten) Speculate(context.Context, *Transaction, func([]uint32) ([]vector.Datum, bool)) Speculation {
	return nil
}
func (r *rewritten) Execute(context.Context, *Transaction, Gate, []Field, []vector.Datum) (*vector.Batch, error) {
	return nil, forward(plan.ReasonNotSelect, "")
}
func (r *rewritten) Shadow(Gate, []Field, []vector.Datum) (*Check, error) {
	return nil, forward(plan.ReasonNotSelect, "")
}
