package olap

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"pgaccel/colstore"
	"pgaccel/plan"
	"pgaccel/vector"
)

// Input is what a query reads. Tables[i] stands for Query.Tables[i]; the caller
// holds a reference to each until Execute has returned.
type Input struct {
	Tables []*colstore.Table
}

// Options bounds an execution.
type Options struct {
	Workers     int   // goroutines; 0: as many as there are processors
	MemoryLimit int64 // bytes of lookups, group tables and results; 0: 1 GiB
	// Share lets the query scan together with others; nil: by itself.
	Share *Sharer
}

// Execute computes q, which must be bound, over the given versions of its tables.
// What Postgres has to decide (errors of evaluation, ties that a LIMIT cuts, an
// order of text that is not known) comes back as a *plan.Forward; the error of ctx
// as it is. The batch owns its memory.
func Execute(ctx context.Context, q *plan.Query, in Input, opt Options) (*vector.Batch, error) {
	x, err := newExecution(ctx, q, in, opt)
	if err != nil {
		return nil, err
	}
	return x.execute()
}

func newExecution(ctx context.Context, q *plan.Query, in Input, opt Options) (*execution, error) {
	if len(in.Tables) != len(q.Tables) {
		panic("BUG: as many tables as the query has are needed")
	}
	if f := Supports(q); f != nil {
		return nil, f
	}
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.MemoryLimit <= 0 {
		opt.MemoryLimit = 1 << 30
	}
	x := &execution{ctx: ctx, q: q, in: in, opt: opt}
	var err error
	if x.offset, _, err = constantCount(q.Offset); err == nil {
		x.limit, x.limited, err = constantCount(q.Limit)
	}
	if err != nil {
		return nil, err
	}
	return x, x.arrange()
}

func (x *execution) execute() (*vector.Batch, error) {
	if x.limited && x.limit == 0 {
		// Postgres does not start the plan below a LIMIT 0.
		b := &vector.Batch{}
		for _, e := range x.q.Output {
			b.Columns = append(b.Columns, vector.Column{Type: e.Type()})
		}
		return b, nil
	}
	r, err := x.compute()
	if err != nil {
		return nil, err
	}
	return x.finish(r)
}

func (x *execution) compute() (*result, error) {
	if x.q.Grouped {
		return x.grouped()
	}
	wanted := append([]plan.Expr(nil), x.q.Output...)
	for _, o := range x.q.Order {
		wanted = append(wanted, o.Expr)
	}
	p, lowered, err := x.prepare(0, wanted, nil)
	if err != nil {
		return nil, err
	}
	at := cut{order: x.q.Order, keys: len(x.q.Output)}
	if x.limited || x.offset > 0 {
		if at.rows = x.offset; x.limited {
			// One more row than is wanted tells whether a tie is cut.
			if at.rows += x.limit; at.rows < 0 || at.rows > topRows {
				at.rows = 0
			}
		} else if len(x.q.Order) > 0 {
			at.rows = 0
		}
	}
	rows, err := p.collect(lowered, at)
	if err != nil {
		return nil, err
	}
	if int64(rows.n) >= 1<<32 {
		return nil, forward(plan.ReasonMemory, "rows")
	}
	r := &result{n: rows.n}
	for i, v := range rows.cols {
		n := p.collected[i]
		c := rcol{t: n.t, v: v.v, nulls: v.nulls, dict: n.dict}
		if i < len(x.q.Output) {
			r.output = append(r.output, c)
		} else {
			c.t.Collation = x.q.Order[i-len(x.q.Output)].Expr.Type().Collation
			r.order = append(r.order, c)
		}
	}
	return r, nil
}

// topRows bounds the rows for which an order is kept while they are gathered.
const topRows = 1 << 16

// grouped aggregates, then computes what stands over groups.
func (x *execution) grouped() (*result, error) {
	q := x.q
	wanted := append([]plan.Expr(nil), q.Group...)
	only := make([]bool, len(wanted))
	for i := range only {
		only[i] = true
	}
	aggs := append([]plan.Aggregate(nil), q.Aggs...)
	for _, a := range aggs {
		if a.Arg != nil {
			wanted = append(wanted, a.Arg)
		}
		if a.Filter != nil {
			wanted = append(wanted, a.Filter)
		}
	}
	p, lowered, err := x.prepare(0, wanted, only)
	if err != nil {
		return nil, err
	}
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
		return nil, err
	}
	if x.trace != nil {
		g.describe(x.trace)
	}
	var mu sync.Mutex
	if err := p.run(func(w *worker) sink {
		mu.Lock()
		defer mu.Unlock()
		return g.worker(w)
	}); err != nil {
		return nil, err
	}
	s := g.merge()
	numbers := s.numbers()
	keys := s.keys(numbers, len(q.Group))
	values, err := s.aggregates(numbers)
	if err != nil {
		return nil, err
	}
	return x.overGroups(len(numbers), keys, values)
}

// overGroups applies HAVING and computes the outputs and the order.
func (x *execution) overGroups(n int, keys, values []rcol) (*result, error) {
	var at uint32
	v := &env{leaf: func(e plan.Expr) (scalar, error) {
		switch e := e.(type) {
		case plan.Key:
			return keys[e.Index].at(at), nil
		case plan.Agg:
			return values[e.Index].at(at), nil
		}
		return nullScalar, forward(plan.ReasonShape, "a column outside of aggregates")
	}}
	var kept []uint32
	for i := range n {
		at = uint32(i)
		pass := true
		// Every condition is computed for every group: one that fails is not missed.
		for _, h := range x.q.Having {
			r, err := x.groupEval(v, h, keys, values)
			if err != nil {
				return nil, err
			}
			pass = pass && !r.null && r.i != 0
		}
		if pass {
			kept = append(kept, at)
		}
	}
	column := func(e plan.Expr) (rcol, error) {
		var c rcol
		switch e := e.(type) {
		case plan.Key:
			c = keys[e.Index].pick(kept)
		case plan.Agg:
			c = values[e.Index].pick(kept)
		default:
			c.t = e.Type()
			for _, at = range kept {
				r, err := x.groupEval(v, e, keys, values)
				if err != nil {
					return c, err
				}
				c.push(r)
			}
		}
		c.t.Collation = e.Type().Collation
		return c, nil
	}
	r := &result{n: len(kept)}
	for _, e := range x.q.Output {
		c, err := column(e)
		if err != nil {
			return nil, err
		}
		r.output = append(r.output, c)
	}
	for _, o := range x.q.Order {
		c, err := column(o.Expr)
		if err != nil {
			return nil, err
		}
		r.order = append(r.order, c)
	}
	return r, nil
}

// groupEval evaluates e over a group. Text of a collation other than C is compared
// by the ranks of the one column that it comes from.
func (x *execution) groupEval(v *env, e plan.Expr, keys, values []rcol) (scalar, error) {
	v.order = nil
	plan.Walk(e, func(n plan.Expr) bool {
		var c *rcol
		switch n := n.(type) {
		case plan.Key:
			c = &keys[n.Index]
		case plan.Agg:
			c = &values[n.Index]
		default:
			return true
		}
		if c.dict != nil {
			v.order = c.dict.order(c.t.Collation)
		}
		return true
	})
	return v.eval(e)
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

// Explain returns the physical plan of q as text: for every pipeline, lookups first,
// its steps in their order, and how groups are kept. Small tables are read for it.
func Explain(q *plan.Query, in Input) string {
	var b strings.Builder
	x, err := newExecution(context.Background(), q, in, Options{})
	if err == nil {
		x.trace = func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
		_, err = x.compute()
	}
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

func (p *pipeline) describe(t func(string, ...any)) {
	t("scan %s", p.tab.Meta.Name)
	column := func(n *node) string {
		if n.kind == nodeColumn {
			return p.tab.Meta.Columns[n.col].Name
		}
		return "expression"
	}
	for i := range p.steps {
		s := &p.steps[i]
		switch s.kind {
		case stepRange:
			what := "range"
			if s.cost > 100 {
				what = "zones"
			}
			if s.n != nil {
				t("  %s %s [%d, %d] share %.3f", what, column(s.n), s.lo, s.hi, s.share)
			}
		case stepTable:
			t("  table %s share %.3f", column(s.n), s.share)
		case stepFilter:
			t("  filter risky=%v", s.risky)
		case stepProbe:
			b := p.probes[s.probe]
			t("  %s %s by %s: %d keys, %d entries, share %.3f", lookupNames[b.lut.kind], b.child.tab.Meta.Name,
				column(b.outer[0]), b.lut.keys, b.lut.rows, s.share)
		}
	}
	if p.never {
		t("  no rows")
	}
}

var lookupNames = [...]string{"bitmap", "array8", "array16", "array32", "hash"}

func (g *grouper) describe(t func(string, ...any)) {
	switch {
	case g.single:
		t("  one group")
	case g.dense:
		t("  array of %d groups", g.pack.card)
	default:
		t("  hash of groups, %d words a key", g.pack.words)
	}
	for _, a := range g.accs {
		t("  accumulator %s", [...]string{"rows", "count", "sum", "sum128", "min", "max", "zeros"}[a.kind])
	}
}
