package referee

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestDifferenceSeesWhatAClientSees changes one thing of an answer at a time.
func TestDifferenceSeesWhatAClientSees(t *testing.T) {
	number := func(f int16) pgconn.FieldDescription {
		return pgconn.FieldDescription{Name: "n", DataTypeOID: numeric.oid(), TypeModifier: -1, Format: f}
	}
	make1 := func(rows ...string) answer {
		a := answer{fields: []pgconn.FieldDescription{number(0)}, tag: "SELECT", notices: []string{"n"}}
		for _, r := range rows {
			a.rows = append(a.rows, [][]byte{[]byte(r)})
		}
		return a
	}
	n := &node{t: typ{kind: numeric}}
	any1 := &query{out: []output{{n: n}}}
	ordered := &query{out: []output{{n: n}}, order: []sortKey{{n: n, output: 1}}}
	partly := &query{out: []output{{n: n}, {n: &node{}}}, order: []sortKey{{n: n, output: 1}}, limit: n}
	one := make1("1", "2")
	with := func(f func(*answer)) answer {
		a := make1("1", "2")
		f(&a)
		return a
	}
	for _, c := range []struct {
		name   string
		q      *query
		a, b   answer
		differ bool
	}{
		{"equal", ordered, one, make1("1", "2"), false},
		{"order without ORDER BY", any1, one, make1("2", "1"), false},
		{"order with ORDER BY", ordered, one, make1("2", "1"), true},
		{"a value", any1, one, make1("1", "3"), true},
		{"decimals", ordered, make1("1.0", "1.00"), make1("1.00", "1.0"), false}, // equal keys
		{"decimals of a value", ordered, make1("1.0"), make1("1.00"), true},
		{"a row more", any1, one, make1("1", "2", "2"), true},
		{"a row twice", any1, make1("1", "1", "2"), make1("1", "2", "2"), true},
		{"the cut rows' keys", partly, one, make1("1", "3"), true},
		{"null and empty", any1, make1(""), answer{fields: one.fields, tag: "SELECT", notices: []string{"n"}, rows: [][][]byte{{nil}}}, true},
		{"tag", any1, one, with(func(a *answer) { a.tag = "SELECT 3" }), true},
		{"error", any1, one, with(func(a *answer) { a.err = "x" }), true},
		{"notice", any1, one, with(func(a *answer) { a.notices = nil }), true},
		{"modifier", any1, one, with(func(a *answer) {
			a.fields = []pgconn.FieldDescription{{Name: "n", DataTypeOID: numeric.oid(), TypeModifier: 5}}
		}), true},
	} {
		if got := difference(c.q, c.a, c.b); (got != "") != c.differ {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
