package olap

import "sync"

// pairSet is a set of pairs of words. While they are few they are in a table. Then they are in as many lists as
// pairParts, of a range of hashes each, where they stand as they come, and more than once: a list is written to
// at its end only. Who reads, or finds a list full, has the pairs that repeat others removed by a table that is
// made for one list after the other and stays in the second-level cache, which tables of all pairs would not (radix
// partitioning: Manegold, Boncz and Kersten, Optimizing Main-Memory Join on Modern Hardware, 2002).
//
//	pair --hash--> list 0 | 1 | ... | 127
//	               distinct ones, others
type pairSet struct {
	table *wordTable // nil: lists
	lists []pairList
	work  *wordTable // of deduplicator
}

// pairList is a list of pairs, two words each.
type pairList struct {
	words []uint64 // with room for more
	n     int      // pairs
	known int      // the first of them, which are distinct
}

const (
	pairParts = 128
	pairShift = 64 - 7 // of a hash, to the number of its list
	// pairsSplit is the number of pairs from which on there are lists.
	pairsSplit = 1 << 14
	// pairRoom is for how many pairs a list has room at first.
	pairRoom = 1 << 11
	// pairGrowth is how many times more a list has room for that has pairs enough of its own.
	pairGrowth = 4
)

func newPairSet() *pairSet { return &pairSet{table: newWordTable(2, 0)} }

// insert adds a pair.
func (s *pairSet) insert(pair []uint64) {
	var index [1]uint32
	s.insertAll(pair[:2], index[:])
}

// insertAll adds up to tileRows pairs, as many as index has elements, which are written to.
func (s *pairSet) insertAll(pairs []uint64, index []uint32) {
	if s.table != nil {
		if s.table.insertAll(pairs, index); s.table.n >= pairsSplit {
			s.split()
		}
		return
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		s.put(pairs[i], pairs[i+1])
	}
}

// put adds a pair to its list.
func (s *pairSet) put(a, b uint64) {
	l := &s.lists[hashWords([]uint64{a, b})>>pairShift]
	at := 2 * l.n
	if at == len(l.words) {
		l.makeRoom(s.deduplicator())
		at = 2 * l.n
	}
	l.words[at], l.words[at+1] = a, b
	l.n++
}

// deduplicator returns the table that removes pairs.
func (s *pairSet) deduplicator() *wordTable {
	if s.work == nil {
		s.work = newWordTable(2, pairRoom)
	}
	return s.work
}

// makeRoom makes room for more pairs.
func (l *pairList) makeRoom(t *wordTable) {
	if l.deduplicate(t); 4*l.n >= len(l.words) { // half of them are distinct
		words := unset[uint64](max(pairGrowth*len(l.words), 2*pairRoom))
		copy(words, l.words[:2*l.n])
		l.words = words
	}
}

// deduplicate removes pairs that repeat others.
func (l *pairList) deduplicate(t *wordTable) {
	if l.known == l.n {
		return
	}
	t.clear(l.n)
	t.addPairs(l.words[:2*l.n])
	l.n, l.known = t.n, t.n
	copy(l.words, t.keys)
}

// addPairs is insertAll where nobody asks for numbers.
func (t *wordTable) addPairs(words []uint64) {
	var index [tileRows]uint32
	for len(words) > 0 {
		n := min(len(words)/2, tileRows)
		t.insertLong(words[:2*n], index[:n])
		words = words[2*n:]
	}
}

// split makes lists of the table.
func (s *pairSet) split() {
	one := s.table
	s.table, s.lists = nil, make([]pairList, pairParts)
	for i := 0; i < 2*one.n; i += 2 {
		s.put(one.keys[i], one.keys[i+1])
	}
	for p := range s.lists {
		s.lists[p].known = s.lists[p].n
	}
}

// each calls f with every pair.
func (s *pairSet) each(f func(a, b uint64)) {
	if t := s.table; t != nil {
		for i := 0; i < 2*t.n; i += 2 {
			f(t.keys[i], t.keys[i+1])
		}
		return
	}
	for p := range s.lists {
		l := &s.lists[p]
		l.deduplicate(s.deduplicator())
		for i := 0; i < 2*l.n; i += 2 {
			f(l.words[i], l.words[i+1])
		}
	}
}

func (s *pairSet) len() (n int) {
	if s.table != nil {
		return s.table.n
	}
	for p := range s.lists {
		s.lists[p].deduplicate(s.deduplicator())
		n += s.lists[p].n
	}
	return n
}

// most is as many as len, or more: pairs that repeat others may be counted.
func (s *pairSet) most() (n int) {
	if s.table != nil {
		return s.table.n
	}
	for p := range s.lists {
		n += s.lists[p].n
	}
	return n
}

func (s *pairSet) bytes() (n int64) {
	for _, t := range []*wordTable{s.table, s.work} {
		if t != nil {
			n += t.bytes()
		}
	}
	for p := range s.lists {
		n += int64(8 * len(s.lists[p].words))
	}
	return n
}

// unitePairs returns the union of sets, of which goroutines make a list each. It is the sets' pairs, inserted one
// by one.
func (x *execution) unitePairs(sets []*pairSet) (*pairSet, error) {
	taken := int64(0)
	for _, s := range sets {
		taken += s.bytes()
	}
	if err := x.take(taken); err != nil {
		return nil, err
	}
	defer x.give(taken) // the groups account for what is left
	if err := x.each(len(sets), func(k int) error {
		if sets[k].table != nil {
			sets[k].split()
		}
		return nil
	}); err != nil {
		return nil, err
	}
	u := &pairSet{lists: make([]pairList, pairParts)}
	tables := sync.Pool{New: func() any { return newWordTable(2, pairRoom) }}
	err := x.each(pairParts, func(p int) error {
		t, all := tables.Get().(*wordTable), 0
		defer tables.Put(t)
		for _, s := range sets {
			all += s.lists[p].n
		}
		t.clear(all)
		for _, s := range sets {
			t.addPairs(s.lists[p].words[:2*s.lists[p].n])
			s.lists[p] = pairList{}
		}
		words := unset[uint64](2 * t.n)
		copy(words, t.keys)
		u.lists[p] = pairList{words, t.n, t.n}
		return nil
	})
	return u, err
}
