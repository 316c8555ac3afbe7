package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pgaccel/plan"
)

// builder makes nodes of a statement.
type builder struct {
	verbose   bool
	names     map[string]int // how many nodes have a name
	relations map[*plan.Relation]*relation
	uses      map[*plan.Relation]int // sources that read a relation
	initPlans int
	beside    []*Node // plans of relations that several sources read
}

// Plan returns the node that stands for a statement, over those of its operators.
func Plan(q *plan.Star, o Options) *Node {
	b := &builder{verbose: o.Verbose, names: map[string]int{}, relations: map[*plan.Relation]*relation{}, uses: map[*plan.Relation]int{}}
	q.Walk(func(q *plan.Star) {
		for i := range q.Tables {
			if r := q.Tables[i].Relation; r != nil {
				b.uses[r]++
			}
		}
	})
	n, s := b.star(q)
	root := &Node{Type: "Custom Scan", Label: "Custom Scan (pgaccel)", Estimate: n.Estimate}
	root.structured("Custom Plan Provider", "pgaccel")
	if o.Verbose {
		root.add("Output", s.list(q.Output))
	}
	n.Parent = "Outer"
	for _, p := range b.beside {
		root.Estimate.Total += p.Estimate.Total
	}
	root.Estimate.Startup = root.Estimate.Total
	root.Estimate.Total += resultCost * n.Estimate.Rows
	root.Plans = append(b.beside, n)
	return root
}

// star makes the nodes of one star, and what its expressions are written by.
func (b *builder) star(q *plan.Star) (*Node, *scope) {
	s := &scope{q: q}
	var beside []*Node
	for _, scalar := range q.Scalars {
		n, _ := b.star(scalar)
		b.initPlans++
		n.Parent, n.Name = "InitPlan", fmt.Sprintf("InitPlan %d", b.initPlans)
		s.scalars = append(s.scalars, b.initPlans)
		beside = append(beside, n)
	}
	b.nameSources(s)
	n := b.rows(s)
	if q.Grouped {
		n = s.grouped(n)
	}
	if len(q.Order) > 0 {
		sort := above("Sort", n)
		keys := make([]string, len(q.Order))
		for i, o := range q.Order {
			keys[i] = s.order(o)
		}
		sort.add("Sort Key", keys)
		sort.Estimate.Total += tupleCost * sort.Estimate.Rows * math.Log2(sort.Estimate.Rows+1)
		sort.Estimate.Startup = sort.Estimate.Total
		n = sort
	}
	n.Estimate.Width = widths(q.Output)
	if q.Limit != nil || q.Offset != nil {
		limit := above("Limit", n)
		limit.Estimate.Rows = whole(limited(n.Estimate.Rows, q.Limit, q.Offset))
		n = limit
	}
	for _, p := range beside {
		n.Estimate.Startup += p.Estimate.Total
		n.Estimate.Total += p.Estimate.Total
	}
	n.Plans = append(beside, n.Plans...)
	return n, s
}

// above returns a node over another, with its estimate.
func above(typ string, n *Node) *Node {
	n.Parent = "Outer"
	return &Node{Type: typ, Label: typ, Estimate: n.Estimate, Plans: []*Node{n}}
}

// rows makes the nodes up to WHERE. A condition over one table is that of its scan, unless the join may
// leave nulls in its place.
func (b *builder) rows(s *scope) *Node {
	q := s.q
	if len(q.Tables) == 0 {
		n := &Node{Type: "Result", Label: "Result", Estimate: Estimate{Rows: 1}}
		n.add("One-Time Filter", s.conditions(q.Filter))
		return n
	}
	own := make([][]plan.Expr, len(q.Tables))
	inner := map[int]bool{0: !slices.ContainsFunc(q.Joins, func(j plan.StarJoin) bool { return j.Kind == plan.Full })}
	for _, j := range q.Joins {
		inner[j.Table] = j.Kind == plan.Inner
	}
	var rest []plan.Expr
	for _, f := range q.Filter {
		of := -1
		for i := range q.Tables {
			if plan.Tables(f) == 1<<uint(i) && inner[i] {
				of = i
			}
		}
		if of < 0 {
			rest = append(rest, f)
			continue
		}
		own[of] = append(own[of], f)
	}
	n := b.source(s, 0, own[0])
	for _, j := range q.Joins {
		n = s.join(n, b.source(s, j.Table, append(slices.Clone(j.On), own[j.Table]...)), j)
	}
	if len(rest) > 0 {
		n.add("Filter", s.conditions(rest))
		n.Estimate.Rows = whole(n.Estimate.Rows * s.selectivities(rest))
	}
	return n
}

var joinTypes = map[plan.JoinKind]string{plan.Inner: "Inner", plan.Left: "Left", plan.Full: "Full", plan.Single: "Left"}

// join makes the lookup of one source.
func (s *scope) join(outer, source *Node, j plan.StarJoin) *Node {
	typ := joinTypes[j.Kind]
	if j.Exists && j.Kind == plan.Inner {
		typ = "Semi"
	}
	hash := above("Hash", source)
	hash.Parent, outer.Parent = "Inner", "Outer"
	n := &Node{Type: "Hash Join", Label: "Hash Join", Plans: []*Node{outer, hash}}
	if typ != "Inner" {
		n.Label = "Hash " + typ + " Join"
	}
	if len(j.Key) == 0 {
		n.Type, n.Label, n.Plans[1] = "Nested Loop", strings.TrimSuffix("Nested Loop "+typ+" Join", " Inner Join"), source
		source.Parent = "Inner"
	}
	n.structured("Join Type", typ)
	conds := make([]string, len(j.Key))
	for i, c := range j.Key {
		conds[i] = "(" + s.expr(j.Outer[i]) + " = " + s.columns(plan.Column{Table: j.Table, Column: c}) + ")"
	}
	n.add("Hash Cond", conjunction(conds))
	e := outer.Estimate
	of := math.Max(1, float64(s.q.Tables[j.Table].Meta.Rows))
	switch {
	case len(j.Key) == 0:
		e.Rows *= source.Estimate.Rows
	case j.Many:
		e.Rows *= math.Max(1, source.Estimate.Rows/numDistinct)
	case j.Kind == plan.Inner && s.q.Tables[j.Table].Relation == nil:
		e.Rows = whole(e.Rows * math.Min(1, source.Estimate.Rows/of))
	}
	e.Startup += source.Estimate.Total
	e.Total += source.Estimate.Total + tupleCost*(e.Rows+source.Estimate.Rows)
	e.Width += source.Estimate.Width
	n.Estimate = e
	return n
}

// grouped makes the aggregation.
func (s *scope) grouped(in *Node) *Node {
	q := s.q
	n := above("Aggregate", in)
	strategy := "Plain"
	switch {
	case q.Sets != nil:
		n.Label, strategy = "MixedAggregate", "Mixed"
		var sets []string
		for _, set := range q.Sets {
			var keys []string
			for i, k := range q.Group {
				if set>>uint(i)&1 != 0 {
					keys = append(keys, s.expr(k))
				}
			}
			if len(keys) == 0 {
				keys = []string{"()"}
			}
			sets = append(sets, strings.Join(keys, ", "))
		}
		n.add("Grouping Sets", sets)
	case len(q.Group) > 0:
		n.Label, strategy = "HashAggregate", "Hashed"
		n.add("Group Key", s.list(q.Group))
	}
	n.structured("Strategy", strategy)
	n.add("Filter", s.conditions(q.Having))
	rows := in.Estimate.Rows
	n.Estimate.Rows = s.groups(q.Group, rows)
	for range max(0, len(q.Sets)-1) {
		n.Estimate.Rows = math.Min(2*n.Estimate.Rows, rows*float64(len(q.Sets)))
	}
	if len(q.Having) > 0 {
		n.Estimate.Rows = whole(n.Estimate.Rows * s.selectivities(q.Having))
	}
	n.Estimate.Total += tupleCost * (rows + n.Estimate.Rows)
	n.Estimate.Startup = n.Estimate.Total
	return n
}
