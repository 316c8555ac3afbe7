package engine

import (
	"fmt"
	"sync"
	"time"

	"pgaccel/plan"
	"pgaccel/pushdown"
)

// Whether PostgreSQL answers a shape faster is found out by trials: executions that are forwarded, and timed,
// though they could be accelerated. What PostgreSQL answers is right, so that a trial risks time alone, and little
// of that: there is none before the server has estimated the statement (estimate.go), none where that is much
// more than what the shape takes here, and all together take no more than a share of the time that is spent here.
// Where the server turns out to be faster the shape's executions are forwarded, and tried here now and then.

// The sides of routing.
const (
	here     = side(0)
	onServer = side(1)
)

const (
	// trialFloor is the least time of executions here that is worth a trial: below, the gate and chance decide.
	trialFloor = 5 * time.Millisecond
	// trialAfter is how many executions here come before the first trial: the first ones build indexes, and compile kernels.
	trialAfter = 3
	// trialRisk bounds what a trial is expected to take, as a multiple of what the shape takes here.
	trialRisk = 2
	// routingFresh is how long the server's times and estimates count where nothing newer is known.
	routingFresh = 10 * time.Minute
	// turnExtra is how much longer than expected an execution is waited for before another one tries the same.
	turnExtra = time.Second
)

// routing decides, for the executions of one shape, who answers. The zero value has seen none.
type routing struct {
	mu sync.Mutex
	sideTimings
	served   time.Time // when the server's last execution was completed
	estimate estimate
	turn     turn
}

// turn is an execution on the side that does not lead. While it is under way there is no other.
type turn struct {
	side        side
	began, ends time.Time // zero: none is under way
}

// route is who is to answer an execution.
type route uint8

const (
	routeHere route = iota
	routeTrial
	routeSlower // pgaccel is slower
)

// choose returns who answers an execution. unit is the time that the server takes for a unit of cost; tries says
// that the execution may be a trial.
func (r *routing) choose(now time.Time, unit, floor time.Duration, tries bool) route {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn.side == onServer && !r.turn.ends.IsZero() && now.After(r.turn.ends) {
		// It failed, or was cancelled, perhaps because it took too long. If it is still under way, its time comes later.
		r.add(onServer, r.turn.ends.Sub(r.turn.began), now, floor)
	}
	if r.leader == onServer {
		if r.begin(here, now, r.timings[here].smoothed) { // what any session may have
			return routeHere
		}
		return routeSlower
	}
	h := &r.timings[here]
	if r.timings[onServer].n > 0 && now.Sub(r.served) > routingFresh {
		r.timings[onServer] = timing{}
	}
	expected := r.timings[onServer].smoothed
	if r.timings[onServer].n == 0 {
		expected = r.estimate.time(unit)
	}
	if tries && r.estimate.known() && h.n >= trialAfter && h.smoothed >= floor && expected <= trialRisk*h.smoothed && r.begin(onServer, now, expected) {
		return routeTrial
	}
	return routeHere
}

// begin takes a turn on the side that does not lead, where one is due.
func (r *routing) begin(s side, now time.Time, expected time.Duration) bool {
	if now.Before(r.turn.ends) || !r.due(expected) {
		return false
	}
	r.turn = turn{s, now, now.Add(expected + turnExtra)}
	return true
}

// count counts an execution, and reports whether another side leads now.
func (r *routing) count(s side, took time.Duration, now time.Time, floor time.Duration) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.leader
	r.add(s, took, now, floor)
	return r.leader != before
}

func (r *routing) add(s side, took time.Duration, now time.Time, floor time.Duration) {
	if r.turn.side == s {
		r.turn = turn{}
	}
	r.timings[s].add(took)
	if s == onServer {
		r.served = now
	}
	h, there := &r.timings[here], &r.timings[onServer]
	switch {
	case r.leader == onServer:
		if muchFaster(h.smoothed, there.smoothed) {
			r.lead(here)
		}
	case h.n >= trialAfter && h.smoothed >= floor:
		if there.n >= 1 && 2*there.smoothed <= h.smoothed || there.n >= 2 && muchFaster(there.smoothed, h.smoothed) {
			r.lead(onServer)
		}
	}
}

// muchFaster reports whether a is so much less than b that neither noise nor what is not timed makes it so: a shape is
// not to go to and fro.
func muchFaster(a, b time.Duration) bool { return 6*a <= 5*b }

// times returns what the sides take.
func (r *routing) times() (h, server time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timings[here].smoothed, r.timings[onServer].smoothed
}

// floor is the least time here that is worth a trial.
func (e *Engine) floor() time.Duration {
	if e.opt.TrialFloor > 0 {
		return e.opt.TrialFloor
	}
	return trialFloor
}

var errTrial = forward(plan.ReasonTrial, "PostgreSQL answers one execution, to see how long it takes"+pushdown.ForceTakesIt)

// routed returns the decision for an execution that can be accelerated: d, or one that forwards it for its time.
func (d *decision) routed(in Session) *decision {
	e := d.statement.engine
	if !e.opt.Trials || !in.Executes {
		return d
	}
	insists := in.Forces || d.catalog.ModeSet // what the session's mode is only the gate says
	var f *plan.Forward
	switch d.shape.routing.choose(time.Now(), e.trials.unit(), e.floor(), !insists) {
	case routeHere:
		return d
	case routeTrial:
		f = errTrial
	case routeSlower:
		h, server := d.shape.routing.times()
		f = forward(plan.ReasonSlower, fmt.Sprintf("PostgreSQL takes %.1f ms, pgaccel %.1f ms", server.Seconds()*1000, h.Seconds()*1000)+pushdown.ForceTakesIt)
	}
	if !insists {
		return d.forwarding(f)
	}
	unlessForced := *d
	unlessForced.forced = f
	return &unlessForced
}

// timed counts an execution that was answered here, and has the server asked for its estimate where that is worth it.
func (d *decision) timed(took time.Duration, estimate func() (float64, error)) {
	e := d.statement.engine
	if !e.opt.Trials {
		return
	}
	if d.shape.routing.count(here, took, time.Now(), e.floor()) {
		d.logRoute()
	}
	e.learnCost(d, estimate)
}

// served counts an execution that the server has completed.
func (d *decision) served(took time.Duration) {
	d.shape.served(took)
	e := d.statement.engine
	if !e.opt.Trials || d.partly || d.shape.text == "" {
		return
	}
	if d.forward != nil && d.forward.Reason == plan.ReasonTrial {
		result := "faster"
		if h, _ := d.shape.routing.times(); took >= h {
			result = "slower"
		}
		bump(&e.trials.results, result)
	}
	if cost := d.shape.routing.cost(); cost > 0 {
		e.trials.learn(took, cost)
	}
	if d.shape.routing.count(onServer, took, time.Now(), e.floor()) {
		d.logRoute()
	}
}

func (d *decision) logRoute() {
	h, server := d.shape.routing.times()
	d.statement.engine.log.Debug("a statement's other side is faster", "pgaccel", h, "postgres", server, "query", d.shape.text)
}

// Trials returns how many trials found PostgreSQL faster, and slower.
func (e *Engine) Trials() map[string]int64 {
	all := counts(&e.trials.results)
	for _, result := range []string{"faster", "slower"} {
		all[result] += 0 // present from the start
	}
	return all
}
