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
// the tables that deliver some of the output.

// deviceRowShare: a device finds rows of which at most one in so many passes; of more, to
// read them is most of the work.
const deviceRowShare = 8

// prepareRows prepares a query for rows; a device may have filtered them.
func (x *execution) prepareRows(wanted []plan.Expr) (p *pipeline, lowered []plan.Expr, err error) {
	done, err := x.onDevice(func() (ok bool, err error) {
		if p, lowered, err = x.prepareFor(0, wanted, nil, true); err != nil {
			return false, err
		}
		ok, err = x.findRows(p)
		return ok || err == nil && !p.builds(), nil
	})
	if !done {
		return x.prepare(0, wanted, nil)
	}
	return p, lowered, err
}

// findRows has the device find the rows of p's table that pass, if it can, and makes p a
// pipeline of these.
func (x *execution) findRows(p *pipeline) (ok bool, err error) {
	a := &accelerator{x: x}
	if !a.ready(p) {
		return false, nil
	}
	if !x.opt.DeviceWait && p.expectedRows()*deviceRowShare > float64(p.tab.Rows) {
		return a.leave(fallbackMany), nil
	}
	l := newLowering(p)
	l.prog.Sink.Kind = program.SinkBitmap
	l.steps()
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
	p.tab, p.expected = t, 0
	before := slices.DeleteFunc(slices.Clone(p.steps[:p.fanned]), func(s step) bool {
		return s.kind != program.StepProbe || len(p.probes[s.probe].wanted) == 0 && s.probe != p.many
	})
	p.steps = append(before, p.steps[p.fanned:]...)
	p.fanned, p.indexable = len(before), false
	return nil
}
