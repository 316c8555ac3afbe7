package engine

import (
	"context"
	"fmt"
	"time"

	"pgaccel/colstore"
	"pgaccel/olap"
	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// A statement that is refused may have a core that is not (pushdown.PlanFinish). Then it is decided, gated and
// computed as its core is, and the server runs the rest over the result, in the client's session and
// transaction, but under a snapshot of its own: where the rest reads tables, that has to see of the core's what the gate's does.

// Finish is what the server runs over the result of an execution, whose columns are the core's.
type Finish = pushdown.Finish

// FinishBytes bounds what the columns of a result may take as parameters, and finishRows the rows: more of
// them cost the server more than the statement itself, if they are more than a share of what was read.
const (
	FinishBytes = 64 << 20
	finishRows  = 10_000
	finishShare = 10
	tooManyFor  = 10 * time.Minute // for so long a statement of more is forwarded
)

var errTooMany = forward(plan.ReasonShape, fmt.Sprintf("what is refused would be left to PostgreSQL over more than %d rows, and 1 of %d", finishRows, finishShare))

// finishOf makes d the decision on the core of a statement that was refused; false where there is none that is supported.
func (s *statement) finishOf(text *syntax.Text, refused *plan.Forward, d *decision) bool {
	core, f := pushdown.PlanFinish(text, s.paramOIDs, d.catalog)
	if f == nil || olap.Supports(core.Star) != nil || f.Ordered && (len(core.Star.Order) == 0 || !totalOrder(core.Star)) {
		return false
	}
	d.finish, d.left, d.deps, d.query, d.forced, d.constants = f, refused, &core.Deps, core.Star, core.Small, constantsOf(&core.Deps)
	return true
}

// Finish implements Decision.
func (d *decision) Finish() *Finish { return d.finish }

// Finished implements Decision.
func (d *decision) Finished(took time.Duration, rows int) {
	d.statement.engine.stats.partial(d.shape, took, rows, d.left, d.statement.engine.trials.unit())
	d.timed(took, nil)
}

// Seen is what an execution has seen of the copied tables.
type Seen struct{ tables []colstore.Version }

var errChanged = forward(plan.ReasonStale, "others have changed a copied table between the gate and what is left to the server")

// Unchanged implements Decision. A snapshot in between, as the rest's, sees the same then.
func (d *decision) Unchanged(ctx context.Context, gate Gate, seen *Seen) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			d.failed(err)
		}
	}()
	var none *vector.Batch
	defer recovered(&none, &err)
	e := d.statement.engine
	g, err := parseGate(gate, len(d.deps.Tables)+len(d.deps.Views))
	if err != nil {
		return err
	}
	g.staleness = 0
	if f := e.checkGate(d, g); f != nil {
		return f
	}
	_, f := e.moment(ctx, g, func(snap colstore.Snapshot) (in olap.Input, f *plan.Forward) {
		if len(seen.tables) != len(d.deps.Tables) || !e.unchanged(seen.tables, snap) {
			f = errChanged
		}
		return in, f
	})
	if f == errChanged {
		d.pauseForChanges()
	}
	if f != nil {
		return f
	}
	return nil
}

// snapshotFor is how long a statement whose rest reads tables is forwarded after one under whose rest others had changed some.
const snapshotFor = time.Second

// pauseForChanges has the statement forwarded for that time.
func (d *decision) pauseForChanges() {
	d.uncertain.Store(time.Now().Add(snapshotFor - uncertainFor).UnixNano())
}

// errOthers forwards a statement whose rest must not be run twice.
var errOthers = forward(plan.ReasonNoTable, "what is not among the tables that --accelerate chooses is no plain table, has policies, types that somebody has made, no such column, or keys of types that have equal values of several forms")

// finishable says why the rest of the statement is not worth running over the result.
func (d *decision) finishable(b *vector.Batch) *plan.Forward {
	if d.finish == nil || b == nil || b.Rows <= finishRows {
		return nil
	}
	if int64(b.Rows) <= d.rowsOfTables()/finishShare {
		return nil
	}
	d.tooMany.Store(time.Now().UnixNano())
	return errTooMany
}

// rowsOfTables are those of the tables that are read.
func (d *decision) rowsOfTables() (rows int64) {
	for i := range d.deps.Tables {
		rows += d.deps.Tables[i].Meta.Rows
	}
	return rows
}
