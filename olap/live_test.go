package olap

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/plan"
	"pgaccel/vector"
)

// edges are the rows at which words and tiles begin and end.
var edges = []int{0, 1, 2, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2047, 2048, 2049}

// randomLive returns n flags in one of the shapes that deletes, and inserts that are
// not seen, leave behind.
func randomLive(r *rand.Rand, n int) []bool {
	live := make([]bool, n)
	edge := func() int { return min(edges[r.IntN(len(edges))], n) }
	fill := func(from, to int) {
		for i := min(from, to); i < max(from, to); i++ {
			live[i] = true
		}
	}
	switch r.IntN(8) {
	case 0: // none
	case 1: // one
		if n > 0 {
			live[min(edge(), n-1)] = true
		}
	case 2: // all but one
		fill(0, n)
		if n > 0 {
			live[min(edge(), n-1)] = false
		}
	case 3:
		fill(0, edge())
	case 4:
		fill(edge(), n)
	case 5:
		fill(edge(), edge())
	case 6:
		share := []float64{0.01, 0.1, 0.5, 0.9, 0.99}[r.IntN(5)]
		for i := range live {
			live[i] = r.Float64() < share
		}
	default:
		fill(0, n)
	}
	return live
}

// mortal makes a table of which only some rows count. Among the dead are rows with the
// keys of live ones, as updates leave them, and where poison is set, text of codes
// that the dictionary does not have: those of strings that came later.
func mortal(t testing.TB, r *rand.Rand, s *colstore.Store, meta *catalog.Table, size int, apart int64) *randomTable {
	rows := randomRows(r, size, 30, apart)
	var all [][]vector.Datum
	var dead []bool // for certain
	var cuts []int
	twins := r.IntN(3) > 0
	for i, row := range rows {
		twin := slices.Clone(rows[r.IntN(len(rows))])
		copy(twin[:colRef], row[:colRef])
		had, first := twins && r.IntN(3) == 0, r.IntN(2) == 0
		if had && first {
			all, dead = append(all, twin), append(dead, true)
		}
		all, dead = append(all, row), append(dead, false)
		if had && !first {
			all, dead = append(all, twin), append(dead, true)
		}
		if i > 0 && r.IntN(600) == 0 {
			cuts = append(cuts, len(all))
		}
	}
	table := load(t, s, meta, all, cuts...)
	m := &randomTable{meta: meta, table: table}
	poison := r.IntN(2) == 0
	at := 0
	table.Rows = 0
	for i, seg := range table.Segments {
		live := randomLive(r, seg.Rows)
		bits := make([]uint64, (seg.Rows+63)/64)
		count := 0
		for k := range live {
			if live[k] = live[k] && !dead[at]; live[k] {
				m.rows = append(m.rows, all[at])
				bits[k>>6] |= 1 << (k & 63)
				count++
			}
			at++
		}
		table.Rows += int64(count)
		if count == seg.Rows && r.IntN(2) == 0 {
			continue // as good as nil
		}
		if tail := seg.Rows & 63; tail != 0 && r.IntN(2) == 0 {
			bits[len(bits)-1] |= ^uint64(0) << tail // beyond the rows anything may stand
		}
		marked := *seg
		marked.Live, marked.LiveID = bits, colstore.NewID()
		if poison {
			marked.Columns = poisoned(&marked, live, table.Dicts)
		}
		table.Segments[i] = &marked
	}
	return m
}

// poisoned returns the segment's columns as a tail's are, plain, with values in the rows
// that are not live that must not be looked at.
func poisoned(seg *colstore.Segment, live []bool, dicts []*colstore.Dict) []colstore.Column {
	columns := slices.Clone(seg.Columns)
	for c := range columns {
		col := &columns[c]
		col.ID = colstore.NewID()
		values := make([]int64, seg.Rows)
		for start := 0; start < seg.Rows; start += tileRows {
			col.Data.Decode(values[start:min(start+tileRows, seg.Rows)], start)
		}
		if dicts[c] != nil {
			for i := range values {
				if !live[i] {
					values[i] = int64(dicts[c].Len() + i%3)
					col.Max = math.MaxInt32
				}
			}
		}
		col.Data = compress.EncodeAs(compress.CodecPlain, values, func(words int) []uint32 { return make([]uint32, words) })
	}
	return columns
}

// TestDeadRows compares with the oracle, which knows the live rows only.
func TestDeadRows(t *testing.T) {
	worlds := 120
	if testing.Short() {
		worlds = 40
	}
	defer func(n int) { pruneRows = n }(pruneRows)
	pruneRows = 20
	tally := tally{}
	for seed := range uint64(worlds) {
		w := newWorldOf(t, seed+1000, mortal)
		for n := range 25 {
			q := w.query()
			if n%5 == 4 {
				q = w.rowQuery()
			}
			tally.ask(t, w, seed, n, q)
		}
	}
	tally.end(t, 0.5)
}

// liveInts marks the rows of a table as live where f says so.
func liveInts(table *randomTable, f func(row int) bool) {
	row := 0
	for _, seg := range table.table.Segments {
		seg.Live = make([]uint64, (seg.Rows+63)/64)
		for i := range seg.Rows {
			if f(row) {
				seg.Live[i>>6] |= 1 << (i & 63)
			}
			row++
		}
	}
}

// TestDeadRowsRaiseNothing divides by a column that is zero in dead rows only, in a
// condition, an output and behind a join; and lets dead rows repeat a join's key.
func TestDeadRowsRaiseNothing(t *testing.T) {
	var fact, dim [][]any
	for i := range int64(3000) {
		fact = append(fact, []any{i % 2, i % 50})
	}
	for i := range int64(100) {
		dim = append(dim, []any{i / 2, i % 2}) // each key twice
	}
	odd := func(i int) bool { return i%2 == 1 }
	a, b := ints(t, 65536, []string{"x", "k"}, fact), ints(t, 65536, []string{"id", "y"}, dim)
	liveInts(a, odd)
	liveInts(b, odd)
	w := &world{tables: []*randomTable{a, b}}
	one := plan.Const{Datum: vector.Int(vector.Int8, 1)}
	divide := func(table, col int) plan.Expr { return call(plan.OpDiv, vector.Int8, one, bigint(table, col)) }
	q := &plan.Star{Tables: []plan.Source{{Meta: a.meta}, {Meta: b.meta, Table: 1}}, Grouped: true,
		Joins:  []plan.StarJoin{{Table: 1, Outer: []plan.Expr{bigint(0, 1)}, Key: []int{0}}},
		Filter: []plan.Expr{call(plan.OpEq, vector.Bool, divide(0, 0), one), call(plan.OpEq, vector.Bool, divide(1, 1), one)},
		Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)},
			{Func: plan.Sum, Arg: divide(0, 0), T: vector.NumericType(0)}},
		Output: []plan.Expr{plan.Agg{Index: 0, T: vector.TypeOf(vector.Int8)}, plan.Agg{Index: 1, T: vector.NumericType(0)}}}
	got, err := Execute(context.Background(), q, w.input(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Columns[0].Ints[0]; n != 1500 || got.Columns[1].Decimals[0].String() != "1500" {
		t.Errorf("%s; want 1500 rows", rowText(got, 0))
	}
	liveInts(a, func(int) bool { return true })
	wantForward(t, q, w.input(), Options{}, plan.ReasonEvaluation)
}

// TestUnrankedText: strings that came after the server was asked for their order have
// none, and equality needs none.
func TestUnrankedText(t *testing.T) {
	typ := textType(vector.Text, vector.Collation{OID: 777, Deterministic: true}, -1)
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "s", Columns: []catalog.Column{{Name: "s", Type: typ}}}
	var rows [][]vector.Datum
	for _, s := range []string{"b", "a", "c", "a"} {
		rows = append(rows, []vector.Datum{{Type: typ, Str: s}})
	}
	in := Input{Tables: []*colstore.Table{load(t, newStore(t, 1024), meta, rows)}}
	s := plan.Column{Table: 0, Column: 0, T: typ}
	tables := []plan.Source{{Meta: meta}}
	greatest := &plan.Star{Tables: tables, Grouped: true, Aggs: []plan.AggregateCall{{Func: plan.Max, Arg: s, T: typ}}, Output: []plan.Expr{plan.Agg{T: typ}}}
	wantForward(t, greatest, in, Options{}, plan.ReasonCollation)
	wantForward(t, &plan.Star{Tables: tables, Output: []plan.Expr{s}, Order: []plan.Order{{Expr: s}}}, in, Options{}, plan.ReasonCollation)
	equal := call(plan.OpEq, vector.Bool, s, plan.Const{Datum: vector.Datum{Type: typ, Str: "a"}})
	b, err := Execute(context.Background(), &plan.Star{Tables: tables, Output: []plan.Expr{s}, Filter: []plan.Expr{equal}}, in, Options{})
	if err != nil || b.Rows != 2 {
		t.Errorf("%v, %v", b, err)
	}
}

// TestDeadRowsAndRanges counts rows behind ranges that the zone maps prove, refute and
// leave open, at the lengths where words and tiles end.
func TestDeadRowsAndRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, size := range edges[1:] {
		var rows [][]any
		for i := range int64(size) {
			rows = append(rows, []any{i, i * 7 % 11, i % 3})
			if i%5 == 4 {
				rows[i][2] = nil
			}
		}
		table := ints(t, 1024, []string{"a", "b", "c"}, rows)
		w := &world{tables: []*randomTable{table}}
		for range 40 {
			live := randomLive(r, size)
			liveInts(table, func(i int) bool { return live[i] })
			var filter []plan.Expr
			bound := map[int]int64{}
			for col := range 3 {
				if r.IntN(2) == 0 {
					continue
				}
				least := []int64{-1, 0, 1, 2, int64(size) / 2, int64(size)}[r.IntN(6)]
				bound[col] = least
				filter = append(filter, call(plan.OpGe, vector.Bool, bigint(0, col), plan.Const{Datum: vector.Int(vector.Int8, least)}))
			}
			even := r.IntN(3) == 0
			if even {
				half := call(plan.OpMod, vector.Int8, bigint(0, 0), plan.Const{Datum: vector.Int(vector.Int8, 2)})
				filter = append(filter, call(plan.OpEq, vector.Bool, half, plan.Const{Datum: vector.Int(vector.Int8, 0)}))
			}
			want, sum := int64(0), int64(0)
			for i, row := range rows {
				pass := live[i] && !(even && i%2 == 1)
				for col, least := range bound {
					pass = pass && row[col] != nil && row[col].(int64) >= least
				}
				if pass {
					want++
					sum += int64(i)
				}
			}
			q := &plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: true, Filter: filter,
				Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)},
					{Func: plan.Sum, Arg: bigint(0, 0), T: vector.NumericType(0)}},
				Output: []plan.Expr{plan.Agg{Index: 0, T: vector.TypeOf(vector.Int8)}, plan.Agg{Index: 1, T: vector.NumericType(0)}}}
			got, err := Execute(context.Background(), q, w.input(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := got.Columns[0].Ints[0]; n != want || want > 0 && got.Columns[1].Decimals[0].String() != fmt.Sprint(sum) {
				t.Fatalf("%d rows, ranges from %v, even %v: %s, want %d, %d", size, bound, even, rowText(got, 0), want, sum)
			}
		}
	}
}

// BenchmarkLive counts with one row in a hundred dead, none, and no row alive.
func BenchmarkLive(b *testing.B) {
	const size = 1 << 20
	var rows [][]any
	for i := range int64(size) {
		rows = append(rows, []any{i % 1000, i & 15})
	}
	table := ints(b, 65536, []string{"a", "b"}, rows)
	in := (&world{tables: []*randomTable{table}}).input()
	q := &plan.Star{Tables: []plan.Source{{Meta: table.meta}}, Grouped: true, Group: []plan.Expr{bigint(0, 1)},
		Filter: []plan.Expr{call(plan.OpLt, vector.Bool, bigint(0, 0), plan.Const{Datum: vector.Int(vector.Int8, 100)})},
		Aggs:   []plan.AggregateCall{{Func: plan.CountStar, T: vector.TypeOf(vector.Int8)}},
		Output: []plan.Expr{plan.Agg{T: vector.TypeOf(vector.Int8)}}}
	all := *q
	all.Filter = nil
	for _, c := range []struct {
		name string
		mask func(i int) uint64
	}{
		{"nil", nil},
		{"none dead", func(int) uint64 { return math.MaxUint64 }},
		{"one in 128 dead", func(i int) uint64 { return ^uint64(0) << (i & 1) }},
		{"half dead", func(int) uint64 { return 0x5555555555555555 }},
		{"all dead", func(int) uint64 { return 0 }},
	} {
		for _, seg := range table.table.Segments {
			if seg.Live = nil; c.mask != nil {
				seg.Live = make([]uint64, seg.Rows/64)
				for i := range seg.Live {
					seg.Live[i] = c.mask(i)
				}
			}
		}
		for _, f := range []struct {
			name string
			q    *plan.Star
		}{{"range", q}, {"all", &all}} {
			b.Run(c.name+"/"+f.name, func(b *testing.B) {
				for b.Loop() {
					if _, err := Execute(context.Background(), f.q, in, Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/row")
			})
		}
	}
}
