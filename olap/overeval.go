package olap

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"pgaccel/plan"
	"pgaccel/vector"
)

// An expression over groups is computed by env, a group at a time. Its leaves are found before:
// they stand in it as the columns and values that they are.

// overColumn is a column of an overview in an expression.
type overColumn struct {
	c *rcol
	t vector.Type
}

// Type implements plan.Expr.
func (x *overColumn) Type() vector.Type { return x.t }

// overValue is a constant in an expression, in the form that env has.
type overValue struct {
	v vector.Value
	t vector.Type
}

// Type implements plan.Expr.
func (x *overValue) Type() vector.Type { return x.t }

// overExpr is an expression over groups whose leaves are found.
type overExpr struct {
	e      plan.Expr
	dicts  []*dict     // of its columns: text of a collation other than C is compared by their ranks
	orders *textOrders // of other such text
}

// prepare finds the leaves of e.
func (o *overview) prepare(e plan.Expr) (x overExpr, err error) {
	x.orders = o.x.ordersOf()
	x.e = plan.Rewrite(e, func(n plan.Expr) plan.Expr {
		if err != nil {
			return n
		}
		switch k := n.(type) {
		case plan.Const:
			return &overValue{k.Datum.Value(), k.Type()}
		case *plan.Call:
			return n
		}
		if !overLeaf(n) {
			err = forward(plan.ReasonShape, "a column outside of aggregates")
			return n
		}
		var c *rcol
		if c, err = o.column(n); err != nil {
			return n
		}
		if c.dict != nil {
			x.dicts = append(x.dicts, c.dict)
		}
		return &overColumn{c, n.Type()}
	})
	return x, err
}

// overEval computes an expression for one group after the other, on one goroutine.
type overEval struct {
	env env
	e   plan.Expr
	at  uint32
}

func (x *overExpr) open() *overEval {
	v := &overEval{e: x.e}
	v.env.orders = x.orders
	for _, d := range x.dicts {
		own := *d // what it computes when it is needed is each goroutine's own
		v.env.dicts = append(v.env.dicts, &own)
	}
	v.env.leaf = func(e plan.Expr) (vector.Value, error) {
		switch e := e.(type) {
		case *overColumn:
			return e.c.at(v.at), nil
		case *overValue:
			return e.v, nil
		}
		panic("BUG: a leaf that was not found")
	}
	return v
}

// fill appends the values of the groups from, ..., to-1 to c.
func (v *overEval) fill(c *rcol, from, to int) error {
	var failed error
	empty := *c
	if err := v.env.settle(func() error {
		failed, *c = nil, empty
		for i := from; i < to; i++ {
			v.at = uint32(i)
			r, err := v.env.eval(v.e)
			if failed = cmp.Or(failed, err); failed != nil && failed != errUnranked {
				return nil
			}
			c.push(r)
		}
		return nil
	}); err != nil {
		return err
	}
	return failed
}

// overPiece is how many groups are computed at once where they are many.
const overPiece = 1 << 12

// computed returns the values of an expression for all groups.
func (o *overview) computed(e plan.Expr) (rcol, error) {
	x, err := o.prepare(e)
	if err != nil {
		return rcol{}, err
	}
	if c, ok, err := o.asRows(e); ok || err != nil {
		return c, err
	}
	if !o.x.opt.enough(o.n, 2*overPiece) {
		c := rcol{t: e.Type()}
		err := x.open().fill(&c, 0, o.n)
		return c, err
	}
	parts := make([]rcol, (o.n+overPiece-1)/overPiece)
	var evals sync.Pool // of *overEval
	if err := o.x.each(len(parts), func(i int) error {
		v, ok := evals.Get().(*overEval)
		if !ok {
			v = x.open()
		}
		defer evals.Put(v)
		parts[i].t = e.Type()
		return v.fill(&parts[i], i*overPiece, min((i+1)*overPiece, o.n))
	}); err != nil {
		return rcol{}, err
	}
	c, err := o.x.joinColumns(parts)
	if err != nil {
		return rcol{}, err
	}
	return *c, nil
}

// asRows computes an expression of many groups as one of rows, a tile at a time: the columns that it
// reads stand in an intermediate relation. ok is false where they are few, some are no words, or
// words do not hold what is computed from them; rows would intern numerics of varying scale.
func (o *overview) asRows(e plan.Expr) (c rcol, ok bool, err error) {
	if !o.x.opt.enough(o.n, 2*overPiece) || o.x.spill != nil || e.Type().Varying() || (plan.Facts{}).MayFail(e) {
		return rcol{}, false, nil
	}
	var leaves []plan.Expr
	var columns []relationColumn
	over := plan.Rewrite(e, func(n plan.Expr) plan.Expr {
		if !overLeaf(n) {
			return n
		}
		at := slices.Index(leaves, n)
		if at < 0 {
			at = len(leaves)
			leaves, columns = append(leaves, n), append(columns, relationColumn{t: n.Type()})
		}
		return plan.Column{Column: at, T: n.Type()}
	})
	star := &plan.Star{Output: leaves}
	source := plan.NewSource("groups", star)
	for i, n := range leaves {
		from, err := o.column(n)
		if err != nil {
			return rcol{}, false, err
		}
		if from.dec != nil || from.str != nil || from.dict != nil || n.Type().Varying() || n.Type().Kind.IsString() {
			return rcol{}, false, nil
		}
		if err := columns[i].add(o.x, from, nil, o.n, true); err != nil {
			return rcol{}, false, err
		}
	}
	if o.x.relations[source.Relation], err = o.x.asTable(source.Relation, columns, o.n); err != nil {
		return rcol{}, false, err
	}
	r, _, err := o.x.inner(&plan.Star{Tables: []plan.Source{source}, Output: []plan.Expr{over}})
	if refused := (*plan.Forward)(nil); errors.As(err, &refused) {
		return rcol{}, false, nil // rows have 64 bits, values over groups 128
	}
	if err != nil {
		return rcol{}, false, err
	}
	return r.output[0], true, nil
}
