package colstore

import (
	"math/bits"

	"pgaccel/compress"
)

// segment is the writer's side of a Segment: rows of one part, with addresses
// slot<<16 | row that stay while it is filled and when it is encoded.
type segment struct {
	slot uint32
	part *part

	// The stream's (Relation.writing).
	buf   *buffers // while it is not encoded
	busy  bool     // the transaction at hand has put rows in
	n     int      // rows, committed or not
	zones []zone
	gone  []uint64 // rows deleted, seen by nobody or by everybody; nil for none
	next  []uint32 // by row, its chain's next address; see Relation.enter
	chain *block   // memory of next

	// What readers see (Relation.mu; columns and mem: both).
	rows      int
	mark      *mark    // of an open segment
	columns   []Column // of an encoded one
	mem       *block   // of columns
	dead      []uint64 // deletes that are folded in; never written again; may end early
	deadCount int
	unfolded  []inserter // of commits in the log, ascending
	image     *Segment   // what readers get where no commit in the log concerns it
}

// inserter says which commit inserted the rows before to, from the one before it.
type inserter struct {
	to       uint32
	xid, seq uint64
}

// buffers are the columns of an open segment: values as they are, null bitmaps.
type buffers struct {
	room   int
	mem    *block
	values [][]int64 // nil for columns that are not copied
	nulls  [][]uint64
}

// mark is how far an open segment is committed. It is immutable. The words of null
// bitmaps before the last are never written again; that is kept here.
type mark struct {
	buf   *buffers
	rows  int
	zones []zone
	last  []uint64
	image *Segment // made by the first reader that needs it; Relation.mu
}

const tailRowsMin = 256

// newBuffers makes room for rows, a multiple of 64, and copies the first n of old.
func newBuffers(a *arena, copied []bool, rows int, old *buffers, n int) (*buffers, error) {
	b := &buffers{room: rows, mem: newBlock(a), values: make([][]int64, len(copied)), nulls: make([][]uint64, len(copied))}
	for i, ok := range copied {
		if !ok {
			continue
		}
		values, err := b.mem.alloc(8 * rows)
		if err != nil {
			b.mem.release()
			return nil, err
		}
		nulls, err := b.mem.alloc(rows / 8)
		if err != nil {
			b.mem.release()
			return nil, err
		}
		b.values[i], b.nulls[i] = view[int64](values)[:rows:rows], view[uint64](nulls)[:rows/64:rows/64]
		clear(b.nulls[i])
		if old != nil {
			copy(b.values[i], old.values[i][:n])
			copy(b.nulls[i], old.nulls[i][:(n+63)/64])
		}
	}
	return b, nil
}

// commit makes the mark of an open segment's rows.
func (seg *segment) newMark() *mark {
	m := &mark{buf: seg.buf, rows: seg.n, zones: make([]zone, len(seg.zones)), last: make([]uint64, len(seg.zones))}
	copy(m.zones, seg.zones)
	if seg.n%64 != 0 {
		for i, nulls := range seg.buf.nulls {
			if nulls != nil {
				m.last[i] = nulls[seg.n/64]
			}
		}
	}
	return m
}

// segment makes the readers' segment of a mark, in place but for null bitmaps.
func (m *mark) segment(slot, part uint32) *Segment {
	seg := &Segment{Slot: int(slot), Rows: m.rows, Columns: make([]Column, len(m.zones)), part: part, mem: m.buf.mem}
	for i, z := range m.zones {
		if m.buf.values[i] == nil {
			continue
		}
		c := Column{ID: NewID(), Data: compress.Plain(m.buf.values[i][:m.rows:m.rows]), Min: z.lo, Max: z.hi, NullCount: z.nulls}
		if z.nulls > 0 {
			c.Nulls = make([]uint64, (m.rows+63)/64)
			copy(c.Nulls, m.buf.nulls[i][:m.rows/64])
			if m.rows%64 != 0 {
				c.Nulls[m.rows/64] = m.last[i]
			}
		}
		seg.Columns[i] = c
	}
	return seg
}

// scratch is room for one value to be decoded to.
type scratch struct {
	dst [1]int64
	sel [1]uint16
}

// value reads one value for the writer.
func (seg *segment) value(s *scratch, col int, row int) (v int64, null bool) {
	if seg.buf != nil {
		return seg.buf.values[col][row], has(seg.buf.nulls[col], row)
	}
	c := &seg.columns[col]
	if c.Nulls != nil && has(c.Nulls, row) {
		return 0, true
	}
	s.sel[0] = uint16(row & 127)
	c.Data.Gather(s.dst[:], row&^127, s.sel[:])
	return s.dst[0], false
}

// decode reads all of one column for the writer; nulls is nil where there is none.
func (seg *segment) decode(col int, dst []int64) (nulls []uint64) {
	if seg.buf != nil {
		copy(dst, seg.buf.values[col][:seg.n])
		if seg.zones[col].nulls == 0 {
			return nil
		}
		return seg.buf.nulls[col]
	}
	c := &seg.columns[col]
	c.Data.Decode(dst[:seg.n], 0)
	return c.Nulls
}

// base returns what readers get of a segment that is not open, all its commits seen.
// Relation.mu is held.
func (seg *segment) base() *Segment {
	if seg.image == nil {
		s := &Segment{Slot: int(seg.slot), Rows: seg.rows, Columns: seg.columns, part: seg.part.oid, mem: seg.mem}
		if seg.columns == nil {
			s = seg.mark.segment(seg.slot, seg.part.oid)
		}
		s.Live = liveOf(seg.dead, seg.rows)
		s.LiveID = idOf(s.Live)
		seg.image = s
	}
	return seg.image
}

// liveOf returns the complement of dead, which may be short, over rows; nil where
// none is dead.
func liveOf(dead []uint64, rows int) []uint64 {
	if dead == nil {
		return nil
	}
	live := allLive(rows)
	for i := range min(len(dead), len(live)) {
		live[i] &^= dead[i]
	}
	return live
}

// idOf returns a number for the content of a live bitmap, 0 for nil.
func idOf(live []uint64) uint64 {
	if live == nil {
		return 0
	}
	return NewID()
}

// allLive returns a bitmap of rows set bits.
func allLive(rows int) []uint64 {
	live := make([]uint64, (rows+63)/64)
	for i := range live {
		live[i] = ^uint64(0)
	}
	if rows%64 != 0 {
		live[len(live)-1] = 1<<(rows%64) - 1
	}
	return live
}

func has(bitmap []uint64, row int) bool { return bitmap[row>>6]>>(uint(row)&63)&1 != 0 }

func count(bitmap []uint64) (n int) {
	for _, w := range bitmap {
		n += bits.OnesCount64(w)
	}
	return n
}

// clearRange clears the bits [from, to) and returns how many were set.
func clearRange(bitmap []uint64, from, to int) (n int) {
	for from < to {
		end := min(to, (from|63)+1)
		m := ^uint64(0) << (from & 63)
		if end&63 != 0 {
			m &= 1<<(end&63) - 1
		}
		n += bits.OnesCount64(bitmap[from>>6] & m)
		bitmap[from>>6] &^= m
		from = end
	}
	return n
}
