package referee

import (
	"fmt"
	"math"
	"strings"
)

// node is an expression: a template in which each @ stands for the next argument, a
// column, or a constant. Trees share nodes where SQL has to repeat an expression (a
// group key in the select list), so that a parameter in it keeps its number.
type node struct {
	t    typ
	f    string
	args []*node
	col  *column // with from: a column
	from *source
	lit  *constant
	sub  *query // a sub-select in parentheses
	// lo and hi bound the value of a number, infinite where they are not known.
	lo, hi float64
	agg    bool // an aggregate call
	// noise is how far two right answers may lie apart besides a billionth of them: 0
	// where there is only one right answer.
	noise float64
	// loose is a window function's whose value depends on the order of rows that are peers; the frame of
	// a moving one begins or ends elsewhere for each row.
	loose, moving bool
}

// constant is a value in the query's text, or a parameter.
type constant struct {
	value *string // nil for NULL
	form  form
	param bool // where the protocol has parameters
}

// form is how a constant is written.
type form uint8

const (
	open    form = iota // '5', $1: the type follows from what stands beside it
	bare                // 5, true
	typed               // integer '5'
	casted              // '5'::integer, $1::integer
	spelled             // CAST('5' AS integer), $1 of a declared type
)

// op makes a node of a template.
func op(t typ, f string, args ...*node) *node {
	return &node{t: t, f: f, args: args, lo: math.Inf(-1), hi: math.Inf(1)}
}

// within sets the bounds.
func (n *node) within(lo, hi float64) *node {
	n.lo, n.hi = lo, hi
	return n
}

// walk calls f for n and all nodes below it.
func (n *node) walk(f func(*node)) {
	f(n)
	for _, a := range n.args {
		a.walk(f)
	}
}

// has reports whether some node below n, or n, satisfies f.
func (n *node) has(f func(*node) bool) (found bool) {
	n.walk(func(x *node) { found = found || f(x) })
	return found
}

// bound is a parameter's value as it is sent.
type bound struct {
	value *string
	kind  kind
	oid   uint32 // 0 where the client leaves the type to the server
}

// writer writes a query. With params it numbers parameters, else it writes their
// values in place.
type writer struct {
	strings.Builder
	params bool
	bounds []bound
	seen   map[*node]int
	short  bool // names without their table
}

func (w *writer) node(n *node) {
	switch {
	case n.lit != nil:
		w.constant(n)
	case n.sub != nil:
		w.WriteString("(")
		n.sub.write(w)
		w.WriteString(")")
	case n.col != nil:
		if !w.short && n.from.alias != "" {
			w.WriteString(n.from.alias + ".")
		}
		w.WriteString(n.from.columnName(n.col))
	default:
		rest := n.f
		for _, a := range n.args {
			before, after, _ := strings.Cut(rest, "@")
			w.WriteString(before)
			w.node(a)
			rest = after
		}
		w.WriteString(rest)
	}
}

// list writes nodes with commas between.
func (w *writer) list(ns []*node, sep string) {
	for i, n := range ns {
		if i > 0 {
			w.WriteString(sep)
		}
		w.node(n)
	}
}

func (w *writer) constant(n *node) {
	l := n.lit
	plain := typ{kind: n.t.kind}
	if l.param && w.params {
		at, ok := w.seen[n]
		if !ok {
			b := bound{value: l.value, kind: n.t.kind}
			if l.form == spelled || l.form == bare {
				b.oid = n.t.kind.oid()
			}
			w.bounds = append(w.bounds, b)
			at = len(w.bounds)
			w.seen[n] = at
		}
		fmt.Fprintf(w, "$%d", at)
		if l.form == casted || l.form == typed {
			w.WriteString("::" + plain.sql())
		}
		return
	}
	value := "NULL"
	if l.value != nil {
		value = quote(*l.value)
	}
	switch {
	case l.value == nil && l.form != casted && l.form != spelled, l.form == open:
		w.WriteString(value)
	case l.form == bare && n.t.kind == boolean:
		w.WriteString(map[string]string{"t": "true", "f": "false"}[*l.value])
	case l.form == bare && n.t.kind.isExact():
		if strings.HasPrefix(*l.value, "-") {
			w.WriteString("(" + *l.value + ")")
		} else {
			w.WriteString(*l.value)
		}
	case l.form == typed:
		w.WriteString(plain.sql() + " " + value)
	case l.form == spelled:
		w.WriteString("CAST(" + value + " AS " + plain.sql() + ")")
	default:
		w.WriteString(value + "::" + plain.sql())
	}
}
