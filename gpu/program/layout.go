package program

import (
	"encoding/binary"
	"math"
	"math/bits"

	"pgaccel/gpu/device"
)

// Shape of device lanes: vectors of VectorRows values in laneCount lanes.
const (
	VectorRows = 1024
	laneCount  = 32
	laneRows   = VectorRows / laneCount
	// laneSlack words can be read after the last vector.
	laneSlack = 128
)

// Sizes in bytes of the descriptors that kernels read from device memory; kernels/lanes.cuh
// has the same structures.
const (
	SegmentHeadBytes   = 16
	ColumnSegmentBytes = 32
)

// AppendSegmentHead appends a segment's descriptor: where its bitmap of live rows is (0: all
// rows live) and how many rows it has. The bitmap has a bit for each row and is read in
// words of 32 bits, up to the one that has the last row.
func AppendSegmentHead(b []byte, live device.Pointer, rows int) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(live))
	b = binary.LittleEndian.AppendUint32(b, uint32(rows))
	return binary.LittleEndian.AppendUint32(b, 0)
}

// AppendColumnSegment appends the descriptor of a column of a segment: its words as device
// lanes (any pointer where the width is 0), and its bitmap of nulls (0: none), read as that
// of live rows is.
func AppendColumnSegment(b []byte, words, nulls device.Pointer, f LaneFormat) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(words))
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Reference))
	b = binary.LittleEndian.AppendUint64(b, uint64(nulls))
	b = binary.LittleEndian.AppendUint32(b, f.Width)
	return binary.LittleEndian.AppendUint32(b, 0)
}

// LaneFormat is how device lanes hold a column of a segment: value - Reference, modulo 2^64,
// in Width bits, 0 to 64.
type LaneFormat struct {
	Reference int64
	Width     uint32
}

// LaneFormatOf returns the narrowest format for the values that are not null. Rows that are
// null may hold anything: their offsets are cut to the width.
func LaneFormatOf(c *SegmentColumn) LaneFormat {
	if c.Min > c.Max {
		return LaneFormat{} // nothing but nulls
	}
	return LaneFormat{c.Min, uint32(bits.Len64(uint64(c.Max) - uint64(c.Min)))}
}

// LaneWords returns how many 32-bit words the lanes of a column of a segment take, with the
// 128 that can be read after them.
func LaneWords(rows int, width uint32) int {
	return (rows+VectorRows-1)/VectorRows*laneCount*int(width) + laneSlack
}

// window is values of a column outside of which no row passes.
type window struct {
	column int
	lo, hi int64
}

// windows returns those of q's ranges, probes and sets that are of plain columns; none
// where a step is Risky, which looks at rows that do not pass.
func windows(q *Query) []window {
	var list []window
	for _, s := range q.Steps {
		if s.Risky {
			return nil
		}
		lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
		node := s.Node
		switch s.Kind {
		case StepRange:
			lo, hi = q.Ranges[s.Index].Lo, q.Ranges[s.Index].Hi
		case StepBits:
			lo, hi = spanOf(q.Bits[s.Index].Lo, q.Bits[s.Index].Size)
		case StepProbe:
			if q.Program.Lookups[s.Index].Left || q.Program.Lookups[s.Index].Kind == LookupHash {
				continue
			}
			node = q.Program.Lookups[s.Index].Key
			lo, hi = spanOf(q.Lookups[s.Index].Lo, q.Lookups[s.Index].Size)
		default:
			continue
		}
		if n := &q.Nodes[node]; n.Op == OpColumn {
			list = append(list, window{n.Index, lo, hi})
		}
	}
	return list
}

// Surviving returns the positions of q's segments that zone maps do not exclude, ascending:
// those where every range, probe and set of a plain column can let a row pass. All segments
// with rows survive where a step is Risky.
func Surviving(q *Query) []uint32 {
	windows := windows(q)
	list := make([]uint32, 0, len(q.Segments))
	for i := range q.Segments {
		s := &q.Segments[i]
		keep := s.Rows > 0
		for _, w := range windows {
			c := &s.Columns[w.column]
			if w.lo > w.hi || max(w.lo, c.Min) > min(w.hi, c.Max) {
				keep = false
				break
			}
		}
		if keep {
			list = append(list, uint32(i))
		}
	}
	return list
}

// AllSurvive reports, without a look at the segments, that zone maps exclude none that has
// rows. inner returns what every segment's Min is at most and every Max at least: the
// largest Min and the smallest Max of the column.
func AllSurvive(q *Query, inner func(column int) (largestMin, smallestMax int64)) bool {
	for _, w := range windows(q) {
		least, most := inner(w.column)
		// Each segment has Min <= least and Max >= most.
		if w.lo > w.hi || w.lo > most || w.hi < least {
			return false
		}
	}
	return true
}

// spanOf returns the first and the last of size values from lo on; an empty interval where
// there is none.
func spanOf(lo, size int64) (first, last int64) {
	if size <= 0 {
		return 1, 0
	}
	if last = lo + size - 1; last < lo {
		last = math.MaxInt64
	}
	return lo, last
}
