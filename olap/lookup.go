package olap

import (
	"math"
	"slices"

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
	// set holds the keys that have a partner; it has no size for a left join and for keys that
	// are far apart. A filter by it is a pass over a bitmap, which stays in a nearer cache
	// than the entries do.
	set compress.Set
	// few are the keys in order where they are few, for zone maps; nil: they are many, or rows
	// without one stay.
	few []int64
}

// lookupOut is one output: values by entry.
type lookupOut struct {
	program.OutData
	lo, hi int64
	t      vector.Type
	dict   *dict
	risky  bool // it could have failed for rows that were not kept
}

// lookupSpread bounds the empty places of an array for each row. An array of up to lookupArray places is better than a hash
// table however empty it is: it stays in the second-level cache. Tests make them small.
var lookupSpread, lookupArray int64 = 16, 1 << 21

const (
	// lookupBitsMax bounds the keys of a bitmap.
	lookupBitsMax = 1 << 26
	// lookupBitsSpread bounds the places of a bitmap for each key: 64 bytes, where a hash table
	// has 24 to 48.
	lookupBitsSpread = 512
	lookupDense      = 1 << 16
	// lookupFew is how many keys are compared with zone maps.
	lookupFew = 1 << 10
	// lookupWork is about what it takes to make a lookup, in bytes for each row: keep, the
	// entries, and numbers of keys.
	lookupWork = 16
)

// keyMap returns how a child's key values become comparable with the outer
// node's, nil where they are.
func keyMap(o, in *node) (func(vec) (vec, error), error) {
	var f func(int64) int64
	switch {
	case o.t.Varying() && in.t.Varying() && o.dict != nil && in.dict != nil && !in.dict.grows():
		to := decimalTranslation(in.dict, o.dict)
		f = func(v int64) int64 { return to[v] }
	case o.t.Varying() || in.t.Varying():
		return nil, errVaryingKey
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

// take accounts for bytes of the lookup before they are there.
func (b *probe) take(bytes int64) error {
	b.taken += bytes
	return b.child.x.take(bytes)
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

// cost estimates nanoseconds a row.
func (l *lookup) cost() float64 {
	switch {
	case l.kind == program.LookupHash && l.set.Size > 0:
		return 4
	case l.kind == program.LookupHash:
		return 8
	case l.bytes > 1<<20:
		return 4
	case l.bytes > 1<<15:
		return 2.5
	}
	return 2
}

// misses reports whether no key is in a range: lo > hi where there is none to be in.
func (l *lookup) misses(lo, hi int64) bool {
	if l.few == nil {
		return false
	}
	i, _ := slices.BinarySearch(l.few, lo)
	return i == len(l.few) || l.few[i] > hi
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
	case program.LookupHash:
		for i, s := range sel {
			entries[s], _ = l.Find(l.kind, keys[i])
		}
	}
}

func (l *lookup) runChecked(k vec, sel []uint16, entries []uint32, next []uint16) int {
	n := 0
	hash := l.kind == program.LookupHash && l.set.Size > 0
	for i, s := range sel {
		e, found := l.Null, false
		if (k.nulls == nil || k.nulls[i] == 0) && (!hash || l.set.Has(k.v[i])) {
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
