package olap

import (
	"slices"
	"sync/atomic"

	"pgaccel/colstore"
)

// Scanned counts what an execution reads of tables, its relations and lookups included; of what a device does, Indexed alone.
type Scanned struct {
	Rows     atomic.Int64 // of the segments that are scanned
	Bytes    atomic.Int64 // of the columns of these that the statement names, as encoded
	Segments atomic.Int64
	Skipped  atomic.Int64 // segments of which zone maps or indexes say that no row passes
	Kept     atomic.Int64 // segments of which an earlier execution has left the groups (Kept)
	Indexed  atomic.Int64 // segments of which bitmap indexes told a device which rows to look at
}

// note counts a segment of the pipeline's table.
func (p *pipeline) note(seg *colstore.Segment, skipped bool) {
	s := p.x.opt.Scanned
	if s == nil || p.x.q.Tables[p.table].Relation != nil {
		return
	}
	if skipped {
		s.Skipped.Add(1)
		return
	}
	s.Segments.Add(1)
	s.Rows.Add(int64(seg.Rows))
	for _, c := range p.columns {
		if column := &seg.Columns[c]; column.Data != nil {
			s.Bytes.Add(int64(column.Data.Bytes() + 8*len(column.Nulls)))
		}
	}
}

// reads notes that the pipeline reads a column of its table.
func (p *pipeline) reads(column int) {
	if !slices.Contains(p.columns, column) {
		p.columns = append(p.columns, column)
	}
}
