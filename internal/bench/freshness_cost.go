package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// load is what is written while queries are timed.
type load struct {
	name        string
	rate        int    // pgbench's transactions a second; 0: none, full: as many as go
	synchronous string // synchronous_commit of the writers
	own         bool   // the timed client writes itself before each query
}

const full = -1

func (f *freshness) costLoads() []load {
	limited := strconv.Itoa(f.o.Rate) + "/s"
	kinds := map[string][]load{
		"idle":    {{"idle", 0, "on", false}},
		"own":     {{"own writes", 0, "on", true}, {"own, async", 0, "off", true}},
		"limited": {{limited, f.o.Rate, "on", false}, {limited + ", async", f.o.Rate, "off", false}},
		"full":    {{"full", full, "on", false}, {"full, async", full, "off", false}},
	}
	var loads []load
	for _, kind := range loadKinds {
		if f.o.Loads == nil || slices.Contains(f.o.Loads, kind) {
			loads = append(loads, kinds[kind]...)
		}
	}
	return loads
}

var loadKinds = []string{"idle", "own", "limited", "full"}

// loadCost is what was seen beside one load.
type loadCost struct {
	load
	tps         float64
	one         []time.Duration // SELECT 1 on Postgres
	passed      []time.Duration // and through pgaccel, which passes it on
	accelerated []time.Duration // the probe through pgaccel, accelerated or not
	waits       [2]metric       // pgaccel_gate_wait_seconds before and after; without buckets where there is none
	answered    int64           // executions that pgaccel answered
	forwarded   map[string]int64
	stale       int64 // reads that missed the client's own write
}

// freshness is what the query took less what pgaccel adds to any statement: the gate,
// the wait, and the execution of the query.
func (l *loadCost) freshness() []time.Duration {
	hop := median(l.passed) - median(l.one)
	var d []time.Duration
	for _, t := range l.accelerated {
		d = append(d, max(t-hop, 0))
	}
	return d
}

// cost times statements on three ways in turn, beside each load.
func (f *freshness) cost(ctx context.Context) error {
	var err error
	if f.probe, err = query(ctx, f.direct, probeSQL); err != nil {
		return err
	}
	for _, l := range f.costLoads() {
		w := f.progress.start("beside "+l.name, 0)
		c, err := f.beside(ctx, l)
		if err != nil {
			return fmt.Errorf("beside %s: %w", l.name, err)
		}
		f.loads = append(f.loads, c)
		w.done()
		if err := f.settle(ctx); err != nil {
			return err
		}
		if err := f.compare(ctx, append(slices.Clone(hot), whole, probeSQL)...); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the stream has caught up with a load that is over.
func (f *freshness) settle(ctx context.Context) error {
	if _, err := query(ctx, f.direct, "UPDATE bulk SET a = a WHERE id = 0; CHECKPOINT"); err != nil {
		return err
	}
	lsn, err := queryInt(ctx, f.direct, "SELECT (pg_current_wal_flush_lsn() - '0/0')::int8")
	if err != nil {
		return err
	}
	_, err = f.caughtUp(ctx, lsn)
	return err
}

// caughtUp waits until the stream has passed a position, and returns when that was.
func (f *freshness) caughtUp(ctx context.Context, lsn int64) (time.Time, error) {
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); {
		m, err := f.child.metrics(ctx)
		if err != nil {
			return time.Time{}, err
		}
		applied, there := m.get("pgaccel_stream_applied_lsn")
		if !there || int64(applied.value) >= lsn {
			return time.Now(), nil
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return time.Time{}, errors.New("the stream does not catch up")
}

func (f *freshness) beside(ctx context.Context, l load) (*loadCost, error) {
	c := &loadCost{load: l, forwarded: map[string]int64{}}
	var out string
	var err error
	ended := make(chan struct{})
	if l.rate != 0 {
		args := []string{"-n", "-M", "prepared", "-c", strconv.Itoa(f.o.Clients), "-j", "1", "-T", strconv.Itoa(int(f.o.Duration/time.Second) + 1)}
		if l.rate != full {
			args = append(args, "-R", strconv.Itoa(l.rate))
		}
		go func() {
			out, err = f.pgbench(ctx, l.synchronous, args...)
			close(ended)
		}()
		time.Sleep(500 * time.Millisecond) // it connects
	} else {
		close(ended)
	}
	measureErr := f.measureCost(ctx, c)
	<-ended
	if err = errors.Join(measureErr, err); err == nil && l.rate != 0 {
		c.tps, err = parsePgbench(out)
	}
	return c, err
}

// measureCost fills c for Duration.
func (f *freshness) measureCost(ctx context.Context, c *loadCost) error {
	if _, err := query(ctx, f.direct, "SET synchronous_commit = "+c.synchronous); err != nil {
		return err
	}
	m, err := f.child.metrics(ctx)
	if err != nil {
		return err
	}
	accelerated, forwarded := m.routes()
	c.waits[0], _ = m.get("pgaccel_gate_wait_seconds")
	if c.own {
		if _, err := f.direct.Prepare(ctx, "write", "UPDATE probe SET v = v + 1000 WHERE id = $1", nil); err != nil {
			return err
		}
	}
	executions := int64(0)
	begin := time.Now()
	for n := 0; time.Since(begin) < f.o.Duration; n++ {
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if n%200 == 199 {
			if err := f.compare(ctx, hot...); err != nil {
				return err
			}
			executions += int64(len(hot))
		}
		_, took, err := run(ctx, f.direct, "one")
		if err != nil {
			return err
		}
		c.one = append(c.one, took)
		if _, took, err = run(ctx, f.passing, "one"); err != nil {
			return err
		}
		c.passed = append(c.passed, took)
		if c.own {
			if r := f.direct.ExecPrepared(ctx, "write", [][]byte{[]byte(strconv.Itoa(1 + n%1000))}, nil, nil).Read(); r.Err != nil {
				return r.Err
			}
			f.probe = added(f.probe, 1000)
		}
		got, took, err := run(ctx, f.through, "probe")
		if err != nil {
			return err
		}
		c.accelerated = append(c.accelerated, took)
		executions++
		if got != f.probe {
			c.stale++
			f.wrong = append(f.wrong, fmt.Sprintf("beside %s: %s says %s instead of %s", c.name, probeSQL, got, f.probe))
		}
	}
	if c.own {
		if _, err := query(ctx, f.direct, "DEALLOCATE write"); err != nil {
			return err
		}
	}
	if m, err = f.child.metrics(ctx); err != nil {
		return err
	}
	now, reasons := m.routes()
	c.answered = now - accelerated
	missing := executions - c.answered
	for reason, n := range reasons {
		if n -= forwarded[reason]; n > 0 {
			c.forwarded[reason] = n
			missing -= n
		}
	}
	if missing > 0 {
		c.forwarded["not counted by pgaccel"] = missing
	}
	c.waits[1], _ = m.get("pgaccel_gate_wait_seconds")
	return nil
}

// added returns the probe's answer after something was added to the sum.
func added(answer string, more int64) string {
	var count, sum int64
	fmt.Sscanf(answer, "%d, %d", &count, &sum)
	return fmt.Sprintf("%d, %d", count, sum+more)
}

// quantile of durations; 0 of none.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return s[int(q*float64(len(s)-1)+0.5)]
}

// waited is the quantile of what a histogram gained between two looks at it, the upper
// bound of its bucket; there is false where it gained nothing.
func waited(before, after metric, q float64) (bound time.Duration, there bool) {
	gained := after.value - before.value
	if gained <= 0 {
		return 0, false
	}
	for i, b := range after.buckets {
		n := b.n
		if i < len(before.buckets) {
			n -= before.buckets[i].n
		}
		if n >= q*gained {
			return time.Duration(b.le * float64(time.Second)), true
		}
	}
	return time.Hour, true
}
