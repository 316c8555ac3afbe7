package proxy

import (
	"context"
	"sync"
	"sync/atomic"

	"pgaccel/internal/processors"
)

// goroutinePool runs functions, each on a goroutine of its own. Some of them wait for a next function: a new one begins with
// a stack of a few kilobytes, which is copied two or three times on the way down through planning and execution.
type goroutinePool struct {
	ctx  context.Context // at its end nobody waits
	wg   *sync.WaitGroup // has them all
	next chan func()     // not buffered: who waits takes it
	idle atomic.Int32    // goroutines that wait, or are about to
}

func newGoroutinePool(ctx context.Context, wg *sync.WaitGroup) *goroutinePool {
	return &goroutinePool{ctx: ctx, wg: wg, next: make(chan func())}
}

// run runs f.
func (g *goroutinePool) run(f func()) {
	select {
	case g.next <- f:
	default:
		g.wg.Go(func() { g.loop(f) })
	}
}

func (g *goroutinePool) loop(f func()) {
	for {
		f()
		f = nil // what it holds is not held while this waits
		if g.idle.Add(1) > int32(2*processors.Count()) {
			g.idle.Add(-1)
			return
		}
		select {
		case f = <-g.next:
			g.idle.Add(-1)
		case <-g.ctx.Done():
			g.idle.Add(-1)
			return
		}
	}
}
