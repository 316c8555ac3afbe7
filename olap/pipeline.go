package olap

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"pgaccel/colstore"
	"pgaccel/gpu"
	"pgaccel/plan"
	"pgaccel/vector"
)

// execution is one run of a query.
type execution struct {
	ctx    context.Context
	q      *plan.Star
	in     Input
	opt    Options
	tabs   []*colstore.Table // by table
	dicts  [][]*dict         // by table, of an intermediate relation; nil for others
	device gpu.Runner        // Options.Device, where it may have this star
	// numerics are the dictionaries that numericDict has read.
	numerics numericDicts
	// relations are those that have been computed for the statement.
	relations map[*plan.Relation]*relation
	readers   map[*plan.Relation]int    // how many sources of the statement read each
	read      map[*plan.Relation][]bool // see columnsRead
	parent    []int                     // by table: the table whose pipeline looks it up; -1 for the first
	kinds     []plan.JoinKind           // by table: how it is joined, after strengthening
	conds     [][]plan.Expr             // by table: the conjuncts that its pipeline applies
	offset    int64                     // OFFSET and LIMIT
	limit     int64
	tied      bool      // rows that tie were chosen among
	lateKeys  *lateKeys // of the groups; nil: none
	// tiesDropped is set where groups that tie may have been left out already, by what settles ties.
	tiesDropped bool
	limited     bool
	memory      *atomic.Int64 // bytes taken so far for the statement
	room        int64         // bytes that it may take
	spill       *spiller      // what the result goes to; nil where memory has to do
	files       bool          // what memory does not hold from now on may go to files
	turn        *turn         // among those that want slots; nil without Options.Slots
	place       *place        // of the statement, among those that scan
	reporting   *sync.Mutex   // of Options.Report
	// keeps: groups may come from Options.Kept; others are the versions of the tables that are not scanned then.
	keeps  bool
	others []colstore.Version
	// trace receives the plan's decisions for Explain; nil otherwise.
	trace func(format string, args ...any)
}

// take accounts for memory.
func (x *execution) take(bytes int64) error {
	if x.memory.Add(bytes) > x.room {
		x.memory.Add(-bytes)
		return forward(plan.ReasonMemory, "intermediate results exceed the limit")
	}
	if x.opt.Reserve != nil && !x.opt.Reserve(bytes) {
		x.memory.Add(-bytes)
		return forward(plan.ReasonQueryMemory, "other queries and results that are not read yet hold it")
	}
	return nil
}

// give gives back what has been taken.
func (x *execution) give(bytes int64) {
	x.memory.Add(-bytes)
	if x.opt.Reserve != nil {
		x.opt.Reserve(-bytes)
	}
}

// pipeline scans one table, looks its rows up in the tables joined to it, filters,
// and hands what remains to a sink.
type pipeline struct {
	x     *execution
	table int
	tab   *colstore.Table
	// unrestricted is the table of which a device has found the rows that tab has; nil: it is tab.
	unrestricted *colstore.Table
	c            *compiler
	probes       []*probe
	steps        []step
	never        bool     // a constant condition is not true: no rows
	many         int      // the probe on no unique key; -1: none
	fanned       int      // steps before its partners are known
	columns      []int    // that are read
	strict       []bool   // by column: no row that passes is null there; nil: nobody knows of any
	indexable    bool     // some step may be answered by bitmap indexes
	narrowable   bool     // likewise on a device, of several columns' indexes, too
	collected    []*node  // what rows() collects
	top          *topScan // nil where no bound on rows' first key is kept
	keep         *keeper  // nil where nothing is kept of segments
	device       bool     // it is prepared for a device
	expected     float64  // as expectedRows; 0 until then
}

// probe is a lookup in a joined table.
type probe struct {
	join    plan.StarJoin
	child   *pipeline
	members uint64 // tables reached through it
	lut     *lookup
	wanted  []plan.Expr // outputs, over the child's tables
	dedupe  bool        // outputs matter as group keys only
	many    bool        // a row may meet several partners: here, or on the way to a table of members
	rows    *rows       // the child's rows: keys, then outputs
	marked  *keySet     // the keys instead, which are as many as rows says; nil for none
	outer   []*node
	strides []int64
	taken   int64 // bytes of lut that are accounted already
	single  bool  // several partners are an error
	key     *node // of outer: one, or the number whose digits several are
	// In a pipeline for a device: what is known of lookups like this one, and whether lut is
	// one that an earlier query made.
	known *knownLookup
	kept  bool
}

// arrange finds the tree of lookups and the place of each condition.
func (x *execution) arrange() error {
	n := len(x.q.Tables)
	if n == 0 {
		return nil
	}
	x.parent = make([]int, n)
	x.kinds = make([]plan.JoinKind, n)
	x.conds = make([][]plan.Expr, n)
	x.parent[0] = -1
	joined := uint64(1)
	for _, j := range x.q.Joins {
		var set uint64
		for _, e := range j.Outer {
			set |= plan.Tables(e)
		}
		if set&^joined != 0 || joined>>uint(j.Table)&1 != 0 || len(j.Key) == 0 || len(j.Key) != len(j.Outer) {
			return forward(plan.ReasonShape, "join order")
		}
		joined |= 1 << uint(j.Table)
		at := x.meet(set)
		if !nullOnNulls(j.Outer) {
			// A row of nulls has partners, too: it is looked up above the left joins that make it.
			for t := at; t > 0; t = x.parent[t] {
				if x.kinds[t] == plan.Left {
					at = x.parent[t]
				}
			}
		}
		x.parent[j.Table] = at
		if x.kinds[j.Table] = j.Kind; j.Kind == plan.Single { // no lookup takes a key twice
			x.kinds[j.Table] = plan.Left
		}
	}
	if joined != 1<<uint(n)-1 {
		return forward(plan.ReasonShape, "a table that is not joined")
	}
	// A condition that no row of nulls passes makes left joins inner ones; so does
	// an inner join to a table that is reached through them.
	inner := func(t int) {
		for ; t > 0; t = x.parent[t] {
			x.kinds[t] = plan.Inner
		}
	}
	for _, j := range x.q.Joins {
		if j.Kind == plan.Inner {
			inner(x.parent[j.Table])
		}
	}
	for _, c := range x.q.Filter {
		set := plan.Tables(c)
		if at := x.meet(set); at > 0 && set != 0 && rejectsNulls(c) {
			inner(at)
		}
	}
	for _, c := range x.q.Filter {
		at := x.meet(plan.Tables(c))
		// Above the topmost left join on the way.
		place := at
		for t := at; t > 0; t = x.parent[t] {
			if x.kinds[t] == plan.Left {
				place = x.parent[t]
			}
		}
		x.conds[place] = append(x.conds[place], c)
	}
	for _, j := range x.q.Joins {
		for _, c := range j.On {
			if plan.Tables(c)&^(1<<uint(j.Table)) != 0 {
				return forward(plan.ReasonShape, "join condition over several tables")
			}
			x.conds[j.Table] = append(x.conds[j.Table], c)
		}
	}
	return nil
}

// meet returns the lowest table whose pipeline reaches all tables of set.
func (x *execution) meet(set uint64) int {
	if set == 0 {
		return 0
	}
	best := -1
	for t := range x.q.Tables {
		if set>>uint(t)&1 == 0 {
			continue
		}
		if best < 0 {
			best = t
			continue
		}
		var path uint64
		for a := best; a >= 0; a = x.parent[a] {
			path |= 1 << uint(a)
		}
		for best = t; path>>uint(best)&1 == 0; best = x.parent[best] {
		}
	}
	return best
}

// nullOnNulls reports whether one of a join's keys is null where all their columns are.
func nullOnNulls(keys []plan.Expr) bool {
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return vector.NullValue, nil }}
	return slices.ContainsFunc(keys, func(e plan.Expr) bool {
		r, err := v.eval(e)
		return err == nil && r.Null
	})
}

// rejectsNulls reports whether e is not true where all its columns are null.
func rejectsNulls(e plan.Expr) bool {
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return vector.NullValue, nil }}
	r, err := v.eval(e)
	return err == nil && (r.Null || r.I == 0)
}

// prepare makes the pipeline of a table and runs those of the tables joined to it.
// wanted are expressions over its tables that the sink needs; groupOnly marks those
// that matter as group keys only (nil: none does). They come back lowered.
func (x *execution) prepare(table int, wanted []plan.Expr, groupOnly []bool) (*pipeline, []plan.Expr, error) {
	return x.prepareFor(table, wanted, groupOnly, false)
}

// prepareFor is prepare of a pipeline that is meant for a device: large lookups are left
// for it to make (device_build.go), and others are kept for the next queries.
func (x *execution) prepareFor(table int, wanted []plan.Expr, groupOnly []bool, device bool) (*pipeline, []plan.Expr, error) {
	p := &pipeline{x: x, table: table, tab: x.tabs[table], many: -1, device: device}
	p.c = &compiler{p: p}
	for _, j := range x.q.Joins {
		if x.parent[j.Table] != table {
			continue
		}
		single := j.Kind == plan.Single
		j.Kind = x.kinds[j.Table]
		b := &probe{join: j, single: single, members: x.subtree(j.Table), dedupe: j.Kind == plan.Inner || j.Exists}
		for _, k := range x.q.Joins {
			b.many = b.many || k.Many && b.members>>uint(k.Table)&1 != 0
		}
		p.probes = append(p.probes, b)
	}
	lowered := make([]plan.Expr, len(wanted))
	for i, e := range wanted {
		only := i < len(groupOnly) && groupOnly[i]
		lowered[i] = p.lower(e, only && !e.Type().Kind.IsFloat())
	}
	conds := make([]plan.Expr, len(x.conds[table]))
	for i, e := range x.conds[table] {
		conds[i] = p.lower(e, false)
	}
	outers := make([][]plan.Expr, len(p.probes))
	for i, b := range p.probes {
		for _, e := range b.join.Outer {
			outers[i] = append(outers[i], p.lower(e, false))
		}
	}
	if device {
		for i, b := range p.probes {
			if err := p.foresee(b, outers[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := p.loadAll(); err != nil {
		return nil, nil, err
	}
	for i, b := range p.probes {
		if b.idle() {
			b.lut = &lookup{left: true, share: 1} // it changes nothing
			continue
		}
		if b.outer == nil {
			if err := p.compileOuter(b, outers[i]); err != nil {
				return nil, nil, err
			}
		}
		if !b.builds() && !b.kept {
			making := int64(b.rows.n) * int64(lookupWork+9*len(b.wanted))
			if err := x.take(making); err != nil {
				return nil, nil, err
			}
			if err := p.makeLookup(b); err != nil {
				return nil, nil, err
			}
			x.give(making)
			b.keep()
		}
		if err := x.take(b.lut.bytes - b.taken); err != nil {
			return nil, nil, err
		}
		if b.rows != nil {
			x.give(b.rows.taken)
			b.rows = nil
		}
	}
	return p, lowered, p.plan(conds)
}

// compileOuter compiles the key that a probe looks up: its parts, and the number that they make.
func (p *pipeline) compileOuter(b *probe, outer []plan.Expr) (err error) {
	if b.outer, err = p.c.list(outer); err != nil {
		return err
	}
	for k, o := range b.outer {
		if o.risky {
			return failed("join key that may fail")
		}
		if o.t.Kind.IsFloat() {
			o = p.c.floatKey(o)
		}
		if o.t.Varying() {
			if o, err = p.c.onePerValue(o); err != nil {
				return err
			}
		}
		b.outer[k] = p.c.lookedUp(o)
	}
	if len(b.outer) == 1 {
		b.key, b.strides = b.outer[0], []int64{1}
		return nil
	}
	var ok bool
	if b.strides, ok = strides(b.outer); !ok && b.rows != nil {
		for k, o := range b.outer {
			if w, ok := width(o.lo, o.hi); !ok || w > int64(b.rows.n) {
				b.outer[k] = p.c.numbered(o, b.rows.n)
			}
		}
		b.strides, ok = strides(b.outer)
	}
	if !ok {
		return forward(plan.ReasonShape, "join key of several wide columns")
	}
	for k, o := range b.outer {
		digit := p.c.whole(plan.OpMul, p.c.whole(plan.OpSub, o, p.c.number(o.lo)), p.c.number(b.strides[k]))
		if b.key == nil {
			b.key = digit
		} else {
			b.key = p.c.whole(plan.OpAdd, b.key, digit)
		}
	}
	return nil
}

// strides are the places of keys as digits of one number; false where 64 bits do not hold it.
func strides(keys []*node) ([]int64, bool) {
	out := make([]int64, len(keys))
	radix := int64(1)
	for k, o := range keys {
		out[k] = radix
		w, ok := width(o.lo, o.hi)
		if ok {
			radix, ok = plan.OpMul.Integer(radix, w)
		}
		if !ok {
			return nil, false
		}
	}
	return out, true
}

// numbered is the number of a value among up to n that are not known yet.
func (c *compiler) numbered(a *node, n int) *node {
	return c.add(&node{kind: nodeNumber, t: vector.TypeOf(vector.Int8), args: []*node{a}, hi: int64(max(n-1, 0)), nullable: true, numbers: newWordTable(1, n)})
}

// idle reports whether the join changes nothing: whether there is a partner is all the same, and asking
// for one does not fail.
func (b *probe) idle() bool {
	return b.join.Kind == plan.Left && len(b.wanted) == 0 && !b.many && !b.single && !slices.ContainsFunc(b.join.Outer, plan.Facts{}.MayFail)
}

// loadAll runs the children side by side: most are too small to occupy all workers.
func (p *pipeline) loadAll() error {
	var work []func() error
	for _, b := range p.probes {
		if !b.idle() && !b.kept {
			work = append(work, func() error { return p.load(b) })
		}
	}
	if p.x.opt.Workers == 1 || p.x.trace != nil {
		for _, f := range work {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
	// The error is the first in their order, whichever comes first.
	errs := make([]error, len(work))
	var next atomic.Int64
	if err := p.x.together(len(work), func(*member) error {
		for i := int(next.Add(1) - 1); i < len(work); i = int(next.Add(1) - 1) {
			errs[i] = work[i]()
		}
		return nil
	}); err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// load runs the child of b and keeps its rows.
func (p *pipeline) load(b *probe) error {
	t := b.join.Table
	var exprs []plan.Expr
	for _, k := range b.join.Key {
		exprs = append(exprs, plan.Column{Table: t, Column: k, T: p.x.q.Tables[t].Meta.Columns[k].Type})
	}
	exprs = append(exprs, b.wanted...)
	if p.device && p.buildOnDevice(b, exprs) {
		return nil
	}
	child, lowered, err := p.x.prepare(t, exprs, nil)
	if err != nil {
		return err
	}
	b.child = child
	b.lut = &lookup{}
	if child.findsRows() {
		if _, err := p.x.findRows(child, lowered, cut{}); err != nil {
			return err
		}
	}
	var distinct bool
	if b.rows, distinct, err = child.collectKeys(b, lowered); err == nil && !distinct {
		b.rows, err = child.collect(lowered, cut{})
	}
	return err
}

func (x *execution) subtree(t int) uint64 {
	set := uint64(1) << uint(t)
	for u, q := range x.parent {
		for a := q; a >= 0; a = x.parent[a] {
			if a == t {
				set |= 1 << uint(u)
			}
		}
	}
	return set
}

// lower replaces the largest subexpressions over one joined table by outputs of
// its lookup.
func (p *pipeline) lower(e plan.Expr, groupOnly bool) plan.Expr {
	set := plan.Tables(e)
	if set == 0 || set == 1<<uint(p.table) {
		return e
	}
	for i, b := range p.probes {
		if set&^b.members == 0 && !p.late(e, b) {
			b.dedupe = b.dedupe && groupOnly || b.join.Exists
			for k, have := range b.wanted {
				if have == e {
					return outRef{i, k, e.Type()}
				}
			}
			b.wanted = append(b.wanted, e)
			return outRef{i, len(b.wanted) - 1, e.Type()}
		}
	}
	c := e.(*plan.Call)
	if c.Op == plan.OpCase && plan.Guarded(c) {
		return p.lowerApart(c)
	}
	return mapArgs(c, func(a plan.Expr) plan.Expr { return p.lower(a, false) })
}

// lowerApart is lower of a CASE that may fail, and of what it is made of: an arm that may fail is not
// computed for a table's rows that do not take it, and conditions stay what they are, for what they
// say of the arms (plan.Facts).
func (p *pipeline) lowerApart(e plan.Expr) plan.Expr {
	c, ok := e.(*plan.Call)
	if !ok {
		return p.lower(e, false)
	}
	switch {
	case c.Op == plan.OpAnd, c.Op == plan.OpOr, c.Op.IsComparison(), c.Op == plan.OpCast && plan.KeepsValue(c), c.Op == plan.OpCase, plan.Facts{}.MayFail(c):
		return mapArgs(c, p.lowerApart)
	}
	return p.lower(e, false)
}

// mapArgs returns a call with f of its arguments.
func mapArgs(c *plan.Call, f func(plan.Expr) plan.Expr) *plan.Call {
	d := *c
	d.Args = make([]plan.Expr, len(c.Args))
	for i, a := range c.Args {
		d.Args[i] = f(a)
	}
	return &d
}

// nullOutput computes output i of a left join's row of nulls. d is the output's dictionary
// then: with a string more, where the row has one that no other has.
func (b *probe) nullOutput(i int, in *node) (v int64, null uint8, d *dict, err error) {
	e := &env{leaf: func(plan.Expr) (vector.Value, error) { return vector.NullValue, nil }}
	r, err := e.eval(b.wanted[i])
	if err != nil || r.Null {
		return 0, 1, in.dict, err
	}
	switch {
	case in.t.Varying():
		return int64(in.dict.n), 0, decimalDict(append(slices.Clip(in.dict.decimals), r.Num), in.t), nil
	case in.dict != nil:
		if code, ok := in.dict.find(r.Str); ok {
			return code, 0, in.dict, nil
		}
		return int64(in.dict.n), 0, in.dict.with(in.dict.t, []string{r.Str}), nil
	}
	v, ok := r.Word(in.t)
	if !ok {
		return 0, 0, nil, errNumeric
	}
	return v, 0, nil, nil
}

// nullRow writes output i of a left join's row of nulls to entry at of o.
func (b *probe) nullRow(i int, in *node, o *lookupOut, at uint32) error {
	v, null, d, err := b.nullOutput(i, in)
	if null != 0 {
		v = o.lo
	}
	o.Values[at], o.Nulls[at], o.dict = v, null, d
	o.lo, o.hi = min(o.lo, v), max(o.hi, v)
	return err
}

// rowsMax returns a bound on the rows that come to the sink, at least 1: those of the
// table, each as often as it has partners.
func (p *pipeline) rowsMax() int64 {
	n := int64(1)
	for _, s := range p.tab.Segments {
		n += int64(s.Rows)
	}
	for _, b := range p.probes {
		if b.lut.many == nil {
			continue
		}
		m, ok := plan.OpMul.Integer(n, int64(max(b.lut.many.most, 1)))
		if !ok {
			return math.MaxInt64
		}
		n = m
	}
	return n
}

// late reports whether an expression over a joined table is better computed for the rows that have a partner
// there: a numeric of varying scale takes far longer than a word, and is interned.
func (p *pipeline) late(e plan.Expr, b *probe) bool {
	c, computed := e.(*plan.Call)
	return computed && c.T.Varying() && (p.x.limited || p.x.tabs[b.join.Table].Rows > p.tab.Rows)
}
