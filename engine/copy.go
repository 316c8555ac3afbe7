package engine

import (
	"slices"

	"pgaccel/plan"
	"pgaccel/syntax"
)

// A COPY ... TO STDOUT is decided, run and counted as the SELECT of its rows, whose text has a decision of
// its own: of a table, one that names the table alone, with ONLY. What a COPY of a table is not allowed
// where such a SELECT is (of a view, of a column that is generated) is forwarded.

// isCopy reports whether sql begins as a COPY.
func isCopy(sql string) bool { return firstWord(sql) == "copy" }

// copyOf makes st the COPY that the text is, if it may be answered here.
func (st *statement) copyOf(text *syntax.Text) {
	options, rows := text.Copy()
	if rows == nil || len(st.paramOIDs) > 0 {
		return
	}
	if s := st.engine.prepare(rows.SQL, nil, rows); s.fixed == nil && s.last == nil {
		st.copy, st.last = &Copy{SQL: rows.SQL, Options: options}, s
	}
}

// refused says why the server may refuse the COPY where it takes the SELECT of its rows.
func (c *Copy) refused(q *plan.Deps) *plan.Forward {
	if !c.Options.Table {
		return nil
	}
	if len(q.Views) > 0 || len(q.Tables) != 1 {
		return forward(plan.ReasonNotSelect, "COPY of what is no table")
	}
	if slices.ContainsFunc(c.Options.Columns, func(name string) bool { return q.Tables[0].Meta.Column(name) < 0 }) {
		return forward(plan.ReasonNotSelect, "COPY of what is no column")
	}
	return nil
}
