package replica

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// registry knows every chosen table, which copy of it is good, and when to make the
// next. The stream and the copies meet here, under one lock: a copy is published
// only where it holds or has been given every change that has come by, and a table
// whose copy cannot take a change is given up before the stream's position passes it.
type registry struct {
	store     *colstore.Store
	quiet     time.Duration    // Config.RecopyQuiet
	notify    func()           // a table's phase has changed
	completed func(oid uint32) // a copy has
	near      atomic.Uint64    // a recent transaction id, for widen
	anew      string           // why everything is copied, though it has been copied before; "" where it was not

	mu         sync.Mutex // comes before a feed's
	tables     map[uint32]*table
	relations  map[uint32]*table // by the OID that the stream knows: the table's, or its leaves'
	listed     bool              // the tables are complete as of some poll
	badColumns map[uint32]map[int16]string
	published  map[uint32]string // epoch.published; never written again
}

// phase is where a table is in its life.
type phase uint8

const (
	phaseWaiting phase = iota // for its first copy, or the next one
	phaseCopying
	phaseReady
	phaseRefused // until its definition changes, or there is more memory
)

// table is one chosen table that is in the publication.
type table struct {
	meta     *catalog.Table
	feed     feed
	phase    phase
	attempt  bool // a copy was tried to the end since the stream began
	joins    bool // it joined the publication after the slot, or labels of an enum were renamed: drain before the copy
	alone    bool // it ran out of memory beside others
	noMemory bool // it was refused because of the memory limit
	outdated *atomic.Bool
	// snapshot is what the copy at hand or the published one holds; valid in
	// phaseCopying (once begun is set) and phaseReady.
	snapshot colstore.Snapshot
	begun    bool
	// recent are transactions that changed the table and that a snapshot taken from
	// now on may yet not see; oldest first. before are those of them that came before
	// the copy at hand began to queue.
	recent, before []uint32
	copies         int // begun

	quiet     time.Duration // the pause before the next copy
	readyAt   time.Time     // end of the last copy
	took      time.Duration // the last copy
	notBefore time.Time
}

// parts returns the OIDs that the stream knows the table by, and the publication.
func parts(meta *catalog.Table) []uint32 {
	if meta.Parts == nil {
		return []uint32{meta.OID}
	}
	oids := make([]uint32, len(meta.Parts))
	for i := range meta.Parts {
		oids[i] = meta.Parts[i].OID
	}
	return oids
}

const (
	// Copies are kept rare by copyShare; what fails again and again waits for this long.
	quietMax = 30 * time.Second
	// copyShare keeps copies of one table to about a tenth of the time.
	copyShare = 9
)

func newRegistry(store *colstore.Store, quiet time.Duration, notify func()) *registry {
	return &registry{store: store, quiet: quiet, notify: notify, completed: func(uint32) {}, tables: map[uint32]*table{}, relations: map[uint32]*table{},
		badColumns: map[uint32]map[int16]string{}}
}

// widen makes a 64-bit transaction id of the stream's 32 bits: the one nearest to a
// recent one.
func widen(xid uint32, near uint64) uint64 {
	return near + uint64(int64(int32(xid-uint32(near))))
}

// touch notes that a committed transaction changed a relation, and returns the table
// that it is or is a part of, nil where there is none.
func (r *registry) touch(oid, xid uint32) *table {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.relations[oid]
	if t == nil {
		return nil
	}
	if n := len(t.recent); n == 0 || t.recent[n-1] != xid {
		t.recent = append(t.recent, xid)
	}
	return t
}

// holds reports whether a table's copy holds a transaction's changes without having
// been given them.
func (r *registry) holds(t *table, xid uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return t.begun && t.snapshot.Sees(xid)
}

// lapse ends a copy's being good, for a while. A table to which that happens again
// and again is left alone for longer and longer.
func (r *registry) lapse(t *table, st colstore.State, detail string) {
	t.feed.stop()
	if time.Since(t.readyAt) < 10*t.quiet {
		t.quiet = min(2*t.quiet, quietMax)
	} else {
		t.quiet = r.quiet
	}
	t.phase, t.begun = phaseWaiting, false
	t.notBefore = time.Now().Add(t.quiet)
	r.store.SetState(t.meta, st, detail)
}

// due returns when the table's next copy is to begin.
func (r *registry) due(t *table) time.Time {
	if t.quiet < r.quiet {
		t.quiet = r.quiet
	}
	at := t.notBefore
	if !t.readyAt.IsZero() {
		at = later(at, t.readyAt.Add(copyShare*t.took))
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// begin returns the tables that are to be copied now, marked as such, and when to
// ask again where there are none. With first, all tables are due. Tables that have
// joined the publication late come in batches of their own, one at a time: they
// wait for transactions, which may take long, and nothing else shall.
func (r *registry) begin(first bool) (batch []*table, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	next = now.Add(time.Hour)
	copying, joining := false, false
	var due []*table
	for _, t := range r.tables {
		switch at := r.due(t); {
		case t.phase == phaseCopying:
			copying, joining = true, joining || t.joins
		case t.phase != phaseWaiting:
		case first || !at.After(now):
			due = append(due, t)
		case at.Before(next):
			next = at
		}
	}
	take := func(which func(t *table) bool) {
		for _, t := range due {
			if len(batch) == 0 || !t.alone {
				if which(t) {
					batch = append(batch, t)
				}
			}
		}
	}
	take(func(t *table) bool { return !t.joins && !t.alone })
	if len(batch) == 0 && !joining {
		take(func(t *table) bool { return t.joins && !t.alone })
	}
	if len(batch) == 0 && !copying {
		take(func(t *table) bool { return t.alone })
	}
	for _, t := range batch {
		t.phase, t.begun, t.outdated = phaseCopying, false, new(atomic.Bool)
		t.before, t.copies = slices.Clone(t.recent), t.copies+1
		t.feed.collect()
	}
	return batch, next
}

// hold notes the snapshot that a batch is copied at. It must see all changes that
// came before the queue began.
func (r *registry) hold(batch []*table, s colstore.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range batch {
		t.snapshot, t.begun = s, true
		for _, xid := range t.before {
			if !s.Sees(widen(xid, s.Xmax)) {
				t.outdated.Store(true)
			}
		}
	}
}

// prune forgets changes that every snapshot from xmin on sees.
func (r *registry) prune(xmin uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		kept := t.recent[:0]
		for _, xid := range t.recent {
			if widen(xid, xmin) >= xmin {
				kept = append(kept, xid)
			}
		}
		t.recent = kept
	}
}

// publish makes a copy, brought up to what has come meanwhile, the one that queries
// see and that changes go to. Where it fails, the relation is still the caller's.
func (r *registry) publish(t *table, w *relationWriter, took time.Duration) error {
	r.mu.Lock()
	defer r.notify()
	defer r.mu.Unlock()
	t.readyAt, t.took, t.attempt = time.Now(), took, true
	if t.outdated.Load() || r.tables[t.meta.OID] != t || w.to.Meta() != t.meta {
		return errOutdated
	}
	if err := t.feed.start(w, func() { r.store.Publish(w.to) }); err != nil {
		return err
	}
	t.phase, t.alone, t.joins = phaseReady, false, false
	r.completed(t.meta.OID)
	return nil
}

// again notes that a table's copy came to nothing, and is to be tried later.
func (r *registry) again(t *table, st colstore.State, detail string) {
	t.feed.stop()
	t.phase, t.begun, t.attempt = phaseWaiting, false, true
	t.quiet = min(max(2*t.quiet, r.quiet), quietMax)
	t.notBefore = time.Now().Add(t.quiet)
	r.store.SetState(t.meta, st, detail)
}

// refuse gives a table up until its definition changes. See also retryRefused.
func (r *registry) refuse(t *table, detail string) {
	t.feed.stop()
	t.phase, t.begun, t.attempt, t.noMemory = phaseRefused, false, true, false
	r.store.SetState(t.meta, colstore.StateRefused, detail)
}

// retryRefused has tables that were refused because of the memory limit tried once more.
func (r *registry) retryRefused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if t.phase == phaseRefused && t.noMemory {
			t.phase, t.notBefore = phaseWaiting, time.Now()
			r.store.SetState(t.meta, colstore.StateCopying, "waits for its copy: the memory limit was raised")
		}
	}
}

// meta returns the definition under which a table is copied: without the columns
// that turned out not to fit, unless they may have changed since.
func (r *registry) meta(meta *catalog.Table) *catalog.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tables[meta.OID]; t != nil && !catalog.SameFiles(t.meta, meta) {
		delete(r.badColumns, meta.OID)
	}
	return withoutColumns(meta, r.badColumns[meta.OID])
}

// missing lists the tables that are not in the catalog any more.
func (r *registry) missing(now map[uint32]*catalog.Table) (gone []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for oid := range r.tables {
		if now[oid] == nil {
			gone = append(gone, oid)
		}
	}
	return gone
}

// size returns the number of tables, copied or not.
func (r *registry) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tables)
}

// oids lists what is published.
func (r *registry) oids() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.relations))
}

// tablesOf lists the tables that relations are, or are parts of.
func (r *registry) tablesOf(relations []uint32) (oids []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, oid := range relations {
		if t := r.relations[oid]; t != nil && !slices.Contains(oids, t.meta.OID) {
			oids = append(oids, t.meta.OID)
		}
	}
	return oids
}

// join adds tables that are in the publication now. late says that the stream had
// begun before.
func (r *registry) join(add []*catalog.Table, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, meta := range add {
		t := &table{meta: meta, joins: late}
		r.tables[meta.OID] = t
		for _, oid := range parts(meta) {
			r.relations[oid] = t
		}
		detail := "waits for its copy"
		if r.anew != "" && !late {
			detail += ": " + r.anew
		}
		r.store.SetState(meta, colstore.StateCopying, detail)
	}
}

// leave forgets a table and returns what was published of it.
func (r *registry) leave(oid uint32) []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[oid]
	if t == nil {
		return nil
	}
	r.discard(t)
	r.store.SetState(t.meta, colstore.StateChanged, "its definition changed")
	delete(r.tables, oid)
	maps.DeleteFunc(r.relations, func(_ uint32, of *table) bool { return of == t })
	return parts(t.meta)
}

// discard ends the life of a table's copy, ready or under way.
func (r *registry) discard(t *table) {
	t.feed.stop()
	if t.outdated != nil {
		t.outdated.Store(true)
	}
}

// complete notes that the registry follows the whole catalog.
func (r *registry) complete() {
	r.mu.Lock()
	r.listed = true
	r.mu.Unlock()
	r.notify()
}

// oldest returns the smallest xmin of the snapshots that copies under way use.
func (r *registry) oldest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	xmin := uint64(1<<64 - 1)
	for _, t := range r.tables {
		if t.phase == phaseCopying {
			if !t.begun {
				return 0
			}
			xmin = min(xmin, t.snapshot.Xmin)
		}
	}
	return xmin
}

// settled reports whether every table has been copied, or refused, or tried.
func (r *registry) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.listed {
		return false
	}
	for _, t := range r.tables {
		if !t.attempt {
			return false
		}
	}
	return true
}

// reset forgets all that the stream has told: it is broken.
func (r *registry) reset(detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		r.discard(t)
		r.store.SetState(t.meta, colstore.StateCopying, detail)
	}
	r.tables, r.relations, r.listed = map[uint32]*table{}, map[uint32]*table{}, false
}
