package gpu

import (
	"cmp"
	"maps"
	"slices"

	"pgaccel/gpu/program"
)

// stock decides which columns of tables that do not fit are kept nevertheless: those that most
// scans read, as many as there is room for, and the same for many scans. To keep what came last, as
// caches do, is no use to queries in turns: each finds what it needs replaced by what the last one
// brought, and the same bytes cross the bus, but piece by piece. So scans take what nobody has, and
// evict nothing that was used lately; who has how much is decided anew where that would spare the bus
// much more. Under dev.mu.
type stock struct {
	columns map[uint64]*stocked // by the ID that the table's first segment has
	scans   int
	planned int64 // bytes that there were to be shared out when that was decided last
}

// stocked is a column of a table that does not fit.
type stocked struct {
	heat  float64 // scans that read it; those of stockScans ago count half
	bytes int64   // of device memory, of all segments
	quota int64   // of them, that may be kept
	kept  int64   // of them, that are
}

const (
	// stockScans is after how many scans it is looked whether other columns are the ones to keep, and
	// stockGain how much more that must spare: all of them stream once more for it.
	stockScans = 16
	stockGain  = 1.1
	// stockCold is the heat of what is forgotten.
	stockCold = 0.01
	// staleTicks is for how many queries what is not used is safe from scans of tables that do not fit.
	staleTicks = 64
	// stockShare is the part of the budget that columns leave free: queries have tables of groups there,
	// layouts descriptors.
	stockShare = 8
)

// stockID is the name of a column in all versions of its table; 0: it has none.
func stockID(q *program.Query, column int) uint64 {
	if len(q.Segments) == 0 {
		return 0
	}
	return q.Segments[0].Columns[column].ID
}

// note counts a scan of a query's columns.
func (d *dev) note(q *program.Query, formats []format) {
	s := &d.stock
	if s.columns == nil {
		s.columns = map[uint64]*stocked{}
	}
	for c := range formats {
		id := stockID(q, c)
		if id == 0 || !formats[c].keyed {
			continue
		}
		col := s.columns[id]
		if col == nil {
			col = &stocked{}
			s.columns[id] = col
		}
		col.heat++
		col.bytes = formats[c].bytes
		if col.quota == 0 {
			col.quota = max(min(col.bytes, d.stockRoom()-s.quotas()), 0)
		}
	}
	s.scans++
	room := d.stockRoom()
	switch {
	case s.planned == 0:
		s.planned = room
	case s.scans%stockScans == 0:
		d.forget()
		d.restock(d.stockRoom())
		for id, col := range s.columns {
			if col.heat /= 2; col.heat < stockCold && col.kept == 0 {
				delete(s.columns, id)
			}
		}
	case room > s.planned+d.setBytes():
		d.restock(room)
	}
}

// quotas is what all columns together may have.
func (s *stock) quotas() (bytes int64) {
	for _, col := range s.columns {
		bytes += col.quota
	}
	return bytes
}

// stockRoom is what there is to be shared out: nobody's, or kept already.
func (d *dev) stockRoom() int64 {
	room := d.cache.room() - d.budget/stockShare
	for _, col := range d.stock.columns {
		room += col.kept
	}
	if !slices.ContainsFunc(d.sets, (*bufferSet).there) {
		room -= d.setBytes()
	}
	return max(room, 0)
}

// restock decides which columns may be kept, the most read first. Where that changes much, all come
// once more.
func (d *dev) restock(room int64) {
	s := &d.stock
	s.planned = max(room, 1)
	ids := slices.SortedFunc(maps.Keys(s.columns), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(s.columns[b].heat, s.columns[a].heat), cmp.Compare(a, b))
	})
	quotas := make([]int64, len(ids))
	var spared, would float64
	left := room
	for i, id := range ids {
		col := s.columns[id]
		spared += col.heat * float64(min(col.quota, col.bytes))
		quotas[i] = min(left, col.bytes)
		left -= quotas[i]
		would += col.heat * float64(quotas[i])
	}
	if would <= stockGain*spared {
		return
	}
	for i, id := range ids {
		s.columns[id].quota = quotas[i]
	}
	d.cache.epoch++ // what layouts stream is to be kept
	for _, l := range d.layouts {
		if l.it.refs == 0 && !l.it.dead {
			d.cache.drop(l.it) // it keeps columns
		}
	}
	for _, it := range d.cache.items { // all of it, or what is free lay in pieces between them
		if it.of != nil && it.refs == 0 {
			d.cache.remove(it)
		}
	}
}

// forget gives up what no query has read for long: segments that have changed, mostly, which count
// against the quota of their column.
func (d *dev) forget() {
	c := d.cache
	for _, l := range d.layouts {
		if l.it.refs == 0 && !l.it.dead && l.it.tick+staleTicks < c.tick {
			c.drop(l.it)
		}
	}
	for _, it := range c.items {
		if it.of != nil && it.refs == 0 && it.tick+staleTicks < c.tick {
			c.remove(it)
		}
	}
}

// stocked are the columns of a part, as far as they are known: those of what a lookup is built of
// are not.
func (d *dev) stocked(p *part) []*stocked {
	of := make([]*stocked, len(p.formats))
	for c := range of {
		of[c] = d.stock.columns[stockID(p.q, c)]
	}
	return of
}

// keep makes room for columns of a segment that are not there, where they may be kept: they come with
// those that stream.
func (w *writer) keep(fills []fill, places []place) {
	j := w.j
	d := j.d
	if w.stocked == nil || w.stockedOf != fills[0].p {
		w.stocked, w.stockedOf = d.stocked(fills[0].p), fills[0].p
	}
	for i := range fills {
		f, at := &fills[i], &places[i]
		if f.it != nil || at.bytes == 0 || at.key.id == 0 {
			continue
		}
		if it := d.cache.items[at.key]; it != nil {
			if j.brings(it.load) { // with an earlier fill of this job
				f.it = j.get(at.key)
				j.pins = append(j.pins, f.it)
			}
			continue
		}
		var of *stocked // none of live rows, which are small
		if f.column >= 0 {
			if of = w.stocked[f.column]; of == nil || of.kept+at.bytes > of.quota {
				continue
			}
		}
		if w.full {
			continue
		}
		it := d.cache.putStale(at.key, at.bytes, d.budget/stockShare, loadOf(&j.later), staleTicks)
		if it == nil {
			w.full = true
			continue
		}
		j.later.items = append(j.later.items, it)
		j.pins = append(j.pins, it)
		if it.of = of; of != nil {
			of.kept += it.span.bytes
		}
		f.it, f.fresh = it, true
		w.brought = true
	}
}
