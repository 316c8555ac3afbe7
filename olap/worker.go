package olap

import (
	"math/bits"

	"pgaccel/colstore"
	"pgaccel/internal/processors"
	"pgaccel/internal/simd"
	"pgaccel/vector"
)

// tileRows is the number of rows that are worked on at a time: their columns stay
// in the first-level cache.
const tileRows = 1024

// gatherShare: with fewer than 1/gatherShare of a tile's rows selected, their
// values are picked from the encoded column instead of decoding all of it.
const gatherShare = 8

// worker executes one pipeline on one goroutine, a tile at a time.
type worker struct {
	p       *pipeline
	seg     *colstore.Segment
	segment int // position of seg
	morsel  int // of seg
	start   int // first row of the tile within seg
	n       int // rows of the tile
	tile    int // serial number of the tile
	core    processors.Turn

	// counts has the bits of the segment's rows that can be selected: those that live and
	// that no index excludes; nil where all can.
	counts []uint64
	index  indexed

	// live has the bits of the tile's rows that count; nil where all do. Until they
	// are written out as the selection (settle), pending is set: a range needs them
	// as bits.
	live    []uint64
	pending bool
	// filtered is set when all steps have been applied to the tile.
	filtered bool

	decoded []tileColumn
	frames  []*frame
	f       *frame // the current one
	epochs  int
	bufs    []buffers    // by node id
	entries [][]uint32   // by probe: the entry that each row of the tile met
	owed    uint64       // probes whose entries have not been written yet
	fan     *fanOut      // where a row may meet several partners
	sets    []segmentSet // by step
	next    []uint16     // the selection being made
	bits    [tileRows / 64]uint64
	alive   [tileRows / 64]uint64 // live's memory
	err     error
}

// tileColumn is a column of the current tile, decoded whole.
type tileColumn struct {
	tile   int
	v      []int64
	nulls  []uint8
	spread bool // nulls are written
}

// frame is a selection and the columns read under it. An expression's arm that is
// evaluated for some rows only has a frame of its own.
type frame struct {
	sel   []uint16 // selected positions in the tile, ascending; len is their number
	full  bool     // all rows of the tile
	epoch int      // changes with sel
	cols  []denseColumn
	room  []uint16
}

type denseColumn struct {
	epoch int
	v     []int64
	nulls []uint8
	vec   vec
}

type buffers struct {
	v      []int64
	nulls  []uint8
	filled bool // constants
	span   span // nodeMap with a unit: the last one met
	rows   *rowTree
	// decimals are the values of a nodeTree where codes are not needed (worker.decimals).
	decimals []vector.Decimal
}

func newWorker(p *pipeline) *worker {
	w := &worker{p: p, decoded: make([]tileColumn, len(p.tab.Meta.Columns)), bufs: make([]buffers, p.c.nodes),
		entries: make([][]uint32, len(p.probes)), next: make([]uint16, tileRows), tile: 0}
	for i := range w.entries {
		w.entries[i] = make([]uint32, tileRows)
	}
	w.f = w.frame(0)
	if p.many >= 0 {
		w.fan = newFanOut(w)
	}
	return w
}

func (w *worker) frame(depth int) *frame {
	for len(w.frames) <= depth {
		w.frames = append(w.frames, &frame{cols: make([]denseColumn, len(w.p.tab.Meta.Columns)), room: make([]uint16, tileRows)})
	}
	return w.frames[depth]
}

var allRows = func() (s [tileRows]uint16) {
	for i := range s {
		s[i] = uint16(i)
	}
	return
}()

// begin makes rows [start, start+n) of a segment the current tile, with those
// selected that count. It reports whether there are any.
func (w *worker) begin(start, n int) bool {
	w.start, w.n = start, n
	w.tile++
	w.selectAll()
	w.live, w.pending, w.filtered = nil, false, false
	w.owed = 0
	if w.fan != nil {
		w.fan.end(w)
	}
	return w.counts == nil || w.beginLive()
}

// beginLive finds the rows of the tile that count, where some of the segment do not.
func (w *worker) beginLive() bool {
	words := w.alive[:(w.n+63)/64]
	copy(words, w.counts[w.start>>6:])
	if r := uint(w.n) & 63; r != 0 {
		words[len(words)-1] &= 1<<r - 1
	}
	count := 0
	for _, b := range words {
		count += bits.OnesCount64(b)
	}
	if count < w.n {
		w.live, w.pending = words, true
	}
	return count > 0
}

// settle makes the rows that count the selection, unless that has happened.
func (w *worker) settle() {
	if w.pending {
		w.pending = false
		w.store(w.live)
	}
}

func (w *worker) selectAll() {
	w.epochs++
	w.f.epoch = w.epochs
	w.f.sel = allRows[:w.n]
	w.f.full = true
}

// selected makes the first k positions of w.next the selection.
func (w *worker) selected(k int) {
	f := w.f
	if f.full && k == w.n {
		return
	}
	if len(f.sel) == k {
		return
	}
	f.room, w.next = w.next, f.room
	f.sel = f.room[:k]
	f.full = false
	w.epochs++
	f.epoch = w.epochs
}

func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = asForward(err)
	}
}

// buffer returns the node's values, len n.
func (w *worker) buffer(x *node, n int) []int64 {
	b := &w.bufs[x.id]
	if b.v == nil {
		b.v = make([]int64, tileRows)
	}
	return b.v[:n]
}

// nullBuffer returns the node's nulls, len n, with any content.
func (w *worker) nullBuffer(x *node, n int) []uint8 {
	b := &w.bufs[x.id]
	if b.nulls == nil {
		b.nulls = make([]uint8, tileRows)
	}
	return b.nulls[:n]
}

// whole returns column x.col of the whole tile.
func (w *worker) whole(x *node) vec {
	if w.fan != nil && w.fan.active {
		return w.fan.whole(w, x)
	}
	d := &w.decoded[x.col]
	c := &w.seg.Columns[x.col]
	if d.v == nil {
		d.v = make([]int64, tileRows)
		d.nulls = make([]uint8, tileRows)
	}
	if d.tile != w.tile {
		d.tile, d.spread = w.tile, false
		c.Data.Decode(d.v[:w.n], w.start)
	}
	r := vec{v: d.v[:w.n]}
	if w.hasNulls(x.col) {
		if !d.spread {
			d.spread = true
			simd.SpreadNulls(d.nulls[:w.n], d.v, c.Nulls[w.start>>6:], x.lo) // tiles begin with a word
		}
		r.nulls = d.nulls[:w.n]
	}
	return r
}

// hasNulls reports whether selected rows may be null in a column. Those of a strict column
// are gone once the tile is filtered; what stands for them then means nothing.
func (w *worker) hasNulls(col int) bool {
	return w.seg.Columns[col].NullCount > 0 && !(w.filtered && w.p.strict[col])
}

// column returns the values of column x.col for the selected rows.
func (w *worker) column(x *node) vec {
	f := w.f
	if f.full {
		return w.whole(x)
	}
	d := &f.cols[x.col]
	if d.epoch == f.epoch {
		return d.vec
	}
	if d.v == nil {
		d.v = make([]int64, tileRows)
		d.nulls = make([]uint8, tileRows)
	}
	k := len(f.sel)
	c := &w.seg.Columns[x.col]
	if w.decoded[x.col].tile != w.tile && k*gatherShare < w.n && (w.fan == nil || !w.fan.active) {
		d.vec = vec{v: d.v[:k]}
		c.Data.Gather(d.vec.v, w.start, f.sel)
		if w.hasNulls(x.col) {
			d.vec.nulls = d.nulls[:k]
			for i, s := range f.sel {
				p := w.start + int(s)
				b := uint8(c.Nulls[p>>6] >> (uint(p) & 63) & 1)
				d.nulls[i] = b
				if b != 0 {
					d.v[i] = x.lo
				}
			}
		}
	} else {
		all := w.whole(x)
		d.vec = vec{v: d.v[:k]}
		simd.Pick(d.vec.v, all.v, f.sel)
		if all.nulls != nil {
			d.vec.nulls = d.nulls[:k]
			pick(d.vec.nulls, all.nulls, f.sel)
		}
	}
	d.epoch = f.epoch
	return d.vec
}

func pick[T any](dst, src []T, sel []uint16) {
	dst = dst[:len(sel)]
	for i, s := range sel {
		dst[i] = src[s]
	}
}

// on evaluates x for the rows at the positions pos of the current selection. The
// result stands in the order of pos.
func (w *worker) on(x *node, pos []uint16, depth int) vec {
	outer := w.f
	in := w.frame(depth + 1)
	in.sel = in.room[:len(pos)]
	pick(in.sel, outer.sel, pos)
	in.full = false
	w.epochs++
	in.epoch = w.epochs
	w.f = in
	r := w.evalAt(x, depth+1)
	w.f = outer
	return r
}
