package engine

import (
	"context"
	"testing"
	"time"

	"pgaccel/gpu"
	"pgaccel/gpu/program"
)

// TestDeviceChoice plays executions whose times are given, and counts where they ran.
func TestDeviceChoice(t *testing.T) {
	play := func(cpu, device time.Duration) (onDev int, spent [sides]time.Duration) {
		var c deviceChoice
		for range 1000 {
			s, d := onCPU, cpu
			if c.choose() {
				s, d = onDevice, device
				onDev++
			}
			c.add(s, d)
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
		if c.choose() {
			s = onDevice
			if i >= 3000 {
				late++
			}
		}
		c.add(s, times[s])
	}
	if late < 900 {
		t.Errorf("a device that became faster ran %d of the last 1000 executions", late)
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
