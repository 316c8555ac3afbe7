package olap

import (
	"sync/atomic"

	"pgaccel/internal/simd"
)

// bitmapRows is the sink of a query whose result are rows: filtering sets a bit for
// each row that remains, and the values are read once it is known how many there are.
// Every worker then writes to a part of the result that is its own (see interlaced).
type bitmapRows struct {
	p *pipeline
	// words has the bits of all segments, each segment's from first[i] on.
	words []uint64
	first []int
}

func newBitmapRows(p *pipeline) (*bitmapRows, error) {
	b := &bitmapRows{p: p, first: make([]int, len(p.tab.Segments)+1)}
	n := 0
	for i, s := range p.tab.Segments {
		b.first[i] = n
		n += (s.Rows + 63) / 64
	}
	b.first[len(p.tab.Segments)] = n
	if err := p.x.take(int64(n) * 8); err != nil {
		return nil, err
	}
	b.words = make([]uint64, n)
	return b, nil
}

// segment returns the bits of a segment's rows.
func (b *bitmapRows) segment(i int) []uint64 { return b.words[b.first[i]:b.first[i+1]] }

// offsets returns where each morsel's rows begin in the result, and the end.
func (b *bitmapRows) offsets(ms morsels) []int {
	tab := b.p.tab
	n := ms.count(tab)
	from := make([]int, n+1)
	_ = b.p.x.eachSpan(n, countMorsels, func(_, begin, end int) error {
		for i := begin; i < end; i++ {
			segment, part := ms.of(i)
			if first, last := ms.within(part, tab.Segments[segment].Rows); first < last { // an empty part may end within a word
				from[i+1] = simd.Count(b.segment(segment)[first>>6 : (last+63)>>6])
			}
		}
		return nil
	})
	prefixSums(from)
	return from
}

// countMorsels is of how many morsels a goroutine counts the rows at a time.
const countMorsels = 64

// tile implements sink.
func (b *bitmapRows) tile(w *worker) {
	at := w.start >> 6
	w.load(b.segment(w.segment)[at : at+(w.n+63)>>6])
}

// interlacedRows writes to a line of the batch's bitmap instead.
type interlacedRows struct {
	query int
	to    *interlaced
	cells [tileRows / 64]uint64
}

// tile implements sink.
func (s *interlacedRows) tile(w *worker) {
	cells := s.cells[:(w.n+63)>>6]
	w.load(cells)
	s.to.put(s.query, w.start>>6, cells)
}

// bitmapMin is the rows of a table below which a second pass is not worth it. Tests
// make it small.
var bitmapMin = 1 << 16

// readMin is how many rows a goroutine is to read, at least: reading one that is by itself costs 0.1 to 0.2
// microseconds, waking a goroutine some tens.
const readMin = 1 << 9

// secondPass reports whether the values of nodes can be read in a second pass: they depend
// on rows of the pipeline's own table alone.
func (p *pipeline) secondPass(nodes []*node) bool {
	if !p.x.opt.enough(int(p.tab.Rows), bitmapMin) || p.many >= 0 {
		return false
	}
	for _, n := range nodes {
		if n.risky || probesOf(n) != 0 {
			return false
		}
	}
	return true
}

// collectBits collects the values of nodes, in the table's order: filter to a bitmap,
// count, read.
func (p *pipeline) collectBits(nodes []*node) (*rows, error) {
	b, err := newBitmapRows(p)
	if err != nil {
		return nil, err
	}
	if err := p.run(func(*worker) sink { return b }); err != nil {
		return nil, err
	}
	ms := p.x.opt.morsels(p.tab)
	from := b.offsets(ms)
	r := &rows{n: from[len(from)-1], cols: make([]vec, len(nodes))}
	r.taken = int64(r.n) * int64(len(nodes)*9)
	if err := p.x.take(r.taken); err != nil {
		return nil, err
	}
	for i := range nodes {
		r.cols[i].v = unset[int64](r.n)
		if nodes[i].nullable {
			r.cols[i].nulls = unset[uint8](r.n)
		}
	}
	var next atomic.Int64
	workers := min(p.x.opt.Workers, ms.count(p.tab))
	if !p.x.opt.Eager {
		workers = min(workers, 1+r.n/readMin)
	}
	return r, p.x.together(workers, func(m *member) error {
		w := newWorker(p)
		for {
			i := int(next.Add(1) - 1)
			if i >= ms.count(p.tab) {
				return nil
			}
			if err := p.x.ctx.Err(); err != nil {
				return err
			}
			if from[i] == from[i+1] {
				continue
			}
			segment, part := ms.of(i)
			w.morsel, w.segment, w.seg = i, segment, p.tab.Segments[segment]
			first, last := ms.within(part, w.seg.Rows)
			if w.read(b.segment(segment), first, last, nodes, r, from[i]); w.err != nil {
				return w.err
			}
			m.pause()
		}
	})
}

// read writes the values of the segment's rows first to last-1 whose bits are set to r, from row at on.
func (w *worker) read(set []uint64, first, last int, nodes []*node, r *rows, at int) {
	w.counts = set
	for start := first; start < last; start += tileRows {
		if !w.begin(start, min(tileRows, w.seg.Rows-start)) {
			continue
		}
		w.settle()
		k := len(w.f.sel)
		for i, x := range nodes {
			v := w.eval(x)
			copy(r.cols[i].v[at:at+k], v.v)
			if x.nullable {
				if v.nulls == nil {
					v.nulls = noNulls[:k]
				}
				copy(r.cols[i].nulls[at:at+k], v.nulls)
			}
		}
		at += k
		if w.err != nil {
			return
		}
		w.core.Next()
	}
}
