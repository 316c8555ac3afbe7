package program

import (
	"encoding/binary"

	"pgaccel/gpu/device"
)

// Indexed is what bitmap indexes say of a query's conditions: which of a segment's rows can pass
// its steps. A device narrows the live rows to these before it scans (Narrow).
type Indexed struct {
	// Terms are by segment. Rows that one of them does not have, pass no step that follows;
	// where there is none, all rows may pass.
	Terms [][]IndexTerm
	// Exact says, by Query.Ranges, that all rows that are left pass where they have a value:
	// columns need not be read to see that.
	Exact []bool
}

// IndexTerm is one condition on a segment's rows: atoms, as package bitmapidx has them.
type IndexTerm struct {
	ID    uint64 // of Atoms, as SegmentColumn.ID; 0: not to be kept on a device
	Atoms []uint64
	Parts []IndexPart // those that count
	Not   bool        // the rows are those that the parts do not have
	Or    bool        // or those of the next term: one of both has to hold
}

// IndexPart is Atoms[From:To]: whole bins, each for all rows.
type IndexPart struct{ From, To uint32 }

// Remaining returns the segments of a list but for those of which a term alone has no row.
func (x *Indexed) Remaining(list []uint32) []uint32 {
	if x == nil {
		return list
	}
	left := make([]uint32, 0, len(list))
	for _, segment := range list {
		none, or := false, false
		for i := range x.Terms[segment] {
			t := &x.Terms[segment][i]
			none = none || !or && !t.Or && !t.Not && len(t.Parts) == 0
			or = t.Or
		}
		if !none {
			left = append(left, segment)
		}
	}
	return left
}

// The layout of what Narrow reads, as kernels/bitmaps.cuh has it.
const (
	narrowThreads = 256
	narrowWords   = listMax / 32 // of a segment's rows
	narrowNot     = 1 << 31
	narrowOr      = 1 << 30

	atomFill = 1 << 63
	atomOnes = 1 << 62
	atomRows = 63
)

// NarrowOrders are what Narrow reads: which segments, their terms, the terms' parts.
type NarrowOrders struct{ Segments, Terms, Parts []byte }

// PackIndexed makes the orders for some segments. atoms says where a term's are in device memory.
func PackIndexed(x *Indexed, list []uint32, atoms func(t *IndexTerm) (device.Pointer, error)) (o NarrowOrders, err error) {
	u32 := binary.LittleEndian.AppendUint32
	terms, parts := uint32(0), uint32(0)
	for _, segment := range list {
		of := x.Terms[segment]
		o.Segments = u32(u32(u32(u32(o.Segments, segment), terms), uint32(len(of))), 0)
		terms += uint32(len(of))
		for i := range of {
			t := &of[i]
			at, err := atoms(t)
			if err != nil {
				return o, err
			}
			flags := uint32(len(t.Parts))
			if t.Not {
				flags |= narrowNot
			}
			if t.Or {
				flags |= narrowOr
			}
			o.Terms = u32(u32(binary.LittleEndian.AppendUint64(o.Terms, uint64(at)), parts), flags)
			parts += uint32(len(t.Parts))
			for _, p := range t.Parts {
				o.Parts = u32(u32(o.Parts, p.From), p.To)
			}
		}
	}
	return o, nil
}

// Narrowing is where Narrow finds things, and leaves them.
type Narrowing struct {
	Segments, Terms, Parts device.Pointer // NarrowOrders
	Heads                  device.Pointer // of all segments
	Narrowed               device.Pointer // as many: those of the segments in the orders are written
	Bitmaps                device.Pointer // NarrowBytes
}

// NarrowBytes is the size of the bitmaps of so many segments.
func NarrowBytes(segments int) int64 { return int64(segments) * narrowWords * 4 }

// Narrow returns the command that carries out the orders for n segments: what follows reads
// Narrowed in place of Heads. m is the module of TranscodeSource.
func Narrow(m device.Module, n int, at *Narrowing) device.Command {
	p := new(device.Params).Ptr(at.Segments).Ptr(at.Terms).Ptr(at.Parts).Ptr(at.Heads).Ptr(at.Narrowed).Ptr(at.Bitmaps)
	return device.Command{Op: device.OpLaunch, Module: m, Function: "narrow",
		Grid: [3]uint32{uint32(n), 1, 1}, Block: [3]uint32{narrowThreads, 1, 1}, Params: p.Bytes()}
}

// has reports whether the atoms' rows, or with Not all others, have a row: one atom after the other.
func (t *IndexTerm) has(row, rows int) bool {
	chunks := (rows + atomRows - 1) / atomRows
	for _, p := range t.Parts {
		chunk := 0
		for _, a := range t.Atoms[p.From:p.To] {
			n, bits := 1, a
			if a&atomFill != 0 {
				n, bits = int(a&(atomOnes-1)), 0
				if a&atomOnes != 0 {
					bits = ^uint64(0)
				}
			}
			if c := row / atomRows; chunk <= c && c < chunk+n && bits>>(row%atomRows)&1 != 0 {
				return !t.Not
			}
			chunk = (chunk + n) % chunks
		}
	}
	return t.Not
}

// allows reports whether a row of a segment is one that the indexes leave.
func (x *Indexed) allows(segment, row, rows int) bool {
	if x == nil {
		return true
	}
	any := false
	for i := range x.Terms[segment] {
		t := &x.Terms[segment][i]
		any = any || t.has(row, rows)
		if !t.Or {
			if !any {
				return false
			}
			any = false
		}
	}
	return true
}
