package gpu

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"pgaccel/gpu/program"
)

// flights are the queries that wait or run: one that is equal to one of them does not run,
// but gets what that one gets. Queries are compared, not hashed: mostly there are none, or
// few, and they differ early.
type flights struct {
	mu   sync.Mutex
	list []*flight
}

// flight is a query that others may have joined. What it points to is the leader's until
// the flight has left the list.
type flight struct {
	q    *program.Query
	wait bool
	key  []byte // of the program; nil until somebody asked
	done chan struct{}

	joined int // under flights.mu, while the flight is in the list
	// After done: what the leader got; r is nobody's.
	r     *program.Result
	stats Stats
	err   error
}

// errAlone says that who waited for another query has to compute by itself after all.
var errAlone = errors.New("the query that was joined did not end")

// sharable reports whether equal queries are told by what sameQuery looks at.
func sharable(q *program.Query) bool {
	if q.TableID == 0 || len(q.Segments) == 0 || q.Sink.Kind == program.SinkBuild {
		return false
	}
	for i := range q.Lookups {
		if q.Lookups[i].ID == 0 {
			return false
		}
	}
	for i := range q.Segments[0].Columns {
		if q.Segments[0].Columns[i].ID == 0 {
			return false
		}
	}
	return true
}

// sameQuery reports whether two queries that are sharable have the same result. Segments are
// equal by TableID, lookups by ID.
func sameQuery(a, b *program.Query) bool {
	return a.TableID == b.TableID && len(a.Segments) == len(b.Segments) &&
		a.Groups == b.Groups && a.Expect == b.Expect && a.Counted == b.Counted && a.Top == b.Top && a.TopDigit == b.TopDigit && slices.Equal(a.Having, b.Having) &&
		slices.Equal(a.Constants, b.Constants) && slices.Equal(a.Ranges, b.Ranges) && slices.Equal(a.Digits, b.Digits) &&
		slices.EqualFunc(a.Segments[0].Columns, b.Segments[0].Columns, func(x, y program.SegmentColumn) bool { return x.ID == y.ID }) &&
		slices.EqualFunc(a.Lookups, b.Lookups, func(x, y program.LookupData) bool {
			return x.ID == y.ID && x.Lo == y.Lo && x.Size == y.Size && x.Null == y.Null
		}) &&
		slices.EqualFunc(a.Bits, b.Bits, func(x, y program.Bits) bool { return x.Same(&y) }) &&
		slices.EqualFunc(a.Sets, b.Sets, slices.Equal) &&
		slices.EqualFunc(a.Tables, b.Tables, func(x, y program.TableData) bool { return x.Same(&y) })
}

// enter returns the flight that q joins, or a new one that it leads.
func (f *flights) enter(q *program.Query, wait bool) (fl *flight, leads bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var key []byte
	for _, fl := range f.list {
		if fl.wait != wait || !sameQuery(fl.q, q) {
			continue
		}
		if fl.q.Program != q.Program {
			if key == nil {
				key = appendProgram(nil, q.Program)
			}
			if fl.key == nil {
				fl.key = appendProgram(nil, fl.q.Program)
			}
			if !bytes.Equal(key, fl.key) {
				continue
			}
		}
		fl.joined++
		return fl, false
	}
	fl = &flight{q: q, wait: wait, key: key, done: make(chan struct{}), err: errAlone}
	f.list = append(f.list, fl)
	return fl, true
}

// leave ends a flight: nobody joins it any more, and who has gets the result.
func (f *flights) leave(fl *flight, r *program.Result, stats Stats, err error) {
	f.mu.Lock()
	f.list = slices.DeleteFunc(f.list, func(o *flight) bool { return o == fl })
	joined := fl.joined
	f.mu.Unlock()
	if joined > 0 {
		fl.r, fl.stats, fl.err = copyResult(r), Stats{Device: stats.Device}, err
	}
	close(fl.done)
}

// share computes q by run, or has the result of one that is equal and under way: computed is
// false then. Errors are shared but for those of the leader's context.
func (f *flights) share(ctx context.Context, q *program.Query, wait bool, run func() (*program.Result, Stats, error)) (r *program.Result, stats Stats, err error, computed bool) {
	for {
		fl, leads := f.enter(q, wait)
		if leads {
			err = errAlone // where run panics
			defer func() {
				shared := err
				if err != nil && ctx.Err() != nil {
					shared = errAlone
				}
				f.leave(fl, r, stats, shared)
			}()
			r, stats, err = run()
			return r, stats, err, true
		}
		began := time.Now()
		select {
		case <-fl.done:
		case <-ctx.Done():
			return nil, Stats{}, ctx.Err(), false
		}
		if fl.err != errAlone {
			stats = fl.stats
			stats.Times.Wait = time.Since(began)
			return copyResult(fl.r), stats, fl.err, false
		}
	}
}

// copyResult returns a result whose slices are nobody else's.
func copyResult(r *program.Result) *program.Result {
	if r == nil {
		return nil
	}
	c := *r
	c.Numbers, c.Prefix, c.Rows = slices.Clone(r.Numbers), slices.Clone(r.Prefix), slices.Clone(r.Rows)
	c.Accs, c.Bitmaps = slices.Clone(r.Accs), slices.Clone(r.Bitmaps)
	for i, a := range c.Accs {
		c.Accs[i] = program.Values{V: slices.Clone(a.V), Hi: slices.Clone(a.Hi)}
	}
	for i, b := range c.Bitmaps {
		c.Bitmaps[i] = slices.Clone(b)
	}
	return &c
}
