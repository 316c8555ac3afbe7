package olap

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgaccel/internal/temp"
	"pgaccel/plan"
	"pgaccel/vector"
)

// whole reads a batch that comes in pieces.
func whole(b *vector.Batch) (*vector.Batch, error) {
	if b.Next == nil {
		return b, nil
	}
	defer b.Release()
	out := &vector.Batch{Rows: b.Rows, Columns: make([]vector.Column, len(b.Columns))}
	for i := range b.Columns {
		out.Columns[i].Type = b.Columns[i].Type
	}
	for i := range b.Rows {
		if _, err := b.Load(i); err != nil {
			return nil, err
		}
		for c := range b.Columns {
			from, to := &b.Columns[c], &out.Columns[c]
			at := i - b.First
			switch {
			case from.Type.Kind.IsString():
				to.Strs = append(to.Strs, from.Strs[at])
			case from.Type.Kind == vector.Numeric:
				to.Decimals = append(to.Decimals, from.Decimals[at])
			default:
				to.Ints = append(to.Ints, from.Ints[at])
			}
			if from.IsNull(at) {
				to.SetNull(i, b.Rows)
			}
		}
	}
	return out, nil
}

func tempSpace(t testing.TB, limit int64) *temp.Space {
	t.Helper()
	s, err := temp.Open(t.TempDir(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nothingLeft asserts that all files and bytes were given back.
func nothingLeft(t *testing.T, space *temp.Space, held int64) {
	t.Helper()
	if files, bytes, _ := space.Usage(); files != 0 || bytes != 0 || held != 0 {
		t.Errorf("%d files of %d bytes are left, and %d bytes of memory", files, bytes, held)
	}
}

// TestSpilledAgainstOracle: random queries with a few KiB to work with, so that runs and partitions
// are many.
func TestSpilledAgainstOracle(t *testing.T) {
	worlds := 60
	if testing.Short() {
		worlds = 20
	}
	space := tempSpace(t, 1<<30)
	tally, files := tally{}, int64(0)
	var held atomic.Int64
	for seed := range uint64(worlds) {
		w := newWorld(t, 3000+seed)
		w.options = Options{Temp: space, forceSpill: true, spillWork: 1 << (10 + seed%6), Reserve: func(n int64) bool {
			held.Add(n)
			return true
		}}
		for n := range 30 {
			q := w.query()
			if n%6 == 5 {
				q = w.rowQuery()
			}
			_, _, before := space.Usage()
			tally.ask(t, w, seed, n, q)
			if _, _, after := space.Usage(); after > before {
				files++
			}
			held.Store(0) // of results and lookups, which the caller gives back
		}
	}
	tally.end(t, 0.5)
	if files < int64(tally.queries)/3 {
		t.Errorf("%d of %d queries have used files", files, tally.queries)
	}
	nothingLeft(t, space, 0)
}

// TestSpilledAsUnspilled: sorts and groups of more rows than a run or a partition has, with budgets
// on both sides of what they need.
func TestSpilledAsUnspilled(t *testing.T) {
	w := newWorld(t, 3)
	for _, n := range []int{1, 2, 1023, 1024, 1025, 5000} {
		w.tables[0] = randomFact(t, w, n)
		for _, q := range spilledQueries(w) {
			want, err := Execute(context.Background(), q, w.input(), Options{Workers: 1})
			if err != nil {
				t.Fatalf("%v\n%s", err, queryText(q))
			}
			for _, work := range []int64{256, 4 << 10, 64 << 10, 1 << 20} {
				space := tempSpace(t, 1<<30)
				for _, workers := range []int{1, 3} {
					b, err := Execute(context.Background(), q, w.input(), Options{Workers: workers, Temp: space, forceSpill: true, spillWork: work})
					if err != nil {
						t.Fatalf("%d rows, work of %d: %v\n%s", n, work, err, queryText(q))
					}
					if b.Next == nil {
						t.Fatalf("%d rows: the result is in memory\n%s", n, queryText(q))
					}
					got, err := whole(b)
					if err != nil {
						t.Fatal(err)
					}
					if problem, _ := compareOutcomes(q, got, nil, want, nil); problem != "" {
						t.Errorf("%d rows, work of %d: %s\n%s", n, work, problem, queryText(q))
					}
				}
				nothingLeft(t, space, 0)
			}
		}
	}
}

func randomFact(t *testing.T, w *world, n int) *randomTable {
	was := w.tables[0]
	rows := randomRows(w.r, n, 50, 1)
	s := newStore(t, 1024)
	return &randomTable{meta: was.meta, rows: rows, table: load(t, s, was.meta, rows, n)}
}

// spilledQueries order all rows, and group by many keys.
func spilledQueries(w *world) []*plan.Star {
	tables := []plan.Source{{Meta: w.tables[0].meta, Table: 0}}
	var out []plan.Expr
	var all []*plan.Star
	id := w.column(0, colID)
	for c := range shape {
		if shape[c].Type.Kind.IsString() && !shape[c].Type.Collation.C {
			continue
		}
		out = append(out, w.column(0, c))
		all = append(all, &plan.Star{Tables: tables, Output: []plan.Expr{id, out[len(out)-1]},
			Order: []plan.Order{{Expr: out[len(out)-1], Desc: c%2 == 0, NullsFirst: c%3 == 0}, {Expr: id}}})
	}
	rows := func(q *plan.Star) plan.AggregateCall { return plan.AggregateCall{} }
	_ = rows
	all = append(all, &plan.Star{Tables: tables, Output: out})
	key := plan.Key{Index: 0, T: id.Type()}
	all = append(all, &plan.Star{Tables: tables, Grouped: true, Group: []plan.Expr{id}, Output: []plan.Expr{key}},
		&plan.Star{Tables: tables, Grouped: true, Group: []plan.Expr{id}, Output: []plan.Expr{key}, Order: []plan.Order{{Expr: key, Desc: true}},
			Limit: plan.Const{Datum: vector.Int(vector.Int8, 700)}, Offset: plan.Const{Datum: vector.Int(vector.Int8, 3)}})
	return all
}

// TestKeyBytes: keys as bytes are in the order of the columns.
func TestKeyBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for turn := range 500 {
		const n = 60
		q := &plan.Star{}
		var cols []rcol
		for range 1 + r.IntN(3) {
			cols = append(cols, orderColumn(r, n))
			q.Order = append(q.Order, plan.Order{Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0})
		}
		compare, err := ordering(cols, q.Order)
		if err != nil {
			t.Fatal(err)
		}
		var keys [n][]byte
		for i := range uint32(n) {
			for k := range cols {
				if keys[i], err = cols[k].appendKey(keys[i], i, q.Order[k]); err != nil {
					t.Fatal(err)
				}
			}
		}
		for a := range uint32(n) {
			for b := range uint32(n) {
				if got, want := bytes.Compare(keys[a], keys[b]), cmp.Compare(compare(a, b), 0); got != want {
					t.Fatalf("turn %d: rows %d and %d: %d, want %d (%v, %v)", turn, a, b, got, want, cols[0].at(a), cols[0].at(b))
				}
			}
		}
	}
}

// TestMergedRuns: more runs than are read at a time, of all lengths, and rows that tie in the order
// of the runs.
func TestMergedRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	space := tempSpace(t, 1<<30)
	for _, count := range []int{1, 2, mergedRuns, mergedRuns + 1, 3*mergedRuns + 2, 65 * mergedRuns} {
		key := vector.TypeOf(vector.Int8)
		expr := plan.Column{T: key}
		x := &execution{ctx: context.Background(), q: &plan.Star{Output: []plan.Expr{expr}, Order: []plan.Order{{Expr: expr}}}, opt: Options{Temp: space}, memory: new(atomic.Int64), room: 1 << 40}
		s, err := x.newSpiller(1 << 12)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for range count {
			n := 1 + r.IntN(60)
			c := rcol{t: key}
			for range n {
				c.v = append(c.v, r.Int64N(1000))
			}
			want = append(want, c.v...)
			if err := s.add(&result{n: n, output: []rcol{c}, order: []rcol{c}}); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(want)
		b, err := s.result()
		if err != nil {
			t.Fatal(err)
		}
		got, err := whole(b)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Columns[0].Ints, want) {
			t.Errorf("%d runs: not in order, or others", count)
		}
	}
	nothingLeft(t, space, 0)
}

// TestTempLimit: where the files may not grow, or memory has no room for what they need, the query is
// forwarded, and all is given back.
func TestTempLimit(t *testing.T) {
	w := newWorld(t, 3)
	w.tables[0] = randomFact(t, w, 5000)
	for i, q := range spilledQueries(w) {
		for _, limit := range []int64{0, 100, 20_000} {
			space := tempSpace(t, limit)
			b, err := Execute(context.Background(), q, w.input(), Options{Workers: 2, Temp: space, forceSpill: true, spillWork: 4 << 10})
			if plan.ReasonOf(err) != plan.ReasonTemp || b != nil {
				t.Errorf("query %d, limit %d: %v", i, limit, err)
			}
			nothingLeft(t, space, 0)
		}
		space := tempSpace(t, 1<<30)
		b, err := Execute(context.Background(), q, w.input(), Options{Workers: 2, Temp: space, MemoryLimit: 1 << 10})
		if why := plan.ReasonOf(err); why != plan.ReasonMemory || b != nil {
			t.Errorf("query %d without memory: %v", i, err)
		}
		nothingLeft(t, space, 0)
	}
}

// TestPairsStay: a join that multiplies rows into few groups writes nothing to files, whenever memory
// is refused: it goes on, or is forwarded.
func TestPairsStay(t *testing.T) {
	w := newWorld(t, 3)
	w.tables[0] = randomFact(t, w, 3000)
	w.tables[1] = w.tables[0]
	q := &plan.Star{
		Tables:  []plan.Source{{Meta: w.tables[0].meta, Table: 0}, {Meta: w.tables[1].meta, Table: 1}},
		Joins:   []plan.StarJoin{{Table: 1, Kind: plan.Inner, Many: true, Key: []int{w.columnOf(1, "skew").(plan.Column).Column}, Outer: []plan.Expr{w.columnOf(0, "skew")}}},
		Grouped: true, Group: []plan.Expr{w.columnOf(0, "b")},
		Aggs:   []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}, {Func: plan.Min, Arg: w.column(1, colID), T: w.column(1, colID).Type()}},
		Output: []plan.Expr{plan.Key{Index: 0, T: w.columnOf(0, "b").Type()}, plan.Agg{Index: 0, T: vector.TypeOf(vector.Int8)}, plan.Agg{Index: 1, T: w.column(1, colID).Type()}},
	}
	want, err := Execute(context.Background(), q, w.input(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	for refused, done := 1, false; !done; refused++ {
		space := tempSpace(t, 1<<30)
		var mu sync.Mutex
		asked := 0
		b, err := Execute(context.Background(), q, w.input(), Options{Workers: 2, Temp: space, Reserve: func(n int64) bool {
			mu.Lock()
			defer mu.Unlock()
			if n > 0 {
				asked++
			}
			return n <= 0 || asked != refused
		}})
		if plan.ReasonOf(err) != plan.ReasonQueryMemory {
			if problem, _ := compareOutcomes(q, b, err, want, nil); problem != "" {
				t.Errorf("request %d refused: %s", refused, problem)
			}
			if done = asked < refused; !done {
				again++
			}
		}
		if _, _, written := space.Usage(); written > 0 {
			t.Errorf("request %d refused: %d bytes were written", refused, written)
		}
		nothingLeft(t, space, 0)
	}
	if again == 0 {
		t.Error("nothing went on")
	}
}

// TestSpilledMemory: a query that needs many times what it may have stays within it, and its result
// holds next to nothing.
func TestSpilledMemory(t *testing.T) {
	w := newWorld(t, 3)
	w.tables[0] = randomFact(t, w, 40_000)
	const limit = 2 << 20
	for i, q := range spilledQueries(w) {
		space := tempSpace(t, 1<<30)
		var mu sync.Mutex
		held, most := int64(0), int64(0)
		b, err := Execute(context.Background(), q, w.input(), Options{Workers: 2, Temp: space, MemoryLimit: limit, spillWork: 1, Reserve: func(n int64) bool {
			mu.Lock()
			defer mu.Unlock()
			if held+n > limit {
				return false
			}
			held += n
			most = max(most, held)
			return true
		}})
		if err != nil {
			t.Errorf("query %d: %v", i, err)
			continue
		}
		if b.Next == nil || b.Bytes > limit/2 {
			t.Errorf("query %d: a result of %d bytes", i, b.Bytes)
		}
		if got, err := whole(b); err != nil || fmt.Sprint(got.Rows) == "0" {
			t.Errorf("query %d: %v", i, err)
		}
		nothingLeft(t, space, 0)
	}
}
