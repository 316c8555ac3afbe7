package oracle

import (
	"fmt"
	"math"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Run executes a tree, which must be bound, operator by operator. rows returns the rows of a
// table reference, one datum for each column of its catalog.Table. Text of collations other than
// C has no order unless less gives one.
func Run(tree *plan.Project, rows func(table int) [][]vector.Datum, less Less) (*vector.Batch, error) {
	r := &run{table: rows, less: less, current: newRow(tree), plans: map[*plan.Project][][]value{}}
	var out [][]value
	err := r.project(tree, func(values []value) error {
		out = append(out, values)
		return nil
	})
	if err != nil {
		return nil, err
	}
	b := &vector.Batch{Rows: len(out), Columns: make([]vector.Column, len(tree.Exprs))}
	for c, e := range tree.Exprs {
		b.Columns[c].Type = e.Type()
		for i, row := range out {
			d, err := toDatum(row[c], e.Type())
			if err != nil {
				return nil, err
			}
			b.Columns[c].Append(d, i)
		}
		if n := &b.Columns[c].Nulls; *n != nil { // a bit for every row
			*n = append(*n, make([]uint64, (len(out)+63)/64-len(*n))...)
		}
	}
	return b, nil
}

// run is one execution. Expressions are evaluated over its current row.
type run struct {
	table   func(int) [][]vector.Datum
	less    Less
	current row
	plans   map[*plan.Project][][]value // that several operators share: their rows
}

// rows makes each row that an operator yields the current one and calls f.
func (r *run) rows(rel plan.Rel, f func() error) error {
	switch x := rel.(type) {
	case *plan.Scan:
		for _, row := range r.table(x.Table) {
			r.current.tables[x.Table] = row
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	case *plan.Filter:
		return r.rows(x.Input, func() error {
			if ok, err := r.allTrue(x.Conds); err != nil || !ok {
				return err
			}
			return f()
		})
	case *plan.Join:
		return r.join(x, f)
	case *plan.Aggregate:
		return r.groups(x, f)
	case *plan.Project:
		return r.project(x, r.output(x.Number, f))
	case *plan.Window:
		return r.window(x, f)
	case *plan.Series:
		return r.rows(x.Input, func() error { return r.series(x, r.output(x.Number, f)) })
	case *plan.ProjectSet:
		return r.rows(x.Input, func() error { return r.projectSet(x, r.output(x.Number, f)) })
	case *plan.Shared:
		return r.shared(x, r.output(x.Number, f))
	case *plan.SetOp:
		return r.setOp(x, r.output(x.Number, f))
	case *plan.Values:
		for _, row := range x.Rows {
			values, err := r.all(row)
			if err != nil {
				return err
			}
			if err := r.output(x.Number, f)(values); err != nil {
				return err
			}
		}
		return nil
	case *plan.Sort, *plan.Limit:
		return r.sorted(x, nil, func(cut result) error {
			r.put(plan.YieldsOf(x), cut.row)
			return f()
		})
	}
	panic(fmt.Sprintf("BUG: operator %T", rel))
}

// project calls f with the values of each row.
func (r *run) project(p *plan.Project, f func([]value) error) error {
	switch p.Input.(type) {
	case *plan.Sort, *plan.Limit:
		return r.sorted(p.Input, p.Exprs, func(cut result) error { return f(cut.values) })
	}
	return r.rows(p.Input, func() error {
		values, err := r.all(p.Exprs)
		if err != nil {
			return err
		}
		return f(values)
	})
}

// all evaluates expressions.
func (r *run) all(es []plan.Expr) ([]value, error) {
	values := make([]value, len(es))
	for i, e := range es {
		var err error
		if values[i], err = r.eval(e); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// allTrue evaluates conjuncts up to the first that is not true. What is not known here, though the server
// has no error for it, does not matter where another conjunct is not true.
func (r *run) allTrue(conds []plan.Expr) (bool, error) {
	var unknown error
	for _, c := range conds {
		ok, err := r.isTrue(c)
		switch {
		case plan.ReasonOf(err) == plan.ReasonCollation:
			unknown = err
		case err != nil || !ok:
			return false, err
		}
	}
	return unknown == nil, unknown
}

// group is one group of a grouping set: of all keys where there are no sets.
type group struct {
	set  uint64
	keys []value // null for those that the set lacks
	accs []acc
	aggs []value // once all rows have been seen
}

// everyKey is the set of a plain GROUP BY, of however many keys.
const everyKey = ^uint64(0)

// has reports whether a grouping set has the key.
func has(set uint64, key int) bool { return set == everyKey || set>>key&1 != 0 }

// groups calls f for each group of an aggregation.
func (r *run) groups(q *plan.Aggregate, f func() error) error {
	sets := q.Sets
	if sets == nil {
		sets = []uint64{everyKey}
	}
	empty := func(set uint64) bool { return set == 0 || len(q.Keys) == 0 }
	var groups []*group
	index := map[string]*group{}
	// The same set may occur twice: its position is part of a group's name.
	name := func(position int, set uint64, keys []value) string {
		id := fmt.Sprintf("%d:", position)
		for i, k := range keys {
			if has(set, i) {
				id += fmt.Sprintf("%v %d %q %v|", k.null, k.i, k.s, exact(k))
			}
		}
		return id
	}
	apart := false // values that are equal and not alike: which one a group shows is not known
	find := func(position int, keys []value) *group {
		set := sets[position]
		id := name(position, set, keys)
		if g := index[id]; g != nil {
			for i, k := range g.keys {
				apart = apart || has(set, i) && k.scale != keys[i].scale
			}
			return g
		}
		g := &group{set: set, keys: make([]value, len(q.Keys)), accs: make([]acc, len(q.Aggs))}
		for i := range g.keys {
			g.keys[i] = null
			if has(set, i) {
				g.keys[i] = keys[i]
			}
		}
		groups = append(groups, g)
		index[id] = g
		return g
	}
	for position, set := range sets {
		if empty(set) {
			find(position, nil) // one row even over no input
		}
	}
	err := r.rows(q.Input, func() error {
		keys := make([]value, len(q.Keys))
		for i, e := range q.Keys {
			var err error
			if keys[i], err = r.eval(e); err != nil {
				return err
			}
			if e.Type().Kind.IsFloat() && !keys[i].null {
				if f := keys[i].float(); f == 0 && math.Signbit(f) {
					return failed("grouping by negative zero")
				} else if math.IsNaN(f) {
					keys[i] = ofFloat(math.NaN())
				}
			}
		}
		args := make([]argument, len(q.Aggs))
		for i, a := range q.Aggs {
			var err error
			if args[i], err = r.argumentOf(a); err != nil {
				return err
			}
		}
		for position := range sets {
			g := find(position, keys)
			for i := range q.Aggs {
				g.accs[i].add(args[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if apart {
		return failed("grouping by numerics of several scales")
	}
	for _, g := range groups {
		for i, a := range q.Aggs {
			v, err := r.finalise(a, g.accs[i])
			if err != nil {
				return err
			}
			g.aggs = append(g.aggs, v)
		}
		r.current.groups[q.Number] = g
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
