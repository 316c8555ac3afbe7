package oracle

import (
	"fmt"
	"math"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Run executes a tree, which must be bound, operator by operator: an aggregation at most, and
// one order and cut, above which only values are computed. rows returns the rows of a table
// reference, one datum for each column of its catalog.Table. Text of collations other than C
// has no order unless less gives one.
func Run(tree *plan.Project, rows func(table int) [][]vector.Datum, less Less) (*vector.Batch, error) {
	r := &run{table: rows, less: less, outputs: tree.Exprs, current: make([][]vector.Datum, 1+slices.Max(scans(tree)))}
	input := tree.Input
	if l, ok := input.(*plan.Limit); ok {
		r.limit, input = l, l.Input
		if n, limited, err := count(l.Count); err == nil && limited && n == 0 {
			b := &vector.Batch{Columns: make([]vector.Column, len(r.outputs))} // nothing is evaluated
			for c, e := range r.outputs {
				b.Columns[c].Type = e.Type()
			}
			return b, nil
		}
	}
	if s, ok := input.(*plan.Sort); ok {
		r.by, input = s.By, s.Input
	}
	var out []result
	err := r.rows(input, func() error {
		row, err := r.finish()
		out = append(out, row)
		return err
	})
	if err == nil {
		out, err = r.order(out)
	}
	if err != nil {
		return nil, err
	}
	b := &vector.Batch{Rows: len(out), Columns: make([]vector.Column, len(r.outputs))}
	for c, e := range r.outputs {
		b.Columns[c].Type = e.Type()
		for i, row := range out {
			d, err := toDatum(row.output[c], e.Type())
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
	outputs []plan.Expr
	by      []plan.Order
	limit   *plan.Limit // nil for none
	less    Less

	current [][]vector.Datum // by table reference; nil: joined with nulls
	group   *group           // nil over rows
}

// rows makes each row that an operator yields the current one and calls f. What is sorted below
// the top comes in any order.
func (r *run) rows(rel plan.Rel, f func() error) error {
	switch x := rel.(type) {
	case *plan.Scan:
		for _, row := range r.table(x.Table) {
			r.current[x.Table] = row
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
	case *plan.Sort:
		return r.rows(x.Input, f)
	}
	panic(fmt.Sprintf("BUG: %T in the middle of a tree", rel))
}

// joinKey is an equality of what the left side of a join computes and a column of the right.
type joinKey struct {
	left  plan.Expr
	right plan.Column
}

// joinKeys takes the equalities out of a join's conditions whose left sides need to be computed
// once only for a row of the left.
func joinKeys(j *plan.Join) (keys []joinKey, rest []plan.Expr) {
	right := uint64(0)
	for _, t := range scans(j.Right) {
		right |= 1 << t
	}
	for _, e := range j.On {
		if c, ok := e.(*plan.Call); ok && c.Op == plan.OpEq && plan.Tables(c.Args[0])&right == 0 {
			if column, ok := c.Args[1].(plan.Column); ok && right>>column.Table&1 != 0 {
				keys = append(keys, joinKey{c.Args[0], column})
				continue
			}
		}
		rest = append(rest, e)
	}
	return keys, rest
}

// scans returns the table references below an operator.
func scans(rel plan.Rel) (tables []int) {
	plan.WalkRel(rel, func(x plan.Rel) bool {
		if s, ok := x.(*plan.Scan); ok {
			tables = append(tables, s.Table)
		}
		return true
	})
	return tables
}

// join calls f for each pair of rows that meet.
func (r *run) join(j *plan.Join, f func() error) error {
	keys, rest := joinKeys(j)
	values := make([]value, len(keys))
	found := false
	pair := func() error {
		for i, k := range keys {
			if row := r.current[k.right.Table]; row == nil || values[i].null {
				return nil
			} else if v := fromDatum(row[k.right.Column]); v.null || !equal(k.left.Type(), values[i], v) {
				return nil
			}
		}
		if ok, err := r.allTrue(rest); err != nil || !ok {
			return err
		}
		found = true
		return f()
	}
	return r.rows(j.Left, func() (err error) {
		found = false
		for i, k := range keys {
			if values[i], err = r.eval(k.left); err != nil {
				return err
			}
		}
		if err := r.rows(j.Right, pair); err != nil || found || j.Kind != plan.Left {
			return err
		}
		for _, t := range scans(j.Right) {
			r.current[t] = nil
		}
		return f()
	})
}

// allTrue evaluates conjuncts up to the first that is not true.
func (r *run) allTrue(conds []plan.Expr) (bool, error) {
	for _, c := range conds {
		if ok, err := r.isTrue(c); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
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
				id += fmt.Sprintf("%v %d %q %v|", k.null, k.i, k.s, k.num)
			}
		}
		return id
	}
	find := func(position int, keys []value) *group {
		set := sets[position]
		id := name(position, set, keys)
		if g := index[id]; g != nil {
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
	for _, g := range groups {
		for i, a := range q.Aggs {
			v, err := r.finalise(a, g.accs[i])
			if err != nil {
				return err
			}
			g.aggs = append(g.aggs, v)
		}
		r.group = g
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// result is one row: its output and the values it is ordered by.
type result struct{ output, order []value }

// finish computes what the current row shows and is ordered by.
func (r *run) finish() (row result, err error) {
	for _, e := range r.outputs {
		v, err := r.eval(e)
		if err != nil {
			return row, err
		}
		row.output = append(row.output, v)
	}
	for _, o := range r.by {
		v, err := r.eval(o.Expr)
		if err != nil {
			return row, err
		}
		row.order = append(row.order, v)
	}
	return row, nil
}

// order sorts and cuts. A cut between rows that the order does not tell apart is
// forwarded unless they look alike.
func (r *run) order(rows []result) ([]result, error) {
	var failure error
	compareRows := func(a, b result) int {
		for i, o := range r.by {
			x, y := a.order[i], b.order[i]
			c := 0
			switch {
			case x.null && y.null:
			case x.null || y.null:
				if c = 1; x.null == o.NullsFirst {
					c = -1
				}
			default:
				t := o.Expr.Type()
				var err error
				if c, err = compare(t, t.Collation, x, y, r.less); err != nil {
					failure = err
				}
				if o.Desc {
					c = -c
				}
			}
			if c != 0 {
				return c
			}
		}
		return 0
	}
	slices.SortStableFunc(rows, compareRows)
	if failure != nil {
		return nil, failure
	}
	if r.limit == nil {
		return rows, nil
	}
	offset, _, err := count(r.limit.Offset)
	if err != nil {
		return nil, err
	}
	limit, limited, err := count(r.limit.Count)
	if err != nil {
		return nil, err
	}
	n := int64(len(rows))
	from := min(offset, n)
	to := n
	if limited && limit < n-from {
		to = from + limit
	}
	for _, cut := range []int64{from, to} {
		if cut <= 0 || cut >= n || compareRows(rows[cut-1], rows[cut]) != 0 {
			continue
		}
		for _, row := range rows {
			if compareRows(row, rows[cut]) == 0 && !r.alike(row, rows[cut]) {
				return nil, forward(plan.ReasonTies, "")
			}
		}
	}
	return rows[from:to], nil
}

func (r *run) alike(a, b result) bool {
	for i := range r.outputs {
		x, y := a.output[i], b.output[i]
		if x.null != y.null {
			return false
		}
		if x.null {
			continue
		}
		if x.i != y.i || x.s != y.s || x.scale != y.scale || x.num != nil && x.num.Cmp(y.num) != 0 {
			return false
		}
	}
	return true
}

// count evaluates LIMIT or OFFSET; null means none.
func count(e plan.Expr) (n int64, set bool, err error) {
	if e == nil {
		return 0, false, nil
	}
	c, ok := e.(plan.Const)
	if !ok {
		panic("BUG: LIMIT is not bound")
	}
	if c.Null {
		return 0, false, nil
	}
	if c.I < 0 {
		return 0, false, failed("LIMIT must not be negative")
	}
	return c.I, true, nil
}
