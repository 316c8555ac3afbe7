package explain

import "time"

// Options are how a plan is shown.
type Options struct {
	Verbose, Costs, Timing, Summary bool
	Format                          string // text, json, yaml or xml
}

// Node is an operator of a plan.
type Node struct {
	Type   string // the word of structured formats
	Label  string // that of text, with what it is on
	Fields []Field
	// Parent is the relationship to the node above, and Name what a plan beside it is called.
	Parent, Name string
	Estimate     Estimate
	Plans        []*Node
}

// Field is something that is said of a node.
type Field struct {
	Key   string
	Value any // string, []string, number or bool
	// Structured: text says it in another way.
	Structured bool
}

// number is one as it is written.
type number string

// add says something of the node, unless it is empty.
func (n *Node) add(key string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	}
	n.Fields = append(n.Fields, Field{Key: key, Value: value})
}

// structured says something that text says in the node's label.
func (n *Node) structured(key string, value any) {
	n.Fields = append(n.Fields, Field{Key: key, Value: value, Structured: true})
}

// Actual is what an execution came to.
type Actual struct {
	Rows   int
	Took   time.Duration
	Device string // that computed it
	// What was read: rows of segments that were scanned, bytes of their columns, and segments that were not.
	Scanned, Bytes, Segments, Skipped int64
	Kept                              int64 // segments of which an earlier execution has left the groups
	Indexed                           int64 // segments of which a device asked bitmap indexes
	// What a device took: to wait for kernels, to copy what it had not, and to compute; and bytes that were copied.
	Compile, Copy, Compute time.Duration
	Copied                 int64
}

// Statement is an explained statement.
type Statement struct {
	Plan      *Node
	Planning  time.Duration
	Execution *Actual // nil: it was not executed
}
