package replica

import (
	"slices"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// redefined takes in a table's definition of now; false where the table is unknown, or
// has other partitions than it had: it must join anew.
//
// DDL is not in the stream. A definition that differs from the copy's (the gate sees
// it at once and forwards) either leaves the rows as they are, and then the copy gets
// the new definition and goes on, or the table is copied again. See the package
// comment for which is which.
func (r *registry) redefined(meta *catalog.Table) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[meta.OID]
	switch {
	case t == nil || !slices.Equal(parts(t.meta), parts(meta)) || (t.meta.Parts == nil) != (meta.Parts == nil):
		return false
	case t.meta.Fingerprint == meta.Fingerprint && slices.Equal(t.meta.Parts, meta.Parts):
	case t.phase == phaseReady && sameRows(t.meta, meta) && t.feed.redefine(meta),
		t.phase == phaseWaiting && sameRows(t.meta, meta):
		t.meta = meta
	default:
		r.redefine(t, meta)
	}
	return true
}

// redefine gives a table its new definition, to be copied under.
func (r *registry) redefine(t *table, meta *catalog.Table) {
	if !catalog.SameLabels(t.meta, meta) {
		// The stream brings rows of transactions that have written before with the labels of then:
		// the copy waits until they have ended.
		t.joins = true
	}
	t.meta = meta
	switch t.phase {
	case phaseCopying:
		t.outdated.Store(true)
		r.store.SetState(meta, colstore.StateCopying, "its definition changed")
	default: // a refused table gets another chance
		t.alone = false
		r.lapse(t, colstore.StateChanged, "its definition changed")
	}
}

// sameRows reports whether a copy under one definition is right under the other, as
// long as it takes all that the stream brings.
func sameRows(old, now *catalog.Table) bool {
	if !catalog.SameRows(old, now) || !catalog.SameLabels(old, now) || len(old.Columns) != len(now.Columns) ||
		old.IdentityFull != now.IdentityFull || !slices.Equal(old.Identity, now.Identity) {
		return false
	}
	for i := range old.Columns {
		a, b := &old.Columns[i], &now.Columns[i]
		if a.AttNum != b.AttNum || a.TypeOID != b.TypeOID || a.Type != b.Type || a.Unsupported != b.Unsupported {
			return false
		}
	}
	return true
}
