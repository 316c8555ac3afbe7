package olap

import (
	"context"
	"math"
	"strconv"
	"strings"

	"pgaccel/colstore"
	"pgaccel/compress"
	"pgaccel/gpu"
	"pgaccel/gpu/program"
	"pgaccel/vector"

	lru "github.com/hashicorp/golang-lru/v2"
)

// What queries say of a table's columns to a device depends on the version and the columns
// alone, and takes time in proportion to the segments: it is kept for the versions that
// were read last. Versions and contents have numbers that are never used again, so that
// nothing here is ever wrong; what it holds of column memory that has been freed since
// nobody asks for.
var (
	deviceSegments = must(lru.New[string, []program.Segment](16))
	deviceLookups  = must(lru.New[[32]byte, uint64](1 << 12))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return v
}

// boundsOnDevice returns bounds of a column's 64-bit forms; zone maps of floats are of
// keys.
func boundsOnDevice(c *colstore.Column, float bool) (lo, hi int64) {
	switch {
	case !float || c.Min > c.Max, c.Min > 0 && c.Max < vector.NaNKey:
		return c.Min, c.Max
	case c.Max < 0:
		return math.MinInt64 - c.Max, math.MinInt64 - c.Min
	}
	return math.MinInt64, math.MaxInt64 // zeros and NaNs have several forms
}

// columnOnDevice returns a column of the table as programs have it.
func columnOnDevice(t *colstore.Table, col int) program.Column {
	_, _, nullable := t.Bounds(col)
	// Zone maps of floats are of their keys: what is between them says nothing of the bits.
	wide := t.Widest(col) > math.MaxUint32 || t.Meta.Columns[col].Type.Kind.IsFloat()
	return program.Column{Wide: wide, Nullable: nullable}
}

// Prewarm brings a column of a table to the devices as queries read it there: its values, or the strings of its dictionary, if
// a device has these. gpu.ErrNoRoom: there is no room, unless something else gives way.
func Prewarm(ctx context.Context, r gpu.Runner, t *colstore.Table, col int, dictionary bool) (gpu.Stats, error) {
	q := &program.Query{Program: &program.Program{}, TableID: t.ID}
	if !dictionary {
		q.Columns = []program.Column{columnOnDevice(t, col)}
		q.Segments = newSegmentsOnDevice(t, []int{col}, false)
	} else {
		limits, ok := r.Limits()
		if d := t.Dicts[col]; !ok || d == nil || !keepsStrings(d, limits) {
			return gpu.Stats{}, nil
		}
		q.Bits = []program.Bits{{Match: &program.Match{Strings: stringsOf(t.Dicts[col])}}}
	}
	_, stats, err := r.Run(ctx, q, gpu.RunOptions{Prewarm: true})
	return stats, err
}

// segmentsOnDevice returns the table's segments with some of its columns. Those of a relation, which only
// this execution reads, have no IDs: they go through the device, and nothing is kept of them.
func segmentsOnDevice(t *colstore.Table, columns []int, relation bool) []program.Segment {
	var b strings.Builder
	b.WriteString(strconv.FormatUint(t.ID, 10))
	for _, c := range columns {
		b.WriteByte(',')
		b.WriteString(strconv.Itoa(c))
	}
	key := b.String()
	kept := t.ID != 0 && !relation
	if s, ok := deviceSegments.Get(key); ok && kept {
		return s
	}
	out := newSegmentsOnDevice(t, columns, relation)
	if kept {
		deviceSegments.Add(key, out)
	}
	return out
}

func newSegmentsOnDevice(t *colstore.Table, columns []int, relation bool) []program.Segment {
	out := make([]program.Segment, len(t.Segments))
	cells := make([]program.SegmentColumn, len(t.Segments)*len(columns))
	for i, seg := range t.Segments {
		s := &out[i]
		*s = program.Segment{ID: uint64(seg.Slot) + 1, Rows: seg.Rows, Live: seg.Live, LiveID: seg.LiveID, Columns: cells[:len(columns):len(columns)]}
		cells = cells[len(columns):]
		for k, col := range columns {
			c := &seg.Columns[col]
			lo, hi := boundsOnDevice(c, t.Meta.Columns[col].Type.Kind.IsFloat())
			s.Columns[k] = program.SegmentColumn{ID: c.ID, Words: compress.Words(c.Data), Min: lo, Max: hi}
			if relation {
				s.Columns[k].ID = 0
			}
			if c.NullCount > 0 {
				s.Columns[k].Nulls = c.Nulls
			}
		}
	}
	return out
}
