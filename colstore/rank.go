package colstore

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
)

// ranking is the order of a dictionary's strings in the column's collation, shared by
// all versions.
type ranking struct {
	// memcmp says that the order is that of the bytes, known without the server;
	// padded that trailing blanks count for nothing (char(n)).
	memcmp, padded bool

	mu sync.Mutex
	// ranks of the first codes, dense; a slice once stored is never written again.
	ranks []int32
}

// Ranks returns the rank of each code in the column's collation: a's string sorts
// before b's where Ranks()[a] < Ranks()[b]. Ranks are not negative, and have gaps
// where later versions have strings in between. It is nil where the order is not
// known; for C collations it always is.
func (d *Dict) Ranks() []int32 {
	k := &d.source.ranking
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.ranks) < d.n || k.ranks == nil {
		if !k.memcmp {
			return nil
		}
		k.extend(d)
	}
	return k.ranks[:d.n:d.n]
}

// SetRanks sets the ranks of the version's strings. It takes over the slice, of Len
// ranks.
func (d *Dict) SetRanks(ranks []int32) {
	if len(ranks) != d.n {
		panic("BUG: as many ranks as strings are needed")
	}
	if ranks == nil {
		ranks = []int32{}
	}
	k := &d.source.ranking
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ranks == nil || len(ranks) >= len(k.ranks) {
		k.ranks = ranks
	}
}

// compare orders two strings of d.
func (k *ranking) compare(d *Dict, a, b uint32) int {
	return compareStrings(d.bytes(a), d.bytes(b), k.padded)
}

// extend ranks the codes that have none yet: it sorts those alone and merges them
// into the order of the others.
func (k *ranking) extend(d *Dict) {
	if k.ranks == nil && d.base != nil { // its codes are in order
		k.ranks = identity(d.first)
	}
	old := len(k.ranks)
	switch old {
	case 0:
		k.ranks = k.bytewise(d)
		return
	case d.n:
		return
	}
	keys := k.sorted(d, old)
	order := make([]uint32, old)
	for code, rank := range k.ranks {
		order[rank] = uint32(code)
	}
	ranks := make([]int32, d.n)
	next := int32(0)
	// Where new strings go is found by bisection: they are few, as a rule.
	for _, n := range keys {
		i, _ := slices.BinarySearchFunc(order, n.code, func(o, code uint32) int { return k.compare(d, o, code) })
		for _, code := range order[:i] {
			ranks[code] = next
			next++
		}
		order = order[i:]
		ranks[n.code] = next
		next++
	}
	for _, code := range order {
		ranks[code] = next
		next++
	}
	k.ranks = ranks
}

// sortKey is a string to be sorted: eight bytes behind what all begin with decide most
// comparisons without a look at the strings.
type sortKey struct {
	prefix uint64
	code   uint32
}

// sorted returns the codes from first on, which are not packed, in order.
func (k *ranking) sorted(d *Dict, first int) []sortKey {
	trimmed := func(i int) []byte {
		s := d.bytes(uint32(first + i))
		if k.padded {
			s = bytes.TrimRight(s, " ")
		}
		return s
	}
	keys := make([]sortKey, d.n-first)
	common := commonPrefix(len(keys), trimmed)
	inRanges(len(keys), func(from, to int) {
		for i := from; i < to; i++ {
			keys[i] = sortKey{prefixOf(trimmed(i)[common:]), uint32(first + i)}
		}
	})
	sortParallel(keys, func(a, b sortKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return k.compare(d, a.code, b.code)
	})
	return keys
}

// bytewise returns the ranks of a dictionary of which nothing is packed.
func (k *ranking) bytewise(d *Dict) []int32 {
	keys := k.sorted(d, 0)
	ranks := make([]int32, d.n)
	inRanges(len(keys), func(from, to int) {
		for i := from; i < to; i++ {
			ranks[keys[i].code] = int32(i)
		}
	})
	return ranks
}

// identity returns the ranks of n codes that are in order.
func identity(n int) []int32 {
	ranks := make([]int32, n)
	for i := range ranks {
		ranks[i] = int32(i)
	}
	return ranks
}

// eager ranks a finished copy's dictionary.
func (k *ranking) eager(d *Dict) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ranks == nil {
		k.extend(d)
	}
}
