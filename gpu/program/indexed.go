package program

import (
	"slices"

	"pgaccel/gpu/device"
)

// Indexed is bitmap indexes that say which of a segment's rows can pass the query's steps. A
// device narrows the live rows to these before it scans (Narrow).
type Indexed struct {
	Columns []IndexedColumn
	Terms   []IndexTerm // at most IndexTermsMax
	// Clustered says that rows which are left mostly have neighbours that are.
	Clustered bool
}

// hasTerm reports whether indexes are asked for a step, so that it mostly costs nothing.
func (x *Indexed) hasTerm(s *Step) bool {
	return x != nil && slices.ContainsFunc(x.Terms, func(t IndexTerm) bool { return t.Kind == s.Kind && t.Index == s.Index && t.Kind != StepFilter })
}

// IndexedColumn is the indexes of a column's segments.
type IndexedColumn struct {
	Column int // of the query
	// Version names the indexes of all segments: equal numbers, equal indexes. Not 0.
	Version uint64
	// Of returns a segment's index, as package bitmapidx draws it, and its name, which is none
	// of another's; nil: it has none. Several goroutines may call it.
	Of func(segment int) (id uint64, words []uint64)
}

// IndexTerm is a condition on a column, or a part of one.
type IndexTerm struct {
	Column int // of Indexed.Columns
	// Kind and Index name the step that asks for it, StepRange or StepBits of that column. A StepFilter asks for more,
	// or for one of the values of Query.Sets[Index], where In is set, else Range is the condition.
	Kind  StepKind
	Index int
	In    bool
	Range Range
	Or    bool // this condition or the next one: one of both has to hold
}

// IndexTermsMax is the most terms of a query: they are a kernel's parameter.
const IndexTermsMax = 32

// The layout of what Narrow reads and leaves, as kernels/bitmaps.cuh has it.
const (
	narrowThreads = 128
	narrowWords   = listMax / 32 // of a segment's rows
	narrowNone    = 32           // no bit of SegmentHead.decided

	narrowRange = 0 // the kinds of terms
	narrowBits  = 1
	narrowList  = 2

	atomFill = 1 << 63
	atomOnes = 1 << 62
	atomRows = 63
)

// decidedBit returns the bit of SegmentHead.decided that says that all rows that indexes leave of a segment
// pass a step where they have a value.
func decidedBit(kind StepKind, index int) (bit uint32, ok bool) {
	switch {
	case index >= 16:
	case kind == StepRange:
		return uint32(index), true
	case kind == StepBits:
		return 16 + uint32(index), true
	}
	return narrowNone, false
}

// Narrowing is where Narrow finds things, and leaves them.
type Narrowing struct {
	List     device.Pointer   // of segments, 32 bits each; 0: the first ones
	Heads    device.Pointer   // of all segments
	Indexes  []device.Pointer // by Indexed.Columns: of all segments the pointer to their words, 0 for none
	Bits     []device.Pointer // by Query.Bits
	Sets     []device.Pointer // by Query.Sets
	Narrowed device.Pointer   // as Heads: those of the list's segments are written
	Bitmaps  device.Pointer   // NarrowBytes
	Alive    device.Pointer   // AliveBytes: how many vectors have rows that are left, 0 before, and which: segment << 6 | vector, in no order
}

// AliveSegments is the most segments of a query of which a scan takes Narrowing.Alive.
const AliveSegments = listMax

// AliveBytes is the size of Narrowing.Alive of so many segments.
func AliveBytes(segments int) int64 { return 4 + int64(segments)*(listMax/VectorRows)*4 }

// IndexPointerBytes is the size of an element of Narrowing.Indexes.
const IndexPointerBytes = 8

// NarrowBytes is the size of the bitmaps of so many segments.
func NarrowBytes(segments int) int64 { return int64(segments) * narrowWords * 4 }

// Narrow returns the command that asks the indexes of n segments: what follows reads Narrowed in
// place of Heads. m is the module of TranscodeSource.
func Narrow(m device.Module, q *Query, n int, at *Narrowing) device.Command {
	x := q.Indexed
	p := new(device.Params).Ptr(at.List).Ptr(at.Heads).Ptr(at.Narrowed).Ptr(at.Bitmaps).Ptr(at.Alive).U32(uint32(len(x.Terms))).U32(0)
	for i := range x.Terms {
		t := &x.Terms[i]
		kind, values, count := narrowRange, device.Pointer(0), 0
		if t.Kind == StepBits {
			kind, values = narrowBits, at.Bits[t.Index]
		} else if t.In {
			kind, values, count = narrowList, at.Sets[t.Index], len(q.Sets[t.Index])
		}
		decides, alone := decidedBit(t.Kind, t.Index)
		if t.Or || i > 0 && x.Terms[i-1].Or || !alone {
			decides = narrowNone
		}
		more := uint32(0)
		if t.Or {
			more = 1
		}
		lo, hi := t.interval(q)
		p.Ptr(at.Indexes[t.Column]).Ptr(values).I64(lo).I64(hi).U32(uint32(kind)).U32(uint32(count)).U32(decides).U32(more)
	}
	for range IndexTermsMax - len(x.Terms) {
		p.U64(0).U64(0).U64(0).U64(0).U64(0).U64(0)
	}
	return device.Command{Op: device.OpLaunch, Module: m, Function: "narrow",
		Grid: [3]uint32{uint32(n), 1, 1}, Block: [3]uint32{narrowThreads, 1, 1}, Params: p.Bytes()}
}

// interval is that outside of which the condition does not hold.
func (t *IndexTerm) interval(q *Query) (lo, hi int64) {
	switch t.Kind {
	case StepRange:
		return q.Ranges[t.Index].Lo, q.Ranges[t.Index].Hi
	case StepBits:
		return spanOf(q.Bits[t.Index].Lo, q.Bits[t.Index].Size)
	case StepFilter:
		if set := q.Sets; t.In && len(set[t.Index]) == 0 {
			return 1, 0
		} else if t.In {
			return set[t.Index][0], set[t.Index][len(set[t.Index])-1]
		}
	}
	return t.Range.Lo, t.Range.Hi
}

// AppendList appends Narrowing.List.
func AppendList(to []byte, list []uint32) []byte {
	b := appendTo(to)
	appendArray(&b, list)
	return b.bytes()
}

// narrow is Narrow for a segment: the rows that indexes leave, nil for all, and SegmentHead.decided. holds reports
// whether the set of a StepBits has a value.
func (x *Indexed) narrow(q *Query, segment, rows int, holds func(bits int, v int64) bool) (left []bool, decided uint32) {
	if x == nil {
		return nil, 0
	}
	left = make([]bool, rows)
	for i := range left {
		left[i] = true
	}
	var clause []bool
	for i := range x.Terms {
		t := &x.Terms[i]
		if clause == nil {
			clause = make([]bool, rows)
		}
		_, words := x.Columns[t.Column].Of(segment)
		exact := words != nil
		if words == nil {
			for i := range clause {
				clause[i] = true
			}
		} else {
			exact = t.add(q, words, clause, holds)
		}
		if bit, ok := decidedBit(t.Kind, t.Index); ok && exact && !t.Or && (i == 0 || !x.Terms[i-1].Or) {
			decided |= 1 << bit
		}
		if t.Or {
			continue
		}
		for i, in := range clause {
			left[i] = left[i] && in
		}
		clause = nil
	}
	return left, decided
}

// add adds the rows of the bins for which a term may hold. exact: it holds for all of them.
func (t *IndexTerm) add(q *Query, words []uint64, clause []bool, holds func(bits int, v int64) bool) (exact bool) {
	bins, from := int(words[0]), 0
	lo, hi := t.interval(q)
	exact = true
	for b := range bins {
		least, most, end := int64(words[1+b]), int64(words[1+bins+b]), int(words[1+2*bins+b])
		atoms := words[2+3*bins+from : 2+3*bins+end]
		from = end
		some := most >= lo && hi >= least
		if t.In && some {
			at, _ := slices.BinarySearch(q.Sets[t.Index], least)
			some = at < len(q.Sets[t.Index]) && q.Sets[t.Index][at] <= most
		}
		if t.Kind == StepBits && some {
			some = false
			for v := max(lo, least); v <= min(hi, most) && !some; v++ {
				some = holds(t.Index, v)
			}
		}
		if !some {
			continue
		}
		exact = exact && (t.Kind == StepBits && least == most || t.Kind != StepBits && lo <= least && most <= hi)
		row := 0
		for _, a := range atoms {
			n, bits := atomRows, a
			if a&atomFill != 0 {
				n, bits = atomRows*int(a&(atomOnes-1)), 0
				if a&atomOnes != 0 {
					bits = ^uint64(0)
				}
			}
			for ; n > 0 && row < len(clause); n, row = n-1, row+1 {
				clause[row] = clause[row] || bits>>(row%atomRows)&1 != 0
			}
		}
	}
	return exact
}
