package olap

import (
	"math"
	"slices"
	"strings"
	"sync"

	"pgaccel/gpu/program"
	"pgaccel/plan"
	"pgaccel/vector"
)

// An expression over a large dictionary is computed in pieces, by several goroutines, of strings
// that lie where the dictionary has them. tabulateOver is the plain form, which has the same
// codes.

// dictPiece is how many strings of a dictionary are computed at once.
const dictPiece = 1 << 12

// largeDict reports whether an expression of type t over n is computed in pieces.
func (c *compiler) largeDict(n *node, t vector.Type) bool {
	return n.dict != nil && n.dict.decimals == nil && c.p.x.opt.enough(n.dict.n, 2*dictPiece) &&
		t.Kind != vector.BPChar
}

// fewPart is the part of a large dictionary that rows have to come to, at least, for all of it to be computed: a
// string by itself takes several times as long.
const fewPart = 8

// fewOf reports whether so few rows are expected that an expression of type t is better computed of their strings
// alone, one by one. Text is in the order that it has only if that can be asked for.
func (c *compiler) fewOf(n *node, t vector.Type) bool {
	return n.kind == nodeColumn && !c.p.device && c.known != nil &&
		(!coded(t) || t.Kind.IsString() && (t.Collation.C || c.p.x.opt.Rank != nil)) && c.expectedRows()*fewPart < float64(n.dict.n)
}

// rowByRow returns a node that computes e, whose only leaf is what n computes, a row at a time.
func (c *compiler) rowByRow(e *plan.Call, leaf plan.Expr, n *node) *node {
	risky := n.risky
	tree := plan.Rewrite(e, func(x plan.Expr) plan.Expr {
		if call, ok := x.(*plan.Call); ok {
			risky = risky || c.mayFail(call)
		}
		if x == leaf {
			return input{0, leaf.Type()}
		}
		return x
	})
	m := &node{kind: nodeTree, op: e.Op, t: e.T, args: []*node{n}, tree: tree, risky: risky}
	return c.treeBounds(m)
}

// entryForm is how one goroutine computes an expression of a string: as a test, or a value.
type entryForm struct {
	test  textTest
	value stringFunc
	// evalPrefix, if not nil, is value, and how much of the string decides it.
	evalPrefix func(s string) (r vector.Value, bytes int, err error)
	env        *env // that value computes with; nil for none
}

// newEntryForm returns that of e, whose only leaf has the strings of d.
func newEntryForm(e *plan.Call, d *dict, orders *textOrders) *entryForm {
	if test := prepareTest(e); test != nil {
		return &entryForm{test: test}
	}
	if f := prepareValue(e); f != nil {
		return &entryForm{value: f, evalPrefix: evalPrefixOf(e, d)}
	}
	own := *d // what it computes when it is needed is each goroutine's own
	var now vector.Value
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return now, nil }, dicts: []*dict{&own}, orders: orders}
	return &entryForm{env: v, value: func(s string) (vector.Value, error) {
		now = vector.Value{Str: s}
		return v.eval(e)
	}}
}

// textMemory takes memory for texts that are computed of a dictionary, and kept, some of them at a time.
type textMemory struct {
	x    *execution
	owed int64
	err  error // of the first that there was no room for
}

const (
	textOwed   = 64 << 10
	textBeside = 48 // bytes of a text beside its own
)

func (m *textMemory) add(bytes int64) {
	if m.owed += bytes; m.owed >= textOwed {
		m.flush()
	}
}

// flush takes what is owed.
func (m *textMemory) flush() error {
	if m.err == nil && m.owed > 0 {
		m.err = m.x.take(m.owed)
	}
	m.owed = 0
	return m.err
}

// piece is what was computed of some of the strings.
type piece struct {
	from, to int
	lo, hi   int64    // of those that have a value; lo > hi where none has
	list     []string // texts, or decimalBytes
	nulls    []uint8
	faults   []uint8
	err      error // the first
}

// tabulateDict is tabulate over a large dictionary.
func (c *compiler) tabulateDict(arg *node, e *plan.Call) (*node, error) {
	t, d := e.T, arg.dict
	size := max(d.n, 1)
	if err := c.p.x.take(8 * int64(size)); err != nil {
		return nil, err
	}
	tab := &table{TableData: program.TableData{Lo: arg.lo, Values: unset[int64](size)}}
	clear(tab.Values[d.n:]) // the pieces clear the others
	n := &node{kind: nodeTable, t: t, args: []*node{arg}, tab: tab, risky: arg.risky}
	pieces := make([]piece, (d.n+dictPiece-1)/dictPiece)
	var forms sync.Pool // of *entryForm: what one of them has found out serves more than one piece
	like := newEncodedLike(e, d)
	ordered := orderedBy(e, d)
	err := c.p.x.each(len(pieces), func(i int) error {
		p := &pieces[i]
		if like != nil {
			*p = piece{from: i * dictPiece, to: min((i+1)*dictPiece, d.n)}
			p.fillMatches(like, tab.Values[p.from:p.to])
			return nil
		}
		clear(tab.Values[i*dictPiece : min((i+1)*dictPiece, d.n)])
		f, ok := forms.Get().(*entryForm)
		if !ok {
			f = newEntryForm(e, d, c.p.x.ordersOf())
		}
		defer forms.Put(f)
		fill := func() error {
			*p = piece{from: i * dictPiece, to: min((i+1)*dictPiece, d.n)}
			if f.test != nil {
				p.fillTruths(d, f.test, tab.Values[p.from:p.to])
				return nil
			}
			return p.fill(d, t, f, tab.Values[p.from:p.to], ordered, c.p.x)
		}
		if f.env == nil {
			return fill()
		}
		return f.env.settle(fill)
	})
	if err != nil {
		return nil, err
	}
	var list []string
	if coded(t) {
		list = c.p.x.joinLists(pieces, tab.Values)
	}
	n.lo, n.hi = math.MaxInt64, math.MinInt64
	for i := range pieces {
		p := &pieces[i]
		if coded(t) && len(list) > 0 {
			p.lo, p.hi = 0, int64(len(list)-1)
		}
		n.lo, n.hi = min(n.lo, p.lo), max(n.hi, p.hi)
		p.mark(&tab.Nulls, p.nulls, size)
		p.mark(&tab.Faults, p.faults, size)
		if tab.err == nil {
			tab.err = p.err
		}
	}
	n.nullable, n.risky = tab.Nulls != nil, n.risky || tab.Faults != nil
	if arg.nullable {
		if list, err = tab.onNull(n, e, list); err != nil && tab.err == nil {
			tab.err = err
		}
	}
	if n.lo > n.hi {
		n.lo, n.hi = 0, 0
	}
	fill(tab.Values[d.n:], n.lo)
	if tab.Nulls != nil || tab.Faults != nil {
		c.p.x.chunksSideBySide(d.n, func(_, from, to int) {
			for i := from; i < to; i++ {
				if tab.Nulls != nil && tab.Nulls[i] != 0 || tab.Faults != nil && tab.Faults[i] != 0 {
					tab.Values[i] = n.lo
				}
			}
		})
	}
	if tab.OnNullNull || tab.OnNullFault {
		tab.OnNull = n.lo
	}
	n.anyFloat()
	n.dict = codedDict(list, t)
	return c.add(n), nil
}

// codedDict is the dictionary of a list of texts or of decimalBytes; nil for another type.
func codedDict(list []string, t vector.Type) *dict {
	switch {
	case t.Varying():
		decimals := make([]vector.Decimal, max(len(list), 1))
		for i, s := range list {
			decimals[i] = decimalOf(s)
		}
		return decimalDict(decimals, t)
	case t.Kind.IsString() && len(list) == 0:
		return listDict([]string{filler(t)}, t)
	case t.Kind.IsString():
		return listDict(list, t)
	}
	return nil
}

// fillMatches computes LIKE of the strings of a piece.
func (p *piece) fillMatches(l *encodedLike, out []int64) {
	any := [2]bool{}
	l.dict.EachMatch(int64(p.from), int64(p.to), l.pattern, l.matcher, func(code int64, ok bool) {
		r := b2i(ok != l.not)
		out[code-int64(p.from)] = r
		any[r] = true
	})
	p.lo, p.hi = b2i(!any[0]), b2i(any[1])
}

// fillTruths computes a test of the strings of a piece.
func (p *piece) fillTruths(d *dict, test textTest, out []int64) {
	p.lo, p.hi = math.MaxInt64, math.MinInt64
	d.each(p.from, p.from+len(out), func(code int, s string) {
		i := code - p.from
		t, err := test(s)
		if err != nil {
			p.fail(i, err)
		}
		if t == isNull {
			p.set(&p.nulls, i)
		} else if err == nil {
			out[i] = int64(t)
			p.lo, p.hi = min(p.lo, out[i]), max(p.hi, out[i])
		}
	})
}

// fill computes the strings of a piece. Those of codes below ordered have results in their order.
func (p *piece) fill(d *dict, t vector.Type, form *entryForm, out []int64, ordered int, x *execution) error {
	memory := textMemory{x: x}
	f := func(s string) (vector.Value, error) {
		if memory.err != nil {
			return vector.NullValue, nil
		}
		return form.value(s)
	}
	p.lo, p.hi = math.MaxInt64, math.MinInt64
	text, varying := t.Kind.IsString(), t.Varying()
	texts, decimals := stringTable{}, map[vector.Decimal]int64{}
	yield := func(from, to int, r vector.Value, err error) {
		i := from - p.from
		v, ok := int64(0), true
		switch {
		case err != nil || r.Null:
		case text:
			var isNew bool
			if v, isNew = texts.code(r.Str); isNew {
				texts.list[v] = strings.Clone(r.Str) // it may be a part of the dictionary's memory
				memory.add(int64(len(r.Str)) + textBeside)
			}
		case varying:
			if v, ok = decimals[r.Num]; !ok {
				v = int64(len(p.list))
				decimals[r.Num] = v
				p.list = append(p.list, decimalBytes(r.Num))
				memory.add(textBeside)
			}
		default:
			if v, ok = r.Word(t); !ok {
				err = errNumeric
			}
		}
		if err != nil {
			p.fail(i, err)
		}
		if r.Null {
			p.set(&p.nulls, i)
		} else if err == nil {
			fill(out[i:i+to-from], v)
			p.lo, p.hi = min(p.lo, v), max(p.hi, v)
		}
	}
	if form.evalPrefix == nil {
		eachResult(d, f, p.from, p.from+len(out), ordered, yield)
	} else {
		done := p.from
		repeat := func(to int) { // what came last is of all before to
			if done > p.from {
				fill(out[done-p.from:to-p.from], out[done-p.from-1])
			}
		}
		d.src.EachRun(int64(p.from), int64(p.from+len(out)), func(code int64, s string) (bytes int) {
			if memory.err != nil {
				return -1
			}
			repeat(int(code))
			r, bytes, err := form.evalPrefix(s)
			yield(int(code), int(code)+1, r, err)
			done = int(code) + 1
			return bytes
		})
		repeat(p.from + len(out))
	}
	if text {
		p.list = texts.list
	}
	return memory.flush()
}

func (p *piece) fail(i int, err error) {
	p.set(&p.faults, i)
	if p.err == nil {
		p.err = err
	}
}

// set sets a flag of a piece's string.
func (p *piece) set(flags *[]uint8, i int) {
	if *flags == nil {
		*flags = make([]uint8, p.to-p.from)
	}
	(*flags)[i] = 1
}

// mark writes a piece's flags to those of all strings.
func (p *piece) mark(all *[]uint8, flags []uint8, n int) {
	if flags == nil {
		return
	}
	if *all == nil {
		*all = make([]uint8, n)
	}
	copy((*all)[p.from:], flags)
}

// joinLists makes one list of those of the pieces, in the order in which strings occur first, and
// codes of it.
func (x *execution) joinLists(pieces []piece, codes []int64) (list []string) {
	var all stringTable
	to := make([][]int64, len(pieces))
	for i := range pieces {
		p := &pieces[i]
		to[i] = make([]int64, max(len(p.list), 1)) // nulls and faults have code 0
		for k, s := range p.list {
			to[i][k], _ = all.code(s)
		}
	}
	_ = x.each(len(pieces), func(i int) error {
		for k := pieces[i].from; k < pieces[i].to; k++ {
			codes[k] = to[i][codes[k]]
		}
		return nil
	})
	return all.list
}

// onNull computes what e is of null.
func (t *table) onNull(n *node, e *plan.Call, list []string) ([]string, error) {
	v := &env{leaf: func(plan.Expr) (vector.Value, error) { return vector.NullValue, nil }}
	r, err := v.eval(e)
	w, ok := int64(0), true
	switch {
	case err != nil || r.Null:
	case coded(n.t):
		s := r.Str
		if n.t.Varying() {
			s = decimalBytes(r.Num)
		}
		if w = int64(slices.Index(list, s)); w < 0 {
			w = int64(len(list))
			list = append(list, s)
		}
	default:
		if w, ok = r.Word(n.t); !ok {
			err = errNumeric
		}
	}
	if err != nil || r.Null {
		t.OnNullNull, t.OnNullFault = r.Null, err != nil
		n.nullable, n.risky = n.nullable || t.OnNullNull, n.risky || t.OnNullFault
		return list, err
	}
	t.OnNull = w
	n.lo, n.hi = min(n.lo, w), max(n.hi, w)
	return list, nil
}
