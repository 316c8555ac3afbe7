package olap

// pairSet is a set of pairs of words: a table of keys of two words or, once it is large, as many as pairParts, which
// have the pairs of a range of hashes each and stay in the second-level cache while they are written to: pairs wait
// in buffers of these ranges.
//
//	pair --hash--> buffer 0 | 1 | ... | 63
//	                 | full, or somebody reads
//	                 v
//	               table  0 | 1 | ... | 63
type pairSet struct {
	tables  []*wordTable
	buffers []uint64 // pairs that are in no table yet, pairBuffer for each; nil where pairs do not wait
	waiting []int    // how many do, by table
}

const (
	pairParts = 64
	pairShift = 64 - 6 // of a hash, to the number of its table
	// pairsSplit is the number of pairs from which on there are several tables.
	pairsSplit = 1 << 14
	// pairBuffer is how many pairs wait for a table at most.
	pairBuffer = 256
)

func newPairSet() *pairSet { return &pairSet{tables: []*wordTable{newWordTable(2, 0)}} }

// insert adds a pair.
func (s *pairSet) insert(pair []uint64) {
	var index [1]uint32
	s.insertAll(pair[:2], index[:])
}

// insertAll adds up to tileRows pairs, as many as index has elements, which are written to.
func (s *pairSet) insertAll(pairs []uint64, index []uint32) {
	if len(s.tables) == 1 {
		if s.tables[0].insertAll(pairs, index); s.tables[0].n >= pairsSplit {
			s.split()
		}
		return
	}
	for i := 0; i < len(pairs); i += 2 {
		s.put(pairs[i], pairs[i+1])
	}
}

// put adds a pair to one of several tables.
func (s *pairSet) put(a, b uint64) {
	p := hashPair(a, b) >> pairShift
	at := 2 * (int(p)*pairBuffer + s.waiting[p])
	s.buffers[at], s.buffers[at+1] = a, b
	if s.waiting[p]++; s.waiting[p] == pairBuffer {
		s.flush(int(p))
	}
}

// hashPair is hashWords of two.
func hashPair(a, b uint64) uint64 { return hashWords([]uint64{a, b}) }

// flush brings the pairs that wait for a table to it.
func (s *pairSet) flush(p int) {
	var index [pairBuffer]uint32
	n := s.waiting[p]
	s.tables[p].insertLong(s.buffers[2*p*pairBuffer:2*(p*pairBuffer+n)], index[:n])
	s.waiting[p] = 0
}

// split makes several tables of one.
func (s *pairSet) split() {
	one := s.tables[0]
	s.tables = make([]*wordTable, pairParts)
	for p := range s.tables {
		s.tables[p] = newWordTable(2, one.n/pairParts)
	}
	s.wait()
	for i := 0; i < 2*one.n; i += 2 {
		s.put(one.keys[i], one.keys[i+1])
	}
}

// wait makes room for pairs that wait.
func (s *pairSet) wait() {
	s.buffers, s.waiting = make([]uint64, 2*pairParts*pairBuffer), make([]int, pairParts)
}

// settle brings all pairs to their tables.
func (s *pairSet) settle() {
	for p, n := range s.waiting {
		if n > 0 {
			s.flush(p)
		}
	}
}

// each calls f with every pair.
func (s *pairSet) each(f func(a, b uint64)) {
	s.settle()
	for _, t := range s.tables {
		for i := 0; i < 2*t.n; i += 2 {
			f(t.keys[i], t.keys[i+1])
		}
	}
}

func (s *pairSet) len() (n int) {
	s.settle()
	for _, t := range s.tables {
		n += t.n
	}
	return n
}

func (s *pairSet) bytes() (n int64) {
	for _, t := range s.tables {
		n += t.bytes()
	}
	return n + int64(8*len(s.buffers))
}

// unitePairs returns the union of sets, of which goroutines make a table each. It is the sets' pairs,
// inserted one by one.
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
		if sets[k].settle(); len(sets[k].tables) == 1 {
			sets[k].split()
			sets[k].settle()
		}
		return nil
	}); err != nil {
		return nil, err
	}
	u := &pairSet{tables: make([]*wordTable, pairParts)}
	err := x.each(pairParts, func(p int) error {
		most := 0
		for _, s := range sets {
			most = max(most, s.tables[p].n)
		}
		t := newWordTable(2, most)
		var index [tileRows]uint32
		for _, s := range sets {
			for keys := s.tables[p].keys; len(keys) > 0; {
				n := min(len(keys)/2, tileRows)
				t.insertLong(keys[:2*n], index[:n])
				keys = keys[2*n:]
			}
			s.tables[p] = nil
		}
		u.tables[p] = t
		return nil
	})
	u.wait()
	return u, err
}
