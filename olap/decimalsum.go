package olap

import (
	"cmp"

	"pgaccel/plan"
	"pgaccel/vector"
)

// decimalSums are the sums of numerics of varying scale, which come as codes of a dictionary, or as
// they are computed. Each has the largest scale of its values, as numeric_sum has
// (NumericSumAccum's maxScale).
type decimalSums struct {
	dict *dict
	sum  []vector.Decimal
	n    []int64 // values
	// wide: a sum of more than 127 bits was met.
	wide bool
}

func (e *decimalSums) grow(n int) {
	e.sum = append(e.sum, make([]vector.Decimal, n-len(e.sum))...)
	e.n = append(e.n, make([]int64, n-len(e.n))...)
}

func (e *decimalSums) bytes() int64 { return int64(len(e.sum)) * 40 }

func (e *decimalSums) add(index []uint32, vals []int64) {
	for k, code := range vals {
		g := uint32(0)
		if index != nil {
			g = index[k]
		}
		e.plus(g, e.dict.value(code).Num, 1)
	}
}

// plus adds a sum of n values.
func (e *decimalSums) plus(g uint32, d vector.Decimal, n int64) {
	sum, ok := e.sum[g].Add(d)
	e.sum[g] = sum
	e.n[g] += n
	e.wide = e.wide || !ok
}

func (e *decimalSums) mergeAll(from extra, of, to []uint32) {
	f := from.(*decimalSums)
	e.wide = e.wide || f.wide
	eachPair(of, to, func(j, i uint32) { e.plus(i, f.sum[j], f.n[j]) })
}

// decimalSums computes sums and averages of numerics of varying scale.
func (c *rcol) decimalSums(r *aggRef, e *decimalSums, numbers []uint32, count func(g uint32) int64) error {
	if e.wide {
		return errNumeric
	}
	for _, g := range numbers {
		if err := c.addDecimalSum(r, e.sum[g], count(g)); err != nil {
			return err
		}
	}
	return nil
}

// computed reports whether an accumulator adds up decimals that are computed row by row. Interned,
// each of millions of quotients would be looked up among all others for nothing.
func (a *acc) computed() bool {
	return a.kind == accDecimalSum && a.filter == nil && a.arg.kind == nodeTree && a.arg.dict.grows()
}

// addComputed adds the values of a nodeTree for the selected rows.
func (e *decimalSums) addComputed(w *worker, x *node, index []uint32) {
	vals, nulls := w.decimals(x)
	if w.err != nil {
		return
	}
	for k, null := range nulls {
		if null != 0 {
			continue
		}
		g := uint32(0)
		if index != nil {
			g = index[k]
		}
		e.plus(g, vals[k], 1)
	}
}

// decimals returns the values of a nodeTree of numerics of varying scale for the selected rows.
func (w *worker) decimals(x *node) (vals []vector.Decimal, nulls []uint8) {
	r := w.rows(x, 0)
	b := &w.bufs[x.id]
	if b.decimals == nil {
		b.decimals = make([]vector.Decimal, tileRows)
	}
	n := len(w.f.sel)
	vals, nulls = b.decimals[:n], w.nullBuffer(x, n)
	known, failed := r.quotients(vals, nulls)
	if !known {
		if err := r.env.settle(func() error {
			failed = nil
			for i := range vals {
				r.row = i
				v, err := r.env.eval(x.tree)
				failed = cmp.Or(failed, err)
				vals[i], nulls[i] = v.Num, uint8(b2i(v.Null))
			}
			return nil
		}); err != nil {
			failed = err
		}
	}
	if failed != nil {
		w.fail(failed)
	}
	return vals, nulls
}

// operand is an argument of a quotient: words of one scale, or a constant.
type operand struct {
	vec
	t        vector.Type
	constant vector.Decimal
}

// operand returns an argument; ok is false where it is computed, or no words.
func (r *rowTree) operand(e plan.Expr) (o operand, ok bool) {
	switch e := e.(type) {
	case plan.Const:
		return operand{constant: e.Datum.Value().Num}, !e.Null && e.Type().Kind == vector.Numeric
	case input:
		a := r.x.args[e.i]
		return operand{vec: r.vecs[e.i], t: a.t}, a.dict == nil && a.t.Kind == vector.Numeric && !a.t.Varying()
	}
	return o, false
}

func (o *operand) at(i int) vector.Decimal {
	if o.v == nil {
		return o.constant
	}
	return vector.Decimal{Unscaled: vector.Int128Of(o.v[i]), Scale: o.t.Scale}
}

// quotients computes a tree that is a quotient of words for all rows; known is false for others.
func (r *rowTree) quotients(vals []vector.Decimal, nulls []uint8) (known bool, err error) {
	call, ok := r.x.tree.(*plan.Call)
	if !ok || call.Op != plan.OpDiv || !call.T.Varying() {
		return false, nil
	}
	a, okA := r.operand(call.Args[0])
	b, okB := r.operand(call.Args[1])
	if !okA || !okB {
		return false, nil
	}
	clear(nulls)
	for _, o := range []*operand{&a, &b} {
		for i, null := range o.nulls {
			nulls[i] |= null
		}
	}
	for i := range vals {
		if nulls[i] != 0 {
			continue
		}
		if vals[i], ok = vector.Div(a.at(i), b.at(i)); !ok {
			err = cmp.Or(err, failed("numeric division"))
		}
	}
	return true, err
}
