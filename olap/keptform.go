package olap

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"pgaccel/colstore"
	"pgaccel/gpu/program"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

const (
	// keptCodes is the largest number of codes of a lookup that are compared.
	keptCodes = 1 << 16
	// keptWords is the largest number of texts that are computed and stand for groups.
	keptWords = 1 << 14
)

// keptForm is what groups must have in common for one to be added to another: which accumulators there are, and what
// they are of; and what codes stand for. Bounds, and so how keys are packed and where groups are found, may differ.
type keptForm struct {
	others []colstore.Version // tables that are not scanned
	accs   []keptAcc
	refs   []keptRef
	bases  []keptBase
	keys   int // of the groups, late ones apart

	mu    sync.Mutex
	words [][]*lastingWords // by base and axis: of text whose codes are the execution's; else nil
}

type keptAcc struct {
	kind   accKind
	fold   *sqlfn.Aggregate
	arg    vector.Type
	window *floatWindow // the states' of all executions
}

// keptRef says which accumulators an aggregate of the query has, and thereby what they are of.
type keptRef struct {
	f                   *sqlfn.Aggregate
	value, count, zeros int
	offset              int64
}

type keptBase struct {
	set  uint64
	all  bool
	axes []keptAxis
}

type keptAxis struct {
	t      vector.Type
	units  bool              // the values are of a unit's starts
	words  bool              // codes are of words
	lookup [sha256.Size]byte // what its codes stand for
	keys   int               // the first of the keys that it has
}

// lastingWords give texts codes that last.
type lastingWords struct {
	list  []string
	codes map[string]int64
	bytes int64
}

// keptForm returns the form of the groups; nil where groups of segments are not kept.
func (g *grouper) keptForm(others []colstore.Version) *keptForm {
	f := &keptForm{others: others, keys: len(g.keys)}
	for i := range g.accs {
		a := &g.accs[i]
		k := keptAcc{kind: a.kind, fold: a.fold, window: a.window}
		if a.arg != nil {
			k.arg = a.arg.t
		}
		switch a.kind {
		case accLeastText, accGreatestText, accDistinct, accRanked:
			return nil // codes of the execution; large
		case program.AccMin, program.AccMax, accFold:
			if a.arg.dict != nil {
				return nil
			}
		}
		f.accs = append(f.accs, k)
	}
	for i := range g.refs {
		r := &g.refs[i]
		if r.ordered || r.distinct >= 0 || r.ranks != nil || r.dict != nil { // ranks are of a version
			return nil
		}
		f.refs = append(f.refs, keptRef{r.f, r.value, r.count, r.zeros, r.offset})
	}
	for _, by := range g.bases {
		if by.how == groupPartitioned || by.how == groupDense && by.pack.card > keptDense {
			return nil
		}
		b := keptBase{set: by.set, all: by.all}
		words := make([]*lastingWords, len(by.axes))
		for i := range by.axes {
			a, ok := by.keptAxis(i)
			if !ok {
				return nil
			}
			if b.axes = append(b.axes, a); a.words {
				words[i] = &lastingWords{codes: map[string]int64{}}
			}
		}
		f.bases, f.words = append(f.bases, b), append(f.words, words)
	}
	return f
}

// keptAxis describes an axis; false where its values do not last.
func (by *grouping) keptAxis(i int) (a keptAxis, ok bool) {
	axis := &by.axes[i]
	a.keys = axis.keys[0]
	n := axis.node
	if n == nil {
		a.lookup, ok = axis.lookupSum(by.g, by.pack.parts[i].card)
		return a, ok
	}
	a.t, a.units = n.t, n.starts != nil
	if n.dict == nil {
		return a, !n.t.Varying()
	}
	// Codes of a column's dictionary stay; equal columns have the same.
	a.words = n.dict.src == nil
	return a, !n.t.Varying() && (!a.words || n.t.Kind == vector.Text && !n.nondeterministic())
}

// nondeterministic reports whether texts that are equal may be written apart.
func (n *node) nondeterministic() bool {
	c := n.t.Collation
	return c.OID != 0 && !c.C && !c.Deterministic
}

// lookupSum names what the codes of a lookup's axis stand for.
func (a *axis) lookupSum(g *grouper, card uint64) (sum [sha256.Size]byte, ok bool) {
	if card == 0 || card > keptCodes {
		return sum, false
	}
	n := g.p.probes[a.probe].lut.rows // of which one without any has a code, too
	if a.rep != nil {
		n = len(a.rep)
	}
	h := sha256.New()
	b := binary.LittleEndian.AppendUint64(nil, card)
	for k, o := range a.outs {
		out := &g.p.probes[a.probe].lut.outs[o]
		if out.t.Varying() || out.dict != nil && out.dict.grows() {
			return sum, false
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(a.keys[k]))
		for code := range n {
			e := uint32(code)
			if a.rep != nil {
				e = a.rep[code]
			}
			null := out.Nulls != nil && out.Nulls[e] != 0
			switch v := out.Values[e]; {
			case null:
				b = append(b, 0)
			case out.dict != nil && out.dict.src == nil:
				s := out.dict.at(v)
				b = append(binary.LittleEndian.AppendUint64(append(b, 1), uint64(len(s))), s...)
			default:
				b = binary.LittleEndian.AppendUint64(append(b, 2), uint64(v))
			}
			if len(b) > 1<<12 {
				h.Write(b)
				b = b[:0]
			}
		}
	}
	h.Write(b)
	h.Sum(sum[:0])
	return sum, true
}

// equal reports whether groups of both forms may be added to each other, once floats have the same windows (adopt).
func (f *keptForm) equal(o *keptForm) bool {
	sameAcc := func(a, b keptAcc) bool {
		return a.kind == b.kind && a.fold == b.fold && a.arg == b.arg && (a.window == nil) == (b.window == nil) &&
			(a.window == nil || a.window.width == b.window.width && a.window.squares == b.window.squares)
	}
	sameBase := func(a, b keptBase) bool {
		return a.set == b.set && a.all == b.all && slices.Equal(a.axes, b.axes)
	}
	return f.keys == o.keys && slices.Equal(f.others, o.others) && slices.Equal(f.refs, o.refs) && slices.EqualFunc(f.accs, o.accs, sameAcc) && slices.EqualFunc(f.bases, o.bases, sameBase)
}

// adopt has the accumulators use the windows of those whose groups are kept: moments are in their units.
func (g *grouper) adopt(f *keptForm) {
	for i := range g.accs {
		g.accs[i].window = f.accs[i].window
	}
}

// lasting returns digits as they are kept: values, or codes that last.
func (f *keptForm) lasting(base, axis int, a *axis, digits vec) vec {
	switch {
	case a.node == nil:
	case a.node.starts != nil:
		for j, unit := range digits.v {
			digits.v[j] = a.node.starts[unit]
		}
	case f.words[base][axis] != nil:
		f.mu.Lock()
		defer f.mu.Unlock()
		w := f.words[base][axis]
		for j, code := range digits.v {
			if digits.nulls == nil || digits.nulls[j] == 0 {
				digits.v[j] = w.code(a.node.dict.at(code))
			}
		}
	}
	return digits
}

func (w *lastingWords) code(s string) int64 {
	c, ok := w.codes[s]
	if !ok {
		s = string([]byte(s)) // the other is a part of something larger, and not for long
		c = int64(len(w.list))
		w.list, w.codes[s] = append(w.list, s), c
		w.bytes += int64(len(s)) + 64
	}
	return c
}

// codesOf returns the execution's codes of the words, by base and axis.
func (f *keptForm) codesOf(g *grouper) [][][]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([][][]int64, len(f.words))
	for b, words := range f.words {
		out[b] = make([][]int64, len(words))
		for i, w := range words {
			if w == nil {
				continue
			}
			d := g.bases[b].axes[i].node.dict
			codes := make([]int64, len(w.list))
			for k, s := range w.list {
				var ok bool
				if d.grows() {
					var err error
					codes[k], err = d.pool.intern(s)
					ok = err == nil
				} else {
					codes[k], ok = d.find(s)
				}
				if !ok {
					codes[k] = -1
				}
			}
			out[b][i] = codes
		}
	}
	return out
}

// current returns the digits of what is kept, as the execution has them; false where it has none for a value.
func (r *keeper) current(base int, kept *cachedGroups) (axes []vec, ok bool) {
	by := r.g.bases[base]
	for i, v := range kept.axes {
		part, n := &by.pack.parts[i], by.axes[i].node
		codes := r.codes[base][i]
		if translated := n != nil && (n.starts != nil || codes != nil); translated {
			v.v = slices.Clone(v.v)
		}
		for j, x := range v.v {
			if v.nulls != nil && v.nulls[j] != 0 {
				if !part.nullable {
					return nil, false
				}
				continue
			}
			switch {
			case n == nil:
			case n.starts != nil:
				unit, exact := slices.BinarySearch(n.starts, x)
				if x = int64(unit); !exact {
					return nil, false
				}
				v.v[j] = x
			case codes != nil:
				if x = codes[x]; x < 0 {
					return nil, false
				}
				v.v[j] = x
			}
			// A zone map of the table has all values of its segments.
			if span := uint64(x) - uint64(part.lo); x < part.lo || part.card != 0 && span >= part.card-uint64(b2i(part.nullable)) {
				return nil, false
			}
		}
		axes = append(axes, v)
	}
	return axes, true
}

// bytes is about the memory of the form.
func (f *keptForm) bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(512 + 64*(len(f.accs)+len(f.refs)))
	for _, words := range f.words {
		for _, w := range words {
			if w != nil {
				n += 64 + w.bytes
			}
		}
	}
	return n
}

// large reports whether there are more words than are kept.
func (f *keptForm) large() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.words, func(words []*lastingWords) bool {
		return slices.ContainsFunc(words, func(w *lastingWords) bool { return w != nil && len(w.list) > keptWords })
	})
}
