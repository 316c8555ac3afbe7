package olap

import (
	"math"

	"pgaccel/compress"
	"pgaccel/gpu/program"
	"pgaccel/internal/simd"
	"pgaccel/plan"
	"pgaccel/vector"
)

// lookup maps keys to entries: the rows of a joined table that can be partners,
// or, where only their values as group keys matter, the distinct ones of these.
// For a left join the entry after the last holds nulls, Null, and is met where there is
// no partner.
type lookup struct {
	kind program.LookupKind
	program.LookupData
	left  bool
	rows  int // entries, the null entry included
	outs  []lookupOut
	keyLo int64 // the keys that occur
	keyHi int64
	keys  int     // rows with a key
	share float64 // estimated share of rows that find a partner
	bytes int64
	wide  bool // size bounds have to be checked: keys outside occur
	// many has the entries where a key need not be unique; what is found by key then
	// is its number there.
	many *partners
	// set holds the keys that have a partner; it has no size for a left join and for a
	// hash table. A filter by it is a pass over a bitmap, which stays in a nearer cache
	// than the entries do.
	set compress.Set
}

// lookupOut is one output: values by entry.
type lookupOut struct {
	program.OutData
	lo, hi int64
	t      vector.Type
	dict   *dict
	risky  bool // it could have failed for rows that were not kept
}

const (
	// lookupBitsMax bounds the keys of a bitmap, lookupSpread the empty places of an
	// array for each row. An array of up to lookupArray places is better than a hash
	// table however empty it is: it stays in the second-level cache.
	lookupBitsMax = 1 << 26
	lookupSpread  = 16
	lookupDense   = 1 << 16
	lookupArray   = 1 << 21
)

// makeLookup builds the lookup of probe b from its child's rows. The outer keys
// are compiled by now.
func (p *pipeline) makeLookup(b *probe) error {
	l := b.lut
	l.left = b.join.Kind == plan.Left
	nk := len(b.join.Key)
	keys := make([]vec, nk)
	copy(keys, b.rows.cols[:nk])
	n := b.rows.n
	for i, o := range b.outer {
		in := b.child.collected[i]
		to, err := keyMap(o, in)
		if err != nil {
			return err
		}
		if to != nil {
			if keys[i], err = to(keys[i]); err != nil {
				return err
			}
		}
	}
	var key []int64
	keep := make([]uint32, 0, n)
	if nk == 1 {
		key = keys[0].v
		for i, v := range key {
			if (keys[0].nulls == nil || keys[0].nulls[i] == 0) && v >= b.outer[0].lo && v <= b.outer[0].hi {
				keep = append(keep, uint32(i))
			}
		}
	} else {
		key = make([]int64, n)
	rows:
		for i := range key {
			for j, o := range b.outer {
				v := keys[j].v[i]
				if keys[j].nulls != nil && keys[j].nulls[i] != 0 || v < o.lo || v > o.hi {
					continue rows
				}
				key[i] += (v - o.lo) * b.strides[j]
			}
			keep = append(keep, uint32(i))
		}
	}
	if err := l.fill(b, key, keep, b.key.lo, b.key.hi); err != nil {
		return err
	}
	l.share = 1
	if b.child.tab.Rows > 0 {
		l.share = float64(len(keep)) / float64(b.child.tab.Rows)
	}
	if l.left {
		l.share = 1
	}
	return nil
}

// keyMap returns how a child's key values become comparable with the outer
// node's, nil where they are.
func keyMap(o, in *node) (func(vec) (vec, error), error) {
	var f func(int64) int64
	switch {
	case o.t.Varying() || in.t.Varying():
		return nil, forward(plan.ReasonType, "join by numerics of varying scale")
	case o.dict != nil && in.dict != nil:
		if (o.t.Kind == vector.BPChar) != (in.t.Kind == vector.BPChar) {
			return nil, forward(plan.ReasonType, "join of unlike types")
		}
		if o.dict.grows() {
			return internedKey(o, in)
		}
		if sameDict(o.dict, in.dict) {
			return nil, nil
		}
		to := translation(in.dict, o.dict)
		f = func(v int64) int64 { return to[v] }
	case o.dict != nil || in.dict != nil, (o.kind == nodeFloatKey) != in.t.Kind.IsFloat(),
		(o.t.Kind == vector.Numeric) != (in.t.Kind == vector.Numeric), o.t.Kind == vector.Numeric && o.t.Scale != in.t.Scale:
		return nil, forward(plan.ReasonType, "join of unlike types")
	case o.kind == nodeFloatKey:
		f = vector.FloatKey
	default:
		return nil, nil
	}
	return func(a vec) (vec, error) {
		r := vec{v: make([]int64, len(a.v)), nulls: a.nulls}
		for i, v := range a.v {
			if a.nulls == nil || a.nulls[i] == 0 {
				r.v[i] = f(v)
			}
		}
		return r, nil
	}, nil
}

// fill lays the lookup out over the keys of the rows keep. lo and hi bound the
// outer keys.
func (l *lookup) fill(b *probe, key []int64, keep []uint32, lo, hi int64) error {
	l.keys = len(keep)
	l.keyLo, l.keyHi = math.MaxInt64, math.MinInt64
	for _, i := range keep {
		l.keyLo, l.keyHi = min(l.keyLo, key[i]), max(l.keyHi, key[i])
	}
	// Entries: all rows kept, or the distinct outputs among them.
	nk := len(b.join.Key)
	outs := b.rows.cols[nk:]
	entryOf := make([]uint32, 0, len(keep)) // by position in keep
	var rep []uint32                        // a row for each entry
	if b.dedupe {
		d := newPacker()
		for i := range outs {
			d.add(b.child.collected[nk+i], 0)
		}
		entryOf, rep = d.distinct(outs, keep)
	} else {
		for i := range keep {
			entryOf = append(entryOf, uint32(i))
		}
		rep = keep
	}
	l.rows = len(rep)
	if l.left {
		l.Null = uint32(l.rows)
		l.rows++
	}
	for i := range outs {
		in := b.child.collected[nk+i]
		o := lookupOut{OutData: program.OutData{Values: make([]int64, max(l.rows, 1))}, lo: in.lo, hi: in.hi, t: in.t, dict: in.dict, risky: in.risky}
		if outs[i].nulls != nil || l.left {
			o.Nulls = make([]uint8, max(l.rows, 1))
		}
		o.Values[0] = in.lo
		for e, r := range rep {
			o.Values[e] = outs[i].v[r]
			if outs[i].nulls != nil {
				o.Nulls[e] = outs[i].nulls[r]
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
	if b.many {
		keep, entryOf = l.gather(key, keep, entryOf)
	}
	// The array covers the outer keys where that is not much more than the keys
	// there are: then no key needs a check.
	size, ok := width(lo, hi)
	if len(keep) == 0 {
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
	dup := forward(plan.ReasonShape, "join key is not unique")
	if len(outs) == 0 && !l.left && l.many == nil && ok && size <= lookupBitsMax && size <= 64*max(lookupDense, int64(len(keep))) {
		l.kind = program.LookupBits
		l.rows = 1
		l.Bits = makeSet(size)
		for _, i := range keep {
			k := uint64(key[i] - lo)
			if l.Bits[k>>6]>>(k&63)&1 != 0 && !b.join.Exists {
				return dup
			}
			l.Bits[k>>6] |= 1 << (k & 63)
		}
		l.bytes += size / 8
		l.set = compress.Set{Lo: lo, Size: size, Bits: l.Bits}
		return nil
	}
	if !ok || size > max(lookupArray, lookupSpread*int64(len(keep))) {
		l.kind = program.LookupHash
		l.Lo, l.Size = 0, 0
		l.Hash(len(keep))
		for j, i := range keep {
			if !l.Put(key[i], entryOf[j]) && !b.join.Exists {
				return dup
			}
		}
		l.bytes += 12 * int64(len(l.HashKeys))
		return nil
	}
	n := l.rows
	if l.many != nil {
		n = len(keep)
	}
	switch l.kind = entryKind(n); l.kind {
	case program.Lookup8:
		l.E8, l.Null, ok = scatterEntries[uint8](size, key, keep, entryOf, lo, l.Null, l.left, b.join.Exists)
		l.bytes += size
	case program.Lookup16:
		l.E16, l.Null, ok = scatterEntries[uint16](size, key, keep, entryOf, lo, l.Null, l.left, b.join.Exists)
		l.bytes += 2 * size
	default:
		l.E32, l.Null, ok = scatterEntries[uint32](size, key, keep, entryOf, lo, l.Null, l.left, b.join.Exists)
		l.bytes += 4 * size
	}
	if !ok {
		return dup
	}
	if !l.left {
		l.set = compress.Set{Lo: lo, Size: size, Bits: makeSet(size)}
		for _, i := range keep {
			k := uint64(key[i] - lo)
			l.set.Bits[k>>6] |= 1 << (k & 63)
		}
		l.bytes += size / 8
	}
	return nil
}

// entryKind returns the kind of a lookup with so many entries.
func entryKind(n int) program.LookupKind {
	switch {
	case n < math.MaxUint8:
		return program.Lookup8
	case n < math.MaxUint16:
		return program.Lookup16
	}
	return program.Lookup32
}

// scatterEntries writes entries at their keys' places. Without a partner stands
// none for a left join, else the largest value. ok is false for equal keys, unless any of them
// will do.
func scatterEntries[T uint8 | uint16 | uint32](size int64, key []int64, keep, entryOf []uint32, lo int64, none uint32, left, any bool) (e []T, absent uint32, ok bool) {
	absent = uint32(^T(0))
	e = make([]T, size, size+simd.EntryRoom)
	if size > 0 {
		e[0] = ^T(0)
		for n := 1; n < len(e); n *= 2 { // at the speed of copies
			copy(e[n:], e[:n])
		}
	}
	for j, i := range keep {
		k := key[i] - lo
		if e[k] != ^T(0) && !any {
			return nil, 0, false
		}
		e[k] = T(entryOf[j])
	}
	if left {
		for i, v := range e {
			if v == ^T(0) {
				e[i] = T(none)
			}
		}
		absent = none
	}
	return e, absent, true
}

// cost estimates nanoseconds a row.
func (l *lookup) cost() float64 {
	switch {
	case l.kind == program.LookupHash:
		return 8
	case l.bytes > 1<<20:
		return 4
	case l.bytes > 1<<15:
		return 2.5
	}
	return 2
}

// run writes the entry that each selected row meets to entries, and the positions
// of the rows that stay to next. It returns their number.
func (l *lookup) run(k vec, sel []uint16, entries []uint32, next []uint16) int {
	if l.wide || k.nulls != nil || l.kind == program.LookupHash {
		return l.runChecked(k, sel, entries, next)
	}
	switch l.kind {
	case program.LookupBits:
		n := 0
		keys := k.v[:len(sel)]
		lut, lo := l.Bits, l.Lo
		for i, s := range sel {
			key := uint64(keys[i] - lo)
			next[n&(tileRows-1)] = s
			n += int(lut[key>>6] >> (key & 63) & 1)
		}
		return n
	case program.Lookup8:
		return runEntries(l.E8, l.Lo, k.v, sel, entries, next, l.left)
	case program.Lookup16:
		return runEntries(l.E16, l.Lo, k.v, sel, entries, next, l.left)
	}
	return runEntries(l.E32, l.Lo, k.v, sel, entries, next, l.left)
}

func runEntries[T uint8 | uint16 | uint32](lut []T, lo int64, keys []int64, sel []uint16, entries []uint32, next []uint16, left bool) int {
	absent := uint32(^T(0))
	if left {
		absent = entryNever // every row has an entry, that of the nulls at least
	}
	return simd.Entries(lut, lo, keys[:len(sel)], sel, entries, next, absent)
}

// entryNever is no entry: a lookup has fewer.
const entryNever = math.MaxUint32

// enter writes the entries of keys that all have a partner. spare is overwritten.
func (l *lookup) enter(keys []int64, sel []uint16, entries []uint32, spare []uint16) {
	switch l.kind {
	case program.Lookup8:
		simd.Entries(l.E8, l.Lo, keys, sel, entries, spare, entryNever)
	case program.Lookup16:
		simd.Entries(l.E16, l.Lo, keys, sel, entries, spare, entryNever)
	case program.Lookup32:
		simd.Entries(l.E32, l.Lo, keys, sel, entries, spare, entryNever)
	}
}

func (l *lookup) runChecked(k vec, sel []uint16, entries []uint32, next []uint16) int {
	n := 0
	for i, s := range sel {
		e, found := l.Null, false
		if k.nulls == nil || k.nulls[i] == 0 {
			if e, found = l.Find(l.kind, k.v[i]); !found {
				e = l.Null
			}
		}
		entries[s] = e
		if found || l.left {
			next[n] = s
			n++
		}
	}
	return n
}
