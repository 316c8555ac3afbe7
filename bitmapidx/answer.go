package bitmapidx

// Answer says which rows a condition selects by the atoms to read, for who decodes them
// elsewhere: a device. Those of each bin begin at the first row and end behind the last.
type Answer struct {
	Parts []Part
	// Not: the rows are those that no part has. Null rows are in neither.
	Not bool
	// Exact: all rows pass. Else they are candidates: their values are to be compared.
	Exact bool
}

// Part is atoms of neighbouring bins: Index.Words()[From:To].
type Part struct{ From, To int }

// Words is how many atoms an answer has.
func (a *Answer) Words() (n int) {
	for _, p := range a.Parts {
		n += p.To - p.From
	}
	return n
}

// Words are the atoms of all bins, then those of the rows that are null. They are not to be
// changed.
func (x *Index) Words() []uint64 { return x.all }

// RangeAnswer is Range as an answer.
func (x *Index) RangeAnswer(lo, hi int64) Answer {
	s := x.span(lo, hi)
	a := Answer{Exact: !s.low && !s.high}
	if s.low {
		s.from--
	}
	if s.high {
		s.to++
	}
	if s.from == s.to {
		return a
	}
	from, to := x.at(s.from), x.at(s.to)
	if outside := len(x.all) - (to - from); outside < to-from {
		a.Not = true
		a.add(0, from)
		a.add(to, len(x.all))
		return a
	}
	a.add(from, to)
	return a
}

// InAnswer is In as an answer.
func (x *Index) InAnswer(values []int64) Answer {
	a := Answer{Exact: true}
	for i := range x.binsOf(values) {
		a.Exact = a.Exact && x.bins[i].lo == x.bins[i].hi
		a.add(x.at(i), x.at(i+1))
	}
	return a
}

// at is the place of bin i's first atom, and of the end of those before.
func (x *Index) at(i int) int {
	if i < len(x.bins) {
		return x.bins[i].at
	}
	return len(x.all) - len(x.nulls)
}

// add appends a part, or makes the one before it longer.
func (a *Answer) add(from, to int) {
	if n := len(a.Parts); n > 0 && a.Parts[n-1].To == from {
		a.Parts[n-1].To = to
	} else if from < to {
		a.Parts = append(a.Parts, Part{from, to})
	}
}
