package replica

import (
	"errors"
	"sync"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/replica/pgoutput"
)

// applier is the pgoutput.Sink that brings the stream's transactions to the tables
// they touch: to the relation of one that is ready, to the queue of one that is being
// copied. What goes wrong with a table is that table's affair: it is given up before
// the position passes the transaction's commit, and the others go on.
type applier struct {
	reg     *registry
	failed  func(t *table, err error)
	advance func(lsn uint64)
	// committed is told of commits that touch tables, before advance; may be nil.
	committed func(xid, commitLSN uint64)
	// marked is told of markers, in their place in the stream; may be nil.
	marked func(id string)

	relations map[uint32]*pgoutput.Relation // the stream's definitions, by OID

	// Of the transaction at hand:
	short   uint32
	xid     uint64
	touched []*table
	lastOID uint32
	last    *table // of lastOID; nil where it is none of ours
}

func newApplier(reg *registry, failed func(t *table, err error), advance func(lsn uint64)) *applier {
	return &applier{reg: reg, failed: failed, advance: advance, relations: map[uint32]*pgoutput.Relation{}}
}

// errTooLarge gives up the tables of a transaction that could not be kept.
var errTooLarge = errors.New("a transaction was too large to be kept until its commit")

// errQueue ends a copy.
var errQueue = errors.New("more changes came during its copy than are kept")

// Begin implements pgoutput.Sink.
func (a *applier) Begin(xid uint32) error {
	a.short, a.xid = xid, widen(xid, a.reg.near.Load())
	a.touched, a.lastOID, a.last = a.touched[:0], 0, nil
	return nil
}

// Relation implements pgoutput.Sink.
func (a *applier) Relation(rel *pgoutput.Relation) error {
	a.relations[rel.OID] = rel
	return nil
}

// table returns the table that a relation is, or is a part of, nil where it is none of
// ours, and notes that the transaction touches it.
func (a *applier) table(oid uint32) *table {
	if oid == a.lastOID {
		return a.last
	}
	t := a.reg.touch(oid, a.short)
	a.lastOID, a.last = oid, t
	if t != nil {
		for _, o := range a.touched {
			if o == t {
				return t
			}
		}
		a.touched = append(a.touched, t)
	}
	return t
}

func (a *applier) change(op byte, oid uint32, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) error {
	if t := a.table(oid); t != nil {
		if err := t.feed.change(a.xid, op, a.relations[oid], old, kind, row); err != nil {
			a.failed(t, err)
		}
	}
	return nil
}

// Insert implements pgoutput.Sink.
func (a *applier) Insert(oid uint32, row pgoutput.Tuple) error {
	return a.change(opInsert, oid, nil, pgoutput.OldNone, row)
}

// Update implements pgoutput.Sink.
func (a *applier) Update(oid uint32, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) error {
	return a.change(opUpdate, oid, old, kind, row)
}

// Delete implements pgoutput.Sink.
func (a *applier) Delete(oid uint32, old pgoutput.Tuple, kind pgoutput.OldKind) error {
	return a.change(opDelete, oid, old, kind, nil)
}

// Truncate implements pgoutput.Sink.
func (a *applier) Truncate(oids []uint32, cascade, restart bool) error {
	for _, oid := range oids {
		if t := a.table(oid); t != nil {
			if err := t.feed.truncate(a.xid, oid); err != nil {
				a.failed(t, err)
			}
		}
	}
	return nil
}

// TooLarge implements pgoutput.Sink.
func (a *applier) TooLarge(xid uint32, oids []uint32) error {
	for _, oid := range oids {
		if t := a.table(oid); t != nil && !a.reg.holds(t, a.xid) {
			a.failed(t, errTooLarge)
		}
	}
	return nil
}

// Message implements pgoutput.Sink.
func (a *applier) Message(transactional bool, lsn uint64, prefix string, content []byte) error {
	if a.marked != nil && !transactional && prefix == markerPrefix && len(content) > 0 {
		a.marked(string(content))
	}
	return nil
}

// Commit implements pgoutput.Sink.
func (a *applier) Commit(xid uint32, commitLSN, endLSN uint64) error {
	for _, t := range a.touched {
		if err := t.feed.commit(a.xid, endLSN); err != nil {
			a.failed(t, err)
		}
	}
	if a.committed != nil && len(a.touched) > 0 {
		a.committed(a.xid, commitLSN)
	}
	a.advance(endLSN)
	return nil
}

// feed is where a table's changes go. Its lock is taken for each change, so that a
// table can be given up, or become ready, at any time, within a transaction too.
type feed struct {
	mu     sync.Mutex
	writer *relationWriter // of a table that is ready
	queue  *changeQueue    // of one that is copied
	xid    uint64          // that the queue's last records are of, 0 for none
}

func (f *feed) change(xid uint64, op byte, rel *pgoutput.Relation, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.writer != nil:
		f.writer.in(xid)
		return f.writer.change(op, rel, old, kind, row)
	case f.queue != nil:
		if !f.queuesFor(xid) || !f.queue.change(op, rel, old, kind, row) {
			return f.overflow()
		}
	}
	return nil
}

func (f *feed) truncate(xid uint64, part uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.writer != nil:
		f.writer.in(xid)
		return f.writer.truncate(part)
	case f.queue != nil:
		if !f.queuesFor(xid) || !f.queue.truncate(part) {
			return f.overflow()
		}
	}
	return nil
}

func (f *feed) commit(xid, lsn uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.writer != nil:
		return f.writer.commit(xid, lsn)
	case f.queue != nil && f.xid == xid:
		f.xid = 0
		if !f.queue.commit(xid, lsn) {
			return f.overflow()
		}
	}
	return nil
}

func (f *feed) queuesFor(xid uint64) bool {
	if f.xid == xid {
		return true
	}
	f.xid = xid
	return f.queue.begin(xid)
}

func (f *feed) overflow() error {
	f.queue = nil
	return errQueue
}

// collect begins to queue what comes.
func (f *feed) collect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writer, f.queue, f.xid = nil, &changeQueue{}, 0
}

// stop lets what comes pass by. Afterwards nobody uses the relation any more.
func (f *feed) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writer, f.queue = nil, nil
}

// take returns what has been queued so far.
func (f *feed) take() *changeQueue {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue == nil {
		return &changeQueue{}
	}
	return f.queue.take()
}

// start brings w up to what has come, publishes it, and gives it what comes from here
// on.
func (f *feed) start(w *relationWriter, publish func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue == nil {
		return errOutdated
	}
	if err := f.queue.replay(w); err != nil {
		return err
	}
	publish()
	f.queue, f.writer = nil, w
	return nil
}

// resume publishes a relation that needs no more than what comes from here on.
func (f *feed) resume(w *relationWriter, publish func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	publish()
	f.queue, f.writer = nil, w
}

// redefine gives the relation a new definition; false where it needs another copy.
func (f *feed) redefine(meta *catalog.Table) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writer != nil && f.writer.to.Redefine(meta)
}

// relationWriter applies changes to one relation, but for those of transactions that
// its copy holds already.
type relationWriter struct {
	to       *colstore.Relation
	holds    colstore.Snapshot // of the copy
	xid      uint64            // the transaction at hand
	skip     bool              // the copy holds it
	key      hashKey           // that the copy was made with
	decoders map[uint32]*rowDecoder
}

func newRelationWriter(to *colstore.Relation, holds colstore.Snapshot, key hashKey) *relationWriter {
	return &relationWriter{to: to, holds: holds, key: key, decoders: map[uint32]*rowDecoder{}}
}

// in makes xid the transaction at hand.
func (w *relationWriter) in(xid uint64) {
	if w.xid != xid {
		w.xid, w.skip = xid, w.holds.Sees(xid)
	}
}

func (w *relationWriter) begin(xid uint64) error {
	w.in(xid)
	return nil
}

func (w *relationWriter) change(op byte, rel *pgoutput.Relation, old pgoutput.Tuple, kind pgoutput.OldKind, row pgoutput.Tuple) error {
	if w.skip {
		return nil
	}
	d := w.decoders[rel.OID]
	if d == nil || d.rel != rel {
		var err error
		if d, err = newRowDecoder(rel, w.to.Meta()); err != nil {
			return err
		}
		d.hash.key = w.key
		w.decoders[rel.OID] = d
	}
	switch op {
	case opInsert:
		r, err := d.insert(row)
		if err != nil {
			return err
		}
		return w.to.Insert(rel.OID, r)
	case opUpdate:
		o, r, err := d.update(old, kind, row)
		if err != nil {
			return err
		}
		return w.to.Update(rel.OID, o, r)
	}
	o, err := d.delete(old, kind)
	if err != nil {
		return err
	}
	return w.to.Delete(rel.OID, o)
}

func (w *relationWriter) truncate(part uint32) error {
	if w.skip {
		return nil
	}
	return w.to.Truncate(part)
}

func (w *relationWriter) commit(xid, lsn uint64) error {
	if w.xid != xid || w.skip {
		return nil
	}
	return w.to.Commit(xid, lsn)
}
