package gpu

import (
	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// Bitmap indexes. What a query's Indexed has of a segment's atoms is kept as columns are. One
// launch before the scan decodes what counts of them, and leaves the rows that may pass as if
// others were not live. Where columns stream through, the scan is bound by their copies, and the
// heads of its segments come with them: then there is no such launch.

// indexed finds or makes room for the atoms that a part reads, and for what is left of live rows.
func (j *job) indexed(p *part) error {
	x := p.q.Indexed
	if x == nil || j.explicit || len(p.list) == 0 {
		return nil
	}
	orders, err := program.PackIndexed(x, p.list, j.atoms)
	if err != nil {
		return err
	}
	n := &program.Narrowing{}
	j.add(orders.Segments, &n.Segments)
	j.add(orders.Terms, &n.Terms)
	j.add(orders.Parts, &n.Parts)
	if n.Narrowed, err = j.alloc(program.SegmentHeadBytes * int64(len(p.q.Segments))); err != nil {
		return err
	}
	if n.Bitmaps, err = j.alloc(program.NarrowBytes(len(p.list))); err != nil {
		return err
	}
	p.narrows = n
	return nil
}

// atoms returns where a term's atoms are, or are about to be.
func (j *job) atoms(t *program.IndexTerm) (device.Pointer, error) {
	if len(t.Parts) == 0 {
		return 0, nil
	}
	data := bytesOf(t.Atoms)
	if t.ID == 0 {
		at, err := j.alloc(int64(len(data)))
		if err == nil {
			j.write(at, data)
		}
		return at, err
	}
	key := itemKey{kind: itemIndex, id: t.ID}
	it := j.get(key)
	if it == nil {
		var err error
		if it, err = j.put(key, int64(len(data)), &j.own); err != nil {
			return 0, err
		}
		j.write(it.addr(), data)
	}
	j.pins = append(j.pins, it)
	return it.addr(), nil
}

// narrow appends the launch, after which the part's scan reads what it leaves.
func (p *part) narrow(c []device.Command) []device.Command {
	n := p.narrows
	if n == nil || len(p.streams) > 0 {
		return c
	}
	n.Heads = p.b.Heads
	p.b.Heads, p.b.Exact = n.Narrowed, p.q.Indexed.Exact
	for _, pos := range p.list {
		x := p.q.Indexed.Terms[pos]
		if len(x) > 0 {
			p.j.stats.Indexed++
		}
		for i := range x {
			for _, part := range x[i].Parts {
				p.j.stats.BytesRead += 8 * int64(part.To-part.From)
			}
		}
	}
	return append(c, program.Narrow(p.j.lanes, len(p.list), n))
}
