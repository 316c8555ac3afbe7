package olap

import (
	"math"
	"slices"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// lowering makes a program.Program of a compiled pipeline, and a program.Query of its
// constants and lookups. What has no counterpart on a device ends it: the processor
// computes such a query whole.
type lowering struct {
	p       *pipeline
	prog    *program.Program
	q       *program.Query
	nodes   map[*node]int
	columns map[int]int // of the table, to Program.Columns
	reads   map[int]int // of the table, to the node that reads it
	entries map[int]int // by lookup: the node of its entry
	lookups map[int]int // by probe
	outs    map[outKey]int
	asked   map[int][]outKey // by probe: outputs, in order
	why     string           // what is not for a device; empty as long as all is
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

// constant adds a constant that is not null.
func (l *lowering) constant(v int64) int {
	l.q.Constants = append(l.q.Constants, v)
	return l.add(program.Node{Op: program.OpConst, Index: len(l.q.Constants) - 1, Wide: wide(v, v)})
}

// column returns the position of a column of the table among the program's.
func (l *lowering) column(col int) int {
	i, ok := l.columns[col]
	if !ok {
		i = len(l.prog.Columns)
		l.columns[col] = i
		c := columnOnDevice(l.p.tab, col)
		l.prog.Columns = append(l.prog.Columns, program.Column{Wide: c.width > 32, Nullable: c.nullable})
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

func (l *lowering) lower(n *node) int {
	to := program.Node{Nullable: n.nullable, Wide: wide(n.lo, n.hi)}
	switch n.kind {
	case nodeConst:
		l.q.Constants = append(l.q.Constants, n.k)
		to.Op, to.Index = program.OpConst, len(l.q.Constants)-1
		return l.add(to)
	case nodeColumn:
		i, ok := l.reads[n.col]
		if !ok {
			to.Op, to.Index = program.OpColumn, l.column(n.col)
			i = l.add(to)
			l.reads[n.col] = i
		}
		return i
	case nodeOut:
		return l.out(outKey{probe: n.probe, out: n.out})
	case nodeMap:
		return l.function(n, to)
	case nodeScalar:
		if len(n.args) != 1 {
			return l.no("function")
		}
		return l.written(n, to, func(v int64) (int64, error) {
			r, err := unaryScalar(n.call, vector.WordValue(v, n.args[0].t))
			if err != nil {
				return 0, err
			}
			b, ok := r.Word(n.t)
			if !ok {
				return 0, errNumeric
			}
			return b, nil
		})
	case nodeFunction:
		return l.rowFunction(n, to)
	}
	switch n.kind {
	case nodeTable:
		return l.table(n, to)
	case nodeTree:
		return l.no("function")
	case nodeFloatKey:
		to.Op = program.OpFloatKey
	default:
		to.Op = n.op
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

// table lowers a function that is written out.
func (l *lowering) table(n *node, to program.Node) int {
	t, arg := n.tab, n.args[0]
	to.Op, to.Args, to.Index = program.OpTable, []int{l.node(arg)}, len(l.prog.Tables)
	l.prog.Tables = append(l.prog.Tables, program.Table{Nulls: t.nulls != nil, Faults: t.errs != nil || t.onNullErr, Wide: to.Wide})
	l.q.Tables = append(l.q.Tables, program.TableData{Lo: arg.lo, Values: t.vals, Nulls: t.nulls, Faults: t.errs,
		OnNull: t.onNull, OnNullNull: t.onNullNull, OnNullFault: t.onNullErr})
	return l.add(to)
}

// deviceTable bounds the domain of a function that is written out for a device.
const deviceTable = 1 << 16

// function lowers a nodeMap: what a device has an operation for, what stays the same
// throughout a unit of time, and what has few arguments.
func (l *lowering) function(n *node, to program.Node) int {
	a := n.args[0]
	switch {
	case n.op == plan.OpAbs:
		to.Op, to.Args = plan.OpAbs, []int{l.node(a)}
		return l.add(to)
	case n.set != nil:
		to.Op, to.Args, to.Index = plan.OpIn, []int{l.node(a)}, len(l.q.Sets)
		l.q.Sets = append(l.q.Sets, n.set)
		return l.add(to)
	case n.unit != "":
		if every := sqlfn.UnitMicros(n.unit); every > 0 {
			return l.units(n, to, every, n.f)
		}
	case n.op == plan.OpCast && n.t.Kind == vector.Date && a.t.Kind != vector.Date:
		return l.units(n, to, sqltype.MicrosPerDay, n.f)
	}
	return l.written(n, to, n.f)
}

// rowFunction lowers a nodeFunction of one argument that is never null by itself.
func (l *lowering) rowFunction(n *node, to program.Node) int {
	if len(n.args) != 1 || n.call.Func.CalledOnNull {
		return l.no("function")
	}
	args := slices.Clone(n.given)
	null := false
	i := l.written(n, to, func(v int64) (int64, error) {
		args[n.places[0]] = vector.WordValue(v, n.args[0].t)
		r, err := callFunction(n.call.Func, args)
		if err != nil {
			return 0, err
		}
		null = null || r.Null
		b, ok := r.Word(n.t)
		if !ok && !r.Null {
			return 0, errNumeric
		}
		return b, nil
	})
	if null {
		return l.no("function")
	}
	return i
}

// units lowers a function of time that is the same throughout every so many microseconds
// to a table by the number of that time.
func (l *lowering) units(n *node, to program.Node, every int64, f func(int64) (int64, error)) int {
	a := n.args[0]
	if infinite(vector.Timestamp, a.lo) || infinite(vector.Timestamp, a.hi) {
		return l.no("function")
	}
	first, last := sqltype.FloorDiv(a.lo, every), sqltype.FloorDiv(a.hi, every)
	if last-first >= deviceTable {
		return l.no("function")
	}
	base := first * every // after the first timestamp that there is, less a unit
	from := program.Node{Op: plan.OpSub, Args: []int{l.node(a), l.constant(base)}, Nullable: a.nullable, Wide: true}
	part := program.Node{Op: plan.OpDiv, Args: []int{l.add(from), l.constant(every)}, Nullable: a.nullable}
	number := l.add(part)
	return l.writtenOver(number, n, to, 0, last-first+1, func(i int64) (int64, error) { return f(base + i*every) })
}

// written lowers a strict function to a table over its argument's values.
func (l *lowering) written(n *node, to program.Node, f func(int64) (int64, error)) int {
	a := n.args[0]
	size, ok := width(a.lo, a.hi)
	if !ok || size > deviceTable || a.dict != nil {
		return l.no("function")
	}
	return l.writtenOver(l.node(a), n, to, a.lo, size, f)
}

func (l *lowering) writtenOver(arg int, n *node, to program.Node, lo, size int64, f func(int64) (int64, error)) int {
	d := program.TableData{Lo: lo, Values: make([]int64, size), OnNull: n.lo, OnNullNull: true}
	for i := range size {
		v, err := f(lo + i)
		if err != nil {
			if d.Faults == nil {
				d.Faults = make([]uint8, size)
			}
			d.Faults[i], v = 1, n.lo
		}
		d.Values[i] = v
	}
	to.Op, to.Args, to.Index = program.OpTable, []int{arg}, len(l.prog.Tables)
	l.prog.Tables = append(l.prog.Tables, program.Table{Faults: d.Faults != nil, Wide: to.Wide})
	l.q.Tables = append(l.q.Tables, d)
	return l.add(to)
}
