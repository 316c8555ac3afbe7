package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/sqltype"
)

// TestDeviceChoice plays executions whose times are given, and counts where they ran.
func TestDeviceChoice(t *testing.T) {
	play := func(cpu, device time.Duration) (onDev int, spent [sides]time.Duration) {
		var c deviceChoice
		for range 1000 {
			s, d := onCPU, cpu
			if c.choose(&processorRate{}) {
				s, d = onDevice, device
				onDev++
			}
			c.add(s, d, 0, &processorRate{})
			spent[s] += d
		}
		return onDev, spent
	}
	if n, spent := play(10*time.Millisecond, time.Millisecond); n < 980 || n == 1000 || spent[onCPU] > spent[onDevice]/exploreShare+20*time.Millisecond {
		t.Errorf("a device ten times as fast ran %d of 1000 executions; %v", n, spent)
	}
	if n, spent := play(time.Millisecond, 10*time.Millisecond); n > 12 || n < 3 || spent[onDevice] > spent[onCPU]/exploreShare+30*time.Millisecond {
		t.Errorf("a device ten times as slow ran %d of 1000 executions; %v", n, spent)
	}
	// What was slower is noticed when it is the faster one later.
	var c deviceChoice
	late := 0
	for i := range 4000 {
		times := [sides]time.Duration{onCPU: 5 * time.Millisecond, onDevice: 20 * time.Millisecond}
		if i >= 1000 {
			times[onDevice] = time.Millisecond
		}
		s := onCPU
		if c.choose(&processorRate{}) {
			s = onDevice
			if i >= 3000 {
				late++
			}
		}
		c.add(s, times[s], 0, &processorRate{})
	}
	if late < 900 {
		t.Errorf("a device that became faster ran %d of the last 1000 executions", late)
	}
}

// TestDeviceChoiceByEstimate: where other shapes say that the processor would take much longer, its time is not learned
// at once, but after the device has led for long.
func TestDeviceChoiceByEstimate(t *testing.T) {
	const bytes = 1 << 20
	var known processorRate
	var both deviceChoice
	for range warmUps {
		both.add(onDevice, time.Millisecond, bytes, &known)
	}
	if est := known.time(bytes); est != 0 {
		t.Errorf("an estimate of %v before the processor has computed anything", est)
	}
	both.add(onCPU, 100*time.Millisecond, 0, &known)
	if est := known.time(2 * bytes); est < 199*time.Millisecond || est > 201*time.Millisecond {
		t.Errorf("twice as many bytes take %v", est)
	}
	for _, c := range []struct {
		name         string
		device       time.Duration
		known        *processorRate
		first, least int // executions before the processor's first one
	}{
		{"nothing is known", time.Millisecond, &processorRate{}, warmUps, warmUps},
		{"the device is much faster", time.Millisecond, &known, 0, 1000},
		{"it may be as fast", 30 * time.Millisecond, &known, warmUps, warmUps},
		{"it is slower", 300 * time.Millisecond, &known, warmUps, warmUps},
	} {
		var one deviceChoice
		n := 0
		for ; one.choose(c.known) && n < 10000; n++ {
			one.add(onDevice, c.device, bytes, c.known)
		}
		if n < c.least || c.first > 0 && n != c.first || n == 10000 {
			t.Errorf("%s: the processor is tried after %d executions", c.name, n)
		}
		// Measured, it is the processor's own time that counts: the second one, unless the first was much longer.
		one.add(onCPU, 3*c.device, 0, &processorRate{})
		if one.choose(c.known) {
			t.Errorf("%s: the processor's first execution decides", c.name)
		}
		one.add(onCPU, c.device/2, 0, &processorRate{})
		if one.choose(c.known) {
			t.Errorf("%s: the device computes, which takes twice as long", c.name)
		}
	}
}

// idleDevice has limits and runs nothing.
type idleDevice struct{ broken bool }

func (d idleDevice) Limits() (gpu.Limits, bool) { return gpu.Limits{SharedBytes: 1 << 15}, !d.broken }
func (d idleDevice) Run(context.Context, *program.Query, gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	panic("not reached")
}

func TestDeviceSetting(t *testing.T) {
	type outcome struct{ offered, wait bool }
	for _, c := range []struct {
		kind, setting string
		broken        bool
		want          outcome
	}{
		{"cuda", "", false, outcome{true, false}},
		{"cuda", "auto", false, outcome{true, false}},
		{"cuda", "nonsense", false, outcome{true, false}},
		{"cuda", "cpu", false, outcome{}},
		{"cuda", "cuda", false, outcome{true, true}},
		{"cuda", "emu", false, outcome{}},
		{"emu", "emu", false, outcome{true, true}},
		{"emu", "cuda", false, outcome{}},
		{"cuda", "auto", true, outcome{}},
		{"cuda", "cuda", true, outcome{true, true}}, // counted as a fallback
		{"", "cuda", false, outcome{}},
		{"", "auto", false, outcome{}},
	} {
		e := &Engine{}
		if c.kind != "" {
			e.opt.Device, e.opt.DeviceKind = idleDevice{c.broken}, c.kind
		}
		r, wait := e.offer(c.setting, &deviceChoice{})
		if got := (outcome{r != nil, wait}); got != c.want {
			t.Errorf("pgaccel.device = %q on %q (broken %v): %+v, want %+v", c.setting, c.kind, c.broken, got, c.want)
		}
	}
}

// timedDevice answers nothing as long as it compiles, then all queries with the same result.
type timedDevice struct {
	idleDevice
	mu        sync.Mutex
	compiled  chan struct{}
	runs      int
	fault     bool // each row is an error
	compiling int  // answers of that kind
	prepared  int  // kernels that were asked for, and no more
	waits     atomic.Int64
}

func (d *timedDevice) Run(ctx context.Context, q *program.Query, opt gpu.RunOptions) (*program.Result, gpu.Stats, error) {
	if opt.Prepare {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.prepared++
		return nil, gpu.Stats{}, nil
	}
	stats := gpu.Stats{Device: "fake:0", Kernel: 1}
	if opt.Wait {
		select {
		case <-d.compiled:
		default:
			stats.Compile = time.Second
			d.waits.Add(1)
			select {
			case <-d.compiled:
			case <-ctx.Done():
				return nil, gpu.Stats{}, ctx.Err()
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.compiled:
	default:
		d.compiling++
		return nil, gpu.Stats{}, gpu.ErrCompiling
	}
	if d.runs++; d.fault {
		return &program.Result{Fault: true}, stats, nil
	}
	r, err := program.Reference(q)
	return r, stats, err
}

// TestWarmUp: what the processor answers while a kernel is compiled is computed on the device behind it,
// as often as the device's time is not known, once at a time; the next execution chooses.
func TestWarmUp(t *testing.T) {
	for _, fault := range []bool{false, true} {
		d := &timedDevice{compiled: make(chan struct{}), fault: fault}
		b := newAheadBench(t, func(o *Options) { o.Device, o.DeviceKind, o.Eager = d, "cuda", true })
		for range 12 {
			b.commit()
		}
		st := b.engine.Prepare("SELECT sum(a), count(*) FROM t WHERE a > 0 AND a < 7", nil)
		ask := func() {
			t.Helper()
			fields := []Field{{Name: "sum", TypeOID: sqltype.OIDInt8}, {Name: "count", TypeOID: sqltype.OIDInt8}}
			batch, err := st.Decide(Session{Forces: true}).Execute(t.Context(), &b.tx, b.gate(nil), fields, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer batch.Release()
			if got := batch.Columns[1].Ints[0]; got != 6 {
				t.Errorf("%d rows, want 6", got)
			}
		}
		choice := &st.(*statement).current().shape.choice
		known := func() (n [sides]int64) {
			choice.mu.Lock()
			defer choice.mu.Unlock()
			return [sides]int64{choice.timings[onCPU].n, choice.timings[onDevice].n}
		}
		ask()
		ask()
		if n := known(); n != [sides]int64{2, 0} || b.engine.devices.warming.Load() != 1 {
			t.Errorf("before the kernel is there: %v, %d warm-ups", n, b.engine.devices.warming.Load())
		}
		for limit := time.Now().Add(time.Minute); d.waits.Load() == 0 && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		close(d.compiled)
		for limit := time.Now().Add(time.Minute); b.engine.devices.warming.Load() > 0 && time.Now().Before(limit); {
			time.Sleep(time.Millisecond)
		}
		want := int64(warmUps)
		if fault {
			want = 1 // it would be in vain again
		}
		if n := known(); n[onDevice] != want || n[onCPU] != 2 {
			t.Errorf("fault %v: after the warm-up %v", fault, n)
		}
		if d.runs != map[bool]int{false: 1 + warmUps, true: 1}[fault] { // what waited for the kernel has not been timed
			t.Errorf("fault %v: %d executions on the device", fault, d.runs)
		}
		ask()
		if n := known(); n[onCPU]+n[onDevice] != 3+want || fault && n[onDevice] != 2 {
			t.Errorf("fault %v: after another execution %v", fault, n)
		}
	}
}

// TestPrepared: what is prepared has its kernels compiled, once, and nothing computed; the first execution is the
// device's where that has come to an end.
func TestPrepared(t *testing.T) {
	d := &timedDevice{compiled: make(chan struct{})}
	b := newAheadBench(t, func(o *Options) { o.Device, o.DeviceKind, o.Eager = d, "cuda", true })
	for range 12 {
		b.commit()
	}
	prepare := func(sql string) Statement {
		st := b.engine.Prepare(sql, nil)
		st.Decide(Session{Forces: true}).Prepared()
		return st
	}
	prepared := func(want int) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			b.engine.devices.preparing.Lock() // whoever is at it has let the tables go
			d.mu.Lock()
			n, runs := d.prepared, d.runs
			d.mu.Unlock()
			b.engine.devices.preparing.Unlock()
			if n == want && runs == 0 {
				return
			}
			if n > want || runs > 0 || time.Now().After(limit) {
				t.Fatalf("%d kernels were asked for, want %d; %d executions", n, want, runs)
			}
		}
	}
	st := prepare("SELECT count(DISTINCT a), count(*) FROM t WHERE a > 0 AND a < 7")
	prepared(2)
	for _, sql := range []string{
		"SELECT count(DISTINCT a), count(*) FROM t WHERE a > 0 AND a < 7", // once a shape
		"SELECT sum(a) FROM t WHERE a > $1",                               // by values that are to come
		"SELECT sum(a) FROM t WHERE a > extract(day FROM now())",
		"EXPLAIN SELECT sum(a) FROM t WHERE a > 1",
		"SELECT sum(a) FROM nothing",
		"UPDATE t SET a = 1",
	} {
		prepare(sql)
	}
	prepare("SELECT sum(a) FROM t WHERE a > 3")
	prepared(3)
	close(d.compiled)
	fields := []Field{{Name: "count", TypeOID: sqltype.OIDInt8}, {Name: "count", TypeOID: sqltype.OIDInt8}}
	batch, err := st.Decide(Session{Forces: true}).Execute(t.Context(), &b.tx, b.gate(nil), fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	if d.runs == 0 || d.compiling > 0 || batch.Columns[0].Ints[0] != 6 || batch.Columns[1].Ints[0] != 6 {
		t.Errorf("%d runs, %d times compiling, %v", d.runs, d.compiling, batch.Columns)
	}
	// Another text of the shape, as sqlcommenter writes one for each request.
	prepare("SELECT count(DISTINCT a), count(*) FROM t WHERE a > 0 AND a < 7 /*traceparent='00-1'*/")
	for b.engine.devices.prepares.Load() > 0 { // those that have begun are counted at once
		time.Sleep(time.Millisecond)
	}
	if d.prepared != 3 {
		t.Errorf("%d kernels were asked for, the last of them of a shape that has run", d.prepared)
	}
}
