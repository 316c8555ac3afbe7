package olap

import (
	"pgaccel/bitmapidx"
	"pgaccel/colstore"
	"pgaccel/gpu/program"
)

// Bitmap indexes of a query for a device. What they say of a condition goes with the query, by
// segment (program.Indexed); the step stays.

// indexable is a step that indexes may answer, as the processor and as a device has it.
type indexable struct {
	s    *step
	step program.Step
}

// useIndexes has bitmap indexes say which rows the device looks at, where that is forced: the host
// asks them anew for each query, which costs more than any column of a segment. The query is run
// before released gives them back.
func (l *lowering) useIndexes(q *program.Query) (released func()) {
	var held []*colstore.Index
	release := func() {
		for _, x := range held {
			x.Release()
		}
	}
	if !l.p.indexable || l.p.x.opt.Indexes != IndexForce {
		return release
	}
	out := &program.Indexed{Terms: make([][]program.IndexTerm, len(q.Segments)), Exact: make([]bool, len(q.Ranges))}
	for i := range l.byValue {
		c := l.askIndexes(&l.byValue[i], q)
		held = append(held, c.held...)
		if c.asked == 0 {
			continue
		}
		q.Indexed = out
		for at, term := range c.terms {
			if term != nil {
				out.Terms[at] = append(out.Terms[at], *term)
			}
		}
		if to := l.byValue[i].step; to.Kind == program.StepRange {
			out.Exact[to.Index] = c.exact
		}
	}
	return release
}

// conditionTerms is what the indexes of a column say of a condition.
type conditionTerms struct {
	terms []*program.IndexTerm // by segment; nil: any row may pass
	exact bool                 // all rows that they leave pass where they have a value
	asked int                  // indexes
	held  []*colstore.Index
}

// askIndexes asks the indexes of all segments.
func (l *lowering) askIndexes(c *indexable, q *program.Query) conditionTerms {
	s := c.s
	out := conditionTerms{terms: make([]*program.IndexTerm, len(q.Segments)), exact: true}
	for i, seg := range l.p.tab.Segments {
		z := &seg.Columns[s.n.col]
		if s.kind == program.StepRange {
			if z.Min > z.Max || s.lo > z.Max || s.hi < z.Min {
				out.terms[i] = &program.IndexTerm{} // no row passes
				continue
			}
			if s.lo <= z.Min && z.Max <= s.hi {
				continue // all that are not null do
			}
		}
		x := seg.Index(s.n.col)
		if x == nil {
			out.exact = false
			continue
		}
		out.held = append(out.held, x)
		a, ok := s.answer(x)
		if !ok {
			out.exact = false
			continue
		}
		out.asked++
		out.exact = out.exact && a.Exact
		term := &program.IndexTerm{ID: x.ID, Atoms: x.Words(), Parts: make([]program.IndexPart, len(a.Parts)), Not: a.Not}
		for k, p := range a.Parts {
			term.Parts[k] = program.IndexPart{From: uint32(p.From), To: uint32(p.To)}
		}
		out.terms[i] = term
	}
	indexesAsked.Add(int64(out.asked))
	return out
}

// answer is what an index says of a step; ok is false where it is not asked.
func (s *step) answer(x *colstore.Index) (a bitmapidx.Answer, ok bool) {
	if s.kind == program.StepRange {
		return x.RangeAnswer(s.lo, s.hi), true
	}
	values, _, ok := s.passing(x)
	if !ok {
		return a, false
	}
	return x.InAnswer(values), true
}
