package explain

import (
	"fmt"
	"slices"
	"strings"

	"pgaccel/catalog"
	"pgaccel/plan"
)

// relation is a relation whose nodes are made.
type relation struct {
	node    *Node
	columns []string // as they are written above it
	name    string   // of those that several sources read
}

// textMax bounds the text of a column of a relation where it is used: nested ones would multiply. What is
// longer has the relation's name and the column's number.
const textMax = 200

// unused is a name that no node has yet, as PostgreSQL makes one.
func (b *builder) unused(name string) string {
	b.names[name]++
	if n := b.names[name]; n > 1 {
		return fmt.Sprintf("%s_%d", name, n-1)
	}
	return name
}

// nameSources has the columns of a star's sources written: with the table's name where there are several.
func (b *builder) nameSources(s *scope) {
	aliases := make([]string, len(s.q.Tables))
	columns := make([][]string, len(s.q.Tables))
	for i := range s.q.Tables {
		t := &s.q.Tables[i]
		if t.Relation != nil {
			x := b.relation(t.Relation, t.Meta.Name)
			if columns[i] = x.columns; b.uses[t.Relation] > 1 {
				aliases[i] = b.unused(x.name)
				columns[i] = qualified(aliases[i], x.columns)
			}
			continue
		}
		aliases[i] = b.unused(t.Meta.Name)
	}
	s.columns = func(c plan.Column) string {
		if columns[c.Table] != nil {
			return columns[c.Table][c.Column]
		}
		name := catalog.QuoteIfNeeded(s.q.Tables[c.Table].Meta.Columns[c.Column].Name)
		if len(s.q.Tables) == 1 && !b.verbose {
			return name
		}
		return catalog.QuoteIfNeeded(aliases[c.Table]) + "." + name
	}
	s.aliases = aliases
}

// qualified are the columns of a relation that several sources read, as those of one: by their names, or by
// numbers.
func qualified(alias string, columns []string) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		if strings.ContainsAny(c, "( ") {
			c = fmt.Sprintf("column%d", i+1)
		}
		out[i] = catalog.QuoteIfNeeded(alias) + "." + c[strings.LastIndexByte(c, '.')+1:]
	}
	return out
}

// source makes the node of a source, of whose rows these conditions are true.
func (b *builder) source(s *scope, i int, conds []plan.Expr) *Node {
	t := &s.q.Tables[i]
	var n *Node
	if t.Relation != nil {
		n = b.subquery(t.Relation, s.aliases[i])
	} else {
		rows := float64(max(0, t.Meta.Rows))
		n = &Node{Type: "Seq Scan", Estimate: Estimate{Rows: rows, Total: columnCost * rows * float64(len(s.read(i)))}}
		n.Label = "Seq Scan on " + map[bool]string{true: catalog.QuoteIfNeeded(t.Meta.Schema) + "."}[b.verbose] + catalog.QuoteIfNeeded(t.Meta.Name)
		n.structured("Relation Name", t.Meta.Name)
		if b.verbose {
			n.structured("Schema", t.Meta.Schema)
		}
		n.structured("Alias", s.aliases[i])
		if s.aliases[i] != t.Meta.Name {
			n.Label += " " + catalog.QuoteIfNeeded(s.aliases[i])
		}
		for _, c := range s.read(i) {
			n.Estimate.Width += width(t.Meta.Columns[c].Type)
		}
	}
	n.add("Filter", s.conditions(conds))
	n.Estimate.Rows = whole(n.Estimate.Rows * s.selectivities(conds))
	return n
}

// read returns the columns of a source that the star reads.
func (s *scope) read(i int) (columns []int) {
	note := func(c int) {
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	s.q.Map(func(e plan.Expr) plan.Expr {
		plan.Walk(e, func(x plan.Expr) bool {
			if c, ok := x.(plan.Column); ok && c.Table == i {
				note(c.Column)
			}
			return true
		})
		return e
	})
	for _, j := range s.q.Joins {
		if j.Table == i {
			for _, c := range j.Key {
				note(c)
			}
		}
	}
	return columns
}

// subquery makes the node of a source that is a relation.
func (b *builder) subquery(r *plan.Relation, alias string) *Node {
	x := b.relations[r]
	if b.uses[r] == 1 {
		n := above("Subquery Scan", x.node)
		n.Parent, x.node.Parent = "Outer", "Subquery"
		n.Label = "Subquery Scan on " + catalog.QuoteIfNeeded(x.name)
		n.structured("Alias", x.name)
		return n
	}
	n := &Node{Type: "CTE Scan", Label: "CTE Scan on " + catalog.QuoteIfNeeded(x.name), Estimate: x.node.Estimate}
	n.Estimate.Startup, n.Estimate.Total = 0, tupleCost*n.Estimate.Rows
	n.structured("CTE Name", x.name)
	n.structured("Alias", alias)
	if alias != x.name {
		n.Label += " " + catalog.QuoteIfNeeded(alias)
	}
	return n
}

// relation makes the nodes of a relation, once.
func (b *builder) relation(r *plan.Relation, name string) *relation {
	if x := b.relations[r]; x != nil {
		return x
	}
	x := &relation{name: name}
	if b.uses[r] == 1 {
		x.name = b.unused(name)
	}
	b.relations[r] = x
	var blocks []*Node
	var outputs []string
	for i, q := range r.Blocks {
		n, s := b.star(q)
		if blocks = append(blocks, n); i == 0 {
			outputs = s.over().list(q.Output)
		}
	}
	n := blocks[0]
	if len(blocks) > 1 {
		n = &Node{Type: "Append", Label: "Append", Plans: blocks, Estimate: Estimate{Width: n.Estimate.Width}}
		for _, m := range blocks {
			m.Parent = "Member"
			n.Estimate.Rows += m.Estimate.Rows
			n.Estimate.Total += m.Estimate.Total
		}
	}
	if r.Series != nil {
		n = above("Function Scan", n)
		n.Label = "Function Scan on generate_series"
		n.structured("Function Name", "generate_series")
		n.Estimate.Rows = 1000
		outputs = []string{"generate_series", "ordinality"}
	}
	if set := r.ProjectSet; set != nil {
		n = above("ProjectSet", n)
		kept := outputs[len(set.Calls):]
		outputs = append(append(set.ColumnNames(), "ordinality"), kept...)
		n.structured("Function Name", set.FunctionNames())
		n.Estimate.Rows = float64(r.Meta.Rows)
	}
	x.columns = outputs
	if len(r.Windows) > 0 {
		n = x.windows(r, n)
	}
	if r.Cut != nil {
		n = x.cut(r.Cut, n)
	}
	for i, c := range x.columns {
		if x.columns[i] = parenthesised(c); len(x.columns[i]) > textMax {
			x.columns[i] = fmt.Sprintf("%s.column%d", catalog.QuoteIfNeeded(x.name), i+1)
		}
	}
	x.node = n
	if b.uses[r] > 1 {
		n.Parent, n.Name = "InitPlan", "CTE "+catalog.QuoteIfNeeded(x.name)
		n.add("Output", x.columns)
		b.beside = append(b.beside, n)
	}
	return x
}

// parenthesised writes what was computed below: anything but a name stands in parentheses.
func parenthesised(expr string) string {
	if strings.ContainsAny(expr, "( ") && !strings.HasPrefix(expr, "(") {
		return "(" + expr + ")"
	}
	return expr
}

// windows makes the window functions of a relation, one above the other, and the columns that they are.
func (x *relation) windows(r *plan.Relation, n *Node) *Node {
	columns := make([]string, len(r.Meta.Columns))
	computed := func(c int) bool {
		return slices.ContainsFunc(r.Windows, func(w plan.WindowColumn) bool { return w.To == c })
	}
	below := 0
	for c := range columns {
		if !computed(c) {
			columns[c] = x.columns[below]
			below++
		}
	}
	for i := range r.Windows {
		w := &r.Windows[i]
		columns[w.To] = windowCall(w, columns)
		n = above("WindowAgg", n)
		var keys []string
		for _, c := range w.Partition {
			keys = append(keys, columns[c])
		}
		n.add("Partition Key", keys)
		n.add("Order Key", orderKeys(w.Order, columns))
		n.add("Function", columns[w.To])
		n.Estimate.Total += tupleCost * n.Estimate.Rows
		n.Estimate.Width += width(r.Meta.Columns[w.To].Type)
	}
	x.columns = columns
	return n
}

func orderKeys(by []plan.ColumnOrder, columns []string) (keys []string) {
	for _, o := range by {
		keys = append(keys, orderKey(columns[o.Column], o.Desc, o.NullsFirst))
	}
	return keys
}

// windowCall writes a window function without its window, which its node has.
func windowCall(w *plan.WindowColumn, columns []string) string {
	var args []string
	for _, c := range []int{w.Arg, w.Offset, w.Default} {
		if c >= 0 {
			args = append(args, columns[c])
		}
	}
	name := w.Func.String()
	if w.Func == plan.WindowAggregate {
		name = strings.TrimSuffix(w.Agg.String(), "(*)")
		if w.Agg.Star {
			args = []string{"*"}
		}
		if w.Delimiter != "" {
			args = append(args, quoted(w.Delimiter))
		}
		if w.Distinct {
			args[0] = "DISTINCT " + args[0]
		}
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if w.Filter >= 0 {
		call += " FILTER (WHERE " + conjunction([]string{columns[w.Filter]}) + ")"
	}
	return call + " OVER (?)"
}

// cut makes what leaves some rows of those that agree in its keys.
func (x *relation) cut(c *plan.Cut, n *Node) *Node {
	keys := orderKeys(c.Order, x.columns)
	if len(keys) > 0 {
		n = above("Sort", n)
		n.add("Sort Key", keys)
	}
	n = above("Limit", n)
	var per []string
	for _, p := range c.Partition {
		per = append(per, x.columns[p])
	}
	n.add("Partition Key", per)
	if len(per) == 0 {
		n.Estimate.Rows = min(n.Estimate.Rows, float64(c.Count))
	}
	return n
}
