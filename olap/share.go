package olap

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/colstore"
	"pgaccel/internal/processors"
)

// Sharer lets queries that run at the same time over the same version of a table scan
// it together: a column that several of them read is decoded once for all. Without
// one, Options.Share nil, every query scans by itself. It is safe for concurrent use.
//
// A scan goes round the table's segments for as long as anybody rides along. A query
// gets on at whatever segment comes next and off when it has seen each once, so that
// nobody waits for a scan to begin:
//
//	segments   0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 ...
//	query A        |---------------|
//	query B              |---------------|
//
// Within a segment the riders take turns tile by tile, while the tile's decoded columns
// are in the first-level cache.
type Sharer struct {
	mu    sync.Mutex
	scans map[*colstore.Table]*sharedScan

	joined atomic.Int64
	hold   chan struct{} // tests: scans begin once it is closed
}

// NewSharer returns a Sharer.
func NewSharer() *Sharer { return &Sharer{scans: map[*colstore.Table]*sharedScan{}} }

// Joined returns how many queries have got on a scan that was under way.
func (s *Sharer) Joined() int64 { return s.joined.Load() }

// sharedScan is one table's.
type sharedScan struct {
	tab     *colstore.Table
	morsels morsels
	next    int // morsel
	riders  []*rider
	drivers int
	workers int    // the most drivers
	slots   *Slots // nil: there is no bound
	turn    *turn
}

// rider is one query's part of a shared scan.
type rider struct {
	p      *pipeline
	sinks  func(*worker) sink // makes the sink of a worker
	weight float64
	left   int // morsels that no driver has taken yet; guarded by Sharer.mu
	flying int // morsels that drivers are at; likewise
	failed atomic.Bool
	done   chan struct{}

	mu  sync.Mutex
	err error
	// idle are the worker states that no driver uses at the moment. A driver takes one
	// for a morsel: there are never more than drivers.
	idle []*seat
}

// seat is a rider's worker and sink. Only one driver at a time uses it.
type seat struct {
	w    *worker
	sink sink
	bits *interlacedRows // where the sink is a bitmapRows
	live uint64          // of the morsel, with its rows and their end (worker.enter)
	from int
	to   int
}

func (r *rider) fail(err error) {
	r.mu.Lock()
	if r.err == nil {
		r.err = err
	}
	r.mu.Unlock()
	r.failed.Store(true)
}

var (
	// shareSegments is the least number of segments that must be read for a query to
	// share its scan. Tests make it small.
	shareSegments = 4
	// shareUnlike is how many times more work the others may bring to each segment than
	// the query itself: a light query would be slowed to the pace of heavy ones.
	shareUnlike = 4.0
)

// weight estimates nanoseconds a row, roughly: it is compared with other queries' only.
func (p *pipeline) weight() float64 {
	cost, share := 0.5, 1.0
	for i := range p.steps {
		s := &p.steps[i]
		if s.cost > 100 {
			continue // for zones only
		}
		cost += share * s.cost
		share *= s.share
	}
	return cost + 4*share
}

// read returns the number of segments that zone maps do not exclude, and their rows; it stops
// looking where there are enough.
func (p *pipeline) read(enough int) (segments, rows int) {
	if p.top != nil {
		return p.top.read(p)
	}
	for _, seg := range p.tab.Segments {
		if skip, _ := p.zone(seg); !skip {
			segments++
			if rows += seg.Rows; rows >= enough {
				break
			}
		}
	}
	return segments, rows
}

// run scans the pipeline's table for it, if need be with others; n segments are read. ok is
// false where the query had better scan by itself.
func (s *Sharer) run(p *pipeline, n int, sinks func(*worker) sink) (ok bool, err error) {
	eager := p.x.opt.Eager
	if !eager && (n < shareSegments || 2*n < len(p.tab.Segments)) {
		return false, nil
	}
	ms := p.x.opt.morsels(p.tab)
	r := &rider{p: p, sinks: sinks, weight: p.weight(), left: ms.count(p.tab), done: make(chan struct{})}
	s.mu.Lock()
	scan := s.scans[p.tab]
	if scan == nil {
		scan = &sharedScan{tab: p.tab, morsels: ms, workers: p.x.opt.Workers, slots: p.x.opt.Slots}
		if scan.slots != nil {
			scan.turn = scan.slots.begin(true)
		}
		s.scans[p.tab] = scan
	}
	weights := 0.0
	for _, o := range scan.riders {
		weights += o.weight
	}
	if weights > shareUnlike*r.weight*float64(max(len(scan.riders), 1)) && !eager || scan.workers != p.x.opt.Workers || scan.morsels != ms {
		s.mu.Unlock()
		return false, nil
	}
	if len(scan.riders) > 0 {
		s.joined.Add(1)
	}
	scan.riders = append(scan.riders, r)
	others := min(scan.workers, ms.count(p.tab)) - scan.drivers
	scan.drivers += max(others, 0)
	s.mu.Unlock()
	p.x.aside(func() {
		if others > 0 {
			processors.Start(others-1, func() { s.drive(scan, nil) })
			s.drive(scan, r)
		}
		<-r.done
	})
	if e, is := r.err.(*panicked); is {
		panic(e)
	}
	return true, r.err
}

// drive scans morsels until no rider wants one. Where the goroutine is a rider's own, another
// goes on in its place once there are none left for that one.
func (s *Sharer) drive(scan *sharedScan, own *rider) {
	d := &driver{decoded: make([]tileColumn, len(scan.tab.Meta.Columns))}
	var aboard []*rider
	if s.hold != nil {
		<-s.hold
	}
	ctx := context.Background() // a driver serves all
	if scan.slots != nil {
		_ = scan.slots.acquire(ctx, scan.turn)
		defer scan.slots.release()
	}
	at := newHold(scan.slots, scan.turn)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if own != nil && own.left == 0 && len(scan.riders) > 0 {
			processors.Start(1, func() { s.drive(scan, nil) })
			return
		}
		aboard = aboard[:0]
		staying := scan.riders[:0]
		for _, r := range scan.riders {
			if r.failed.Load() {
				r.left = 0
				r.leave()
				continue
			}
			aboard = append(aboard, r)
			r.flying++
			if r.left--; r.left > 0 {
				staying = append(staying, r)
			}
		}
		clear(scan.riders[len(staying):])
		scan.riders = staying
		if len(aboard) == 0 {
			// The table is held by its riders, so that it is forgotten with the last.
			if scan.drivers--; scan.drivers == 0 {
				delete(s.scans, scan.tab)
				if scan.slots != nil {
					scan.slots.end(scan.turn)
				}
			}
			return
		}
		number := scan.next
		scan.next = (number + 1) % scan.morsels.count(scan.tab)
		s.mu.Unlock()
		began := time.Now()
		d.scan(scan, number, aboard)
		part := time.Since(began) / time.Duration(len(aboard))
		for _, r := range aboard {
			if x := r.p.x; x.turn != nil {
				x.turn.spent.Add(int64(part))
				x.moveUp()
			}
		}
		s.mu.Lock()
		for _, r := range aboard {
			r.flying--
			r.leave()
		}
		if len(scan.riders) > 0 {
			s.mu.Unlock()
			at.pause(ctx, len(aboard))
			s.mu.Lock()
		}
	}
}

// leave ends the ride where there is nothing left to see.
func (r *rider) leave() {
	if r.left == 0 && r.flying == 0 {
		close(r.done)
	}
}

// driver is what a goroutine of a shared scan keeps.
type driver struct {
	decoded []tileColumn // the tile's, for all riders
	tile    int
	core    processors.Turn
	bitmap  interlaced
	seats   []*seat
}

// scan scans one morsel for the riders.
func (d *driver) scan(scan *sharedScan, number int, aboard []*rider) {
	if morsel != nil {
		morsel(1)
		defer morsel(-1)
	}
	d.seats = d.seats[:0]
	segment, part := scan.morsels.of(number)
	seg := scan.tab.Segments[segment]
	first, last := seg.Rows, 0 // of the rows that any of them is to see, and the end
	// Riders without a seat are left out: they failed, or have no rows here.
	var riders []*rider
	bitmaps := 0
	for _, r := range aboard {
		if r.failed.Load() {
			continue
		}
		if err := r.p.x.ctx.Err(); err != nil {
			r.fail(err)
			continue
		}
		r.guard(func() {
			if skip, _ := r.p.zone(seg); skip {
				if part == 0 {
					r.p.note(seg, true)
				}
				return
			}
			t := r.seat(d)
			if t.live, t.from, t.to = t.w.enter(scan.morsels, number, t.sink); t.from == t.to {
				r.put(t)
				return
			}
			first, last = min(first, t.from), max(last, t.to)
			if t.bits != nil {
				t.bits.query, t.bits.to = bitmaps, &d.bitmap
				bitmaps++
			}
			riders = append(riders, r)
			d.seats = append(d.seats, t)
		})
	}
	if bitmaps > 0 {
		d.bitmap.reset(seg.Rows, bitmaps)
	}
	for start := first; start < last; start += tileRows {
		d.tile++
		for i, t := range d.seats {
			if t.w.err != nil || riders[i].failed.Load() || start < t.from || start >= t.to {
				continue
			}
			riders[i].guard(func() {
				// begin counts on from here, so that all riders' tile is d.tile.
				t.w.tile = d.tile - 1
				t.w.scanTile(start, t.live, t.taker())
			})
			d.core.Next()
		}
	}
	for i, t := range d.seats {
		r := riders[i]
		if t.bits != nil && t.w.err == nil {
			b := t.sink.(*bitmapRows)
			d.bitmap.linearise(t.bits.query, t.from>>6, b.segment(segment)[t.from>>6:(t.to+63)>>6])
		}
		if t.w.err != nil {
			r.fail(t.w.err)
		}
		r.put(t)
	}
}

// put takes a seat back.
func (r *rider) put(t *seat) {
	r.mu.Lock()
	r.idle = append(r.idle, t)
	r.mu.Unlock()
}

// taker is the sink of a tile.
func (t *seat) taker() sink {
	if t.bits != nil {
		return t.bits
	}
	return t.sink
}

// seat returns a worker of the rider for the driver.
func (r *rider) seat(d *driver) *seat {
	r.mu.Lock()
	var t *seat
	if n := len(r.idle); n > 0 {
		t = r.idle[n-1]
		r.idle = r.idle[:n-1]
	}
	r.mu.Unlock()
	if t == nil {
		w := newWorker(r.p)
		t = &seat{w: w, sink: r.sinks(w)}
		if _, ok := t.sink.(*bitmapRows); ok {
			t.bits = &interlacedRows{}
		}
	}
	t.w.decoded = d.decoded
	return t
}

// guard keeps a panic of one query from the others.
func (r *rider) guard(f func()) {
	defer func() {
		if e := recover(); e != nil {
			r.fail(&panicked{e, debug.Stack()})
		}
	}()
	f()
}
