package oracle

import (
	"fmt"
	"math"
	"math/big"
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
next:
	for _, row := range r.rows[0] {
		clear(current)
		current[0] = row
		for _, j := range r.q.Joins {
			found, err := r.partner(s, j, current)
			if err != nil {
				return err
			}
			if !found && j.Kind == plan.Inner {
				continue next
			}
		}
		for _, c := range r.q.Filter {
			ok, err := s.isTrue(c)
			if err != nil {
				return err
			}
			if !ok {
				continue next
			}
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// partner sets current[j.Table] to the row that j finds, nil for none.
func (r *run) partner(s *scope, j plan.Join, current [][]vector.Datum) (bool, error) {
	current[j.Table] = nil
	outer := make([]value, len(j.Outer))
	for i, e := range j.Outer {
		var err error
		if outer[i], err = s.eval(e); err != nil || outer[i].null {
			return false, err
		}
	}
	var hit []vector.Datum
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
				return false, err
			} else if !ok {
				continue next
			}
		}
		if hit != nil {
			return false, forward(plan.ReasonShape, "join key is not unique")
		}
		hit = row
	}
	current[j.Table] = hit
	return hit != nil, nil
}

type group struct {
	keys []value
	accs []acc
}

// acc is the state of one aggregate. v is null until a value came.
type acc struct {
	n int64
	v value
}

func (r *run) grouped() ([]result, error) {
	var groups []*group
	index := map[string]*group{}
	add := func(keys []value) *group {
		g := &group{keys: keys, accs: make([]acc, len(r.q.Aggs))}
		for i := range g.accs {
			g.accs[i].v = null
		}
		groups = append(groups, g)
		return g
	}
	if len(r.q.Group) == 0 {
		index[""] = add(nil)
	}
	err := r.scan(func(s *scope) error {
		keys := make([]value, len(r.q.Group))
		id := ""
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
			id += fmt.Sprintf("%v %d %q %v|", keys[i].null, keys[i].i, keys[i].s, keys[i].num)
		}
		g := index[id]
		if g == nil {
			g = add(keys)
			index[id] = g
		}
		for i, a := range r.q.Aggs {
			if err := r.accumulate(s, a, &g.accs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []result
	for _, g := range groups {
		s := &scope{keys: g.keys, less: r.less}
		for i, a := range r.q.Aggs {
			v, err := finalise(a, g.accs[i])
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

func (r *run) accumulate(s *scope, a plan.Aggregate, c *acc) error {
	if a.Filter != nil {
		if ok, err := s.isTrue(a.Filter); err != nil || !ok {
			return err
		}
	}
	if a.Func == plan.CountStar {
		c.n++
		return nil
	}
	v, err := s.eval(a.Arg)
	if err != nil || v.null {
		return err
	}
	c.n++
	t := a.Arg.Type()
	switch a.Func {
	case plan.Count:
	case plan.Sum, plan.Avg:
		if t.Kind.IsFloat() {
			return forward(plan.ReasonFunction, "sum of floats")
		}
		if t.Kind.IsInt() {
			v = value{num: big.NewInt(v.i)}
		}
		if !c.v.null {
			v.num = new(big.Int).Add(v.num, c.v.num)
		}
		c.v = v
	case plan.Min, plan.Max:
		if c.v.null {
			c.v = v
			return nil
		}
		cmp, err := compare(t, t.Collation, v, c.v, r.less)
		if err != nil {
			return err
		}
		if t.Kind.IsFloat() && cmp == 0 && v.i != c.v.i && v.float() == 0 {
			c.v.scale = 1 // both zeros seen
		}
		if cmp < 0 && a.Func == plan.Min || cmp > 0 && a.Func == plan.Max {
			c.v = v
		}
	case plan.BoolAnd:
		c.v = ofBool(v.i != 0 && (c.v.null || c.v.i != 0))
	case plan.BoolOr:
		c.v = ofBool(v.i != 0 || !c.v.null && c.v.i != 0)
	}
	return nil
}

func finalise(a plan.Aggregate, c acc) (value, error) {
	switch a.Func {
	case plan.CountStar, plan.Count:
		return value{i: c.n}, nil
	}
	if c.v.null {
		return null, nil
	}
	switch a.Func {
	case plan.Sum:
		if a.T.Kind == vector.Numeric {
			_, err := toDatum(c.v, a.T)
			return c.v, err
		}
		return bounded(c.v.num, a.T.Kind)
	case plan.Avg:
		sum, ok := vector.Int128FromBig(c.v.num)
		q, good := vector.Div(vector.Decimal{Unscaled: sum, Scale: c.v.scale}, vector.Decimal{Unscaled: vector.Int128Of(c.n)})
		if !ok || !good {
			return null, failed("numeric beyond 128 bits")
		}
		return value{num: q.Unscaled.Big(), scale: q.Scale}, nil
	case plan.Min, plan.Max:
		if a.T.Kind.IsFloat() && c.v.scale == 1 {
			return null, failed("minimum or maximum is both zeros")
		}
	}
	return c.v, nil
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
