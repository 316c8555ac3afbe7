package gpu

import (
	"slices"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// bufferSet is buffers that columns stream through. One scan at a time has it, and so the bus. It is
// kept, as an item, with the layouts of several queries that say what goes where in it.
type bufferSet struct {
	it    *item // nil: there are none yet
	slots []device.Pointer
	size  int64 // of each
}

// The buffers that columns come through: one is computed, one is copied, and one waits to be
// copied so that the copies do not pause. What is left to be computed after the last copy is a
// buffer's; and each costs the bus a pause of some microseconds.
const (
	buffersMax  = 3
	bufferBytes = 32 << 20
	bufferShare = 14 // of the budget
	// setShare is the part of the budget that a set takes at most where there are two of them: while one
	// scan's columns come, the other one's result is read.
	setShare = 32
)

// there says whether a set has memory.
func (s *bufferSet) there() bool { return s.it != nil && !s.it.dead }

// newSets returns the sets of buffers of a device, without memory.
func newSets(d *dev) []*bufferSet {
	if d.setBytes() <= d.budget/setShare {
		return []*bufferSet{{}, {}}
	}
	return []*bufferSet{{}}
}

// bufferSize is that of the buffers, where a segment's columns need no more.
func (d *dev) bufferSize() int64 {
	if d.m.opt.chunk != 0 {
		return d.m.opt.chunk
	}
	return min(d.budget/bufferShare, bufferBytes)
}

func (d *dev) setBytes() int64 { return buffersMax * roundUp(d.bufferSize()) }

// enter waits for a stream and, where columns stream through, for buffers before: who waits for them
// is not in the way of who needs none.
func (j *job) enter(opt RunOptions, maxWait time.Duration) (stream int, leave func(), err error) {
	d := j.d
	n := -1
	if j.explicit {
		if n, err = d.setQueue.enter(j.ctx, opt.Caller, maxWait); err != nil {
			return 0, nil, err
		}
		j.set = d.sets[n]
	}
	start := time.Now()
	give := func() {
		if j.set = nil; n >= 0 {
			d.setQueue.leave(n, time.Since(start))
		}
	}
	if stream, err = d.queue.enter(j.ctx, opt.Caller, maxWait); err != nil {
		give()
		return 0, nil, err
	}
	began := time.Now()
	return stream, func() {
		d.queue.leave(stream, time.Since(began))
		give()
	}, nil
}

// pinSet keeps the buffers of the set that the job has from being evicted for what it needs besides.
func (j *job) pinSet() {
	if j.set == nil || j.exclusive || !j.set.there() {
		return
	}
	j.d.cache.pin(j.set.it)
	j.pins = append(j.pins, j.set.it)
}

// fillSet sees to it that the job's set has buffers, each for most bytes at least. False: there is no
// room, or the memory is to be one.
func (j *job) fillSet(most int64) bool {
	s, c := j.set, j.d.cache
	if s == nil || j.exclusive {
		return false
	}
	if s.there() && s.size >= most {
		return true
	}
	if s.there() { // made for a table of narrower rows
		i := slices.Index(j.pins, s.it)
		j.pins = slices.Delete(j.pins, i, i+1)
		j.layoutPins--
		c.drop(s.it)
		c.unpin(s.it)
	}
	size := roundUp(max(j.d.bufferSize(), most))
	var spans []*span
	var slots []device.Pointer
	for range buffersMax {
		b, _ := c.alloc(size)
		if b == nil {
			for _, b := range spans {
				c.arena.dealloc(b)
			}
			return false
		}
		spans, slots = append(spans, b), append(slots, b.addr)
	}
	j.d.layoutID++
	s.it = c.hold(itemKey{kind: itemLayout, id: j.d.layoutID}, spans)
	s.slots, s.size = slots, size
	j.pins = append(j.pins, s.it)
	return true
}

// buffers makes room for columns to come through: need in all, most for one segment, for so many
// orders to transcode, and for lists of segments. After errNoRoom it has made some of it, perhaps.
func (j *job) buffers(need, most int64, orders int) error {
	if need == 0 {
		return nil
	}
	if j.orders == 0 {
		bytes := int64(orders) * program.TranscodeJobBytes
		lists := int64(0)
		for _, p := range j.parts {
			lists += listAlign * int64(len(p.list))
		}
		p, err := j.alloc(bytes + lists)
		if err != nil {
			return err
		}
		j.orders, j.lists = p, p+device.Pointer(bytes)
	}
	if need > j.d.bufferSize() && len(j.slots) == 0 && j.fillSet(most) {
		j.slots, j.bufferSize, j.fromSet = j.set.slots, j.set.size, true
	}
	if j.fromSet {
		return nil
	}
	if j.bufferSize == 0 {
		j.bufferSize = roundUp(max(min(j.d.bufferSize(), need), most))
	}
	n := 1
	if need > j.bufferSize {
		n = buffersMax
	}
	for len(j.slots) < n {
		p, err := j.alloc(j.bufferSize)
		if err != nil {
			return err
		}
		j.slots = append(j.slots, p)
	}
	return nil
}

// bufferBytes is what a fill takes of a buffer where what it describes is not there.
func (j *job) bufferBytes(f *fill) int64 {
	if f.bytes == 0 {
		return 0
	}
	n := int64(0)
	if f.img.it == nil {
		n = roundUp(f.bytes) // it may be streamed
	}
	if f.p.reads(f.column) {
		s := &f.p.q.Segments[f.pos]
		if c := &s.Columns[f.column]; f.p.formats[f.column].of(c).Width > 0 {
			n += roundUp(4 * int64(len(c.Words)))
		}
	}
	return n
}
