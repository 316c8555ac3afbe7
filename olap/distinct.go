package olap

import (
	"math/bits"
	"sync"

	"pgaccel/internal/processors"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// DISTINCT aggregates collect, for every accumulator, the set of pairs (group, value)
// that came; what is asked of the values (their number, sum, variance) is computed from
// the set at the end. The set is
//
//	a bitmap   group*domain + value - lo, where that is small against the rows: 12 months
//	           of a million users are 1.5 MB
//	a set of   group<<bits | value - lo, where both fit into 64 bits
//	words
//	a set of   pairs of two words, otherwise
//
// Sets of workers, and of finer groups, are joined by OR or by inserting one into the
// other in the order of their slots.

// distinct is the set of one accumulator in one worker's groups.
type distinct struct {
	lo     int64
	domain uint64 // values lo to lo+domain-1; 0 for 2^64
	width  uint   // bits of a value's distance from lo

	words  int      // of a group's bitmap; 0 where there is none
	bitmap []uint64 // words*groups
	set    *wordSet
	wide   *pairSet       // of group, value-lo
	listed []distinctPair // of a part (split): neither of them
	groups int
	keys   []uint64 // of a tile's rows
	index  []uint32 // their numbers, which nobody reads
	// Once asked for: the number of values of each group, and what they give others.
	mu     sync.Mutex
	counts []int64
	over   map[overKey]*state
}

// distinctPair is a value of a group.
type distinctPair struct {
	g uint32
	x uint64 // less lo
}

// overKey is what makes accumulators over the same set differ.
type overKey struct {
	kind accKind
	fold *sqlfn.Aggregate
}

const (
	// distinctShare bounds a bitmap for all groups by the number of rows: bits a row.
	distinctShare = 16
	// distinctBits bounds it whatever the rows: 64 MB.
	distinctBits = 1 << 29
	// distinctWords bounds the bitmap of a group where nobody knows how many there will
	// be.
	distinctWords = 4
)

func newDistinct(a *acc, x extent) *distinct {
	e := &distinct{lo: a.arg.lo, domain: uint64(a.arg.hi) - uint64(a.arg.lo) + 1}
	e.width = uint(bits.Len64(e.domain - 1))
	groupBits := uint(32)
	if x.groups > 0 {
		groupBits = uint(bits.Len64(x.groups - 1))
	}
	words := e.domain/64 + 1
	most := min(max(x.rows*distinctShare, 1<<13), distinctBits) / 64
	switch {
	case e.domain != 0 && (x.groups > 0 && words <= most/x.groups || words <= distinctWords):
		e.words = int(words)
	case groupBits+e.width <= 64:
		e.set = newWordSet(0)
	default:
		e.wide = newPairSet()
	}
	return e
}

func (e *distinct) grow(n int) {
	e.groups = n
	if need := n * e.words; need > len(e.bitmap) {
		e.bitmap = append(e.bitmap, make([]uint64, need-len(e.bitmap))...)
	}
}

func (e *distinct) bytes() int64 {
	n := int64(len(e.bitmap)+len(e.counts)) * 8
	if e.set != nil {
		n += e.set.bytes()
	}
	if e.wide != nil {
		n += e.wide.bytes()
	}
	return n
}

func (e *distinct) add(index []uint32, vals []int64) {
	e.counts, e.over = nil, nil
	switch {
	case e.words > 0 && index == nil:
		bitmap := e.bitmap
		for _, x := range vals {
			at := uint64(x) - uint64(e.lo)
			bitmap[at>>6] |= 1 << (at & 63)
		}
	case e.words > 0:
		bitmap, words := e.bitmap, uint64(e.words)
		vals = vals[:len(index)]
		for k, g := range index {
			at := uint64(vals[k]) - uint64(e.lo)
			bitmap[uint64(g)*words+at>>6] |= 1 << (at & 63)
		}
	case e.set != nil:
		if e.keys == nil {
			e.keys = make([]uint64, tileRows)
		}
		keys := e.keys[:len(vals)]
		for k, x := range vals {
			keys[k] = uint64(x) - uint64(e.lo)
		}
		for k, g := range index {
			keys[k] |= uint64(g) << e.width
		}
		e.set.addAll(unrepeated(keys))
	default:
		e.addWide(index, vals)
	}
}

// addWide is add to a table.
func (e *distinct) addWide(index []uint32, vals []int64) {
	if e.keys == nil {
		e.keys, e.index = make([]uint64, 2*tileRows), make([]uint32, tileRows)
	}
	// Of equal neighbours one is enough, as in unrepeated.
	keys := e.keys[:2*tileRows]
	at, lastG, lastX := -1, uint64(0), uint64(0)
	for k, x := range vals {
		g, x := uint64(0), uint64(x)-uint64(e.lo)
		if index != nil {
			g = uint64(index[k])
		}
		at += int(b2i((g^lastG)|(x^lastX) != 0) | b2i(at < 0))
		keys[2*at], keys[2*at+1] = g, x
		lastG, lastX = g, x
	}
	e.wide.insertAll(keys[:2*(at+1)], e.index[:at+1])
}

// unrepeated leaves one of equal neighbours, in place: rows often come in runs, as those of one
// visit or order do, and to pass over a word costs less than to look it up.
func unrepeated(keys []uint64) []uint64 {
	if len(keys) == 0 {
		return keys
	}
	at, last := 0, keys[0]
	for _, x := range keys {
		at += int(b2i(x != last))
		keys[at] = x
		last = x
	}
	return keys[:at+1]
}

// each calls f with every pair: group by group where there is a bitmap.
func (e *distinct) each(f func(g uint32, x int64)) {
	switch {
	case e.words > 0:
		for at, w := range e.bitmap {
			for ; w != 0; w &= w - 1 {
				f(uint32(at/e.words), int64(uint64(at%e.words*64+bits.TrailingZeros64(w))+uint64(e.lo)))
			}
		}
	case e.set != nil:
		e.set.each(func(key uint64) {
			g, x := e.unjoin(key)
			f(g, int64(x+uint64(e.lo)))
		})
	case e.wide != nil:
		e.wide.each(func(g, x uint64) { f(uint32(g), int64(x+uint64(e.lo))) })
	default:
		for _, p := range e.listed {
			f(p.g, int64(p.x+uint64(e.lo)))
		}
	}
}

// pairs is the number of pairs that split lists.
func (e *distinct) pairs() int64 {
	switch {
	case e.set != nil:
		return int64(e.set.len())
	case e.wide != nil:
		return int64(e.wide.most())
	}
	return 0
}

// pairBytes is about what split takes for a pair: 16, and room to grow.
const pairBytes = 28

// split returns the pairs of each part, to be merged: group g is in part[g], and is named by its
// place there, at[g]; sizes are the parts' groups. It is nil where a bitmap has the groups apart
// already.
func (e *distinct) split(part []uint16, at []uint32, sizes []int) []*distinct {
	if e.words > 0 {
		return nil
	}
	parts := make([]*distinct, len(sizes))
	for p, n := range sizes {
		parts[p] = &distinct{lo: e.lo, domain: e.domain, width: e.width, groups: n}
	}
	e.each(func(g uint32, x int64) {
		to := parts[part[g]]
		to.listed = append(to.listed, distinctPair{at[g], uint64(x) - uint64(e.lo)})
	})
	return parts
}

// unjoin returns the group and the value's distance from lo of a word.
func (e *distinct) unjoin(key uint64) (g uint32, x uint64) {
	if e.width == 64 {
		return 0, key
	}
	return uint32(key >> e.width), key & (1<<e.width - 1)
}

// noGroup marks groups that are not merged.
const noGroup = 1<<32 - 1

func (e *distinct) mergeAll(from extra, of, to []uint32) {
	f := from.(*distinct)
	e.counts, e.over = nil, nil
	if e.words > 0 && f.words > 0 {
		eachPair(of, to, func(j, i uint32) {
			src := f.bitmap[int(j)*f.words:][:f.words]
			dst := e.bitmap[int(i)*e.words:][:e.words]
			for k, w := range src {
				dst[k] |= w
			}
		})
		return
	}
	target := targets(f.groups, of, to)
	if e.set != nil && f.set != nil {
		e.set.reserve(min(f.set.len(), f.set.len()*len(to)/max(f.groups, 1)))
	} else if e.set != nil {
		e.set.reserve(len(f.listed))
	}
	var core processors.Turn
	n := 0
	f.each(func(g uint32, x int64) {
		if i := target[g]; i != noGroup {
			e.addOne(i, x)
		}
		if n++; n%turnGroups == 0 {
			core.Next()
		}
	})
}

// uniteDistinct moves all pairs to the first of the sets, which are over the same groups, by several
// goroutines where there are many pairs. Sets of different kinds stay as they are.
func (x *execution) uniteDistinct(list []*distinct) error {
	var sets []*wordSet
	var wide []*pairSet
	words, total := len(list[0].bitmap), 0
	for _, d := range list {
		switch {
		case d.set != nil:
			sets = append(sets, d.set)
			total += d.set.len()
		case d.wide != nil:
			wide = append(wide, d.wide)
			total += d.wide.most()
		default:
			words = min(words, len(d.bitmap))
			total += len(d.bitmap)
		}
	}
	if !x.opt.enough(total, parallelMerge+1) {
		return nil
	}
	first := list[0]
	var err error
	switch len(list) {
	case len(sets):
		first.set, err = x.unite(sets)
	case len(wide):
		first.wide, err = x.unitePairs(wide)
	case len(list) - len(sets) - len(wide):
		if len(first.bitmap) != words {
			return nil // others know of fewer groups
		}
		err = x.eachChunk(words, func(_, from, to int) error {
			for _, d := range list[1:] {
				for i, w := range d.bitmap[from:to] {
					first.bitmap[from+i] |= w
				}
			}
			return nil
		})
	default:
		return nil
	}
	if err != nil {
		return err
	}
	for i, d := range list {
		if d.counts, d.over = nil, nil; i > 0 {
			d.bitmap, d.words, d.wide, d.set = nil, 0, nil, newWordSet(0)
		}
	}
	return nil
}

// targets returns to[k] at of[k], or at k where of is nil; noGroup elsewhere.
func targets(groups int, of, to []uint32) []uint32 {
	t := make([]uint32, groups)
	for j := range t {
		t[j] = noGroup
	}
	eachPair(of, to, func(j, i uint32) { t[j] = i })
	return t
}

// addOne adds one value. It is the reference of add.
func (e *distinct) addOne(g uint32, x int64) {
	at := uint64(x) - uint64(e.lo)
	switch {
	case e.words > 0:
		e.bitmap[uint64(g)*uint64(e.words)+at>>6] |= 1 << (at & 63)
	case e.set != nil:
		e.set.insert(join(g, at, e.width))
	default:
		pair := [2]uint64{uint64(g), at}
		e.wide.insert(pair[:])
	}
}

// join is the inverse of unjoin.
func join(g uint32, x uint64, width uint) uint64 { return x | uint64(g)<<width }

// numbers returns the number of values of each group.
func (e *distinct) numbers() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts != nil {
		return e.counts
	}
	e.counts = make([]int64, e.groups)
	switch {
	case e.words > 0:
		for g := range e.counts {
			n := 0
			for _, w := range e.bitmap[g*e.words:][:e.words] {
				n += bits.OnesCount64(w)
			}
			e.counts[g] = int64(n)
		}
	case e.set != nil && e.groups == 1:
		e.counts[0] = int64(e.set.len())
	case e.set != nil:
		e.set.each(func(key uint64) {
			g, _ := e.unjoin(key)
			e.counts[g]++
		})
	default:
		e.wide.each(func(g, _ uint64) { e.counts[g]++ })
	}
	return e.counts
}

// stateOver returns what the values give an accumulator.
func (e *distinct) stateOver(a *acc) *state {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := overKey{a.kind, a.fold}
	if st := e.over[key]; st != nil {
		return st
	}
	st := &state{}
	st.open(a, extent{groups: uint64(e.groups)})
	st.grow(a, e.groups)
	index, vals := make([]uint32, 0, tileRows), make([]int64, 0, tileRows)
	flush := func() {
		st.add(a, index, vec{v: vals}, len(vals))
		index, vals = index[:0], vals[:0]
	}
	floats := a.window != nil // the set has their keys
	e.each(func(g uint32, x int64) {
		if floats {
			x = vector.FloatOfKey(x)
		}
		if index, vals = append(index, g), append(vals, x); len(vals) == tileRows {
			flush()
		}
	})
	flush()
	if e.over == nil {
		e.over = map[overKey]*state{}
	}
	e.over[key] = st
	return st
}
