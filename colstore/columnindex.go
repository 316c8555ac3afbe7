package colstore

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pgaccel/bitmapidx"
	"pgaccel/compress"
)

// Index is the bitmap index of one column of one encoded segment. It says which rows
// hold which values; which of them live, the reader's Segment says. Whoever got it from
// Segment.Index calls Release once.
type Index struct {
	*bitmapidx.Index
	ID  uint64 // of its content, as NewID gives them
	mem *block
}

// Release gives the index back; after that its memory may hold anything.
func (x *Index) Release() { x.mem.release() }

// Index returns the bitmap index of a column, retained, nil where there is none at the
// moment: indexes come for columns that queries use (Table.Use), and go when memory is
// short.
func (s *Segment) Index(col int) *Index {
	set := s.mem.indexes.Load()
	if set == nil {
		return nil
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	x := set.by[col]
	if x != nil {
		x.mem.retain()
	}
	return x
}

// indexBytes returns the memory of a column's index.
func (b *block) indexBytes(col int) int64 {
	set := b.indexes.Load()
	if set == nil {
		return 0
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.by[col] == nil {
		return 0
	}
	return set.by[col].mem.bytes.Load()
}

// indexSet holds the indexes of one segment, by column. It belongs to the memory of the
// segment's columns, which all versions of the segment share: values never change there,
// so that an index holds as long as they do.
type indexSet struct {
	mu     sync.Mutex
	closed bool     // the segment is gone
	by     []*Index // nil: none
	tried  []bool   // not worth it, or there
	of     *usage   // the relation's
}

// drop gives all indexes back. Columns may be indexed again.
func (s *indexSet) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for col, x := range s.by {
		if x != nil {
			x.mem.release()
			s.by[col] = nil
			s.of.indexes[col].Store(NewID())
		}
	}
	clear(s.tried)
}

// close is drop for good.
func (s *indexSet) close() {
	s.drop()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}

// usage is what is known of a relation's columns.
type usage struct {
	counts  []atomic.Int64  // queries that looked for some of its values only
	indexes []atomic.Uint64 // see Table.IndexVersion
	wake    func()
}

func newUsage(columns int, wake func()) *usage {
	return &usage{counts: make([]atomic.Int64, columns), indexes: make([]atomic.Uint64, columns), wake: wake}
}

// indexUses is how many queries must have had a condition on a column before it is
// indexed.
const indexUses = 3

// Use tells that a query has a condition on the values of a column. Columns that are
// used so are indexed in the background, where that is worth its memory.
func (t *Table) Use(col int) {
	if t.usage != nil && col < len(t.usage.counts) && t.usage.counts[col].Add(1) == indexUses {
		t.usage.wake()
	}
}

// IndexVersion numbers the bitmap indexes that segments have of a column: while it stays, none has
// come or gone. 0: there was none yet.
func (t *Table) IndexVersion(col int) uint64 {
	if t.usage == nil || col >= len(t.usage.indexes) {
		return 0
	}
	return t.usage.indexes[col].Load()
}

const (
	// indexShare: all indexes together take at most this part of the memory limit, and
	// none is built in the last such part that is free.
	indexShare = 8
	// indexPause is how long none is built after memory was short.
	indexPause = 5 * time.Minute
	// indexBudget is how long indexes of a relation are built before another one gets its turn.
	indexBudget = 20 * time.Millisecond
)

// indexer knows all indexes of a store.
type indexer struct {
	mu     sync.Mutex
	sets   []*indexSet
	paused time.Time
	bytes  atomic.Int64
	always bool // Options.IndexAll
}

// Indexes returns how many bytes of column memory are bitmap indexes.
func (s *Store) Indexes() int64 { return s.indexer.bytes.Load() }

// drop gives up every index: somebody needs the memory. No lock of a relation is taken.
func (x *indexer) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.sets {
		s.drop()
	}
	x.sets = nil
	x.paused = time.Now().Add(indexPause)
}

// register notes a set that has got its first index.
func (x *indexer) register(s *indexSet) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Contains(x.sets, s) {
		return
	}
	// Sets of segments that are gone go, too, before there are twice as many.
	if len(x.sets) == cap(x.sets) {
		kept := x.sets[:0]
		for _, old := range x.sets {
			old.mu.Lock()
			if !old.closed {
				kept = append(kept, old)
			}
			old.mu.Unlock()
		}
		clear(x.sets[len(kept):])
		x.sets = kept
	}
	x.sets = append(x.sets, s)
}

func (x *indexer) resting() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return time.Now().Before(x.paused)
}

// room reports whether so many more bytes of indexes may be had.
func (s *Store) room(bytes int64) bool {
	used, limit := s.arena.usage()
	return s.indexer.bytes.Load()+bytes <= limit/indexShare && used+bytes <= limit-limit/indexShare
}

// buildIndexes builds indexes for columns that queries use, for a short while, and
// reports whether there is more to do. It is one goroutine's.
func (r *Relation) buildIndexes() (more bool) {
	if r.store.indexer.resting() {
		return false
	}
	var cols []int
	for c := range r.usage.counts {
		if r.usage.counts[c].Load() >= indexUses && r.copied[c] && !r.floats[c] {
			cols = append(cols, c)
		}
	}
	if len(cols) == 0 {
		return false
	}
	type job struct {
		columns []Column
		rows    int
		mem     *block
	}
	var jobs []job
	r.mu.Lock()
	for _, seg := range r.slots {
		if seg != nil && seg.columns != nil && !r.closed {
			seg.mem.retain()
			jobs = append(jobs, job{seg.columns, seg.rows, seg.mem})
		}
	}
	r.mu.Unlock()
	until := time.Now().Add(indexBudget)
	var values []int64
	for _, j := range jobs {
		for _, col := range cols {
			if more || !j.mem.wantsIndex(col, len(j.columns), r.usage) {
				continue
			}
			if more = time.Now().After(until); more {
				continue
			}
			if values == nil {
				values = make([]int64, r.store.segmentRows)
			}
			r.store.index(j.mem, col, &j.columns[col], values[:j.rows])
		}
		j.mem.release()
	}
	return more
}

// wantsIndex reports whether a column has not been looked at yet.
func (b *block) wantsIndex(col, columns int, of *usage) bool {
	set := b.indexes.Load()
	if set == nil {
		set = &indexSet{by: make([]*Index, columns), tried: make([]bool, columns), of: of}
		b.indexes.Store(set) // only the goroutine that builds does this
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	return !set.closed && !set.tried[col]
}

// index builds the index of one column of a segment, where it is worth it.
func (s *Store) index(of *block, col int, c *Column, values []int64) {
	set := of.indexes.Load()
	mem := newBlock(s.arena)
	x := s.build(mem, c, values)
	if x == nil || !set.put(col, &Index{x, NewID(), mem}) {
		mem.release()
		set.put(col, nil)
		return
	}
	s.indexer.register(set)
}

// put notes the index of a column, nil for none, and reports whether the set has it.
func (s *indexSet) put(col int, x *Index) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried[col] = true
	if s.closed {
		return false
	}
	if s.by[col] = x; x != nil {
		s.of.indexes[col].Store(NewID())
	}
	return true
}

// build returns nil where an index is not worth its memory, or there is none.
func (s *Store) build(mem *block, c *Column, values []int64) *bitmapidx.Index {
	if c.Data.Codec() == compress.CodecConstant {
		return nil // the zone map says it all
	}
	c.Data.Decode(values, 0)
	if !s.indexer.always && !worthIndex(bitmapidx.Profiled(values, c.Nulls), c.Data.Bytes()) {
		return nil
	}
	total := int64(0)
	mem.gone = func() { s.indexer.bytes.Add(-total) }
	alloc := func(words int) []uint64 {
		if !s.room(int64(words) * 8) {
			return nil
		}
		m, err := mem.alloc(words * 8)
		if err != nil {
			return nil
		}
		total += int64(words) * 8
		s.indexer.bytes.Add(int64(words) * 8)
		return view[uint64](m)[:words]
	}
	return bitmapidx.Build(values, c.Nulls, alloc)
}

const (
	// indexGain is how many times cheaper than the scan of a packed column the look-up of
	// one value must be, on average, for an index that takes more than half the column's
	// memory; indexBytes how many times the column's memory it may take.
	indexGain  = 2.5
	indexBytes = 4
)

// worthIndex reports whether a column that queries use should be indexed. What takes
// little memory is; else there must be few values (so that no candidates have to be
// looked at), and the column not be nearly as small as a bitmap itself.
func worthIndex(p bitmapidx.Profile, columnBytes int) bool {
	if p.Worth(columnBytes) {
		return true
	}
	size := p.Bytes()
	if p.Distinct > bitmapidx.EqualityBins || p.Distinct == 0 || size > indexBytes*columnBytes || 8*columnBytes < 3*p.Rows {
		return false
	}
	one := bitmapidx.Cost{Words: size/8/p.Distinct + p.Rows/64}
	return one.BeatsScan(int(float64(p.Rows) / indexGain))
}
