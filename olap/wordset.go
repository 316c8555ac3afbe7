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

// rebuild moves the words to slots for so many words.
func (s *wordSet) rebuild(words int) {
	old := s.slots
	s.alloc(words)
	for _, x := range old {
		if x != 0 {
			s.insert(x)
		}
	}
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
