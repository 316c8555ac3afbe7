package olap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgaccel/catalog"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// ints builds a table of bigint columns; a nil is a null.
func ints(t testing.TB, segment int, names []string, rows [][]any) *randomTable {
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "ints"}
	for _, n := range names {
		meta.Columns = append(meta.Columns, catalog.Column{Name: n, Type: vector.TypeOf(vector.Int8)})
	}
	var data [][]vector.Datum
	for _, r := range rows {
		var row []vector.Datum
		for _, v := range r {
			if v == nil {
				row = append(row, vector.Null(vector.TypeOf(vector.Int8)))
			} else {
				row = append(row, vector.Int(vector.Int8, v.(int64)))
			}
		}
		data = append(data, row)
	}
	return &randomTable{meta, data, load(t, newStore(t, segment), meta, data)}
}

func bigint(table, column int) plan.Expr {
	return plan.Column{Table: table, Column: column, T: vector.TypeOf(vector.Int8)}
}

// TestLookupsOfEveryKind joins through each layout of a lookup and compares with a
// join by a Go map.
func TestLookupsOfEveryKind(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const many = 70000
	cases := []struct {
		layout string
		keys   int
		key    func(i int) int64
		groups int64 // values of the joined column; 0: it is not read
		agg    bool  // it is summed instead of grouped by
		kind   plan.JoinKind
	}{
		{"bitmap", 500, func(i int) int64 { return int64(i) }, 0, false, plan.Inner},
		{"bitmap", 500, func(i int) int64 { return math.MaxInt64 - int64(i) }, 0, false, plan.Inner},
		{"array8", 500, func(i int) int64 { return int64(i) * 3 }, 7, false, plan.Inner},
		{"array8", 500, func(i int) int64 { return math.MinInt64 + int64(i) }, 7, false, plan.Inner},
		{"array16", 5000, func(i int) int64 { return int64(i) }, 1000, false, plan.Inner},
		{"array16", 5000, func(i int) int64 { return int64(i) }, 7, false, plan.Left},
		{"array16", 5000, func(i int) int64 { return -int64(i) }, 7, true, plan.Inner},
		{"array32", many, func(i int) int64 { return int64(i) }, many, true, plan.Inner},
		{"array32", many, func(i int) int64 { return int64(i) }, many, true, plan.Left},
		{"hash", 500, func(i int) int64 { return int64(i) * 1000000007 }, 7, false, plan.Inner},
		{"hash", 500, func(i int) int64 { return int64(i) * 1000000007 }, 0, false, plan.Inner},
		{"hash", 500, func(i int) int64 { return int64(i-250) << 54 }, 7, false, plan.Left},
		{"hash", 500, func(i int) int64 { return int64(i-250) << 54 }, 7, true, plan.Left},
	}
	for n, c := range cases {
		t.Run(fmt.Sprintf("%d %s", n, c.layout), func(t *testing.T) {
			byKey := map[int64]int64{}
			var dim, fact [][]any
			for i := range c.keys {
				g := int64(i) % max(c.groups, 1)
				byKey[c.key(i)] = g
				dim = append(dim, []any{c.key(i), g})
			}
			type sums struct{ n, x int64 }
			want := map[string]*sums{}
			for range max(3000, c.keys/4) { // too many for a core
				k := any(c.key(r.IntN(c.keys + c.keys/4)))
				if r.IntN(20) == 0 {
					k = nil
				}
				x := int64(r.IntN(100))
				fact = append(fact, []any{k, x})
				g, found := int64(0), false
				if k != nil {
					g, found = byKey[k.(int64)]
				}
				if !found && c.kind == plan.Inner {
					continue
				}
				name := "all"
				if c.groups > 0 && !c.agg {
					if name = "null"; found {
						name = fmt.Sprint(g)
					}
				}
				if want[name] == nil {
					want[name] = &sums{}
				}
				want[name].n++
				if c.agg {
					x = g
				}
				want[name].x += x
			}
			w := &world{tables: []*randomTable{ints(t, 1024, []string{"k", "x"}, fact), ints(t, 65536, []string{"id", "g"}, dim)}}
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}, {Meta: w.tables[1].meta, Table: 1}}, Grouped: true,
				Joins: []plan.StarJoin{{Table: 1, Kind: c.kind, Outer: []plan.Expr{bigint(0, 0)}, Key: []int{0}}},
				Aggs:  []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}, {Func: plan.Sum, Arg: bigint(0, 1), T: vector.NumericType(0)}}}
			if c.agg {
				q.Aggs[1].Arg = bigint(1, 1)
			} else if c.groups > 0 {
				q.Group = []plan.Expr{bigint(1, 1)}
				q.Output = []plan.Expr{plan.Key{Index: 0, T: vector.TypeOf(vector.Int8)}}
			}
			q.Output = append(q.Output, plan.Agg{Index: 0, T: q.Aggs[0].T}, plan.Agg{Index: 1, T: q.Aggs[1].T})
			if text := Explain(q, w.input()); !strings.Contains(text, c.layout+" ints") {
				t.Errorf("the lookup is no %s:\n%s", c.layout, text)
			}
			got, err := Execute(context.Background(), q, w.input(), Options{Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got.Rows != len(want) {
				t.Errorf("%d groups, want %d", got.Rows, len(want))
			}
			for i := range got.Rows {
				name := "all"
				at := 0
				if len(q.Group) > 0 {
					if name, at = "null", 1; !got.Columns[0].IsNull(i) {
						name = fmt.Sprint(got.Columns[0].Ints[i])
					}
				}
				s := want[name]
				if s == nil || got.Columns[at].Ints[i] != s.n || got.Columns[at+1].Decimals[i].String() != fmt.Sprint(s.x) {
					t.Errorf("group %s: %d rows, sum %s; want %+v", name, got.Columns[at].Ints[i], got.Columns[at+1].Decimals[i], s)
				}
			}
		})
	}
}

// TestGroupsOfEveryKind groups by few and by many keys, by one word and by several.
func TestGroupsOfEveryKind(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, c := range []struct {
		text   string
		spread []int64
	}{
		{"one group", nil},
		{"array of 12 groups", []int64{3, 4}},
		{"hash of groups, 1 words", []int64{1 << 20, 5}},
		{"hash of groups, 2 words", []int64{1 << 40, 1 << 41}},
		{"hash of groups, 4 words", []int64{math.MaxInt64, math.MaxInt64, 9}},
	} {
		t.Run(c.text, func(t *testing.T) {
			names := []string{"x"}
			for i := range c.spread {
				names = append(names, fmt.Sprint("k", i))
			}
			var rows [][]any
			want := map[string]int64{}
			for i := range 5000 {
				row := []any{int64(r.IntN(1000))}
				id := ""
				for k, s := range c.spread {
					v := r.Int64N(s)
					if i < 2 {
						v = int64(i) * (s - 1) // the ends, so that the spread is certain
					} else if s > 1000 && r.IntN(2) == 0 {
						v = s / 2
					}
					if s == math.MaxInt64 && i%2 == 1 {
						v = -v
					}
					if k == 0 && r.IntN(9) == 0 && len(c.spread) == 3 {
						row = append(row, nil)
						id += "null,"
						continue
					}
					row = append(row, v)
					id += fmt.Sprint(v, ",")
				}
				rows = append(rows, row)
				want[id] += row[0].(int64)
			}
			w := &world{tables: []*randomTable{ints(t, 1024, names, rows)}}
			q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}}, Grouped: true,
				Aggs: []plan.AggregateCall{{Func: plan.Sum, Arg: bigint(0, 0), T: vector.NumericType(0)}}}
			for i := range c.spread {
				q.Group = append(q.Group, bigint(0, i+1))
				q.Output = append(q.Output, plan.Key{Index: i, T: vector.TypeOf(vector.Int8)})
			}
			q.Output = append(q.Output, plan.Agg{Index: 0, T: q.Aggs[0].T})
			if text := Explain(q, w.input()); !strings.Contains(text, c.text) {
				t.Errorf("want %s:\n%s", c.text, text)
			}
			got, err := Execute(context.Background(), q, w.input(), Options{Workers: 3})
			if err != nil {
				t.Fatal(err)
			}
			if got.Rows != len(want) {
				t.Errorf("%d groups, want %d", got.Rows, len(want))
			}
			for i := range got.Rows {
				id := ""
				for k := range c.spread {
					if got.Columns[k].IsNull(i) {
						id += "null,"
					} else {
						id += fmt.Sprint(got.Columns[k].Ints[i], ",")
					}
				}
				if s := got.Columns[len(c.spread)].Decimals[i].String(); s != fmt.Sprint(want[id]) {
					t.Errorf("group %s: %s, want %d", id, s, want[id])
				}
			}
		})
	}
}

func wantForward(t *testing.T, q *plan.Star, in Input, opt Options, want plan.Reason) {
	t.Helper()
	_, err := Execute(context.Background(), q, in, opt)
	var f *plan.Forward
	if !errors.As(err, &f) || f.Reason != want {
		t.Errorf("got %v, want forwarded: %s", err, want)
	}
}

func TestForwards(t *testing.T) {
	var rows [][]any
	for i := range int64(5000) {
		rows = append(rows, []any{i, i % 10, math.MaxInt64 - i})
	}
	table := ints(t, 1024, []string{"a", "b", "c"}, rows)
	in := Input{Tables: (&world{tables: []*randomTable{table}}).input().Tables}
	tables := []plan.Source{{Meta: table.meta}}
	limit := func(n int64) plan.Expr { return plan.Const{Datum: vector.Int(vector.Int8, n)} }
	all := []plan.Expr{bigint(0, 0)}

	wantForward(t, &plan.Star{Tables: tables, Output: all, Limit: limit(3)}, in, Options{}, plan.ReasonTies)
	wantForward(t, &plan.Star{Tables: tables, Output: all, Limit: limit(3), Order: []plan.Order{{Expr: bigint(0, 1)}}}, in, Options{}, plan.ReasonTies)
	wantForward(t, &plan.Star{Tables: tables, Output: all, Limit: limit(-1)}, in, Options{}, plan.ReasonEvaluation)
	wantForward(t, &plan.Star{Tables: tables, Output: all}, in, Options{MemoryLimit: 20000}, plan.ReasonMemory)
	sum := call(plan.OpAdd, vector.Int8, bigint(0, 2), bigint(0, 0))
	wantForward(t, &plan.Star{Tables: tables, Output: []plan.Expr{call(plan.OpAdd, vector.Int8, sum, bigint(0, 0))}}, in, Options{}, plan.ReasonEvaluation)
	many := &plan.Star{Tables: tables, Grouped: true, Group: []plan.Expr{bigint(0, 2), bigint(0, 0)}, Output: []plan.Expr{plan.Key{Index: 0, T: vector.TypeOf(vector.Int8)}}}
	wantForward(t, many, in, Options{MemoryLimit: 10000}, plan.ReasonMemory)

	// A condition that may fail is seen for every row, whatever the others leave.
	divide := call(plan.OpGt, vector.Bool, call(plan.OpDiv, vector.Int8, limit(1), bigint(0, 0)), limit(5))
	none := call(plan.OpLt, vector.Bool, bigint(0, 0), limit(-1))
	for _, filter := range [][]plan.Expr{{divide}, {none, divide}, {call(plan.OpGt, vector.Bool, bigint(0, 0), limit(3000)), divide}} {
		wantForward(t, &plan.Star{Tables: tables, Output: all, Filter: filter}, in, Options{}, plan.ReasonEvaluation)
	}
	guarded := &plan.Call{Op: plan.OpCase, T: vector.TypeOf(vector.Int8), Args: []plan.Expr{
		call(plan.OpNe, vector.Bool, bigint(0, 0), limit(0)), call(plan.OpDiv, vector.Int8, limit(5000), bigint(0, 0)), limit(7)}}
	b, err := Execute(context.Background(), &plan.Star{Tables: tables, Output: []plan.Expr{guarded}}, in, Options{})
	if err != nil || b.Rows != 5000 || b.Columns[0].Ints[0] != 7 || b.Columns[0].Ints[3] != 1666 {
		t.Errorf("CASE did not guard the division: %v", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Execute(ctx, &plan.Star{Tables: tables, Output: all}, in, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSupportsIsStatic checks refusals that need no data.
func TestSupportsIsStatic(t *testing.T) {
	meta := &catalog.Table{Columns: shape}
	w := &world{}
	f8, v := w.columnOf(0, "f8"), w.columnOf(0, "v")
	like := func(p plan.Expr) plan.Expr { return call(plan.OpLike, vector.Bool, v, p) }
	q := func(f plan.Expr, aggs ...plan.AggregateCall) *plan.Star {
		q := &plan.Star{Tables: []plan.Source{{Meta: meta}}, Grouped: len(aggs) > 0, Aggs: aggs}
		if f != nil {
			q.Filter = []plan.Expr{f}
		}
		return q
	}
	full := q(nil)
	full.Tables = append(full.Tables, plan.Source{Meta: meta})
	full.Joins = []plan.StarJoin{{Table: 1, Kind: plan.Full, Outer: []plan.Expr{w.columnOf(0, "ref")}, Key: []int{0}}}
	for name, c := range map[string]struct {
		q    *plan.Star
		want plan.Reason
	}{
		"plain":            {q(nil), ""},
		"parameter":        {q(like(plan.Param{T: vector.TypeOf(vector.Text)})), ""},
		"float sum":        {q(nil, plan.AggregateCall{Func: plan.Sum, Arg: f8}), ""},
		"real sum":         {q(nil, plan.AggregateCall{Func: plan.Sum, Arg: w.columnOf(0, "f4")}), plan.ReasonFunction},
		"float minimum":    {q(nil, plan.AggregateCall{Func: plan.Min, Arg: f8}), ""},
		"pattern column":   {q(like(v)), plan.ReasonFunction},
		"unlike types":     {q(call(plan.OpEq, vector.Bool, f8, w.columnOf(0, "i4"))), plan.ReasonType},
		"aggregate":        {q(call(plan.OpEq, vector.Bool, plan.Agg{T: vector.TypeOf(vector.Int4)}, integer(1))), plan.ReasonShape},
		"full join":        {full, plan.ReasonShape},
		"date_trunc":       {q(call(plan.OpIsNull, vector.Bool, &plan.Call{Op: plan.OpFunc, Func: sqlfn.Lookup("date_trunc", vector.Text, vector.Timestamp), T: vector.TypeOf(vector.Date), Args: []plan.Expr{plan.Const{Datum: vector.String("day")}, w.columnOf(0, "d")}})), plan.ReasonFunction},
		"cast":             {q(call(plan.OpIsNull, vector.Bool, call(plan.OpCast, vector.Time, f8))), plan.ReasonType},
		"numeric / in row": {q(call(plan.OpIsNull, vector.Bool, &plan.Call{Op: plan.OpDiv, T: vector.NumericType(-1), Args: []plan.Expr{w.columnOf(0, "n2"), w.columnOf(0, "n4")}})), ""},
	} {
		f := Supports(c.q)
		if c.want == "" && f != nil || c.want != "" && (f == nil || f.Reason != c.want) {
			t.Errorf("%s: %v, want %q", name, f, c.want)
		}
	}
}

// TestZonesFollowFromLookups checks that a filter on a joined table skips segments
// of the driving one.
func TestZonesFollowFromLookups(t *testing.T) {
	var fact, dim [][]any
	for i := range int64(8 * 1024) {
		fact = append(fact, []any{i / 8, int64(1)})
	}
	for i := range int64(1024) {
		dim = append(dim, []any{i, i / 128})
	}
	w := &world{tables: []*randomTable{ints(t, 1024, []string{"k", "x"}, fact), ints(t, 1024, []string{"id", "g"}, dim)}}
	q := &plan.Star{Tables: []plan.Source{{Meta: w.tables[0].meta}, {Meta: w.tables[1].meta, Table: 1}},
		Joins:  []plan.StarJoin{{Table: 1, Outer: []plan.Expr{bigint(0, 0)}, Key: []int{0}}},
		Filter: []plan.Expr{call(plan.OpEq, vector.Bool, bigint(1, 1), plan.Const{Datum: vector.Int(vector.Int8, 3)})},
		Output: []plan.Expr{bigint(0, 0)}}
	x, err := newExecution(context.Background(), q, w.input(), Options{})
	if err == nil {
		err = x.begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := x.prepare(0, q.Output, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, seg := range p.tab.Segments {
		if skip, _ := p.zone(seg); skip != (i != 3) {
			t.Errorf("segment %d: skipped %v", i, skip)
		}
	}
	if b, err := Execute(context.Background(), q, w.input(), Options{}); err != nil || b.Rows != 1024 {
		t.Errorf("%v, %v", b, err)
	}
}
