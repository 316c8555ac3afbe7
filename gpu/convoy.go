package gpu

import (
	"context"
	"slices"
	"sync"
	"time"

	"pgaccel/gpu/program"
)

// convoys are the tables that stream through a device: by TableID, who scans them.
type convoys struct {
	mu      sync.Mutex
	byTable map[uint64]*convoy
}

// convoy is the queries that want to scan a table that does not fit. One leads: alone, or in a lap
// with all that have come by the time it has a stream. Who comes later waits for the next lap, which
// the first of them leads. Who waits holds nothing: no stream, no memory, no gate. Under convoys.mu.
type convoy struct {
	led     bool // somebody leads
	waiting []*rider
	came    chan struct{} // somebody began to wait
	riding  int           // in the lap under way
	began   time.Time     // when it did; zero: the leader has no stream yet
	// Of the last lap: its time; and how many are likely to ride in the next, which waits for them
	// until then: they have just got their results.
	took  time.Duration
	want  int
	until time.Time
}

// rider is a query in a convoy.
type rider struct {
	j       *job
	q       *program.Query
	list    []uint32
	columns []unionColumn // those of q, each once, by ID
	bytes   int64         // of device memory, that they take
	// turn says that the query is to lead the next lap (true), or has ridden in one.
	turn chan bool

	// Of the lap: the query as it was run, its result, or why there is none.
	part *part
	rest []byte
	err  error
}

const (
	// ridersMax bounds the queries of a lap: each has a launch for every chunk.
	ridersMax = 16
	// A lap waits for those of the last one for no more than this part of its time.
	gatherShare = 16
	gatherMost  = 10 * time.Millisecond
)

// rides says whether a query can scan together with others: its columns stream, are known by
// their IDs, and nothing is to be built for it.
func (j *job) rides(q *program.Query, list []uint32) bool {
	if !j.d.m.opt.Share || !j.explicit || q.TableID == 0 || len(list) == 0 || len(j.kernels) > 1 || q.Sink.Kind == program.SinkBuild {
		return false
	}
	return !slices.ContainsFunc(j.kernels[0].formats, func(f format) bool { return !f.keyed })
}

// ride computes the segments in list together with other queries, or alone where there is none.
// errAlone: it did not come to that, or the lap failed, maybe for another's fault.
func (j *job) ride(q *program.Query, list []uint32, opt RunOptions, maxWait time.Duration) (*program.Result, error) {
	r := newRider(j, q, list)
	j.spent(&j.stats.Times.Prepare)
	c, leads := j.d.convoys.board(r)
	if !leads {
		var err error
		leads, err = r.wait(c, maxWait)
		if j.spent(&j.stats.Times.Wait); err != nil {
			return nil, err
		}
	}
	if leads {
		if result, alone, err := r.lead(c, opt, maxWait); alone {
			return result, err
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	j.streamed, j.rode = true, true
	result, err := r.part.shape.g.Parse(q, r.part.data, r.rest)
	j.spent(&j.stats.Times.Result)
	return result, err
}

func newRider(j *job, q *program.Query, list []uint32) *rider {
	r := &rider{j: j, q: q, list: list, turn: make(chan bool, 1)}
	for c, f := range j.kernels[0].formats {
		r.columns = append(r.columns, unionColumn{id: q.Segments[0].Columns[c].ID, format: f, from: donor{&q.Segments[0], c}, rider: r})
	}
	slices.SortStableFunc(r.columns, byID)
	r.columns = slices.CompactFunc(r.columns, func(a, b unionColumn) bool { return a.id == b.id })
	for i := range r.columns {
		r.bytes += r.columns[i].format.bytes
	}
	return r
}

// board has a query lead its table's convoy where nobody does, or wait for the next lap.
func (cs *convoys) board(r *rider) (c *convoy, leads bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c = cs.byTable[r.q.TableID]
	if c == nil {
		for id, o := range cs.byTable { // versions of tables come and go
			if !o.led && time.Now().After(o.until) {
				delete(cs.byTable, id)
			}
		}
		if cs.byTable == nil {
			cs.byTable = map[uint64]*convoy{}
		}
		c = &convoy{came: make(chan struct{}, 1)}
		cs.byTable[r.q.TableID] = c
	}
	if !c.led {
		c.led = true
		return c, true
	}
	c.waiting = append(c.waiting, r)
	select {
	case c.came <- struct{}{}:
	default:
	}
	return c, false
}

// wait returns when the query has ridden, or is to lead. errAlone: it has waited for the lap under
// way for longer than its limit, and than the last one took: elsewhere a scan is no shorter.
func (r *rider) wait(c *convoy, maxWait time.Duration) (leads bool, err error) {
	cs := &r.j.d.convoys
	var late <-chan time.Time
	if maxWait >= 0 {
		cs.mu.Lock()
		maxWait = max(maxWait, c.took, time.Millisecond)
		cs.mu.Unlock()
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case leads = <-r.turn:
		return leads, nil
	case <-r.j.ctx.Done():
		err = r.j.ctx.Err()
	case <-late:
		err = errAlone
	}
	cs.mu.Lock()
	i := slices.Index(c.waiting, r)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	cs.mu.Unlock()
	if i >= 0 {
		return false, err
	}
	// Its turn came meanwhile. Memory of one that rides is in use until the lap ends.
	leads = <-r.turn
	if leads && r.j.ctx.Err() != nil {
		cs.next(c)
		return false, err
	}
	return leads, nil
}

// lead computes a lap. alone: without others, the result is not the rider's.
func (r *rider) lead(c *convoy, opt RunOptions, maxWait time.Duration) (result *program.Result, alone bool, err error) {
	d := r.j.d
	defer d.convoys.next(c)
	d.convoys.gather(r.j.ctx, c)
	stream, leave, err := r.j.enter(opt, maxWait)
	r.j.spent(&r.j.stats.Times.Wait)
	if err != nil {
		return nil, true, err
	}
	defer leave()
	riders := d.convoys.depart(c, r)
	if len(riders) == 1 {
		result, err = r.j.alone(r.q, r.list, opt, stream)
		return result, true, err
	}
	d.lap(riders, stream)
	return nil, false, nil
}

// gather waits a little for those who rode in the last lap. A query that had none beside it, and
// for which nobody waited, does not.
func (cs *convoys) gather(ctx context.Context, c *convoy) {
	for ctx.Err() == nil {
		cs.mu.Lock()
		missing, left := c.want-1-len(c.waiting), time.Until(c.until)
		cs.mu.Unlock()
		if missing <= 0 || left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-c.came:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// depart begins a lap: of the leader and those who wait and are well off together.
func (cs *convoys) depart(c *convoy, leader *rider) []*rider {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	riders := []*rider{leader}
	for _, r := range c.waiting {
		if len(riders) < ridersMax && r.j.ctx.Err() == nil {
			riders = append(riders, r)
		}
	}
	riders = together(riders)
	c.waiting = slices.DeleteFunc(c.waiting, func(r *rider) bool { return slices.Contains(riders, r) })
	c.riding, c.began = len(riders), time.Now()
	return riders
}

// next ends a lap, and has the first that waits lead the next one.
func (cs *convoys) next(c *convoy) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !c.began.IsZero() {
		now := time.Now()
		c.took = now.Sub(c.began)
		c.want = min(c.riding+len(c.waiting), ridersMax)
		c.until = now.Add(min(c.took/gatherShare, gatherMost))
		c.began, c.riding = time.Time{}, 0
	}
	if len(c.waiting) == 0 {
		c.led = false
		return
	}
	r := c.waiting[0]
	c.waiting = slices.Delete(c.waiting, 0, 1)
	r.turn <- true
}

// count returns how many ride besides those who lead, and how many wait to.
func (cs *convoys) count() (riding, waiting int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.byTable {
		riding += max(c.riding-1, 0)
		waiting += len(c.waiting)
	}
	return riding, waiting
}
