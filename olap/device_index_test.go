package olap

import (
	"fmt"
	"math/rand/v2"
	"testing"

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
type indexedOf struct{ ranges, sets, any int }

func (d *plainDevice) noteIndexed(q *program.Query) {
	if q.Indexed == nil {
		return
	}
	for i := range q.Indexed.Terms {
		switch q.Indexed.Terms[i].Kind {
		case program.StepRange:
			d.indexed.ranges++
		case program.StepBits:
			d.indexed.sets++
		case program.StepFilter:
			d.indexed.any++
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
	if x := o.device.indexed; x.ranges < queries/3 || x.sets == 0 || x.any == 0 {
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
