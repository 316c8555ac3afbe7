package olap

import (
	"math/bits"
	"sync/atomic"
)

// parallelMerge is the number of groups from which on tables are merged by several
// goroutines. Tests make it small.
var parallelMerge = 1 << 14

// each calls f for 0..n-1 on as many goroutines as the query may have, and returns an
// error that one of them returned.
func (x *execution) each(n int, f func(i int) error) error {
	if n == 0 {
		return nil
	}
	var next atomic.Int64
	var stop atomic.Bool
	return x.together(min(n, x.opt.Workers), func(m *member) error {
		for i := int(next.Add(1) - 1); i < n && !stop.Load(); i = int(next.Add(1) - 1) {
			if err := f(i); err != nil {
				stop.Store(true)
				return err
			}
			m.pause()
		}
		return nil
	})
}

// merge makes the result of what the workers computed.
func (by *grouping) merge() error {
	if by.how == groupPartitioned {
		return by.radix.drain()
	}
	var open []*groups
	for _, s := range by.workers {
		if s.counts != nil {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		s := by.newGroups()
		s.open()
		open = append(open, s)
	}
	by.workers = nil
	by.done = open[:1]
	if err := by.uniteSets(open); err != nil {
		return err
	}
	total := 0
	for _, s := range open {
		if s.table != nil {
			total += s.table.n
		}
	}
	switch {
	case len(open) == 1:
	case by.g.p.x.opt.enough(total, parallelMerge+1) && by.g.p.x.opt.Workers > 1:
		return by.mergeParts(open)
	case open[0].table == nil && by.g.p.x.opt.enough(len(open[0].counts)*(len(open)-1), parallelMerge+1) && by.g.p.x.opt.Workers > 1:
		return by.mergeArrays(open)
	default:
		for _, from := range open[1:] {
			if err := open[0].add(from); err != nil {
				return err
			}
		}
	}
	return nil
}

// uniteSets moves large sets of DISTINCT aggregates to the first of the workers' arrays of groups, by
// several goroutines: the same group has the same number in all arrays, so that words need not be
// taken apart.
func (by *grouping) uniteSets(open []*groups) error {
	x := by.g.p.x
	if open[0].table != nil || len(open) == 1 || x.opt.Workers == 1 {
		return nil
	}
	for k := range open[0].states {
		var list []*distinct
		for _, s := range open {
			if d, ok := s.states[k].extra.(*distinct); ok {
				list = append(list, d)
			}
		}
		if len(list) == len(open) {
			if err := x.uniteDistinct(list); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergeArrays adds arrays of groups to the first: a goroutine takes the same groups of all of them
// or, where an accumulator's values are not words by group, all groups of that.
func (by *grouping) mergeArrays(open []*groups) error {
	x, s := by.g.p.x, open[0]
	numbers := x.ascending(len(s.counts))
	var extras []int
	for k := range s.states {
		if s.states[k].extra != nil {
			extras = append(extras, k)
		}
	}
	each := min(max(len(numbers)/(4*x.opt.Workers), 64), cellGroups)
	err := x.each(len(extras)+(len(numbers)+each-1)/each, func(i int) error {
		if i < len(extras) {
			k := extras[i]
			for _, from := range open[1:] {
				s.states[k].mergeAll(&s.g.accs[k], &from.states[k], nil, numbers)
			}
			return nil
		}
		first := (i - len(extras)) * each
		piece := numbers[first:min(first+each, len(numbers))]
		for _, from := range open[1:] {
			for k := range s.states {
				if s.states[k].extra == nil {
					s.states[k].mergeAll(&s.g.accs[k], &from.states[k], piece, piece)
				}
			}
			eachPair(piece, piece, func(j, i uint32) { s.counts[i] += from.counts[j] })
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.account()
}

// add adds the groups of a table of the same grouping.
func (s *groups) add(from *groups) error {
	n := len(from.counts)
	if from.table != nil {
		n = from.table.n
	}
	to := make([]uint32, n)
	if from.table != nil {
		s.table.insertAll(from.table.keys, to)
		s.resize(s.table.n)
	} else {
		for j := range to {
			to[j] = uint32(j)
		}
	}
	return s.addTo(from, nil, to)
}

// addTo adds group of[k] of from to group to[k] (as state.mergeAll), a goroutine for
// each accumulator where there are many groups.
func (s *groups) addTo(from *groups, of, to []uint32) error {
	one := func(k int) error {
		if k < len(s.states) {
			s.states[k].mergeAll(&s.g.accs[k], &from.states[k], of, to)
			return nil
		}
		eachPair(of, to, func(j, i uint32) { s.counts[i] += from.counts[j] })
		return nil
	}
	if s.g.p.x.opt.enough(len(to), parallelMerge+1) {
		if err := s.g.p.x.each(len(s.states)+1, one); err != nil {
			return err
		}
	} else {
		for k := range len(s.states) + 1 {
			if err := one(k); err != nil {
				return err
			}
		}
	}
	return s.account()
}

// mergeParts merges hash tables by the upper bits of their keys' hashes: a goroutine
// takes the keys with the same bits out of all tables.
func (by *grouping) mergeParts(open []*groups) error {
	x := by.g.p.x
	parts := 1 << bits.Len(uint(4*x.opt.Workers-1))
	shift := uint(64 - bits.Len(uint(parts-1)))
	var split int64
	for _, s := range open {
		for k := range s.states {
			if d, ok := s.states[k].extra.(*distinct); ok {
				split += d.pairs() * pairBytes
			}
		}
	}
	if err := x.take(split); err != nil {
		return err
	}
	defer x.give(split)
	members := make([][][]uint32, len(open)) // by table and part: numbers
	sets := make([][][]*distinct, len(open)) // by table, accumulator and part, where sets are split
	if err := x.each(len(open), func(t int) error {
		table := open[t].table
		members[t], sets[t] = make([][]uint32, parts), make([][]*distinct, len(open[t].states))
		part, at := make([]uint16, table.n), make([]uint32, table.n)
		for i := range table.n {
			p := hashOf(table.key(i)) >> shift
			part[i], at[i] = uint16(p), uint32(len(members[t][p]))
			members[t][p] = append(members[t][p], uint32(i))
		}
		sizes := make([]int, parts)
		for p := range sizes {
			sizes[p] = len(members[t][p])
		}
		for k := range sets[t] {
			if d, ok := open[t].states[k].extra.(*distinct); ok {
				sets[t][k] = d.split(part, at, sizes)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	by.done = make([]*groups, parts)
	return x.each(parts, func(p int) error {
		s := by.newGroups()
		by.done[p] = s
		most, sum := 0, 0
		for t := range open {
			most, sum = max(most, len(members[t][p])), sum+len(members[t][p])
		}
		s.openTable(min(2*most, sum))
		var keys []uint64
		var to []uint32
		for t, from := range open {
			of := members[t][p]
			keys, to = keys[:0], to[:0]
			for _, i := range of {
				keys = append(keys, from.table.key(int(i))...)
			}
			to = append(to, make([]uint32, len(of))...)
			s.table.insertAll(keys, to)
			s.resize(s.table.n)
			for k := range s.states {
				if split := sets[t][k]; split == nil {
					s.states[k].mergeAll(&s.g.accs[k], &from.states[k], of, to)
				} else if len(to) > 0 {
					s.states[k].extra.mergeAll(split[p], nil, to)
				}
			}
			eachPair(of, to, func(j, i uint32) { s.counts[i] += from.counts[j] })
		}
		return s.account()
	})
}

// hashOf returns the hash that a wordTable has for a key.
func hashOf(key []uint64) uint64 {
	if len(key) == 1 {
		return hashOne(key[0])
	}
	return hashWords(key)
}
