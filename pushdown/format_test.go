package pushdown

import (
	"fmt"
	"strings"

	"pgaccel/plan"
)

// formatStatement writes a decision as readable text.
func formatStatement(st Statement) string {
	var b strings.Builder
	if st.Forward != nil {
		fmt.Fprintf(&b, "forward: %s", st.Forward.Reason)
		if st.Forward.Detail != "" {
			fmt.Fprintf(&b, ": %s", st.Forward.Detail)
		}
		return b.String() + "\n"
	}
	formatStar(&b, st.Star, st.Deps.Tables, 0, map[*plan.Relation]bool{})
	for i, p := range st.Deps.Params {
		fmt.Fprintf(&b, "$%d: %s\n", i+1, plan.FormatType(p))
	}
	if st.Deps.NeedsUTC {
		b.WriteString("needs UTC\n")
	}
	if st.Deps.SessionZone {
		b.WriteString("in the session's time zone\n")
	}
	for _, name := range st.Deps.Zones {
		fmt.Fprintf(&b, "in %s\n", name)
	}
	if st.Deps.NeedsISO {
		b.WriteString("needs DateStyle ISO\n")
	}
	if st.Small != nil {
		fmt.Fprintf(&b, "small: %s\n", st.Small.Detail)
	}
	return b.String()
}

// formatStar writes a star, what it reads first and further in.
func formatStar(to *strings.Builder, q *plan.Star, statement []plan.Table, depth int, seen map[*plan.Relation]bool) {
	var b strings.Builder
	for i, s := range q.Scalars {
		fmt.Fprintf(&b, "scalar%d:\n", i)
		formatStar(&b, s, statement, 1, seen)
	}
	tables := make([]plan.Table, len(q.Tables))
	for i, s := range q.Tables {
		if s.Relation == nil {
			tables[i] = statement[s.Table]
			continue
		}
		tables[i] = plan.Table{Meta: s.Meta, Ref: s.Meta.Name}
		if !seen[s.Relation] {
			seen[s.Relation] = true
			for _, block := range s.Relation.Blocks {
				fmt.Fprintf(&b, "relation %s:\n", s.Meta.Name)
				formatStar(&b, block, statement, 1, seen)
			}
			for _, w := range s.Relation.Windows {
				fmt.Fprintf(&b, "window %s c%d: %d %v of c%d filter c%d %s by %v order by %v\n", s.Meta.Name, w.To, w.Func, w.Agg, w.Arg, w.Filter,
					plan.FormatFrame(w.Frame, func(es []plan.Expr) string { return plan.FormatExpr(es[0], statement) }), w.Partition, w.Order)
			}
			if x := s.Relation.Series; x != nil {
				fmt.Fprintf(&b, "series %s: %v by %v\n", s.Meta.Name, x.T, x.By)
			}
			if x := s.Relation.ProjectSet; x != nil {
				fmt.Fprintf(&b, "set %s\n", x.FunctionNames())
			}
			if c := s.Relation.Cut; c != nil {
				fmt.Fprintf(&b, "cut %s: %d behind %d by %v order by %v\n", s.Meta.Name, c.Count, c.Offset, c.Partition, c.Order)
			}
		}
	}
	defer func() {
		for line := range strings.Lines(b.String()) {
			to.WriteString(strings.Repeat("  ", depth) + line)
		}
	}()
	expr := func(e plan.Expr) string { return plan.FormatExpr(e, tables) }
	for i, t := range tables {
		fmt.Fprintf(&b, "t%d: %s", i, t.Ref)
		for k, c := range t.Columns {
			fmt.Fprintf(&b, "%s%s", map[bool]string{true: " reads ", false: ", "}[k == 0], t.Meta.Columns[c].Name)
		}
		b.WriteByte('\n')
	}
	for _, j := range q.Joins {
		kind := map[plan.JoinKind]string{plan.Inner: "lookup", plan.Left: "left lookup", plan.Single: "single lookup"}[j.Kind]
		if j.Many {
			kind = strings.TrimSuffix(kind, "lookup") + "many"
		}
		if j.Exists {
			kind += " any of"
		}
		fmt.Fprintf(&b, "%s t%d:", kind, j.Table)
		for i, k := range j.Key {
			fmt.Fprintf(&b, " %s = %s", q.Tables[j.Table].Meta.Columns[k].Name, expr(j.Outer[i]))
		}
		for _, e := range j.On {
			fmt.Fprintf(&b, " on %s", expr(e))
		}
		b.WriteByte('\n')
	}
	list := func(name string, es []plan.Expr) {
		for i, e := range es {
			fmt.Fprintf(&b, "%s %s\n", strings.ReplaceAll(name, "#", fmt.Sprint(i)), expr(e))
		}
	}
	list("filter:", q.Filter)
	if q.Grouped && len(q.Group) == 0 {
		b.WriteString("one group\n")
	}
	list("key#:", q.Group)
	for _, s := range q.Sets {
		b.WriteString("set:")
		for i := range q.Group {
			if s>>i&1 != 0 {
				fmt.Fprintf(&b, " %d", i)
			}
		}
		b.WriteByte('\n')
	}
	for i, g := range q.Aggs {
		fmt.Fprintf(&b, "agg%d: %s\n", i, plan.FormatAggregate(&g, tables))
	}
	list("having:", q.Having)
	for _, e := range q.Output {
		fmt.Fprintf(&b, "output: %s -> %s\n", expr(e), plan.FormatType(e.Type()))
	}
	for _, o := range q.Order {
		fmt.Fprintf(&b, "order: %s\n", plan.FormatOrder(o, tables))
	}
	if q.Limit != nil {
		fmt.Fprintf(&b, "limit: %s\n", expr(q.Limit))
	}
	if q.Offset != nil {
		fmt.Fprintf(&b, "offset: %s\n", expr(q.Offset))
	}
}
