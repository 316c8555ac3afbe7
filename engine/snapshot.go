package engine

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/trace"
	"pgaccel/olap"
	"pgaccel/plan"
)

// satisfied is a snapshot whose position the stream has passed, in one of its
// connections. Another gate that shows the same snapshot sees the same commits, so
// that it need not wait, wherever the log has got to.
//
// Not so in REPEATABLE READ: there Postgres shows the effect of a TRUNCATE or a rewrite
// that the snapshot does not see. Once the stream has passed the position of now, the
// store knows of these, and View refuses.
type satisfied struct {
	generation uint64
	snapshot   string
	lsn        uint64 // the position that it was satisfied at
}

// snapshot waits until the stream has passed the gate's position and then takes
// the tables as the gate's snapshot sees them. Where the session allows staleness and
// the stream is behind, they may be those of an older snapshot instead.
//
// A store whose stream has passed the position holds every commit that the snapshot
// sees, because their records come before it: the position was read after the snapshot
// was taken. What it holds beyond, View leaves out.
func (e *Engine) snapshot(ctx context.Context, q *plan.Deps, g *gateRow) (in olap.Input, f *plan.Forward) {
	return e.moment(ctx, g, func(snap colstore.Snapshot) (olap.Input, *plan.Forward) { return e.view(q, snap) })
}

// moment is snapshot with another way to take the tables.
func (e *Engine) moment(ctx context.Context, g *gateRow, view func(colstore.Snapshot) (olap.Input, *plan.Forward)) (in olap.Input, f *plan.Forward) {
	now, f := e.position(g)
	if f != nil {
		return in, f
	}
	defer func() {
		if f == nil && !e.holds(now) {
			releaseAll(in)
			in, f = olap.Input{}, forward(plan.ReasonStale, "the replication stream was connected anew")
		}
	}()
	reached := e.reached(now)
	if !reached && g.staleness > 0 && !g.repeatable() {
		if old, ok := e.store.Fresh(g.staleness); ok {
			if in, f = view(old); f == nil {
				e.waited(g, 0)
				return in, nil
			}
		}
	}
	waited := time.Duration(0)
	if !reached {
		start := time.Now()
		wait, cancel := context.WithTimeout(ctx, time.Duration(e.waitLimit.Load()))
		err := e.store.Wait(wait, e.target(g))
		cancel()
		waited = time.Since(start)
		trace.Of(ctx).Record("wait", start, start.Add(waited))
		if err != nil {
			e.waited(g, waited)
			return in, forward(plan.ReasonStale, err.Error())
		}
	}
	e.satisfy(g, now, waited)
	return view(g.snapshot)
}

// target is the gate's position as the stream counts.
func (e *Engine) target(g *gateRow) uint64 {
	cat := e.store.Catalog()
	return catalog.NormalizeLSN(g.insertLSN, cat.WALSegmentSize, cat.WALBlockSize)
}

// position says what the stream has to pass for the gate's snapshot, provided that it
// comes from the server that the session is on: snapshots and positions of one say nothing
// about another. It is read before a wait: where the stream is lost and found again in
// between, what satisfy notes is true of no connection, and what was taken of the tables
// is nothing's answer (holds).
func (e *Engine) position(g *gateRow) (*satisfied, *plan.Forward) {
	now := &satisfied{e.store.Generation(), g.text, e.target(g)}
	if g.server != e.store.Server() {
		return nil, e.otherServer(g.server)
	}
	if last := e.satisfied.Load(); !g.repeatable() && last != nil && last.generation == now.generation && last.snapshot == now.snapshot {
		now = last
	}
	return now, nil
}

// holds reports whether the stream has been in one connection since position.
func (e *Engine) holds(now *satisfied) bool { return e.store.Generation() == now.generation }

// otherServer forwards a session that is in another database than the stream comes from. Where that is one of
// another server, it is looked at where the stream should be.
func (e *Engine) otherServer(server string) *plan.Forward {
	if catalog.SameServer(server, e.store.Server()) {
		return forward(plan.ReasonServer, "the session is in another database than the one that is copied")
	}
	if e.opt.CheckServer != nil {
		e.opt.CheckServer(server)
	}
	return forward(plan.ReasonServer, "the session is on another server than the replication stream, or on one that has been restarted since")
}

// reached reports whether the stream has passed a position.
func (e *Engine) reached(now *satisfied) bool {
	return now.generation != 0 && e.store.Applied() >= now.lsn
}

// satisfy notes that the stream has passed the gate's position, after a wait.
func (e *Engine) satisfy(g *gateRow, now *satisfied, waited time.Duration) {
	e.waited(g, waited)
	if now.generation == 0 {
		return
	}
	e.satisfied.Store(now)
	if !g.repeatable() {
		// A transaction's snapshot is as old as the transaction, which nobody knows here.
		e.store.Observe(g.snapshot, now.lsn, g.sent)
	}
}

// waited tells of the wait of a gate. A check's second wait has no gate that was sent
// for it.
func (e *Engine) waited(g *gateRow, d time.Duration) {
	if e.opt.Waited != nil {
		e.opt.Waited(d)
	}
	if e.opt.Passed != nil && !g.sent.IsZero() {
		e.opt.Passed(time.Since(g.sent))
	}
}

// view takes the query's tables as snap sees them.
func (e *Engine) view(q *plan.Deps, snap colstore.Snapshot) (in olap.Input, f *plan.Forward) {
	defer func() {
		if f != nil {
			releaseAll(in)
			in = olap.Input{}
		}
	}()
	for i := range q.Tables {
		t, err := e.store.View(q.Tables[i].Meta.OID, snap)
		var st *colstore.StateError
		switch {
		case errors.As(err, &st):
			return in, e.stateReason(st.State, q.Tables[i].Meta)
		case errors.Is(err, colstore.ErrSnapshot):
			return in, forward(plan.ReasonSnapshot, "")
		case err != nil:
			return in, forward(plan.ReasonInternalError, err.Error())
		}
		in.Tables = append(in.Tables, t)
		if t.Meta.Fingerprint != q.Tables[i].Meta.Fingerprint {
			return in, forward(plan.ReasonDDL, "")
		}
		// A column that turned out to hold what cannot be held (a numeric's NaN) is given
		// up by the copy, which keeps the definition.
		for _, c := range q.Tables[i].Columns {
			if t.Meta.Columns[c].Unsupported != q.Tables[i].Meta.Columns[c].Unsupported {
				return in, forward(plan.ReasonType, t.Meta.Columns[c].Unsupported)
			}
		}
	}
	return in, nil
}

func releaseAll(in olap.Input) {
	for _, t := range in.Tables {
		t.Release()
	}
}

var durationForm = regexp.MustCompile(`^\s*\+?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(us|ms|s|min|h|d)?\s*$`)

// parseStaleness reads pgaccel.max_staleness as Postgres reads its own settings of
// time: a number with a unit, of milliseconds where there is none. Nothing is 0.
func parseStaleness(s string) (d time.Duration, ok bool) {
	if s == "" {
		return 0, true
	}
	m := durationForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	unit := map[string]time.Duration{"": time.Millisecond, "us": time.Microsecond, "ms": time.Millisecond,
		"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
	if n *= float64(unit); err != nil || n > float64(1<<62) {
		return 0, false
	}
	return time.Duration(n), true
}
