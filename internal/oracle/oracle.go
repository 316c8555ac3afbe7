package oracle

import (
	"fmt"
	"math"
	"slices"

	"pgaccel/plan"
	"pgaccel/vector"
)

// Run executes q, which must be bound. rows returns the rows of Query.Tables[i],
// one datum for each column of its catalog.Table. Text of collations other than C
// has no order here: RunCollated takes one.
func Run(q *plan.Query, rows func(table int) [][]vector.Datum) (*vector.Batch, error) {
	return RunCollated(q, rows, nil)
}

// RunCollated is Run with an order for collations other than C.
func RunCollated(q *plan.Query, rows func(table int) [][]vector.Datum, less Less) (*vector.Batch, error) {
	r := run{q: q, less: less}
	if n, limited, err := count(q.Limit); err == nil && limited && n == 0 {
		b := &vector.Batch{Columns: make([]vector.Column, len(q.Output))} // nothing is evaluated
		for c, e := range q.Output {
			b.Columns[c].Type = e.Type()
		}
		return b, nil
	}
	for i := range q.Tables {
		r.rows = append(r.rows, rows(i))
	}
	var out []result
	var err error
	if q.Grouped {
		out, err = r.grouped()
	} else {
		err = r.scan(func(s *scope) error {
			row, err := r.finish(s)
			out = append(out, row)
			return err
		})
	}
	if err == nil {
		out, err = r.order(out)
	}
	if err != nil {
		return nil, err
	}
	b := &vector.Batch{Rows: len(out), Columns: make([]vector.Column, len(q.Output))}
	for c, e := range q.Output {
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

type run struct {
	q    *plan.Query
	rows [][][]vector.Datum
	less Less
}

// scan calls f for every row that passes the joins and the filter.
func (r *run) scan(f func(*scope) error) error {
	current := make([][]vector.Datum, len(r.q.Tables)) // nil: joined with nulls
	s := &scope{less: r.less, column: func(t, c int) value {
		if current[t] == nil {
			return null
		}
		return fromDatum(current[t][c])
	}}
	var attach func(joins []plan.Join) error
	attach = func(joins []plan.Join) error {
		if len(joins) == 0 {
			for _, c := range r.q.Filter {
				if ok, err := s.isTrue(c); err != nil || !ok {
					return err
				}
			}
			return f(s)
		}
		j := joins[0]
		found, err := r.partners(s, j, current)
		if err != nil {
			return err
		}
		if len(found) == 0 && j.Kind == plan.Left {
			found = [][]vector.Datum{nil}
		}
		for _, row := range found {
			current[j.Table] = row
			if err := attach(joins[1:]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, row := range r.rows[0] {
		clear(current)
		current[0] = row
		if err := attach(r.q.Joins); err != nil {
			return err
		}
	}
	return nil
}

// partners returns the rows that j finds: at most one unless j.Many.
func (r *run) partners(s *scope, j plan.Join, current [][]vector.Datum) (found [][]vector.Datum, err error) {
	current[j.Table] = nil
	outer := make([]value, len(j.Outer))
	for i, e := range j.Outer {
		if outer[i], err = s.eval(e); err != nil || outer[i].null {
			return nil, err
		}
	}
next:
	for _, row := range r.rows[j.Table] {
		for i, k := range j.Key {
			v := fromDatum(row[k])
			if v.null || !equal(j.Outer[i].Type(), outer[i], v) {
				continue next
			}
		}
		current[j.Table] = row
		for _, c := range j.On {
			if ok, err := s.isTrue(c); err != nil {
				return nil, err
			} else if !ok {
				continue next
			}
		}
		if len(found) > 0 && !j.Many {
			return nil, forward(plan.ReasonShape, "join key is not unique")
		}
		found = append(found, row)
	}
	return found, nil
}

// group is one group of a grouping set: of all of Query.Group where there are no sets.
type group struct {
	set  uint64
	keys []value // null for those that the set lacks
	accs []acc
}

// everyKey is the set of a plain GROUP BY, of however many keys.
const everyKey = ^uint64(0)

// has reports whether a grouping set has the key.
func has(set uint64, key int) bool { return set == everyKey || set>>key&1 != 0 }

func (r *run) grouped() ([]result, error) {
	sets := r.q.Sets
	if sets == nil {
		sets = []uint64{everyKey}
	}
	empty := func(set uint64) bool { return set == 0 || len(r.q.Group) == 0 }
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
		g := &group{set: set, keys: make([]value, len(r.q.Group)), accs: make([]acc, len(r.q.Aggs))}
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
	err := r.scan(func(s *scope) error {
		keys := make([]value, len(r.q.Group))
		for i, e := range r.q.Group {
			var err error
			if keys[i], err = s.eval(e); err != nil {
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
		args := make([]argument, len(r.q.Aggs))
		for i, a := range r.q.Aggs {
			var err error
			if args[i], err = argumentOf(s, a); err != nil {
				return err
			}
		}
		for position := range sets {
			g := find(position, keys)
			for i := range r.q.Aggs {
				g.accs[i].add(args[i])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []result
	for _, g := range groups {
		s := &scope{keys: g.keys, set: g.set, less: r.less}
		for i, a := range r.q.Aggs {
			v, err := r.finalise(a, g.accs[i])
			if err != nil {
				return nil, err
			}
			s.aggs = append(s.aggs, v)
		}
		pass := true
		for _, h := range r.q.Having {
			ok, err := s.isTrue(h)
			if err != nil {
				return nil, err
			}
			pass = pass && ok
		}
		if !pass {
			continue
		}
		row, err := r.finish(s)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// result is one row: its output and the values it is ordered by.
type result struct{ output, order []value }

func (r *run) finish(s *scope) (row result, err error) {
	for _, e := range r.q.Output {
		v, err := s.eval(e)
		if err != nil {
			return row, err
		}
		row.output = append(row.output, v)
	}
	for _, o := range r.q.Order {
		v, err := s.eval(o.Expr)
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
		for i, o := range r.q.Order {
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
	offset, _, err := count(r.q.Offset)
	if err != nil {
		return nil, err
	}
	limit, limited, err := count(r.q.Limit)
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
	for i := range r.q.Output {
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
