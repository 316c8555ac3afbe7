package olap

import (
	"errors"
	"sync"

	"pgaccel/internal/temp"
	"pgaccel/plan"
	"pgaccel/vector"
)

// What memory does not hold goes to temporary files. A query is tried in memory first, unless it
// is known to be too large, with a part of the limit beside its lookups, which stay in memory. If that
// does not do it is executed once more, in pieces that are small enough:
//
//	rows    --gathered by each worker-->  sorted runs        --.
//	groups  --rows scattered to a file--> partitions,          +--> merged while the client reads
//	          each aggregated in turn     each a sorted run  --'
//
// A run has rows as they leave: a key that memcmp orders as ORDER BY does, and the values, so that
// nothing of tables or dictionaries is held while somebody reads slowly. Large results that memory
// did compute are written as one run, for the same reason.

const (
	// spillShare of the limit is what a query may have that can go on in files.
	spillShare = 4
	// workShare of the limit is what it has to work with then, at most workMost and at least
	// workLeast. It takes less where others have more.
	workShare = 16
	workMost  = 256 << 20
	workLeast = 1 << 20
	// workerWork is the least for which there is one worker more.
	workerWork = 16 << 20
	// resultShare of the limit is the largest result that is kept in memory.
	resultShare = 32
	// rowWork is about what ordering and writing a gathered row takes beside its values.
	rowWork = 48
)

// errStays says that a query cannot go on in files.
var errStays = errors.New("not what temporary files hold")

// spiller is a result in a file.
type spiller struct {
	x     *execution
	file  *temp.File
	work  int64     // bytes to work with, those of all workers
	block int       // bytes that are read at once
	bufs  sync.Pool // of *[]byte, for who writes

	mu    sync.Mutex
	runs  []run
	rows  int
	worst []worst
}

func (x *execution) newSpiller(work int64) (*spiller, error) {
	file, err := x.opt.Temp.Create()
	if err != nil {
		return nil, beyondTemp(err)
	}
	return &spiller{x: x, file: file, work: work, block: int(min(max(work/256, 256), 64<<10)), worst: make([]worst, len(x.q.Output))}, nil
}

// beyondTemp says why there is no file, or it cannot grow.
func beyondTemp(err error) error { return forward(plan.ReasonTemp, err.Error()) }

// outOfMemory reports whether an execution has failed because it needs more than it may have.
func outOfMemory(err error) bool {
	var f *plan.Forward
	return errors.As(err, &f) && (f.Reason == plan.ReasonMemory || f.Reason == plan.ReasonQueryMemory)
}

// maySpill reports whether the query can go on in files.
func (x *execution) maySpill() bool {
	return x.opt.Temp != nil && x.spill == nil && x.trace == nil && len(x.q.Tables) > 0 && x.q.Sets == nil && (!x.q.Grouped || len(x.q.Group) > 0)
}

// mayUseFiles is called where lookups are there and rows are about to be read. What holds these, or
// their groups, may go on in files, if the query may, and has a part of the limit in memory.
func (x *execution) mayUseFiles() {
	if x.files = x.maySpill(); x.files {
		x.room = min(x.opt.MemoryLimit, x.memory.Load()+x.opt.MemoryLimit/spillShare)
	}
}

// foresee fails, as it would later, where so many rows or groups of so many bytes are expected that
// memory will not hold them, but files can.
func (x *execution) foresee(n float64, bytes int64) error {
	if x.files && (x.opt.forceSpill || n*float64(bytes) > float64(x.room-x.memory.Load())) {
		return forward(plan.ReasonMemory, "expected results exceed the limit")
	}
	return nil
}

// again executes a query in files that has failed in memory, with err. q is the query before
// anything was put into it.
func (x *execution) again(q *plan.Star, err error) (*vector.Batch, error) {
	x.give(x.memory.Load())
	x.leave()
	opt := x.opt
	opt.Device = nil
	y, failed := newExecution(x.ctx, q, x.in, opt)
	if failed != nil {
		return nil, failed
	}
	y.turn = x.turn
	defer y.leave()
	work := min(max(opt.MemoryLimit/workShare, workLeast), workMost)
	if opt.forceSpill {
		work = opt.spillWork * int64(y.opt.Workers)
	}
	for y.take(work) != nil {
		if work /= 2; work < workLeast {
			return nil, err
		}
	}
	if !opt.forceSpill {
		y.opt.Workers = min(y.opt.Workers, int(max(work/workerWork, 1)))
	}
	if y.spill, failed = y.newSpiller(work); failed != nil {
		return nil, failed
	}
	b, failed := y.execute()
	if failed != nil || b.Next == nil {
		y.spill.file.Close()
	}
	if errors.Is(failed, errStays) {
		failed = err
	}
	return b, failed
}

// spool writes a result that was computed in memory to a file, where it is large; nil where it
// stays. The rows are those of r.
func (x *execution) spool(r *result, rows []uint32) *vector.Batch {
	const buffers = 2 << 20 // bytes that writing takes
	if x.opt.Temp == nil || x.opt.spillWork == 0 && int64(len(rows))*int64(len(r.output))*24 <= x.opt.MemoryLimit/resultShare {
		return nil
	}
	if err := x.take(buffers); err != nil {
		return nil
	}
	defer x.give(buffers)
	s, err := x.newSpiller(buffers * 8)
	if err != nil {
		return nil
	}
	if err = s.write(r, rows, nil); err == nil {
		var b *vector.Batch
		if b, err = s.open(false); err == nil {
			return b
		}
	}
	s.file.Close() // memory may hold it
	return nil
}

// result is the whole result, once all of its rows have been written.
func (s *spiller) result() (*vector.Batch, error) {
	ordered := len(s.x.q.Order) > 0
	for ordered && len(s.runs) > mergedRuns {
		if err := s.mergeRuns(); err != nil {
			return nil, err
		}
	}
	if s.x.limited || s.x.offset > 0 {
		if err := s.cut(ordered); err != nil {
			return nil, err
		}
		ordered = false // one run is left
	}
	return s.open(ordered)
}

// add writes a piece of the result, in order.
func (s *spiller) add(r *result) error {
	if r.n == 0 {
		return nil
	}
	x := s.x
	rows := make([]uint32, r.n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	if len(x.q.Order) > 0 {
		o, err := x.order(r.order, r.n)
		if err != nil {
			return err
		}
		if r.n > 1 {
			defer x.give(int64(r.n) * 8) // what order takes
		}
		o.sort(rows)
	}
	return s.write(r, rows, r.order)
}

// rankable reports whether the order of a key is known without asking the server, and has what
// tells it computed, as long as one goroutine looks.
func rankable(c *rcol) bool {
	if c.t.Kind.IsString() && c.dict == nil {
		return c.t.Collation.C
	}
	if c.dict != nil {
		_, err := c.dict.rank(c.t.Collation) // comparator does without, of few rows
		return err == nil
	}
	_, err := c.comparator()
	return err == nil
}
