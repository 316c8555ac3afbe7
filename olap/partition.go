package olap

import (
	"math/bits"
	"slices"
	"sync"

	"pgaccel/gpu/program"
)

// Radix-partitioned grouping. Workers scatter their rows' keys and arguments to
// partitions, by the upper bits of the group's number or of the key's hash; a partition
// has few enough groups for its table to stay in the second-level cache while a
// worker's buffer of rows is aggregated into it. No group is in two partitions, so that
// nothing is merged:
//
//	worker  tile --scatter--> buffers of rows, by partition
//	                            | full, or at the end
//	                            v
//	        partition 0 | 1 | 2 | ...   tables of all workers, one lock each
//
// The buffers hold columns: rows of partition p are at p*rows in each.

const (
	// partitionBytes is the table that a partition should not exceed.
	partitionBytes = 512 << 10
	// maxPartitions bounds the buffers that a tile's rows are scattered to: each takes
	// an entry of the TLB.
	maxPartitions = 512
	// partitionBuffers bounds a worker's buffers, in bytes.
	partitionBuffers = 64 << 20
)

// radix are the partitions of a grouping.
type radix struct {
	by      *grouping
	direct  bool // numbers are digits: a partition has those with equal upper bits
	adds    bool // neighbours of a group can be added up (combines)
	shift   uint // of the number, or of the hash
	rows    int  // of a buffer of one partition
	columns []radixColumn
	column  []int // by acc; -1 where it needs none
	parts   []partition
	workers []*scatterer
	batches sync.Pool // of *batch, for whoever flushes
	spilled *spilled  // where rows go to a file instead
}

// radixColumn is an argument that accumulators share; out of the rows that a filter
// removes.
type radixColumn struct {
	arg, filter *node
}

type partition struct {
	mu sync.Mutex
	s  *groups // nil until rows come
}

// newRadix plans partitions for about expect groups. memory is what a worker's buffers
// may take.
func newRadix(by *grouping, parts int, memory int64) *radix {
	d := &radix{by: by, direct: by.directNumbers()}
	d.batches.New = func() any { return new(batch) }
	for i := range by.g.accs {
		a := &by.g.accs[i]
		if a.arg == nil && a.filter == nil {
			d.column = append(d.column, -1)
			continue
		}
		at := -1
		for k, c := range d.columns {
			if c.arg == a.arg && c.filter == a.filter {
				at = k
			}
		}
		if at < 0 {
			at = len(d.columns)
			d.columns = append(d.columns, radixColumn{a.arg, a.filter})
		}
		d.column = append(d.column, at)
	}
	d.adds = len(by.g.accs) == 0 || by.clustered && !slices.ContainsFunc(by.g.accs, func(a acc) bool {
		return a.kind != program.AccSum || a.filter != nil || a.arg.nullable
	})
	log := bits.Len(uint(max(parts, 2) - 1))
	d.shift = uint(64 - log)
	if d.direct {
		d.shift = uint(max(bits.Len64(by.pack.card-1)-log, 0))
		parts = int((by.pack.card-1)>>d.shift) + 1
	} else {
		parts = 1 << log
	}
	d.parts = make([]partition, parts)
	d.rows = int(memory / int64(parts) / d.rowBytes())
	d.rows = min(max(d.rows, 2*tileRows), 32<<10)
	return d
}

// rowBytes is the size of a buffered row.
func (d *radix) rowBytes() int64 {
	n := int64(8 * d.by.pack.words)
	if d.direct {
		n = 4
	}
	if d.combines() {
		n += 4
	}
	for _, c := range d.columns {
		if c.arg != nil {
			n += 9
		}
		if c.filter != nil {
			n++
		}
	}
	return n
}

// combines reports whether rows that have the key of the one before are no rows of their own in a buffer: those of a
// visitor or an order lie together. They are counted, and their arguments added up, which no sum of 64 bits overflows by.
func (d *radix) combines() bool { return d.adds && d.spilled == nil }

// directNumbers reports whether groups can be numbered by their digits in 32 bits.
func (by *grouping) directNumbers() bool {
	return by.pack.card != 0 && by.pack.card <= 1<<32-1 && !by.sparse
}

// scatterer is one worker's sink.
type scatterer struct {
	d       *radix
	numbers []uint32 // direct: the group within its partition, by place
	keys    []uint64 // else: words of the key, by place
	runs    []uint32 // where the radix combines: how many rows each stands for, by place
	cols    []scatterColumn
	n       []int // rows buffered, by partition
	room    int   // rows for which every buffer has room
	place   []uint32
	index   []uint32
	key     []uint64
	pos     []uint16
	bytes   []byte // a block that is written
}

// batch is room for some buffered rows.
type batch struct {
	index, sub [tileRows]uint32 // groups; of the rows that pass a filter
	vals       [tileRows]int64  // of the rows that pass a filter
	nulls      [tileRows]uint8
}

type scatterColumn struct {
	v     []int64
	nulls []uint8 // nil where the argument has none
	out   []uint8 // nil without a filter; else 1 for a row that it removes
}

func (d *radix) sink() sink {
	s := &scatterer{d: d}
	d.workers = append(d.workers, s)
	return s
}

func (s *scatterer) open() error {
	d := s.d
	places := len(d.parts) * d.rows
	if err := d.by.g.p.x.take(int64(places) * d.rowBytes()); err != nil {
		return err
	}
	if s.place = make([]uint32, tileRows); !d.direct {
		s.key = make([]uint64, tileRows*d.by.pack.words)
	}
	s.index, s.pos = make([]uint32, tileRows), make([]uint16, tileRows)
	s.n = make([]int, len(d.parts))
	s.room = d.rows
	s.places(places)
	return nil
}

// places makes room for so many rows.
func (s *scatterer) places(places int) {
	d := s.d
	if d.direct {
		s.numbers = unset[uint32](places)
	} else {
		s.keys = unset[uint64](places * d.by.pack.words)
	}
	if d.combines() {
		s.runs = unset[uint32](places)
	}
	s.cols = make([]scatterColumn, len(d.columns))
	for i, c := range d.columns {
		if c.arg != nil {
			s.cols[i].v = unset[int64](places)
			if c.arg.nullable {
				s.cols[i].nulls = unset[uint8](places)
			}
		}
		if c.filter != nil {
			s.cols[i].out = unset[uint8](places)
		}
	}
}

// tile implements sink.
func (s *scatterer) tile(w *worker) {
	if s.n == nil {
		if err := s.open(); err != nil {
			w.fail(err)
			return
		}
	}
	if s.room < tileRows {
		s.makeRoom(w)
	}
	s.room -= len(w.f.sel)
	if s.d.direct {
		s.scatterNumbers(w)
	} else {
		s.scatterKeys(w)
	}
	for i := range s.cols {
		if w.err != nil {
			return
		}
		s.scatterColumn(w, i)
	}
}

// makeRoom empties the buffers that are more than half full.
func (s *scatterer) makeRoom(w *worker) {
	s.room = s.d.rows
	for p, n := range s.n {
		if 2*n > s.d.rows {
			part := &s.d.parts[p]
			part.mu.Lock()
			err := s.flush(p)
			part.mu.Unlock()
			if err != nil {
				w.fail(err)
			}
		}
		s.room = min(s.room, s.d.rows-s.n[p])
	}
}

// scatterNumbers places the rows and writes their groups.
func (s *scatterer) scatterNumbers(w *worker) {
	d := s.d
	index := s.index[:len(w.f.sel)]
	if d.by.number(w, index); w.err != nil {
		return
	}
	place := s.place[:len(index)]
	mask := uint32(1)<<d.shift - 1
	if s.runs != nil {
		last := ^index[0]
		for j, g := range index {
			first := b2i(g != last) // without a branch, that no processor foresees
			last = g
			p := int(g >> d.shift)
			s.n[p] += int(first)
			at := p*d.rows + s.n[p] - 1
			s.numbers[at] = g & mask
			s.runs[at] = s.runs[at]&(uint32(first)-1) + 1
			place[j] = uint32(at)
		}
		return
	}
	for j, g := range index {
		p := int(g >> d.shift)
		at := p*d.rows + s.n[p]
		s.n[p]++
		place[j] = uint32(at)
		s.numbers[at] = g & mask
	}
}

// scatterKeys places the rows and writes their keys.
func (s *scatterer) scatterKeys(w *worker) {
	d := s.d
	words := d.by.pack.words
	n := len(w.f.sel)
	keys := s.key[:n*words]
	if d.by.packKeys(w, keys); w.err != nil {
		return
	}
	if s.runs != nil {
		s.scatterRuns(keys)
		return
	}
	place := s.place[:n]
	if words == 1 {
		for j, k := range keys {
			p := int(hashOne(k) >> d.shift)
			at := p*d.rows + s.n[p]
			s.n[p]++
			place[j] = uint32(at)
			s.keys[at] = k
		}
		return
	}
	if words == 2 { // as below, without calls
		for j := range place {
			k := keys[2*j : 2*j+2]
			p := int(hashWords(k) >> d.shift)
			at := p*d.rows + s.n[p]
			s.n[p]++
			place[j] = uint32(at)
			to := s.keys[2*at : 2*at+2]
			to[0], to[1] = k[0], k[1]
		}
		return
	}
	for j := range n {
		k := keys[j*words : (j+1)*words]
		p := int(hashWords(k) >> d.shift)
		at := p*d.rows + s.n[p]
		s.n[p]++
		place[j] = uint32(at)
		copy(s.keys[at*words:], k)
	}
}

// scatterRuns writes the keys of a tile, and how many rows have them one after the other.
func (s *scatterer) scatterRuns(keys []uint64) {
	d, words := s.d, s.d.by.pack.words
	if words == 1 {
		last := ^keys[0]
		for j, k := range keys {
			first := b2i(k != last)
			last = k
			p := int(hashOne(k) >> d.shift)
			s.n[p] += int(first)
			at := p*d.rows + s.n[p] - 1
			s.keys[at] = k
			s.runs[at] = s.runs[at]&(uint32(first)-1) + 1
			s.place[j] = uint32(at)
		}
		return
	}
	at := 0
	var last []uint64
	for j := range len(keys) / words {
		k := keys[j*words : (j+1)*words]
		if !slices.Equal(k, last) {
			p := int(hashWords(k) >> d.shift)
			at = p*d.rows + s.n[p]
			s.n[p]++
			copy(s.keys[at*words:], k)
			s.runs[at], last = 0, k
		}
		s.runs[at]++
		s.place[j] = uint32(at)
	}
}

func (s *scatterer) scatterColumn(w *worker, i int) {
	c, to := &s.d.columns[i], &s.cols[i]
	place := s.place[:len(w.f.sel)]
	if s.runs != nil {
		last := ^place[0]
		for j, x := range w.eval(c.arg).v {
			at := place[j]
			to.v[at] = to.v[at]&-b2i(at == last) + x
			last = at
		}
		return
	}
	if c.filter == nil {
		v := w.eval(c.arg)
		for j, x := range v.v {
			to.v[place[j]] = x
		}
		switch {
		case to.nulls == nil:
		case v.nulls == nil:
			for _, at := range place {
				to.nulls[at] = 0
			}
		default:
			for j, x := range v.nulls {
				to.nulls[place[j]] = x
			}
		}
		return
	}
	f := w.eval(c.filter)
	pos := s.pos[:0]
	for j, x := range f.v {
		out := uint8(b2i(x == 0))
		if f.nulls != nil {
			out |= f.nulls[j]
		}
		to.out[place[j]] = out
		if out == 0 {
			pos = append(pos, uint16(j))
		}
	}
	if c.arg == nil || len(pos) == 0 {
		return
	}
	v := w.on(c.arg, pos, 0)
	for k, j := range pos {
		to.v[place[j]] = v.v[k]
		if to.nulls != nil {
			to.nulls[place[j]] = 0
			if v.nulls != nil {
				to.nulls[place[j]] = v.nulls[k]
			}
		}
	}
}

// newPart returns the table of partition p, without groups.
func (d *radix) newPart(p int) *groups {
	s := d.by.newGroups()
	if d.direct {
		s.first = uint64(p) << d.shift
		s.resize(int(min(1<<d.shift, d.by.pack.card-s.first)))
	} else {
		expect := int(d.by.expect) / len(d.parts)
		expect += expect / 8 // partitions differ
		s.openTable(expect)
		s.resize(expect)
	}
	return s
}

// flush aggregates the buffered rows of partition p, of which the caller has the lock, or writes
// them.
func (s *scatterer) flush(p int) error {
	d := s.d
	if d.spilled != nil {
		return d.spilled.write(s, p)
	}
	part := &d.parts[p]
	if part.s == nil {
		part.s = d.newPart(p)
	}
	b := d.batches.Get().(*batch)
	defer d.batches.Put(b)
	err := d.aggregate(part.s, b, s, p*d.rows, s.n[p])
	s.n[p] = 0
	return err
}

// aggregate adds n rows of s, from a place on, to a partition's table.
func (d *radix) aggregate(to *groups, b *batch, s *scatterer, from, n int) error {
	for end := from + n; from < end; {
		n := min(tileRows, end-from)
		var index []uint32
		if d.direct {
			index = s.numbers[from : from+n]
		} else {
			index = b.index[:n]
			words := d.by.pack.words
			to.table.insertAll(s.keys[from*words:(from+n)*words], index)
			to.resize(to.table.n)
		}
		counts := to.counts
		if s.runs != nil {
			for j, i := range index {
				counts[i] += int64(s.runs[from+j])
			}
		} else {
			for _, i := range index {
				counts[i]++
			}
		}
		for i, c := range d.column {
			if c < 0 {
				to.update(i, index, vec{}, n)
			} else {
				b.update(to, i, &s.cols[c], from, index)
			}
		}
		from += n
	}
	return to.account()
}

// update adds the rows from place from on, whose groups are index, to accumulator i.
func (b *batch) update(to *groups, i int, c *scatterColumn, from int, index []uint32) {
	n := len(index)
	var v vec
	if c.v != nil {
		v.v = c.v[from : from+n]
	}
	if c.nulls != nil {
		v.nulls = c.nulls[from : from+n]
	}
	if c.out == nil {
		to.update(i, index, v, n)
		return
	}
	k := 0
	for j, out := range c.out[from : from+n] {
		b.sub[k] = index[j]
		if v.v != nil {
			b.vals[k] = v.v[j]
		}
		if v.nulls != nil {
			b.nulls[k] = v.nulls[j]
		}
		k += int(1 - out)
	}
	if v.v != nil {
		v.v = b.vals[:k]
	}
	if v.nulls != nil {
		v.nulls = b.nulls[:k]
	}
	if k > 0 {
		to.update(i, b.sub[:k], v, k)
	}
}

// drain aggregates what is left in the workers' buffers, and makes the result.
func (d *radix) drain() error {
	x := d.by.g.p.x
	err := x.each(len(d.parts), func(p int) error {
		for _, s := range d.workers {
			if s.n == nil || s.n[p] == 0 {
				continue
			}
			if err := s.flush(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.by.done = nil
	for i := range d.parts {
		if s := d.parts[i].s; s != nil {
			d.by.done = append(d.by.done, s)
		}
	}
	if d.by.done == nil {
		s := d.by.newGroups()
		s.openTable(0)
		d.by.done = append(d.by.done, s)
	}
	for _, s := range d.workers {
		if s.n != nil {
			x.give(int64(len(d.parts)*d.rows) * d.rowBytes())
		}
	}
	d.workers = nil
	return nil
}
