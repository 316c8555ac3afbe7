package olap

import (
	"math"
	"slices"

	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// A lookup is made in three steps, each of which several goroutines do together:
//
//	rows      which of the child's rows can be met, and their keys
//	scatter   the keys go to partitions, by ranges of their places in the array or in the hash table
//	fill      who has a partition writes a part of the lookup that is its own
//
// The places of a partition lie side by side, so that they stay in the second-level cache while they
// are written. A lookup of few rows has one partition, which is the rows as they are.

const (
	// buildChunk is how many rows a goroutine takes at a time.
	buildChunk = 1 << 14
	// buildParted is the number of rows from which on there are several partitions.
	buildParted = 1 << 15
	// buildBytes is what a partition writes to, about; maxBuildParts bounds the partitions.
	buildBytes    = 256 << 10
	maxBuildParts = 256
)

// chunksOf is the number of chunks of n rows.
func chunksOf(n int) int { return (n + buildChunk - 1) / buildChunk }

// eachChunk calls f for all chunks of n rows, on as many goroutines as the query may have.
func (x *execution) eachChunk(n int, f func(chunk, from, to int) error) error {
	return x.eachSpan(n, buildChunk, f)
}

// eachSpan is eachChunk with chunks of size rows.
func (x *execution) eachSpan(n, size int, f func(span, from, to int) error) error {
	if n <= size {
		return f(0, 0, n)
	}
	return x.each((n+size-1)/size, func(c int) error {
		return f(c, c*size, min((c+1)*size, n))
	})
}

// prefixSums makes of counts, each one place behind its chunk, where the chunks begin.
func prefixSums(at []int) {
	for c := 1; c < len(at); c++ {
		at[c] += at[c-1]
	}
}

// chunksSideBySide is eachChunk of what does not fail.
func (x *execution) chunksSideBySide(n int, f func(chunk, from, to int)) {
	_ = x.eachChunk(n, func(c, from, to int) error { f(c, from, to); return nil })
}

// ascending returns 0 to n-1.
func (x *execution) ascending(n int) []uint32 {
	list := unset[uint32](n)
	x.chunksSideBySide(n, func(_, from, to int) {
		for i := from; i < to; i++ {
			list[i] = uint32(i)
		}
	})
	return list
}

// lookupMaker makes the lookup of a probe.
type lookupMaker struct {
	x *execution
	b *probe
	l *lookup
	// key has the keys of the rows that can be met, row says which they are, and entry what is found
	// by each key. nil rows are all of them, nil entries their numbers here.
	key        []int64
	row        []uint32
	entry      []uint32
	outer      int64 // rows of the table that is joined to, where the processor scans it
	deviceHash bool  // a device may make the hash table
}

// makeLookup builds the lookup of probe b from its child's rows. The outer keys
// are compiled by now.
func (p *pipeline) makeLookup(b *probe) error {
	l := b.lut
	l.left = b.join.Kind == plan.Left
	if b.marked != nil {
		l.share = b.shareOf(b.rows.from)
		return b.marked.lookup(b)
	}
	m := &lookupMaker{x: p.x, b: b, l: l}
	if p.device {
		m.deviceHash = p.x.q.Grouped && b.known == nil
	} else {
		m.outer = p.tab.Rows
	}
	if err := m.rows(); err != nil {
		return err
	}
	l.keys = len(m.key)
	if err := m.outputs(); err != nil {
		return err
	}
	if b.many {
		if err := m.gather(); err != nil {
			return err
		}
	}
	if err := m.layOut(b.key.lo, b.key.hi); err != nil {
		return err
	}
	l.share = b.shareOf(max(l.keys, b.rows.from))
	return nil
}

// shareOf estimates the rows that find a partner, by how many of the child's rows may be one.
func (b *probe) shareOf(kept int) float64 {
	if rows := b.child.tab.Rows; rows > 0 && b.join.Kind != plan.Left {
		return float64(kept) / float64(rows)
	}
	return 1
}

// rows finds the rows that can be met: all of whose keys are values that the outer ones may have.
func (m *lookupMaker) rows() error {
	b := m.b
	n := b.rows.n
	if n == 0 {
		return nil
	}
	keys := make([]vec, len(b.join.Key))
	copy(keys, b.rows.cols)
	for i, o := range b.outer {
		value := o
		if o.kind == nodeNumber {
			value = o.args[0]
		}
		to, err := keyMap(value, b.child.collected[i])
		if err != nil {
			return err
		}
		if to != nil {
			if keys[i], err = to(keys[i]); err != nil {
				return err
			}
		}
		if value != o {
			keys[i] = o.numbers.number(keys[i])
		}
	}
	met := func(i int) bool {
		for k, o := range b.outer {
			if v := keys[k].v[i]; v < o.lo || v > o.hi || keys[k].nulls != nil && keys[k].nulls[i] != 0 {
				return false
			}
		}
		return true
	}
	at := make([]int, chunksOf(n)+1) // by chunk: where its rows begin
	if err := m.x.eachChunk(n, func(c, from, to int) error {
		for i := from; i < to; i++ {
			at[c+1] += int(b2i(met(i)))
		}
		return nil
	}); err != nil {
		return err
	}
	prefixSums(at)
	kept := at[len(at)-1]
	if kept == n && len(keys) == 1 {
		m.key = keys[0].v[:n]
		return nil
	}
	m.key = unset[int64](kept)
	if kept < n {
		m.row = unset[uint32](kept)
	}
	return m.x.eachChunk(n, func(c, from, to int) error {
		at := at[c]
		for i := from; i < to; i++ {
			if kept < n {
				if !met(i) {
					continue
				}
				m.row[at] = uint32(i)
			}
			if len(keys) == 1 {
				m.key[at] = keys[0].v[i]
			} else {
				key := int64(0)
				for k, o := range b.outer {
					key += (keys[k].v[i] - o.lo) * b.strides[k]
				}
				m.key[at] = key
			}
			at++
		}
		return nil
	})
}

// outputs makes the entries: all rows kept, or the distinct outputs among them.
func (m *lookupMaker) outputs() error {
	b, l := m.b, m.l
	nk := len(b.join.Key)
	outs, rep := b.rows.cols[nk:], m.row
	n := len(m.key)
	if b.dedupe {
		d := newPacker()
		for i := range outs {
			d.add(b.child.collected[nk+i], 0)
		}
		m.entry, rep = d.distinctOf(m.x, outs, m.row, n)
		n = len(rep)
	}
	l.rows = n
	if l.left {
		l.Null = uint32(l.rows)
		l.rows++
	}
	for i := range outs {
		in := b.child.collected[nk+i]
		o := lookupOut{lo: in.lo, hi: in.hi, t: in.t, dict: in.dict, risky: in.risky}
		if n > 0 && rep == nil && !b.dedupe && !l.left { // they stand there already
			o.OutData = program.OutData{Values: outs[i].v[:n], Nulls: outs[i].nulls}
		} else {
			o.Values = unset[int64](max(l.rows, 1))
			if outs[i].nulls != nil {
				o.Nulls = unset[uint8](max(l.rows, 1))
				o.Nulls[0] = 0
			} else if l.left {
				o.Nulls = make([]uint8, max(l.rows, 1))
			}
			o.Values[0] = in.lo
			if err := m.x.eachChunk(n, func(_, from, to int) error {
				for e := from; e < to; e++ {
					r := uint32(e)
					if rep != nil {
						r = rep[e]
					}
					o.Values[e] = outs[i].v[r]
					if outs[i].nulls != nil {
						o.Nulls[e] = outs[i].nulls[r]
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if l.left {
			if err := b.nullRow(i, in, &o, l.Null); err != nil {
				return err
			}
		}
		l.outs = append(l.outs, o)
		l.bytes += int64(9 * l.rows)
	}
	return nil
}

// span returns the least and the greatest key.
func (m *lookupMaker) span() (lo, hi int64, err error) {
	n := len(m.key)
	los, his := make([]int64, max(chunksOf(n), 1)), make([]int64, max(chunksOf(n), 1))
	err = m.x.eachChunk(n, func(c, from, to int) error {
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for _, v := range m.key[from:to] {
			lo, hi = min(lo, v), max(hi, v)
		}
		los[c], his[c] = lo, hi
		return nil
	})
	lo, hi = los[0], his[0]
	for c := range los {
		lo, hi = min(lo, los[c]), max(hi, his[c])
	}
	return lo, hi, err
}

// layOut arranges the entries by the keys, which are distinct, but for joins for existence. lo and
// hi bound the outer keys.
func (m *lookupMaker) layOut(lo, hi int64) (err error) {
	l, n := m.l, len(m.key)
	if l.keyLo, l.keyHi, err = m.span(); err != nil {
		return err
	}
	// The array covers the outer keys where that is not much more than the keys
	// there are: then no key needs a check.
	size, ok := width(lo, hi)
	if n == 0 {
		l.keyLo, l.keyHi = lo, lo-1
		if lo == math.MinInt64 {
			l.keyLo, l.keyHi = lo+1, lo
		}
		if size > 1 || !ok {
			hi, size, ok = lo, 1, true
			l.wide = true
		}
	} else if span, fits := width(l.keyLo, l.keyHi); !ok || size > max(lookupDense, 4*span) {
		l.wide = true
		lo, size, ok = l.keyLo, span, fits
	}
	l.Lo, l.Size = lo, size
	if n > 0 && n <= lookupFew && !l.left {
		l.few = slices.Sorted(slices.Values(m.key))
	}
	fresh := true
	switch {
	case len(l.outs) == 0 && !l.left && l.many == nil && ok && m.worthBits(size, n):
		l.kind = program.LookupBits
		l.rows = 1
		fresh, err = m.fillBits()
	case !ok || size > max(lookupArray, lookupSpread*int64(n)),
		m.x.opt.Eager && n%2 == 0 && m.hashOnDevice(): // of these arrays are tried, too
		l.kind = program.LookupHash
		l.Lo, l.Size = 0, 0
		if m.hashOnDevice() {
			if fresh, err = m.distinct(); err != nil || fresh {
				l.Keys, l.Entries = m.key, m.entry
				l.bytes += int64(12 * n)
				break
			}
		}
		if fresh, err = m.fillHash(); err == nil && fresh && !l.left {
			err = m.hashSet()
		}
	default:
		entries := l.rows
		if l.many != nil {
			entries = n
		}
		switch l.kind = entryKind(entries); l.kind {
		case program.Lookup8:
			l.E8, fresh, err = fillArray[uint8](m)
		case program.Lookup16:
			l.E16, fresh, err = fillArray[uint16](m)
		default:
			l.E32, fresh, err = fillArray[uint32](m)
		}
	}
	if err == nil && !fresh && !m.b.join.Exists {
		err = forward(plan.ReasonShape, "join key is not unique")
	}
	return err
}

// worthBits reports whether n keys are better looked for in a bitmap of size places than in a hash
// table: it is not much larger than that would be, and rows that lie in the order of their keys, as the
// lines of an order do, read it from front to back. Where the processor looks for few keys in a table of as many rows as the
// bitmap has places it is worth some megabytes: to clear them takes less than a hundredth of what the rows do.
func (m *lookupMaker) worthBits(size int64, n int) bool {
	return size <= lookupBitsMax && size <= max(64*lookupDense, lookupBitsSpread*int64(n)) || size <= min(m.outer, 8*keptBytes)
}

// deviceHashKeys is the number of keys from which on a device makes a hash table. Tests make it small.
var deviceHashKeys = 1 << 14

// deviceHashBits bounds the bitmap that tells whether the keys are distinct.
const deviceHashBits = 1 << 28

// hashOnDevice reports whether a device makes the hash table, in a query for groups, which either it computes or the processor
// (makeHashes): a table of some megabytes takes longer to be made here, and to be brought, than all that the device does.
func (m *lookupMaker) hashOnDevice() bool {
	size, ok := width(m.l.keyLo, m.l.keyHi)
	return m.deviceHash && m.l.many == nil && ok && size <= min(deviceHashBits, lookupBitsSpread*int64(len(m.key))) && m.x.opt.enough(len(m.key), deviceHashKeys)
}

// makeHashes makes the hash tables that a device would have made, which does not compute the query after all.
func (p *pipeline) makeHashes() error {
	for _, b := range p.probes {
		l := b.lut
		if l.Keys == nil {
			continue
		}
		m := &lookupMaker{x: p.x, b: b, l: l, key: l.Keys, entry: l.Entries, outer: p.tab.Rows}
		bytes, taken := l.bytes, b.taken
		_, err := m.fillHash()
		if err == nil && !l.left {
			err = m.hashSet()
		}
		if err == nil {
			err = p.x.take(l.bytes - bytes - (b.taken - taken))
		}
		if err != nil {
			return err
		}
		l.Keys, l.Entries = nil, nil
	}
	return nil
}

// distinct reports whether no key occurs twice.
func (m *lookupMaker) distinct() (bool, error) {
	lo := m.l.keyLo
	size := m.l.keyHi - lo + 1
	bytes := (size + 63) / 64 * 8
	if err := m.x.take(bytes); err != nil {
		return false, err
	}
	defer m.x.give(bytes)
	return m.keySet(new(compress.Set), lo, size)
}

// hashSet makes the set of a hash table's keys, where they lie in so narrow a range. Most rows that
// have no partner never come to the table then.
func (m *lookupMaker) hashSet() error {
	l := m.l
	size, ok := width(l.keyLo, l.keyHi)
	if !ok || !m.worthBits(size, len(m.key)) {
		return nil
	}
	l.bytes += size / 8
	_, err := m.keySet(&l.set, l.keyLo, size)
	return err
}
