package olap

import (
	"math"
	"math/bits"
	"sync/atomic"

	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/internal/simd"
)

// placing says where a key belongs: its distance from lo or, in a hash table, its slot while that is
// free. Places with the same upper bits are a partition.
type placing struct {
	lo    int64
	mask  uint64 // of the hash; 0: distances
	shift uint
	parts int
}

// of returns the partition of a key.
func (p *placing) of(key int64) int {
	if p.mask != 0 {
		return int(program.HashOf(uint64(key)) & p.mask >> p.shift)
	}
	return int(uint64(key-p.lo) >> p.shift)
}

// places returns the placing of keys in so many places from lo on, of so many bytes together.
// Partitions begin with a word of a bitmap.
func (m *lookupMaker) places(lo, size, bytes int64) placing {
	p := placing{lo: lo, shift: 63, parts: 1}
	if !m.x.opt.enough(len(m.key), buildParted) {
		return p
	}
	want := min(max(int(bytes/buildBytes), 1), maxBuildParts)
	if m.x.opt.Workers > 1 {
		want = max(want, min(4*m.x.opt.Workers, maxBuildParts))
	}
	p.shift = uint(max(bits.Len64(uint64(size-1))-bits.Len(uint(want-1)), 6))
	p.parts = int(uint64(size-1)>>p.shift) + 1
	return p
}

// within returns the places of a partition.
func (p *placing) within(part int, size int64) (from, to int64) {
	if p.parts == 1 {
		return 0, size
	}
	return int64(part) << p.shift, min(int64(part+1)<<p.shift, size)
}

// scattered are keys by partition: those of partition p are from[p] to from[p+1]. entry is as
// lookupMaker.entry.
type scattered struct {
	key   []int64
	entry []uint32
	from  []int
	taken int64
}

// scatter brings the keys to their partitions, in which they stay in order.
func (m *lookupMaker) scatter(p placing) (s scattered, err error) {
	n := len(m.key)
	if p.parts == 1 {
		return scattered{key: m.key, entry: m.entry, from: []int{0, n}}, nil
	}
	s.taken = int64(n) * 12
	if err := m.x.take(s.taken); err != nil {
		return s, err
	}
	s.key, s.entry = unset[int64](n), unset[uint32](n)
	at := make([][]int, max(chunksOf(n), 1)) // by chunk and partition: rows, then where they go
	if err := m.x.eachChunk(n, func(c, from, to int) error {
		counts := make([]int, p.parts)
		for _, k := range m.key[from:to] {
			counts[p.of(k)]++
		}
		at[c] = counts
		return nil
	}); err != nil {
		return s, err
	}
	s.from = placesOf(at, p.parts)
	return s, m.x.eachChunk(n, func(c, from, to int) error {
		at := at[c]
		for i := from; i < to; i++ {
			k := m.key[i]
			part := p.of(k)
			to := at[part]
			at[part]++
			s.key[to], s.entry[to] = k, uint32(i)
			if m.entry != nil {
				s.entry[to] = m.entry[i]
			}
		}
		return nil
	})
}

// fill scatters the keys and calls f for each partition, with its places; nil entries are the keys'
// numbers. It returns whether all calls returned true.
func (m *lookupMaker) fill(p placing, size int64, f func(keys []int64, entries []uint32, from, to int64) bool) (bool, error) {
	s, err := m.scatter(p)
	defer m.x.give(s.taken)
	if err != nil {
		return false, err
	}
	var twice atomic.Bool
	err = m.x.each(p.parts, func(part int) error {
		first, last := s.from[part], s.from[part+1]
		entries := s.entry
		if entries != nil {
			entries = entries[first:last]
		}
		from, to := p.within(part, size)
		if !f(s.key[first:last], entries, from, to) {
			twice.Store(true)
		}
		return nil
	})
	return !twice.Load(), err
}

// placesOf makes places of the numbers of rows by chunk and partition: where those of a chunk go, behind all before it and all of the
// partitions before. It returns where each partition begins, and the end.
func placesOf(at [][]int, parts int) (from []int) {
	from, sum := make([]int, parts+1), 0
	for part := range parts {
		from[part] = sum
		for c := range at {
			at[c][part], sum = sum, sum+at[c][part]
		}
	}
	from[parts] = sum
	return from
}

// setBits makes the places from..to-1 of a set, which begin with a word, and are all of it or end with one: those of the
// keys; false where one occurs twice.
func setBits(set []uint64, lo int64, keys []int64, from, to int64) (fresh bool) {
	clear(set[from/64 : (to+63)/64])
	twice := uint64(0)
	for _, k := range keys {
		at := uint64(k - lo)
		w := &set[at>>6]
		twice |= *w >> (at & 63) & 1
		*w |= 1 << (at & 63)
	}
	return twice == 0
}

// fillBits makes a bitmap of the keys; false where one occurs twice.
func (m *lookupMaker) fillBits() (bool, error) {
	l := m.l
	l.bytes += l.Size / 8
	fresh, err := m.keySet(&l.set, l.Lo, l.Size)
	l.Bits = l.set.Bits
	return fresh, err
}

// keySet makes the set of the keys, which are within size places from lo on; false where one occurs twice.
func (m *lookupMaker) keySet(set *compress.Set, lo, size int64) (bool, error) {
	*set = compress.Set{Lo: lo, Size: size, Bits: unsetBits(size)}
	return m.fill(m.places(lo, size, size/8), size, func(keys []int64, _ []uint32, from, to int64) bool {
		return setBits(set.Bits, lo, keys, from, to)
	})
}

// fillArray writes entries at their keys' places; false where a key occurs twice. Without a partner
// stands none for a left join, else the largest value.
func fillArray[T uint8 | uint16 | uint32](m *lookupMaker) ([]T, bool, error) {
	l := m.l
	width := l.kind.EntryBytes()
	absent := ^T(0)
	if l.left {
		absent = T(l.Null)
	}
	l.Null = uint32(absent)
	if err := m.b.take(l.Size * width); err != nil {
		return nil, false, err
	}
	l.bytes += l.Size * width
	e := unset[T](int(l.Size + simd.EntryRoom))[:l.Size]
	if !l.left {
		l.set = compress.Set{Lo: l.Lo, Size: l.Size, Bits: unsetBits(l.Size)}
		l.bytes += l.Size / 8
	}
	fresh, err := m.fill(m.places(l.Lo, l.Size, l.Size*width), l.Size, func(keys []int64, entries []uint32, from, to int64) bool {
		fill(e[from:to], absent)
		fresh := true
		for i, k := range keys {
			at := k - l.Lo
			fresh = fresh && e[at] == absent
			if e[at] = T(i); entries != nil {
				e[at] = T(entries[i])
			}
		}
		if !l.left {
			setBits(l.set.Bits, l.Lo, keys, from, to)
		}
		return fresh
	})
	return e, fresh, err
}

// fillHash makes a hash table of the keys; false where one occurs twice. A key for which a partition
// has no room after its home slot is put where it belongs at the end.
func (m *lookupMaker) fillHash() (bool, error) {
	l := m.l
	slots := int64(program.HashSlots(len(m.key)))
	if err := m.b.take(12 * slots); err != nil {
		return false, err
	}
	l.HashKeys, l.HashEntries = unset[int64](int(slots)), unset[uint32](int(slots))
	l.bytes += 12 * slots
	p := m.places(0, slots, 12*slots)
	p.mask = uint64(slots - 1)
	type late struct {
		key   int64
		entry uint32
	}
	lates := make([][]late, p.parts)
	fresh, err := m.fill(p, slots, func(keys []int64, entries []uint32, from, to int64) bool {
		fill(l.HashEntries[from:to], math.MaxUint32)
		fresh := true
		part := int(from >> p.shift)
	keys:
		for i, k := range keys {
			entry := uint32(i)
			if entries != nil {
				entry = entries[i]
			}
			for at := int64(program.HashOf(uint64(k)) & p.mask); at < to; at++ {
				switch {
				case l.HashEntries[at] == math.MaxUint32:
					l.HashKeys[at], l.HashEntries[at] = k, entry
					continue keys
				case l.HashKeys[at] == k:
					fresh = false
					continue keys
				}
			}
			lates[part] = append(lates[part], late{k, entry})
		}
		return fresh
	})
	if err != nil {
		return false, err
	}
	for _, list := range lates {
		for _, x := range list {
			if !l.Put(x.key, x.entry) {
				fresh = false
			}
		}
	}
	return fresh, nil
}
