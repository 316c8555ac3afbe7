package colstore

import (
	"slices"
	"sync"
	"time"
)

// history is what is known of snapshots: those that were seen on the server, by which
// commits are folded in, and those that readers go on with.
type history struct {
	lag   time.Duration
	limit int64
	now   func() time.Time

	mu       sync.Mutex
	observed []observation // ascending by time
	spacing  time.Duration // between them, at least
	passed   observation   // the newest known that the stream has passed; zero for none
	pins     map[*pin]struct{}
}

type observation struct {
	snap Snapshot
	lsn  uint64
	at   time.Time
}

type pin struct {
	snap  Snapshot
	since time.Time
}

func (h *history) init(o Options) {
	h.lag, h.limit, h.now = o.FoldLag, o.HistoryLimit, o.now
	if h.lag == 0 {
		h.lag = 250 * time.Millisecond
	}
	if h.limit == 0 {
		h.limit = 256 << 20
	}
	if h.now == nil {
		h.now = time.Now
	}
	h.spacing = h.lag / spacingShare
	h.pins = map[*pin]struct{}{}
}

// observedMax bounds the list. Where the stream or the folding is so far behind that it
// is reached, every other entry must do, and further ones come half as often.
const observedMax = 256

// spacingShare: as long as all goes well, entries are that part of the lag apart.
const spacingShare = 16

// Observe tells of a snapshot that was taken on the server not before at, and of an
// insert position read after it, normalised. Commits that an observed snapshot sees
// can be folded some time later, and a reader that allows staleness may use it
// (Fresh).
func (s *Store) Observe(snap Snapshot, lsn uint64, at time.Time) {
	applied := s.progress.reached.Load() // the position + 1, 0 while not connected
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	o := observation{snap, lsn, at}
	n := len(h.observed)
	if n > 0 && at.Before(h.observed[n-1].at) {
		return
	}
	h.pass(applied)
	if applied > lsn {
		h.passed = o
	}
	if n > 1 && at.Sub(h.observed[n-2].at) < h.spacing {
		h.observed[n-1] = o
		return
	}
	if n >= observedMax {
		h.spacing *= 2
		kept := h.observed[:0]
		for i, x := range h.observed {
			if i%2 == 0 {
				kept = append(kept, x)
			}
		}
		clear(h.observed[len(kept):])
		h.observed = kept
	}
	h.observed = append(h.observed, o)
}

// forget drops what was observed: it says nothing about another server's log.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observed, h.passed = nil, observation{}
}

// pass notes which observed snapshot the stream has passed.
func (h *history) pass(applied uint64) {
	for _, o := range slices.Backward(h.observed) {
		if o.lsn < applied {
			if !o.at.Before(h.passed.at) {
				h.passed = o
			}
			return
		}
	}
}

// Fresh returns the newest observed snapshot whose position the stream has passed,
// provided that it is at most maxAge old.
func (s *Store) Fresh(maxAge time.Duration) (Snapshot, bool) {
	applied := s.progress.reached.Load()
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pass(applied)
	if h.passed.at.IsZero() || h.now().Sub(h.passed.at) > maxAge {
		return Snapshot{}, false
	}
	return h.passed.snap, true
}

// WantsSnapshot reports whether there are commits to fold that no observed snapshot
// has released yet: somebody should take a snapshot and Observe it.
func (s *Store) WantsSnapshot() bool {
	h := &s.history
	h.mu.Lock()
	var newest Snapshot
	if n := len(h.observed); n > 0 {
		newest = h.observed[n-1].snap
	}
	h.mu.Unlock()
	return slices.ContainsFunc(s.relations(), func(r *Relation) bool {
		r.mu.Lock()
		heads := r.heads
		r.mu.Unlock()
		return slices.ContainsFunc(heads, func(h head) bool { return !newest.Sees(h.xid) })
	})
}

// Pin keeps what snap needs, as far as it is still there, until release is called
// (once). Past the limit of history (Options.HistoryLimit) it is dropped all the same.
func (s *Store) Pin(snap Snapshot) (release func()) {
	h := &s.history
	p := &pin{snap, h.now()}
	h.mu.Lock()
	h.pins[p] = struct{}{}
	h.mu.Unlock()
	return func() {
		h.mu.Lock()
		delete(h.pins, p)
		h.mu.Unlock()
		s.behind.wake()
	}
}

// History returns what is kept for snapshots that do not see all: the bytes of commits
// that are not folded in, and how many those are.
func (s *Store) History() (bytes int64, commits int) {
	for _, r := range s.relations() {
		r.mu.Lock()
		bytes += r.history
		commits += len(r.log)
		r.mu.Unlock()
	}
	return bytes, commits
}

func (s *Store) relations() []*Relation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*Relation, 0, len(s.tables))
	for _, p := range s.tables {
		if p.relation != nil {
			all = append(all, p.relation)
		}
	}
	return all
}

// reference returns the snapshot to fold by, and the pins.
func (h *history) reference() (ref Snapshot, ok bool, pins []Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	limit := h.now().Add(-h.lag)
	k := len(h.observed)
	for k > 0 && h.observed[k-1].at.After(limit) {
		k--
	}
	if k == 0 {
		return ref, false, nil
	}
	h.observed = slices.Delete(h.observed, 0, k-1)
	if len(h.observed) < observedMax/4 {
		h.spacing = h.lag / spacingShare
	}
	for p := range h.pins {
		pins = append(pins, p.snap)
	}
	return h.observed[0].snap, true, pins
}

// oldestPin returns its age, 0 where there is none.
func (h *history) oldestPin() (age time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.pins {
		age = max(age, h.now().Sub(p.since))
	}
	return age
}
