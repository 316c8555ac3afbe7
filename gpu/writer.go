package gpu

import (
	"cmp"
	"slices"
	"unsafe"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// chunk is columns of segments that come to the device together, through a buffer.
type chunk struct {
	slot   int // of job.slots
	addr   device.Pointer
	used   int64            // bytes of the buffer
	bytes  int64            // that are copied to it
	copies []device.Command // the first has all pieces of the shared file
	rows   int              // of the largest segment
	// The orders to transcode: the first of those of the job, and how many.
	first, orders int
	// list has the segments that are computed while the buffer has them; nil where the
	// columns are kept.
	list     []uint32
	raw      []raw // encoded columns that come through the buffer
	rawBytes int64 // of the buffer
}

// raw is an encoded column of a segment, and where it is to be as a device has it.
type raw struct {
	data   []byte
	offset int64 // in the shared file; -1: it is not there
	to     device.Pointer
	rows   int
	format program.LaneFormat
}

// rawAlign is the alignment of encoded columns in a buffer: that of column memory, so that what lies
// side by side there is one piece here.
const rawAlign = 64

// copy adds a copy to the chunk's: of the shared file, or where offset is negative, of data.
func (c *chunk) copy(offset int64, dst device.Pointer, data []byte) {
	if offset >= 0 {
		c.bytes += addPiece(&c.copies[0], device.Piece{Offset: offset, Bytes: int64(len(data)), Dst: dst})
	} else {
		c.bytes += int64(len(data))
		c.copies = append(c.copies, device.Command{Op: device.OpWrite, Dst: dst, Data: data})
	}
}

// commands are the chunk's copies.
func (c *chunk) commands() []device.Command {
	if len(c.copies[0].Pieces) == 0 {
		return c.copies[1:]
	}
	return c.copies
}

// copied and free are the events that a chunk has come, and that its buffer is free again.
func (c *chunk) copied() uint32 { return uint32(c.slot) }
func (c *chunk) free() uint32   { return uint32(buffersMax + c.slot) }

// take returns room in the buffer.
func (c *chunk) take(bytes int64) device.Pointer {
	p := c.addr + device.Pointer(c.used)
	c.used += roundUp(bytes)
	return p
}

// writer lists what must be copied.
type writer struct {
	j                *job
	full             bool // there was no room: the rest is streamed
	brought, unnamed bool // something that is kept, that has no name
	last             *chunk
	stream           bool
	orders           []byte // to transcode
	part             *part
	places           []place
	runs             []run
	// Of the part that streams through.
	stocked   []*stocked
	stockedOf *part
}

// place is where something lies, or is about to.
type place struct {
	key   itemKey
	bytes int64
	addr  device.Pointer
}

// room makes room for what is not there: kept where it has a name.
func (w *writer) room(fills []fill, places []place) error {
	if w.full && fills[0].img.it == nil {
		return errNoRoom
	}
	j := w.j
	temps := len(j.temps)
	brought := 0
	var err error
	for i := range fills {
		f, at := &fills[i], &places[i]
		if f.it != nil || at.bytes == 0 {
			continue
		}
		if at.key.id == 0 {
			at.addr, err = j.alloc(at.bytes)
		} else if f.it = j.get(at.key); f.it != nil { // came with an earlier fill of this job
			j.pins = append(j.pins, f.it)
			at.addr = f.it.addr()
			continue
		} else if f.it, err = j.put(at.key, at.bytes, &j.own); err == nil {
			j.pins = append(j.pins, f.it)
			f.fresh = true
			brought++
			at.addr = f.it.addr()
		}
		if err != nil {
			break
		}
	}
	if err != errNoRoom {
		return err
	}
	// Together or not at all.
	for _, s := range j.temps[temps:] {
		j.d.cache.arena.dealloc(s)
	}
	j.temps = j.temps[:temps]
	for i := range fills {
		if f := &fills[i]; f.fresh {
			j.d.cache.drop(f.it) // it stays pinned until the job's end
			f.it, f.fresh = nil, false
		}
	}
	if brought > 0 {
		j.own.items = j.own.items[:len(j.own.items)-brought]
	}
	return err
}

// chunk returns the one that the next columns belong to.
func (w *writer) chunk(p *part, need int64, stream bool) *chunk {
	j := w.j
	if c := w.last; c != nil && w.stream == stream && (!stream || w.part == p) && c.used+roundUp(c.rawBytes)+need <= j.bufferSize {
		return c
	}
	w.close(w.last)
	of := &j.chunks
	if stream {
		of = &p.streams
	}
	c := &chunk{slot: len(*of) % len(j.slots)}
	c.addr = j.slots[c.slot]
	c.copies = []device.Command{{Op: device.OpCopyShared, File: j.d.file}}
	if l := w.last; l != nil { // it will have about as much
		c.list = make([]uint32, 0, len(l.list)+4)
		c.copies[0].Pieces = make([]device.Piece, 0, len(l.copies[0].Pieces)+8)
	}
	w.last, w.stream, w.part = c, stream, p
	*of = append(*of, c)
	return c
}

// rawBytes is what an encoded column takes of a buffer.
func rawBytes(data []byte) int64 { return (int64(len(data)) + rawAlign - 1) &^ (rawAlign - 1) }

// place is where data lies in the shared file, -1 where it does not.
func (j *job) place(data []byte) int64 {
	if off, ok := j.offset(data); ok {
		return off
	}
	return -1
}

// close gives a chunk's encoded columns their places, in the order of the file, and orders their
// transcoding.
func (w *writer) close(c *chunk) {
	if c == nil {
		return
	}
	slices.SortStableFunc(c.raw, func(a, b raw) int { return cmp.Compare(a.offset, b.offset) })
	c.first, c.orders = len(w.orders)/program.TranscodeJobBytes, len(c.raw)
	src := c.take(c.rawBytes)
	for i := range c.raw {
		r := &c.raw[i]
		c.copy(r.offset, src, r.data)
		w.orders = program.AppendTranscodeJob(w.orders, src, r.to, r.rows, r.format)
		src += device.Pointer(rawBytes(r.data))
	}
	c.raw, c.rawBytes = nil, 0
}

// bring lists the copies of what a descriptor describes to addr.
func (w *writer) bring(f *fill, c *chunk, addr device.Pointer, streamed bool) {
	j := w.j
	s := &f.p.q.Segments[f.pos]
	side := func(addr device.Pointer, data []byte) {
		if streamed {
			c.copy(j.place(data), addr, data)
		} else {
			j.write(addr, data)
		}
	}
	if f.column < 0 {
		side(addr, bytesOf(s.Live[:bitmapWords(s.Rows, s.Live)]))
		return
	}
	if x := f.p.index(f.column); x != nil {
		_, words := x.Of(int(f.pos))
		side(addr, bytesOf(words))
		return
	}
	col := &s.Columns[f.column]
	l := f.p.formats[f.column].of(col)
	if n := bitmapWords(s.Rows, col.Nulls); n > 0 {
		lanes, _ := segmentBytes(s.Rows, col, l)
		side(addr+device.Pointer(lanes), bytesOf(col.Nulls[:n]))
	}
	if l.Width > 0 {
		words := bytesOf(col.Words)
		c.raw = append(c.raw, raw{data: words, offset: j.place(words), to: addr, rows: s.Rows, format: l})
		c.rawBytes += rawBytes(words)
		c.rows = max(c.rows, s.Rows)
	}
}

// run is descriptors of an image that lie side by side.
type run struct {
	img         *image
	first, next uint32
	data        []byte
}

// describe adds a descriptor of what lies at addr.
func (w *writer) describe(f *fill, addr device.Pointer) {
	var r *run
	for i := range w.runs {
		if w.runs[i].img == f.img {
			r = &w.runs[i]
		}
	}
	if r == nil {
		w.runs = append(w.runs, run{img: f.img})
		r = &w.runs[len(w.runs)-1]
	}
	if len(r.data) > 0 && r.next != f.pos {
		r.flush(w.j)
	}
	if len(r.data) == 0 {
		r.first = f.pos
		if f.img.it == nil && r.data == nil { // room for all that follow
			r.data = make([]byte, 0, int64(len(f.p.q.Segments)-int(f.pos))*f.img.stride)
		}
	}
	s := &f.p.q.Segments[f.pos]
	if f.column < 0 {
		r.data = program.AppendSegmentHead(r.data, addr, s.Rows)
	} else if f.p.index(f.column) != nil {
		r.data = appendIndex(r.data, addr)
	} else {
		col := &s.Columns[f.column]
		l := f.p.formats[f.column].of(col)
		nulls := device.Pointer(0)
		if bitmapWords(s.Rows, col.Nulls) > 0 {
			lanes, _ := segmentBytes(s.Rows, col, l)
			nulls = addr + device.Pointer(lanes)
		}
		r.data = program.AppendColumnSegment(r.data, addr, nulls, l)
	}
	r.next = f.pos + 1
}

func (r *run) flush(j *job) {
	n := len(r.data)
	j.write(r.img.base+device.Pointer(int64(r.first)*r.img.stride), r.data[:n:n])
	r.data = r.data[n:] // the next run lies behind
}

// flush ends all runs, and brings the orders to transcode.
func (w *writer) flush() {
	w.close(w.last)
	for i := range w.runs {
		w.runs[i].flush(w.j)
	}
	w.j.write(w.j.orders, w.orders)
}

// bytesOf returns the memory of words.
func bytesOf[T uint16 | int32 | uint32 | uint64](words []T) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*int(unsafe.Sizeof(words[0])))
}
