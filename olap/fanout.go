package olap

import (
	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// A join on no unique key (plan.StarJoin.Many) lets a row meet several partners. So does the
// join to the table on which that one hangs: its rows have been multiplied. The lookup
// finds the number of the key, which has its partners side by side:
//
//	key --lookup--> number g;  partners[first[g]:first[g+1]] are entries
//
// The steps that do not depend on the partner run on the table's tiles as ever. What
// remains of a tile is then written out as pairs of a row and a partner, 1,024 at a
// time, in the order of the rows; these are tiles in their own right, on which the other
// steps and the sink run without knowing. So a row with 100,000 partners costs
// what 100,000 rows cost.
//
//	tile    rows   0 1 2 3 4 ...      selected: 1, 4    partners: 2 and 3
//	fanned  pairs  0 1 2 3 4          source:   1 1 4 4 4
//
// Columns of a fanned tile are picked from the tile's.

// partners are the rows of a joined table by the number of their key.
type partners struct {
	first []uint32 // by number, and one more: where its partners begin
	entry []uint32
	most  uint32 // the most partners of one key
}

// fan returns the mean number of partners of a key.
func (p *partners) fan() float64 { return float64(len(p.entry)) / float64(max(len(p.first)-1, 1)) }

// fanPlan splits the steps into those before a join on no unique key has its partners,
// itself included, and those after.
func (p *pipeline) fanPlan() {
	p.many, p.fanned = -1, len(p.steps)
	for i, b := range p.probes {
		if b.many {
			p.many = i
		}
	}
	if p.many < 0 {
		return
	}
	depends := uint64(1) << uint(p.many)
	var before, after []step
	for _, s := range p.steps {
		if s.needs&depends == 0 {
			before = append(before, s)
			continue
		}
		if after = append(after, s); s.kind == program.StepProbe {
			depends |= 1 << uint(s.probe)
		}
	}
	p.fanned = len(before)
	p.steps = append(before, after...)
}

// fanOut is a worker's state of writing out pairs.
type fanOut struct {
	active  bool       // the current tile is fanned
	rows    int        // of the tile that is being fanned out
	base    []uint16   // its selection
	next    int        // position in base of the row whose partners come next
	done    uint32     // partners of that row that have been written out
	real    [][]uint32 // entries by the positions of the tile, by probe
	entries [][]uint32 // entries by the positions of the fanned tile, by probe
	source  [tileRows]uint16
	serial  int          // number of the fanned tile
	cols    []tileColumn // of the fanned tile
}

func newFanOut(w *worker) *fanOut {
	f := &fanOut{real: w.entries, cols: make([]tileColumn, len(w.decoded))}
	for range w.entries {
		f.entries = append(f.entries, make([]uint32, tileRows))
	}
	return f
}

// end makes a tile of the table the current one again.
func (f *fanOut) end(w *worker) {
	f.active = false
	w.entries = f.real
}

// begin fans out what is selected of the current tile, and makes the first fanned tile
// with rows that pass the current one. Where there is none, nothing is selected.
func (f *fanOut) begin(w *worker) {
	if len(w.f.sel) == 0 {
		return
	}
	f.active, f.rows, f.next, f.done = true, w.n, 0, 0
	f.base = append(f.base[:0], w.f.sel...)
	w.entries = f.entries
	w.fanNext()
}

// fanNext makes the next fanned tile with rows that pass the current one; false where
// there is none left.
func (w *worker) fanNext() bool {
	f := w.fan
	if f == nil || !f.active {
		return false
	}
	for w.err == nil {
		if w.err = w.p.x.ctx.Err(); w.err != nil {
			break
		}
		n := f.fill(w)
		if n == 0 {
			break
		}
		w.n = n
		f.serial++
		w.selectAll()
		for i := w.p.fanned; i < len(w.p.steps) && len(w.f.sel) > 0; i++ {
			w.step(&w.p.steps[i])
		}
		if len(w.f.sel) > 0 {
			return true
		}
	}
	w.f.sel, w.f.full = w.f.room[:0], false
	w.epochs++
	w.f.epoch = w.epochs
	return false
}

// fill writes the next pairs out and returns their number.
func (f *fanOut) fill(w *worker) int {
	many := w.p.probes[w.p.many].lut.many
	numbers, out := f.real[w.p.many], f.entries[w.p.many]
	n := 0
	for f.next < len(f.base) && n < tileRows {
		row := f.base[f.next]
		g := numbers[row]
		have := many.entry[many.first[g]+f.done : many.first[g+1]]
		k := copy(out[n:], have)
		for i := n; i < n+k; i++ {
			f.source[i] = row
		}
		n += k
		f.done += uint32(k)
		if k == len(have) {
			f.next++
			f.done = 0
		}
	}
	for i, b := range w.p.probes {
		if i != w.p.many && b.lut != nil && len(b.lut.outs) > 0 {
			pick(f.entries[i][:n], f.real[i], f.source[:n])
		}
	}
	return n
}

// whole returns column x.col of the fanned tile.
func (f *fanOut) whole(w *worker, x *node) vec {
	c := &f.cols[x.col]
	n := w.n
	null := w.hasNulls(x.col)
	if c.v == nil {
		c.v, c.nulls = make([]int64, tileRows), make([]uint8, tileRows)
	}
	if c.tile != f.serial {
		c.tile = f.serial
		f.active, w.n = false, f.rows
		all := w.whole(x)
		f.active, w.n = true, n
		pick(c.v[:n], all.v, f.source[:n])
		if null {
			pick(c.nulls[:n], all.nulls, f.source[:n])
		}
	}
	r := vec{v: c.v[:n]}
	if null {
		r.nulls = c.nulls[:n]
	}
	return r
}

// many checks the joins on no unique key: there may be one of them.
func (s *support) many(q *plan.Star) {
	n := 0
	for _, j := range q.Joins {
		if !j.Many {
			continue
		}
		if n++; n > 1 {
			s.no(plan.ReasonShape, "several joins on no unique key")
		}
	}
}
