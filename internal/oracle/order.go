package oracle

import (
	"fmt"
	"slices"

	"pgaccel/plan"
)

// result is a row of what is sorted or cut: values computed of it, those that it is ordered by,
// and the row.
type result struct {
	values, order []value
	row           row
	group         string // of Limit.Per
}

// sorted calls f for the rows of a Sort or Limit, in order, with the values of es, which are
// computed before the cut.
func (r *run) sorted(rel plan.Rel, es []plan.Expr, f func(result) error) error {
	limit, _ := rel.(*plan.Limit)
	if limit != nil {
		rel = limit.Input
		if n, limited, err := count(limit.Count); err == nil && limited && n == 0 {
			return nil // nothing is evaluated
		}
	}
	var by []plan.Order
	if s, ok := rel.(*plan.Sort); ok {
		rel, by = s.Input, s.By
	}
	y := plan.YieldsOf(rel)
	var rows []result
	err := r.rows(rel, func() (err error) {
		x := result{row: r.take(y)}
		if x.values, err = r.all(es); err != nil {
			return err
		}
		for _, o := range by {
			v, err := r.eval(o.Expr)
			if err != nil {
				return err
			}
			x.order = append(x.order, v)
		}
		if limit != nil {
			x.group, err = r.groupName(limit.Per)
		}
		rows = append(rows, x)
		return err
	})
	if err != nil {
		return err
	}
	if limit != nil && len(limit.Per) > 0 {
		rows, err = r.orderGroups(rows, by, limit)
	} else {
		rows, err = r.order(rows, by, limit)
	}
	if err != nil {
		return err
	}
	for _, x := range rows {
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// groupName is a text that the rows with equal values have in common.
func (r *run) groupName(es []plan.Expr) (name string, err error) {
	for _, e := range es {
		v, err := r.eval(e)
		if err != nil {
			return "", err
		}
		name += fmt.Sprintf("%t %q ", v.null, equalName(e.Type(), v))
	}
	return name, nil
}

// orderGroups sorts and cuts each group of rows.
func (r *run) orderGroups(rows []result, by []plan.Order, limit *plan.Limit) (out []result, err error) {
	groups := map[string][]result{}
	for _, x := range rows {
		groups[x.group] = append(groups[x.group], x)
	}
	for _, x := range rows {
		group := groups[x.group]
		delete(groups, x.group)
		if group, err = r.order(group, by, limit); err != nil {
			return nil, err
		}
		out = append(out, group...)
	}
	return out, nil
}

// compareRows is the order of two rows.
func (r *run) compareRows(by []plan.Order, a, b result) (int, error) {
	for i, o := range by {
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
				return 0, err
			}
			if o.Desc {
				c = -c
			}
		}
		if c != 0 {
			return c, nil
		}
	}
	return 0, nil
}

// order sorts and cuts. A cut between rows that the order does not tell apart is
// forwarded unless they look alike.
func (r *run) order(rows []result, by []plan.Order, limit *plan.Limit) ([]result, error) {
	var failure error
	compareRows := func(a, b result) int {
		c, err := r.compareRows(by, a, b)
		if err != nil {
			failure = err
		}
		return c
	}
	slices.SortStableFunc(rows, compareRows)
	if failure != nil {
		return nil, failure
	}
	if limit == nil {
		return rows, nil
	}
	offset, _, err := count(limit.Offset)
	if err != nil {
		return nil, err
	}
	most, limited, err := count(limit.Count)
	if err != nil {
		return nil, err
	}
	n := int64(len(rows))
	from := min(offset, n)
	to := n
	if limited && most < n-from {
		to = from + most
	}
	for _, cut := range []int64{from, to} {
		if cut <= 0 || cut >= n || compareRows(rows[cut-1], rows[cut]) != 0 {
			continue
		}
		for _, row := range rows {
			if compareRows(row, rows[cut]) == 0 && !alike(row, rows[cut]) {
				return nil, forward(plan.ReasonTies, "")
			}
		}
	}
	return rows[from:to], nil
}

// alike reports whether nobody sees which of two results is there.
func alike(a, b result) bool {
	if len(a.values) > 0 {
		return slices.EqualFunc(a.values, b.values, sameValue)
	}
	return a.row.same(b.row)
}

func sameValue(x, y value) bool {
	if x.null || y.null {
		return x.null == y.null
	}
	return x.i == y.i && x.s == y.s && x.scale == y.scale && (x.num == nil || x.num.Cmp(y.num) == 0)
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
