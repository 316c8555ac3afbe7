package olap

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgaccel/plan"
	"pgaccel/vector"
)

// topTable has segments whose zone maps of column 0 lie apart, or not, and nulls in some.
func topTable(t *testing.T, r *rand.Rand, rows int) *randomTable {
	var data [][]any
	shape := r.IntN(4)
	for i := range rows {
		key := int64(i / 3)
		switch shape {
		case 1:
			key = int64(rows - i)
		case 2:
			key = r.Int64N(int64(rows))
		case 3:
			key = []int64{math.MinInt64, math.MinInt64 + 1, 0, math.MaxInt64 - 1, math.MaxInt64}[r.IntN(5)]
		}
		row := []any{key, int64(r.IntN(5)), int64(i)}
		if r.IntN(4) == 0 && i/1024%3 == 1 {
			row[0] = nil
		}
		if r.IntN(9) == 0 {
			row[1] = nil
		}
		data = append(data, row)
	}
	return ints(t, 1024, []string{"key", "few", "serial"}, data)
}

// TestTopScan takes the first rows by a column, of lengths around those of tiles and segments,
// and compares with the reference.
func TestTopScan(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 21))
	for _, rows := range []int{0, 1, 63, 64, 127, 129, 512, 1023, 1024, 1025, 2049, 9000} {
		for n := range 12 {
			table := topTable(t, r, rows)
			w := &world{tables: []*randomTable{table}}
			q := &plan.Star{Tables: groupedBy(table).Tables, Output: []plan.Expr{bigint(0, 0), bigint(0, 2), bigint(0, 1)}}
			q.Order = []plan.Order{{Expr: bigint(0, 0), Desc: n&1 != 0, NullsFirst: n&2 != 0}, {Expr: bigint(0, 2), Desc: n&4 != 0}}
			switch n % 3 {
			case 1:
				q.Filter = []plan.Expr{call(plan.OpNe, vector.Bool, bigint(0, 1), integer(int64(r.IntN(7)-1)))}
			case 2:
				q.Filter = []plan.Expr{call(plan.OpEq, vector.Bool, bigint(0, 1), integer(int64(r.IntN(6))))}
			}
			q.Limit = plan.Const{Datum: vector.Int(vector.Int8, int64(1+r.IntN(40)))}
			if r.IntN(3) == 0 {
				q.Offset = plan.Const{Datum: vector.Int(vector.Int8, int64(r.IntN(20)))}
			}
			want, wantErr := w.reference(q)
			for _, opt := range []Options{{Workers: 1}, {Workers: 3}, {Workers: 2, Share: NewSharer(), Eager: true}} {
				got, err := Execute(t.Context(), q, w.input(), opt)
				if problem, why := compareOutcomes(q, got, err, want, wantErr); problem != "" || why != "" {
					t.Fatalf("%d rows, query %d: %s %s\n%s", rows, n, problem, why, queryText(q))
				}
			}
		}
	}
}

// TestTopScanReads: a bound keeps segments from being read.
func TestTopScanReads(t *testing.T) {
	var data [][]any
	for i := range 30_000 {
		data = append(data, []any{int64(i)})
	}
	table := ints(t, 1024, []string{"key"}, data)
	for _, desc := range []bool{false, true} {
		q := &plan.Star{Tables: groupedBy(table).Tables, Output: []plan.Expr{bigint(0, 0)},
			Order: []plan.Order{{Expr: bigint(0, 0), Desc: desc}}, Limit: plan.Const{Datum: vector.Int(vector.Int8, 3)}}
		x, err := newExecution(t.Context(), q, (&world{tables: []*randomTable{table}}).input(), Options{Workers: 1})
		if err == nil {
			err = x.begin()
		}
		if err != nil {
			t.Fatal(err)
		}
		p, lowered, err := x.prepareRows([]plan.Expr{bigint(0, 0), bigint(0, 0)}, cut{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := p.collect(lowered, cut{rows: 4, order: q.Order, keys: 1})
		if err != nil {
			t.Fatal(err)
		}
		if segments, _ := p.read(math.MaxInt); segments != 1 || rows.n > 1024 {
			t.Errorf("desc %v: %d segments are left, %d rows were kept", desc, segments, rows.n)
		}
		first := 0
		if desc {
			first = len(p.tab.Segments) - 1
		}
		if p.top.order[0] != first {
			t.Errorf("desc %v: segment %d is the first", desc, p.top.order[0])
		}
	}
}
