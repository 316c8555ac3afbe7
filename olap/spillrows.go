package olap

import (
	"pgaccel/plan"
)

// spillRows gathers the values of exprs for the pipeline's rows, the query's output and then the
// keys of its order, into runs: each worker sorts and writes what it has as soon as that is its
// share of the memory.
func (x *execution) spillRows(p *pipeline, exprs []plan.Expr) error {
	nodes, err := p.c.list(exprs)
	if err != nil {
		return err
	}
	p.collected = nodes
	for i, n := range nodes {
		if n.dict.grows() {
			return errStays // its strings have no order before all rows are there
		}
		if i >= len(x.q.Output) {
			if c := x.orderColumn(p, i, vec{}); !rankable(&c) {
				return errStays
			}
		}
	}
	share := x.spill.work / int64(x.opt.Workers) / 2
	most := int(max(share/int64(9*len(nodes)+rowWork), 1))
	var all []*rowRuns
	if err := p.run(func(*worker) sink {
		s := &rowRuns{p: p, nodes: nodes, most: most}
		all = append(all, s)
		return s
	}); err != nil {
		return err
	}
	return x.each(len(all), func(i int) error { return all[i].flush() })
}

// orderColumn is collected column i, a key of ORDER BY, with the given values.
func (x *execution) orderColumn(p *pipeline, i int, v vec) rcol {
	c := rcol{t: p.collected[i].t, v: v.v, nulls: v.nulls, dict: p.collected[i].dict}
	c.t.Collation = x.q.Order[i-len(x.q.Output)].Expr.Type().Collation
	return c
}

// collectedRows is what has been collected as a result.
func (x *execution) collectedRows(p *pipeline, n int, cols []vec) *result {
	r := &result{n: n}
	for i, v := range cols {
		if i < len(x.q.Output) {
			r.output = append(r.output, rcol{t: p.collected[i].t, v: v.v, nulls: v.nulls, dict: p.collected[i].dict})
		} else {
			r.order = append(r.order, x.orderColumn(p, i, v))
		}
	}
	return r
}

// rowRuns is one worker's sink.
type rowRuns struct {
	p     *pipeline
	nodes []*node
	most  int // rows at which they are written
	cols  []vec
	n     int
}

// tile implements sink.
func (s *rowRuns) tile(w *worker) {
	if s.cols == nil {
		s.cols = make([]vec, len(s.nodes))
		for i, n := range s.nodes {
			s.cols[i].v = make([]int64, 0, s.most+tileRows)
			if n.nullable {
				s.cols[i].nulls = make([]uint8, 0, s.most+tileRows)
			}
		}
	}
	for i, n := range s.nodes {
		v := w.eval(n)
		s.cols[i].v = append(s.cols[i].v, v.v...)
		if n.nullable {
			if v.nulls == nil {
				v.nulls = noNulls[:len(v.v)]
			}
			s.cols[i].nulls = append(s.cols[i].nulls, v.nulls...)
		}
	}
	if s.n += len(w.f.sel); s.n < s.most || w.err != nil {
		return
	}
	if err := s.flush(); err != nil {
		w.fail(err)
	}
}

// flush writes the rows as a run.
func (s *rowRuns) flush() error {
	x := s.p.x
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if err := x.spill.add(x.collectedRows(s.p, s.n, s.cols)); err != nil {
		return err
	}
	for i := range s.cols {
		s.cols[i].v, s.cols[i].nulls = s.cols[i].v[:0], s.cols[i].nulls[:0]
		if !s.nodes[i].nullable {
			s.cols[i].nulls = nil
		}
	}
	s.n = 0
	return nil
}
