package olap

import (
	"cmp"
	"errors"

	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// Report says who computed a query, for Options.Report: all of its stars.
type Report struct {
	// Device names what computed the groups, or found the rows, of a star at least, as
	// gpu.Stats does; empty where the processor did all of it.
	Device string
	// Fallback says why a device that was offered did not: one of few words, for metrics.
	// Empty where none was offered, or it computed a star; a fault is always told.
	Fallback string
	Err      error     // of a device that failed
	Stats    gpu.Stats // of all of the device's queries
}

// Reasons of Report.Fallback. Those of lowering name what has no counterpart on a device:
// aggregate, function, groups, join.
const (
	fallbackNone      = "no device"
	fallbackSmall     = "small"
	FallbackCompiling = "compiling" // the next execution may find the kernel
	fallbackBusy      = "busy"
	fallbackFault     = "device fault"
	fallbackData      = "error in the data" // the processor decides whether it is one
	fallbackFull      = "too many groups"
	fallbackPlan      = "plan" // the processor tells what is wrong
	fallbackEmpty     = "no rows"
	fallbackMany      = "many rows"
	fallbackTexts     = "equal texts"
)

// deviceRows is the number of rows from which on a query is offered to a device that it
// does not demand: with fewer, copies and launches take longer than the processor does.
const deviceRows = 2 << 20

// accelerator is a device that an execution may use.
type accelerator struct {
	x      *execution
	limits gpu.Limits
	device string // that has computed
	err    error  // of a device that failed
}

// offered reports whether a device may be tried for the query, whose relations have been computed.
func (x *execution) offered() bool {
	if x.opt.Device == nil || x.trace != nil || len(x.q.Tables) == 0 {
		return false
	}
	a := &accelerator{x: x}
	if _, ok := x.opt.Device.Limits(); !ok {
		return a.leave(fallbackNone)
	}
	if x.standsFor() {
		return a.leave(fallbackTexts)
	}
	for i := range x.q.Aggs {
		if !aggregatesOnDevice(&x.q.Aggs[i]) {
			return a.leave("aggregate")
		}
	}
	return x.opt.DeviceWait || x.opt.enough(int(x.drivingRows()), deviceRows) || a.leave(fallbackSmall)
}

// drivingRows is the number of rows of the table that drives the query; of a relation, once it is computed.
func (x *execution) drivingRows() int64 {
	if s := x.q.Tables[0]; s.Relation == nil {
		return x.in.Tables[s.Table].Rows
	}
	return x.tabs[0].Rows
}

// onDevice has a device tried for the query, where one may be. done is false where all must be
// done again without.
func (x *execution) onDevice(try func() (done bool, err error)) (done bool, err error) {
	if x.device == nil {
		if x.opt.Prepare {
			return true, ErrPrepared
		}
		return false, nil
	}
	held := x.memory.Load()
	done, err = try()
	if x.opt.Prepare {
		return true, ErrPrepared
	}
	if done {
		return true, err
	}
	if err := x.ctx.Err(); err != nil {
		return true, err
	}
	if err != nil {
		(&accelerator{x: x}).leave(fallbackPlan)
	}
	x.give(x.memory.Load() - held)
	return false, nil
}

// ready reports whether the device may have a pipeline that was prepared for it.
func (a *accelerator) ready(p *pipeline) (ok bool) {
	if a.limits, ok = a.x.opt.Device.Limits(); !ok {
		return a.leave(fallbackNone)
	}
	if p.never || len(p.tab.Segments) == 0 {
		return a.leave(fallbackEmpty)
	}
	if a.x.opt.DeviceWait {
		return true
	}
	_, rows := p.read(deviceRows)
	return a.x.opt.enough(int(rows), deviceRows) || a.leave(fallbackSmall)
}

// aggregatesOnDevice reports whether a device may have the accumulators of an aggregate.
func aggregatesOnDevice(a *plan.AggregateCall) bool {
	switch a.Func.State {
	case sqlfn.AggregateLeast, sqlfn.AggregateGreatest, sqlfn.AggregateCount, sqlfn.AggregateSum:
		return true
	case sqlfn.AggregateSorted:
		return a.Func.OrderedSet()
	case sqlfn.AggregateMoments:
		return a.Distinct || !a.Arg.Type().Kind.IsFloat()
	case sqlfn.AggregateFold:
		return a.Distinct && !a.Func.Idempotent || a.Arg.Type().Kind == vector.Bool
	}
	return false
}

// accelerate has the device compute the bases of a grouper, if it can. Else the processor
// has to.
func (x *execution) accelerate(g *grouper) (ok bool, err error) {
	a := &accelerator{x: x}
	if !a.ready(g.p) {
		return false, nil
	}
	if !x.opt.DeviceWait && g.knownByZones() {
		return a.leave(fallbackSmall), nil
	}
	g.device = true
	g.arrange(x.q.Sets)
	return a.groups(g)
}

// computed tells the caller that the device has done a star.
func (a *accelerator) computed() {
	if r := a.x.opt.Report; r != nil {
		a.x.reporting.Lock()
		defer a.x.reporting.Unlock()
		if r.Device = a.device; r.Fallback != fallbackFault {
			r.Fallback = ""
		}
	}
}

// leave notes that the processor computes a star, and why.
func (a *accelerator) leave(why string) bool {
	a.x.reporting.Lock()
	defer a.x.reporting.Unlock()
	switch r := a.x.opt.Report; {
	case r == nil:
	case why == fallbackFault:
		r.Fallback, r.Err = why, a.err
	case r.Device == "" && (r.Fallback == "" || why == FallbackCompiling && r.Fallback != fallbackFault): // which has the shape warmed up
		r.Fallback = why
	}
	return false
}

// run computes a query; nil where the processor has to. The error is that of the context.
func (a *accelerator) run(l *lowering) (*program.Result, error) {
	q := l.query()
	if a.x.opt.Prepare {
		a.prepare([]deviceBase{{l: l}})
		return nil, nil
	}
	defer l.useIndexes(q)()
	var r *program.Result
	var stats gpu.Stats
	var err error
	opt := gpu.RunOptions{Wait: a.x.opt.DeviceWait, Caller: a.x.opt.DeviceCaller}
	a.x.aside(func() {
		r, stats, err = a.x.opt.Device.Run(a.x.ctx, q, opt)
		if q.Indexed != nil && errors.Is(err, gpu.ErrCompiling) { // the kernel without may be there
			q.Indexed = nil
			r, stats, err = a.x.opt.Device.Run(a.x.ctx, q, opt)
		}
	})
	if report := a.x.opt.Report; report != nil {
		a.x.reporting.Lock()
		report.Stats.Add(stats)
		a.x.reporting.Unlock()
	}
	if a.x.opt.Scanned != nil {
		a.x.opt.Scanned.Indexed.Add(int64(stats.Indexed))
	}
	a.device = stats.Device
	why := ""
	switch {
	case err == nil && r == nil:
		why = fallbackFault
	case err == nil && r.Fault:
		why = fallbackData
	case err == nil && r.Full:
		why = fallbackFull
	case err == nil:
		return r, nil
	case a.x.ctx.Err() != nil:
		return nil, a.x.ctx.Err()
	case errors.Is(err, gpu.ErrCompiling):
		why = FallbackCompiling
	case errors.Is(err, gpu.ErrBusy):
		why = fallbackBusy
	default:
		why = fallbackFault
		a.err = err
	}
	a.leave(why)
	return nil, nil
}

// fewRanked are so few different values of groups that they are counted however few rows there are.
const fewRanked = 1 << 12

// deviceBase is a base of a grouper as a device computes it, or the values that an accumulator collects of
// its groups.
type deviceBase struct {
	by     *grouping
	l      *lowering
	digits []deviceDigit
	accs   []deviceAcc
	set    int          // the accumulator; -1: the groups themselves
	first  bool         // counts are the first ones, which may be all that is asked for (topCounts)
	radix  *radixSelect // of percentiles of many values
}

// lowerBases lowers the bases of a grouper that has been arranged for a device, each before its sets of values.
func (a *accelerator) lowerBases(g *grouper) (list []deviceBase, why string) {
	rows := g.p.expectedRows()
	add := func(b deviceBase, expect float64) {
		if b.l.why == "" {
			b.l.place(expect, a.limits.SharedBytes, a.limits.Memory, rows)
		}
		list, why = append(list, b), cmp.Or(why, b.l.why)
	}
	for _, by := range g.bases {
		l := newLowering(g.p)
		l.steps()
		digits, accs := l.groups(by)
		g.leavesOut(l, by, digits, accs)
		add(deviceBase{by: by, l: l, digits: digits, accs: accs, set: -1}, by.expect)
		for k := range g.accs {
			a := &g.accs[k]
			if a.kind != accDistinct && a.kind != accRanked {
				continue
			}
			l := newLowering(g.p)
			l.steps()
			digits := l.values(by, a)
			if a.kind == accDistinct {
				l.distinct(digits, g.onlyCounts(k))
				first := g.topCounts(l, by, k, digits)
				add(deviceBase{by: by, l: l, digits: digits, set: k, first: first}, max(by.expect, pairsExpected))
				continue
			} else if l.q.Groups == 0 || float64(l.q.Groups) > rows/histogramShare && l.q.Groups > fewRanked {
				s := g.newRadixSelect(by, k) // there are about as many values as rows
				l, digits = s.pass()
				add(deviceBase{by: by, l: l, digits: digits, set: k, radix: s}, s.expect())
				continue
			}
			add(deviceBase{by: by, l: l, digits: digits, set: k}, max(by.expect, pairsExpected))
		}
	}
	return list, why
}

// groups computes the bases of a grouper that has been arranged for it. ok is false where
// the processor has to.
func (a *accelerator) groups(g *grouper) (ok bool, err error) {
	list, why := a.lowerBases(g)
	if why != "" {
		return a.leave(why), nil
	}
	var s *groups // of the base before
	var counted *program.Result
	if len(list) == 2 && list[1].first {
		if counted, err = a.run(list[1].l); counted == nil || err != nil {
			a.prepare(list[:1])
			return false, err
		}
		if ok, err := list[1].takeCounts(counted); ok || err != nil {
			a.computed()
			return err == nil, err
		}
	}
	for i := range list {
		b := &list[i]
		r := counted
		if i == 0 || counted == nil {
			if r, err = a.run(b.l); r == nil || err != nil {
				a.prepare(list[i+1:])
				return false, err
			}
		}
		if b.radix != nil {
			if ok, err := a.selects(b.radix, s, r, b.digits); !ok {
				a.prepare(list[i+1:])
				return false, err
			}
		} else if b.set < 0 {
			s, err = b.by.take(r, b.digits, b.accs)
		} else {
			err = s.takeValues(b.set, r, b.digits, b.l.prog.Sink.Counted)
		}
		if err != nil {
			return false, err
		}
	}
	a.computed()
	return true, nil
}

// prepare has the kernels of what was not run be compiled: beside that of what could not be, or for an execution to come.
func (a *accelerator) prepare(list []deviceBase) {
	if a.x.opt.DeviceWait && !a.x.opt.Prepare {
		return
	}
	for i := range list {
		_, _, _ = a.x.opt.Device.Run(a.x.ctx, list[i].l.query(), gpu.RunOptions{Prepare: true, Ahead: a.x.opt.Prepare})
	}
}

// query returns the query, over all segments of the table.
func (l *lowering) query() *program.Query {
	columns := make([]int, len(l.columns))
	for col, i := range l.columns {
		columns[i] = col
	}
	for probe, i := range l.lookups {
		l.q.Lookups[i].ID = l.lookupID(l.p.probes[probe], l.asked[probe])
	}
	relation := l.p.x.q.Tables[l.p.table].Relation != nil
	l.q.Segments = segmentsOnDevice(l.p.tab, columns, relation)
	if !relation {
		l.q.TableID = l.p.tab.ID
	}
	return l.q
}

// knownByZones reports whether zone maps answer the query where all rows count: the
// processor need not even look at rows.
func (g *grouper) knownByZones() bool {
	if len(g.keys) > 0 || len(g.p.steps) > 0 {
		return false
	}
	for i := range g.accs {
		a := &g.accs[i]
		switch {
		case a.kind != program.AccRows && a.kind != program.AccCount && a.kind != program.AccMin && a.kind != program.AccMax, a.filter != nil,
			a.arg != nil && a.arg.kind != nodeColumn:
			return false
		}
	}
	return true
}
