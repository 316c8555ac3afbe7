package olap

import (
	"math"
	"slices"
	"sync/atomic"

	"pgaccel/plan"
	"pgaccel/vector"
)

// firstOf is how many times more groups than a LIMIT wants must be there for the others
// to be left out before their outputs are computed.
const firstOf = 4

// first keeps the groups that ORDER BY and LIMIT leave, with all that tie with the cut,
// or more. Key by key, it takes those that are certainly among the first, and goes on
// with those that tie at the cut.
func (o *overview) first() error {
	q := o.x.q
	need := int(min(o.x.firstGroups(), int64(o.n)))
	if need == 0 || need > o.n/firstOf {
		return nil
	}
	tied := o.x.ascending(o.n) // places of the groups that tie in the keys so far
	var sure []uint32
	for i, k := range o.x.orderOfCut() {
		if _, late := k.Expr.(lateRef); late || !overLeaf(k.Expr) {
			return nil // it is computed of what is left
		}
		c, err := o.column(k.Expr)
		if err != nil {
			return err
		}
		keys, slack, err := c.normalized(o.x, k)
		if keys == nil || err != nil {
			return err
		}
		bound := o.x.nthKey(keys, tied, need-len(sure)-1)
		if slack > 0 {
			if bound > math.MaxInt64-slack {
				return nil
			}
			bound += slack
		}
		sures, ties := make([][]uint32, chunksOf(len(tied))), make([][]uint32, chunksOf(len(tied)))
		o.x.chunksSideBySide(len(tied), func(c, from, to int) {
			for _, at := range tied[from:to] {
				switch g := keys[at]; {
				case g < bound && slack == 0:
					sures[c] = append(sures[c], at)
				case g <= bound:
					ties[c] = append(ties[c], at)
				}
			}
		})
		sure, tied = append(sure, slices.Concat(sures...)...), slices.Concat(ties...)
		if slack == 0 && len(sure)+len(tied) == o.n {
			continue // the key leaves all groups, where they are
		}
		slices.Sort(sure)
		kept := append(slices.Clone(sure), tied...)
		slices.Sort(kept)
		o.x.tiesDropped = o.x.tiesDropped || i >= len(q.Order) && len(kept) < o.n
		o.restrict(kept)
		if slack > 0 || len(tied) <= firstOf*need {
			return nil
		}
		// Places have changed.
		renumber(sure, kept)
		renumber(tied, kept)
	}
	return nil
}

// firstGroups is how many groups ORDER BY and LIMIT leave, and one more, which says whether a tie is cut. 0: groups are not
// to be left out before their outputs are computed.
func (x *execution) firstGroups() int64 {
	want := x.offset + x.limit
	if !x.limited || len(x.orderOfCut()) == 0 || want < 0 || want == math.MaxInt64 {
		return 0
	}
	if mayFail(x.q.Output) || slices.ContainsFunc(x.q.Order, func(k plan.Order) bool { return mayFail([]plan.Expr{k.Expr}) }) {
		return 0 // for a group that is cut off
	}
	return want + 1
}

// orderOfCut is the order of groups that a LIMIT cuts: ORDER BY, and behind that the first outputs, as far as settle has those
// that tie in the order of such keys. Rows that are merged from files are not settled.
func (x *execution) orderOfCut() []plan.Order {
	if x.spill != nil {
		return x.q.Order
	}
	order := slices.Clone(x.q.Order)
	for _, e := range x.q.Output {
		if k, ok := e.(plan.Key); ok && inOrder(k.T) {
			order = append(order, plan.Order{Expr: e})
		} else if !slices.ContainsFunc(x.q.Order, func(o plan.Order) bool { return o.Expr == e }) {
			break // those that tie may differ in it
		}
	}
	return order
}

// inOrder reports whether values of a type are in the order of the integers that stand for them.
func inOrder(t vector.Type) bool {
	return t.Kind.IsInt() || t.Kind == vector.Date || t.Kind == vector.Timestamp || t.Kind == vector.TimestampTZ || t.Kind == vector.Numeric && !t.Varying()
}

// renumber replaces each value of list by its place in kept, which has all of them. Both ascend.
func renumber(list, kept []uint32) {
	p := 0
	for i, at := range list {
		for kept[p] != at {
			p++
		}
		list[i] = uint32(p)
	}
}

// normalized returns integers of which smaller ones come first in the order of k. With a
// slack they are approximate: values further apart than slack are in the right order,
// equal values are equal. It is nil where there are none such. They are the column's own where
// that has them.
func (c *rcol) normalized(x *execution, k plan.Order) (keys []int64, slack int64, err error) {
	n := len(c.v)
	var of func(i int) int64
	switch {
	case c.str != nil:
		return nil, 0, nil
	case c.dec != nil:
		n, slack = len(c.dec), 1<<12
		of = func(i int) int64 { return vector.FloatKey(int64(math.Float64bits(roughly(c.dec[i])))) }
	case c.dict != nil:
		t := c.t
		t.Collation = k.Expr.Type().Collation
		ranks, err := c.dict.rank(t.Collation)
		if err != nil {
			return nil, 0, nil // the server has yet to rank them
		}
		of = func(i int) int64 { return int64(ranks[c.v[i]]) }
		if len(ranks) == 0 {
			of = func(int) int64 { return 0 }
		}
	case c.t.Kind.IsFloat():
		of = func(i int) int64 { return vector.FloatKey(c.v[i]) }
	case !k.Desc && c.nulls == nil:
		return c.v, 0, nil
	default:
		of = func(i int) int64 { return c.v[i] }
	}
	keys = unset[int64](n)
	var open atomic.Bool // a value is not to be told from a null
	x.chunksSideBySide(n, func(_, from, to int) {
		for i := from; i < to; i++ {
			if c.null(uint32(i)) {
				if keys[i] = math.MaxInt64; k.NullsFirst {
					keys[i] = math.MinInt64
				}
				continue
			}
			v := of(i)
			if k.Desc {
				v = ^v
			}
			if c.nulls != nil && (v == math.MaxInt64 || v == math.MinInt64) {
				open.Store(true)
			}
			keys[i] = v
		}
	})
	if open.Load() {
		return nil, 0, nil
	}
	return keys, slack, nil
}

// roughly returns a double within some units in the last place of d.
func roughly(d vector.Decimal) float64 {
	f := float64(d.Unscaled.Hi)*(1<<64) + float64(d.Unscaled.Lo)
	if d.Unscaled.Hi == -1 && d.Unscaled.Lo != 0 { // a small negative number: the sum would cancel
		f = -float64(-d.Unscaled.Lo)
	}
	return f / math.Pow10(int(d.Scale))
}

// nthKey returns the n-th smallest, from 0, of the values at the given places.
func (x *execution) nthKey(keys []int64, places []uint32, n int) int64 {
	least := make([][]int64, chunksOf(len(places)))
	x.chunksSideBySide(len(places), func(c, from, to int) { least[c] = smallestKeys(keys, places[from:to], n) })
	return nthSmallest(slices.Concat(least...), n)
}

// smallestKeys returns values at the places, of which the n-th smallest, from 0, is that of all, or all of them. It keeps
// the best so far, and a bound that most others do not pass.
func smallestKeys(keys []int64, places []uint32, n int) []int64 {
	bounded, bound := false, int64(0)
	best := make([]int64, 0, min(4*(n+1)+1024, len(places)))
	for _, at := range places {
		v := keys[at]
		if bounded && v >= bound {
			continue
		}
		if len(best) == cap(best) {
			bounded, bound = true, nthSmallest(best, n) // what stands before n is not greater
			if best = best[:n+1]; v >= bound {
				continue
			}
		}
		best = append(best, v)
	}
	return best
}

// nthSmallest returns the n-th smallest value, from 0, by Hoare's selection. It changes
// the order of v.
func nthSmallest(v []int64, n int) int64 {
	for len(v) > 16 {
		a, b, c := v[0], v[len(v)/2], v[len(v)-1]
		pivot := max(min(a, b), min(max(a, b), c))
		// [0, lo) is smaller than the pivot, [lo, i) equal, [hi, len) greater.
		lo, i, hi := 0, 0, len(v)
		for i < hi {
			switch x := v[i]; {
			case x < pivot:
				v[lo], v[i] = x, v[lo]
				lo++
				i++
			case x > pivot:
				hi--
				v[hi], v[i] = x, v[hi]
			default:
				i++
			}
		}
		switch {
		case n < lo:
			v = v[:lo]
		case n < hi:
			return pivot
		default:
			v, n = v[hi:], n-hi
		}
	}
	slices.Sort(v)
	return v[n]
}

// firstRows returns those of the rows 0 to n-1 that are not after the k-th in an order,
// k > 0, sorted.
func firstRows(n, k int, o *rowOrder) []uint32 {
	if k*firstOf >= n {
		rows := make([]uint32, n)
		for i := range rows {
			rows[i] = uint32(i)
		}
		o.sort(rows)
		return rows
	}
	// heap holds the best k so far, the worst on top.
	heap := make([]uint32, k)
	for i := range heap {
		heap[i] = uint32(i)
	}
	down := func(i int) {
		for {
			c := 2*i + 1
			if c >= k {
				return
			}
			if c+1 < k && o.rows(heap[c+1], heap[c]) > 0 {
				c++
			}
			if o.rows(heap[c], heap[i]) <= 0 {
				return
			}
			heap[c], heap[i] = heap[i], heap[c]
			i = c
		}
	}
	for i := k/2 - 1; i >= 0; i-- {
		down(i)
	}
	for i := k; i < n; i++ {
		if o.rows(uint32(i), heap[0]) < 0 {
			heap[0] = uint32(i)
			down(0)
		}
	}
	worst := heap[0]
	var rows []uint32
	for i := range uint32(n) {
		if o.rows(i, worst) <= 0 {
			rows = append(rows, i)
		}
	}
	o.sort(rows)
	return rows
}
