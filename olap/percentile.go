package olap

import (
	"math"
	"slices"
	"sync"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Percentiles collect the values of each group, as integers in their order; the values
// at the wanted places are then selected (selection.go). All percentiles of one argument
// share a collection, and one selection. The collection is
//
//	counters   one for each group and value, where these are few against the rows
//	lists      blocks of values of each group, where there are few groups
//	rows       blocks of (group, value), which are sorted by group at the end
//
// with 32 bits a value where its distance from the lower bound has no more.

// ranked is such a collection.
type ranked interface {
	extra
	// values returns for groups[k] the values at places[k], which ascend and are counted
	// from 0, as distances from the accumulator's lower bound.
	values(groups []uint32, places [][]int64, each func(n int, f func(i int))) [][]uint64
	// size returns the number of values of a group.
	size(g uint32) int64
	// each calls f with every value and how often it came; also in pieces.
	each(f func(g uint32, x int64, n int64))
	groupCount() int
	memo() *selection
}

const (
	// histogramShare bounds the counters: so many rows for each.
	histogramShare = 4
	// listGroups is the number of groups up to which each has lists of its own.
	listGroups = 1024
	// blockValues is the length of full blocks.
	blockValues = 1 << 13
)

func newRanked(a *acc, x extent) ranked {
	lo, domain := a.arg.lo, uint64(a.arg.hi)-uint64(a.arg.lo)+1
	few := x.groups > 0 && x.groups <= listGroups
	switch {
	case x.rows > math.MaxUint32: // beyond the counters
	case domain != 0 && (x.groups > 0 && domain <= x.rows/histogramShare/x.groups || domain <= 4):
		return &histogram{lo: lo, domain: domain}
	}
	switch {
	case domain != 0 && domain <= 1<<32 && few:
		return &lists[uint32]{lo: lo}
	case domain != 0 && domain <= 1<<32:
		return &rowList[uint32]{lo: lo}
	case few:
		return &lists[uint64]{lo: lo}
	}
	return &rowList[uint64]{lo: lo}
}

// mergeUnlike is mergeAll of collections of two kinds.
func mergeUnlike(e, from ranked, of, to []uint32) {
	target := targets(from.groupCount(), of, to)
	index, vals := make([]uint32, 0, tileRows), make([]int64, 0, tileRows)
	flush := func() {
		e.add(index, vals)
		index, vals = index[:0], vals[:0]
	}
	from.each(func(g uint32, x int64, n int64) {
		i := target[g]
		if i == noGroup {
			return
		}
		for ; n > 0; n-- {
			if index, vals = append(index, i), append(vals, x); len(vals) == tileRows {
				flush()
			}
		}
	})
	flush()
}

// places returns the places, counted from 0 in ascending order, of the values that a
// percentile of n > 0 values is made of: lo and, by share of its distance, hi.
func (r *aggRef) places(n int64) (lo, hi int64, share float64) {
	if r.f != plan.PercentileCont {
		lo = max(int64(math.Ceil(r.fraction*float64(n))), 1) - 1
		hi = lo
	} else {
		p := float64(r.fraction * float64(n-1))
		lo, hi = int64(math.Floor(p)), int64(math.Ceil(p))
		share = p - math.Floor(p)
	}
	if r.desc {
		lo, hi = n-1-lo, n-1-hi
	}
	return lo, hi, share
}

// selected are the values that the percentiles of one accumulator are made of.
type selected struct {
	groups []uint32
	places [][]int64  // by number in groups
	values [][]uint64 // likewise
}

// selection keeps what was selected last.
type selection struct {
	mu   sync.Mutex
	last *selected
}

func (c *selection) memo() *selection { return c }

// selection returns the values that percentile r and those that share its collection
// need for the groups.
func (s *groups) selection(r *aggRef, groups []uint32) *selected {
	e := s.states[r.value].extra.(ranked)
	memo := e.memo()
	memo.mu.Lock()
	defer memo.mu.Unlock()
	if have := memo.last; have != nil && slices.Equal(have.groups, groups) {
		return have
	}
	sel := &selected{groups: slices.Clone(groups), places: make([][]int64, len(groups))}
	for k, g := range groups {
		sel.places[k] = s.g.placesOf(r.value, e.size(g))
	}
	sel.values = e.values(groups, sel.places, s.g.p.x.sideBySide)
	memo.last = sel
	return sel
}

// at returns the value at a place of the k-th group.
func (s *selected) at(k int, place int64) uint64 {
	i, _ := slices.BinarySearch(s.places[k], place)
	return s.values[k][i]
}

// placesOf returns the places, ascending, that percentiles of an accumulator want of n values.
func (g *grouper) placesOf(acc int, n int64) (list []int64) {
	for i := range g.refs {
		if r := &g.refs[i]; n > 0 && r.value == acc && r.ordered {
			lo, hi, _ := r.places(n)
			list = append(list, lo, hi)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// percentile returns the results of percentile r.
func (s *groups) percentile(r *aggRef, groups []uint32) (rcol, error) {
	c := rcol{t: r.t, v: make([]int64, len(groups)), nulls: make([]uint8, len(groups)), dict: r.dict}
	e := s.states[r.value].extra.(ranked)
	a := &s.g.accs[r.value]
	for _, g := range groups {
		if e.size(g) > math.MaxUint32 { // beyond the counters of a selection
			return c, forward(plan.ReasonMemory, "values to rank")
		}
	}
	sel := s.selection(r, groups)
	for k, g := range groups {
		n := e.size(g)
		if n == 0 {
			c.nulls[k] = 1
			continue
		}
		lo, hi, share := r.places(n)
		x, y := int64(sel.at(k, lo)+uint64(a.arg.lo)), int64(sel.at(k, hi)+uint64(a.arg.lo))
		var err error
		if c.v[k], err = s.interpolate(r, g, x, y, lo == hi, share); err != nil {
			return c, err
		}
	}
	return c, nil
}

// interpolate returns the percentile made of x and y: values by which r is ordered.
func (s *groups) interpolate(r *aggRef, g uint32, x, y int64, exact bool, share float64) (int64, error) {
	if r.cast != nil {
		// Values that were to be cast to double precision, which keeps their order.
		var err error
		if x, err = r.cast(x); err == nil {
			y, err = r.cast(y)
		}
		if err != nil {
			return 0, err
		}
	} else if r.zeros >= 0 {
		var err error
		if x, err = s.float(r, g, x); err == nil {
			y, err = s.float(r, g, y)
		}
		if err != nil {
			return 0, err
		}
	}
	switch {
	case r.ranks != nil:
		return r.ranked(x)
	case exact:
		return x, nil
	}
	lo, hi := math.Float64frombits(uint64(x)), math.Float64frombits(uint64(y))
	step := float64(share * float64(hi-lo)) // every operation is rounded by itself
	if v := lo + step; v == v {
		return int64(math.Float64bits(v)), nil
	}
	if lo == lo && hi == hi {
		return 0, failed("percentile between infinities") // a NaN with a sign
	}
	return vector.NaNBits, nil
}
