package olap

import "math/bits"

// wordSet is a set of 64-bit words by open addressing. A word's place is the upper bits
// of its hash, and probing goes upwards without wrapping around (some slots follow the
// last place): the slots are in the order of the hashes, but for neighbours. Growing and
// merging read and write from the first slot to the last.
type wordSet struct {
	slots []uint64 // 0 for free
	shift uint
	n     int // words in slots
	zero  bool
	later []uint16
	// over holds words for which there was no room although most slots are free: such
	// values are no accident, and the set must not grow because of them.
	over map[uint64]struct{}
}

// spill is the number of slots after the last place. Where probing runs past them the
// set grows, whatever its load.
const spill = 64

func newWordSet(words int) *wordSet {
	s := &wordSet{}
	s.alloc(words)
	return s
}

// alloc makes room for some words: at most half of the slots are taken.
func (s *wordSet) alloc(words int) {
	n := bits.Len(uint(max(2*words, 1024) - 1))
	s.shift = uint(64 - n)
	s.slots = make([]uint64, 1<<n+spill)
	s.n = 0
}

// addAll adds up to tileRows words. Those that are in the place of their hash, as most
// are that came before, take one load; loads of different words overlap.
func (s *wordSet) addAll(words []uint64) {
	if s.later == nil {
		s.later = make([]uint16, tileRows)
	}
	slots, shift := s.slots, s.shift
	k := 0
	for i, x := range words {
		s.later[k] = uint16(i)
		k += int(b2i(slots[hashOne(x)>>(shift&63)] != x))
		s.zero = s.zero || x == 0
	}
	for _, i := range s.later[:k] {
		s.insert(words[i])
	}
}

// insert adds a word.
func (s *wordSet) insert(x uint64) {
	if x == 0 {
		s.zero = true
		return
	}
	if 2*(s.n+1) > len(s.slots)-spill {
		s.grow()
	}
	for !s.put(x) {
		if 16*s.n < len(s.slots) {
			if s.over == nil {
				s.over = map[uint64]struct{}{}
			}
			s.over[x] = struct{}{}
			return
		}
		s.grow()
	}
}

// put adds a word that is not 0; false where there is no room near its place.
func (s *wordSet) put(x uint64) bool {
	for i := hashOne(x) >> s.shift; i < uint64(len(s.slots)); i++ {
		switch s.slots[i] {
		case x:
			return true
		case 0:
			s.slots[i] = x
			s.n++
			return true
		}
	}
	return false
}

// grow makes room for twice as many words, of few for four times as many.
func (s *wordSet) grow() {
	size := len(s.slots) - spill
	if size < 1<<17 {
		size *= 2
	}
	s.rebuild(size)
}

// reserve makes room for more words. Adding words in the order of another set's slots
// would else pile them up in the first part of a set that is too small.
func (s *wordSet) reserve(more int) {
	if 2*(s.n+more) > len(s.slots)-spill {
		s.rebuild(s.n + more)
	}
}

// rebuild moves the words to slots for so many words, and those for which there was no room, where
// there is some now.
func (s *wordSet) rebuild(words int) {
	old, over := *s, s.over
	s.over = nil
	s.alloc(words)
	n, left := s.fill([]*wordSet{&old}, 0, s.places())
	s.n = n
	for _, x := range left {
		s.insert(x)
	}
	for x := range over {
		s.insert(x)
	}
}

// places is the number of places that hashes name: some slots follow the last.
func (s *wordSet) places() uint64 { return uint64(len(s.slots) - spill) }

// fill adds the words of other sets whose places are from lo to hi-1. It writes to slots of these
// places only, and those after the last, does not change n, and returns how many words are new, and
// those for which there is no room. What is read and what is written are neighbours, in all sets.
func (s *wordSet) fill(sets []*wordSet, lo, hi uint64) (n int, left []uint64) {
	slots, shift, end := s.slots, s.shift, hi
	if hi == s.places() {
		end = uint64(len(slots))
	}
	for _, f := range sets {
		i, last := lo<<shift>>f.shift, (hi<<shift-1)>>f.shift
		for ; i < uint64(len(f.slots)); i++ {
			x := f.slots[i]
			if x == 0 {
				if i > last {
					break // no word of these places is beyond
				}
				continue
			}
			at := hashOne(x) >> (shift & 63)
			if at < lo || at >= hi {
				continue
			}
			for at < end && slots[at] != 0 && slots[at] != x {
				at++
			}
			switch {
			case at == end:
				left = append(left, x)
			case slots[at] == 0:
				slots[at] = x
				n++
			}
		}
	}
	return n, left
}

// unite returns the union of sets, of which goroutines make ranges of places. It is the sets' words,
// inserted one by one.
func (x *execution) unite(sets []*wordSet) (*wordSet, error) {
	total := 0
	for _, f := range sets {
		total += f.len()
	}
	u := newWordSet(total)
	parts := uint64(1) << bits.Len(uint(4*x.opt.Workers-1))
	parts = min(parts, u.places()/spill)
	width := u.places() / parts // all are powers of two
	news, lefts := make([]int, parts), make([][]uint64, parts)
	if err := x.each(int(parts), func(p int) error {
		news[p], lefts[p] = u.fill(sets, uint64(p)*width, uint64(p+1)*width)
		return nil
	}); err != nil {
		return nil, err
	}
	for p := range news {
		u.n += news[p]
	}
	for _, left := range lefts {
		for _, x := range left {
			u.insert(x)
		}
	}
	for _, f := range sets {
		u.zero = u.zero || f.zero
		for x := range f.over {
			u.insert(x)
		}
	}
	return u, nil
}

// each calls f with every word.
func (s *wordSet) each(f func(x uint64)) {
	if s.zero {
		f(0)
	}
	for _, x := range s.slots {
		if x != 0 {
			f(x)
		}
	}
	for x := range s.over {
		f(x)
	}
}

func (s *wordSet) len() int { return s.n + int(b2i(s.zero)) + len(s.over) }

func (s *wordSet) bytes() int64 { return int64(len(s.slots))*8 + int64(len(s.over))*32 }
