package explain

import (
	"fmt"
	"strconv"
)

// group is what the structured formats write: fields in order, whose values may be groups, or lists of them.
type group []Field

// list is a list of groups, of which each is called name where a format has names for them.
type list struct {
	name   string
	groups []group
}

// groups makes the statement's group.
func (s *Statement) group(o Options) group {
	g := group{{Key: "Plan", Value: s.node(s.Plan, o)}}
	if o.Summary {
		g = append(g, Field{Key: "Planning Time", Value: number(milliseconds(s.Planning))})
		if s.Execution != nil {
			g = append(g, Field{Key: "Execution Time", Value: number(milliseconds(s.Execution.Took))})
		}
	}
	return g
}

func (s *Statement) node(n *Node, o Options) (g group) {
	add := func(key string, value any) { g = append(g, Field{Key: key, Value: value}) }
	add("Node Type", n.Type)
	if n.Parent != "" {
		add("Parent Relationship", n.Parent)
	}
	if n.Name != "" {
		add("Subplan Name", n.Name)
	}
	add("Parallel Aware", false)
	add("Async Capable", false)
	for _, f := range n.Fields {
		if f.Structured {
			g = append(g, f)
		}
	}
	if o.Costs {
		add("Startup Cost", number(fmt.Sprintf("%.2f", n.Estimate.Startup)))
		add("Total Cost", number(fmt.Sprintf("%.2f", n.Estimate.Total)))
		add("Plan Rows", number(fmt.Sprintf("%.0f", n.Estimate.Rows)))
		add("Plan Width", number(strconv.Itoa(n.Estimate.Width)))
	}
	root := n == s.Plan && s.Execution != nil
	if root {
		if o.Timing {
			add("Actual Startup Time", number(milliseconds(s.Execution.Took)))
			add("Actual Total Time", number(milliseconds(s.Execution.Took)))
		}
		add("Actual Rows", number(strconv.Itoa(s.Execution.Rows)))
		add("Actual Loops", number("1"))
	}
	for _, f := range n.Fields {
		if !f.Structured {
			g = append(g, f)
		}
	}
	if root {
		g = append(g, s.Execution.fields(o)...)
	}
	if len(n.Plans) > 0 {
		plans := list{name: "Plan"}
		for _, p := range n.Plans {
			plans.groups = append(plans.groups, s.node(p, o))
		}
		add("Plans", plans)
	}
	return g
}

// Rows writes the statement: the rows of EXPLAIN's one column.
func (s *Statement) Rows(o Options) []string {
	switch o.Format {
	case "json":
		return []string{s.group(o).json()}
	case "yaml":
		return []string{s.group(o).yaml()}
	case "xml":
		return []string{s.group(o).xml()}
	}
	return s.text(o)
}
