package olap

import "math/bits"

// pairSet is a set of pairs of words: a table of keys of two words, or several, which have the pairs
// of a range of hashes each, as goroutines make them (unitePairs).
type pairSet struct {
	tables []*wordTable // a power of two
	shift  uint         // of a hash, to the number of its table
}

func newPairSet() *pairSet {
	return &pairSet{tables: []*wordTable{newWordTable(2, 0)}, shift: 64}
}

// insert adds a pair.
func (s *pairSet) insert(pair []uint64) { s.tables[hashWords(pair)>>s.shift].insert(pair) }

// insertAll adds up to tileRows pairs. It is insert for each. index is written to.
func (s *pairSet) insertAll(pairs []uint64, index []uint32) {
	if len(s.tables) == 1 {
		s.tables[0].insertAll(pairs, index)
		return
	}
	for i := range index {
		s.insert(pairs[2*i : 2*i+2])
	}
}

// each calls f with every pair.
func (s *pairSet) each(f func(a, b uint64)) {
	for _, t := range s.tables {
		for i := 0; i < 2*t.n; i += 2 {
			f(t.keys[i], t.keys[i+1])
		}
	}
}

func (s *pairSet) len() (n int) {
	for _, t := range s.tables {
		n += t.n
	}
	return n
}

func (s *pairSet) bytes() (n int64) {
	for _, t := range s.tables {
		n += t.bytes()
	}
	return n
}

// unitePairs returns the union of sets of one table each, of which goroutines make ranges of hashes. It
// is the sets' pairs, inserted one by one.
func (x *execution) unitePairs(sets []*pairSet) (*pairSet, error) {
	total := 0
	for _, s := range sets {
		total += s.len()
	}
	taken := int64(total) * 16
	if err := x.take(taken); err != nil {
		return nil, err
	}
	defer x.give(taken)
	partBits := uint(bits.Len(uint(4*x.opt.Workers - 1)))
	u := &pairSet{tables: make([]*wordTable, 1<<partBits), shift: 64 - partBits}
	sorted := make([][]uint64, len(sets)) // by set: its pairs, by the range of their hashes
	ends := make([][]int, len(sets))      // and where in it each range ends, in words
	if err := x.each(len(sets), func(k int) error {
		sorted[k], ends[k] = sets[k].sort(u)
		return nil
	}); err != nil {
		return nil, err
	}
	err := x.each(len(u.tables), func(p int) error {
		piece := func(k int) []uint64 {
			from := 0
			if p > 0 {
				from = ends[k][p-1]
			}
			return sorted[k][from:ends[k][p]]
		}
		most := 0
		for k := range sets {
			most = max(most, len(piece(k))/2)
		}
		t := newWordTable(2, most)
		var index [tileRows]uint32
		for k := range sets {
			for pairs := piece(k); len(pairs) > 0; {
				n := min(len(pairs)/2, tileRows)
				t.insertLong(pairs[:2*n], index[:n])
				pairs = pairs[2*n:]
			}
		}
		u.tables[p] = t
		return nil
	})
	return u, err
}

// sort returns the pairs by their tables in u, and where each table's end.
func (s *pairSet) sort(u *pairSet) (sorted []uint64, ends []int) {
	ends = make([]int, len(u.tables))
	s.each(func(a, b uint64) { ends[hashWords([]uint64{a, b})>>u.shift] += 2 })
	sum := 0
	for p, n := range ends {
		ends[p], sum = sum, sum+n
	}
	sorted = make([]uint64, sum)
	s.each(func(a, b uint64) {
		at := &ends[hashWords([]uint64{a, b})>>u.shift]
		sorted[*at], sorted[*at+1] = a, b
		*at += 2
	})
	return sorted, ends
}
