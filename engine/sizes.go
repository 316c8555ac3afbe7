package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"pgaccel/catalog"
)

// pg_class.reltuples is what VACUUM or ANALYZE last saw: 0 for a table that was just made
// and filled, and it does not follow one that grows. So plans are made with the rows that
// the store has, as far as a table is copied. They are looked at now and then, and a
// catalog is made anew, so that plans are, where a table has grown or shrunk by a quarter.

// sized is a catalog with the store's row counts.
type sized struct {
	base, catalog *catalog.Catalog
	looked        atomic.Int64 // when, in nanoseconds since started
}

// sizesEvery is the time between two looks at the store's counts.
const sizesEvery = 200 * time.Millisecond

var started = time.Now()

// catalog returns the catalog to plan with.
func (e *Engine) catalog() *catalog.Catalog {
	base, now := e.store.Catalog(), int64(time.Since(started))
	s := e.sized.Load()
	if s != nil && s.base == base {
		last := s.looked.Load()
		if now-last < int64(sizesEvery) || !s.looked.CompareAndSwap(last, now) {
			return s.catalog
		}
		if cat := e.resize(s.catalog); cat == s.catalog {
			return cat
		}
	}
	n := &sized{base: base, catalog: e.resize(base)}
	n.looked.Store(now)
	if !e.sized.CompareAndSwap(s, n) { // others look at the same time
		return e.sized.Load().catalog
	}
	return n.catalog
}

// resize returns cat with the store's row counts: cat itself where it has them about.
func (e *Engine) resize(cat *catalog.Catalog) *catalog.Catalog {
	var tables []*catalog.Table
	for i, t := range cat.Tables {
		n, ok := e.store.Rows(t.OID)
		if !ok || about(n, t.Rows) {
			continue
		}
		if tables == nil {
			tables = slices.Clone(cat.Tables)
		}
		sized := *t
		sized.Rows = n
		tables[i] = &sized
	}
	if tables == nil {
		return cat
	}
	out := *cat
	out.Tables = tables
	return &out
}

// about reports whether plans for a rows are good for b.
func about(a, b int64) bool { return max(a, b) <= min(a, b)+min(a, b)/4+100 }
