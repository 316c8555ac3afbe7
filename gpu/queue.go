package gpu

import (
	"context"
	"sync"
	"time"
)

// queue hands the streams of a device to queries. Callers that wait get turns one after the
// other, each with its queries in the order they came.
type queue struct {
	mu      sync.Mutex
	free    []int           // streams
	streams int             // in all
	turns   []uint64        // callers that wait, in order of their turn
	waiting map[uint64]line // by caller
	length  int             // queries that wait
	mean    float64         // nanoseconds that a query holds a stream, an average that forgets
	anon    uint64          // the number of the last caller without one, from the top
	closed  error
}

type line []*ticket

type ticket struct {
	granted chan int // the stream; closed without one where the queue was
}

func newQueue(streams int) *queue {
	q := &queue{streams: streams, waiting: map[uint64]line{}, mean: float64(200 * time.Microsecond)}
	for s := streams - 1; s >= 0; s-- {
		q.free = append(q.free, s)
	}
	return q
}

// enter waits for a stream. Where maxWait is not negative, a query that would wait longer by
// what others took gets ErrBusy at once, and one that did wait so long then.
func (q *queue) enter(ctx context.Context, caller uint64, maxWait time.Duration) (int, error) {
	q.mu.Lock()
	if q.closed != nil {
		defer q.mu.Unlock()
		return 0, q.closed
	}
	if n := len(q.free); n > 0 { // then nobody waits
		s := q.free[n-1]
		q.free = q.free[:n-1]
		q.mu.Unlock()
		return s, nil
	}
	if maxWait >= 0 && q.expect() > maxWait {
		q.mu.Unlock()
		return 0, ErrBusy
	}
	if caller == 0 {
		q.anon--
		caller = q.anon
	}
	t := &ticket{granted: make(chan int, 1)}
	if len(q.waiting[caller]) == 0 {
		q.turns = append(q.turns, caller)
	}
	q.waiting[caller] = append(q.waiting[caller], t)
	q.length++
	q.mu.Unlock()

	var late <-chan time.Time
	if maxWait >= 0 {
		timer := time.NewTimer(max(maxWait, time.Millisecond))
		defer timer.Stop()
		late = timer.C
	}
	err := error(ErrBusy)
	select {
	case s, ok := <-t.granted:
		if ok {
			return s, nil
		}
		return 0, q.closed
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.remove(caller, t) { // its turn came meanwhile
		if s, ok := <-t.granted; ok {
			if ctx.Err() == nil {
				return s, nil
			}
			q.put(s)
		} else {
			err = q.closed
		}
	}
	return 0, err
}

// expect is how long a query that comes now will wait.
func (q *queue) expect() time.Duration {
	return time.Duration(q.mean * float64(q.length+1) / float64(q.streams))
}

// remove takes a ticket out of its line; false where it is in none.
func (q *queue) remove(caller uint64, t *ticket) bool {
	l := q.waiting[caller]
	for i, o := range l {
		if o != t {
			continue
		}
		q.length--
		if l = append(l[:i:i], l[i+1:]...); len(l) > 0 {
			q.waiting[caller] = l
			return true
		}
		delete(q.waiting, caller)
		for i, c := range q.turns {
			if c == caller {
				q.turns = append(q.turns[:i], q.turns[i+1:]...)
				break
			}
		}
		return true
	}
	return false
}

// leave gives a stream back that was held for so long.
func (q *queue) leave(stream int, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mean += (float64(took) - q.mean) / 16
	q.put(stream)
}

// put hands a stream to whose turn it is.
func (q *queue) put(stream int) {
	if len(q.turns) == 0 {
		q.free = append(q.free, stream)
		return
	}
	caller := q.turns[0]
	q.turns = append(q.turns[:0], q.turns[1:]...)
	l := q.waiting[caller]
	t := l[0]
	if len(l) > 1 {
		q.waiting[caller] = l[1:]
		q.turns = append(q.turns, caller)
	} else {
		delete(q.waiting, caller)
	}
	q.length--
	t.granted <- stream
}

// close ends the waiting of all with err, which later comers get too.
func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return
	}
	q.closed = err
	for _, l := range q.waiting {
		for _, t := range l {
			close(t.granted)
		}
	}
	q.turns, q.waiting, q.length = nil, map[uint64]line{}, 0
}
