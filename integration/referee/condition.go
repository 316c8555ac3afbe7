package referee

import (
	"regexp"
	"strings"
)

// condition returns a boolean expression.
func (g *gen) condition(depth int) *node {
	t := typ{kind: boolean}
	if g.nests(25) {
		if n := g.subCondition(); n != nil {
			return n
		}
	}
	if !g.grouped && g.chance(15) {
		if n := g.search(); n != nil {
			return n
		}
	}
	if depth > 0 {
		switch g.r.IntN(14) {
		case 0, 1:
			return op(t, "(@ AND @)", g.condition(depth-1), g.condition(depth-1))
		case 2, 3:
			return op(t, "(@ OR @)", g.condition(depth-1), g.condition(depth-1))
		case 4:
			return op(t, "(NOT @)", g.condition(depth-1))
		case 5:
			return op(t, "(@ IS "+pick(g.r, "TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN")+")", g.condition(depth-1))
		case 6:
			return op(t, "(@ = @)", g.condition(depth-1), g.condition(depth-1))
		case 8:
			if g.chance(40) {
				if n := g.function(boolean, depth-1); n != nil {
					return n
				}
			}
		case 7:
			if !g.grouped || g.chance(40) {
				if n := g.choice(boolean, depth-1); n != nil {
					return n
				}
			}
		}
	}
	switch g.r.IntN(14) {
	case 13:
		if !g.grouped && g.chance(40) {
			if n := g.comparedCitext(); n != nil {
				return n
			}
		}
		if !g.grouped && g.chance(20) {
			if n := g.comparedSpans(); n != nil {
				return n
			}
		}
	case 12:
		return g.rowComparison(min(depth, 1))
	case 0, 1:
		if found := g.opaques(); len(found) > 0 && !g.grouped && g.chance(30) {
			return op(t, "(@ IS "+pick(g.r, "", "NOT ")+"NULL)", pick(g.r, found...))
		}
		n := g.of(anyValue(g.r), min(depth, 1))
		if n.lit == nil {
			return op(t, "(@ IS "+pick(g.r, "", "NOT ")+"NULL)", n)
		}
	case 2:
		if n := g.leaf(boolean); n != nil {
			return n
		}
	case 3, 4:
		f := g.pattern
		if g.chance(25) {
			f = g.regexpMatch
		}
		if n := f(); n != nil {
			return n
		}
	}
	return g.comparison(depth)
}

// subject is what a comparison is about: mostly a plain column.
func (g *gen) subject(depth int) *node {
	for range 10 {
		k := anyValue(g.r)
		n := g.leaf(k)
		if depth > 0 && g.chance(30) {
			n = g.of(k, depth-1)
		}
		if n != nil && n.lit == nil {
			return n
		}
	}
	return g.of(int4, 0)
}

// comparison compares two values in one of the ways there are.
func (g *gen) comparison(depth int) *node {
	t := typ{kind: boolean}
	a := g.subject(depth)
	equal := false
	if a.t.kind.isText() && !g.bytewise(a.t) && a.col == nil {
		equal = true // ranks exist for the strings of a column
	}
	if g.reckless && g.chance(20) || g.odd && g.chance(60) {
		equal = false
	}
	switch g.r.IntN(10) {
	case 0: // a list
		n := 1 + g.r.IntN(4)
		args := []*node{a}
		for range n {
			if m := g.like(a); g.chance(5) {
				args = append(args, &node{t: a.t, lit: &constant{form: open}})
			} else {
				args = append(args, m)
			}
		}
		list := "(" + strings.Repeat("@, ", n-1) + "@)"
		return op(t, "(@ "+pick(g.r, "IN ", "NOT IN ")+list+")", args...)
	case 1:
		n := 1 + g.r.IntN(3)
		args := []*node{a}
		for range n {
			args = append(args, g.unbound(g.like(a), a))
		}
		list := "ARRAY[" + strings.Repeat("@, ", n-1) + "@]"
		if a.t.kind != numeric && a.t.kind != char && n > 1 || a.t.kind.isText() && a.t.kind != char {
			return op(t, "(@ "+pick(g.r, "= ANY (", "<> ALL (")+list+"))", args...)
		}
	case 2, 3:
		if !equal {
			return op(t, "(@ "+pick(g.r, "BETWEEN", "BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC", "NOT BETWEEN SYMMETRIC")+" @ AND @)", a, g.like(a), g.like(a))
		}
	case 4:
		return op(t, "(@ IS "+pick(g.r, "", "NOT ")+"DISTINCT FROM @)", a, g.other(a, depth))
	}
	symbol := pick(g.r, "=", "=", "<>", "!=", "<", "<=", ">", ">=")
	if equal {
		symbol = pick(g.r, "=", "<>")
	}
	b := g.other(a, depth)
	if (b.t.kind == char && a.t.kind != char || b.lit == nil && a.t.kind.isText() && !g.bytewise(a.t)) && !g.reckless && !g.odd {
		symbol = pick(g.r, "=", "<>")
	}
	if g.chance(15) {
		return op(t, "(@ "+symbol+" @)", b, a)
	}
	return op(t, "(@ "+symbol+" @)", a, b)
}

// rowComparison compares two or three columns at once.
func (g *gen) rowComparison(depth int) *node {
	t := typ{kind: boolean}
	var l, r, args []*node
	equal := false
	for range 2 + g.r.IntN(2) {
		a := g.subject(depth)
		b := g.other(a, depth)
		l, r = append(l, a), append(r, b)
		equal = equal || !(a.t.kind.isExact() || a.t.kind.isMoment() || g.reckless) || b.t.kind != a.t.kind
	}
	row := "(" + strings.Repeat("@, ", len(l)-1) + "@)"
	args = append(append(args, l...), r...)
	if g.chance(25) {
		for _, a := range l {
			args = append(args, g.like(a))
		}
		return op(t, "("+row+pick(g.r, " IN (", " NOT IN (")+row+", "+row+"))", args...)
	}
	symbols := []string{"=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"}
	if !equal {
		symbols = append(symbols, "<", "<=", ">", ">=", "<", ">")
	}
	return op(t, "("+row+" "+pick(g.r, symbols...)+" "+row+")", args...)
}

// unbound makes a constant stand in the text, with a type: open constants alone make
// an array of text.
func (g *gen) unbound(n, beside *node) *node {
	n.lit.param = false
	switch {
	case n.lit.value == nil:
		n.lit.form = open
	case n.lit.form == open && beside.t.kind != char && !g.reckless:
		n.lit.form = casted
	}
	return n
}

// other is what a is compared with: mostly a constant.
func (g *gen) other(a *node, depth int) *node {
	if g.chance(map[bool]int{true: 20, false: 2}[a.t.kind.isMoment()]) {
		if n := g.moments(a); n != nil {
			return n
		}
	}
	if g.chance(65) {
		return g.like(a)
	}
	var kinds []kind
	switch k := a.t.kind; {
	case k.isExact():
		kinds = []kind{int2, int4, int8, numeric, k, k}
		if g.chance(20) {
			kinds = []kind{float4, float8}
		}
	case k.isFloat():
		kinds = []kind{float4, float8, k, int4, numeric}
	case k.isMoment():
		kinds = []kind{k, k, date, timestamp, timestamptz}
	case k == char:
		kinds = []kind{char, text}
	case k == varchar:
		kinds = []kind{text, varchar}
	case k == text:
		kinds = []kind{text, varchar, char}
	default:
		kinds = []kind{k}
	}
	for range 4 {
		b := g.of(pick(g.r, kinds...), min(depth, 1))
		if b.lit != nil || g.reckless {
			return g.like(a)
		}
		mixed := a.t.kind == char && b.t.kind == char && a.t.n != b.t.n
		if !mixed && (collationsAgree(a.t, b.t) || g.chance(3)) && g.fits(a, b) {
			return b
		}
	}
	return g.like(a)
}

// fits reports whether two exact numbers can be brought to one scale in 64 bits.
func (g *gen) fits(a, b *node) bool {
	if !a.t.kind.isExact() || !b.t.kind.isExact() || g.grouped {
		return true
	}
	digits := func(n *node) (whole, scale int) {
		switch n.t.kind {
		case int2:
			return 5, 0
		case int4:
			return 10, 0
		case int8:
			return 19, 0
		}
		return n.t.prec - n.t.scale, n.t.scale
	}
	aw, as := digits(a)
	bw, bs := digits(b)
	return as == bs || max(aw, bw)+max(as, bs) <= 18
}

// manyTexts returns a column of text that a dictionary has many of; nil where there is none.
func (g *gen) manyTexts() *node {
	found := g.columns(func(c *column) bool { return (c.t.kind == text || c.t.kind == varchar) && len(c.held) > packedTexts })
	if len(found) == 0 {
		return nil
	}
	return pick(g.r, found...)
}

// search is LIKE of parts of one of manyTexts; nil where there are none.
func (g *gen) search() *node {
	a := g.manyTexts()
	if a == nil {
		return nil
	}
	chars := g.beginning(a, 40)
	p := pick(g.r, "%", "%", "%", "")
	for range 1 + g.r.IntN(2) {
		if len(chars) == 0 {
			break
		}
		from := g.r.IntN(len(chars))
		to := min(from+1+g.r.IntN(8), len(chars))
		p += strings.NewReplacer("%", `\%`, "_", `\_`, `\`, `\\`).Replace(string(chars[from:to])) + pick(g.r, "%", "%", "%%")
		chars = chars[to:]
	}
	if g.chance(10) {
		p = strings.TrimRight(p, "%")
	}
	return op(typ{kind: boolean}, "(@ "+pick(g.r, "LIKE", "NOT LIKE")+" @)", a, g.constant(typ{kind: text}, p, true))
}

// pattern is LIKE or ILIKE, or ^@.
func (g *gen) pattern() *node {
	a := g.leaf(pick(g.r, text, varchar, text, varchar, char))
	if a == nil {
		return nil
	}
	chars := g.beginning(a, 12)
	for i := range chars {
		if g.chance(12) {
			chars[i] = '_'
		}
	}
	if len(chars) > 0 && g.chance(60) {
		cut := 1 + g.r.IntN(len(chars))
		if g.chance(70) {
			chars = chars[:cut]
		} else {
			chars = chars[cut:]
		}
	}
	p := string(chars)
	if g.chance(15) {
		return op(typ{kind: boolean}, pick(g.r, "(@ ^@ @)", "starts_with(@, @)"), g.closed(a), g.constant(typ{kind: text}, p, true))
	}
	p = pick(g.r, "", "%", "") + p + pick(g.r, "%", "%", "", "_")
	if g.chance(10) {
		p = strings.Replace(p, "_", `\_`, 1)
	}
	if strings.HasSuffix(p, `\`) && !strings.HasSuffix(p, `\\`) {
		p += `\`
	}
	operator := pick(g.r, "LIKE", "LIKE", "NOT LIKE")
	if g.chance(20) {
		if g.chance(50) {
			p = pick(g.r, strings.ToUpper, strings.ToLower)(p)
		}
		operator = pick(g.r, "ILIKE", "NOT ILIKE")
	}
	return op(typ{kind: boolean}, "(@ "+operator+" @)", a, g.constant(typ{kind: text}, p, true))
}

// beginning returns up to n characters of some text of a column; none of what is no column.
func (g *gen) beginning(a *node, n int) []rune {
	if a.col == nil {
		return nil
	}
	s, _ := g.value(a.col)
	chars := []rune(s)
	return chars[:min(n, len(chars))]
}

// regexpMatch is a match of a regular expression, or SIMILAR TO.
func (g *gen) regexpMatch() *node {
	a := g.leaf(pick(g.r, text, varchar))
	if a == nil {
		return nil
	}
	if g.chance(25) {
		p := strings.Map(func(c rune) rune {
			if strings.ContainsRune(`_%|*+?{}()[]\.^$`, c) {
				return '_'
			}
			return c
		}, string(g.beginning(a, 6)))
		p = pick(g.r, "", "%", "(a|b)*", "[^a-c]") + pick(g.r, p, p, p+"|a", "("+p+")?") + pick(g.r, "%", "%", "", "_+", ".%")
		return op(typ{kind: boolean}, "(@ "+pick(g.r, "SIMILAR TO", "NOT SIMILAR TO")+" @)", a, g.constant(typ{kind: text}, p, true))
	}
	p := regexp.QuoteMeta(string(g.beginning(a, 6)))
	p = pick(g.r, "", "^", "^") + pick(g.r, p, p, p+"|a", "("+p+"|b)", "[^a-c]", "[a-m]+", ".{2,5}", "a*b?") + pick(g.r, "", "", "$", ".*$")
	operator := pick(g.r, "~", "~", "!~")
	if g.chance(30) && isASCII(p) {
		operator = pick(g.r, "~*", "!~*")
	}
	return op(typ{kind: boolean}, "(@ "+operator+" @)", a, g.constant(typ{kind: text}, p, true))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
