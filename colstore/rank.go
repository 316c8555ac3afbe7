package colstore

import (
	"bytes"
	"encoding/binary"
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
	x, y := d.bytes(a), d.bytes(b)
	if k.padded {
		if c := bytes.Compare(bytes.TrimRight(x, " "), bytes.TrimRight(y, " ")); c != 0 {
			return c
		}
	}
	return bytes.Compare(x, y)
}

// extend ranks the codes that have none yet: it sorts those alone and merges them
// into the order of the others.
func (k *ranking) extend(d *Dict) {
	// Eight bytes behind what all begin with decide most comparisons without a look at
	// the strings.
	type key struct {
		prefix uint64
		code   uint32
	}
	old := len(k.ranks)
	trimmed := func(i int) []byte {
		s := d.bytes(uint32(old + i))
		if k.padded {
			s = bytes.TrimRight(s, " ")
		}
		return s
	}
	keys := make([]key, d.n-old)
	common := commonPrefix(len(keys), trimmed)
	inRanges(len(keys), func(from, to int) {
		for i := from; i < to; i++ {
			var first [8]byte
			copy(first[:], trimmed(i)[common:])
			keys[i] = key{binary.BigEndian.Uint64(first[:]), uint32(old + i)}
		}
	})
	sortParallel(keys, func(a, b key) int {
		if a.prefix != b.prefix {
			if a.prefix < b.prefix {
				return -1
			}
			return 1
		}
		return k.compare(d, a.code, b.code)
	})
	if old == 0 {
		ranks := make([]int32, d.n)
		inRanges(len(keys), func(from, to int) {
			for i := from; i < to; i++ {
				ranks[keys[i].code] = int32(i)
			}
		})
		k.ranks = ranks
		return
	}
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

// eager ranks a finished copy's dictionary.
func (k *ranking) eager(d *Dict) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ranks == nil {
		k.extend(d)
	}
}
