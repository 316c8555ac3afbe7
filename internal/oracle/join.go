package oracle

import (
	"slices"

	"pgaccel/plan"
)

// joinKey is an equality of what the left side of a join computes and a column of the right.
type joinKey struct {
	left  plan.Expr
	right plan.Column
}

// joinKeys takes the equalities out of a join's conditions whose left sides need to be computed
// once only for a row of the left. right is what the right side yields.
func joinKeys(on []plan.Expr, right plan.Yields) (keys []joinKey, rest []plan.Expr) {
	for _, e := range on {
		if c, ok := e.(*plan.Call); ok && c.Op == plan.OpEq && !right.ReadBy(c.Args[0]) {
			if column, ok := c.Args[1].(plan.Column); ok && slices.Contains(right.Tables, column.Table) {
				keys = append(keys, joinKey{c.Args[0], column})
				continue
			}
		}
		rest = append(rest, e)
	}
	return keys, rest
}

// outcome is whether a pair of rows are partners.
type outcome uint8

const (
	no outcome = iota
	unknown
	yes
)

// join is a join under way.
type join struct {
	*run
	*plan.Join
	keys   []joinKey
	rest   []plan.Expr
	values []value // of keys, of the current row of the left

	left, right plan.Yields
	rows        []row  // of the right
	executed    bool   // rows are there
	met         []bool // those of rows that had a partner
}

// join calls f for each row that a join yields. The right side is executed once, and not at all
// where the left has no rows and nothing shows it by itself.
func (r *run) join(p *plan.Join, f func() error) error {
	j := &join{run: r, Join: p, rest: p.On, left: plan.YieldsOf(p.Left), right: plan.YieldsOf(p.Right)}
	if p.Kind != plan.Mark && p.Kind != plan.NotIn {
		j.keys, j.rest = joinKeys(p.On, j.right)
		j.values = make([]value, len(j.keys))
	}
	err := r.rows(p.Left, func() error { return j.leftRow(f) })
	if err != nil || p.Kind != plan.Full {
		return err
	}
	if err := j.execute(); err != nil {
		return err
	}
	for i, x := range j.rows {
		if j.met[i] {
			continue
		}
		r.put(j.left, missing(j.left))
		r.put(j.right, x)
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// execute executes the right side, for the current row of the left where it reads that.
func (j *join) execute() (err error) {
	if j.executed && !j.Lateral {
		return nil
	}
	j.executed = true
	j.rows, err = j.collect(j.Right)
	if j.Kind == plan.Full {
		j.met = make([]bool, len(j.rows))
	}
	return err
}

// leftRow joins the current row of the left.
func (j *join) leftRow(f func() error) (err error) {
	if err := j.execute(); err != nil {
		return err
	}
	for i, k := range j.keys {
		if j.values[i], err = j.eval(k.left); err != nil {
			return err
		}
	}
	partners, some := 0, no
	for i, x := range j.rows {
		j.put(j.right, x)
		met, err := j.meets()
		if err != nil {
			return err
		}
		if some = max(some, met); met != yes {
			continue
		}
		if partners++; partners > 1 && j.Kind == plan.Single {
			return failed("more than one row of a sub-select")
		}
		switch j.Kind {
		case plan.Full:
			j.met[i] = true
		case plan.Semi, plan.Anti, plan.NotIn, plan.Mark, plan.Single:
			continue
		}
		if err := f(); err != nil {
			return err
		}
	}
	switch j.Kind {
	case plan.Inner:
		return nil
	case plan.Left, plan.Full:
		if partners > 0 {
			return nil
		}
		j.put(j.right, missing(j.right))
	case plan.Semi:
		if some != yes {
			return nil
		}
	case plan.Anti:
		if some == yes {
			return nil
		}
	case plan.NotIn:
		if some != no {
			return nil
		}
	case plan.Mark:
		j.current.outputs[j.Number] = []value{map[outcome]value{no: ofBool(false), unknown: null, yes: ofBool(true)}[some]}
	case plan.Single:
		if partners == 0 {
			j.put(j.right, missing(j.right))
			break
		}
		for _, x := range j.rows {
			j.put(j.right, x)
			if met, _ := j.meets(); met == yes {
				break
			}
		}
	}
	return f()
}

// meets reports whether the current rows of both sides are partners. Whether they may be is
// looked at only for the kinds for which it matters: the conditions of others end at the first that
// is not true.
func (j *join) meets() (outcome, error) {
	for i, k := range j.keys {
		if row := j.current.tables[k.right.Table]; row == nil || j.values[i].null {
			return no, nil
		} else if v := fromDatum(row[k.right.Column]); v.null || !equal(k.left.Type(), j.values[i], v) {
			return no, nil
		}
	}
	met := yes
	for _, c := range j.rest {
		v, err := j.eval(c)
		switch {
		case err != nil:
			return no, err
		case v.null:
			met = unknown
			if j.Kind != plan.Mark && j.Kind != plan.NotIn {
				return met, nil
			}
		case v.i == 0:
			return no, nil
		}
	}
	return met, nil
}
