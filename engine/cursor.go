package engine

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/pushdown"
	"pgaccel/syntax"
	"pgaccel/vector"
)

// A DECLARE CURSOR is decided, run and counted as its SELECT, whose text has a decision of its own. The
// server has the cursor, too, and may have to go on with it at any row (proxy/cursor.go): where the order of the
// rows is not the same there, to the last, it goes on with a cursor over the rows of pgaccel's. Where memory does not
// hold these the SELECT is forwarded.

// cursorOf makes st the DECLARE that the text is, if it may be answered here.
func (st *statement) cursorOf(text *syntax.Text) {
	c, rows := text.Cursor()
	if rows == nil || len(st.paramOIDs) > 0 {
		return
	}
	if s := st.engine.prepare(rows.SQL, nil, rows); s.fixed == nil && s.last == nil {
		st.cursor, st.last = c, s
	}
}

// declared is the decision on a DECLARE of c over d's SELECT.
func (d *decision) declared(c *syntax.Cursor) *decision {
	cursor, f := (*Cursor)(nil), d.forward
	if f == nil && d.finish != nil {
		cursor, f = d.partialCursor(c)
	} else if f == nil {
		cursor, f = d.cursorAs(c)
	}
	out := *d
	if out.cursor = cursor; f != nil {
		if d.forward == nil {
			out = *d.forwarding(f)
		}
		out.partly = true
	}
	return &out
}

// partialCursor is how the decision's SELECT, of which a part is refused, is answered as c: the rest is the query of the server's cursor, which
// runs when it is fetched from.
func (d *decision) partialCursor(c *syntax.Cursor) (*Cursor, *plan.Forward) {
	if d.finish.Reads {
		return nil, forward(plan.ReasonNotSelect, "a cursor over a SELECT of which a part is refused, with tables that are not copied")
	}
	return &Cursor{Cursor: c, Scrolls: !d.finish.Grouped}, nil
}

// cursorAs is how the decision's SELECT is answered as c.
func (d *decision) cursorAs(c *syntax.Cursor) (*Cursor, *plan.Forward) {
	if !unordered(d.query) {
		return &Cursor{Cursor: c}, nil
	}
	q := d.query
	rows := pushdown.RowSet(q, d.names, d.deps.Tables, d.catalog)
	if ordered := len(q.Order) > 0; rows == nil || ordered && (q.Limit != nil || q.Offset != nil) {
		return nil, forward(plan.ReasonShape, "a cursor over rows that ORDER BY does not bring into one order")
	}
	return &Cursor{Cursor: c, RowSet: rows, Scrolls: len(q.Order) > 0 || !forwardOnly(q)}, nil
}

// forwardOnly reports whether the server can read the SELECT, which has no ORDER BY, forwards only, however it plans it
// (ExecSupportsBackwardScan), and finds no row of a table at it (execCurrentOf): it groups, or joins tables, none of which it can leave out.
func forwardOnly(q *plan.Star) bool {
	if q.Grouped {
		return true
	}
	for _, j := range q.Joins {
		if t := &q.Tables[j.Table]; j.Kind == plan.Inner && t.Relation == nil && q.Tables[0].Relation == nil && t.Meta != q.Tables[0].Meta {
			return true
		}
	}
	return false
}

// unordered reports whether the server may have other rows at the places of those of a cursor.
func unordered(q *plan.Star) bool {
	adds := q.AddsFloats()
	q.Walk(func(q *plan.Star) {
		for i := range q.Tables {
			if r := q.Tables[i].Relation; r != nil {
				adds = adds || slices.ContainsFunc(r.Windows, func(w plan.WindowColumn) bool { return w.Agg != nil })
			}
		}
	})
	return adds || !totalOrder(q) || slices.ContainsFunc(q.Joins, func(j plan.StarJoin) bool { return j.Kind == plan.Full })
}

// CursorBytes bounds the rows that a cursor may have as parameters.
const CursorBytes = 512 << 20

// cellBytes is more than a value takes as a parameter, but for what is held as a string: as text, in which arrays
// are sent, that may be so many times longer.
const (
	cellBytes    = 64
	longerAsText = 8
)

var errCursorRows = forward(plan.ReasonMemory, "the rows of a cursor that ORDER BY does not bring into one order are too many to be given to PostgreSQL, should it have to go on with it")

// holds reports whether the server can have the rows as parameters, should it come to that: all are in memory, also
// those that the client will have had, and they are not too large.
func (c *Cursor) holds(b *vector.Batch) bool {
	if c == nil || c.RowSet == nil {
		return true
	}
	if b.Next != nil {
		return false
	}
	size := b.Rows * len(b.Columns) * cellBytes
	for i := range b.Columns {
		for _, v := range b.Columns[i].Strs {
			size += longerAsText * len(v)
		}
	}
	return size <= CursorBytes
}

// CursorCommand is a statement that concerns cursors.
type CursorCommand = syntax.CursorCommand

// CursorCommands returns the statements of a text that does nothing but what the proxy follows of cursors;
// nil for any other.
func CursorCommands(sql string) []CursorCommand {
	switch firstWord(sql) {
	case "fetch", "close", "commit", "end", "rollback", "abort":
		return syntax.Parse(sql).CursorCommands()
	}
	return nil
}
