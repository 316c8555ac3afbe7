package engine

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/syntax"
)

// A DECLARE CURSOR is decided, run and counted as its SELECT, whose text has a decision of its own. The
// server has the cursor, too, and may have to go on with it at any row (proxy/cursor.go): the order of the
// rows must be the same there, to the last.

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

// unordered says why the server may have other rows at the places of those of a cursor.
func unordered(q *plan.Star) *plan.Forward {
	adds := q.AddsFloats()
	q.Walk(func(q *plan.Star) {
		for i := range q.Tables {
			if r := q.Tables[i].Relation; r != nil {
				adds = adds || slices.ContainsFunc(r.Windows, func(w plan.WindowColumn) bool { return w.Agg != nil })
			}
		}
	})
	if adds || !totalOrder(q) || slices.ContainsFunc(q.Joins, func(j plan.StarJoin) bool { return j.Kind == plan.Full }) {
		return forward(plan.ReasonShape, "a cursor over rows that ORDER BY does not bring into one order")
	}
	return nil
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
