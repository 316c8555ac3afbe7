package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

const ms = time.Millisecond

// played are the executions of one shape on a clock of their own.
type played struct {
	routing
	now            time.Time
	trials, slower int
	spent          [sides]time.Duration
}

// play has n executions, which take so long here and there.
func (p *played) play(n int, ours, theirs time.Duration) {
	if p.now.IsZero() {
		p.now = time.Unix(1e9, 0)
	}
	for range n {
		s, took := here, ours
		switch p.choose(p.now, time.Microsecond, trialFloor, true) {
		case routeTrial:
			p.trials++
			s, took = onServer, theirs
		case routeSlower:
			p.slower++
			s, took = onServer, theirs
		}
		p.now = p.now.Add(took)
		p.count(s, took, p.now, trialFloor)
		p.spent[s] += took
	}
}

// estimated has the server estimate the shape; a unit of cost takes a microsecond.
func (p *played) estimated(d time.Duration) {
	p.routing.estimate.take(float64(d/time.Microsecond), 1000, p.now)
}

// TestFasterServer: after one trial a shape that PostgreSQL answers in no time is forwarded, and tried here now and then.
func TestFasterServer(t *testing.T) {
	var p played
	p.play(100, 80*ms, ms)
	if p.trials+p.slower > 0 {
		t.Fatalf("%d trials without an estimate", p.trials)
	}
	p.estimated(ms)
	p.play(1000, 80*ms, ms)
	if p.trials != 1 || p.slower != 999 {
		t.Errorf("%d trials, then %d of 999 forwarded", p.trials, p.slower)
	}
	before := p.spent
	p.play(10000, 80*ms, ms)
	if tried := p.spent[here] - before[here]; tried == 0 || tried > (p.spent[onServer]-before[onServer])/exploreShare+80*ms {
		t.Errorf("%v were spent here of %v", tried, p.spent[onServer]-before[onServer])
	}
	// It becomes as fast here, and is answered here soon.
	p.slower = 0
	p.play(20000, ms/2, ms)
	if p.slower > 3000 {
		t.Errorf("%d of 20000 executions were forwarded though they are faster here", p.slower)
	}
}

// TestSlowerServer: where PostgreSQL is slower than estimated, trials cost no more than their share.
func TestSlowerServer(t *testing.T) {
	var p played
	p.estimated(10 * ms)
	p.play(2000, 20*ms, 30*ms)
	if p.slower > 0 || p.trials < 5 || p.spent[onServer] > p.spent[here]/exploreShare+30*ms {
		t.Errorf("%d trials, %d forwarded, %v spent", p.trials, p.slower, p.spent)
	}
	// One that takes very long is not repeated for a while.
	var q played
	q.estimated(10 * ms)
	q.play(1000, 20*ms, 10*time.Second)
	if q.trials != 1 {
		t.Errorf("%d trials of ten seconds", q.trials)
	}
	// Where it is a little faster it takes two trials; where both are alike none decides.
	var r played
	r.estimated(10 * ms)
	r.play(1000, 20*ms, 15*ms)
	if r.trials != 2 || r.slower == 0 {
		t.Errorf("%d trials, %d forwarded", r.trials, r.slower)
	}
	var s played
	s.estimated(10 * ms)
	s.play(1000, 20*ms, 18*ms)
	if s.slower > 0 {
		t.Errorf("%d forwarded of what takes as long", s.slower)
	}
}

// TestNoTrial: not of what is cheap here, of what the server estimates to be dear, nor by who insists.
func TestNoTrial(t *testing.T) {
	f := func(ours, estimate time.Duration, want bool) {
		t.Helper()
		var p played
		p.estimated(estimate)
		p.play(1000, ours, ms)
		if got := p.trials > 0; got != want {
			t.Errorf("%v here, estimated %v there: %d trials", ours, estimate, p.trials)
		}
	}
	f(4*ms, ms, false)
	f(5*ms, ms, true)
	f(50*ms, 101*ms, false)
	f(50*ms, 99*ms, true)
	var p played
	p.estimated(ms)
	p.play(3, 80*ms, ms)
	if r := p.choose(p.now, time.Microsecond, trialFloor, false); r != routeHere {
		t.Errorf("who insists has a trial: %d", r)
	}
	p.play(2, 80*ms, ms)
	if r := p.choose(p.now, time.Microsecond, trialFloor, false); r != routeSlower {
		t.Errorf("who may insist: %d", r)
	}
	// It is tried here again, also where all insist.
	p.play(100, 80*ms, 40*ms)
	p.turn = turn{}
	p.timings[onServer].spent += time.Hour
	if r := p.choose(p.now, time.Microsecond, trialFloor, false); r != routeHere {
		t.Errorf("who insists is forwarded for ever: %d", r)
	}
}

// TestOneTrial: there is one at a time, and one that does not come to an end counts as long.
func TestOneTrial(t *testing.T) {
	var p played
	p.estimated(ms)
	p.play(3, 80*ms, ms)
	choose := func(want route) {
		t.Helper()
		if r := p.choose(p.now, time.Microsecond, trialFloor, true); r != want {
			t.Errorf("%d, want %d", r, want)
		}
	}
	choose(routeTrial)
	choose(routeHere)
	p.now = p.now.Add(turnExtra + 2*ms)
	choose(routeHere)
	if got := p.timings[onServer].smoothed; got != turnExtra+ms {
		t.Errorf("counted as %v", got)
	}
	p.now = p.now.Add(routingFresh)
	choose(routeHere) // what was lost is made up for first
	p.play(20, 80*ms, ms)
	if p.trials != 1 {
		t.Errorf("%d trials later", p.trials)
	}
}

// TestNoFlapping: noise of a third does not move a shape to and fro.
func TestNoFlapping(t *testing.T) {
	var p played
	p.estimated(10 * ms)
	noise := []time.Duration{0, 5 * ms, -3 * ms, 2 * ms, -5 * ms, ms}
	changes, leader := 0, p.leader
	for i := range 5000 {
		p.play(1, 20*ms+noise[i%6], 13*ms+noise[(i*5+1)%6])
		if p.leader != leader {
			changes, leader = changes+1, p.leader
		}
	}
	if changes > 1 || leader != onServer {
		t.Errorf("%d changes, the server leads: %v", changes, leader == onServer)
	}
}

func TestEstimate(t *testing.T) {
	var s estimate
	now := time.Unix(1e9, 0)
	for i, c := range []struct {
		rows int64
		cost float64
		want bool
		most float64
	}{{1000, 10, true, 10}, {1000, 30, true, 30}, {1000, 20, true, 30}, {1000, 0, false, 30}, {2000, 0, false, 30}, {2001, 5, true, 5}, {2001, 0, true, 0}, {2001, 0, false, 0}} {
		if got := s.wants(c.rows, now); got != c.want {
			t.Errorf("%d: asked %v", i, got)
		} else if got {
			s.take(c.cost, c.rows, now)
		}
		if s.cost != c.most {
			t.Errorf("%d: %v, want %v", i, s.cost, c.most)
		}
	}
	if !s.wants(2001, now.Add(routingFresh+1)) {
		t.Error("never again")
	}
	var tr trials
	if tr.unit() != unitDefault {
		t.Error(tr.unit())
	}
	for range 100 {
		tr.learn(20*ms, 1000)
	}
	if u := tr.unit(); u < 19*time.Microsecond || u > 20*time.Microsecond {
		t.Error(u)
	}
	for _, text := range []string{"", "{}", "[]", `[{"Plan":{}}]`, `[{"Plan":{"Total Cost":-1}}]`, "x"} {
		if c, err := planCost([][]*string{{&text}}); err == nil {
			t.Errorf("%q: %v", text, c)
		}
	}
	text := `[{"Plan": {"Node Type": "Limit", "Total Cost": 8.31, "Plan Rows": 1}}]`
	if c, err := planCost([][]*string{{&text}}); err != nil || c != 8.31 {
		t.Error(c, err)
	}
}

// TestParamTexts: values are written as the server reads them.
func TestParamTexts(t *testing.T) {
	for _, k := range vector.Kinds() {
		for _, sample := range sqltype.Of(k).Samples {
			d, ok := sqltype.Of(k).Parse(sample)
			if !ok {
				continue
			}
			texts, err := paramTexts([]vector.Datum{d})
			if err != nil {
				t.Errorf("%s %q: %v", k, sample, err)
				continue
			}
			if again, ok := sqltype.Of(k).Parse(texts[0]); !ok || again != d {
				t.Errorf("%s %q: %q is another", k, sample, texts[0])
			}
		}
	}
	if _, err := paramTexts([]vector.Datum{vector.Null(vector.TypeOf(vector.Int4))}); err == nil {
		t.Error("a null")
	}
}

// TestRoutes plays a shape through an engine, whose server is a function.
func TestRoutes(t *testing.T) {
	asked := make(chan string, 10)
	b := newAheadBench(t, func(o *Options) {
		o.Trials, o.TrialFloor = true, time.Nanosecond
		o.Look = func(_ context.Context, sql string, params []string) ([][]*string, error) {
			asked <- sql + " " + strings.Join(params, ",")
			plan := `[{"Plan": {"Total Cost": 0.00001}}]`
			return [][]*string{{&plan}}, nil
		}
	})
	b.store.SetCatalog(b.store.Catalog())
	st := b.engine.Prepare("SELECT count(*) FROM t WHERE a > $1", nil)
	d := st.(*statement).current()
	v := vector.Int(vector.Int4, 0)
	for range trialAfter {
		if _, err := b.ask(st, b.gate(nil), v); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	select {
	case got = <-asked:
	case <-time.After(30 * time.Second):
	}
	if got != "EXPLAIN (FORMAT JSON) SELECT count(*) FROM public.t WHERE a > $1 0" {
		t.Errorf("asked %s", got)
	}
	for limit := time.Now().Add(30 * time.Second); b.engine.trials.asking.Load() && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	// The table is small: what forces is taken in any case.
	few := *d
	few.forced, few.unforced = nil, nil
	reason := func(in Session) plan.Reason {
		if f := few.routed(in).forward; f != nil {
			return f.Reason
		}
		return ""
	}
	d.shape.routing.timings[here] = timing{10, 80 * ms, 800 * ms}
	if got := reason(Session{}); got != "" {
		t.Errorf("a description is a trial: %s", got)
	}
	if got := reason(Session{Executes: true, Forces: true}); got != "" {
		t.Errorf("who may insist has a trial: %s", got)
	}
	trial := few.routed(Session{Executes: true})
	if trial.forward != errTrial {
		t.Fatalf("%v", trial.forward)
	}
	trial.Forwarded("")
	trial.Completed(ms)
	slower := few.routed(Session{Executes: true})
	if f := slower.forward; f == nil || f.Reason != plan.ReasonSlower || f.Detail != "PostgreSQL takes 1.0 ms, pgaccel 80.0 ms; SET pgaccel.mode = 'force' takes it all the same" {
		t.Errorf("%v", f)
	}
	if got := b.engine.Trials(); got["faster"] != 1 || got["slower"] != 0 {
		t.Errorf("%v", got)
	}
	// Who has named the mode is asked what it is now.
	insists := few.routed(Session{Executes: true, Forces: true})
	run := func(mode string) error {
		batch, err := insists.Execute(context.Background(), &b.tx, b.gate(map[int]string{gateMode: mode}), described, []vector.Datum{v})
		batch.Release()
		return err
	}
	if err := run("force"); err != nil {
		t.Error(err)
	}
	if err := run("auto"); plan.ReasonOf(err) != plan.ReasonSlower {
		t.Error(err)
	}
}

// TestInVain: what has failed late is not computed again with the same values and settings, unless forced.
func TestInVain(t *testing.T) {
	b := newAheadBench(t, func(o *Options) { o.Trials = true })
	st := b.engine.Prepare("SELECT count(*) FROM t WHERE a > $1", nil)
	d := st.(*statement).current()
	v, w := vector.Int(vector.Int4, 0), vector.Int(vector.Int4, 1)
	g := &gateRow{timeZone: "UTC"}
	overflow := forward(plan.ReasonEvaluation, "overflow")
	d.failedLate(lateFailureFloor-1, g, []vector.Datum{v}, nil, overflow)
	d.failedLate(lateFailureFloor, g, []vector.Datum{v}, nil, forward(plan.ReasonQueryMemory, ""))
	d.failedLate(lateFailureFloor, g, []vector.Datum{v}, nil, errors.New("a bug"))
	if d.lateFailure.Load() != nil {
		t.Fatal("remembered")
	}
	d.failedLate(lateFailureFloor, g, []vector.Datum{v}, nil, overflow)
	f := func(mode, zone, ties string, p vector.Datum, want *plan.Forward) {
		t.Helper()
		if got := d.failedBefore(&gateRow{mode: mode, timeZone: zone, ties: ties}, []vector.Datum{p}, nil); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	f("auto", "UTC", "", v, overflow)
	f("force", "UTC", "", v, nil)
	f("auto", "Europe/Paris", "", v, nil)
	f("auto", "UTC", "forward", v, nil)
	f("auto", "UTC", "", w, nil)
	few := *d
	few.forced = nil
	if _, err := few.Execute(context.Background(), &b.tx, b.gate(map[int]string{gateMode: "auto"}), described, []vector.Datum{v}); !errors.Is(err, overflow) {
		t.Error(err)
	}
	d.lateFailure.Load().at = time.Now().Add(-lateFailureFor - time.Second)
	f("auto", "UTC", "", v, nil)
}
