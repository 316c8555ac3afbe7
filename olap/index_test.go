package olap

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// indexedTable makes a table whose columns are all indexed, with some dead rows.
func indexedTable(t testing.TB, r *rand.Rand, s *colstore.Store, meta *catalog.Table, size int, apart int64) *randomTable {
	rows := randomRows(r, size, 30, apart)
	// Some columns are clustered, as real ones are.
	for i := range rows {
		if i > 0 && r.IntN(8) > 0 {
			for _, c := range []string{"b", "i2", "i4", "d", "t", "skew"} {
				k := columnNumber(c)
				rows[i][k] = rows[i-1][k]
			}
		}
	}
	m := &randomTable{meta, rows, load(t, s, meta, rows)}
	if size == 0 {
		return m
	}
	m.table.Retain()
	s.Publish(s.NewRelation(m.table))
	for range 3 {
		for c := range meta.Columns {
			m.table.Use(c)
		}
	}
	waitForIndexes(t, m.table)
	for i, seg := range m.table.Segments {
		if r.IntN(3) > 0 {
			continue
		}
		live := randomLive(r, seg.Rows)
		marked := *seg
		marked.Live = make([]uint64, (seg.Rows+63)/64)
		for k, is := range live {
			if is {
				marked.Live[k>>6] |= 1 << (k & 63)
			}
		}
		m.table.Segments[i] = &marked
	}
	m.rows = nil
	at := 0
	for _, seg := range m.table.Segments {
		for k := range seg.Rows {
			if seg.Live == nil || seg.Live[k>>6]>>(k&63)&1 != 0 {
				m.rows = append(m.rows, rows[at])
			}
			at++
		}
	}
	m.table.Rows = int64(len(m.rows))
	return m
}

func columnNumber(name string) int {
	for i := range shape {
		if shape[i].Name == name {
			return i
		}
	}
	panic("no column " + name)
}

// waitForIndexes waits until each segment's i4 has an index; it is never a constant.
func waitForIndexes(t testing.TB, table *colstore.Table) {
	t.Helper()
	for range 2000 {
		missing := false
		for _, seg := range table.Segments {
			for _, c := range []string{"id", "p2"} {
				if seg.Rows < 2 {
					continue
				}
				if x := seg.Index(columnNumber(c)); x == nil {
					missing = true
				} else {
					x.Release()
				}
			}
		}
		if !missing {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("no indexes are built")
}

// TestIndexedQueries answers every condition that can be by bitmap indexes, and compares
// with the oracle.
func TestIndexedQueries(t *testing.T) {
	used := indexesAsked.Load()
	answered := 0
	worlds := 50
	if testing.Short() {
		worlds = 15
	}
	for seed := range uint64(worlds) {
		s := colstore.New(colstore.Options{SegmentRows: 1024, IndexAll: true})
		t.Run("", func(t *testing.T) { // so that what the tables hold is released before the store is closed
			w := newWorldOf(t, seed+77, func(t testing.TB, r *rand.Rand, _ *colstore.Store, meta *catalog.Table, size int, apart int64) *randomTable {
				return indexedTable(t, r, s, meta, size, apart)
			})
			w.options = Options{Indexes: IndexForce}
			for n := range 20 {
				q := w.query()
				if n%5 == 4 {
					q = w.rowQuery()
				}
				// More conditions that an index can answer.
				for range w.r.IntN(3) {
					k := []string{"skew", "i4", "d", "id", "i2"}[w.r.IntN(5)]
					col := w.columnOf(0, k)
					d := randomDatum(w.r, col.Type(), w.r.IntN(3000), 30, false)
					op := []plan.Op{plan.OpEq, plan.OpLe, plan.OpGe, plan.OpLt, plan.OpGt}[w.r.IntN(5)]
					q.Filter = append(q.Filter, &plan.Call{Op: op, T: vector.TypeOf(vector.Bool), Args: []plan.Expr{col, plan.Const{Datum: d}}})
				}
				problem, why := w.outcome(q, 1+n%3)
				if problem != "" {
					t.Fatalf("seed %d query %d: %s\n%s", seed, n, problem, queryText(q))
				}
				if why == "" {
					answered++
				}
			}
		})
		s.Close()
	}
	if n := indexesAsked.Load() - used; answered < 10*worlds || 3*n < int64(answered) {
		t.Errorf("%d queries were answered, %d times by an index", answered, n)
	}
}
