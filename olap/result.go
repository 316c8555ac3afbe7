package olap

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"

	"pgaccel/plan"
	"pgaccel/vector"
)

// rcol is a column of results, before the order and the cut. Exactly one of v, dec
// and str holds its values; with dict the values are codes.
type rcol struct {
	t     vector.Type
	v     []int64
	dec   []vector.Decimal
	str   []string
	nulls []uint8 // nil: none
	dict  *dict
}

func (c *rcol) null(i uint32) bool { return c.nulls != nil && c.nulls[i] != 0 }

// at returns one value.
func (c *rcol) at(i uint32) vector.Value {
	switch {
	case c.null(i):
		return vector.NullValue
	case c.dec != nil:
		return vector.Value{Num: c.dec[i]}
	case c.str != nil:
		return vector.Value{Str: c.str[i]}
	case c.dict != nil:
		return c.dict.value(c.v[i])
	}
	return vector.WordValue(c.v[i], c.t)
}

// push appends a value of the column's type.
func (c *rcol) push(v vector.Value) {
	switch {
	case c.t.Kind.IsString():
		c.str = append(c.str, v.Str)
	case c.t.Kind == vector.Numeric:
		c.dec = append(c.dec, v.Num)
	default:
		c.v = append(c.v, v.I)
	}
	c.nulls = append(c.nulls, uint8(b2i(v.Null)))
}

// result is what a query computed: rows by number.
type result struct {
	n      int
	output []rcol
	order  []rcol
}

// comparator returns the order of rows by one key, nulls apart.
func (c *rcol) comparator() (func(a, b uint32) int, error) {
	switch {
	case c.str != nil:
		if !c.t.Collation.C {
			return nil, forward(plan.ReasonCollation, "order of computed text")
		}
		return func(a, b uint32) int {
			return strings.Compare(canonical(c.t.Kind, c.str[a]), canonical(c.t.Kind, c.str[b]))
		}, nil
	case c.dec != nil:
		return func(a, b uint32) int { return compareDecimals(c.dec[a], c.dec[b]) }, nil
	case c.fewTexts():
		list := make([]string, len(c.v))
		for i, code := range c.v {
			if !c.null(uint32(i)) {
				list[i] = canonical(c.dict.t.Kind, c.dict.at(code))
			}
		}
		return func(a, b uint32) int { return strings.Compare(list[a], list[b]) }, nil
	case c.dict != nil:
		ranks, err := c.dict.rank(c.t.Collation)
		if err != nil {
			return nil, err
		}
		if len(ranks) == 0 {
			return func(a, b uint32) int { return 0 }, nil
		}
		return func(a, b uint32) int { return cmp.Compare(ranks[c.v[a]], ranks[c.v[b]]) }, nil
	case c.t.Kind.IsFloat():
		return func(a, b uint32) int { return cmp.Compare(vector.FloatKey(c.v[a]), vector.FloatKey(c.v[b])) }, nil
	}
	v := c.v
	return func(a, b uint32) int { return cmp.Compare(v[a], v[b]) }, nil
}

// fewTexts reports whether texts are compared as they are: to rank their dictionary bytewise would take
// longer.
func (c *rcol) fewTexts() bool {
	return c.dict != nil && c.dict.t.Kind != vector.Numeric && c.t.Collation.C && 4*len(c.v) < c.dict.n && c.dict.ranked(c.t.Collation) == nil
}

// integers returns the values of a key of ORDER BY as integers in their order, nulls apart;
// ok is false where there are none such, or an error that comparator returns. They may lie in
// spare.
func (c *rcol) integers(spare *[]int64) (v []int64, ok bool) {
	n := len(c.v) + len(c.dec)
	if c.dec == nil && c.dict == nil && !c.t.Kind.IsFloat() {
		return c.v, c.str == nil
	}
	*spare = slices.Grow((*spare)[:0], n)[:n]
	v = *spare
	switch {
	case c.dec != nil:
		scale, some := int16(0), false
		for i := range c.dec {
			if c.null(uint32(i)) {
				continue
			}
			d := &c.dec[i]
			x, fits := d.Unscaled.Int64()
			if !fits || some && d.Scale != scale {
				return nil, false
			}
			v[i], scale, some = x, d.Scale, true
		}
	case c.fewTexts():
		return nil, false
	case c.dict != nil:
		ranks, err := c.dict.rank(c.t.Collation)
		if err != nil {
			return nil, false
		}
		for i, code := range c.v {
			if v[i] = 0; len(ranks) > 0 && !c.null(uint32(i)) {
				v[i] = int64(ranks[code])
			}
		}
	default:
		for i, x := range c.v {
			v[i] = vector.FloatKey(x)
		}
	}
	return v, true
}

// ordering returns the order of the whole ORDER BY.
func ordering(cols []rcol, keys []plan.Order) (func(a, b uint32) int, error) {
	type key struct {
		c     *rcol
		f     func(a, b uint32) int
		sign  int
		nulls int // of a null against a value
	}
	var ks []key
	for i, o := range keys {
		f, err := cols[i].comparator()
		if err != nil {
			return nil, err
		}
		k := key{&cols[i], f, 1, 1}
		if o.Desc {
			k.sign = -1
		}
		if o.NullsFirst {
			k.nulls = -1
		}
		ks = append(ks, k)
	}
	return func(a, b uint32) int {
		for i := range ks {
			k := &ks[i]
			if k.c.nulls != nil {
				x, y := k.c.nulls[a], k.c.nulls[b]
				if x != y {
					if x != 0 {
						return k.nulls
					}
					return -k.nulls
				}
				if x != 0 {
					continue
				}
			}
			if r := k.f(a, b); r != 0 {
				return r * k.sign
			}
		}
		return 0
	}, nil
}

// alike reports whether two rows look the same to the client.
func (r *result) alike(a, b uint32) bool {
	for i := range r.output {
		c := &r.output[i]
		x, y := c.at(a), c.at(b)
		if x != y {
			return false
		}
	}
	return true
}

// cutRows returns the rows that are left of a result, in order.
func (x *execution) cutRows(r *result) ([]uint32, error) {
	order, err := x.order(r.order, r.n)
	if err != nil {
		return nil, err
	}
	less := order.rows
	n := int64(r.n)
	from := min(x.offset, n)
	to := n
	if x.limited && x.limit < n-from {
		to = from + x.limit
	}
	if err := x.take(n * 4); err != nil {
		return nil, err
	}
	var rows []uint32
	if len(x.q.Order) > 0 {
		rows = firstRows(r.n, int(min(to+1, n)), order) // one more: it may tie
		n = int64(len(rows))
	} else {
		rows = make([]uint32, r.n)
		for i := range rows {
			rows[i] = uint32(i)
		}
	}
	for _, cut := range []int64{from, to} {
		if cut <= 0 || cut >= n || less(rows[cut-1], rows[cut]) != 0 {
			continue
		}
		// All rows that tie with the cut are there. They must look alike, or are put in an order.
		first, last := cut-1, cut+1
		for first > 0 && less(rows[first-1], rows[cut]) == 0 {
			first--
		}
		for last < n && less(rows[last], rows[cut]) == 0 {
			last++
		}
		tied := rows[first:last]
		if !x.tiesDropped && !slices.ContainsFunc(tied, func(i uint32) bool { return !r.alike(i, rows[cut]) }) {
			continue
		}
		if !x.opt.Ties {
			return nil, forward(plan.ReasonTies, "")
		}
		x.tied = true
		if err := x.settle(r, tied, int(min(to, last)-first)); err != nil {
			return nil, err
		}
	}
	return rows[from:to], nil
}

// finish orders, cuts and writes the rows out.
func (x *execution) finish(r *result) (*vector.Batch, error) {
	rows, err := x.cutRows(r)
	if err != nil {
		return nil, err
	}
	if b := x.spool(r, rows); b != nil {
		return b, nil
	}
	b := &vector.Batch{Rows: len(rows), Columns: make([]vector.Column, len(r.output))}
	var bytes atomic.Int64
	one := func(i int) error {
		fixed := int64(len(rows)) * 24
		if err := x.take(fixed); err != nil {
			return err
		}
		col, text := r.output[i].write(rows, x.q.Output[i].Type())
		if err := x.take(text); err != nil {
			return err
		}
		b.Columns[i] = col
		bytes.Add(fixed + text)
		return nil
	}
	if err := x.eachIf(len(rows) >= writtenRows, len(r.output), one); err != nil {
		return nil, err
	}
	b.Bytes = bytes.Load()
	return b, nil
}

// writtenRows is the number of rows from which on the columns of a result are written by several goroutines: a text
// of a large dictionary takes 0.2 microseconds.
const writtenRows = 256

// write returns the rows as a column of a batch, and the bytes of its strings. These are
// copies: dictionaries live only as long as the table is held.
func (c *rcol) write(rows []uint32, t vector.Type) (out vector.Column, text int64) {
	out.Type = t
	for i, r := range rows {
		if c.null(r) {
			out.SetNull(i, len(rows))
		}
	}
	switch {
	case t.Kind.IsString():
		out.Strs = make([]string, len(rows))
		if c.str != nil {
			pickRows(out.Strs, c.str, rows)
			for _, s := range out.Strs {
				text += int64(len(s))
			}
			break
		}
		if c.dict == nil || c.dict.n == 0 { // no rows: nothing says how the text is held
			break
		}
		text = c.strings(out.Strs, rows)
	case t.Kind == vector.Numeric:
		out.Decimals = make([]vector.Decimal, len(rows))
		if c.dec != nil {
			pickRows(out.Decimals, c.dec, rows)
			break
		}
		if c.dict != nil {
			for i, r := range rows {
				if !c.null(r) {
					out.Decimals[i] = c.dict.decimals[c.v[r]]
				}
			}
			break
		}
		for i, r := range rows {
			out.Decimals[i] = vector.Decimal{Unscaled: vector.Int128Of(c.v[r]), Scale: c.t.Scale}
		}
	default:
		out.Ints = make([]int64, len(rows))
		pickRows(out.Ints, c.v, rows)
	}
	for i, r := range rows { // a null's value is the zero value
		if !c.null(r) {
			continue
		}
		switch {
		case out.Ints != nil:
			out.Ints[i] = 0
		case out.Decimals != nil:
			out.Decimals[i] = vector.Decimal{}
		case out.Strs != nil:
			out.Strs[i] = ""
		}
	}
	return out, text
}

// strings writes the strings of codes: one copy of each that occurs, all in one piece of
// memory where an array can say which do. It returns the copies' bytes.
func (c *rcol) strings(dst []string, rows []uint32) (bytes int64) {
	if c.dict.n > max(writtenCodes, 4*len(rows)) {
		made := make(map[int64]string)
		for i, r := range rows {
			if c.null(r) {
				continue
			}
			s, ok := made[c.v[r]]
			if !ok {
				s = c.dict.at(c.v[r])
				made[c.v[r]] = s
				bytes += int64(len(s))
			}
			dst[i] = s
		}
		return bytes
	}
	type span struct{ from, to int } // of text; to 0: not there, or empty
	spans := make([]span, c.dict.n)
	text := make([]byte, 0, 16*min(c.dict.n, len(rows)))
	for _, r := range rows {
		if c.null(r) {
			continue
		}
		if s := &spans[c.v[r]]; s.to == 0 {
			s.from = len(text)
			text = c.dict.append(text, c.v[r])
			s.to = len(text)
		}
	}
	all := string(text)
	for i, r := range rows {
		if !c.null(r) {
			s := spans[c.v[r]]
			dst[i] = all[s.from:s.to]
		}
	}
	return int64(len(all))
}

// writtenCodes bounds the dictionaries that have an array for the strings of a few rows.
const writtenCodes = 64

func pickRows[T any](dst, src []T, rows []uint32) {
	for i, r := range rows {
		dst[i] = src[r]
	}
}

// constantCount evaluates LIMIT or OFFSET; null means none.
func constantCount(e plan.Expr) (n int64, set bool, err error) {
	if e == nil {
		return 0, false, nil
	}
	c, ok := e.(plan.Const)
	if !ok {
		return 0, false, forward(plan.ReasonShape, "LIMIT is no constant")
	}
	if c.Null {
		return 0, false, nil
	}
	if c.I < 0 {
		return 0, false, failed("LIMIT and OFFSET must not be negative")
	}
	return c.I, true, nil
}
