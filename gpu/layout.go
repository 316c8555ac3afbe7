package gpu

import (
	"slices"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// layout is where the columns of a query lie that do not fit: descriptors, orders to transcode, which
// segments stream through, and where to in a set of buffers, which others share with it. A query that
// brought nothing that is kept leaves it behind as an item of the cache, which keeps the columns that are
// resident as an image does; the next with the same columns of the same version takes it as it is, and
// looks for none of its thousands of columns. One query at a time has it.
type layout struct {
	it       *item
	segments []program.Segment // itself: the next query's words are then in the same place
	// donors are of a layout that several queries use together, whose segments are its own: for
	// these, then for each column, where it was found in the same place.
	donors [][]donor
	table  uint64
	widths []int8
	list   []uint32
	epoch  uint64 // of the cache: no column came since
	room   int64  // bytes that nothing was kept in; with more of them another layout is better

	buffers          program.Buffers // Heads and Columns
	resident         []uint32
	streams          []*chunk
	slots            []device.Pointer
	set              *item // the buffers; nil: they are the layout's own
	bufferSize, read int64 // read: Stats.BytesRead
	orders, lists    device.Pointer
}

// layoutsMax is how many layouts are remembered; memory bounds them, too.
const layoutsMax = 32

// is says whether a layout is one for a query.
func (l *layout) is(k *kernel, list []uint32) bool {
	q := k.q
	return l.table == q.TableID && len(l.segments) == len(q.Segments) && &l.segments[0] == &q.Segments[0] &&
		slices.Equal(l.widths, widths(k.formats)) && slices.Equal(l.list, list)
}

// findLayout returns the one that a query left behind, pinned by the job.
func (j *job) findLayout(q *program.Query, list []uint32) *layout {
	k := j.kernelOf(q)
	if !j.explicit || k == nil || q.TableID == 0 || len(q.Segments) == 0 {
		return nil
	}
	return j.pinLayout(func(l *layout) bool { return l.is(k, list) })
}

// pinLayout returns the first of those that is says are the right ones, pinned by the job: one that
// nobody uses, and that is as good as a new one.
func (j *job) pinLayout(is func(*layout) bool) *layout {
	d := j.d
	d.layouts = slices.DeleteFunc(d.layouts, func(l *layout) bool {
		if l.set != nil && l.set.dead && l.it.refs == 0 {
			d.cache.drop(l.it)
		}
		return l.it.dead
	})
	for _, l := range d.layouts {
		if l.it.refs > 0 || l.set != nil && (j.set == nil || l.set != j.set.it) || !is(l) {
			continue
		}
		c := d.cache
		if l.epoch != c.epoch || c.room() > l.room+l.bufferSize {
			c.drop(l.it)
			continue
		}
		c.pin(l.it)
		j.pins = append(j.pins, l.it)
		return l
	}
	return nil
}

// take has a query use a layout.
func (j *job) take(l *layout, p *part) {
	p.b.Heads, p.b.Columns = l.buffers.Heads, l.buffers.Columns
	p.resident, p.streams = l.resident, l.streams
	j.slots, j.bufferSize, j.orders, j.lists = l.slots, l.bufferSize, l.orders, l.lists
	j.stats.BytesRead += l.read
	j.streamed, j.layout = true, l
}

// giveBack lets go of a layout that is not used after all.
func (j *job) giveBack(l *layout) {
	i := slices.Index(j.pins, l.it)
	j.pins = slices.Delete(j.pins, i, i+1)
	j.d.cache.unpin(l.it)
}

// newLayout remembers what columns made, where that is all there is to be made.
func (j *job) newLayout(p *part, w *writer, read int64) {
	q := p.q
	if !j.explicit || len(p.streams) == 0 || len(j.parts) > 1 || len(j.chunks) > 0 || w.brought || w.unnamed || q.TableID == 0 {
		return
	}
	for _, f := range p.formats {
		if !f.keyed {
			return
		}
	}
	var set *item
	if j.fromSet {
		set = j.set.it
	}
	j.layout = &layout{
		segments: q.Segments, table: q.TableID, widths: widths(p.formats), list: p.list, epoch: j.d.cache.epoch,
		buffers: program.Buffers{Heads: p.b.Heads, Columns: p.b.Columns}, resident: p.resident, streams: p.streams,
		slots: j.slots, set: set, bufferSize: j.bufferSize, orders: j.orders, lists: j.lists, read: read,
	}
}

// leaveLayout has the job's layout, whose query ended well, kept for others. What it keeps is
// no longer the job's.
func (j *job) leaveLayout() {
	l, c := j.layout, j.d.cache
	// Dead is what found no room together with the rest of its segment.
	pins, parts := j.pins[:j.layoutPins:j.layoutPins], make([]*item, 0, len(j.pins)-j.layoutPins)
	for _, it := range j.pins[j.layoutPins:] {
		if it.dead || it == l.set {
			pins = append(pins, it)
		} else {
			parts = append(parts, it)
		}
	}
	for _, o := range j.d.layouts {
		if o.table != l.table && o.it.refs == 0 && slices.EqualFunc(o.segments[0].Columns, l.segments[0].Columns, func(a, b program.SegmentColumn) bool { return a.ID == b.ID }) {
			c.drop(o.it) // of another version of the table: it keeps what changed since
		}
	}
	if len(j.d.layouts) >= layoutsMax {
		old := j.d.layouts[0]
		j.d.layouts = slices.Delete(j.d.layouts, 0, 1)
		if !old.it.dead && old.it.refs == 0 {
			c.drop(old.it)
		}
	}
	j.d.layoutID++
	l.it = c.hold(itemKey{kind: itemLayout, id: j.d.layoutID}, slices.Clone(j.temps[j.layoutTemps:]))
	c.setParts(l.it, parts)
	j.pins, j.temps = append(pins, l.it), j.temps[:j.layoutTemps]
	j.d.layouts = append(j.d.layouts, l)
	l.room = c.room()
}
