package olap

import (
	"bytes"
	"math"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// grouped aggregates, then computes what stands over groups.
func (x *execution) grouped() (*result, error) {
	x.late()
	var r *result
	done, err := x.onDevice(func() (ok bool, err error) {
		r, ok, err = x.groupedOn(true)
		return ok, err
	})
	if !done {
		r, _, err = x.groupedOn(false)
	}
	return r, err
}

// groupedOn computes a grouped query. With device that is tried first; ok is false where
// all must be done again without.
func (x *execution) groupedOn(device bool) (r *result, ok bool, err error) {
	q := x.q
	x.files, x.room = false, x.opt.MemoryLimit // as long as lookups are made
	wanted := append([]plan.Expr(nil), q.Group...)
	only := make([]bool, len(wanted))
	for i := range only {
		only[i] = true
	}
	aggs := append([]plan.AggregateCall(nil), q.Aggs...)
	for _, a := range aggs {
		if a.Arg != nil {
			wanted = append(wanted, a.Arg)
		}
		if a.Filter != nil {
			wanted = append(wanted, a.Filter)
		}
	}
	p, lowered, err := x.prepareFor(0, wanted, only, device)
	if err != nil {
		return nil, !device, err
	}
	x.mayUseFiles()
	k := len(q.Group)
	for i := range aggs {
		if aggs[i].Arg != nil {
			aggs[i].Arg = lowered[k]
			k++
		}
		if aggs[i].Filter != nil {
			aggs[i].Filter = lowered[k]
			k++
		}
	}
	g, err := newGrouper(p, lowered[:len(q.Group)])
	if err == nil {
		err = g.addAggregates(aggs)
	}
	if err != nil {
		return nil, !device, err
	}
	if device {
		ok, err := x.accelerate(g)
		switch {
		case err != nil:
			return nil, false, err
		case ok:
			if err := g.derive(); err != nil {
				return nil, true, err
			}
			o, err := newOverview(x, g)
			if err != nil {
				return nil, true, err
			}
			r, err := x.overGroups(o)
			return r, true, err
		case p.builds():
			return nil, false, nil
		}
		if err := p.makeHashes(); err != nil {
			return nil, true, err
		}
		g.device, device = false, false
	}
	g.arrange(q.Sets)
	if by := g.bases[0]; by.radix != nil && by.radix.spilled != nil {
		return nil, true, x.spillGroups(g)
	}
	if err := x.foresee(g.bases[0].expect, g.groupBytes()+spilledGroup); err != nil {
		return nil, true, err
	}
	if x.trace != nil {
		g.describe(x.trace)
	}
	g.keep()
	if err := p.run(func(*worker) sink {
		if len(g.bases) == 1 {
			return g.bases[0].sink()
		}
		var all sinks
		for _, by := range g.bases {
			all = append(all, by.sink())
		}
		return all
	}); err != nil {
		return nil, !device, err
	}
	if p.keep != nil {
		p.keep.end()
	}
	for _, by := range g.bases {
		if err := by.merge(); err != nil {
			return nil, !device, err
		}
	}
	if err := g.derive(); err != nil {
		return nil, !device, err
	}
	o, err := newOverview(x, g)
	if err != nil {
		return nil, true, err
	}
	r, err = x.overGroups(o)
	return r, true, err
}

// parallelCells is the number of groups from which on their results are computed by
// several goroutines, cellGroups how many of them one takes at a time.
const (
	parallelCells = 1 << 14
	cellGroups    = 1 << 12
)

// eachOf is each, over pieces that have n groups or rows together: by one goroutine where these are
// few.
func (x *execution) eachOf(pieces, n int, f func(i int) error) error {
	return x.eachIf(n > parallelCells, pieces, f)
}

// eachIf is each, by one goroutine unless it is worth more.
func (x *execution) eachIf(worth bool, pieces int, f func(i int) error) error {
	if worth {
		return x.each(pieces, f)
	}
	for i := range pieces {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// cell are groups of one table, which may have more cells.
type cell struct {
	s       *groups
	numbers []uint32
}

// overview are the groups of all sets, in a row, and what is known about them.
type overview struct {
	x     *execution
	g     *grouper
	cells []cell
	n     int
	cols  map[plan.Expr]*rcol // of plan.Key, plan.Agg and *plan.Grouping
	taken int64               // bytes of cols
}

// overview is that of tables that have no group in common.
func (g *grouper) overview(tables []*groups) (*overview, error) {
	o := &overview{x: g.p.x, g: g, cols: map[plan.Expr]*rcol{}}
	size, n := cellGroups, 0
	if slices.ContainsFunc(g.accs, func(a acc) bool { return a.kind == accDistinct || a.kind == accRanked }) {
		size = math.MaxInt // what they say is computed for all groups of a table at once
	}
	var first []int // by cell: its first group
	for _, s := range tables {
		n += s.size()
		for from := 0; from == 0 || from < s.size(); from += min(size, s.size()) {
			o.cells, first = append(o.cells, cell{s: s}), append(first, from)
			if s.size() == 0 {
				break
			}
		}
	}
	err := o.x.eachOf(len(o.cells), n, func(i int) error {
		c := &o.cells[i]
		c.numbers = c.s.numbers(first[i], first[i]+min(size, c.s.size()-first[i]))
		return nil
	})
	for _, c := range o.cells {
		o.n += len(c.numbers)
	}
	return o, err
}

func newOverview(x *execution, g *grouper) (*overview, error) {
	if err := g.complete(); err != nil {
		return nil, err
	}
	var tables []*groups
	for _, by := range g.sets {
		tables = append(tables, by.done...)
	}
	o, err := g.overview(tables)
	if err == nil && int64(o.n) >= 1<<32 {
		err = forward(plan.ReasonMemory, "groups")
	}
	if err == nil {
		err = o.unlikeTexts()
	}
	return o, err
}

// looseKey reports whether a key of the groups is text of a nondeterministic collation.
func (x *execution) looseKey(i int) bool {
	t := x.q.Group[i].Type()
	return t.Kind.IsString() && t.Collation.OID != 0 && !t.Collation.Deterministic
}

// unlikeTexts forwards where two groups have keys that are equal and written apart, under a nondeterministic
// collation: they are one in PostgreSQL, and which of the texts it shows depends on the order of its rows.
func (o *overview) unlikeTexts() error {
	for i := range o.x.q.Group {
		if !o.x.looseKey(i) {
			continue
		}
		if o.x.opt.Rank == nil {
			return errUnranked
		}
		c, err := o.column(plan.Key{Index: i, T: o.x.q.Group[i].Type()})
		if err != nil {
			return err
		}
		seen := map[string]struct{}{}
		var texts []string
		for k := range uint32(o.n) {
			if c.null(k) {
				continue
			}
			s := canonical(c.t.Kind, c.at(k).Str)
			if _, again := seen[s]; again {
				continue
			}
			if len(texts) == serverTexts {
				return errManyTexts
			}
			seen[s] = struct{}{}
			texts = append(texts, s)
		}
		ranks, err := o.x.opt.orders.rank(o.x.q.Group[i].Type().Collation, texts)
		if err != nil {
			return err
		}
		slices.Sort(ranks)
		if len(slices.Compact(ranks)) < len(texts) {
			return forward(plan.ReasonCollation, "groups of texts that are equal and written apart")
		}
	}
	return nil
}

// column returns a key, an aggregate's results or GROUPING for all groups.
func (o *overview) column(e plan.Expr) (*rcol, error) {
	if c := o.cols[e]; c != nil {
		return c, nil
	}
	if _, late := e.(lateRef); late {
		err := o.lateColumns()
		return o.cols[e], err
	}
	if err := o.x.take(int64(o.n) * 9); err != nil {
		return nil, err
	}
	o.taken += int64(o.n) * 9
	parts := make([]rcol, len(o.cells))
	one := func(i int) (err error) {
		c := &o.cells[i]
		switch e := e.(type) {
		case plan.Key:
			parts[i] = c.s.keys(e.Index, c.numbers)
		case plan.Agg:
			parts[i], err = c.s.aggregate(e.Index, c.numbers)
		case *plan.Grouping:
			parts[i] = c.grouping(e)
		default:
			err = forward(plan.ReasonShape, "a column outside of aggregates")
		}
		return err
	}
	if err := o.x.eachOf(len(parts), o.n, one); err != nil {
		return nil, err
	}
	c, err := o.x.joinColumns(parts)
	o.cols[e] = c
	return c, err
}

// grouping returns GROUPING, which is the same for all groups of a set.
func (c *cell) grouping(e *plan.Grouping) rcol {
	bits := int64(0)
	for _, k := range e.Keys {
		bits = bits<<1 | b2i(!c.s.by.has(k))
	}
	r := rcol{t: e.T, v: make([]int64, len(c.numbers))}
	for i := range r.v {
		r.v[i] = bits
	}
	return r
}

// joinColumns puts columns of one kind together; there is at least one.
func (x *execution) joinColumns(parts []rcol) (*rcol, error) {
	if len(parts) == 1 {
		return &parts[0], nil
	}
	out := parts[0]
	at := make([]int, len(parts)+1) // where each begins
	nulls, dec, str := false, false, false
	for i := range parts {
		p := &parts[i]
		at[i+1] = at[i] + len(p.v) + len(p.dec) + len(p.str)
		nulls, dec, str = nulls || p.nulls != nil, dec || p.dec != nil, str || p.str != nil
	}
	n := at[len(parts)]
	out.v, out.dec, out.str, out.nulls = nil, nil, nil, nil
	switch {
	case dec:
		out.dec = unset[vector.Decimal](n)
	case str:
		out.str = make([]string, n)
	default:
		out.v = unset[int64](n)
	}
	if nulls {
		out.nulls = unset[uint8](n)
	}
	return &out, x.eachOf(len(parts), n, func(i int) error {
		p, from, to := &parts[i], at[i], at[i+1]
		switch {
		case dec:
			clear(out.dec[from+copy(out.dec[from:to], p.dec) : to])
		case str:
			copy(out.str[from:to], p.str)
		default:
			clear(out.v[from+copy(out.v[from:to], p.v) : to])
		}
		if p.nulls != nil {
			copy(out.nulls[from:to], p.nulls)
		} else if nulls {
			clear(out.nulls[from:to])
		}
		return nil
	})
}

// restrict keeps the groups at the given places, which ascend.
func (o *overview) restrict(kept []uint32) {
	if len(kept) == o.n {
		return
	}
	for e, c := range o.cols {
		p := c.pick(kept)
		o.cols[e] = &p
	}
	var cells []cell
	start, k := uint32(0), 0
	for _, c := range o.cells {
		end := start + uint32(len(c.numbers))
		from := k
		for k < len(kept) && kept[k] < end {
			k++
		}
		if k > from || len(cells) == 0 {
			numbers := make([]uint32, k-from)
			for i, at := range kept[from:k] {
				numbers[i] = c.numbers[at-start]
			}
			cells = append(cells, cell{c.s, numbers})
		}
		start = end
	}
	if len(cells) > 1 && len(cells[0].numbers) == 0 {
		cells = cells[1:]
	}
	o.cells, o.n = cells, len(kept)
}

// overLeaf reports whether an expression is a column of the overview.
func overLeaf(e plan.Expr) bool {
	switch e.(type) {
	case plan.Key, plan.Agg, *plan.Grouping, lateRef:
		return true
	}
	return false
}

// overGroups applies HAVING and computes the outputs and the order.
func (x *execution) overGroups(o *overview) (*result, error) {
	// Postgres computes all aggregates of all groups, before HAVING: an error is not to
	// be missed.
	for i, a := range x.q.Aggs {
		if !o.g.harmless(i) {
			if _, err := o.column(plan.Agg{Index: i, T: a.T}); err != nil {
				return nil, err
			}
		}
	}
	if err := o.having(); err != nil {
		return nil, err
	}
	if err := o.first(); err != nil {
		return nil, err
	}
	r := &result{n: o.n}
	for _, e := range x.q.Output {
		c, err := o.output(e)
		if err != nil {
			return nil, err
		}
		r.output = append(r.output, c)
	}
	for _, k := range x.q.Order {
		c, err := o.output(k.Expr)
		if err != nil {
			return nil, err
		}
		r.order = append(r.order, c)
	}
	return r, nil
}

// output returns the values of any expression over groups.
func (o *overview) output(e plan.Expr) (rcol, error) {
	var c rcol
	if overLeaf(e) {
		p, err := o.column(e)
		if err != nil {
			return c, err
		}
		c = *p
	} else {
		var err error
		if c, err = o.computed(e); err != nil {
			return c, err
		}
	}
	c.t.Collation = e.Type().Collation
	return c, nil
}

// having keeps the groups for which all conditions are true.
func (o *overview) having() error {
	if len(o.x.q.Having) == 0 {
		return nil
	}
	pass := unset[uint8](o.n)
	o.x.chunksSideBySide(o.n, func(_, from, to int) { fill(pass[from:to], 1) })
	// Every condition is computed for every group: one that fails is not missed.
	for _, h := range o.x.q.Having {
		plain, err := o.compareColumn(h, pass)
		if err != nil {
			return err
		}
		if plain {
			continue
		}
		c, err := o.computed(h)
		if err != nil {
			return err
		}
		o.x.chunksSideBySide(o.n, func(_, from, to int) {
			for i := from; i < to; i++ {
				pass[i] &= uint8(b2i(!c.null(uint32(i)) && c.v[i] != 0))
			}
		})
	}
	o.restrict(o.x.numbersOf(pass))
	return nil
}

// numbersOf returns the numbers of those that are 1, of bytes that are 0 or 1.
func (x *execution) numbersOf(flags []uint8) []uint32 {
	at := make([]int, max(chunksOf(len(flags)), 1)+1) // by chunk: how many are before it
	x.chunksSideBySide(len(flags), func(c, from, to int) {
		at[c+1] = bytes.Count(flags[from:to], []byte{1})
	})
	prefixSums(at)
	numbers := unset[uint32](at[len(at)-1])
	x.chunksSideBySide(len(flags), func(c, from, to int) {
		k := at[c]
		if k == at[c+1] {
			return
		}
		for i, f := range flags[from:to] {
			if f != 0 {
				numbers[k] = uint32(from + i)
				k++
			}
		}
	})
	return numbers
}

// compareColumn clears pass where a comparison of a column with a number is not true. It
// reports whether e is one.
func (o *overview) compareColumn(e plan.Expr, pass []uint8) (bool, error) {
	call, ok := e.(*plan.Call)
	if !ok || len(call.Args) != 2 || !call.Op.IsComparison() || !overLeaf(call.Args[0]) {
		return false, nil
	}
	k, ok := call.Args[1].(plan.Const)
	if t := call.Args[0].Type().Kind; !ok || k.Null || !t.IsInt() && t != vector.Numeric || (k.Type().Kind == vector.Numeric) != (t == vector.Numeric) {
		return false, nil
	}
	c, err := o.column(call.Args[0])
	if err != nil {
		return true, err
	}
	want := k.Datum.Value()
	b, fits := want.Word(c.t)
	exact := fits && c.v != nil
	if exact && c.t.Kind == vector.Numeric { // digits that are lost would matter
		exact = compareDecimals(vector.WordValue(b, c.t).Num, want.Num) == 0
	}
	return true, o.x.eachChunk(len(pass), func(_, from, to int) error {
		for i := from; i < to; i++ {
			if c.null(uint32(i)) {
				pass[i] = 0
				continue
			}
			r := 0
			if exact {
				switch v := c.v[i]; {
				case v < b:
					r = -1
				case v > b:
					r = 1
				}
			} else {
				r = compareBits(c.t, c.at(uint32(i)), want)
			}
			pass[i] &= uint8(b2i(call.Op.Holds(r)))
		}
		return nil
	})
}

// pick returns the rows of the column.
func (c *rcol) pick(rows []uint32) rcol {
	out := *c
	switch {
	case c.dec != nil:
		out.dec = make([]vector.Decimal, len(rows))
		pickRows(out.dec, c.dec, rows)
	case c.str != nil:
		out.str = make([]string, len(rows))
		pickRows(out.str, c.str, rows)
	default:
		out.v = make([]int64, len(rows))
		pickRows(out.v, c.v, rows)
	}
	if c.nulls != nil {
		out.nulls = make([]uint8, len(rows))
		pickRows(out.nulls, c.nulls, rows)
	}
	return out
}
