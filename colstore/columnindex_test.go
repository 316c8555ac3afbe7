package colstore

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/vector"
)

// indexable loads a table of two integer columns, of which the first has few values.
func indexable(t *testing.T, s *Store, rows int) {
	t.Helper()
	m := &catalog.Table{OID: 7, Schema: "public", Name: "t", Columns: []catalog.Column{
		{Name: "few", Type: vector.TypeOf(vector.Int4)}, {Name: "noise", Type: vector.TypeOf(vector.Int4)}, {Name: "f", Type: vector.TypeOf(vector.Float8)}}}
	l := s.NewLoader(m)
	w := l.NewWriter()
	r := rand.New(rand.NewPCG(1, 2))
	for range rows {
		v := int64(r.IntN(12)) * 1000
		if r.IntN(50) == 0 {
			w.Null(0)
		} else {
			w.Int(0, v)
		}
		w.Int(1, int64(r.IntN(1<<20)))
		w.Int(2, 0)
		if err := w.EndRow(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table, err := l.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s.Publish(s.NewRelation(table))
}

// settled waits until the work behind has looked at all columns that are used.
func settled(t *testing.T, s *Store) {
	t.Helper()
	for range 1000 {
		s.behind.work()
		more := false
		for _, r := range s.relations() {
			more = more || r.buildIndexes()
		}
		if !more {
			return
		}
	}
	t.Fatal("indexes are built without end")
}

func TestIndexesComeAndGo(t *testing.T) {
	s := New(Options{SegmentRows: 4096, manual: true})
	defer s.Close()
	indexable(t, s, 20000)
	table, _ := s.Get(7)
	defer table.Release()
	has := func(col int) (n int) {
		for _, seg := range table.Segments {
			if x := seg.Index(col); x != nil {
				n++
				x.Release()
			}
		}
		return n
	}
	for range indexUses - 1 {
		table.Use(0)
	}
	settled(t, s)
	if s.Indexes() != 0 || has(0) != 0 || table.IndexVersion(0) != 0 {
		t.Fatal("an index before the column was used often enough")
	}
	for range 10 {
		table.Use(0)
		table.Use(1)
		table.Use(2)
	}
	before, _ := s.Usage()
	settled(t, s)
	used, _ := s.Usage()
	// Noise is not worth an index; of floats there are none; a segment that is not full
	// has one, too, once it is encoded.
	if has(0) != len(table.Segments) || has(1) != 0 || has(2) != 0 {
		t.Fatalf("indexes of %d, %d and %d segments of %d", has(0), has(1), has(2), len(table.Segments))
	}
	version := table.IndexVersion(0)
	if version == 0 || table.IndexVersion(1) != 0 || table.IndexVersion(0) != version {
		t.Errorf("indexes of versions %d and %d", version, table.IndexVersion(1))
	}
	if s.Indexes() <= 0 || used-before < s.Indexes() {
		t.Errorf("indexes of %d bytes, memory has grown by %d", s.Indexes(), used-before)
	}
	// They say what the column says.
	values := make([]int64, 4096)
	for _, seg := range table.Segments {
		x := seg.Index(0)
		c := &seg.Columns[0]
		c.Data.Decode(values[:seg.Rows], 0)
		rows := make([]uint64, (seg.Rows+63)/64)
		maybe := x.Range(rows, 5000, 8999)
		for i := range seg.Rows {
			want := values[i] >= 5000 && values[i] <= 8999 && !hasBit(c.Nulls, i)
			if got := hasBit(rows, i); want && !got || got && !want && !hasBit(maybe, i) {
				t.Fatalf("row %d: %v, want %v", i, got, want)
			}
		}
		x.Release()
	}
	// Memory is short: a reader's index stays until it is given back, all others go.
	mine := table.Segments[0].Index(0)
	first, again := make([]uint64, (table.Segments[0].Rows+63)/64), make([]uint64, (table.Segments[0].Rows+63)/64)
	mine.Range(first, 5000, 8999)
	s.arena.mu.Lock()
	limit := s.arena.limit
	s.arena.limit = s.arena.used
	s.arena.mu.Unlock()
	b := newBlock(s.arena)
	if _, err := b.alloc(1024); err != nil {
		t.Errorf("no memory though indexes can go: %v", err)
	}
	b.release()
	if table.IndexVersion(0) == version {
		t.Error("indexes went, and are of the same version")
	}
	if has(0) != 0 || s.Indexes() == 0 {
		t.Errorf("%d indexes, %d bytes of them; want the reader's alone", has(0), s.Indexes())
	}
	if mine.Range(again, 5000, 8999); !slices.Equal(again, first) {
		t.Error("the reader's index has changed")
	}
	mine.Release()
	if s.Indexes() != 0 {
		t.Errorf("%d bytes of indexes are left", s.Indexes())
	}
	s.arena.mu.Lock()
	s.arena.limit = limit
	s.arena.mu.Unlock()
	settled(t, s)
	if has(0) != 0 {
		t.Error("indexes are built while memory is short")
	}
	s.indexer.mu.Lock()
	s.indexer.paused = time.Time{}
	s.indexer.mu.Unlock()
	settled(t, s)
	if has(0) != len(table.Segments) {
		t.Errorf("indexes of %d segments after the pause", has(0))
	}
	// They go with the table.
	s.Remove(7)
	if s.Indexes() == 0 {
		t.Error("indexes went while a reader has the table")
	}
}

func hasBit(bitmap []uint64, row int) bool { return bitmap != nil && has(bitmap, row) }

// TestIndexesGoWithTheTable: nothing is left of a table that is removed.
func TestIndexesGoWithTheTable(t *testing.T) {
	s := New(Options{SegmentRows: 4096, manual: true, IndexAll: true})
	defer s.Close()
	indexable(t, s, 9000)
	table, _ := s.Get(7)
	for range indexUses {
		table.Use(0)
		table.Use(1)
	}
	settled(t, s)
	if x := table.Segments[0].Index(1); x == nil {
		t.Error("IndexAll left a column out")
	} else {
		x.Release()
	}
	shown := int64(0)
	for _, c := range s.ColumnSizes() {
		if c.Codec == "index" {
			shown += c.Bytes
		}
	}
	if shown == 0 || (shown < s.Indexes() || shown > s.Indexes()+64*16) { // pieces are multiples of 64 bytes
		t.Errorf("columns show %d bytes of indexes, the store %d", shown, s.Indexes())
	}
	table.Release()
	s.Remove(7)
	if used, _ := s.Usage(); used != 0 || s.Indexes() != 0 {
		t.Errorf("%d bytes are left, %d of indexes", used, s.Indexes())
	}
}
