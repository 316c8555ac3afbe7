package olap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// versionOf returns another version of a table, of these segments.
func versionOf(t *colstore.Table, segments []*colstore.Segment) *colstore.Table {
	v := &colstore.Table{ID: colstore.NewID(), Meta: t.Meta, Segments: segments, Dicts: t.Dicts}
	for _, s := range segments {
		v.Rows += int64(s.Rows) // an estimate, where rows are dead
	}
	return v
}

// changed returns the segments with other rows alive in some of them: as rows are deleted, or hidden from a snapshot.
func changed(r *rand.Rand, segments []*colstore.Segment) []*colstore.Segment {
	out := append([]*colstore.Segment(nil), segments...)
	for i, s := range out {
		if r.IntN(3) > 0 {
			continue
		}
		c := *s
		c.Live = make([]uint64, (s.Rows+63)/64)
		for row, live := range randomLive(r, s.Rows) {
			if live && (s.Live == nil || s.Live[row>>6]>>(row&63)&1 != 0) {
				c.Live[row>>6] |= 1 << (row & 63)
			}
		}
		c.LiveID = colstore.NewID()
		out[i] = &c
	}
	return out
}

// inPieces loads a table in many small segments.
func inPieces(t testing.TB, r *rand.Rand, s *colstore.Store, meta *catalog.Table, size int, apart int64) *randomTable {
	if meta.OID == 100 {
		size = []int{1, 65, 1500, 3000, 3000}[r.IntN(5)]
	}
	rows := randomRows(r, size, 30, apart)
	var cuts []int
	for at := 0; meta.OID == 100 && at < size; {
		at += 1 + r.IntN(300)
		cuts = append(cuts, at)
	}
	return &randomTable{meta, rows, load(t, s, meta, rows, cuts...)}
}

// keptQuery returns a query, most often one whose groups are kept.
func keptQuery(w *world) (q *plan.Star) {
	for range 20 {
		if q = w.query(); q.Grouped && !slices.ContainsFunc(q.Aggs, func(a plan.AggregateCall) bool {
			return a.Distinct || a.Func.OrderedSet() || a.Func.Idempotent && a.Arg.Type().Kind.IsString()
		}) {
			break
		}
	}
	return q
}

// TestKept asks random queries of one version of the tables after the other, with what is kept of segments and without.
func TestKept(t *testing.T) {
	worlds := 40
	if testing.Short() {
		worlds = 15
	}
	asked, failures := 0, 0
	var reused atomic.Int64
	for seed := range uint64(worlds) {
		w := newWorldOf(t, seed+5000, inPieces)
		for n := range 15 {
			q := keptQuery(w)
			opt := w.options
			opt.Workers, opt.Eager, opt.grouping = 1+n%3, true, []strategy{groupHash, groupDense, groupSingle}[n%3]
			kept := NewSegmentCache(1<<20, &reused)
			all := w.tables[0].table.Segments
			current := all
			in := w.input()
			for step := range 9 {
				switch w.r.IntN(9) {
				case 0:
					current = all
				case 1:
					current = all[:w.r.IntN(len(all)+1)]
				case 2, 3:
					current = changed(w.r, current)
				case 4:
					if i := w.r.IntN(len(in.Tables)); i > 0 {
						in.Tables[i] = versionOf(in.Tables[i], changed(w.r, in.Tables[i].Segments))
					}
				}
				in.Tables[0] = versionOf(in.Tables[0], current)
				want, wantErr := Execute(context.Background(), q, in, opt)
				with := opt
				with.Kept = kept
				got, err := Execute(context.Background(), q, in, with)
				asked++
				if problem, _ := compareOutcomes(q, got, err, want, wantErr); problem != "" {
					if failures++; failures < 6 {
						t.Errorf("seed %d query %d step %d: %s\n%s", seed, n, step, problem, queryText(q))
					}
				}
			}
		}
	}
	t.Logf("%d executions, %d segments reused", asked, reused.Load())
	if n := reused.Load(); n < int64(asked/2) {
		t.Errorf("only %d segments were reused", n)
	}
}

// keptInts is a table of n segments of 1024 rows, of a group and a value, and one of more rows.
func keptInts(t testing.TB, n, more int) *randomTable {
	var rows [][]any
	for i := range 1024*n + more {
		rows = append(rows, []any{int64(i % 3), int64(i)})
	}
	table := ints(t, 1024, []string{"g", "v"}, rows)
	if want := n + (more+1023)/1024; len(table.table.Segments) != want {
		t.Fatalf("%d segments, want %d", len(table.table.Segments), want)
	}
	return table
}

// keptSums is a query of its groups' sums.
func keptSums(table *randomTable) *plan.Star {
	q := &plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: true, Group: []plan.Expr{bigint(0, 0)}}
	sum := plan.AggregateCall{Func: plan.Sum, Arg: bigint(0, 1), T: vector.NumericType(0)}
	q.Aggs = []plan.AggregateCall{sum}
	q.Output = []plan.Expr{plan.Key{T: bigint(0, 0).Type()}, plan.Agg{T: sum.T}}
	return q
}

// TestKeptShortSegment: a segment that has only begun has too many groups for its rows, and only that one is scanned
// each time.
func TestKeptShortSegment(t *testing.T) {
	table := keptInts(t, 6, 20)
	q := keptSums(table)
	var reused atomic.Int64
	kept := NewSegmentCache(1<<20, &reused)
	old := versionOf(table.table, table.table.Segments[:6])
	for i, v := range []*colstore.Table{old, old, old, table.table, table.table, table.table, old, table.table, table.table} {
		before := reused.Load()
		got, err := Execute(context.Background(), q, Input{Tables: []*colstore.Table{v}}, Options{Workers: 2, Kept: kept})
		plain, plainErr := Execute(context.Background(), q, Input{Tables: []*colstore.Table{v}}, Options{Workers: 2})
		if problem, _ := compareOutcomes(q, got, err, plain, plainErr); problem != "" || err != nil {
			t.Error(i, problem, err)
		}
		if now := reused.Load() - before; i > 1 && now != 6 {
			t.Errorf("execution %d: %d segments reused, want 6", i, now)
		}
	}
}

// TestKeptSegments counts which segments are scanned again.
func TestKeptSegments(t *testing.T) {
	for _, n := range []int{1, 2, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			table := keptInts(t, n, 0)
			q := keptSums(table)
			var reused atomic.Int64
			kept := NewSegmentCache(1<<20, &reused)
			ask := func(what string, v *colstore.Table, want int64) {
				t.Helper()
				before := reused.Load()
				got, err := Execute(context.Background(), q, Input{Tables: []*colstore.Table{v}}, Options{Workers: 2, Kept: kept, Eager: true, grouping: groupHash})
				plain, plainErr := Execute(context.Background(), q, Input{Tables: []*colstore.Table{v}}, Options{Workers: 2})
				if problem, _ := compareOutcomes(q, got, err, plain, plainErr); problem != "" || err != nil {
					t.Error(what, problem, err)
				}
				if now := reused.Load() - before; now != want {
					t.Errorf("%s: %d segments reused, want %d", what, now, want)
				}
			}
			all := table.table.Segments
			ask("first", table.table, 0)
			ask("second", table.table, 0)
			ask("third", table.table, int64(n))
			dead := append([]*colstore.Segment(nil), all...)
			c := *all[0]
			c.Live, c.LiveID = append([]uint64{5}, make([]uint64, 15)...), colstore.NewID()
			dead[0] = &c
			ask("a delete", versionOf(table.table, dead), int64(n-1))
			ask("after the delete", versionOf(table.table, dead), int64(n-1))
			ask("once more", versionOf(table.table, dead), int64(n))
			ask("a snapshot before it", versionOf(table.table, all), int64(n-1))
			ask("the same snapshot", versionOf(table.table, all), int64(n-1))
			ask("the same once more", versionOf(table.table, all), int64(n))
			if n > 1 { // nothing is forgotten of a table without segments
				ask("the last segment is gone", versionOf(table.table, all[:n-1]), int64(n-1))
				ask("it is new", versionOf(table.table, all), int64(n-1))
				ask("it is known", versionOf(table.table, all), int64(n-1))
			}
			ask("it is kept", versionOf(table.table, all), int64(n))
			other := append([]*colstore.Segment(nil), all...)
			d := *all[n-1]
			d.Columns = append([]colstore.Column(nil), d.Columns...)
			d.Columns[1].ID = colstore.NewID()
			other[n-1] = &d
			ask("another content", versionOf(table.table, other), int64(n-1))
		})
	}
}
