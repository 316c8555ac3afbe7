package gpu

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"pgaccel/gpu/device"
	"pgaccel/gpu/emulator"
	"pgaccel/gpu/program"
)

// TestRandomManagers has random budgets, devices and faults under random queries.
func TestRandomManagers(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		mem := newMemory(t, 8<<20)
		budget := int64(230<<10 + r.IntN(1<<20))
		opt := Options{Memory: budget, chunk: int64(4<<10 + r.IntN(32<<10)), File: mem.f, Offset: mem.offset, pieces: r.IntN(2) == 0, Streams: 1 + r.IntN(6)}
		var ex device.Executor = newEmulator(t, emulator.Options{Devices: 1 + r.IntN(2)})
		flak := r.IntN(3) == 0
		if flak {
			f := &flaky{Executor: ex}
			k := int64(5 + r.IntN(40))
			f.run = func(n int64, _ *device.Batch) error {
				if n%k == k-1 {
					return &device.Fault{Kind: device.FaultOther, Call: "test", Text: "a batch failed"}
				}
				return nil
			}
			ex = f
		}
		m := newManager(t, opt, ex)
		fact, dim := testTables(r, mem)
		var queries []*program.Query
		for i := range 60 {
			if i%4 == 3 {
				fact.change(r)
			}
			q := testShapes[r.IntN(len(testShapes))](r, fact, dim)
			if r.IntN(8) == 0 {
				q.TableID = 0
			}
			queries = append(queries, q)
		}
		var wg sync.WaitGroup
		for g := range 5 {
			wg.Go(func() {
				for i := range 24 {
					err := compare(m, queries[min(i*2+g%3, 59)])
					var fault *device.Fault
					if err != nil && !(flak && errors.As(err, &fault)) {
						t.Errorf("seed %d budget %d: %v", seed, budget, err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := m.idle(); err != nil {
			t.Fatal(seed, err)
		}
		_ = m.Close()
	}
}
