package colstore

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// fold takes into the base the commits that ref sees, and every pin that the base
// can still serve. Afterwards a reader must see all that the base's horizon sees.
// It reports whether anything changed. One goroutine at a time folds.
func (r *Relation) fold(ref Snapshot, pins []Snapshot) bool {
	r.mu.Lock()
	log, horizon, slots := r.log, r.horizon, slices.Clone(r.slots)
	r.mu.Unlock()
	for _, p := range pins {
		if horizon.ContainedIn(p) {
			ref = ref.meet(p)
		}
	}
	if !horizon.ContainedIn(ref) {
		return false
	}
	// Positions in the log stay until the next fold: others only append to it, or put
	// another entry in an entry's place.
	folded := make([]bool, len(log))
	seqs := map[uint64]bool{}
	dead := map[uint32][]uint64{}
	dying := map[uint32]int{}
	grown := map[uint32][]inserter{} // segments with inserts to fold: those not folded yet
	for i, c := range log {
		if !ref.Sees(c.xid) || !c.suffices(ref) {
			continue
		}
		folded[i], seqs[c.seq] = true, true
		for _, x := range c.inserts {
			grown[x.slot] = nil
		}
		for i := 0; i < len(c.deletes); {
			end := c.skip(i)
			slot := c.deletes[i] >> 16
			bits := dead[slot]
			if words := int(c.deletes[end-1]&0xffff>>6) + 1; bits == nil || len(bits) < words {
				old := bits
				if old == nil && slots[slot] != nil {
					old = slots[slot].dead // only folding replaces it
				}
				bits = make([]uint64, max(words, len(old)))
				copy(bits, old)
				dead[slot] = bits
			}
			for _, addr := range c.deletes[i:end] {
				bits[addr&0xffff>>6] |= 1 << (addr & 63)
			}
			dying[slot] += end - i
			i = end
		}
	}
	if len(seqs) == 0 {
		return false
	}
	// What readers will want is made before they wait for it.
	images := map[uint32]*Segment{}
	for slot, bits := range dead {
		if seg := slots[slot]; seg != nil && seg.columns != nil {
			images[slot] = &Segment{Slot: int(slot), Rows: seg.rows, Columns: seg.columns, Live: liveOf(bits, seg.rows), LiveID: NewID(), part: seg.part.oid, mem: seg.mem}
		}
	}
	lists := map[uint32][]inserter{}
	r.mu.Lock()
	for slot := range grown {
		if seg := slots[slot]; seg != nil {
			lists[slot] = seg.unfolded
		}
	}
	r.mu.Unlock()
	for slot, list := range lists {
		for _, x := range list {
			if !seqs[x.seq] {
				grown[slot] = append(grown[slot], x)
			}
		}
	}

	var garbage garbage
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return false
	}
	left := make([]*commit, 0, len(r.log)-len(seqs)+8)
	heads := make([]head, 0, cap(left))
	r.maxXid = 0
	for i, c := range r.log {
		if i < len(folded) && folded[i] {
			r.history -= c.bytes
			continue
		}
		left, heads = append(left, c), append(heads, c.head())
		r.maxXid = max(r.maxXid, c.xid)
	}
	r.log, r.heads = left, heads
	// A truncate may have come in between, and another segment in the slot.
	for slot, list := range grown {
		if seg := r.slots[slot]; seg != nil && seg == slots[slot] {
			seg.unfolded = append(list, seg.unfolded[len(lists[slot]):]...)
		}
	}
	for slot, bits := range dead {
		if seg := r.slots[slot]; seg != nil && seg == slots[slot] {
			seg.dead, seg.image = bits, images[slot]
			seg.deadCount += dying[slot]
		}
	}
	r.horizon = ref
	r.required = slices.DeleteFunc(slices.Clone(r.required), ref.Sees)
	r.invalidate(&garbage)
	r.mu.Unlock()
	garbage.release()
	return true
}

// behind is the work that nobody waits for: folding, encoding, merging. One goroutine
// does it for all tables, and another one builds indexes, which may take minutes. They begin with the first change
// and end with Close.
type behind struct {
	store *Store
	every time.Duration

	mu      sync.Mutex
	manual  bool
	running bool
	closed  bool
	bell    chan struct{}
	index   chan struct{} // bell of who builds indexes
	quit    chan struct{}
	done    sync.WaitGroup
	round   sync.Mutex // one round at a time
}

func (b *behind) init(s *Store, o Options) {
	b.store, b.manual = s, o.manual
	b.every = max(s.history.lag/4, time.Millisecond)
	b.bell, b.index, b.quit = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
}

// wake says that there may be something to do.
func (b *behind) wake() {
	select {
	case b.bell <- struct{}{}:
	default:
		return // it has been said
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running && !b.closed && !b.manual {
		b.running = true
		b.done.Go(b.run)
		b.done.Go(b.runIndexes)
	}
}

func (b *behind) stop() {
	b.mu.Lock()
	b.closed = true
	running := b.running
	b.running = false
	b.mu.Unlock()
	if running {
		close(b.quit)
		b.done.Wait()
	}
}

func (b *behind) run() {
	timer := time.NewTimer(b.every)
	defer timer.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-b.bell:
		}
		for pending := true; pending; {
			timer.Reset(b.every)
			select {
			case <-b.quit:
				return
			case <-timer.C:
			}
			pending = b.work()
			b.wakeIndexes() // there may be new segments
		}
	}
}

// wakeIndexes says that there may be columns to be indexed.
func (b *behind) wakeIndexes() {
	select {
	case b.index <- struct{}{}:
	default: // it has been said
	}
}

// runIndexes builds indexes, some of each relation in turns. Of few cores it leaves those who compute most of one.
func (b *behind) runIndexes() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-b.index:
		}
		for more := true; more && !b.quits(); {
			more = false
			for _, r := range b.store.relations() {
				more = r.buildIndexes() || more
			}
			pause.Reset(2 * indexBudget / time.Duration(runtime.GOMAXPROCS(0)))
			select {
			case <-b.quit:
				return
			case <-pause.C:
			}
		}
	}
}

// quits reports whether Close waits.
func (b *behind) quits() bool {
	select {
	case <-b.quit:
		return true
	default:
		return false
	}
}

// work does what can be done now and reports whether more may come without a wake.
func (b *behind) work() (pending bool) {
	b.round.Lock()
	defer b.round.Unlock()
	ref, ok, pins := b.store.history.reference()
	if bytes, _ := b.store.History(); bytes > b.store.history.limit {
		pins = nil
	}
	for _, r := range b.store.relations() {
		if ok {
			r.fold(ref, pins)
		}
		if !b.store.history.now().Before(r.retry) {
			for (r.encodeFull() || r.mergeSparse()) && !b.quits() {
			}
		}
		r.mu.Lock()
		pending = pending || len(r.log) > 0
		r.mu.Unlock()
	}
	return pending
}
