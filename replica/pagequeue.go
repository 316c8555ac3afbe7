package replica

import (
	"sync"

	"pgaccel/catalog"
)

const (
	// splitPages are for one session: to start another for fewer costs more than it saves.
	splitPages = 512
	// rangePagesMin is the least that one COPY is for; it costs about a millisecond more
	// than the rows.
	rangePagesMin = 256
)

// pageRange is what one COPY brings: the pages [from, to) of a leaf, and what comes
// behind them where last is set.
type pageRange struct {
	leaf     catalog.Part
	from, to int64
	last     bool
}

// pageQueue hands the pages of a table's leaves out to the sessions that copy it, in
// their order: large ranges at first, smaller ones towards the end (guided
// self-scheduling, Polychronopoulos and Kuck 1987), so that all sessions end together
// and rows that lie together stay together. Where leaves are many and small, a session
// gets whole ones.
type pageQueue struct {
	mu       sync.Mutex
	leaves   []leafPages // that are not all handed out
	pages    int64       // of them that are not
	sessions int64
}

type leafPages struct {
	catalog.Part
	from, pages int64 // the next page to be handed out; all pages
}

// newPageQueue returns a queue for up to so many sessions; its sessions are how many
// are worth starting.
func newPageQueue(leaves []leafPages, sessions int) *pageQueue {
	q := &pageQueue{leaves: leaves}
	for _, l := range leaves {
		q.pages += l.pages
	}
	q.sessions = max(1, min(int64(sessions), q.pages/splitPages))
	return q
}

// take returns the next range, false where there is none left.
func (q *pageQueue) take() (r pageRange, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.leaves) == 0 {
		return pageRange{}, false
	}
	n := q.pages // one session copies a leaf in one piece
	if q.sessions > 1 {
		n = max(rangePagesMin, q.pages/(2*q.sessions))
	}
	l := &q.leaves[0]
	if l.pages-l.from < n+rangePagesMin {
		n = l.pages - l.from
	}
	r = pageRange{leaf: l.Part, from: l.from, to: l.from + n}
	l.from += n
	q.pages -= n
	if l.from >= l.pages {
		r.last = true
		q.leaves = q.leaves[1:]
	}
	return r, true
}

// empty reports whether all is handed out.
func (q *pageQueue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.leaves) == 0
}
