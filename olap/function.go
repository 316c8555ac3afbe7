package olap

import (
	"math"

	"pgaccel/plan"
	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// function compiles a call of a function of package sqlfn: by its kernel where it has one
// for what varies, else a row at a time.
func (c *compiler) function(e *plan.Call) (*node, error) {
	site := e.Site()
	n := &node{kind: nodeFunction, op: e.Op, t: e.T, call: e, given: make([]vector.Value, len(e.Args))}
	all, grows := make([]*node, len(e.Args)), false
	for i, a := range e.Args {
		if k := site.Args[i].Const; k != nil {
			n.given[i] = *k
			continue
		}
		arg, err := c.compile(a)
		if err != nil {
			return nil, err
		}
		n.args, n.places, all[i] = append(n.args, arg), append(n.places, i), arg
		grows = grows || arg.dict.grows()
		n.risky = n.risky || arg.risky
	}
	if len(n.args) == 1 && n.args[0].dict == nil && e.Func.Kernel != nil {
		if k := e.Func.Kernel(site, n.places[0]); k != nil {
			return c.kernel(n, k), nil
		}
	}
	if len(n.args) == 1 && !grows && !n.t.Varying() && (n.args[0].dict != nil || n.t.Kind.IsString() && c.fewValues(n.args[0])) {
		return c.tabulateOver(n.args[0], n.t, n.unary())
	}
	if len(n.args) == 1 && n.args[0].dict == nil && n.t.Kind.IsString() && e.Func.Around != nil {
		if around := e.Func.Around(site, n.places[0]); around != nil {
			if m, err := c.tabulateSteps(n, around); m != nil || err != nil {
				return m, err
			}
		}
	}
	if grows || coded(n.t) {
		return c.treeCall(e, all)
	}
	n.nullable = true
	risky := n.risky || e.Func.Fails(site)
	c.byRow(n)
	n.risky = risky
	return n, nil
}

// asForward makes a Forward of what a function of package sqlfn says.
func asForward(err error) error {
	if e, ok := err.(*sqlfn.Error); ok {
		return failed(e.Detail)
	}
	return err
}

// kernel makes n a call of a kernel.
func (c *compiler) kernel(n *node, k *sqlfn.Kernel) *node {
	a := n.args[0]
	n.kind, n.nullable, n.f, n.around, n.every, n.shift = nodeMap, a.nullable, k.F, k.Around, k.Every, k.Shift
	n.risky = n.risky || k.Fails || a.lo < k.First || a.hi > k.Last
	lo, hi, err := k.Bounds(a.lo, a.hi)
	if err != nil {
		lo, hi, n.risky = math.MinInt64, math.MaxInt64, true
	}
	n.lo, n.hi = lo, hi
	return c.add(n)
}

// function computes a nodeFunction.
func (w *worker) function(x *node, depth int) vec {
	n := len(w.f.sel)
	vecs := make([]vec, len(x.args))
	for i, a := range x.args {
		vecs[i] = w.evalAt(a, depth)
	}
	out, nulls := w.buffer(x, n), w.nullBuffer(x, n)
	args := make([]vector.Value, len(x.given))
	copy(args, x.given)
	for i := range out {
		for j, v := range vecs {
			a, to := x.args[j], &args[x.places[j]]
			switch {
			case v.nulls != nil && v.nulls[i] != 0:
				*to = vector.NullValue
			default:
				*to = a.value(v.v[i])
			}
		}
		out[i], nulls[i] = x.lo, 1
		r, err := callFunction(x.call.Func, args)
		if err != nil {
			w.fail(err)
			continue
		}
		if r.Null {
			continue
		}
		word, ok := r.Word(x.t)
		if !ok {
			w.fail(errNumeric)
			continue
		}
		out[i], nulls[i] = word, 0
	}
	return vec{out, nulls}
}
