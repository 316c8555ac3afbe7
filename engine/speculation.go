package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"pgaccel/colstore"
	"pgaccel/internal/processors"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// Speculation is an execution that begins before the gate has answered, on the newest
// versions of the tables. Nothing of it is seen until the gate has let the statement pass
// and shown that these versions are what its snapshot sees.
type Speculation interface {
	// Run computes, on a goroutine of the caller's. It is called at most once; where it is
	// not, the caller calls Drop.
	Run()
	// Take checks the gate's answer as Decision.Execute does and returns the result, where
	// nothing has to be waited for. Otherwise nothing has happened, and Execute is called
	// with Gate.Ahead set.
	Take(gate Gate, described []Field, params []vector.Datum) (*vector.Batch, bool)
	// Drop ends it, unless its result was taken. Any goroutine may call it, at any time and
	// more than once.
	Drop()
}

// What became of a speculation.
const (
	speculationHit      = "hit"
	speculationChanged  = "changed"  // the gate's snapshot sees other versions, or is not known to see these
	speculationSettings = "settings" // or values, or the catalog, are not those that were supposed
	speculationRefused  = "refused"  // the gate did not let the statement pass
	speculationFailed   = "failed"   // an error, which the execution proper meets again or does not
	speculationLate     = "late"     // it had not begun
	speculationDropped  = "dropped"  // the statement ended otherwise: cancelled, an error of Postgres'
)

var speculationOutcomes = [...]string{speculationHit, speculationChanged, speculationSettings, speculationRefused,
	speculationFailed, speculationLate, speculationDropped}

// speculations is what an engine knows of all of them.
type speculations struct {
	running   atomic.Int64 // those that have not ended
	processor atomic.Int64 // executions there, be they speculations or not
	outcomes  sync.Map     // outcome -> *atomic.Int64
}

// Speculations returns how often which outcome was had.
func (e *Engine) Speculations() map[string]int64 {
	all := counts(&e.speculations.outcomes)
	for _, o := range speculationOutcomes {
		all[o] += 0 // present from the start
	}
	return all
}

// backoff is a shape's: where its tables change from query to query, most results would be
// thrown away. After n misses in a row 2^n-1 executions are not tried. The zero value has
// seen none.
type backoff struct {
	mu     sync.Mutex
	misses int
	skip   int
}

// backoffMax bounds n.
const backoffMax = 8

// allows is asked once an execution.
func (b *backoff) allows() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.skip > 0 {
		b.skip--
		return false
	}
	return true
}

func (b *backoff) hit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.misses, b.skip = 0, 0
}

func (b *backoff) missed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.misses = min(b.misses+1, backoffMax)
	b.skip = 1<<b.misses - 1
}

// The stages of a speculation.
const (
	speculationWaiting int32 = iota // for Run
	speculationRunning              // or at its end
	speculationGone                 // Run will do nothing
)

type speculation struct {
	decision *decision
	params   []vector.Datum
	bound    *plan.Star
	settings supposition
	caller   uint64
	ctx      context.Context
	cancel   context.CancelFunc

	inputs  *resultInputs // nil where the result is not to be kept
	cached  *cachedResult // the result is that of an earlier execution; else nil
	stage   atomic.Int32
	settled atomic.Bool                        // its outcome is counted
	dropped atomic.Bool                        // and its result is nobody's
	tables  atomic.Pointer[[]colstore.Version] // that it reads, or has read
	done    chan struct{}
	result  computed // once done is closed
}

// Speculate implements Decision. It begins where the session's last gate has let a
// statement of this shape pass, where speculation has not been in vain of late, and where
// the work of one that is dropped takes nothing from others: at most as many at a time as
// there are processors, and on the processor only where few executions run. What is wasted
// is bounded by the gate's time: a result that cannot be used is not computed further.
func (d *decision) Speculate(ctx context.Context, tx *Transaction, values func(planned []uint32) ([]vector.Datum, bool)) Speculation {
	e := d.statement.engine
	if d.forward != nil || d.finish != nil || d.explain != nil || d.constants != nil { // which come with the gate
		return nil
	}
	settings, caller, ok := tx.expects(d.shape)
	if !ok {
		return nil
	}
	var params []vector.Datum
	if len(d.deps.Params) > 0 {
		planned := make([]uint32, len(d.deps.Params))
		for i, t := range d.deps.Params {
			planned[i] = sqltype.OIDOf(t)
		}
		if params, ok = values(planned); !ok {
			return nil
		}
	}
	inputs := d.resultInputs(params, nil, settings.timeZone, settings.reuse)
	if k := e.cached(inputs, colstore.Everything); k != nil {
		return d.computed(params, settings, k)
	}
	if !d.shape.ahead.allows() {
		return nil
	}
	processors := int64(processors.Count())
	if r, _ := e.offer(settings.device, &d.shape.choice); r == nil && e.speculations.processor.Load() >= max(1, processors/4) {
		return nil
	}
	zones, f := e.zonesOf(ended, d.deps, d.inSessionZone(params), settings.timeZone)
	if f != nil {
		return nil
	}
	bound, f := d.bind(params, nil, plan.Rules{Zones: zones, Cases: e.casesOf(d.deps)})
	if f != nil {
		return nil
	}
	if e.speculations.running.Add(1) > processors {
		e.speculations.running.Add(-1)
		return nil
	}
	a := &speculation{decision: d, params: params, bound: bound, settings: settings, caller: caller, inputs: inputs, done: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// computed returns a speculation that has ended: its result is an earlier execution's.
func (d *decision) computed(params []vector.Datum, settings supposition, k *cachedResult) Speculation {
	a := &speculation{decision: d, params: params, settings: settings, cached: k, cancel: func() {}, done: make(chan struct{}), result: computed{batch: k.batch()}}
	a.stage.Store(speculationGone)
	a.tables.Store(&k.versions)
	close(a.done)
	return a
}

func (a *speculation) engine() *Engine { return a.decision.statement.engine }

// Run implements Speculation.
func (a *speculation) Run() {
	if !a.stage.CompareAndSwap(speculationWaiting, speculationRunning) {
		return
	}
	e := a.engine()
	defer e.speculations.running.Add(-1)
	defer a.cancel()
	defer func() {
		close(a.done)
		if a.dropped.Load() {
			a.result.batch.Release()
		}
	}()
	defer recovered(&a.result.batch, &a.result.err)
	in, f := e.view(a.decision.deps, colstore.Everything)
	if f != nil {
		a.result.err = f
		return
	}
	defer releaseAll(in)
	versions := versionsOf(in)
	a.tables.Store(&versions)
	a.result = e.compute(a.ctx, a.decision, a.settings.device, a.settings.index, a.caller, a.bound, a.inputs, in)
}

// Drop implements Speculation.
func (a *speculation) Drop() { a.settle(speculationDropped) }

// settle ends it and counts what became of it, once.
func (a *speculation) settle(outcome string) {
	if !a.settled.CompareAndSwap(false, true) {
		return
	}
	if a.stage.CompareAndSwap(speculationWaiting, speculationGone) {
		a.engine().speculations.running.Add(-1)
	}
	a.cancel()
	if outcome != speculationHit {
		// Run looks at dropped after it has closed done: one of both releases.
		a.dropped.Store(true)
		select {
		case <-a.done:
			a.result.batch.Release()
		default:
		}
	}
	if a.cached != nil {
		return // nothing was done in vain
	}
	bump(&a.engine().speculations.outcomes, outcome)
	switch outcome {
	case speculationHit:
		a.decision.shape.ahead.hit()
	case speculationChanged, speculationFailed, speculationSettings:
		a.decision.shape.ahead.missed()
	}
}

// supposed reports whether the execution that the gate let pass is the one that was begun.
func (a *speculation) supposed(d *decision, g *gateRow, params []vector.Datum) bool {
	return d == a.decision && g.device == a.settings.device && g.index == a.settings.index && g.reuse == a.settings.reuse && slices.Equal(params, a.params) && (!d.inSessionZone(params) || g.timeZone == a.settings.timeZone)
}

// sees reports whether what it reads is what the snapshot sees of the tables, whose
// position the stream has passed. It computes the answer then.
func (a *speculation) sees(snap colstore.Snapshot) bool {
	tables := a.tables.Load()
	return tables != nil && a.engine().unchanged(*tables, snap)
}

// Take implements Speculation. It is called on a loop that others wait for: where there is
// more to be done than to look, Execute is to do it.
func (a *speculation) Take(gate Gate, described []Field, params []vector.Datum) (b *vector.Batch, ok bool) {
	var err error // a panic is Execute's to tell
	defer func() { ok = ok && err == nil }()
	defer recovered(&b, &err)
	select {
	case <-a.done:
	default:
		return nil, false
	}
	d, e := a.decision, a.engine()
	if a.settled.Load() || a.result.err != nil {
		return nil, false
	}
	g, _, err := d.admit(ended, gate, described, params)
	if err != nil || !g.takes(a.result.batch) || !d.cursor.holds(a.result.batch) || g.repeatable() || g.badStaleness || g.timeout == timeoutUnknown || !a.supposed(d, g, params) {
		return nil, false
	}
	now, f := e.position(g)
	if f != nil || !e.reached(now) || !a.sees(g.snapshot) || !e.holds(now) {
		return nil, false
	}
	e.satisfy(g, now, 0)
	return d.answered(a.adopt(), params), true
}

// adopt takes the result, which there is.
func (a *speculation) adopt() answered {
	a.settle(speculationHit)
	e := a.engine()
	if a.cached != nil {
		e.results.reused.Add(1)
		return answered{batch: a.result.batch, device: a.cached.device, reused: true}
	}
	return answered{batch: a.result.batch, device: e.account(a.decision, &a.result), took: a.result.took}
}

// wait waits for the result. It reports false where there is none; the error is the
// context's, and then the caller settles it.
func (a *speculation) wait(ctx context.Context) (ok bool, err error) {
	select {
	case <-a.done:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if a.result.err != nil || a.settled.Load() {
		a.settle(speculationFailed)
		return false, nil
	}
	return true, nil
}

// missed settles one whose tables are not what the gate's snapshot sees.
func (a *speculation) missed() {
	outcome := speculationLate
	if a.tables.Load() != nil {
		outcome = speculationChanged
	}
	select {
	case <-a.done:
		if a.result.err != nil {
			outcome = speculationFailed
		}
	default:
	}
	a.settle(outcome)
}

// ahead returns the execution's speculation, nil where there is none.
func (g *Gate) ahead() *speculation {
	a, _ := g.Ahead.(*speculation)
	return a
}
