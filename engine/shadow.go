package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Comparable implements Decision. The last digits of Postgres' sum of floats depend on
// the order of its rows; after a cancellation those are all that there is, so that no
// tolerance tells a wrong answer from a right one. What COPY sends is not compared.
func (d *decision) Comparable() bool {
	if d.copy == nil && d.finish == nil && (d.query == nil || !d.query.AddsFloats()) {
		return true
	}
	d.statement.engine.verdicts[Uncompared].Add(1)
	return false
}

// Shadow implements Decision.
func (d *decision) Shadow(gate Gate, described []Field, params []vector.Datum) (*Check, error) {
	e := d.statement.engine
	g, bound, err := d.admit(ended, gate, described, params)
	if g != nil && g.badStaleness {
		e.badStaleness.Add(1)
	}
	if err != nil {
		d.failed(err)
		return nil, err
	}
	e.stats.forwarded(d.shape, forward(plan.ReasonShadow, ""))
	release := e.pin(g.snapshot)
	return &Check{Snapshot: g.text, Fixed: g.repeatable(), Ordered: totalOrder(bound),
		Run: func(ctx context.Context) (b *vector.Batch, err error) {
			defer recovered(&b, &err)
			// By now Postgres has answered. A table that it found truncated or rewritten
			// since the snapshot is not one that can be compared: the position of now shows
			// it, if it does not show here.
			now, err := e.checkPresent(ctx, d, g.server)
			if err != nil {
				return nil, err
			}
			later := *g
			later.insertLSN, later.isolation, later.sent = max(now, g.insertLSN), repeatableRead, time.Time{}
			later.ties = tiesForward // PostgreSQL's choice is another
			in, f := e.snapshot(ctx, d.deps, &later)
			if f != nil {
				return nil, f
			}
			defer releaseAll(in)
			b, _, err = e.run(ctx, d, &later, 0, bound, nil, in)
			return b, err
		},
		Done: func(c Comparison) {
			release()
			e.checked(d, g, c)
		}}, nil
}

// checked takes the outcome of a check. A shape that was wrong once is not answered
// here any more as long as this process lives.
func (e *Engine) checked(d *decision, g *gateRow, c Comparison) {
	e.verdicts[c.Verdict].Add(1)
	e.stats.checked(d.shape, c.Verdict)
	if c.Verdict != Different {
		e.log.Debug("shadow check", "result", c.Verdict.String(), "detail", c.Detail)
		return
	}
	attrs := []any{"detail", c.Detail, "row", c.Row, "snapshot", g.text, "parameter_types", c.ParamOIDs,
		"time_zone", g.timeZone, "sql", d.statement.sql}
	if e.log.Enabled(context.Background(), slog.LevelDebug) {
		attrs = append(attrs, "ours", string(c.Ours), "postgres", string(c.Theirs))
	}
	e.log.Error("an answer differs from Postgres': statements of this shape are forwarded from now on", attrs...)
}

// Verdicts returns the number of shadow checks that came to v.
func (e *Engine) Verdicts(v Verdict) int64 { return e.verdicts[v].Load() }

// totalOrder reports whether ORDER BY leaves no two rows equal.
func totalOrder(q *plan.Star) bool {
	if len(q.Sets) > 0 {
		return false // the nulls of a set that lacks a key may meet those of the key
	}
	if q.Grouped {
		for i := range q.Group {
			if !slices.ContainsFunc(q.Order, func(o plan.Order) bool { k, ok := o.Expr.(plan.Key); return ok && k.Index == i }) {
				return false
			}
		}
		return true // one row where there is no GROUP BY
	}
	if len(q.Tables) == 0 {
		return true // one row
	}
	if slices.ContainsFunc(q.Joins, func(j plan.StarJoin) bool { return j.Many }) {
		return false
	}
	// The joins multiply no rows, so that the driving table's keys name them.
	var columns []int
	for _, o := range q.Order {
		if c, ok := o.Expr.(plan.Column); ok && c.Table == 0 {
			columns = append(columns, c.Column)
		}
	}
	return len(columns) > 0 && q.Tables[0].Meta.UniqueOn(columns)
}

// verdicts counts checks by what they came to.
type verdicts [Uncompared + 1]atomic.Int64

// checked notes a check of a shape.
func (s *stats) checked(sh *shape, v Verdict) {
	if v == Inconclusive {
		return
	}
	sh.mu.Lock()
	sh.checks++
	if v == Different {
		sh.mismatches++
	}
	sh.last = time.Now()
	sh.mu.Unlock()
	if v == Different {
		// By text: the shape itself may be forgotten while decisions refer to it.
		s.mismatched.Store(sh.text, sh)
		s.anyMismatch.Store(true)
	}
}

// wrong reports whether a check of this shape has found a difference.
func (s *stats) wrong(sh *shape) bool {
	if !s.anyMismatch.Load() {
		return false
	}
	_, found := s.mismatched.Load(sh.text)
	return found
}
