package olap

import (
	"pgaccel/internal/invariant"
	"pgaccel/internal/simd"
	"pgaccel/plan"
	"pgaccel/vector"
)

// eval computes a node for the selected rows. An error that a row meets goes to
// w.err; the row's value then means nothing.
func (w *worker) eval(x *node) vec { return w.evalAt(x, 0) }

func (w *worker) evalAt(x *node, depth int) vec {
	out := w.compute(x, depth)
	if invariant.Enabled && w.err == nil {
		checkBounds(x, out)
	}
	return out
}

// checkBounds holds what x yields against its bounds, by which keys are packed and arithmetic
// is left unchecked.
func checkBounds(x *node, out vec) {
	for i, v := range out.v {
		null := out.nulls != nil && out.nulls[i] == 1
		invariant.Check(x.lo <= v && v <= x.hi || null && x.kind == nodeFloatKey, "%d (null: %v) is beyond the bounds of %+v", v, null, x)
	}
}

func (w *worker) compute(x *node, depth int) vec {
	n := len(w.f.sel)
	switch x.kind {
	case nodeColumn:
		return w.column(x)
	case nodeConst:
		return w.constant(x, n)
	case nodeOut:
		return w.out(x, n)
	case nodeCase:
		return w.choose(x, depth)
	case nodeCoalesce:
		return w.coalesce(x, depth)
	case nodeAnd, nodeOr:
		return w.logic(x, depth)
	case nodeFunction:
		return w.function(x, depth)
	case nodeTree:
		return w.tree(x, depth)
	}
	a := w.evalAt(x.args[0], depth)
	if x.kind == nodeFloatKey && w.ownKeys(x.args[0]) {
		return a
	}
	out := w.buffer(x, n)
	switch x.kind {
	case nodeTable:
		return w.table(x, a, out)
	case nodeNot:
		for i, v := range a.v {
			out[i] = 1 - v
		}
		return vec{out, a.nulls}
	case nodeTest:
		test(x.op, out, a)
		return vec{v: out}
	case nodeFloatKey:
		for i, v := range a.v {
			out[i] = vector.FloatKey(v)
		}
		return vec{out, a.nulls}
	case nodeNumber:
		nulls := w.nullBuffer(x, n)
		for i, v := range a.v {
			e, found := uint32(0), false
			if a.nulls == nil || a.nulls[i] == 0 {
				e, found = x.numbers.find([]uint64{uint64(v)})
			}
			if out[i], nulls[i] = int64(e), 0; !found {
				nulls[i] = 1
			}
		}
		return vec{out, nulls}
	case nodeMap:
		if x.around != nil {
			w.mapUnits(x, a, out)
			return vec{out, a.nulls}
		}
		for i, v := range a.v {
			r, err := x.f(v)
			if err != nil {
				if a.nulls == nil || a.nulls[i] == 0 {
					w.fail(err)
				}
				r = x.lo
			}
			out[i] = r
		}
		return vec{out, a.nulls}
	case nodeScalar:
		if len(x.args) == 1 {
			return w.scalar(x, a, a, out)
		}
	}
	b := w.evalAt(x.args[1], depth)
	nulls := w.eitherNull(x, a.nulls, b.nulls)
	switch x.kind {
	case nodeScalar:
		return w.scalar(x, a, b, out)
	case nodeCompare:
		if c := x.args[1]; c.kind == nodeConst && !c.nullable {
			compareConst(x.op, out, a.v, c.k)
		} else {
			compareBoth(x.op, out, a.v, b.v)
		}
		return vec{out, nulls}
	case nodeDistinct:
		for i := range out {
			var x, y uint8
			if a.nulls != nil {
				x = a.nulls[i]
			}
			if b.nulls != nil {
				y = b.nulls[i]
			}
			out[i] = b2i(x != y || x == 0 && a.v[i] != b.v[i])
		}
		return vec{v: out}
	case nodeArith:
		if x.checked {
			w.checkedArith(x, out, a.v, b.v, nulls)
		} else {
			arith(x.op, out, a.v, b.v)
		}
		return vec{out, nulls}
	}
	panic("BUG: a node without an evaluator")
}

// ownKeys reports whether a node's doubles are their own keys, by the zone maps: none is
// negative, a zero or a NaN. The bits of nulls are bounded as those of others are.
func (w *worker) ownKeys(x *node) bool {
	if x.kind != nodeColumn || w.seg == nil {
		return false
	}
	c := &w.seg.Columns[x.col]
	return c.Min > 0 && c.Max < vector.NaNKey && c.Min <= c.Max && c.NullCount == 0
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (w *worker) constant(x *node, n int) vec {
	b := &w.bufs[x.id]
	if !b.filled {
		w.buffer(x, n)
		w.nullBuffer(x, n)
		for i := range b.v {
			b.v[i], b.nulls[i] = x.k, 1
		}
		b.filled = true
	}
	r := vec{v: b.v[:n]}
	if x.nullable {
		r.nulls = b.nulls[:n]
	}
	return r
}

// out reads a lookup's output through the entries that the rows met.
func (w *worker) out(x *node, n int) vec {
	o := &w.p.probes[x.probe].lut.outs[x.out]
	entries := w.entries[x.probe]
	r := vec{v: w.buffer(x, n)}
	simd.PickEntries(r.v, o.Values, entries, w.f.sel)
	if o.Nulls != nil {
		r.nulls = w.nullBuffer(x, n)
		for i, s := range w.f.sel {
			r.nulls[i] = o.Nulls[entries[s]]
		}
	}
	return r
}

func (w *worker) table(x *node, a vec, out []int64) vec {
	t, lo := x.tab, x.tab.Lo
	vals := t.Values
	for i, v := range a.v {
		out[i] = vals[v-lo]
	}
	if t.Nulls == nil && t.Faults == nil && a.nulls == nil {
		return vec{v: out}
	}
	nulls := w.nullBuffer(x, len(out))
	clear(nulls)
	if t.Nulls != nil {
		for i, v := range a.v {
			nulls[i] = t.Nulls[v-lo]
		}
	}
	for i := range a.nulls {
		if a.nulls[i] != 0 {
			out[i] = t.OnNull
			nulls[i] = uint8(b2i(t.OnNullNull))
			if t.OnNullFault {
				w.fail(t.err)
			}
		}
	}
	if t.Faults != nil {
		for i, v := range a.v {
			if t.Faults[v-lo] != 0 && (a.nulls == nil || a.nulls[i] == 0) {
				w.fail(t.err)
			}
		}
	}
	return vec{out, nulls}
}

// eitherNull returns the rows where a or b is null.
func (w *worker) eitherNull(x *node, a, b []uint8) []uint8 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	nulls := w.nullBuffer(x, len(a))
	for i := range nulls {
		nulls[i] = a[i] | b[i]
	}
	return nulls
}

func test(op plan.Op, out []int64, a vec) {
	nulls := a.nulls
	switch {
	case op == plan.OpIsTrue && nulls == nil:
		copy(out, a.v)
	case op == plan.OpIsTrue:
		for i, v := range a.v {
			out[i] = v & (1 - int64(nulls[i]))
		}
	case op == plan.OpIsFalse && nulls == nil:
		for i, v := range a.v {
			out[i] = 1 - v
		}
	case op == plan.OpIsFalse:
		for i, v := range a.v {
			out[i] = (1 - v) & (1 - int64(nulls[i]))
		}
	case nulls == nil:
		fill(out, b2i(op == plan.OpIsNotNull))
	case op == plan.OpIsNull:
		for i, null := range nulls[:len(out)] {
			out[i] = int64(null)
		}
	default:
		for i, null := range nulls[:len(out)] {
			out[i] = 1 - int64(null)
		}
	}
}

// logic is n-ary AND and OR: stop (0 for AND) decides, else null does.
func (w *worker) logic(x *node, depth int) vec {
	n := len(w.f.sel)
	stop := b2i(x.kind == nodeOr)
	out := w.buffer(x, n)
	for i := range out {
		out[i] = 1 - stop
	}
	var nulls []uint8
	if x.nullable {
		nulls = w.nullBuffer(x, n)
		clear(nulls)
	}
	for _, arg := range x.args {
		a := w.evalAt(arg, depth)
		if a.nulls != nil {
			for i, v := range a.v {
				if a.nulls[i] != 0 {
					nulls[i] = 1
				} else if v == stop {
					out[i] = stop
				}
			}
		} else if stop == 0 {
			for i, v := range a.v {
				out[i] &= v
			}
		} else {
			for i, v := range a.v {
				out[i] |= v
			}
		}
	}
	for i := range nulls {
		if out[i] == stop {
			nulls[i] = 0
		}
	}
	return vec{out, nulls}
}

// chooseAll evaluates every arm of a CASE that cannot fail for all rows: the last one
// first, so that the first WHEN that holds has the last word.
func (w *worker) chooseAll(x *node, depth int) vec {
	n := len(w.f.sel)
	out := w.buffer(x, n)
	last := len(x.args) - 1
	other := w.evalAt(x.args[last], depth)
	copy(out, other.v)
	var nulls []uint8
	if x.nullable {
		if nulls = w.nullBuffer(x, n); other.nulls == nil {
			clear(nulls)
		} else {
			copy(nulls, other.nulls)
		}
	}
	for i := last - 2; i >= 0; i -= 2 {
		when := w.evalAt(x.args[i], depth)
		arm := w.evalAt(x.args[i+1], depth)
		to := out[:len(when.v)]
		switch v := arm.v[:len(when.v)]; {
		case nulls == nil && when.nulls == nil:
			for k, take := range when.v {
				to[k] ^= (to[k] ^ v[k]) & -take
			}
		default:
			for k, take := range when.v {
				if when.nulls != nil {
					take &^= int64(when.nulls[k])
				}
				to[k] ^= (to[k] ^ v[k]) & -take
				if nulls != nil {
					null := uint8(0)
					if arm.nulls != nil {
						null = arm.nulls[k]
					}
					nulls[k] ^= (nulls[k] ^ null) & -uint8(take)
				}
			}
		}
	}
	for k, null := range nulls {
		if null != 0 {
			out[k] = x.lo
		}
	}
	return vec{out, nulls}
}

// choose evaluates each arm of a CASE only for the rows that take it, so that it
// fails only where Postgres would.
func (w *worker) choose(x *node, depth int) vec {
	if !x.risky && !x.lazy {
		return w.chooseAll(x, depth)
	}
	n := len(w.f.sel)
	out := w.buffer(x, n)
	var nulls []uint8
	if x.nullable {
		nulls = w.nullBuffer(x, n)
		clear(nulls)
	}
	left := make([]uint16, n) // rows that no WHEN has taken
	copy(left, allRows[:n])
	take := make([]uint16, 0, n)
	last := len(x.args) - 1
	for i := 0; i < last && len(left) > 0; i += 2 {
		when := w.on(x.args[i], left, depth)
		take = take[:0]
		rest := left[:0]
		for k, r := range left {
			if when.v[k] != 0 && (when.nulls == nil || when.nulls[k] == 0) {
				take = append(take, r)
			} else {
				rest = append(rest, r)
			}
		}
		left = rest
		w.scatter(x, x.args[i+1], take, out, nulls, depth)
	}
	w.scatter(x, x.args[last], left, out, nulls, depth)
	return vec{out, nulls}
}

// scatter evaluates arm for the rows pos and writes the results there.
func (w *worker) scatter(x, arm *node, pos []uint16, out []int64, nulls []uint8, depth int) {
	if len(pos) == 0 {
		return
	}
	r := w.on(arm, pos, depth)
	for k, p := range pos {
		out[p] = r.v[k]
		if r.nulls != nil && r.nulls[k] != 0 {
			out[p] = x.lo
			nulls[p] = 1
		}
	}
}

func (w *worker) coalesce(x *node, depth int) vec {
	n := len(w.f.sel)
	out := w.buffer(x, n)
	left := make([]uint16, n)
	copy(left, allRows[:n])
	for _, arm := range x.args {
		if len(left) == 0 {
			break
		}
		r := w.on(arm, left, depth)
		rest := left[:0]
		for k, p := range left {
			if r.nulls != nil && r.nulls[k] != 0 {
				rest = append(rest, p)
			} else {
				out[p] = r.v[k]
			}
		}
		left = rest
	}
	if !x.nullable {
		return vec{v: out}
	}
	nulls := w.nullBuffer(x, n)
	clear(nulls)
	for _, p := range left {
		nulls[p] = 1
		out[p] = x.lo
	}
	return vec{out, nulls}
}

// checkedArith computes where results may leave the type's range.
func (w *worker) checkedArith(x *node, out, a, b []int64, nulls []uint8) {
	lo, hi, _ := kindRange(x.within)
	divides := x.op == plan.OpDiv || x.op == plan.OpMod
	for i := range out {
		var r int64
		var err error
		fits := false
		if divides && b[i] == 0 {
			err = errDivision
		} else if r, fits = x.op.Integer(a[i], b[i]); !fits || r < lo || r > hi {
			err = errRange
		}
		if err != nil {
			r = x.lo
			if nulls == nil || nulls[i] == 0 {
				w.fail(err)
			}
		}
		out[i] = r
	}
}

var errRange = failed("value out of range")

// scalar computes a strict call by the evaluator that is used over groups.
func (w *worker) scalar(x *node, a, b vec, out []int64) vec {
	nulls := a.nulls
	if len(x.args) > 1 {
		nulls = w.eitherNull(x, a.nulls, b.nulls)
	}
	for i := range out {
		out[i] = x.lo
		if nulls != nil && nulls[i] != 0 {
			continue
		}
		var r vector.Value
		var err error
		p := vector.WordValue(a.v[i], x.args[0].t)
		if len(x.args) == 1 {
			r, err = unaryScalar(x.call, p)
		} else {
			r, err = binaryScalar(x.call, p, vector.WordValue(b.v[i], x.args[1].t))
		}
		if err != nil {
			w.fail(err)
			continue
		}
		v, ok := r.Word(x.t)
		if !ok {
			w.fail(errNumeric)
			continue
		}
		out[i] = v
	}
	return vec{out, nulls}
}
