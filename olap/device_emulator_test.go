package olap

import (
	"fmt"
	"log/slog"
	"testing"

	"pgaccel/gpu"
	"pgaccel/gpu/emulator"
)

// emulated is a manager of devices that has an emulated one.
func emulated(t *testing.T) *gpu.Manager {
	t.Helper()
	e, err := emulator.New(emulator.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	m := gpu.New(gpu.Options{Memory: 64 << 20, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { m.Close() })
	if err := m.Attach(e); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEmulatedDevice runs random queries through the manager of devices on an emulated one:
// generated kernels, columns as the store encodes them, lookups that they build. There are
// few, since each has a kernel to be compiled.
func TestEmulatedDevice(t *testing.T) {
	buildsSmall(t)
	o := newOnPlainDevice()
	o.runner = emulated(t)
	queries := 16
	if testing.Short() {
		queries = 5
	}
	for seed := uint64(0); o.used < queries; seed++ {
		make := newWorld
		if seed%3 == 2 {
			make = func(t testing.TB, seed uint64) *world { return newWorldOf(t, seed, mortal) }
		}
		w := make(t, 11000+seed)
		for n := 0; n < 4 && o.used < queries; n++ {
			q := w.deviceQuery()
			if n == 3 {
				q = w.rowQuery()
			}
			o.check(t, fmt.Sprintf("seed %d query %d", seed, n), w, q)
		}
		if seed == 200 {
			t.Fatalf("the device computed %d queries: %v", o.used, o.fallbacks)
		}
	}
	t.Logf("%d queries, %d by the device; not: %v", o.queries, o.used, o.fallbacks)
	if o.fallbacks[fallbackFault] > 0 {
		t.Errorf("the device failed %d times", o.fallbacks[fallbackFault])
	}
}
