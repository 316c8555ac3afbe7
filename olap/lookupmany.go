package olap

import "slices"

// The lookup of a join on no unique key: partners by the number of their key (fanout.go).

// gather brings the entries of equal keys together and leaves each key once, by which its number is
// found (fanout.go).
func (m *lookupMaker) gather() error {
	l, n := m.l, len(m.key)
	lo, hi, err := m.span()
	if err != nil {
		return err
	}
	// Keys that lie close together are counted in an array, others in hash tables.
	size, ok := width(lo, hi)
	direct := n > 0 && ok && size <= max(lookupDense, lookupSpread*int64(n))
	p := placing{parts: 1}
	switch {
	case direct:
		p = m.places(lo, size, 8*size)
	case m.x.opt.enough(n, buildParted):
		p = placing{mask: maxBuildParts - 1, parts: maxBuildParts}
	}
	s, err := m.scatter(p)
	defer m.x.give(s.taken)
	if err != nil {
		return err
	}
	many := &partners{entry: unset[uint32](n + 1)[:n]}
	// By partition: its keys, and how many partners each has.
	keys, counts := make([][]int64, p.parts), make([][]uint32, p.parts)
	if err := m.x.each(p.parts, func(part int) error {
		from, to := s.from[part], s.from[part+1]
		of := make([]uint32, to-from) // the key's number in the partition
		if direct {
			first, last := p.within(part, size)
			keys[part], counts[part] = numberDirect(s.key[from:to], lo+first, int(last-first), of)
		} else {
			keys[part], counts[part] = numberHashed(s.key[from:to], of)
		}
		at := make([]uint32, len(counts[part]))
		sum := uint32(from)
		for g, c := range counts[part] {
			at[g], sum = sum, sum+c
		}
		for i, g := range of {
			e := uint32(from + i)
			if s.entry != nil {
				e = s.entry[from+i]
			}
			many.entry[at[g]] = e
			at[g]++
		}
		return nil
	}); err != nil {
		return err
	}
	m.row, m.entry = nil, nil
	at := make([]int, p.parts+1) // by partition: where its keys go
	for part := range keys {
		at[part+1] = at[part] + len(keys[part])
	}
	m.key = unset[int64](at[p.parts])
	many.first = unset[uint32](len(m.key) + 2)[:len(m.key)+1]
	most := make([]uint32, p.parts)
	if err := m.x.each(p.parts, func(part int) error {
		copy(m.key[at[part]:], keys[part])
		first, sum := many.first[at[part]:], uint32(s.from[part])
		for g, c := range counts[part] {
			first[g], sum = sum, sum+c
			most[part] = max(most[part], c)
		}
		return nil
	}); err != nil {
		return err
	}
	sum := uint32(n)
	many.first[len(m.key)] = sum
	many.most = slices.Max(most)
	if l.left {
		// Who has no partner meets one: the row of nulls.
		many.first = append(many.first, sum+1)
		many.entry = append(many.entry, l.Null)
		many.most = max(many.most, 1)
		l.Null = uint32(len(many.first) - 2)
	}
	l.many = many
	l.bytes += int64(len(many.first)+len(many.entry)) * 4
	return nil
}

// numberDirect numbers the distinct keys, which lie within size places from lo on, in ascending
// order: each key's number goes to of. It returns them and how often each occurs.
func numberDirect(key []int64, lo int64, size int, of []uint32) (keys []int64, counts []uint32) {
	numbers := make([]uint32, size) // how often it occurs, then its number
	for _, k := range key {
		numbers[k-lo]++
	}
	distinct := 0
	for _, c := range numbers {
		distinct += int(b2i(c > 0))
	}
	keys, counts = make([]int64, 0, distinct), make([]uint32, 0, distinct)
	for i, c := range numbers {
		if c > 0 {
			numbers[i] = uint32(len(keys))
			keys, counts = append(keys, lo+int64(i)), append(counts, c)
		}
	}
	for i, k := range key {
		of[i] = numbers[k-lo]
	}
	return keys, counts
}

// numberHashed is numberDirect of keys that lie anywhere, in the order in which they come.
func numberHashed(key []int64, of []uint32) (keys []int64, counts []uint32) {
	t := newWordTable(1, min(len(key), 1<<12))
	for i, k := range key {
		g, fresh := t.insert([]uint64{uint64(k)})
		if fresh {
			keys, counts = append(keys, k), append(counts, 0)
		}
		of[i] = g
		counts[g]++
	}
	return keys, counts
}
