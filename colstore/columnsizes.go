package colstore

import (
	"cmp"
	"slices"
)

// ColumnSize is the memory of those segments of one column that have one codec, or of
// its dictionary.
type ColumnSize struct {
	Table, Column string
	TableOID      uint32
	AttNum        int16  // 0 for what is no column of the table
	Codec         string // of compress; "open" for segments that are being filled, "dictionary" for strings, "index" for bitmap indexes
	Segments      int    // 0 for a dictionary
	Bytes         int64  // encoded values or strings, null bitmaps not counted
	NullBytes     int64  // null bitmaps
	// IDs are the segments' Column.ID, and a dictionary's Blocks.ID; none of segments that are being filled.
	IDs []uint64
}

// ColumnSizes lists the sizes of all columns, in the tables' and the columns' order.
func (s *Store) ColumnSizes() []ColumnSize {
	var all []ColumnSize
	for _, r := range s.relations() {
		all = append(all, r.columnSizes()...)
	}
	slices.SortStableFunc(all, func(a, b ColumnSize) int { return cmp.Compare(a.Table, b.Table) })
	return all
}

func (r *Relation) columnSizes() []ColumnSize {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	columns := make([]map[string]*ColumnSize, len(r.dicts)+2)
	add := func(column int, codec string, segments int, bytes, nulls int64) *ColumnSize {
		if columns[column] == nil {
			columns[column] = map[string]*ColumnSize{}
		}
		c := columns[column][codec]
		if c == nil {
			c = &ColumnSize{Table: r.meta.QualifiedName(), TableOID: r.meta.OID, Column: "(identity)", Codec: codec}
			if column < len(r.meta.Columns) { // the others hold Row.Identity
				c.Column, c.AttNum = r.meta.Columns[column].Name, r.meta.Columns[column].AttNum
			}
			columns[column][codec] = c
		}
		c.Segments += segments
		c.Bytes += bytes
		c.NullBytes += nulls
		return c
	}
	for _, seg := range r.slots {
		switch {
		case seg == nil:
		case seg.columns != nil:
			for i, c := range seg.columns {
				if c.Data != nil {
					size := add(i, c.Data.Codec().String(), 1, int64(c.Data.Bytes()), int64(8*len(c.Nulls)))
					size.IDs = append(size.IDs, c.ID)
				}
				if n := seg.mem.indexBytes(i); n > 0 {
					add(i, "index", 1, n, 0)
				}
			}
		case seg.mark != nil:
			for i, values := range seg.mark.buf.values {
				if values != nil {
					add(i, "open", 1, int64(8*len(values)), int64(8*len(seg.mark.buf.nulls[i])))
				}
			}
		}
	}
	for i, d := range r.versions {
		if d != nil {
			size := add(i, "dictionary", 0, d.size(), 0)
			if b := d.Blocks(); b.Strings > 0 {
				size.IDs = append(size.IDs, b.ID)
			}
		}
	}
	var all []ColumnSize
	for _, codecs := range columns {
		var of []ColumnSize
		for _, c := range codecs {
			of = append(of, *c)
		}
		slices.SortFunc(of, func(a, b ColumnSize) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Codec, b.Codec))
		})
		all = append(all, of...)
	}
	return all
}
