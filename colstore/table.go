package colstore

import (
	"math"
	"sync"
	"sync/atomic"

	"pgaccel/catalog"
	"pgaccel/compress"
)

// Table is one version of a table: immutable and reference counted. Whoever got
// it from Store.Get holds a reference and calls Release exactly once; after that
// its segments' memory may hold anything.
type Table struct {
	// ID names the version, as NewID says.
	ID       uint64
	Meta     *catalog.Table
	Rows     int64
	Segments []*Segment
	// Dicts holds the dictionary of each text column of Meta.Columns, nil for
	// others.
	Dicts []*Dict
	// Snapshot is the exported snapshot that the copy was made at. The replica sets
	// it before Publish.
	Snapshot Snapshot

	refs  atomic.Int64
	bytes int64
	free  func()
	usage *usage // the relation's

	mu     sync.Mutex
	bounds map[int]bounds // by column, as far as somebody asked
}

// bounds are those of a column in all segments.
type bounds struct {
	lo, hi   int64
	nullable bool
	widest   uint64
}

// Bounds merges a column's zone maps: lo and hi as Column.Min and Max, and whether there
// are nulls. lo > hi where there are no values.
func (t *Table) Bounds(col int) (lo, hi int64, nullable bool) {
	b := t.boundsOf(col)
	return b.lo, b.hi, b.nullable
}

// Widest returns how far Column.Min and Max are apart in the segment where they are the most.
func (t *Table) Widest(col int) uint64 { return t.boundsOf(col).widest }

func (t *Table) boundsOf(col int) bounds {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.bounds[col]
	if !ok {
		b = bounds{lo: math.MaxInt64, hi: math.MinInt64}
		for _, s := range t.Segments {
			z := &s.Columns[col]
			b.lo, b.hi = min(b.lo, z.Min), max(b.hi, z.Max)
			b.nullable = b.nullable || z.NullCount > 0
			if z.Min <= z.Max {
				b.widest = max(b.widest, uint64(z.Max)-uint64(z.Min))
			}
		}
		if t.bounds == nil {
			t.bounds = map[int]bounds{}
		}
		t.bounds[col] = b
	}
	return b
}

// Bytes returns the column memory that the version holds: encoded columns, null
// bitmaps and dictionaries.
func (t *Table) Bytes() int64 { return t.bytes }

// Retain adds a reference. The caller must hold one.
func (t *Table) Retain() {
	if t.refs.Add(1) <= 1 {
		panic("BUG: Retain of a released table")
	}
}

// Release gives a reference back; with the last one the memory returns to the
// store.
func (t *Table) Release() {
	switch n := t.refs.Add(-1); {
	case n == 0:
		t.free()
	case n < 0:
		panic("BUG: Release of a released table")
	}
}

// Version names what View returned, also once that has been released.
type Version struct {
	OID uint32
	ID  uint64
}

// Version returns the table's name.
func (t *Table) Version() Version { return Version{t.Meta.OID, t.ID} }

// Segment is a run of rows, at most Options.SegmentRows of them and never none.
type Segment struct {
	// Slot is the segment's number in its table. It stays the same in all versions that
	// have the segment; those of a copy are 0, 1, 2, ...
	Slot int
	Rows int
	// Live has a bit per row, set for the rows that the version holds: others were
	// deleted, or are of a transaction that the reader does not see. nil where it
	// holds all. Zone maps cover rows that are not live, too.
	Live []uint64
	// LiveID names the content of Live, as NewID says; 0 where Live is nil.
	LiveID uint64
	// Columns[i] belongs to Meta.Columns[i]; the zero Column for one that is not
	// copied (catalog.Column.Unsupported). Where Meta.HashIdentity(), two more hold
	// Row.Identity.
	Columns []Column

	part uint32 // OID of the leaf partition, the table's where it is not partitioned
	mem  *block // of the columns
}

// Column is one column of a segment.
type Column struct {
	// ID names Data, Nulls and the bounds, as NewID says; 0 for the zero Column. Versions
	// of a table that share a segment share its columns and their numbers.
	ID uint64
	// Data holds the values in vector's 64-bit representation, dictionary codes for
	// text. Null rows hold any value, normally the previous one; for text that is the
	// code of some string, or 0 where the dictionary is empty.
	Data compress.Column
	// Nulls has a bit per row, set for null; nil where there is none.
	Nulls     []uint64
	NullCount int
	// Min and Max bound the values of all rows that are not null, exactly, in the
	// order of the representation; of vector.FloatKey(bits) for floats, of codes
	// for text. Min > Max where every row is null.
	Min, Max int64
}
