package plan

import (
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// readAs reports whether a parameter of the opaque type p is read as t: citext as text, and an interval of any fields as comparisons
// see it.
func readAs(p, t vector.Type) bool {
	return p.Kind == vector.Opaque && (t.Kind == vector.Text || t.Kind == vector.Interval)
}

// readParam is a parameter's value as it is read.
func readParam(d vector.Datum, t vector.Type) vector.Datum {
	if !readAs(d.Type, t) {
		return d
	}
	d.Type = t
	if t.Kind == vector.Interval && !d.Null {
		d.I, _ = sqltype.IntervalSpan(sqltype.IntervalFields(d.Str)) // within 64 bits: package engine forwards others
		d.Str = ""
	}
	return d
}
