package engine

import (
	"sync/atomic"

	"pgaccel/internal/processors"
	"pgaccel/olap"
)

// Shared is what all executions of a process share, of however many engines: the cores, query memory and kept results.
type Shared struct {
	slots   *olap.Slots
	memory  queryMemory
	results *resultCache
}

// NewShared returns it. workers is Options.Workers, queryMemory and reuseMemory are bounds in bytes: see Options.
func NewShared(workers int, queryMemory, reuseMemory int64) *Shared {
	s := &Shared{slots: olap.NewSlots(max(workers, processors.Count())), results: newResultCache(reuseMemory)}
	s.memory.limit.Store(queryMemory)
	return s
}

// Waiting returns the number of goroutines of executions that wait for a core.
func (s *Shared) Waiting() int { return s.slots.Waiting() }

// Queued returns the number of executions that wait until others have ended.
func (s *Shared) Queued() int { return s.slots.Queued() }

// IndexesAsked returns how often a bitmap index answered a condition for a segment, of
// all engines of the process.
func (s *Shared) IndexesAsked() int64 { return olap.IndexesAsked() }

// queryMemory is what all executions of the process hold together: hash tables and
// intermediate results while they run, and then their result until the portal, the slow
// reader or the check that it is for lets it go. It is accounted as it grows, and an
// execution that would go beyond the limit is forwarded.
type queryMemory struct {
	limit atomic.Int64
	used  atomic.Int64 // bytes
}

// reservation is one execution's part of it. Its methods may be called by any goroutine.
type reservation struct {
	of   *queryMemory
	held atomic.Int64
}

// grow takes more, or gives back fewer than 0. It reports false, and takes nothing, where that is more
// than there is.
func (r *reservation) grow(bytes int64) bool {
	for {
		used := r.of.used.Load()
		if bytes > 0 && used+bytes > r.of.limit.Load() {
			return false
		}
		if r.of.used.CompareAndSwap(used, used+bytes) {
			r.held.Add(bytes)
			return true
		}
	}
}

// keep gives back what is held beyond the given bytes, or takes what is missing of them.
// It is called by one goroutine, after the last grow.
func (r *reservation) keep(bytes int64) bool {
	more := bytes - r.held.Load()
	if more > 0 {
		return r.grow(more)
	}
	r.held.Add(more)
	r.of.used.Add(more)
	return true
}

// release gives everything back. To call it again does nothing.
func (r *reservation) release() { r.of.used.Add(-r.held.Swap(0)) }

// QueryMemory returns the bytes that executions and their results hold now, and the limit.
func (s *Shared) QueryMemory() (used, limit int64) {
	return s.memory.used.Load(), s.memory.limit.Load()
}

// SetQueryMemory changes the limit.
func (s *Shared) SetQueryMemory(bytes int64) { s.memory.limit.Store(bytes) }
