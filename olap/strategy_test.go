package olap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// withSmallGroups makes merges parallel and estimates sampled for tables of some
// thousand rows.
func withSmallGroups(t testing.TB) {
	merge, rows, prune, order := parallelMerge, sampleRows, pruneRows, parallelSort
	parallelMerge, sampleRows, pruneRows, parallelSort = 8, 64, 20, 8
	t.Cleanup(func() { parallelMerge, sampleRows, pruneRows, parallelSort = merge, rows, prune, order })
}

var strategies = []struct {
	name string
	how  strategy
}{{"auto", groupAuto}, {"dense", groupDense}, {"hash", groupHash}, {"partitioned", groupPartitioned}}

// addSets gives a grouped query grouping sets: a ROLLUP, a CUBE, or any.
func addSets(r *rand.Rand, q *plan.Star) {
	n := len(q.Group)
	switch r.IntN(4) {
	case 0:
		for i := n; i >= 0; i-- {
			q.Sets = append(q.Sets, 1<<i-1)
		}
	case 1:
		for set := range uint64(1) << n {
			q.Sets = append(q.Sets, set)
		}
	case 2:
		for i := range n { // no set includes another
			q.Sets = append(q.Sets, 1<<i)
		}
	}
	for len(q.Sets) == 0 || r.IntN(2) == 0 {
		q.Sets = append(q.Sets, r.Uint64N(1<<n))
	}
	missing := uint64(1)<<n - 1
	for _, set := range q.Sets {
		missing &^= set
	}
	if missing != 0 { // every key is in some set
		q.Sets = append(q.Sets, missing|r.Uint64N(1<<n))
	}
	if n == 0 || r.IntN(2) == 0 {
		return
	}
	g := &plan.Grouping{T: vector.TypeOf(vector.Int4)}
	for range 1 + r.IntN(3) {
		g.Keys = append(g.Keys, r.IntN(n))
	}
	q.Output = append(q.Output, g)
	if r.IntN(3) == 0 {
		q.Order = append([]plan.Order{{Expr: g, Desc: r.IntN(2) == 0}}, q.Order...)
	}
	if r.IntN(3) == 0 {
		q.Having = append(q.Having, call(plan.OpNe, vector.Bool, g, integer(int64(r.IntN(4)))))
	}
}

// TestStrategiesAgainstOracle groups random queries in every way, by all keys and by
// sets of them.
func TestStrategiesAgainstOracle(t *testing.T) {
	withSmallGroups(t)
	worlds := 100
	if testing.Short() {
		worlds = 25
	}
	queries, answered := 0, 0
	for seed := range uint64(worlds) {
		w := newWorld(t, 1000+seed)
		for n := range 20 {
			q := w.query()
			if !q.Grouped {
				continue
			}
			if n%2 == 0 {
				addSets(w.r, q)
			}
			want, wantErr := w.reference(q)
			for i, s := range strategies {
				opt := w.options
				opt.Workers, opt.grouping = 1+(n+i)%3, s.how
				got, err := Execute(t.Context(), q, w.input(), opt)
				var f *plan.Forward
				if s.how == groupDense && errors.As(err, &f) && f.Reason == plan.ReasonMemory {
					continue // so large an array is not chosen but where it is demanded
				}
				problem, why := compareOutcomes(q, got, err, want, wantErr)
				if queries++; why == "" {
					answered++
				}
				if problem != "" {
					t.Fatalf("seed %d query %d %s: %s\n%s", seed, n, s.name, problem, queryText(q))
				}
			}
		}
	}
	t.Logf("%d queries, %d answered", queries, answered)
	if answered*2 < queries {
		t.Errorf("only %d of %d queries were answered", answered, queries)
	}
}

// groupedBy is a query of one table of ints: by some columns, with aggregates of column 0.
func groupedBy(table *randomTable, columns ...int) *plan.Star {
	q := &plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: true, Aggs: []plan.AggregateCall{
		{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)},
		{Func: plan.Sum, Arg: bigint(0, 0), T: vector.NumericType(0)},
		{Func: plan.Min, Arg: bigint(0, 0), T: vector.TypeOf(vector.Int8)},
		{Func: plan.Count, Arg: bigint(0, 0), T: vector.TypeOf(vector.Int8), Filter: call(plan.OpGt, vector.Bool, bigint(0, 0), integer(10))},
	}}
	for i, c := range columns {
		q.Group = append(q.Group, bigint(0, c))
		q.Output = append(q.Output, plan.Key{Index: i, T: vector.TypeOf(vector.Int8)})
	}
	for i, a := range q.Aggs {
		q.Output = append(q.Output, plan.Agg{Index: i, T: a.T})
	}
	return q
}

// manyGroups is a table whose keys are close together, wide apart and in two words, with
// nulls.
func manyGroups(t testing.TB, rows, groups int) *randomTable {
	r := rand.New(rand.NewPCG(11, uint64(rows)))
	var data [][]any
	for range rows {
		g := int64(r.IntN(groups))
		row := []any{int64(r.IntN(100)), g, g * 1000000007, g << 44, any(g % 5)}
		if r.IntN(50) == 0 {
			row[1+r.IntN(4)] = nil
		}
		if r.IntN(9) == 0 {
			row[0] = nil
		}
		data = append(data, row)
	}
	return ints(t, 1024, []string{"x", "near", "far", "wide", "few"}, data)
}

// TestStrategiesAtEdges groups tables of lengths around those of words, blocks and tiles.
func TestStrategiesAtEdges(t *testing.T) {
	withSmallGroups(t)
	for _, rows := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 5000} {
		for _, groups := range []int{1, 7, 900} {
			table := manyGroups(t, rows, groups)
			w := &world{tables: []*randomTable{table}}
			for _, columns := range [][]int{{}, {1}, {2}, {3, 2}, {4, 1}, {2, 3, 4}} {
				for _, aggregates := range []int{4, 1} { // one: nothing but counts
					q := groupedBy(table, columns...)
					q.Aggs, q.Output = q.Aggs[:aggregates], q.Output[:len(columns)+aggregates]
					want, wantErr := w.reference(q)
					for _, s := range strategies {
						for workers := 1; workers <= 3; workers++ {
							got, err := Execute(t.Context(), q, w.input(), Options{Workers: workers, grouping: s.how})
							if problem, why := compareOutcomes(q, got, err, want, wantErr); problem != "" || why != "" {
								t.Fatalf("%d rows, %d groups, columns %v, %d aggregates, %s, %d workers: %s %s", rows, groups, columns, aggregates, s.name, workers, problem, why)
							}
						}
					}
				}
			}
		}
	}
}

// TestNeighboursAddUp groups keys of which several rows follow each other, which are one row of a partition's buffer where
// all that is asked for are sums.
func TestNeighboursAddUp(t *testing.T) {
	withSmallGroups(t)
	for _, rows := range []int{1, 63, 64, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025, 9000, 40000} {
		for _, neighbours := range []int{1, 2, 3, 5, 64} {
			var data [][]any
			for i := range rows {
				g := int64(i / neighbours)
				data = append(data, []any{int64(i%97) << 40, 40 * g, g * 1000000007, g << 44, -g})
			}
			table := ints(t, 1024, []string{"x", "near", "far", "wide", "y"}, data)
			w := &world{tables: []*randomTable{table}}
			for _, columns := range [][]int{{1}, {2}, {3, 2}} {
				q := groupedBy(table, columns...)
				q.Aggs = append(q.Aggs[:2:2], plan.AggregateCall{Func: plan.Sum, Arg: bigint(0, 4), T: vector.NumericType(0)})
				q.Output = q.Output[:len(columns)+3]
				q.Output[len(columns)+2] = plan.Agg{Index: 2, T: q.Aggs[2].T}
				for workers := 1; workers <= 3; workers++ {
					w.options.grouping = groupPartitioned
					if problem, why := w.outcome(q, workers); problem != "" || why != "" {
						t.Fatalf("%d rows, %d neighbours, columns %v, %d workers: %s %s", rows, neighbours, columns, workers, problem, why)
					}
				}
			}
		}
	}
}

// TestGroupsBeyondMemory checks that every strategy counts what it takes.
func TestGroupsBeyondMemory(t *testing.T) {
	table := manyGroups(t, 30000, 20000)
	w := &world{tables: []*randomTable{table}}
	q := groupedBy(table, 2)
	for _, s := range strategies {
		for _, limit := range []int64{1000, 300000} {
			wantForward(t, q, w.input(), Options{MemoryLimit: limit, grouping: s.how}, plan.ReasonMemory)
		}
	}
	q.Sets = []uint64{1, 0}
	wantForward(t, q, w.input(), Options{MemoryLimit: 300000}, plan.ReasonMemory)
}

// TestPartitionsTakeTurns fills buffers more than once, from several workers.
func TestPartitionsTakeTurns(t *testing.T) {
	for _, column := range []int{1, 2} {
		table := manyGroups(t, 60000, 3)
		w := &world{tables: []*randomTable{table}}
		q := groupedBy(table, column)
		for _, workers := range []int{1, 4} {
			w.options.grouping = groupPartitioned
			if problem, why := w.outcome(q, workers); problem != "" || why != "" {
				t.Errorf("column %d, %d workers: %s %s", column, workers, problem, why)
			}
		}
	}
}

// TestSetsAreDerived looks at the plan: which sets are computed from rows.
func TestSetsAreDerived(t *testing.T) {
	table := manyGroups(t, 5000, 3000)
	few := manyGroups(t, 5000, 6)
	for _, c := range []struct {
		table   *randomTable
		columns []int
		sets    []uint64
		bases   []uint64
	}{
		{few, []int{1, 4}, []uint64{3, 1, 0}, []uint64{3}},
		{few, []int{1, 4}, []uint64{0}, []uint64{0}},
		{few, []int{1, 4}, []uint64{1, 2}, []uint64{3}}, // a union of few groups saves a numbering
		{table, []int{2, 3}, []uint64{1, 2}, []uint64{1, 2}},
		{table, []int{2, 3}, []uint64{1, 2, 3}, []uint64{3}},
	} {
		q := groupedBy(c.table, c.columns...)
		q.Sets = c.sets
		w := &world{tables: []*randomTable{c.table}}
		x, err := newExecution(t.Context(), q, w.input(), Options{})
		if err == nil {
			err = x.begin()
		}
		if err != nil {
			t.Fatal(err)
		}
		p, lowered, err := x.prepare(0, q.Group, []bool{true, true})
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGrouper(p, lowered)
		if err != nil {
			t.Fatal(err)
		}
		g.arrange(q.Sets)
		var bases []uint64
		for _, by := range g.bases {
			bases = append(bases, by.set)
		}
		if fmt.Sprint(bases) != fmt.Sprint(c.bases) {
			t.Errorf("sets %v: computed from rows %v, want %v", c.sets, bases, c.bases)
		}
		if problem, why := w.outcome(q, 2); problem != "" || why != "" {
			t.Errorf("sets %v: %s %s", c.sets, problem, why)
		}
	}
}

// TestEmptySets checks the rows over no input: one for each empty set, none for others.
func TestEmptySets(t *testing.T) {
	table := manyGroups(t, 100, 5)
	w := &world{tables: []*randomTable{table}}
	q := groupedBy(table, 1, 2)
	q.Sets = []uint64{3, 0, 1, 0}
	q.Filter = []plan.Expr{call(plan.OpLt, vector.Bool, bigint(0, 0), integer(-1))}
	for _, s := range strategies {
		got, err := Execute(t.Context(), q, w.input(), Options{grouping: s.how})
		if err != nil || got.Rows != 2 {
			t.Fatalf("%s: %v, %v; want 2 rows", s.name, got, err)
		}
		for i := range 2 {
			if text := rowText(got, i); text != "null | null | 0 | null | null | 0 | " {
				t.Errorf("%s: %s", s.name, text)
			}
		}
	}
}

// TestSupportsSets checks what is refused of them.
func TestSupportsSets(t *testing.T) {
	table := manyGroups(t, 1, 1)
	for name, change := range map[string]func(q *plan.Star){
		"":               func(q *plan.Star) { q.Sets = []uint64{3, 2, 2, 0} },
		"an unknown key": func(q *plan.Star) { q.Sets = []uint64{4} },
		"no sets":        func(q *plan.Star) { q.Sets = []uint64{} },
		"GROUPING of no key": func(q *plan.Star) {
			q.Output = append(q.Output, &plan.Grouping{Keys: []int{2}, T: vector.TypeOf(vector.Int4)})
		},
		"sets of rows": func(q *plan.Star) { q.Sets = []uint64{0}; q.Grouped = false },
		"GROUPING of rows": func(q *plan.Star) {
			q.Filter = []plan.Expr{call(plan.OpEq, vector.Bool, &plan.Grouping{Keys: []int{0}, T: vector.TypeOf(vector.Int4)}, integer(0))}
		},
	} {
		q := groupedBy(table, 1, 2)
		change(q)
		if f := Supports(q); (f == nil) != (name == "") {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// TestBoundsOfSelected: groups are numbered within what the conditions let pass, and the arrays
// of many workers must be worth their rows.
func TestBoundsOfSelected(t *testing.T) {
	table := manyGroups(t, 20000, 9000)
	w := &world{tables: []*randomTable{table}}
	for _, c := range []struct {
		from, to int64
		workers  int
		card     uint64 // nulls have a number, too
		how      strategy
	}{
		{0, 10000, 1, 9001, groupDense},
		{0, 10000, 16, 9001, groupHash},
		{100, 149, 16, 51, groupDense},
		{149, 100, 16, 9001, groupHash}, // no row passes
	} {
		q := groupedBy(table, 1)
		q.Filter = []plan.Expr{call(plan.OpGe, vector.Bool, bigint(0, 1), integer(c.from)), call(plan.OpLe, vector.Bool, bigint(0, 1), integer(c.to))}
		x, err := newExecution(t.Context(), q, w.input(), Options{Workers: c.workers})
		if err == nil {
			err = x.begin()
		}
		if err != nil {
			t.Fatal(err)
		}
		p, lowered, err := x.prepare(0, q.Group, []bool{true})
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGrouper(p, lowered)
		if err != nil {
			t.Fatal(err)
		}
		g.arrange(nil)
		if by := g.bases[0]; by.pack.card != c.card || c.from <= c.to && by.how != c.how {
			t.Errorf("%d to %d, %d workers: %d numbers, strategy %d; want %d, %d", c.from, c.to, c.workers, by.pack.card, by.how, c.card, c.how)
		}
		if problem, why := w.outcome(q, c.workers); problem != "" || why != "" {
			t.Errorf("%d to %d: %s %s", c.from, c.to, problem, why)
		}
	}
}
