package olap

import (
	"math"
	"slices"
	"sync"

	"pgaccel/gpu/program"
	"pgaccel/plan"
)

// lowering makes a program.Program of a compiled pipeline, and a program.Query of its
// constants and lookups. What has no counterpart on a device ends it: the processor
// computes such a query whole.
type lowering struct {
	p         *pipeline
	prog      *program.Program
	q         *program.Query
	nodes     map[*node]int
	columns   map[int]int // of the table, to Program.Columns
	reads     map[int]int // of the table, to the node that reads it
	entries   map[int]int // by lookup: the node of its entry
	lookups   map[int]int // by probe
	outs      map[outKey]int
	asked     map[int][]outKey // by probe: outputs, in order
	indexable []indexable      // steps that indexes may answer
	why       string           // what is not for a device; empty as long as all is
}

// outKey is output out of a probe, or where of is an axis, the codes that it has for the
// probe's entries.
type outKey struct {
	probe, out int
	of         *axis
}

func newLowering(p *pipeline) *lowering {
	n := len(p.probes)
	prog := &program.Program{Nodes: make([]program.Node, 0, 16), Lookups: make([]program.Lookup, 0, n), Steps: make([]program.Step, 0, len(p.steps))}
	l := &lowering{p: p, prog: prog, nodes: map[*node]int{}, columns: map[int]int{}, reads: map[int]int{},
		entries: map[int]int{}, lookups: map[int]int{}, outs: map[outKey]int{}, asked: map[int][]outKey{}}
	l.q = &program.Query{Program: prog, Lookups: make([]program.LookupData, 0, n)}
	return l
}

// no notes that the query is not for a device.
func (l *lowering) no(why string) int {
	if l.why == "" {
		l.why = why
	}
	return 0
}

// wide reports whether values need more than 32 bits.
func wide(lo, hi int64) bool { return lo < math.MinInt32 || hi > math.MaxInt32 }

func (l *lowering) add(n program.Node) int {
	l.prog.Nodes = append(l.prog.Nodes, n)
	return len(l.prog.Nodes) - 1
}

// column returns the position of a column of the table among the program's.
func (l *lowering) column(col int) int {
	i, ok := l.columns[col]
	if !ok {
		i = len(l.prog.Columns)
		l.columns[col] = i
		l.prog.Columns = append(l.prog.Columns, columnOnDevice(l.p.tab, col))
	}
	return i
}

// node returns the program's node for n.
func (l *lowering) node(n *node) int {
	if i, ok := l.nodes[n]; ok {
		return i
	}
	if l.why != "" {
		return 0
	}
	i := l.lower(n)
	l.nodes[n] = i
	return i
}

// stepped lowers a function of time that is the same, or differs by the same from its argument, throughout
// some time: an array of these, by the number of the last one that has begun.
func (l *lowering) stepped(n *node) int {
	around := n.around
	if around == nil {
		around = n.shift
	}
	if around == nil {
		return l.no("function")
	}
	a := n.args[0]
	if n.risky && !a.risky || infinite(a.t.Kind, a.lo) || infinite(a.t.Kind, a.hi) {
		return l.no("function")
	}
	starts := stepsOf(around, a.lo, a.hi)
	t := program.TableData{Values: make([]int64, len(starts))}
	same := n.around != nil // as the number
	for i, v := range starts {
		r, err := n.f(v)
		if err != nil {
			return l.no("function")
		}
		if n.around == nil {
			r -= v
		}
		t.Values[i] = r
		same = same && r == int64(i)
	}
	if len(starts) == 0 {
		return l.no("function")
	}
	arg := l.node(a)
	at := l.add(program.Node{Op: program.OpStep, Args: []int{arg}, Index: len(l.q.Sets), Nullable: a.nullable})
	l.q.Sets = append(l.q.Sets, starts)
	if same {
		return at
	}
	lo, hi := slices.Min(t.Values), slices.Max(t.Values)
	of := program.Node{Op: program.OpTable, Args: []int{at}, Index: len(l.q.Tables), Nullable: a.nullable, Wide: wide(lo, hi)}
	t.OnNull, t.OnNullNull = lo, true
	l.prog.Tables = append(l.prog.Tables, program.Table{Wide: of.Wide})
	l.q.Tables = append(l.q.Tables, t)
	value := l.add(of)
	if n.around == nil {
		value = l.add(program.Node{Op: plan.OpAdd, Args: []int{arg, value}, Nullable: a.nullable, Wide: wide(n.lo, n.hi)})
	}
	return value
}

// tableRuns is how many values a table has, at least, of which it is looked whether they are few runs. Tests make it small.
var tableRuns = 1 << 16

// runsMost is how many runs are few: a row is looked up among where they begin.
const runsMost = 256

// runStarts are the runs of equal values of a table, if they are few: its lowerings all ask.
type runStarts struct {
	once   sync.Once
	starts []int // nil where they are not few
}

// of returns where the runs of values begin.
func (r *runStarts) of(values []int64, x *execution) []int {
	r.once.Do(func() {
		var mu sync.Mutex
		var all []int
		x.chunksSideBySide(len(values), func(_, from, to int) {
			var starts []int
			for i := from; i < to && len(starts) <= runsMost; i++ {
				if i == 0 || values[i] != values[i-1] {
					starts = append(starts, i)
				}
			}
			mu.Lock()
			all = append(all, starts...)
			mu.Unlock()
		})
		if len(all) <= runsMost {
			slices.Sort(all)
			r.starts = all
		}
	})
	return r.starts
}

// runLengths lowers a table whose values are few runs, as what a string begins with is of a dictionary in order: an array by the number of the
// last one that has begun. Little of it is to be brought; ok is false for others.
func (l *lowering) runLengths(n *node) (at int, ok bool) {
	t := &n.tab.TableData
	if len(t.Values) < tableRuns || t.Nulls != nil || t.Faults != nil {
		return 0, false
	}
	runs := n.tab.runs.of(t.Values, l.p.x)
	if runs == nil {
		return 0, false
	}
	of := program.TableData{OnNull: t.OnNull, OnNullNull: t.OnNullNull, OnNullFault: t.OnNullFault}
	var starts []int64
	for _, i := range runs {
		starts, of.Values = append(starts, t.Lo+int64(i)), append(of.Values, t.Values[i])
	}
	arg := l.node(n.args[0])
	step := l.add(program.Node{Op: program.OpStep, Args: []int{arg}, Index: len(l.q.Sets), Nullable: n.args[0].nullable})
	l.q.Sets = append(l.q.Sets, starts)
	to := program.Node{Op: program.OpTable, Args: []int{step}, Index: len(l.q.Tables), Nullable: n.nullable, Wide: wide(n.lo, n.hi)}
	l.prog.Tables = append(l.prog.Tables, program.Table{Faults: t.OnNullFault, Wide: to.Wide})
	l.q.Tables = append(l.q.Tables, of)
	return l.add(to), true
}

// lower prints a node: what the processor computes a value at a time is written out first.
func (l *lowering) lower(n *node) int {
	to := program.Node{Op: n.op, Nullable: n.nullable, Wide: wide(n.lo, n.hi)}
	switch n.kind {
	case nodeConst:
		to.Op, to.Index = program.OpConst, len(l.q.Constants)
		l.q.Constants = append(l.q.Constants, n.k)
	case nodeColumn:
		if i, ok := l.reads[n.col]; ok {
			return i
		}
		to.Op, to.Index = program.OpColumn, l.column(n.col)
		l.reads[n.col] = len(l.prog.Nodes)
	case nodeOut:
		return l.out(outKey{probe: n.probe, out: n.out})
	case nodeTable:
		t := &n.tab.TableData
		if i, ok := l.runLengths(n); ok {
			return i
		}
		to.Op, to.Index = program.OpTable, len(l.q.Tables)
		l.prog.Tables = append(l.prog.Tables, program.Table{Nulls: t.Nulls != nil, Faults: t.Faults != nil || t.OnNullFault, Wide: to.Wide})
		l.q.Tables = append(l.q.Tables, *t)
	case nodeFloatKey:
		to.Op = program.OpFloatKey
	case nodeMap, nodeScalar, nodeFunction:
		switch {
		case computesFloat(n):
			return l.float(n)
		case n.set != nil:
			to.Index = len(l.q.Sets)
			l.q.Sets = append(l.q.Sets, n.set)
		case n.kind == nodeMap && n.op == plan.OpAbs:
		case n.kind == nodeMap && n.op == opGroupFloat:
			to.Checked = true
		default:
			if written := l.p.c.written(n); written != nil {
				return l.node(written)
			}
			return l.stepped(n)
		}
	case nodeTree, nodeNumber:
		return l.no("function")
	}
	if n.checked {
		to.Checked = true
		to.Min, to.Max, _ = kindRange(n.within)
	}
	for _, a := range n.args {
		to.Args = append(to.Args, l.node(a))
	}
	return l.add(to)
}
