package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgaccel/internal/processors"
)

// TestGoroutinePool: each function runs once, beside all others; few goroutines wait for more; none does at the end.
func TestGoroutinePool(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	g := newGoroutinePool(ctx, &wg)
	const many = 500
	for range 3 {
		var ran atomic.Int32
		var all sync.WaitGroup
		together := make(chan struct{})
		all.Add(many)
		for range many {
			g.run(func() {
				if ran.Add(1) == many {
					close(together) // were some to wait for others, this would not be
				}
				<-together
				all.Done()
			})
		}
		all.Wait()
		if n := ran.Load(); n != many {
			t.Fatalf("%d functions ran, not %d", n, many)
		}
	}
	most := int32(2 * processors.Count())
	for began := time.Now(); g.idle.Load() < most; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d goroutines wait, not %d", g.idle.Load(), most)
		}
	}
	cancel()
	wg.Wait()
	if n := g.idle.Load(); n != 0 {
		t.Errorf("%d goroutines wait", n)
	}
	done := make(chan struct{})
	g.run(func() { close(done) }) // what still comes is done
	<-done
	wg.Wait()
}
