package gpu

import (
	"slices"
	"sync"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// image is the descriptors of a column in the segments of a table, or of the segments
// themselves: an array in device memory by position, filled as queries need it. Where it is
// kept it keeps what it describes, so that a query that finds it whole touches no segment.
type image struct {
	it     *item // nil: of one query
	base   device.Pointer
	column int // -1: the segments themselves; from the query's columns on, indexes of one (kernel.index)
	stride int64
	have   []uint64 // positions that are filled
	filled int
	bytes  int64   // of the items that it describes
	items  int     // that these are
	loads  []*load // that bring some of them
}

// versionsMax is how many images of a column are kept, of a table's versions.
const versionsMax = 4

func (img *image) has(pos uint32) bool { return img.have[pos/64]>>(pos%64)&1 != 0 }

func (img *image) set(pos uint32) {
	img.have[pos/64] |= 1 << (pos % 64)
	img.filled++
}

func (img *image) settled(l *load) {
	img.loads = slices.DeleteFunc(img.loads, func(o *load) bool { return o == l })
}

// image returns the image of a column (-1: of the segments), kept where that is possible and
// wanted, with no more in it than there was.
func (j *job) image(p *part, column int) (*image, error) {
	q := p.q
	stride := int64(program.ColumnSegmentBytes)
	x := p.index(column)
	switch {
	case column < 0:
		stride = program.SegmentHeadBytes
	case x != nil:
		stride = program.IndexPointerBytes
	}
	img := &image{column: column, stride: stride}
	bytes := max(stride*int64(len(q.Segments)), 16)
	var key itemKey
	var line uint64
	named := !j.explicit
	if x != nil {
		key, line = indexKey(q, x)
	} else if column < 0 {
		key, named = itemKey{kind: itemRows, id: 1, table: q.TableID, n: int32(len(q.Segments))}, named && q.TableID != 0
	} else if named {
		if key, named = imageKey(q, column); named {
			named = p.formats[column].keyed
		}
		line = key.id
	}
	if !named {
		var err error
		img.base, err = j.alloc(bytes)
		return img, err
	}
	d := j.d
	if it := d.cache.get(key); it != nil {
		j.pins = append(j.pins, it)
		return it.data.(*image), nil
	}
	if column < 0 && slices.ContainsFunc(q.Segments, func(s program.Segment) bool { return s.Live != nil && s.LiveID == 0 }) {
		var err error
		img.base, err = j.alloc(bytes)
		return img, err
	}
	it, err := d.cache.put(key, bytes, nil)
	if it == nil {
		if err == nil {
			err = errNoRoom
		}
		return nil, err
	}
	j.pins = append(j.pins, it)
	img.it, img.base, it.data = it, it.addr(), img
	img.have = make([]uint64, (len(q.Segments)+63)/64)
	d.cache.setParts(it, make([]*item, len(q.Segments)))
	if column >= 0 {
		if versions := d.lines[line]; len(versions) > 0 {
			j.inherit(img, p, versions[len(versions)-1])
		}
		d.addVersion(line, it)
	}
	return img, nil
}

// inherit fills an image with what that of another version of the table has: the segments
// that are the same. Their descriptors are copied within the device.
func (j *job) inherit(img *image, p *part, last *item) {
	old := last.data.(*image)
	if last.dead || len(old.loads) > 0 || old.filled == 0 {
		return
	}
	q := p.q
	n := min(len(last.parts), len(q.Segments))
	for pos := range n {
		it := last.parts[pos]
		if it == nil {
			continue
		}
		if key, _ := (&fill{p: p, column: img.column, pos: uint32(pos)}).item(); it.key != key {
			continue
		}
		it.refs++ // it has one already, the other image's
		img.it.parts[pos] = it
		img.set(uint32(pos))
		img.bytes += it.span.bytes
		img.items++
	}
	if img.filled == 0 {
		return
	}
	j.d.cache.pin(last)
	j.pins = append(j.pins, last)
	j.direct = append(j.direct, direct{dst: img.base, from: old.base, bytes: int64(n) * img.stride})
	img.needs(loadOf(&j.own))
}

// needs notes that an image that is kept is not to be read before a load has ended well.
func (img *image) needs(l *load) {
	if !slices.Contains(img.loads, l) {
		img.loads = append(img.loads, l)
		l.images = append(l.images, img)
	}
}

// addVersion notes that an image of a column came, and drops the oldest of too many that no
// query reads: their tables have changed.
func (d *dev) addVersion(column uint64, it *item) {
	c := d.cache
	line := slices.DeleteFunc(d.lines[column], func(o *item) bool { return c.items[o.key] != o })
	for i := 0; len(line) >= versionsMax && i < len(line); {
		if line[i].refs > 0 {
			i++
			continue
		}
		c.remove(line[i])
		line = slices.Delete(line, i, i+1)
	}
	if len(d.lines) > 1024+2*len(c.items) {
		for id, l := range d.lines {
			if !slices.ContainsFunc(l, func(o *item) bool { return c.items[o.key] == o }) {
				delete(d.lines, id)
			}
		}
	}
	d.lines[column] = append(line, it)
}

// fill is a descriptor that is to be made.
type fill struct {
	p   *part
	img *image
	// column is img's in the query of p; -1: the segments; from its columns on, indexes. An image that is
	// kept serves queries that have its column in other places.
	column int
	pos    uint32
	// What it describes: its name, its size in device memory, itself; nil: not there yet.
	key   itemKey
	bytes int64
	it    *item
	// fresh is set where the item was made for this fill: it is still to be brought.
	fresh bool
}

// fillPool has lists of fills: that of a large table is a megabyte.
var fillPool = sync.Pool{New: func() any { return new([]fill) }}

// columns finds or makes room for the columns of all parts.
func (j *job) columns() error {
	read := j.stats.BytesRead
	j.layoutPins, j.layoutTemps = len(j.pins), len(j.temps)
	pooled := fillPool.Get().(*[]fill)
	fills := (*pooled)[:0]
	defer func() {
		clear(fills)
		*pooled = fills
		fillPool.Put(pooled)
	}()
	for _, p := range j.parts {
		columns, indexes := len(p.q.Columns), 0
		if p.narrows != nil {
			indexes = len(p.narrows.Indexes)
		}
		images := make([]*image, 1+columns+indexes)
		p.b.Columns = make([]device.Pointer, columns)
		for i := range images {
			img, err := j.image(p, i-1)
			if err != nil {
				return err
			}
			switch images[i] = img; {
			case i == 0:
				p.b.Heads = img.base
			case i <= columns:
				p.b.Columns[i-1] = img.base
			default:
				p.narrows.Indexes[i-1-columns] = img.base
				p.indexes = append(p.indexes, img)
			}
		}
		fills = j.missing(fills, p, images)
	}
	if len(fills) == 0 {
		return nil
	}
	// Buffers come first: without them nothing can be brought, and with one of them copies
	// pause while what it has is computed. Orders to transcode are for all that may be streamed.
	need, most, segment, orders := int64(0), int64(0), int64(0), 0
	for i := range fills {
		f := &fills[i]
		if i == 0 || f.pos != fills[i-1].pos || f.p != fills[i-1].p {
			segment = 0
		}
		n := j.bufferBytes(f)
		if f.p.reads(f.column) {
			orders++
		}
		if f.it == nil {
			need += n
		}
		if f.it == nil || f.img.it == nil {
			segment += n
			most = max(most, segment)
		}
	}
	for {
		err := j.buffers(need, most, orders)
		if err == nil {
			break
		}
		more, ok := j.giveUp(fills, j.d.bufferSize())
		if err != errNoRoom || !ok && len(j.slots) == 0 {
			return err
		}
		if !ok {
			break
		}
		need += more
	}
	w := writer{j: j}
	for i := 0; i < len(fills); {
		// Of a query's own images all fills of a segment come together.
		n := 1
		if fills[i].img.it == nil {
			for i+n < len(fills) && fills[i+n].pos == fills[i].pos && fills[i+n].p == fills[i].p && fills[i+n].img.it == nil {
				n++
			}
		}
		if err := w.fill(fills[i : i+n]); err != nil {
			return err
		}
		i += n
	}
	w.flush()
	for _, p := range j.parts {
		if len(p.streams) > 0 {
			p.resident = without(p.list, p.streams)
		}
	}
	query := j.parts[len(j.parts)-1]
	j.newLayout(query, &w, j.stats.BytesRead-read)
	return nil
}

// giveUp has columns of a query's own that are there, and nobody else's, streamed from now on:
// about as many bytes as it is told. need is how much more comes through buffers then.
func (j *job) giveUp(fills []fill, bytes int64) (need int64, ok bool) {
	freed := int64(0)
	for i := len(fills) - 1; i >= 0 && freed < bytes; i-- {
		f := &fills[i]
		if f.it == nil || f.img.it != nil || f.it.refs != 1 || f.it.load != nil {
			continue
		}
		k := len(j.pins) - 1
		for j.pins[k] != f.it {
			k--
		}
		j.pins = slices.Delete(j.pins, k, k+1)
		freed += f.it.span.bytes
		j.d.cache.unpin(f.it)
		f.it = nil
		need += j.bufferBytes(f)
	}
	return need, freed > 0
}

// without returns the segments in list that no chunk has.
func without(list []uint32, chunks []*chunk) []uint32 {
	var rest []uint32
	k, i := 0, 0
	for _, pos := range list {
		for k < len(chunks) && i == len(chunks[k].list) {
			k, i = k+1, 0
		}
		if k < len(chunks) && chunks[k].list[i] == pos {
			i++
			continue
		}
		rest = append(rest, pos)
	}
	return rest
}

// missing appends what the images of a part lack of its list: by segment for a query's own, by
// image for those that are kept.
func (j *job) missing(fills []fill, p *part, images []*image) []fill {
	own := 0
	for i, img := range images {
		if img.it == nil {
			own++
			continue
		}
		for _, l := range img.loads {
			j.await(l)
		}
		before := len(fills)
		if img.filled < len(p.q.Segments) {
			for _, pos := range p.list {
				if !img.has(pos) {
					fills = append(fills, j.find(fill{p: p, img: img, column: i - 1, pos: pos}))
				}
			}
		}
		if p.reads(i - 1) {
			j.stats.BytesRead += img.bytes * int64(len(p.list)) / int64(max(img.filled, 1))
			if len(fills) == before {
				j.imageHits++
			} else {
				j.imageMisses++
			}
		}
	}
	if own > 0 {
		fills = slices.Grow(fills, own*len(p.list))
		j.pins = slices.Grow(j.pins, own*len(p.list))
		hints := make([]*hint, len(images))
		for i := 1; i <= len(p.q.Columns); i++ {
			hints[i] = j.d.hint(p.q, i-1, p.formats[i-1].width)
		}
		for _, pos := range p.list {
			for i, img := range images {
				if img.it == nil {
					fills = append(fills, j.recall(fill{p: p, img: img, column: i - 1, pos: pos}, hints[i]))
				}
			}
		}
	}
	return fills
}

// find looks for what a descriptor describes, and pins it for the image or the job.
func (j *job) find(f fill) fill {
	f.key, f.bytes = f.item()
	if f.key.id == 0 || f.bytes == 0 {
		return f
	}
	if f.img.it == nil && j.strange(j.d.cache.items[f.key]) {
		return f
	}
	if f.it = j.get(f.key); f.it != nil {
		j.pins = append(j.pins, f.it)
	}
	return f
}

// strange says whether an item is one that another job brings, and that a job that streams does not
// wait for: that one may wait for what this one brings only at its end.
func (j *job) strange(it *item) bool {
	return j.explicit && it != nil && it.load != nil && !j.brings(it.load)
}

// item returns the name and the size of what a descriptor describes.
func (f *fill) item() (itemKey, int64) {
	s := &f.p.q.Segments[f.pos]
	if f.column < 0 {
		return itemKey{kind: itemLive, id: s.LiveID}, 8 * int64(bitmapWords(s.Rows, s.Live))
	}
	if x := f.p.index(f.column); x != nil {
		id, words := x.Of(int(f.pos))
		return itemKey{kind: itemIndex, id: id}, 8 * int64(len(words))
	}
	c := &s.Columns[f.column]
	l := f.p.formats[f.column].of(c)
	_, bytes := segmentBytes(s.Rows, c, l)
	return itemKey{kind: itemColumn, id: c.ID, n: int32(l.Width)}, bytes
}

// fill makes the descriptors of some columns of a segment, all of a query's own or one that
// is kept, and makes room for what they describe. Where there is none a query's own is
// streamed.
func (w *writer) fill(fills []fill) error {
	j := w.j
	var need int64
	lacks, streamed := false, false
	places := w.places[:0]
	for i := range fills {
		f := &fills[i]
		if f.it == nil && f.bytes > 0 {
			lacks = true
			need += j.bufferBytes(f)
		}
		w.unnamed = w.unnamed || f.bytes > 0 && f.key.id == 0
		places = append(places, place{key: f.key, bytes: f.bytes})
	}
	w.places = places
	switch {
	case lacks && j.explicit:
		w.keep(fills, places)
		streamed = true
	case lacks:
		switch err := w.room(fills, places); {
		case err == nil:
			w.brought = true
		case err == errNoRoom && fills[0].img.it == nil:
			w.full, streamed = true, true
		default:
			return err
		}
	}
	var c *chunk
	if need > 0 {
		c = w.chunk(fills[0].p, need, streamed)
	}
	if streamed {
		j.streamed = true
		c.list = append(c.list, fills[0].pos)
	}
	for i := range fills {
		f, at := &fills[i], &places[i]
		if f.it != nil {
			at.addr = f.it.addr()
		}
		if at.bytes > 0 && (f.it == nil || f.fresh) {
			if streamed && !f.fresh {
				at.addr = c.take(at.bytes)
			}
			w.bring(f, c, at.addr, streamed)
		}
		w.describe(f, at.addr)
		if f.column >= 0 && f.img.it == nil {
			j.stats.BytesRead += at.bytes
		}
		// A column that a query has twice, or that a lookup's build reads too, comes twice.
		if img := f.img; img.it != nil && !img.has(f.pos) {
			if f.it != nil {
				j.d.cache.pin(f.it)
				f.it.image = true
				img.it.parts[f.pos] = f.it
				img.items++
				if f.it.load != nil {
					img.needs(f.it.load)
				}
			}
			img.set(f.pos)
			img.bytes += at.bytes
			img.needs(loadOf(&j.own))
		}
	}
	return nil
}
