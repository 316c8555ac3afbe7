package olap

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/internal/temp"
	"pgaccel/plan"
	"pgaccel/vector"
)

// Input is what a statement reads. Tables[i] is a version of the table Deps.Tables[i]; the
// caller holds a reference to each until Execute has returned.
type Input struct {
	Tables []*colstore.Table
}

// Options bounds an execution.
type Options struct {
	Workers     int   // goroutines; 0: as many as there are processors
	MemoryLimit int64 // bytes of lookups, group tables and results; 0: 1 GiB
	// Reserve is asked for bytes of that before they are used: false forwards the query. Fewer than
	// 0 are given back. nil grants all. Any goroutine calls it, none once Execute has returned.
	Reserve func(bytes int64) bool
	// Temp has what memory does not hold; nil: that is forwarded. The result may be one that it
	// holds (vector.Batch.Next).
	Temp *temp.Space
	// Slots bounds the goroutines that compute, with those of other queries; nil: only
	// Workers does.
	Slots *Slots
	// Share lets the query scan together with others; nil: by itself.
	Share *Sharer

	// Eager has small tables take the paths of large ones: sampled, partitioned and merged
	// in parallel, read in two passes, shared, by indexes wherever there are some. For
	// tests.
	Eager bool

	// Ties has LIMIT and OFFSET of the whole choose among rows that tie where they cut, always the same
	// ones (vector.Batch.Ties); false: that is forwarded, as it is within a query.
	Ties bool

	// Rank asks the server for the order of texts; nil: ORDER BY such text is forwarded.
	Rank   Ranker
	orders *textOrders // what it has said so far, for the stars of one statement

	derived *derivedTexts // what the stars of one statement have computed of dictionaries

	// Kept has what earlier executions have made of segments, and gets what this one makes; nil: nothing is kept.
	Kept *SegmentCache

	// Indexes says which conditions bitmap indexes answer.
	Indexes IndexUse

	grouping strategy // forces how groups are found, where it can be; for tests

	// Tests: whatever may goes to Temp, with so many bytes to work with for each worker; large or not, results do.
	forceSpill bool
	spillWork  int64

	// Device computes what it can of a query, with the processor's answer; nil: none.
	Device gpu.Runner
	// DeviceWait has the device compute whatever it can, however few rows there are, and
	// the query wait for its kernel. DeviceCaller is gpu.RunOptions.Caller.
	DeviceWait   bool
	DeviceCaller uint64
	// Prepare has the device's kernels begin to be compiled, and no more: the error is ErrPrepared. Of a query that reads
	// what others compute these are theirs.
	Prepare bool
	// Report, if not nil, is filled with what the device did.
	Report *Report
	// Scanned, if not nil, counts what the processor reads of tables.
	Scanned *Scanned
}

// ErrPrepared is the error of an execution with Options.Prepare.
var ErrPrepared = errors.New("no more than kernels was asked for")

// eagerRows bounds, for an eager execution, each number of rows or groups from which on
// a path is taken.
const eagerRows = 8

// eagerTurn has eager executions find groups by one strategy after the other.
var eagerTurn atomic.Int64

// enough reports whether n rows, groups or segments are worth what takes at least so
// many.
func (o *Options) enough(n, least int) bool {
	return n >= least || o.Eager && n >= min(least, eagerRows)
}

// Execute computes q, which must be bound, over the given versions of its tables.
// What Postgres has to decide (errors of evaluation, ties that a LIMIT cuts, an
// order of text that is not known) comes back as a *plan.Forward; the error of ctx
// as it is. The batch owns its memory.
func Execute(ctx context.Context, q *plan.Star, in Input, opt Options) (*vector.Batch, error) {
	x, err := newExecution(ctx, q, in, opt)
	if err != nil {
		return nil, err
	}
	if s := opt.Slots; s != nil {
		x.turn = s.begin(false)
		defer s.end(x.turn)
		err := s.acquire(ctx, x.turn)
		defer s.release()
		if err != nil {
			return nil, err
		}
		defer x.leave()
	}
	b, err := x.execute()
	if outOfMemory(err) && x.files {
		return x.again(q, err)
	}
	return b, err
}

func newExecution(ctx context.Context, q *plan.Star, in Input, opt Options) (*execution, error) {
	if f := supports(q); f != nil {
		return nil, f
	}
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.MemoryLimit <= 0 {
		opt.MemoryLimit = 1 << 30
	}
	if opt.Eager {
		if opt.Indexes == IndexAuto {
			opt.Indexes = IndexForce
		}
		if opt.grouping == groupAuto {
			opt.grouping = strategy(uint64(eagerTurn.Add(1)) % uint64(groupPartitioned+1))
		}
	}
	x := &execution{ctx: ctx, in: in, opt: opt, memory: new(atomic.Int64), room: opt.MemoryLimit, place: new(place), reporting: new(sync.Mutex)}
	if x.opt.orders == nil {
		x.opt.orders = &textOrders{ctx: ctx, server: opt.Rank}
	}
	if x.opt.derived == nil {
		x.opt.derived = &derivedTexts{}
	}
	v := &env{orders: x.ordersOf()}
	for _, e := range q.Constants {
		if _, err := v.evalSettled(e); err != nil {
			return nil, err
		}
	}
	if len(q.Constants) > 0 {
		q = q.Map(v.folded)
	}
	x.q = q
	if opt.Kept != nil {
		x.others, x.keeps = keepable(q, in)
	}
	var err error
	if x.offset, _, err = constantCount(q.Offset); err == nil {
		x.limit, x.limited, err = constantCount(q.Limit)
	}
	if err != nil {
		return nil, err
	}
	return x, nil
}

// folded returns an expression with values for the calls over constants: what is known of them is known of
// conditions then. That they are no errors has been seen: they are among Star.Constants of the statement.
func (v *env) folded(e plan.Expr) plan.Expr {
	return plan.Rewrite(e, func(e plan.Expr) plan.Expr {
		c, ok := e.(*plan.Call)
		if !ok || slices.ContainsFunc(c.Args, func(a plan.Expr) bool { _, known := a.(plan.Const); return !known }) {
			return e
		}
		r, err := v.eval(c)
		if err != nil { // of an arm that no row takes
			return e
		}
		return plan.Const{Datum: r.Datum(c.T)}
	})
}

// mayFail reports whether one of some expressions may be an error for a row.
func mayFail(es []plan.Expr) bool {
	return slices.ContainsFunc(es, func(e plan.Expr) bool { return plan.Facts{}.MayFail((&env{}).folded(e)) })
}

func (x *execution) execute() (*vector.Batch, error) {
	if x.limited && x.limit == 0 {
		// Postgres does not start the plan below a LIMIT 0.
		b := &vector.Batch{}
		for _, e := range x.q.Output {
			b.Columns = append(b.Columns, vector.Column{Type: e.Type()})
		}
		return b, nil
	}
	if err := x.begin(); err != nil {
		return nil, err
	}
	r, err := x.compute()
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return x.spill.result()
	}
	if x.spill != nil {
		x.spill.file.Close() // memory did hold it
	}
	b, err := x.finish(r)
	if b != nil {
		b.Ties = x.tied
	}
	return b, err
}

// compute returns the result before its order and its cut; nil where it has gone to files.
func (x *execution) compute() (*result, error) {
	if len(x.q.Tables) == 0 {
		return x.row()
	}
	if x.q.Grouped {
		return x.grouped()
	}
	wanted := append([]plan.Expr(nil), x.q.Output...)
	for _, o := range x.q.Order {
		wanted = append(wanted, o.Expr)
	}
	at := cut{order: x.q.Order, keys: len(x.q.Output)}
	if x.limited || x.offset > 0 {
		if at.rows = x.offset; x.limited {
			// One more row than is wanted tells whether a tie is cut.
			if at.rows += x.limit; at.rows < 0 || at.rows > topRows {
				at.rows = 0
			}
		} else if len(x.q.Order) > 0 {
			at.rows = 0
		}
	}
	p, lowered, err := x.prepareRows(wanted, at, nil)
	if err != nil {
		return nil, err
	}
	x.mayUseFiles()
	if x.spill != nil {
		return nil, x.spillRows(p, lowered)
	}
	if at.rows == 0 || x.opt.forceSpill {
		if err := x.foresee(p.expectedRows(), int64(9*len(lowered)+rowWork)); err != nil {
			return nil, err
		}
	}
	rows, err := p.collect(lowered, at)
	if err != nil {
		return nil, err
	}
	if int64(rows.n) >= 1<<32 {
		return nil, forward(plan.ReasonMemory, "rows")
	}
	return x.collectedRows(p, rows.n, rows.cols), nil
}

// topRows bounds the rows for which an order is kept while they are gathered.
const topRows = 1 << 16

// Explain returns the physical plan of q as text: for every pipeline, lookups first,
// its steps in their order, and how groups are kept. Small tables are read for it.
func Explain(q *plan.Star, in Input) string {
	var b strings.Builder
	x, err := newExecution(context.Background(), q, in, Options{})
	if err == nil {
		x.trace = func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
		if err = x.begin(); err == nil {
			_, err = x.compute()
		}
	}
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

func (p *pipeline) describe(t func(string, ...any)) {
	t("scan %s", p.tab.Meta.Name)
	column := func(n *node) string {
		if n.kind == nodeColumn {
			return p.tab.Meta.Columns[n.col].Name
		}
		return "expression"
	}
	for i := range p.steps {
		s := &p.steps[i]
		switch s.kind {
		case program.StepRange:
			what := "range"
			if s.cost > 100 {
				what = "zones"
			}
			if s.n != nil {
				t("  %s %s [%d, %d] share %.3f", what, column(s.n), s.lo, s.hi, s.share)
			}
		case program.StepBits:
			t("  table %s share %.3f", column(s.n), s.share)
		case program.StepFilter:
			t("  filter risky=%v", s.risky)
		case program.StepProbe:
			b := p.probes[s.probe]
			t("  %s %s by %s: %d keys, %d entries, share %.3f", lookupNames[b.lut.kind], b.child.tab.Meta.Name,
				column(b.key), b.lut.keys, b.lut.rows, s.share)
		}
	}
	if p.never {
		t("  no rows")
	}
}

var lookupNames = [...]string{"bitmap", "array8", "array16", "array32", "hash"}
