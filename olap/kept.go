package olap

import (
	"slices"
	"sync"
	"sync/atomic"

	"pgaccel/colstore"
	"pgaccel/plan"
)

// While a table is written to, a whole result is never that of the next execution; but of most of its
// segments nothing has changed. So what a query's groups are over each segment is kept, and the next
// execution of the same plan with the same values scans only segments that are new or have changed:
//
//	segments   0    1    2    3    4    5 (grows)
//	kept       yes  yes  -    yes  yes  -            2: a row of it was deleted
//	           '----+---------+----'    |
//	          added to a worker's groups, beside those that the worker scans; then they are merged as ever
//
// The unit is one segment. A run of several would be merged faster, but one update of an old row would cost
// all of it; and groups of one segment that are few beside its rows (keptShare) cost little beside a scan.
//
// Exact is that by names of contents: of a segment's columns (colstore.Column.ID), of its rows that count
// (colstore.Segment.LiveID), and the versions of all other tables. A segment with rows that this snapshot does not
// see has another bitmap, and so another name. Values stand as words, not as they are packed, since
// bounds change as a table grows; the rest of how groups are kept is compared (keptShape). Nothing that is
// kept depends on the order of merging: sums of floats do not either (floatsum.go).

// A segment's groups are not kept before its content has been met twice: of one that changes all the time they
// would be made in vain.

const (
	// keptShare: groups of a segment that are more than 1/keptShare of its rows are not kept.
	keptShare = 16
	// keptDense is the largest array of groups that a segment has for itself.
	keptDense = 1 << 14
)

// SegmentCache is what executions of one plan with the same values have made of segments. It is safe for concurrent
// use. Everything else that their results depend on must be the same, too, but for the versions of tables.
type SegmentCache struct {
	limit int64 // bytes

	mu       sync.Mutex
	off      bool                   // groups are too many to be kept
	form     *keptForm              // nil: nothing is kept
	seen     map[int]uint64         // by slot: a hash of what names the content that was read last
	segments map[int]*cachedSegment // by slot
	bytes    int64
	reused   *atomic.Int64
}

// NewSegmentCache returns one that holds about so many bytes at the most. It counts in reused the segments that executions
// have not scanned.
func NewSegmentCache(limit int64, reused *atomic.Int64) *SegmentCache {
	return &SegmentCache{limit: limit, reused: reused}
}

// Bytes is about the memory that it holds.
func (k *SegmentCache) Bytes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bytes
}

// cachedSegment is what is kept of a segment. Immutable.
type cachedSegment struct {
	columns []uint64 // their numbers
	live    uint64
	bases   []*cachedGroups // by position in grouper.bases; nil where there is no group
	bytes   int64
}

// cachedGroups are groups of a segment. Immutable.
type cachedGroups struct {
	axes   []vec // by axis: values that last (keptForm.lasting)
	counts []int64
	states []state
}

// keeper is the part of an execution that uses a SegmentCache.
type keeper struct {
	k       *SegmentCache
	g       *grouper
	form    *keptForm
	columns [][]uint64       // by segment
	have    []*cachedSegment // by segment; nil: it is to be scanned
	stays   []bool           // by segment: it has the content that was read last, and may have it next time
	codes   [][][]int64      // by base and axis: those of keptForm.words here, -1 for none
	reused  atomic.Int64     // segments

	mu    sync.Mutex
	made  []*cachedSegment // by segment
	large int              // rows of segments with too many groups, less those of segments that are made
}

// keepable reports whether the groups of q are kept by segments: what it scans is a table that it does not read
// elsewhere. others are the versions of the other tables. q is as it is before anything is computed for it.
func keepable(q *plan.Star, in Input) (others []colstore.Version, ok bool) {
	if !q.Grouped || len(q.Tables) == 0 || q.Tables[0].Relation != nil {
		return nil, false
	}
	oid, readers := in.Tables[q.Tables[0].Table].Meta.OID, 0
	q.Walk(func(s *plan.Star) {
		for _, t := range s.Tables {
			if t.Relation == nil && in.Tables[t.Table].Meta.OID == oid {
				readers++
			}
		}
	})
	for _, t := range in.Tables {
		if t.Meta.OID != oid {
			others = append(others, t.Version())
		}
	}
	return others, readers == 1
}

// keep has the scan use what is kept of segments, where groups are of a kind that is.
func (g *grouper) keep() {
	p := g.p
	x := p.x
	if !x.keeps || x.trace != nil || x.spill != nil || x.q.Tables[0].Relation != nil || len(p.tab.Segments) == 0 || x.standsFor() {
		return
	}
	form := g.keptForm(x.others)
	if form == nil {
		return
	}
	n := len(p.tab.Segments)
	r := &keeper{k: x.opt.Kept, g: g, form: form, columns: make([][]uint64, n), have: make([]*cachedSegment, n), stays: make([]bool, n), made: make([]*cachedSegment, n)}
	k := r.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.off {
		return
	}
	same := k.form != nil && k.form.equal(form)
	if same {
		r.form = k.form
		g.adopt(r.form)
	}
	for i, seg := range p.tab.Segments {
		r.columns[i] = columnIDs(seg)
		r.stays[i] = k.seen[seg.Slot] == contentOf(r.columns[i], seg)
		if s := k.segments[seg.Slot]; same && s != nil && s.live == seg.LiveID && slices.Equal(s.columns, r.columns[i]) {
			r.have[i] = s
		}
	}
	r.codes = r.form.codesOf(g)
	p.keep = r
}

// columnIDs returns what names a segment's rows, but for which of them count. Columns that are not copied have no number,
// and a table may have no others.
func columnIDs(seg *colstore.Segment) []uint64 {
	ids := make([]uint64, len(seg.Columns)+1)
	for i := range seg.Columns {
		ids[i] = seg.Columns[i].ID
	}
	ids[len(seg.Columns)] = uint64(seg.Rows)
	return ids
}

// segment hands the groups of a segment to a worker's sink: those that are kept, or of its rows.
func (r *keeper) segment(w *worker, i int, s sink) error {
	if have := r.have[i]; have != nil {
		if ok, err := r.add(s, have); ok || err != nil {
			if scanned := w.p.x.opt.Scanned; scanned != nil {
				scanned.Kept.Add(1)
			}
			r.reused.Add(1)
			return err
		}
	}
	if !r.stays[i] {
		return w.scan(wholeSegments, i, s)
	}
	own := make([]*groups, len(r.g.bases))
	var to sinks
	for b, by := range r.g.bases {
		own[b] = by.newGroups()
		to = append(to, own[b])
	}
	var err error
	if len(own) == 1 {
		err = w.scan(wholeSegments, i, own[0])
	} else {
		err = w.scan(wholeSegments, i, to)
	}
	if err == nil {
		err = r.take(i, own, s)
	}
	for _, o := range own {
		w.p.x.give(o.taken)
	}
	return err
}

// take adds the groups of a segment to a worker's sink, and keeps them where they are few.
func (r *keeper) take(i int, own []*groups, s sink) error {
	seg := r.g.p.tab.Segments[i]
	part := &cachedSegment{columns: r.columns[i], live: seg.LiveID, bytes: int64(8*len(r.columns[i])) + 256}
	some, few := false, true
	for b, o := range own {
		if o.counts == nil { // zone maps know that there are none
			part.bases = append(part.bases, nil)
			continue
		}
		if err := sinkOf(s, b).addAll(o); err != nil {
			return err
		}
		some = true
		numbers := o.numbers(0, o.size())
		if few = few && (len(numbers) <= max(seg.Rows/keptShare, 1) || r.g.p.x.opt.Eager); few {
			kept := r.compact(b, o, numbers)
			part.bytes += kept.bytes()
			part.bases = append(part.bases, kept)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !few {
		r.large += seg.Rows
	} else if some {
		r.made[i] = part
		r.large -= seg.Rows
	}
	return nil
}

// sinkOf returns a worker's groups of a base.
func sinkOf(s sink, base int) *groups {
	if all, several := s.(sinks); several {
		s = all[base]
	}
	return s.(*groups)
}

// addAll adds the groups of another table of the grouping, which may be the first.
func (s *groups) addAll(from *groups) error {
	if s.counts == nil {
		s.open()
	}
	return s.add(from)
}

// compact returns what is kept of a segment's groups, whose numbers these are.
func (r *keeper) compact(base int, s *groups, numbers []uint32) *cachedGroups {
	out := &cachedGroups{counts: make([]int64, len(numbers)), states: make([]state, len(s.states))}
	to := make([]uint32, len(numbers))
	for i, n := range numbers {
		to[i] = uint32(i)
		out.counts[i] = s.counts[n]
	}
	for a := range s.by.axes {
		v, nulls := s.digits(a, numbers)
		out.axes = append(out.axes, r.form.lasting(base, a, &s.by.axes[a], vec{v, nulls}))
	}
	for i := range s.states {
		a, st := &r.g.accs[i], &out.states[i]
		if a.kind >= accMoments {
			st.open(a, extent{})
		}
		st.grow(a, len(numbers))
		st.mergeAll(a, &s.states[i], numbers, to)
		if d, ok := st.extra.(*decimalSums); ok {
			d.dict = nil // it is the execution's
		}
	}
	return out
}

func (k *cachedGroups) bytes() int64 {
	n := int64(len(k.counts)) * 8
	for i := range k.axes {
		n += int64(len(k.axes[i].v)*8 + len(k.axes[i].nulls))
	}
	for i := range k.states {
		n += 128 + k.states[i].bytes()
	}
	return n
}

// add adds what is kept of a segment to a worker's sink; false where its values have no place in the groups, and
// nothing has been added.
func (r *keeper) add(s sink, part *cachedSegment) (bool, error) {
	indexes := make([][]uint32, len(part.bases))
	keys := make([][]uint64, len(part.bases))
	for b, kept := range part.bases {
		if kept == nil {
			continue
		}
		axes, ok := r.current(b, kept)
		if !ok {
			return false, nil
		}
		by := r.g.bases[b]
		if by.how == groupHash {
			keys[b] = by.packAll(axes, len(kept.counts))
		} else if indexes[b], ok = by.numberAll(axes, len(kept.counts)); !ok {
			return false, nil
		}
	}
	for b, kept := range part.bases {
		if kept == nil {
			continue
		}
		g := sinkOf(s, b)
		if g.counts == nil {
			g.open()
		}
		index := indexes[b]
		if g.table != nil {
			index = make([]uint32, len(kept.counts))
			g.table.insertAll(keys[b], index)
			g.resize(g.table.n)
		}
		for i := range g.states {
			g.states[i].mergeAll(&r.g.accs[i], &kept.states[i], nil, index)
		}
		for j, i := range index {
			g.counts[i] += kept.counts[j]
		}
		if err := g.account(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// packAll returns the keys of n groups with these digits.
func (by *grouping) packAll(axes []vec, n int) []uint64 {
	keys := make([]uint64, n*by.pack.words)
	for a := range axes {
		for j := range n {
			by.pack.parts[a].pack(keys[j*by.pack.words:(j+1)*by.pack.words], axes[a], j)
		}
	}
	return keys
}

// numberAll is the same of numbers made of digits; false where a number is beyond the array.
func (by *grouping) numberAll(axes []vec, n int) (index []uint32, ok bool) {
	index = make([]uint32, n)
	for j := range index {
		number := uint64(0)
		for a := range axes {
			part := &by.pack.parts[a]
			digit := part.digit(axes[a], j)
			if digit >= part.card {
				return nil, false
			}
			number += digit * part.stride
		}
		index[j] = uint32(number)
	}
	return index, true
}

// contentOf is a hash of what names a segment's content.
func contentOf(columns []uint64, seg *colstore.Segment) uint64 {
	return hashWords(append(slices.Clip(columns), seg.LiveID))
}

// gains reports whether segments are not only scanned.
func (r *keeper) gains() bool {
	return slices.Contains(r.stays, true) || slices.ContainsFunc(r.have, func(s *cachedSegment) bool { return s != nil })
}

// rows is the number of rows that need not be scanned.
func (r *keeper) rows() (n int) {
	for i, have := range r.have {
		if have != nil {
			n += r.g.p.tab.Segments[i].Rows
		}
	}
	return n
}

// end keeps what the execution has made, once all segments have been read.
func (r *keeper) end() {
	k := r.k
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reused.Add(r.reused.Load())
	if k.off {
		return
	}
	// A segment that has only begun may have almost as many groups as rows: that says nothing of the others.
	if r.large > r.rows() || r.form.large() {
		k.off, k.form, k.seen, k.segments, k.bytes = true, nil, nil, nil, 0
		return
	}
	if k.form != r.form {
		k.form, k.segments = r.form, nil
	}
	was := k.segments
	k.seen, k.segments, k.bytes = map[int]uint64{}, map[int]*cachedSegment{}, r.form.bytes()
	for i, seg := range r.g.p.tab.Segments {
		part := r.made[i]
		if part == nil {
			part = was[seg.Slot] // of this execution, or of one at the same time
		}
		k.seen[seg.Slot] = contentOf(r.columns[i], seg)
		k.bytes += 64
		if part != nil && slices.Equal(part.columns, r.columns[i]) && k.bytes+part.bytes <= k.limit {
			k.segments[seg.Slot] = part
			k.bytes += part.bytes
		}
	}
}
