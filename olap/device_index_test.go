package olap

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// indexedOnDevice runs random queries over tables whose columns are all indexed, with dead rows, and
// has a device ask the indexes wherever it can, as many as are to be used.
func indexedOnDevice(t *testing.T, o *onPlainDevice, first uint64, queries int) {
	for seed := first; o.used < queries; seed++ {
		if seed == first+300 {
			t.Fatalf("the device computed %d queries: %v", o.used, o.fallbacks)
		}
		s := colstore.New(colstore.Options{SegmentRows: 1024, IndexAll: true})
		t.Run("", func(t *testing.T) { // so that what the tables hold is released before the store is closed
			w := newWorldOf(t, seed, func(t testing.TB, r *rand.Rand, _ *colstore.Store, meta *catalog.Table, size int, apart int64) *randomTable {
				return indexedTable(t, r, s, meta, size, apart)
			})
			w.options = Options{Indexes: IndexForce}
			for n := 0; n < 4 && o.used < queries; n++ {
				q := w.deviceQuery()
				if n == 3 {
					q = w.rowQuery()
				}
				for range 1 + w.r.IntN(3) {
					q.Filter = append(q.Filter, w.indexedCondition())
				}
				o.check(t, fmt.Sprintf("seed %d query %d", seed, n), w, q)
			}
		})
		s.Close()
	}
}

// indexedCondition is a condition that an index can answer: a comparison, IN, or one of several columns' comparisons.
func (w *world) indexedCondition() plan.Expr {
	columns := []string{"skew", "i4", "d", "id", "i2", "p2"}
	col := w.columnOf(0, columns[w.r.IntN(6)])
	datum := func() plan.Expr { return plan.Const{Datum: randomDatum(w.r, col.Type(), w.r.IntN(3000), 30, false)} }
	compare := func(op plan.Op) plan.Expr {
		return &plan.Call{Op: op, T: vector.TypeOf(vector.Bool), Args: []plan.Expr{col, datum()}}
	}
	if w.r.IntN(3) > 0 {
		return compare([]plan.Op{plan.OpEq, plan.OpLe, plan.OpGe, plan.OpLt, plan.OpGt, plan.OpNe}[w.r.IntN(6)])
	}
	or := &plan.Call{Op: plan.OpOr, T: vector.TypeOf(vector.Bool)}
	if w.r.IntN(3) == 0 {
		in := &plan.Call{Op: plan.OpIn, T: vector.TypeOf(vector.Bool), Args: []plan.Expr{col}}
		for range 6 + w.r.IntN(6) {
			in.Args = append(in.Args, datum())
		}
		return in
	}
	other := w.r.IntN(2) == 0
	for range 2 + w.r.IntN(4) {
		if other {
			col = w.columnOf(0, columns[w.r.IntN(6)])
		}
		or.Args = append(or.Args, compare(plan.OpEq))
	}
	return or
}

// indexedOf counts the queries that came with terms of indexes, of each kind of step.
type indexedOf struct{ ranges, sets, any, lists int }

func (d *plainDevice) noteIndexed(q *program.Query) {
	if q.Indexed == nil {
		return
	}
	for i := range q.Indexed.Columns {
		d.askedIndexes = append(d.askedIndexes, q.Segments[0].Columns[q.Indexed.Columns[i].Column].ID)
	}
	for i := range q.Indexed.Terms {
		switch q.Indexed.Terms[i].Kind {
		case program.StepRange:
			d.indexed.ranges++
		case program.StepBits:
			d.indexed.sets++
		case program.StepFilter:
			if q.Indexed.Terms[i].In {
				d.indexed.lists++
			} else {
				d.indexed.any++
			}
		}
	}
}

// TestIndexedOnPlainDevice: what indexes say goes with queries to a device, and is right.
func TestIndexedOnPlainDevice(t *testing.T) {
	o := newOnPlainDevice()
	queries := 150
	if testing.Short() {
		queries = 50
	}
	indexedOnDevice(t, o, 500, queries)
	if x := o.device.indexed; x.ranges < queries/3 || x.sets == 0 || x.any == 0 || x.lists == 0 {
		t.Errorf("%d queries: %+v", o.used, x)
	}
}

// TestIndexedOnEmulatedDevice is the same with kernels.
func TestIndexedOnEmulatedDevice(t *testing.T) {
	o := newOnPlainDevice()
	o.runner = emulated(t)
	queries := 12
	if testing.Short() {
		queries = 4
	}
	indexedOnDevice(t, o, 902, queries)
	if o.fallbacks[fallbackFault] > 0 || o.narrowed < queries/3 {
		t.Errorf("the device failed %d times; %d segments were narrowed", o.fallbacks[fallbackFault], o.narrowed)
	}
}

// TestIndexesChosen: by itself a query has a device ask indexes of columns whose rows are clustered, not of others.
func TestIndexesChosen(t *testing.T) {
	defer func(was float64) { narrowCost = was }(narrowCost)
	narrowCost = 0
	i8 := vector.TypeOf(vector.Int8)
	meta := &catalog.Table{OID: 1, Schema: "public", Name: "readings", Columns: []catalog.Column{
		{Name: "runs", Type: i8}, {Name: "noise", Type: i8}, {Name: "level", Type: i8, NotNull: true}}}
	r := rand.New(rand.NewPCG(5, 5))
	rows := make([][]vector.Datum, 150000)
	for i := range rows {
		rows[i] = []vector.Datum{vector.Int(vector.Int8, r.Int64N(1<<30)), vector.Int(vector.Int8, r.Int64N(1<<30)), vector.Int(vector.Int8, int64(i/700*13%40)<<22)}
		if i > 0 && r.IntN(500) > 0 {
			rows[i][0] = rows[i-1][0]
		}
	}
	s := colstore.New(colstore.Options{SegmentRows: 65536, IndexAll: true})
	t.Cleanup(s.Close) // after load's
	table := load(t, s, meta, rows)
	table.Retain()
	s.Publish(s.NewRelation(table))
	for range 3 {
		for c := range meta.Columns {
			table.Use(c)
		}
	}
	has := func(col int) bool {
		x := table.Segments[len(table.Segments)-1].Index(col)
		if x != nil {
			x.Release()
		}
		return x != nil
	}
	for deadline := time.Now().Add(time.Minute); !has(0) || !has(1) || !has(2); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no indexes are built")
		}
	}
	within := func(col int, lo, hi int64) []plan.Expr {
		column := plan.Column{Column: col, T: i8}
		return []plan.Expr{&plan.Call{Op: plan.OpGe, T: vector.TypeOf(vector.Bool), Args: []plan.Expr{column, plan.Const{Datum: vector.Int(vector.Int8, lo)}}},
			&plan.Call{Op: plan.OpLe, T: vector.TypeOf(vector.Bool), Args: []plan.Expr{column, plan.Const{Datum: vector.Int(vector.Int8, hi)}}}}
	}
	in := func(col int, values ...int64) []plan.Expr {
		e := &plan.Call{Op: plan.OpIn, T: vector.TypeOf(vector.Bool), Args: []plan.Expr{plan.Column{Column: col, T: i8}}}
		for _, v := range values {
			e.Args = append(e.Args, plan.Const{Datum: vector.Int(vector.Int8, v)})
		}
		return []plan.Expr{e}
	}
	runs, noise, level := within(0, 1<<28, 1<<28+1<<26), within(1, 1<<28, 1<<29), within(2, 3<<22, 5<<22)
	for _, c := range []struct {
		name   string
		filter []plan.Expr
		asked  []int // columns
	}{
		{"runs", runs, []int{0}},
		{"noise", noise, nil},
		{"level", level, []int{2}},
		{"runs and level", slices.Concat(runs, level), []int{0, 2}},
		{"runs and noise", slices.Concat(noise, runs), []int{0}},
		{"list", in(0, rows[3][0].I, rows[5000][0].I, rows[9000][0].I, 1, 2, 3, rows[19000][0].I, 5), []int{0}},
		{"none", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &plan.Star{Tables: []plan.Source{{Meta: meta}}, Grouped: true, Filter: c.filter,
				Aggs: []plan.AggregateCall{{Func: plan.CountStar, T: i8}}, Output: []plan.Expr{plan.Agg{T: i8}}}
			want := int64(0)
			for _, row := range rows {
				in := true
				for _, e := range c.filter {
					call := e.(*plan.Call)
					v := row[call.Args[0].(plan.Column).Column].I
					in = in && slices.ContainsFunc(call.Args[1:], func(e plan.Expr) bool {
						k := e.(plan.Const).I
						return call.Op == plan.OpGe && v >= k || call.Op == plan.OpLe && v <= k || call.Op == plan.OpIn && v == k
					})
				}
				if in {
					want++
				}
			}
			d := newPlainDevice()
			if want == 0 || want == int64(len(rows)) != (c.filter == nil) {
				t.Fatalf("%d of %d rows", want, len(rows))
			}
			var report Report
			got, err := Execute(t.Context(), q, Input{Tables: []*colstore.Table{table}}, Options{Device: d, DeviceWait: true, Report: &report})
			if err != nil || report.Device == "" {
				t.Fatal(err, report)
			}
			if n := got.Columns[0].Ints[0]; n != want {
				t.Errorf("%d rows, want %d", n, want)
			}
			var asked []int
			for k := range meta.Columns {
				if slices.Contains(d.askedIndexes, table.Segments[0].Columns[k].ID) {
					asked = append(asked, k)
				}
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("indexes of columns %v are asked, want %v", asked, c.asked)
			}
		})
	}
}
