package olap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// byRows has tests compute all text a row at a time, until the function that it returns is
// called.
func byRows() (restore func()) {
	few, interned := fewText, internedMax
	fewText, internedMax = 1, 3
	return func() { fewText, internedMax = few, interned }
}

// textGen makes what reads text that is computed row by row.
type textGen struct {
	*gen
	t vector.Type // of the text
}

func (w *world) textGen() *textGen {
	g := &textGen{&gen{r: w.r, tame: w.r.IntN(3) > 0}, textType(vector.Text, collC, -1)}
	for i := range w.tables {
		g.tables = append(g.tables, i)
	}
	if w.r.IntN(2) == 0 {
		g.tables = []int{w.r.IntN(len(w.tables))}
	}
	if w.r.IntN(4) == 0 {
		g.t.Collation = collR
	}
	return g
}

func (g *textGen) value() plan.Expr {
	switch t := g.t; g.r.IntN(5) {
	case 0:
		return &plan.Call{Op: plan.OpCase, T: t, Args: []plan.Expr{g.bool(1), g.text(t, 1), g.of(t, 1)}}
	case 1:
		return &plan.Call{Op: plan.OpCoalesce, T: t, Args: []plan.Expr{g.of(t, 1), g.text(t, 2), g.constant(t)}}
	case 2:
		c := textType(vector.BPChar, collC, 4+5)
		return &plan.Call{Op: plan.OpCase, T: c, Args: []plan.Expr{g.bool(1), g.of(c, 0), g.of(c, 0)}}
	}
	return g.text(g.t, 1+g.r.IntN(3))
}

func (g *textGen) condition() plan.Expr {
	x := g.value()
	switch op := plan.OpEq + plan.Op(g.r.IntN(12)); {
	case op <= plan.OpDistinct:
		y := g.constant(x.Type())
		if g.r.IntN(2) == 0 {
			for y = g.value(); y.Type() != x.Type(); y = g.value() {
			}
		}
		return call(op, vector.Bool, x, y)
	case op == plan.OpDistinct+1:
		return call(plan.OpIn, vector.Bool, x, g.constant(x.Type()), g.constant(x.Type()), g.constant(x.Type()))
	case op == plan.OpDistinct+2:
		c := call(plan.OpLike, vector.Bool, x, plan.Const{Datum: vector.String([]string{"%a%", "_b%", "k%", `%\`, "%1"}[g.r.IntN(5)])})
		c.Insensitive = g.r.IntN(4) == 0
		return c
	}
	return call([]plan.Op{plan.OpIsNull, plan.OpIsNotNull}[g.r.IntN(2)], vector.Bool, x)
}

func (g *textGen) aggregate() plan.AggregateCall {
	a := plan.AggregateCall{Func: plan.Min, Arg: g.value()}
	switch g.r.IntN(5) {
	case 0:
		a.Func = plan.Max
	case 1:
		a.Func, a.Distinct = plan.Count, g.r.IntN(2) == 0
	case 2:
		a.Func, a.Desc = plan.PercentileDisc, g.r.IntN(2) == 0
		a.Fraction = constant(vector.Float([]float64{0, 0.5, 0.3, 1}[g.r.IntN(4)]))
	}
	if g.r.IntN(3) == 0 {
		a.Filter = g.condition()
	}
	a.T = a.Func.Result(a.Arg.Type())
	return a
}

// textQuery is a query of which most of what it reads is text computed row by row.
func (w *world) textQuery() *plan.Star {
	r, g := w.r, w.textGen()
	q := &plan.Star{Joins: w.joins}
	for _, t := range w.tables {
		q.Tables = append(q.Tables, plan.Source{Meta: t.meta, Table: len(q.Tables)})
	}
	for range r.IntN(3) {
		q.Filter = append(q.Filter, g.condition())
	}
	out := func(e plan.Expr) {
		q.Output = append(q.Output, e)
		if r.IntN(2) == 0 && e.Type().Kind != vector.BPChar {
			q.Order = append(q.Order, plan.Order{Expr: e, Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0})
		}
	}
	if q.Grouped = r.IntN(3) > 0; !q.Grouped {
		out(w.column(0, colID))
		for range 1 + r.IntN(2) {
			out(g.value())
		}
	} else {
		for range r.IntN(3) {
			q.Group = append(q.Group, g.value())
		}
		if n := len(q.Group); n > 0 && r.IntN(3) == 0 {
			q.Sets = []uint64{1<<n - 1, 1, 0}
		}
		for i, k := range q.Group {
			out(plan.Key{Index: i, T: k.Type()})
		}
		for range 1 + r.IntN(4) {
			a := g.aggregate()
			out(plan.Agg{Index: len(q.Aggs), T: a.T})
			q.Aggs = append(q.Aggs, a)
		}
	}
	if r.IntN(3) == 0 {
		q.Limit = plan.Const{Datum: vector.Int(vector.Int8, int64(r.IntN(12)))}
	}
	return q
}

// TestComputedText compares queries over text that is computed row by row with the oracle.
func TestComputedText(t *testing.T) {
	defer byRows()()
	defer func(n int) { pruneRows = n }(pruneRows)
	pruneRows = 20
	worlds := 120
	if testing.Short() {
		worlds = 30
	}
	tally := tally{}
	for seed := range uint64(worlds) {
		w := newWorld(t, 5000+seed)
		w.options.Eager = seed%3 == 0
		for n := range 25 {
			tally.ask(t, w, seed, n, w.textQuery())
		}
	}
	tally.end(t, 0.6) // functions fail for some of their samples
}

// TestPool has goroutines intern the same strings and others: equal strings have equal codes,
// codes have no gaps, and what a code stands for can be read while others come.
func TestPool(t *testing.T) {
	var mu sync.Mutex
	taken := int64(0)
	p := newPool(func(n int64) error {
		mu.Lock()
		defer mu.Unlock()
		taken += n
		return nil
	})
	const workers, strs = 6, 9000
	codes := make([][]int64, workers)
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			for i := range strs {
				s := fmt.Sprint("string ", (i*7+g*1000)%strs)
				if i%50 == 0 {
					s = strings.Repeat(s, 1+i%4000) // blocks of their own
				}
				code, err := p.intern(s)
				if err != nil || p.at(code) != s {
					t.Errorf("%q has code %d, which is %q: %v", s, code, p.at(code), err)
					return
				}
				if again, ok := p.find(s); !ok || again != code {
					t.Errorf("%q has codes %d and %d", s, code, again)
				}
				codes[g] = append(codes[g], code)
			}
		})
	}
	wg.Wait()
	seen := map[string]int64{}
	bytes := int64(0)
	for code := range int64(p.size()) {
		s := p.at(code)
		if other, ok := seen[s]; ok {
			t.Fatalf("%q has codes %d and %d", s, code, other)
		}
		seen[s] = code
		bytes += int64(len(s))
	}
	for _, list := range codes {
		for _, c := range list {
			if c >= int64(p.size()) {
				t.Fatalf("code %d of %d", c, p.size())
			}
		}
	}
	if _, ok := p.find("none"); ok {
		t.Error("a string that nobody interned was found")
	}
	if taken < bytes {
		t.Errorf("%d bytes are accounted for %d of strings", taken, bytes)
	}
}

// TestPoolMemory has strings exceed the memory of a query: it is forwarded.
func TestPoolMemory(t *testing.T) {
	w := newWorld(t, 3)
	tab := randomTableOf(t, w, 20_000)
	q := &plan.Star{Grouped: true, Aggs: []plan.AggregateCall{{Func: plan.Count, Distinct: true, T: vector.TypeOf(vector.Int8),
		Arg: functionCall(&concat, textCast(w.column(0, colID), collC), constant(vector.String(strings.Repeat("x", 500))))}}}
	q.Tables = []plan.Source{{Meta: tab.meta}}
	q.Output = []plan.Expr{plan.Agg{T: q.Aggs[0].T}}
	in := Input{Tables: w.input().Tables[:0]}
	in.Tables = append(in.Tables, tab.table)
	for _, limit := range []int64{4 << 20, 64 << 20} {
		b, err := Execute(context.Background(), q, in, Options{Workers: 2, MemoryLimit: limit})
		var f *plan.Forward
		switch {
		case limit < 10<<20 && (!errors.As(err, &f) || f.Reason != plan.ReasonMemory):
			t.Errorf("with %d bytes: %v", limit, err)
		case limit > 10<<20 && (err != nil || b.Columns[0].Ints[0] != 20_000):
			t.Errorf("with %d bytes: %v, %v", limit, b, err)
		}
	}
}

func randomTableOf(t *testing.T, w *world, rows int) *randomTable {
	data := randomRows(w.r, rows, 30, 1)
	meta := *w.tables[0].meta
	return &randomTable{&meta, data, load(t, newStore(t, 2048), &meta, data)}
}

// TestComputedTextLengths compares grouping, DISTINCT, ORDER BY, filters and joins over computed
// text with the oracle, for tables of all lengths that end a word, a tile or a segment early.
func TestComputedTextLengths(t *testing.T) {
	defer byRows()()
	c := textType(vector.Text, collC, -1)
	for _, n := range []int{0, 1, 63, 64, 127, 128, 129, 511, 512, 513, 2047, 2048, 2049, 5000} {
		w := newWorld(t, 7)
		both := []*randomTable{randomTableOf(t, w, n), randomTableOf(t, w, 100)}
		key := functionCall(&concat, w.columnOf(0, "t"), functionCall(&concat, constant(vector.String("-")), textCast(w.column(0, colRef), collC)))
		key.T = c
		arm := &plan.Call{Op: plan.OpCase, T: c, Args: []plan.Expr{call(plan.OpGt, vector.Bool, w.column(0, colRef), integer(9)), key, w.columnOf(0, "t")}}
		count := plan.AggregateCall{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}
		distinct := plan.AggregateCall{Func: plan.Count, Distinct: true, Arg: arm, T: vector.TypeOf(vector.Int8)}
		least, greatest := plan.AggregateCall{Func: plan.Min, Arg: key, T: c}, plan.AggregateCall{Func: plan.Max, Arg: arm, T: c}
		join := plan.StarJoin{Table: 1, Key: []int{colTID}, Outer: []plan.Expr{w.textKey(0)}}
		left := join
		left.Kind = plan.Left
		queries := []*plan.Star{
			{Output: []plan.Expr{key, w.column(0, colID)}, Order: []plan.Order{{Expr: key}, {Expr: w.column(0, colID)}},
				Limit: constant(vector.Int(vector.Int8, 20))},
			{Output: []plan.Expr{arm}, Filter: []plan.Expr{call(plan.OpLt, vector.Bool, key, arm)}},
			{Grouped: true, Group: []plan.Expr{key, arm}, Aggs: []plan.AggregateCall{count, distinct}},
			{Grouped: true, Group: []plan.Expr{w.columnOf(0, "b"), arm}, Sets: []uint64{3, 2, 1, 0}, Aggs: []plan.AggregateCall{count, least, greatest}},
			{Grouped: true, Aggs: []plan.AggregateCall{least, greatest, distinct}},
			{Joins: []plan.StarJoin{join}, Output: []plan.Expr{w.column(0, colID), w.column(1, colTID)}},
			{Joins: []plan.StarJoin{left}, Grouped: true, Group: []plan.Expr{key, functionCall(&concat, w.columnOf(1, "t"), textCast(w.columnOf(1, "i8"), collC))},
				Aggs: []plan.AggregateCall{count, greatest}},
		}
		for i, q := range queries {
			w.tables = both[:1+len(q.Joins)]
			w.use(q)
			for _, workers := range []int{1, 3} {
				for _, how := range []strategy{groupAuto, groupHash, groupPartitioned} {
					w.options = Options{grouping: how, Eager: workers == 3}
					if problem, why := w.outcome(q, workers); problem != "" || why != "" {
						t.Fatalf("%d rows, query %d, %d workers: %s %s\n%s", n, i, workers, problem, why, queryText(q))
					}
				}
			}
		}
	}
}

// use completes a query over the world's tables.
func (w *world) use(q *plan.Star) {
	for _, t := range w.tables {
		q.Tables = append(q.Tables, plan.Source{Meta: t.meta, Table: len(q.Tables)})
	}
	if !q.Grouped {
		return
	}
	for i, k := range q.Group {
		q.Output = append(q.Output, plan.Key{Index: i, T: k.Type()})
	}
	for i, a := range q.Aggs {
		q.Output = append(q.Output, plan.Agg{Index: i, T: a.T})
	}
}
