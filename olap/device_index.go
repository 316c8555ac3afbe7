package olap

import (
	"math/bits"

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

// What a device does in the time of reading one byte of memory: an H200 reads 4.2 TB/s. Atoms cost
// about twice their bytes (papers/wah).
const (
	deviceAtomBytes   = 16
	deviceLaunchBytes = 16 << 20 // of a launch, 4 microseconds
	// deviceSegmentBytes is for asking an index on the host, 0.25 microseconds: a guess, nobody has
	// measured it. It is more than any column of a segment has, so that no index is asked unless it
	// is forced, as long as the host asks anew for each query.
	deviceSegmentBytes = 1 << 20
)

// useIndexes has bitmap indexes say which rows the device looks at, where that is cheaper than to
// read columns, or is forced. The query is run before released gives them back.
func (l *lowering) useIndexes(q *program.Query) (released func()) {
	var held []*colstore.Index
	release := func() {
		for _, x := range held {
			x.Release()
		}
	}
	if !l.p.indexable || len(l.byValue) == 0 {
		return release
	}
	out := &program.Indexed{Terms: make([][]program.IndexTerm, len(q.Segments)), Exact: make([]bool, len(q.Ranges))}
	force := l.p.x.opt.Indexes == IndexForce
	used, gain := false, float64(-deviceLaunchBytes)
	for i := range l.byValue {
		c := l.askIndexes(&l.byValue[i], q)
		held = append(held, c.held...)
		if c.asked == 0 || !force && c.gain <= 0 {
			continue
		}
		used = true
		gain += c.gain
		for at, term := range c.terms {
			if term != nil {
				out.Terms[at] = append(out.Terms[at], *term)
			}
		}
		if to := l.byValue[i].step; to.Kind == program.StepRange {
			out.Exact[to.Index] = c.exact
		}
	}
	if used && (force || gain > 0) {
		q.Indexed = out
	}
	return release
}

// conditionTerms is what the indexes of a column say of a condition.
type conditionTerms struct {
	terms []*program.IndexTerm // by segment; nil: any row may pass
	exact bool                 // all rows that they leave pass where they have a value
	asked int                  // indexes
	held  []*colstore.Index
	gain  float64 // bytes of device memory that are read less
}

// askIndexes asks the indexes of all segments.
func (l *lowering) askIndexes(c *indexable, q *program.Query) conditionTerms {
	s := c.s
	out := conditionTerms{terms: make([]*program.IndexTerm, len(q.Segments)), exact: true}
	column := l.columns[s.n.col]
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
		cell := &q.Segments[i].Columns[column]
		out.gain += gainOnDevice(&a, seg.Rows, bits.Len64(uint64(cell.Max)-uint64(cell.Min)), s)
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

// gainOnDevice estimates the bytes that a device reads less of a column of so many rows and bits: that
// of vectors without rows that are left, or where no value is to be compared, all.
func gainOnDevice(a *bitmapidx.Answer, rows, width int, s *step) float64 {
	column := float64(rows) * float64(width) / 8
	read := 0.0
	if s.kind != program.StepRange || !a.Exact {
		// An atom lies in two vectors at most, unless it is a long fill.
		vectors := float64(rows)/program.VectorRows + 1
		read = min(1, (2*float64(a.Words())+s.share*float64(rows)/program.VectorRows)/vectors)
		if a.Not {
			read = 1
		}
	}
	return column*(1-read) - deviceAtomBytes*float64(a.Words()) - float64(rows)/4 - deviceSegmentBytes
}
