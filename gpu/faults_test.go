package gpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
)

// flaky is an executor with faults.
type flaky struct {
	device.Executor
	run     func(n int64, b *device.Batch) error // before batch n
	alloc   func(bytes int64) error
	compile func(s *device.Source) error
	batches atomic.Int64
}

func (f *flaky) Run(ctx context.Context, dev int, b *device.Batch) (*device.Reply, error) {
	if f.run != nil {
		if err := f.run(f.batches.Add(1), b); err != nil {
			return nil, err
		}
	}
	return f.Executor.Run(ctx, dev, b)
}

func (f *flaky) Alloc(dev int, bytes int64) (device.Pointer, error) {
	if f.alloc != nil {
		if err := f.alloc(bytes); err != nil {
			return 0, err
		}
	}
	return f.Executor.Alloc(dev, bytes)
}

func (f *flaky) Compile(ctx context.Context, dev int, s device.Source) (device.Module, error) {
	if f.compile != nil {
		if err := f.compile(&s); err != nil {
			return 0, err
		}
	}
	return f.Executor.Compile(ctx, dev, s)
}

// TestLost loses the device in mid-query, at every batch: the fault is said and counted, and the
// next executor begins anew.
func TestLost(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	m := newManager(t, Options{Memory: 600 << 10, chunk: 16 << 10}, nil)
	fact, dim := testTables(r, nil)
	if _, _, err := m.Run(context.Background(), testShapes[0](r, fact, dim), RunOptions{}); device.KindOf(err) != device.FaultUnavailable {
		t.Fatal(err)
	}
	lost := 0
	for at := range int64(12) {
		f := &flaky{Executor: newEmulator(t, emulator.Options{})}
		f.run = func(n int64, _ *device.Batch) error {
			if n > at {
				return &device.Fault{Kind: device.FaultLost, Call: "test", Text: "pulled"}
			}
			return nil
		}
		if err := m.Attach(f); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			q := testShapes[r.IntN(len(testShapes))](r, fact, dim)
			err := compare(m, q)
			var refusal *refused
			if err == nil || errors.As(err, &refusal) {
				continue
			}
			if device.KindOf(err) != device.FaultLost {
				t.Fatal(err)
			}
			lost++
			break
		}
		if _, ok := m.Limits(); ok {
			t.Fatal("there are limits of a device that is lost")
		}
		if s := m.Status(); len(s) != 1 || s[0].Name != "none (pulled)" || s[0].Faults[device.FaultLost] != uint64(lost) {
			t.Fatalf("%d lost: %+v", lost, s)
		}
	}
	// Which kernels were running is held against them for a while, no longer.
	m.shapes = newShapes()
	if err := m.Attach(newEmulator(t, emulator.Options{})); err != nil {
		t.Fatal(err)
	}
	for _, shape := range testShapes {
		if err := compare(m, shape(r, fact, dim)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
}

// TestFaultsInFlight has batches and allocations fail at random under many queries: each gets
// an answer that is right or a fault, and nothing stays behind.
func TestFaultsInFlight(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	f := &flaky{Executor: newEmulator(t, emulator.Options{})}
	f.run = func(n int64, _ *device.Batch) error {
		if n%9 == 8 {
			return &device.Fault{Kind: device.FaultOther, Call: "test", Text: "a batch failed"}
		}
		return nil
	}
	var allocs atomic.Int64
	f.alloc = func(int64) error {
		if allocs.Add(1)%7 == 6 {
			return &device.Fault{Kind: device.FaultMemory, Call: "test", Text: "no memory"}
		}
		return nil
	}
	m := newManager(t, Options{Memory: 2 << 20, chunk: 32 << 10}, f)
	fact, dim := testTables(r, nil)
	queries := queriesAmidChanges(r, fact, dim, 30, 10)
	var good, bad atomic.Int64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20 {
				err := compare(m, queries[(g*7+i*11)%len(queries)])
				var fault *device.Fault
				switch {
				case err == nil:
					good.Add(1)
				case errors.As(err, &fault):
					bad.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := m.idle(); err != nil {
		t.Fatal(err)
	}
	if good.Load() == 0 || bad.Load() == 0 {
		t.Fatalf("%d good, %d bad", good.Load(), bad.Load())
	}
}
