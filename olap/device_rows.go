package olap

import (
	"math/bits"
	"slices"

	"pgaccel/colstore"
	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// Queries for rows. A device finds them: it sets a bit for each that passes all steps. The
// processor then reads these rows as if the others were not live, and looks them up in
// the tables that deliver some of the output. Of ORDER BY with LIMIT it finds those that may be
// among the first (device_cut.go).

// deviceRowShare: a device finds rows of which at most one in so many passes; of more, to
// read them is most of the work.
const deviceRowShare = 8

// prepareRows prepares a query for rows; a device may have filtered them, and left out what a cut does. Where worth, if not
// nil, says of the pipeline that it is not, nothing is done and p is nil.
func (x *execution) prepareRows(wanted []plan.Expr, at cut, worth func(p *pipeline) bool) (p *pipeline, lowered []plan.Expr, err error) {
	done, err := x.onDevice(func() (ok bool, err error) {
		if p, lowered, err = x.prepareFor(0, wanted, nil, true); err != nil {
			return false, err
		}
		if worth != nil && !worth(p) {
			p = nil
			return true, nil
		}
		ok, err = x.findRows(p, lowered, at)
		return ok || err == nil && !p.builds(), nil
	})
	if done {
		return p, lowered, err
	}
	if p, lowered, err = x.prepare(0, wanted, nil); err == nil && worth != nil && !worth(p) {
		p = nil
	}
	return p, lowered, err
}

// findsRows reports whether a device is to find the rows of a joined table, of which p is the pipeline.
func (p *pipeline) findsRows() bool {
	x, rows := p.x, p.tab.Rows
	if x.opt.Device == nil || x.opt.Prepare || x.trace != nil || x.q.Tables[p.table].Relation != nil || !x.opt.enough(int(rows), deviceRows) ||
		p.expectedRows()*deviceRowShare > float64(rows) {
		return false
	}
	_, ok := x.opt.Device.Limits()
	return ok && !x.standsFor()
}

// findRows has the device find the rows of p's table that pass and that a cut may leave, if it can, and makes p a
// pipeline of these. exprs are what is collected of them.
func (x *execution) findRows(p *pipeline, exprs []plan.Expr, at cut) (ok bool, err error) {
	a := &accelerator{x: x}
	if !a.ready(p) {
		return false, nil
	}
	var code *orderCode
	if few := max(cutCandidates, at.rows*deviceRowShare); x.opt.DeviceWait || float64(few) <= min(p.expectedRows(), float64(p.tab.Rows)) {
		code = p.orderCode(exprs, at) // else there is little to be cut
	}
	if code == nil && !x.opt.DeviceWait && p.expectedRows()*deviceRowShare > float64(p.tab.Rows) {
		return a.leave(fallbackMany), nil
	}
	l := newLowering(p)
	l.prog.Sink.Kind = program.SinkBitmap
	l.steps()
	if code != nil && l.why == "" {
		if ok, err := a.cut(l, code, at.rows); !ok {
			return false, err
		}
	}
	if l.why == "" && len(l.prog.Steps) == 0 {
		l.no(fallbackMany)
	}
	if l.why != "" {
		return a.leave(l.why), nil
	}
	r, err := a.run(l)
	if r == nil || err != nil {
		return false, err
	}
	if err := p.restrict(r.Bitmaps); err != nil {
		return false, err
	}
	a.computed()
	return true, nil
}

// restrict leaves only the rows whose bits are set, by segment, which are those that pass
// all steps that do not depend on one of many partners. Lookups that deliver something are looked up again.
func (p *pipeline) restrict(passes [][]uint64) error {
	t := &colstore.Table{Meta: p.tab.Meta, Dicts: p.tab.Dicts, Snapshot: p.tab.Snapshot}
	for i, seg := range p.tab.Segments {
		n := 0
		for _, w := range passes[i] {
			n += bits.OnesCount64(w)
		}
		if n == 0 {
			continue
		}
		if err := p.x.take(int64(8 * len(passes[i]))); err != nil {
			return err
		}
		s := *seg
		s.Live, s.LiveID = passes[i], 0
		t.Segments, t.Rows = append(t.Segments, &s), t.Rows+int64(n)
	}
	p.unrestricted = p.tab
	p.tab, p.expected = t, 0
	before := slices.DeleteFunc(slices.Clone(p.steps[:p.fanned]), func(s step) bool {
		return s.kind != program.StepProbe || len(p.probes[s.probe].wanted) == 0 && s.probe != p.many
	})
	p.steps = append(before, p.steps[p.fanned:]...)
	p.fanned, p.indexable, p.narrowable = len(before), false, false
	return nil
}
