package gpu

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"pgaccel/gpu/device"
	"pgaccel/gpu/program"
)

// lap is a scan of a table for several queries: the columns that they read come to the device and
// are transcoded once, and each computes a chunk while it is there.
type lap struct {
	d      *dev
	u      *job // brings the columns
	of     *part
	riders []*rider
	aboard []*rider // those of them for whom there was room
	bytes  int64    // of device memory, that their columns take
}

// lap computes riders' queries, and wakes all but the first. What is theirs is released then.
func (d *dev) lap(riders []*rider, stream int) {
	// It goes on as long as somebody wants its result.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(len(riders)))
	for _, r := range riders {
		r.err = errAlone
		stop := context.AfterFunc(r.j.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
		defer stop()
	}
	v := &lap{d: d, riders: riders, u: &job{d: d, ctx: ctx, since: time.Now(), lanes: riders[0].j.lanes, explicit: true, set: riders[0].j.set}}
	err := error(errAlone) // where it panics
	defer func() {
		for _, r := range riders[1:] {
			r.turn <- false
		}
	}()
	d.gate.RLock()
	defer d.gate.RUnlock()
	defer func() { v.release(err) }()
	e := v.acquire()
	if e == nil {
		e = v.execute(stream)
	}
	err = e
}

// acquire finds or makes room for all that the riders read and write. Who finds none does not ride.
func (v *lap) acquire() error {
	d, u := v.d, v.u
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.begin(); err != nil {
		return err
	}
	for _, r := range v.riders {
		d.note(r.q, r.j.kernels[0].formats)
	}
	u.pinSet()
	var columns []unionColumn
	columns, v.bytes, _ = union(v.riders)
	list := lists(v.riders)
	found := u.pinLayout(func(l *layout) bool { return l.isUnion(v.riders, columns, list) }) // before anything is evicted
	room := int64(0)
	for _, r := range v.riders {
		if err := r.j.query(r.q, r.list); err != nil {
			if device.KindOf(err) == device.FaultLost {
				return err
			}
			// What it was to bring no other rider may wait for.
			d.mu.Unlock()
			r.j.release(errAlone)
			d.mu.Lock()
			continue
		}
		r.part = r.j.parts[len(r.j.parts)-1]
		v.aboard = append(v.aboard, r)
		room += listAlign * int64(len(r.list))
	}
	if len(v.aboard) == 0 {
		return errNoRoom
	}
	at, err := u.alloc(room)
	if err != nil {
		return err
	}
	formats := make([]format, len(columns))
	for c := range columns {
		formats[c] = columns[c].format
	}
	v.of = &part{kernel: &kernel{formats: formats}, j: u, list: list, resident: list}
	u.parts = []*part{v.of}
	if found != nil {
		u.take(found, v.of)
	} else {
		v.of.q = unionQuery(v.riders, columns)
		if err := u.columns(); err != nil {
			return err
		}
		if l := u.layout; l != nil {
			l.donors = make([][]donor, 1+len(columns))
			l.donors[0] = []donor{{&v.riders[0].q.Segments[0], -1}}
			for c := range columns {
				l.donors[c+1] = []donor{columns[c].from}
			}
		}
	}
	u.lists = at // a layout has those of one query
	for _, r := range v.aboard {
		b := &r.part.b
		b.Heads, b.Columns = v.of.b.Heads, make([]device.Pointer, len(r.q.Columns))
		for c := range b.Columns {
			i, _ := slices.BinarySearchFunc(columns, unionColumn{id: r.q.Segments[0].Columns[c].ID}, byID)
			b.Columns[c] = v.of.b.Columns[i]
		}
	}
	return nil
}

func jobsOf(riders []*rider) (jobs []*job) {
	for _, r := range riders {
		jobs = append(jobs, r.j)
	}
	return jobs
}

// execute runs what acquire prepared.
func (v *lap) execute(stream int) error {
	u, sms := v.u, v.d.info.SMs
	jobs, waits := append(jobsOf(v.aboard), u), 0
	for _, j := range jobs {
		waits += len(j.waits)
	}
	b := batch{j: u, stream: stream}
	copies := func() {
		for _, j := range jobs {
			b.commands = j.copies(b.commands, j.direct)
			j.direct = nil
		}
	}
	settle := func() {
		for _, j := range jobs {
			j.settle(&j.own, nil)
		}
	}
	copies()
	if waits > 0 || len(u.chunks) > 0 {
		// What riders bring others wait for, also in this lap.
		if err := b.bring(u.chunks); err != nil {
			return err
		}
		settle()
		for _, j := range jobs {
			if err := j.arrived(); err != nil {
				return err
			}
		}
	}
	b.ahead(v.of.streams)
	b.mark(true)
	var regions []program.Region
	var readers []*part
	for _, r := range v.aboard {
		regions = r.j.appendHashRegions(r.part.shape.g.Regions(regions, r.q, &r.part.b))
		readers = append(readers, r.part)
	}
	b.commands = program.Clear(b.commands, u.lanes, regions, sms)
	for _, r := range v.aboard {
		b.commands = r.j.appendStringScans(b.commands)
		b.commands = r.j.appendHashes(b.commands, sms)
	}
	if len(v.of.streams) == 0 {
		for _, p := range readers {
			b.commands = p.scan(b.commands, p.list, sms)
		}
	} else {
		b.mark(false)
		if err := b.pipeline(v.of.streams, v.of, readers); err != nil {
			return err
		}
		b.mark(true)
	}
	var ended []*rider
	for _, r := range v.aboard {
		if r.j.ctx.Err() == nil { // else some of its scans may be missing
			b.commands = r.part.shape.g.Finish(b.commands, r.q, r.part.module, &r.part.b, sms)
			b.readers = append(b.readers, r.part)
			ended = append(ended, r)
		}
	}
	if err := b.run(); err != nil {
		return err
	}
	settle()
	u.settle(&u.later, nil)
	return v.results(stream, ended)
}

// results reads what is missing of the results of those who rode to the end.
func (v *lap) results(stream int, ended []*rider) error {
	var commands []device.Command
	var of []*rider
	for _, r := range ended {
		if c, more := r.part.shape.g.Rest(r.q, &r.part.b, r.part.data); more {
			commands, of = append(commands, c), append(of, r)
		}
	}
	if len(commands) > 0 {
		reply, err := v.u.send(stream, commands, nil)
		if err != nil {
			return err
		}
		for i, r := range of {
			r.rest = reply.Data[i]
		}
	}
	for _, r := range ended {
		if r.j.ctx.Err() == nil { // as soon as it is given up, it is
			r.err = nil
		}
		v.d.m.shapes.ended(r.part.shape, nil)
	}
	return nil
}

// release gives back what the lap holds, and shares out what it cost. Where it failed nobody knows
// whose kernel it was: each runs alone again.
func (v *lap) release(err error) {
	n := max(len(v.aboard), 1)
	for i, r := range v.aboard {
		s := &r.j.stats
		s.BytesCopied += (v.u.stats.BytesCopied + int64(i)) / int64(n) // in all as many as there were
		s.Kernel += v.u.stats.Kernel / float64(n)
		s.BytesRead = int64(float64(v.u.stats.BytesRead) * float64(r.bytes) / float64(max(v.bytes, 1)))
	}
	for _, r := range v.riders {
		if err != nil {
			if r.err = errAlone; device.KindOf(err) == device.FaultLost {
				r.err = err
			}
		}
		if cancelled := r.j.ctx.Err(); cancelled != nil && r.err != nil {
			r.err = cancelled
		}
		r.j.release(r.err)
		if r.err != nil {
			r.j.stats.BytesRead = 0 // it runs again
		}
	}
	v.u.release(err)
	// The first has computed for the others, which have waited.
	first := v.riders[0].j
	v.u.spent(&v.u.stats.Times.Result)
	first.stats.Times.Add(v.u.stats.Times)
	first.since = v.u.since
}

// among returns those of some segments of p that are the part's own: none once its query was given
// up.
func (r *part) among(list []uint32, p *part) []uint32 {
	switch {
	case r == p:
		return list
	case r.j.ctx.Err() != nil:
		return nil
	case len(r.list) == len(p.list):
		return list
	}
	var own []uint32
	for _, pos := range list {
		if _, ok := slices.BinarySearch(r.list, pos); ok {
			own = append(own, pos)
		}
	}
	return own
}
