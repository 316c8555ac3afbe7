package gpu

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// Tables of groups that were too small.

const (
	// growBy is how much larger the table is the next time.
	growBy = 8
	// growFrom is as few groups as any table has room for.
	growFrom = 256
	// grownMax is how many queries are remembered.
	grownMax = 1 << 10
)

// grown remembers how many groups queries turned out to have: about so many more than were
// expected.
type grown struct {
	mu  sync.Mutex
	lru *simplelru.LRU[grownKey, uint64]
}

// grownKey is what queries of as many groups mostly have in common.
type grownKey struct{ table, groups, expect uint64 }

func newGrown() *grown {
	l, err := simplelru.NewLRU[grownKey, uint64](grownMax, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &grown{lru: l}
}

// fit computes q, again with room for more groups as long as there are more than were expected
// and the larger table may take an eighth of the devices' memory. Then the result is Full.
func (m *Manager) fit(ctx context.Context, s *set, q *program.Query, opt RunOptions) (*program.Result, Stats, error) {
	if q.Sink.Kind != program.SinkGroups || q.Sink.Place != program.PlaceHash {
		return m.compute(ctx, s, q, opt)
	}
	key := grownKey{q.TableID, q.Groups, q.Expect}
	expect := q.Expect
	if q.TableID != 0 {
		m.grown.mu.Lock()
		if n, ok := m.grown.lru.Get(key); ok {
			expect = max(expect, n)
		}
		m.grown.mu.Unlock()
	}
	most := m.groupsMax(s, q)
	var all Stats
	var full *program.Result // of the table before
	for {
		again := *q
		again.Expect = expect
		r, stats, err := m.compute(ctx, s, &again, opt)
		all.Add(stats)
		all.BytesRead, all.Indexed = stats.BytesRead, stats.Indexed
		var fault *device.Fault
		if full != nil && errors.As(err, &fault) && fault.Kind == device.FaultMemory {
			return full, all, nil
		}
		if err != nil || r.Fault {
			return r, all, err
		}
		if !r.Full {
			if full != nil && q.TableID != 0 {
				m.grown.mu.Lock()
				m.grown.lru.Add(key, expect)
				m.grown.mu.Unlock()
			}
			return r, all, nil
		}
		if expect >= most {
			return r, all, nil
		}
		full = r
		expect = min(max(expect, growFrom)*growBy, most)
		m.mu.Lock()
		m.counters[0].grown++
		m.mu.Unlock()
	}
}

// groupsMax is how many groups q is to have room for at most: those that there can be, and those
// that fit.
func (m *Manager) groupsMax(s *set, q *program.Query) uint64 {
	rows := uint64(0)
	for i := range q.Segments {
		rows += uint64(q.Segments[i].Rows)
	}
	words := 1
	if q.Sink.Prefix > 0 {
		words++
	}
	for _, a := range q.Sink.Accs {
		words += a.Kind.Words()
	}
	memory := s.devs[0].budget
	for _, d := range s.devs[1:] {
		memory = min(memory, d.budget)
	}
	// A slot has its key, the group and its place in the result; half of them are free, and their
	// number is a power of two.
	fits := uint64(memory) / 8 / uint64(4*8*(2+2*words))
	n := min(rows, fits)
	if q.Groups > 0 {
		n = min(n, q.Groups)
	}
	return n
}
