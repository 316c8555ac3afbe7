package gpu

import (
	"cmp"
	"slices"
	"unsafe"

	"pgaccel/gpu/program"
)

// unionColumn is a column that several queries read, by its ID in the table's first segment.
type unionColumn struct {
	id     uint64
	format format
	from   donor
	rider  *rider // whose query that is
}

// donor is where a column is found in a query's segments, by the first of them; -1: the segments
// themselves.
type donor struct {
	first  *program.Segment
	column int
}

func byID(a, b unionColumn) int { return cmp.Compare(a.id, b.id) }

// union returns the columns that riders read, by ID, and the bytes of device memory that they
// take. ok is false where riders have one in different widths: their kernels have it as a constant.
func union(riders []*rider) (columns []unionColumn, bytes int64, ok bool) {
	for _, r := range riders {
		columns = append(columns, r.columns...)
	}
	slices.SortStableFunc(columns, byID)
	ok = true
	for i := 1; i < len(columns); i++ {
		if a, b := &columns[i-1], &columns[i]; a.id == b.id && a.format.width != b.format.width {
			ok = false
		}
	}
	columns = slices.CompactFunc(columns, func(a, b unionColumn) bool { return a.id == b.id })
	for i := range columns {
		bytes += columns[i].format.bytes
	}
	return columns, bytes, ok
}

// together returns riders, the first among them, none of which is worse off than with a share of
// the bus for itself: n of them bring no more than n times what each of them reads.
func together(riders []*rider) []*rider {
	first := riders[0]
	for len(riders) > 1 {
		_, bytes, ok := union(riders)
		if !ok { // as good as never: formats were forgotten and found anew
			riders = riders[:len(riders)-1]
			continue
		}
		least, most := riders[0], riders[1]
		for _, r := range riders[1:] {
			if r.bytes < least.bytes {
				least = r
			}
			if r.bytes > most.bytes {
				most = r
			}
		}
		if bytes <= int64(len(riders))*least.bytes {
			break
		}
		if least == first {
			least = most
		}
		riders = slices.DeleteFunc(riders, func(r *rider) bool { return r == least })
	}
	return riders
}

// lists returns the segments that some rider computes, ascending.
func lists(riders []*rider) []uint32 {
	list := riders[0].list
	for _, r := range riders[1:] {
		if len(r.list) == len(list) && slices.Equal(r.list, list) {
			continue
		}
		list = slices.Concat(list, r.list)
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return list
}

// unionQuery stands for riders where their columns are brought: a query that has all of them, and
// nothing else.
func unionQuery(riders []*rider, columns []unionColumn) *program.Query {
	q := riders[0].q
	segments := make([]program.Segment, len(q.Segments))
	cells := make([]program.SegmentColumn, len(segments)*len(columns))
	for i := range segments {
		segments[i] = q.Segments[i]
		segments[i].Columns = cells[i*len(columns) : (i+1)*len(columns) : (i+1)*len(columns)]
		for c := range columns {
			segments[i].Columns[c] = columns[c].rider.q.Segments[i].Columns[columns[c].from.column]
		}
	}
	return &program.Query{Program: &program.Program{Columns: make([]program.Column, len(columns))}, Segments: segments, TableID: q.TableID}
}

// donorsMax bounds what a layout remembers of each column.
const donorsMax = 32

// isUnion says whether a layout is one for riders: of their columns, which are in the same place as
// when it was made. Their memory is there as long as they ride, others' may not be.
func (l *layout) isUnion(riders []*rider, columns []unionColumn, list []uint32) bool {
	q := riders[0].q
	if l.donors == nil || l.table != q.TableID || len(l.segments) != len(q.Segments) || len(l.segments[0].Columns) != len(columns) ||
		!slices.Equal(l.list, list) {
		return false
	}
	for c := range columns {
		if l.segments[0].Columns[c].ID != columns[c].id || l.widths[c] != columns[c].format.width {
			return false
		}
	}
	for c := -1; c < len(columns); c++ {
		if !slices.ContainsFunc(riders, func(r *rider) bool { return l.found(c, r) }) {
			return false
		}
	}
	return true
}

// found says whether a rider has a column (-1: the segments) of a layout of several queries in the
// same place.
func (l *layout) found(column int, r *rider) bool {
	from := donor{&r.q.Segments[0], -1}
	if column >= 0 {
		i, ok := slices.BinarySearchFunc(r.columns, l.segments[0].Columns[column].ID, func(c unionColumn, id uint64) int { return cmp.Compare(c.id, id) })
		if !ok {
			return false
		}
		from = r.columns[i].from
	}
	known := &l.donors[column+1]
	if slices.Contains(*known, from) {
		return true
	}
	for i := range l.segments {
		a, b := &l.segments[i], &r.q.Segments[i]
		if column < 0 {
			if a.Rows != b.Rows || !sameMemory(a.Live, b.Live) {
				return false
			}
			continue
		}
		if a, b := &a.Columns[column], &b.Columns[from.column]; a.ID != b.ID || !sameMemory(a.Words, b.Words) || !sameMemory(a.Nulls, b.Nulls) {
			return false
		}
	}
	if len(*known) < donorsMax {
		*known = append(*known, from)
	}
	return true
}

func sameMemory[T any](a, b []T) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}
