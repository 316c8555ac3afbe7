package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// text writes a statement in FORMAT TEXT, a row a line.
func (s *Statement) text(o Options) []string {
	w := &textWriter{options: o, root: s.Plan, execution: s.Execution}
	w.node(s.Plan, 0)
	if o.Summary {
		w.line(0, fmt.Sprintf("Planning Time: %s ms", milliseconds(s.Planning)))
		if s.Execution != nil {
			w.line(0, fmt.Sprintf("Execution Time: %s ms", milliseconds(s.Execution.Took)))
		}
	}
	return w.lines
}

type textWriter struct {
	options   Options
	root      *Node
	execution *Actual
	lines     []string
}

// line adds a line at an indentation, in PostgreSQL's steps of two blanks.
func (w *textWriter) line(indent int, text string) {
	w.lines = append(w.lines, strings.Repeat("  ", indent)+text)
}

func (w *textWriter) node(n *Node, indent int) {
	if n.Name != "" {
		w.line(indent, n.Name)
		indent++
	}
	head := n.Label
	if indent > 0 {
		head = "->  " + head
	}
	if w.options.Costs {
		e := n.Estimate
		head += fmt.Sprintf("  (cost=%.2f..%.2f rows=%.0f width=%d)", e.Startup, e.Total, e.Rows, e.Width)
	}
	if n == w.root && w.execution != nil {
		head += w.actual()
	}
	w.line(indent, head)
	if indent > 0 {
		indent += 2
	}
	indent++
	fields := n.Fields
	if n == w.root {
		fields = append(fields[:len(fields):len(fields)], w.execution.fields(w.options)...)
	}
	for _, f := range fields {
		if f.Structured {
			continue
		}
		switch v := f.Value.(type) {
		case []string:
			w.line(indent, f.Key+": "+strings.Join(v, ", "))
		default:
			w.line(indent, fmt.Sprintf("%s: %v", f.Key, v))
		}
	}
	for _, p := range n.Plans {
		w.node(p, indent)
	}
}

// actual writes what the execution came to, behind the estimate.
func (w *textWriter) actual() string {
	separator := " "
	if !w.options.Costs {
		separator = "  "
	}
	if !w.options.Timing {
		return fmt.Sprintf("%s(actual rows=%d loops=1)", separator, w.execution.Rows)
	}
	t := milliseconds(w.execution.Took)
	return fmt.Sprintf("%s(actual time=%s..%s rows=%d loops=1)", separator, t, t, w.execution.Rows)
}

// fields are what is said of an execution beside its rows and time.
func (a *Actual) fields(o Options) []Field {
	if a == nil {
		return nil
	}
	count := func(n int64) number { return number(strconv.FormatInt(n, 10)) }
	fields := []Field{{Key: "Device", Value: a.Device}}
	if a.Segments+a.Skipped+a.Kept > 0 { // else another device has scanned
		fields = append(fields, Field{Key: "Rows Scanned", Value: count(a.Scanned)}, Field{Key: "Segments Scanned", Value: count(a.Segments)},
			Field{Key: "Segments Skipped", Value: count(a.Skipped)})
	}
	if a.Kept > 0 {
		fields = append(fields, Field{Key: "Segments Reused", Value: count(a.Kept)})
	}
	if a.Indexed > 0 {
		fields = append(fields, Field{Key: "Segments Narrowed by Bitmap Index", Value: count(a.Indexed)})
	}
	if a.Bytes > 0 {
		fields = append(fields, Field{Key: "Bytes Read", Value: count(a.Bytes)})
	}
	took := func(key string, d time.Duration) {
		switch {
		case d == 0 || !o.Timing:
		case o.Format == "text":
			fields = append(fields, Field{Key: key, Value: milliseconds(d) + " ms"})
		default:
			fields = append(fields, Field{Key: key, Value: number(milliseconds(d))})
		}
	}
	took("Device Compile Time", a.Compile)
	took("Device Copy Time", a.Copy)
	took("Device Compute Time", a.Compute)
	if a.Copied > 0 {
		fields = append(fields, Field{Key: "Bytes Copied to Device", Value: count(a.Copied)})
	}
	return fields
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }
