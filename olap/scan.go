package olap

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/internal/simd"
)

// sink takes the selected rows of a worker's tile.
type sink interface {
	// tile is called with w's selection not empty.
	tile(w *worker)
}

// run scans all segments. sinkOf returns the sink of one worker, of one after the other.
func (p *pipeline) run(sinkOf func(w *worker) sink) error {
	if p.never || len(p.tab.Segments) == 0 {
		return nil
	}
	var making sync.Mutex
	newSink := func(w *worker) sink {
		making.Lock()
		defer making.Unlock()
		return sinkOf(w)
	}
	ms := p.x.opt.morsels(p.tab)
	if p.keep != nil {
		ms = wholeSegments
	}
	workers := min(p.x.opt.Workers, ms.count(p.tab))
	if p.table == 0 {
		segments, rows := p.read(math.MaxInt)
		if p.top == nil { // whose number is an estimate
			workers = max(1, min(workers, segments*ms.parts)) // each has a sink, which is made, and merged
		}
		if p.keep != nil {
			rows = max(rows-p.keep.rows(), 0)
		}
		if err := p.x.admit(time.Duration(float64(rows) * p.weight())); err != nil {
			return err
		}
		if share := p.x.opt.Share; share != nil && p.x.trace == nil && (p.keep == nil || !p.keep.gains()) && p.x.dicts[p.table] == nil {
			if ok, err := share.run(p, segments, newSink); ok {
				return err
			}
		}
	}
	var next atomic.Int64
	var stop atomic.Bool
	return p.x.together(workers, func(m *member) (err error) {
		ended := false
		defer func() {
			if err != nil || !ended {
				stop.Store(true)
			}
		}()
		w := newWorker(p)
		s := newSink(w)
		for !stop.Load() {
			i := int(next.Add(1) - 1)
			if i >= ms.count(p.tab) {
				break
			}
			if p.top != nil {
				segment, part := ms.of(i)
				i = p.top.order[segment]*ms.parts + part
			}
			if err = p.x.ctx.Err(); err == nil {
				if p.keep != nil {
					err = p.keep.segment(w, i, s)
				} else {
					err = w.scan(ms, i, s)
				}
			}
			if err != nil {
				return err
			}
			m.pause()
		}
		ended = true
		return nil
	})
}

// panicked carries a worker's panic to the caller's goroutine.
type panicked struct {
	value any
	stack []byte
}

// Error implements error: what was panicked with, and where.
func (e *panicked) Error() string { return fmt.Sprintf("%v\n%s", e.value, e.stack) }

// scan hands the rows of one morsel that pass all steps to s.
func (w *worker) scan(ms morsels, number int, s sink) error {
	if morsel != nil {
		morsel(1)
		defer morsel(-1)
	}
	live, from, to := w.enter(ms, number, s)
	for start := from; start < to; start += tileRows {
		if w.scanTile(start, live, s); w.err != nil {
			return w.err
		}
		w.core.Next()
	}
	return nil
}

// enter makes a morsel the current one. It returns the steps that are left, as a bit set, and the
// rows whose tiles s is to see: none where no row may pass, where s knows enough without, or where
// who has the segment's first part scans it whole.
func (w *worker) enter(ms morsels, number int, s sink) (live uint64, from, to int) {
	segment, part := ms.of(number)
	w.morsel, w.segment = number, segment
	w.seg = w.p.tab.Segments[segment]
	w.counts = w.seg.Live
	w.index.maybe = w.index.maybe[:0]
	whole := w.p.whole()
	if from, to = ms.within(part, w.seg.Rows); from == to && part > 0 || whole && part > 0 {
		return 0, 0, 0
	}
	skip, live := w.p.zone(w.seg)
	some := !skip
	if some && w.p.indexable {
		live, some = w.useIndexes(live)
	}
	if part == 0 {
		w.p.note(w.seg, !some)
	}
	c, counts := s.(counter)
	switch {
	case !some:
		return live, 0, 0
	case counts && w.passAll(live) && c.countsRows():
		if part > 0 || c.countRows(w, w.countLive()) {
			return live, 0, 0
		}
		whole = true // the others have nothing of it
	}
	if whole {
		from, to = 0, w.seg.Rows
	}
	return live, from, to
}

// scanTile hands the rows of the tile at start that pass all steps to s.
func (w *worker) scanTile(start int, live uint64, s sink) {
	if !w.begin(start, min(tileRows, w.seg.Rows-start)) {
		return
	}
	if w.filter(w.tileSteps(live)); len(w.f.sel) > 0 {
		s.tile(w)
		for w.fan != nil && w.err == nil && w.fanNext() {
			s.tile(w)
		}
	}
}

// counter is a sink that may need to know no more of a segment's rows than how many
// there are, or what its columns say by themselves.
type counter interface {
	// countsRows reports whether countRows is to be asked.
	countsRows() bool
	// countRows adds the n rows of w's segment that count, all of which pass; false
	// where the sink must see them.
	countRows(w *worker, n int64) bool
}

// passAll reports whether no step is left: count(*) touches no column then.
func (w *worker) passAll(live uint64) bool {
	return len(w.p.steps) <= 64 && live&(1<<uint(len(w.p.steps))-1) == 0
}

// countLive is the number of the segment's rows that count.
func (w *worker) countLive() int64 {
	n := w.seg.Rows
	if w.counts != nil {
		whole, rest := n>>6, uint(n)&63
		if n = simd.Count(w.counts[:whole]); rest != 0 { // beyond the rows anything may stand
			n += bits.OnesCount64(w.counts[whole] & (1<<rest - 1))
		}
	}
	return int64(n)
}
