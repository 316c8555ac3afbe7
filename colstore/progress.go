package colstore

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// ErrStream is what Wait fails with while the replication stream is down.
var ErrStream = errors.New("the replication stream is not connected")

// progress is how far the stream has been seen, and who waits for more.
type progress struct {
	// reached is the applied position + 1 while connected, 0 while not: a waiter
	// that need not wait reads this and nothing else.
	reached atomic.Uint64
	hook    atomic.Pointer[func(target uint64)]
	// generation numbers the stream's connections, from 1; 0 while it is down.
	generation atomic.Uint64

	mu        sync.Mutex
	applied   uint64
	server    string // that the stream comes from
	connected bool
	connects  uint64 // SetConnected(true) so far
	waiters   waiterHeap
}

type waiter struct {
	lsn  uint64
	at   int        // in the heap; -1 once woken
	done chan error // buffered, one answer
}

// waiterHeap has the lowest position first.
type waiterHeap []*waiter

func (h waiterHeap) Len() int           { return len(h) }
func (h waiterHeap) Less(i, j int) bool { return h[i].lsn < h[j].lsn }
func (h waiterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *waiterHeap) Push(x any) {
	w := x.(*waiter)
	w.at = len(*h)
	*h = append(*h, w)
}
func (h *waiterHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.at = -1
	return w
}

// wake answers the waiters up to the applied position, or all where the stream is
// down. p.mu is held.
func (p *progress) wake() {
	if !p.connected {
		p.reached.Store(0)
		for len(p.waiters) > 0 {
			heap.Pop(&p.waiters).(*waiter).done <- ErrStream
		}
		return
	}
	p.reached.Store(p.applied + 1)
	for len(p.waiters) > 0 && p.waiters[0].lsn <= p.applied {
		heap.Pop(&p.waiters).(*waiter).done <- nil
	}
}

// Advance notes that everything before lsn has been seen; it never goes back.
func (s *Store) Advance(lsn uint64) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if lsn > p.applied {
		p.applied = lsn
		p.wake()
	}
}

// Restart sets which server the next stream comes from (catalog.DatabaseSQL) and the
// position from which it begins, which may be below what was applied: the log of another
// server, or of one that lost some. The stream must be down, and no table left that holds
// what the old log said.
func (s *Store) Restart(server string, lsn uint64) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.connected {
		panic("BUG: the position of a running stream is set")
	}
	p.server, p.applied = server, lsn
	s.history.forget()
}

// Server returns the server of the last Restart, "" before the first: the one that all
// tables, positions and observed snapshots are of. It stays as long as Generation does.
func (s *Store) Server() string {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return s.progress.server
}

// Applied returns the position of the last Advance, 0 before the first.
func (s *Store) Applied() uint64 {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return s.progress.applied
}

// SetConnected says whether the stream is up. While it is not, as at first, every
// Wait fails. What may have been missed in between is the caller's to settle
// before it says true again.
func (s *Store) SetConnected(up bool) {
	p := &s.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connected = up
	if up {
		p.connects++
		p.generation.Store(p.connects)
	} else {
		p.generation.Store(0)
	}
	p.wake()
}

// Generation identifies the stream's connection: a number that each SetConnected(true)
// changes, 0 while the stream is down. What was seen to be true of the stream holds
// as long as it stays.
func (s *Store) Generation() uint64 { return s.progress.generation.Load() }

// OnWait sets the hook that is called once for each Wait that is not satisfied at
// once, with its target, on the waiter's goroutine, before it sleeps. It must be
// quick.
func (s *Store) OnWait(f func(target uint64)) { s.progress.hook.Store(&f) }

// Waiting returns how many calls of Wait have not returned.
func (s *Store) Waiting() int {
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	return len(s.progress.waiters)
}

// Wait returns when everything before lsn has been seen: at once where it has.
// It fails with ErrStream while the stream is down, and with ctx.Err() where ctx
// ends first.
func (s *Store) Wait(ctx context.Context, lsn uint64) error {
	p := &s.progress
	if p.reached.Load() > lsn {
		return nil
	}
	p.mu.Lock()
	switch {
	case !p.connected:
		p.mu.Unlock()
		return ErrStream
	case p.applied >= lsn:
		p.mu.Unlock()
		return nil
	}
	w := &waiter{lsn: lsn, done: make(chan error, 1)}
	heap.Push(&p.waiters, w)
	p.mu.Unlock()

	if hook := p.hook.Load(); hook != nil {
		(*hook)(lsn)
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.at < 0 { // answered meanwhile
		return <-w.done
	}
	heap.Remove(&p.waiters, w.at)
	return ctx.Err()
}
