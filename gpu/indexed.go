package gpu

import (
	"encoding/binary"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// Bitmap indexes. Those of the columns that a query's Indexed names are kept as columns are, each with an
// image: where every segment's index lies. So a query that finds the image whole costs the host nothing by
// segment. One launch before the scan asks them, and leaves the rows that may pass as if others were not
// live. Where columns stream through, the scan is bound by their copies, and the heads of its segments come
// with them: then there is no such launch.

// indexLine tells the versions of a column's indexes from those of the column, in dev.lines.
const indexLine = 1 << 63

// indexed makes room for what indexes leave of a part's live rows.
func (j *job) indexed(p *part) error {
	x := p.q.Indexed
	if x == nil || j.explicit || j.unindexed || len(p.list) == 0 || p.q.TableID == 0 {
		return nil
	}
	n := &program.Narrowing{Indexes: make([]device.Pointer, len(x.Columns))}
	if len(p.list) < len(p.q.Segments) {
		j.add(func(to []byte) []byte { return program.AppendList(to, p.list) }, &n.List)
	}
	var err error
	if n.Narrowed, err = j.alloc(program.SegmentHeadBytes * int64(len(p.q.Segments))); err != nil {
		return err
	}
	if n.Bitmaps, err = j.alloc(program.NarrowBytes(len(p.list))); err != nil {
		return err
	}
	if n.Alive, err = j.alloc(program.AliveBytes(len(p.list))); err != nil {
		return err
	}
	p.narrows = n
	return nil
}

// index returns the indexes that an image is of, nil where it is of a column or of segments: images are
// numbered by the query's columns, then by those of Indexed.
func (k *kernel) index(image int) *program.IndexedColumn {
	if image < len(k.q.Columns) {
		return nil
	}
	return &k.q.Indexed.Columns[image-len(k.q.Columns)]
}

// reads reports whether an image is of a column that the query reads, not of the segments or of indexes.
func (k *kernel) reads(image int) bool { return image >= 0 && image < len(k.q.Columns) }

// indexKey names an image of indexes, and the line of its versions.
func indexKey(q *program.Query, x *program.IndexedColumn) (key itemKey, line uint64) {
	return itemKey{kind: itemIndexes, id: x.Version, table: q.TableID, n: int32(len(q.Segments))},
		q.Segments[0].Columns[x.Column].ID | indexLine
}

// appendIndex appends to an image where an index lies; 0: there is none.
func appendIndex(b []byte, at device.Pointer) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(at))
}

// narrow appends the launch, after which the part's scan reads what it leaves.
func (p *part) narrow(c []device.Command) []device.Command {
	n := p.narrows
	if n == nil || len(p.streams) > 0 {
		return c
	}
	n.Heads, n.Bits, n.Sets = p.b.Heads, p.b.Bits, p.b.Sets
	p.b.Heads = n.Narrowed
	if len(p.q.Segments) <= program.AliveSegments {
		p.b.Alive = n.Alive
	}
	most := 0
	for _, img := range p.indexes {
		most = max(most, img.items)
	}
	p.j.stats.Indexed += min(most, len(p.list))
	return append(c, program.Narrow(p.j.lanes, p.q, len(p.list), n))
}
