package referee

import (
	"math"
	"math/rand/v2"
	"strings"

	"pgaccel/sqlfn"
	"pgaccel/vector"
)

// gen makes expressions over the columns in scope or, with grouped, over group keys
// and aggregates.
type gen struct {
	r       *rand.Rand
	scope   []*source
	grouped bool
	sets    bool // grouped by grouping sets
	keys    []*node
	utc     bool // the session's zone is UTC: what depends on it is accelerated
	params  bool // constants may be parameters
	// linguistic says that the default collation is not C.
	linguistic bool
	// odd makes comparisons whose order the server may not have told.
	odd bool
	// reckless makes what is likely to be forwarded or to fail now and then.
	reckless bool
	prefer   []sqlfn.Function // tests: what is called above all
	// finish has parts of queries refused, so that PostgreSQL finishes them.
	finish bool
	// nest says which queries there may be within the query, nil for none; around are the
	// columns of those around it.
	nest   *nest
	around []*node
}

func (g *gen) chance(percent int) bool { return g.r.IntN(100) < percent }

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// columns returns the columns in scope that satisfy f.
func (g *gen) columns(f func(*column) bool) []*node {
	var out []*node
	for _, s := range g.scope {
		for _, c := range s.table.cols {
			if c.other == "" && f(c) {
				out = append(out, &node{t: c.t, col: c, from: s, lo: c.lo, hi: c.hi})
			}
		}
	}
	return out
}

// leaf returns a column, key or aggregate of the kind, nil where there is none.
func (g *gen) leaf(k kind) *node {
	if !g.grouped {
		found := g.columns(func(c *column) bool { return c.t.kind == k })
		if len(found) == 0 {
			return nil
		}
		return pick(g.r, found...)
	}
	var found []*node
	for _, n := range g.keys {
		if n.t.kind == k {
			found = append(found, n)
		}
	}
	if k == int4 && len(g.keys) > 0 && g.chance(map[bool]int{true: 40, false: 3}[g.sets]) {
		return g.groupingOf()
	}
	if len(found) > 0 && g.chance(50) {
		return pick(g.r, found...)
	}
	return g.aggregateOf(k)
}

// plain reports whether a constant of this form is read by pgaccel: any that no
// setting changes the meaning of.
func plain(k kind, s string) bool {
	switch {
	case k.isMoment():
		return len(s) >= 10 && s[4] == '-' && !strings.HasSuffix(s, "BC") && !strings.Contains(s, "infinity")
	case k.isFloat():
		return !strings.ContainsAny(s, "NI")
	case k == timeOfDay:
		return s != "24:00:00"
	}
	return true
}

// value picks the text of a value like the column's.
func (g *gen) value(c *column) (string, bool) {
	// The order of a string that no row holds is known in C only.
	if len(c.held) > 0 && g.chance(map[bool]int{true: 50, false: 95}[g.bytewise(c.t)]) {
		return pick(g.r, c.held...), true
	}
	for range 6 {
		if len(c.pool) == 0 {
			return "", false
		}
		if s := pick(g.r, c.pool...); plain(c.t.kind, s) || g.reckless && g.chance(20) {
			return s, true
		}
	}
	return "", false
}

// valueOf makes the text of some value of the type.
func (g *gen) valueOf(t typ) string {
	if t.kind == numeric && t.prec == 0 {
		t.prec, t.scale = 6, 2
	}
	return tameValue(g.r, t)()
}

// constant makes a constant. It may be open where its neighbour decides its type.
func (g *gen) constant(t typ, value string, mayBeOpen bool) *node {
	n := &node{t: t, lit: &constant{value: &value}, lo: math.Inf(-1), hi: math.Inf(1)}
	n.t.coll = "*"
	if t.kind.isNumber() {
		n.lo, n.hi = bounds([]string{value})
	}
	forms := []form{typed, casted, casted, spelled}
	if t.kind == char {
		mayBeOpen = true
		forms = nil
	}
	if mayBeOpen {
		forms = append(forms, open, open, open, open)
	}
	switch t.kind {
	case boolean:
		forms = append(forms, bare, bare, bare)
	case int2, int4, int8:
		forms = append(forms, bare, bare, bare, bare, bare, bare)
	case numeric:
		if strings.Contains(value, ".") {
			forms = append(forms, bare, bare, bare, bare)
		}
		n.t.prec, n.t.scale = numericShape(value)
	}
	n.lit.form = pick(g.r, forms...)
	if n.lit.form == bare && t.kind.isInt() {
		n.t.kind = int4
		if n.lo < math.MinInt32 || n.hi > math.MaxInt32 {
			n.t.kind = int8
		}
	}
	if t.kind == numeric && n.lit.form == typed {
		n.lit.form = casted
	}
	if g.params && g.chance(35) && t.kind != char {
		n.lit.param = true
		if g.chance(3) {
			n.lit.value = nil
		}
	}
	return n
}

// numericShape returns the digits of a number as it is written, and those behind the
// point.
func numericShape(s string) (prec, scale int) {
	s = strings.TrimPrefix(s, "-")
	whole, fraction, _ := strings.Cut(s, ".")
	return max(len(strings.TrimLeft(whole, "0"))+len(fraction), 1), len(fraction)
}

// like makes a constant that is worth comparing n with.
func (g *gen) like(n *node) *node {
	if n.col != nil {
		if s, ok := g.value(n.col); ok {
			if n.t.kind.isInt() && g.chance(8) { // finer than the column, or beyond it
				s += pick(g.r, ".5", ".0", "000", ".999")
				if len(s) > 15 || !strings.Contains(s, ".") {
					return g.constant(typ{kind: int8}, "3000000000", false)
				}
				return g.constant(typ{kind: numeric}, s, false)
			}
			if n.t.kind == date && g.chance(8) && plain(date, s) {
				return g.constant(typ{kind: timestamp}, s+pick(g.r, " 00:00:00", " 12:30:00", "T23:59:59.999999"), false)
			}
			return g.constant(n.t, s, true)
		}
	}
	t := n.t
	if t.kind == numeric && (t.prec == 0 || t.scale == varying) {
		t.prec, t.scale = 6, 2
	}
	return g.constant(t, g.valueOf(t), true)
}

// of returns an expression of a kind.
func (g *gen) of(k kind, depth int) *node {
	if g.nests(6) {
		if n := g.subValue(k); n != nil {
			return n
		}
	}
	if depth > 0 && g.chance(45) {
		if n := g.call(k, depth-1); n != nil {
			return n
		}
	}
	if k == int4 && !g.grouped && g.chance(15) {
		if a := g.manyTexts(); a != nil {
			return op(typ{kind: int4}, pick(g.r, "length(@)", "char_length(@)", "octet_length(@)"), a).within(0, 200)
		}
	}
	if g.chance(2) {
		if n := g.served(k); n != nil {
			return n
		}
	}
	if n := g.leaf(k); n != nil && !g.chance(8) {
		return n
	}
	if depth > 0 {
		if n := g.call(k, depth-1); n != nil {
			return n
		}
	}
	t := typ{kind: k, prec: 6, scale: 2}
	if k == char {
		t.kind = text
	}
	return g.constant(t, g.valueOf(t), false)
}

// call returns an operator or function with a result of the kind, nil where none was
// found.
func (g *gen) call(k kind, depth int) *node {
	switch {
	case k == boolean:
		return g.condition(depth)
	case g.chance(18):
		return g.choice(k, depth)
	case k == interval:
		return g.difference(depth)
	case (k == bit || k == varbit) && g.chance(60):
		return g.bitString(k)
	case k == money && g.chance(60):
		return g.amount(depth)
	case k.isInt():
		return g.integer(k, depth)
	case k == numeric:
		return g.decimal(depth)
	case k.isFloat():
		return g.float(k, depth)
	case k.isText():
		return g.text(k, depth)
	}
	return g.moment(k, depth)
}

// union bounds either of two numbers.
func union(a, b *node) (lo, hi float64) { return min(a.lo, b.lo), max(a.hi, b.hi) }

// alike reports whether CASE may mix the two: numerics of one scale, char of one
// length, text of one collation.
func alike(a, b typ) bool {
	if a.kind != b.kind && !(a.kind.isText() && b.kind.isText() && a.kind != char && b.kind != char) {
		return false
	}
	return (a.kind != numeric || a.scale == b.scale && a.scale != varying) && (a.kind != char || a.n == b.n) && collationsAgree(a, b)
}

// bytewise reports whether text sorts as its bytes do.
func (g *gen) bytewise(t typ) bool {
	return t.coll == `"C"` || t.coll == `"POSIX"` || t.coll == "" && !g.linguistic
}

func collationsAgree(a, b typ) bool {
	return !a.kind.isText() || a.coll == b.coll || a.coll == "*" || b.coll == "*"
}

// choice is CASE, COALESCE, NULLIF, GREATEST or LEAST.
func (g *gen) choice(k kind, depth int) *node {
	a := g.of(k, depth)
	b := g.of(k, depth)
	if !alike(a.t, b.t) || g.chance(40) {
		b = g.sameAs(a)
	}
	if b == nil {
		return nil
	}
	t := a.t
	if t.coll == "*" {
		t.coll = b.t.coll
	}
	t.prec = max(a.t.prec, b.t.prec)
	lo, hi := union(a, b)
	null := &node{t: t, lit: &constant{form: open}}
	switch g.r.IntN(7) {
	case 0:
		return op(t, "CASE WHEN @ THEN @ ELSE @ END", g.condition(depth), a, b).within(lo, hi)
	case 1:
		return op(t, "CASE WHEN @ THEN @ END", g.condition(depth), a).within(a.lo, a.hi)
	case 2:
		c := g.sameAs(a)
		if c == nil {
			c = null
		}
		return op(t, "CASE WHEN @ THEN @ WHEN @ THEN @ ELSE @ END", g.condition(depth), a, g.condition(depth), b, null).within(lo, hi)
	case 3:
		if s := g.of(pick(g.r, int4, text, date, boolean), 0); s.lit == nil && s.t.kind != char {
			return op(t, "CASE @ WHEN @ THEN @ WHEN @ THEN @ ELSE @ END", s, g.like(s), a, g.like(s), b, null).within(lo, hi)
		}
	case 4:
		if t.kind != char {
			return op(a.t, "nullif(@, @)", a, b).within(a.lo, a.hi)
		}
	}
	if g.chance(25) {
		return op(t, pick(g.r, "greatest(@, @)", "least(@, @)"), a, b).within(lo, hi)
	}
	return op(t, "coalesce(@, @)", a, b).within(lo, hi)
}

// sameAs returns a constant that can stand beside a as another arm, nil for none.
func (g *gen) sameAs(a *node) *node {
	t := a.t
	switch {
	case t.kind == char, t.kind == numeric && t.scale == varying:
		return nil
	case t.kind == numeric:
		if t.prec < 1 || t.prec > 18 {
			t.prec = min(t.scale+2, 18)
		}
		v := tameValue(g.r, t)()
		return g.constant(t, v, false)
	}
	return g.constant(t, g.valueOf(t), t.kind.isText())
}

// text returns an expression of type text or varchar.
func (g *gen) text(k kind, depth int) *node {
	if k == char {
		return nil
	}
	for range 3 {
		switch g.r.IntN(9) {
		case 6:
			if n := g.function(k, 1); n != nil {
				return n
			}
		case 7, 8:
			if n := g.concatenation(); n != nil && k == text {
				return n
			}
		case 0:
			if a := g.leaf(pick(g.r, text, varchar, char)); a != nil {
				return op(typ{kind: k, coll: a.t.coll}, "@::"+k.sql(), g.closed(a))
			}
		case 1:
			if a := g.leaf(pick(g.r, text, varchar)); a != nil {
				return op(typ{kind: a.t.kind, coll: `"C"`}, `(@ COLLATE "C")`, a)
			}
		case 2:
			if a := g.leaf(pick(g.r, int2, int4, int8)); a != nil {
				return op(typ{kind: k, coll: computed}, "@::"+k.sql(), g.closed(a))
			}
		case 4:
			if a := g.leaf(kind(vector.Name)); a != nil && k == text {
				return op(typ{kind: k, coll: `"C"`}, pick(g.r, "@::text", "lower(@)", "@ || '.'"), g.closed(a))
			}
		case 5:
			a := g.leaf(pick(g.r, numeric, date, timestamp, timestamptz, timeOfDay, kind(vector.MACAddr), kind(vector.UUID), kind(vector.OID), enum))
			if a != nil && (a.t.kind != timestamptz || g.utc || g.reckless) {
				return op(typ{kind: k, coll: computed}, "@::"+k.sql(), g.closed(a))
			}
		case 3:
			if a := g.leaf(boolean); a != nil {
				return op(typ{kind: k, coll: computed}, "@::"+k.sql(), g.closed(a))
			}
		}
	}
	return nil
}

// difference returns an interval: that of two timestamps, or cut to a unit.
func (g *gen) difference(depth int) *node {
	if g.chance(15) {
		if n := g.function(interval, depth); n != nil {
			return n
		}
	}
	k := pick(g.r, timestamp, timestamptz)
	a, b := g.of(k, depth), g.of(pick(g.r, k, k, date), depth)
	if !tame(a) && !g.reckless || !tame(b) && !g.reckless || k == timestamptz && b.t.kind == date && !g.utc {
		return nil
	}
	return op(typ{kind: interval}, "(@ - @)", g.closed(a), g.closed(b))
}

// shifted returns a timestamp and what is computed of an interval, or its bin.
func (g *gen) shifted(k kind, depth int) *node {
	a := g.closed(g.of(k, depth))
	switch g.r.IntN(3) {
	case 0:
		n := g.of(pick(g.r, int2, int4, numeric, float8), 0)
		if n.lo < -1e6 || n.hi > 1e6 {
			return nil
		}
		by := "interval '" + pick(g.r, "15 minutes", "1 second", "-90 seconds", "1 day", "1 week", "1 day 02:00", "1 millisecond") + "'"
		return op(typ{kind: k}, pick(g.r, "(@ + "+by+" * @)", "(@ - "+by+" * @)", "(@ + @ * "+by+")"), a, g.closed(n))
	case 1:
		return op(typ{kind: k}, "date_bin('"+pick(g.r, "15 minutes", "1 day", "00:00:07", "3 hours")+"', @, "+k.sql()+" '"+pick(g.r, "1901-01-01 00:00+00", "2000-01-01 02:03:04+00")+"')", a)
	}
	d := g.difference(depth)
	if d == nil {
		return nil
	}
	return op(typ{kind: k}, pick(g.r, "(@ + @)", "(@ - @)"), a, d)
}

// moment returns an expression of a date, time or timestamp type.
func (g *gen) moment(k kind, depth int) *node {
	free := func(n *node) bool { return tame(n) || g.reckless }
	for range 4 {
		switch g.r.IntN(6) {
		case 0, 1:
			switch k {
			case date:
				a, b := g.of(date, depth), g.of(pick(g.r, int4, int2), 0)
				if !free(a) || b.lo < -1e5 || b.hi > 1e5 || a.lit != nil && a.lit.form == open {
					continue
				}
				if g.chance(20) {
					return op(a.t, "(@ + @)", b, a)
				}
				return op(a.t, pick(g.r, "(@ + @)", "(@ - @)"), a, b)
			case timestamp, timestamptz:
				if g.chance(25) {
					if n := g.shifted(k, depth); n != nil && free(n) {
						return n
					}
				}
				if n := g.function(k, depth); n != nil {
					return n
				}
				from := timestamptz // AT TIME ZONE goes from one to the other
				if k == timestamptz {
					from = timestamp
				}
				if a := g.of(from, depth); free(a) {
					return op(typ{kind: k}, pick(g.r, "timezone('UTC', @)", "(@ AT TIME ZONE 'UTC')"), g.closed(a))
				}
			}
		case 2, 3:
			from := map[kind][]kind{date: {timestamp, timestamptz}, timestamp: {date, timestamptz}, timestamptz: {date, timestamp}}[k]
			if from == nil {
				continue
			}
			a := g.of(pick(g.r, from...), depth)
			if !free(a) {
				continue
			}
			if g.chance(10) {
				a = g.written(a)
			}
			return op(typ{kind: k}, pick(g.r, "@::"+k.sql(), "CAST(@ AS "+k.sql()+")"), g.closed(a))
		case 4:
			if n := g.function(k, depth); n != nil {
				return n
			}
		}
	}
	return nil
}
