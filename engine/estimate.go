package engine

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/sqltype"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// estimate is what the server says a shape costs: the most of what it says of a few executions, whose constants may
// differ.
type estimate struct {
	cost  float64   // 0: not known
	asked time.Time // when it was asked last
	rows  int64     // of the tables then
	asks  int       // since the rows doubled
}

const (
	estimates      = 3 // that are asked for
	estimateLimit  = time.Second
	estimateGrowth = 2 // of the tables, after which it is asked for anew
)

func (s *estimate) known() bool { return s.cost > 0 }

// time is how long that takes, where a unit of cost takes so long.
func (s *estimate) time(unit time.Duration) time.Duration {
	return time.Duration(min(s.cost*float64(unit), math.MaxInt64/(4*exploreShare)))
}

// wants reports whether the server is to be asked about an execution over so many rows.
func (s *estimate) wants(rows int64, now time.Time) bool {
	if rows > estimateGrowth*s.rows || now.Sub(s.asked) > routingFresh {
		s.asks = 0
	}
	return s.asks < estimates
}

// take takes an answer, 0 where there was none.
func (s *estimate) take(cost float64, rows int64, now time.Time) {
	s.asked, s.rows = now, rows
	if s.asks++; cost == 0 {
		s.asks = estimates // later, perhaps
	}
	if s.asks == 1 || cost == 0 {
		s.cost = cost
	}
	s.cost = max(s.cost, cost)
}

// wantsCost reports whether the server is to be asked.
func (r *routing) wantsCost(rows int64, now time.Time, floor time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &r.timings[here]
	return r.leader == here && h.n >= trialAfter && h.smoothed >= floor && r.estimate.wants(rows, now)
}

func (r *routing) cost() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.estimate.cost
}

// trials is what an engine knows of all shapes' trials.
type trials struct {
	asking  atomic.Bool // one estimate at a time
	results sync.Map    // result -> *atomic.Int64

	mu  sync.Mutex
	per float64 // nanoseconds that the server takes for a unit of cost; 0: none is known
}

// unitDefault is what a unit of cost, of a page read in order, takes a server whose tables are in memory. unitSlower
// bounds what one execution can make of it: its constants may be others than those of the estimate.
const (
	unitDefault = 5 * time.Microsecond
	unitSlower  = 4
)

func (t *trials) unit() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.per == 0 {
		return unitDefault
	}
	return time.Duration(t.per)
}

// learn takes note of what an execution took whose cost was estimated.
func (t *trials) learn(took time.Duration, cost float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.per == 0 {
		t.per = float64(unitDefault)
	}
	seen := min(max(float64(took)/cost, t.per/unitSlower), t.per*unitSlower)
	t.per = max(t.per+(seen-t.per)/8, 1)
}

// learnCost asks for the estimate of a statement that was just executed, where it is worth it. Nobody waits for it.
func (e *Engine) learnCost(d *decision, ask func() (float64, error)) {
	rows := d.rowsOfTables()
	if e.opt.Look == nil || ask == nil || !d.shape.routing.wantsCost(rows, time.Now(), e.floor()) || !e.trials.asking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer e.trials.asking.Store(false)
		cost, err := ask()
		if err != nil {
			e.log.Debug("no estimate of a statement", "error", err, "query", d.shape.text)
		}
		r := &d.shape.routing
		r.mu.Lock()
		defer r.mu.Unlock()
		r.estimate.take(cost, rows, time.Now())
	}()
}

// costOf asks the server what it would take an execution to cost, on a session of pgaccel's. That has no search_path:
// built-in functions alone can be meant, and tables are named with their schemas. A view is not looked into, which
// somebody could have changed meanwhile to call functions of theirs. The cost is of a plan without parallel workers.
func (d *decision) costOf(params []vector.Datum) (float64, error) {
	if len(d.deps.Views) > 0 || len(d.statement.sql) > cachedTextMax {
		return 0, errors.New("a statement over views, or a long one")
	}
	values, err := paramTexts(params)
	if err != nil {
		return 0, err
	}
	schemas := map[string]string{}
	for i := range d.deps.Tables {
		if t := &d.deps.Tables[i]; ofNoSchema(*t) {
			schemas[t.Meta.Name] = t.Meta.Schema
		}
	}
	sql, err := syntax.ParsePart(d.statement.sql).Qualified(schemas)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), estimateLimit)
	defer cancel()
	rows, err := d.statement.engine.opt.Look(ctx, "EXPLAIN (FORMAT JSON) "+sql, values)
	if err != nil {
		return 0, err
	}
	return planCost(rows)
}

// planCost reads the answer to EXPLAIN.
func planCost(rows [][]*string) (float64, error) {
	if len(rows) != 1 || len(rows[0]) != 1 || rows[0][0] == nil {
		return 0, errors.New("a plan that is none")
	}
	var plans []struct {
		Plan struct {
			Cost float64 `json:"Total Cost"`
		}
	}
	if err := json.Unmarshal([]byte(*rows[0][0]), &plans); err != nil {
		return 0, err
	}
	if len(plans) != 1 || plans[0].Plan.Cost <= 0 {
		return 0, errors.New("a plan without a cost")
	}
	return plans[0].Plan.Cost, nil
}

// paramTexts writes the values of parameters in text form.
func paramTexts(params []vector.Datum) ([]string, error) {
	texts := make([]string, len(params))
	for i, v := range params {
		if k := v.Type.Kind; v.Null || !k.Valid() || k.IsArray() {
			return nil, errors.New("a parameter that is null, or of another type")
		}
		texts[i] = sqltype.Text(v)
	}
	return texts, nil
}
