package olap

import (
	"fmt"
	"testing"

	"pgaccel/gpu/program"
)

// TestManyPartnersOnDevice has a device multiply the rows of random queries by joins on no unique key, and find
// those that have a partner.
func TestManyPartnersOnDevice(t *testing.T) {
	buildsSmall(t)
	worlds := uint64(50)
	if testing.Short() {
		worlds = 20
	}
	o := newOnPlainDevice()
	for seed := range worlds {
		w := newWorld(t, 21000+seed)
		if !w.makeMany() || w.pairs() > 30_000 {
			continue
		}
		o.device.limits = deviceLimits[seed%uint64(len(deviceLimits))]
		for n := range 10 {
			q := w.deviceQuery()
			if n%3 == 2 {
				q = w.rowQuery()
			}
			o.check(t, fmt.Sprintf("seed %d query %d", seed, n), w, q)
		}
	}
	o.log(t)
	if o.used < 30 || o.device.many < 50 || o.device.sinks[program.SinkBitmap] < 10 || o.fallbacks[fallbackFault] > 0 {
		t.Errorf("%d of %d queries, %d lookups of many partners, sinks %v, not: %v", o.used, o.answered, o.device.many, o.device.sinks, o.fallbacks)
	}
}

// TestManyPartnersEmulated does a few of these on the emulated device.
func TestManyPartnersEmulated(t *testing.T) {
	buildsSmall(t)
	o := newOnPlainDevice()
	o.runner = emulated(t)
	queries := 8
	if testing.Short() {
		queries = 3
	}
	for seed := uint64(0); o.used < queries; seed++ {
		w := newWorld(t, 22000+seed)
		if !w.makeMany() || w.pairs() > 10_000 {
			continue
		}
		o.check(t, fmt.Sprintf("seed %d", seed), w, w.deviceQuery())
		if seed == 200 {
			t.Fatalf("the device computed %d queries: %v", o.used, o.fallbacks)
		}
	}
	if o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device failed %d times", o.fallbacks[fallbackFault])
	}
}
