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
// only where no change that it lacks has come by, and a change that a published
// copy lacks is passed on before the stream's position passes it.
type registry struct {
	store      *colstore.Store
	quiet      time.Duration // Config.RecopyQuiet
	notify     func()        // a table's phase has changed
	mu         sync.Mutex
	tables     map[uint32]*table
	listed     bool // the tables are complete as of some poll
	badColumns map[uint32]map[int16]string
}

// phase is where a table is in its life.
type phase uint8

const (
	phaseWaiting phase = iota // for its first copy, or the next one
	phaseCopying
	phaseReady
	phaseRefused // until its definition changes
)

// table is one chosen table that is in the publication.
type table struct {
	meta     *catalog.Table
	phase    phase
	attempt  bool // a copy was tried to the end since the stream began
	joins    bool // it joined the publication after the slot: drain before the copy
	alone    bool // it ran out of memory beside others
	outdated *atomic.Bool
	// snapshot is what the copy at hand or the published one holds; valid in
	// phaseCopying (once begun is set) and phaseReady.
	snapshot colstore.Snapshot
	begun    bool
	// recent are transactions that changed the table and that a snapshot taken from
	// now on may yet not see; oldest first.
	recent []uint32

	changedAt time.Time     // of the last change
	quiet     time.Duration // how long it must be without one before the next copy
	readyAt   time.Time     // end of the last copy
	took      time.Duration // the last copy
	notBefore time.Time
}

const (
	quietMax = 5 * time.Minute
	// copyShare keeps copies of one table to about a tenth of the time.
	copyShare = 9
)

func newRegistry(store *colstore.Store, quiet time.Duration, notify func()) *registry {
	return &registry{store: store, quiet: quiet, notify: notify, tables: map[uint32]*table{}, badColumns: map[uint32]map[int16]string{}}
}

// widen makes a 64-bit transaction id of the stream's 32 bits: the one nearest to a
// recent one.
func widen(xid uint32, near uint64) uint64 {
	return near + uint64(int64(int32(xid-uint32(near))))
}

// change takes in that a committed transaction changed a table.
func (r *registry) change(oid, xid uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[oid]
	if t == nil {
		return
	}
	if n := len(t.recent); n > 0 && t.recent[n-1] == xid {
		return
	}
	t.recent = append(t.recent, xid)
	t.changedAt = time.Now()
	if !t.begun || t.snapshot.Sees(widen(xid, t.snapshot.Xmax)) {
		return
	}
	switch t.phase {
	case phaseCopying:
		t.outdated.Store(true)
	case phaseReady:
		r.store.MarkChanged(oid)
		t.lapse()
		r.notify()
	}
}

// lapse ends a copy's being good. A table that keeps changing is left alone for
// longer and longer.
func (t *table) lapse() {
	if time.Since(t.readyAt) < 10*t.quiet {
		t.quiet = min(2*t.quiet, quietMax)
	} else {
		t.quiet = 0 // registry.due takes the default
	}
	t.phase, t.begun = phaseWaiting, false
}

// due returns when the table's next copy is to begin.
func (r *registry) due(t *table) time.Time {
	if t.quiet < r.quiet {
		t.quiet = r.quiet
	}
	at := t.notBefore
	if !t.changedAt.IsZero() {
		at = later(at, t.changedAt.Add(t.quiet))
	}
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
	}
	return batch, next
}

// hold notes the snapshot that a batch is copied at. Changes that came before are
// looked at again: the snapshot may not see them.
func (r *registry) hold(batch []*table, s colstore.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range batch {
		t.snapshot, t.begun = s, true
		for _, xid := range t.recent {
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

// publish makes a copy the one that queries see, unless it is outdated.
func (r *registry) publish(t *table, version *colstore.Table, took time.Duration) bool {
	r.mu.Lock()
	defer r.notify()
	defer r.mu.Unlock()
	t.readyAt, t.took, t.attempt = time.Now(), took, true
	if t.outdated.Load() || r.tables[t.meta.OID] != t || version.Meta != t.meta {
		version.Release()
		if r.tables[t.meta.OID] == t {
			r.again(t, colstore.StateChanged, errOutdated.Error())
		}
		return false
	}
	t.phase, t.alone = phaseReady, false
	r.store.Publish(r.store.NewRelation(version))
	return true
}

// again notes that a table's copy came to nothing, and is to be tried later.
func (r *registry) again(t *table, st colstore.State, detail string) {
	t.phase, t.begun, t.attempt = phaseWaiting, false, true
	t.quiet = min(max(2*t.quiet, r.quiet), quietMax)
	t.notBefore = time.Now().Add(t.quiet)
	r.store.SetState(t.meta, st, detail)
}

// refuse gives a table up until its definition changes.
func (r *registry) refuse(t *table, detail string) {
	t.phase, t.begun, t.attempt = phaseRefused, false, true
	r.store.SetState(t.meta, colstore.StateRefused, detail)
}

// redefine gives a table its new definition, to be copied under.
func (r *registry) redefine(t *table, meta *catalog.Table) {
	t.meta = meta
	t.changedAt, t.notBefore = time.Now(), time.Time{}
	switch t.phase {
	case phaseCopying:
		t.outdated.Store(true)
	default: // a refused table gets another chance
		t.phase, t.begun, t.alone = phaseWaiting, false, false
		r.store.SetState(meta, colstore.StateChanged, "its definition changed")
	}
}

// meta returns the definition under which a table is copied: without the columns
// that turned out not to fit, unless they may have changed since.
func (r *registry) meta(meta *catalog.Table) *catalog.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tables[meta.OID]; t != nil && t.meta.Fingerprint != meta.Fingerprint {
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

// redefined takes in a table's definition of now; false where it is unknown.
func (r *registry) redefined(meta *catalog.Table) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[meta.OID]
	if t != nil && t.meta.Fingerprint != meta.Fingerprint {
		r.redefine(t, meta)
	}
	return t != nil
}

// oids lists the tables.
func (r *registry) oids() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.tables))
}

// join adds tables that are in the publication now. late says that the stream had
// begun before.
func (r *registry) join(add []*catalog.Table, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, meta := range add {
		r.tables[meta.OID] = &table{meta: meta, joins: late}
		r.store.SetState(meta, colstore.StateCopying, "waits for its copy")
	}
}

// leave forgets a table.
func (r *registry) leave(oid uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tables[oid]; t != nil && t.outdated != nil {
		t.outdated.Store(true)
	}
	delete(r.tables, oid)
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
		if t.outdated != nil {
			t.outdated.Store(true)
		}
		r.store.SetState(t.meta, colstore.StateCopying, detail)
	}
	r.tables, r.listed = map[uint32]*table{}, false
}
