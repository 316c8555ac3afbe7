package referee

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// limitTypes are the columns of the table of limits: each type, and those whose modifier
// rounds a value to one that is stored though it is not valid.
var limitTypes = []typ{{kind: int2}, {kind: int4}, {kind: int8}, {kind: numeric, prec: 4}, {kind: numeric, prec: 12, scale: 2}, {kind: numeric, prec: 18}, {kind: numeric, prec: 18, scale: 18},
	{kind: float4}, {kind: float8}, {kind: date}, {kind: timeOfDay}, {kind: timeOfDay, whole: true}, {kind: timestamp}, {kind: timestamp, whole: true}, {kind: timestamptz}, {kind: timestamptz, whole: true},
	{kind: boolean}, {kind: text}, {kind: varchar, n: 3}, {kind: char, n: 4}}

func init() {
	for _, k := range others {
		limitTypes = append(limitTypes, typ{kind: k})
		castTargets = append(castTargets, castTarget{k.sql(), typ{kind: k}})
	}
}

// limitsTable makes a table of the least and greatest values of every type, and nulls.
func limitsTable(r *rand.Rand, w world, schema string) *table {
	t := &table{schema: schema, name: schema + "_limits", primary: true, key: []int{0}, limits: true}
	t.cols = []*column{{name: "k", t: typ{kind: int4}, notNull: true, spread: "unique"}}
	rows := 12 + r.IntN(12)
	for i := range rows + 3 {
		t.cols[0].pool = append(t.cols[0].pool, keyValue(t.cols[0].t, i))
	}
	for i, lt := range limitTypes {
		if lt.kind.isText() && r.IntN(2) == 0 && len(w.collations) > 0 {
			lt.coll = pick(r, w.collations...)
		}
		c := &column{name: fmt.Sprintf("l%d", i), t: lt, wild: true, spread: "even", nulls: 15, pool: slices.Clone(edges(lt))}
		switch lt.kind {
		case timestamp, timestamptz:
			c.pool = append(c.pool, withZone(lt.kind, []string{lastMoment, "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.4"})...)
		case timeOfDay:
			c.pool = append(c.pool, "23:59:59.6")
		case int2, int4, int8:
			c.pool = append(c.pool, "7", "-7", "9999", "10000")
		case float4, float8:
			c.pool = append(c.pool, "32767.5", "-32768.5", "2147483647.5", "9.223372036854775e18", "1e20", "0.5", "1.5", "2.5")
		case text:
			c.pool = append(c.pool, "5", " 5 ", "2024-02-29", "infinity", "NaN", "t", "1e400", "99999999999")
		}
		if lt.kind.isNumber() {
			c.lo, c.hi = bounds(c.pool)
		}
		t.cols = append(t.cols, c)
	}
	for i := range rows {
		t.rows = append(t.rows, t.row(r, i, rows))
	}
	t.hold()
	return t
}

// lastMoment rounds to whole seconds beyond the last valid timestamp.
const lastMoment = "294276-12-31 23:59:59.999999"

// castTarget is a type to cast to, as SQL writes it.
type castTarget struct {
	sql string
	t   typ
}

var castTargets = []castTarget{
	{"smallint", typ{kind: int2}}, {"integer", typ{kind: int4}}, {"bigint", typ{kind: int8}}, {"numeric", typ{kind: numeric, scale: varying}},
	{"numeric(4,0)", typ{kind: numeric, prec: 4}}, {"numeric(3,2)", typ{kind: numeric, prec: 3, scale: 2}}, {"numeric(18,4)", typ{kind: numeric, prec: 18, scale: 4}}, {"numeric(18,18)", typ{kind: numeric, prec: 18, scale: 18}},
	{"real", typ{kind: float4}}, {"double precision", typ{kind: float8}}, {"boolean", typ{kind: boolean}},
	{"date", typ{kind: date}}, {"time", typ{kind: timeOfDay}}, {"timestamp", typ{kind: timestamp}}, {"timestamptz", typ{kind: timestamptz}}, {"timestamp(0)", typ{kind: timestamp}}, {"timestamptz(0)", typ{kind: timestamptz}},
	{"text", typ{kind: text}}, {"varchar", typ{kind: varchar}}, {"varchar(2)", typ{kind: varchar, n: 2}}, {"char(3)", typ{kind: char, n: 3}}, {"bpchar", typ{kind: char}},
}

// failing are constants that PostgreSQL cannot compute, or just can.
var failing = []struct {
	sql string
	t   typ
}{
	{"(1 / 0)", typ{kind: int4}}, {"(2147483647 + 1)", typ{kind: int4}}, {"((-32768)::smallint / (-1)::smallint)", typ{kind: int2}}, {"(9223372036854775807 * 2)", typ{kind: int8}},
	{"(- (-2147483648))", typ{kind: int8}}, {"abs((-32768)::smallint)", typ{kind: int2}}, {"(40000::smallint)", typ{kind: int2}}, {"('x'::integer)", typ{kind: int4}}, {"(99999::numeric(4,0))", typ{kind: numeric, prec: 4}},
	{"(1.0 / 0)", typ{kind: numeric, scale: varying}}, {"(1e308::float8 * 10)", typ{kind: float8}}, {"('5874897-12-31'::date + 1)", typ{kind: date}}, {"('5874897-12-31'::date::timestamp)", typ{kind: timestamp}},
	{"date_trunc('day', '-infinity'::timestamp)", typ{kind: timestamp}}, {"(5 % 0)", typ{kind: int4}}, {"(7 / 2)", typ{kind: int4}},
}

// castable reports whether PostgreSQL has a cast from a to b that is not one of text.
func castable(a, b kind) bool {
	switch {
	case a.isNumber():
		return b.isNumber() || b.isText() || a == int4 && b == boolean
	case a == boolean:
		return b == int4 || b == boolean || b.isText()
	case a.isMoment():
		return b.isMoment() || b.isText() || a != date && b == timeOfDay
	case a == timeOfDay, a.isOther():
		return b == a || b.isText()
	}
	return true
}

// limit returns an expression that fails for some of the rows.
func (g *gen) limit(depth int) *node {
	arg := func() *node {
		if depth > 0 && g.chance(35) {
			return g.limit(depth - 1)
		}
		texts := g.chance(25)
		return pick(g.r, g.columns(func(c *column) bool { return c.spread != "unique" && (!texts || c.t.kind.isText()) })...)
	}
	if g.chance(4) {
		f := pick(g.r, failing...)
		return op(f.t, f.sql)
	}
	a := arg()
	k := a.t.kind
	for range 20 {
		switch g.r.IntN(9) {
		case 0, 1, 2:
			to := pick(g.r, castTargets...)
			if castable(k, to.t.kind) || g.chance(3) {
				t := to.t
				if t.kind.isText() && k.isText() {
					t.coll = a.t.coll
				}
				return op(t, pick(g.r, "@::"+to.sql, "CAST(@ AS "+to.sql+")"), g.closed(a))
			}
		case 3:
			switch {
			case k.isNumber():
				return op(typ{kind: k, prec: a.t.prec, scale: a.t.scale}, pick(g.r, "(- @)", "abs(@)", "(+ @)"), a)
			case k == boolean:
				return op(typ{kind: boolean}, "(NOT @)", a)
			}
			if n := g.functionOf(a); n != nil {
				return n
			}
		case 4, 5:
			if n := g.limitArithmetic(a, arg()); n != nil {
				return n
			}
		case 6:
			b := arg()
			if b.t.kind != k && !(k.isNumber() && b.t.kind.isNumber()) {
				b = g.like(a)
			}
			f := pick(g.r, "nullif(@, @)", "coalesce(@, @)", "greatest(@, @)", "least(@, @)", "CASE WHEN @ THEN @ ELSE @ END")
			t := a.t
			if t.kind == numeric && (b.t.kind != numeric || b.t.scale != t.scale) {
				t.scale = varying
			}
			if t.kind.isExact() && b.t.kind.isFloat() && !strings.HasPrefix(f, "nullif") {
				t = b.t // else sums of it would be taken for exact
			}
			if strings.HasPrefix(f, "CASE") {
				return op(t, f, g.limitCondition(a, depth), a, b)
			}
			return op(t, f, a, b)
		case 7:
			return g.limitCondition(a, depth)
		}
	}
	return a
}

// limitArithmetic returns an operator of two numbers, or dates; nil where there is none.
func (g *gen) limitArithmetic(a, b *node) *node {
	if g.chance(40) {
		c := pick(g.r, "0", "1", "-1", "2", "10", "2147483647", "-32768", "9223372036854775807", "0.5", "10000000000")
		if strings.Contains(c, ".") {
			b = g.constant(typ{kind: numeric}, c, false)
		} else {
			b = g.constant(typ{kind: int8}, c, false)
		}
	}
	x, y := a.t.kind, b.t.kind
	f := pick(g.r, "(@ + @)", "(@ - @)", "(@ * @)", "(@ / @)", "(@ % @)")
	switch {
	case x.isInt() && y.isInt():
		return op(typ{kind: widest(x, y)}, f, a, b)
	case x.isExact() && y.isExact():
		return op(typ{kind: numeric, scale: varying}, f, a, b)
	case x.isNumber() && y.isNumber() && f != "(@ % @)":
		t := typ{kind: float8}
		if x == float4 && y == float4 {
			t.kind = float4
		}
		return op(t, f, a, b)
	case x == date && y.isInt():
		if y == int8 {
			b = op(typ{kind: int4}, "(@)::integer", b)
		}
		return op(typ{kind: date}, pick(g.r, "(@ + @)", "(@ - @)"), a, b)
	case x == date && y == date:
		return op(typ{kind: int4}, "(@ - @)", a, b)
	}
	return nil
}

// limitCondition compares a with what is like it.
func (g *gen) limitCondition(a *node, depth int) *node {
	t := typ{kind: boolean}
	beside := func() *node {
		b := g.like(a)
		if a.t.kind.isText() && b.lit.value != nil {
			g.oddText(b)
		}
		return b
	}
	switch g.r.IntN(6) {
	case 0:
		return op(t, "(@ IS "+pick(g.r, "", "NOT ")+"NULL)", a)
	case 1:
		return op(t, "(@ IN (@, @))", a, beside(), beside())
	case 2:
		return op(t, "(@ BETWEEN @ AND @)", a, beside(), beside())
	}
	b := beside()
	if depth > 0 && g.chance(30) {
		if c := g.limit(depth - 1); c.t.kind == a.t.kind || c.t.kind.isNumber() && a.t.kind.isNumber() || c.t.kind.isMoment() && a.t.kind.isMoment() {
			b = c
		}
	}
	return op(t, "(@ "+pick(g.r, "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")+" @)", a, b)
}

// limitsQuery asks what is computed at the limits of types, in one of the places where an
// expression can stand.
func (g *gen) limitsQuery(s *schema) *query {
	t := s.limits()
	src := &source{table: t, named: true}
	on := *g
	on.scope, on.reckless = []*source{src}, true
	key := &node{t: t.cols[0].t, col: t.cols[0], from: src}
	q := &query{from: []*source{src}}
	at := func() *node { return g.constant(typ{kind: int4}, fmt.Sprint(g.r.IntN(len(t.rows)+1)), false) }
	b := typ{kind: boolean}
	if g.chance(15) { // where a constant stands among the strings of a column
		n := op(typ{kind: int8}, "sum(@)", key)
		n.agg = true
		a := pick(g.r, on.columns(func(c *column) bool { return c.t.kind.isText() })...)
		if cond := on.limitCondition(a, 0); g.chance(30) {
			n.f, n.args = n.f+" FILTER (WHERE @)", append(n.args, cond)
		} else {
			q.where = []*node{cond}
		}
		q.out = []output{{n: n}}
		return q
	}
	switch g.r.IntN(5) { // few rows, so that not every question fails
	case 0, 1:
		q.where = append(q.where, op(b, "@ = @", key, at()))
	case 2:
		q.where = append(q.where, op(b, "@ IN (@, @)", key, at(), at()))
	case 3:
		q.where = append(q.where, op(b, "@ "+pick(g.r, "<", ">")+" @", key, at()))
	}
	e := on.limit(2)
	show := func(ns ...*node) {
		for _, n := range ns {
			q.out = append(q.out, output{n: n})
		}
	}
	aggregate := func(n *node) *node {
		fs := []string{"count(@)", "count(DISTINCT @)", "min(@)", "max(@)"}
		result := []typ{{kind: int8}, {kind: int8}, n.t, n.t}
		switch {
		case n.t.kind.isOther() && n.t.kind.entry().NoExtremes:
			fs, result = fs[:2], result[:2]
		case n.t.kind == boolean:
			fs, result = []string{"count(@)", "bool_and(@)", "bool_or(@)"}, []typ{{kind: int8}, b, b}
		case n.t.kind.isExact():
			fs = append(fs, "sum(@)", "avg(@)", "stddev(@)")
			result = append(result, typ{kind: numeric, scale: varying}, typ{kind: numeric, scale: varying}, typ{kind: numeric, scale: varying})
			if n.t.kind == int2 || n.t.kind == int4 {
				result[4] = typ{kind: int8}
			}
		}
		i := g.r.IntN(len(fs))
		a := op(result[i], fs[i], n)
		a.agg = true
		return a
	}
	switch g.r.IntN(9) {
	case 0, 1:
		show(key, e)
	case 2:
		show(aggregate(e), aggregate(on.limit(1)))
	case 3:
		q.where = append(q.where, on.limitCondition(e, 1))
		if g.chance(50) {
			q.where = append(q.where, on.limitCondition(on.limit(1), 0))
		}
		if g.chance(30) {
			slices.Reverse(q.where)
		}
		show(key)
	case 4:
		a := aggregate(pick(g.r, on.columns(func(*column) bool { return true })...))
		a.f += " FILTER (WHERE @)"
		a.args = append(slices.Clone(a.args), on.limitCondition(e, 1))
		show(a)
	case 5:
		q.group = []groupKey{{n: e}}
		count := op(typ{kind: int8}, "count(*)")
		count.agg = true
		show(count)
		if g.chance(70) {
			show(e)
		}
	case 6:
		a := aggregate(e)
		count := op(typ{kind: int8}, "count(*)")
		count.agg = true
		q.having = []*node{on.limitCondition(a, 0)}
		show(count, a)
	case 7:
		show(key)
		q.order = []sortKey{{n: e, tail: pick(g.r, "", " DESC")}, {n: key}}
		if g.chance(50) {
			q.limit = g.count(6)
		}
	default:
		// Only the arm that is taken is computed.
		show(key, op(e.t, pick(g.r, "CASE WHEN @ THEN @ END", "CASE WHEN NOT @ THEN @ END"), on.limitCondition(on.limit(1), 1), e))
	}
	if g.chance(12) {
		return g.limitsExist(t, q)
	}
	return q
}

// limitsExist asks whether a query has rows: the server computes its outputs, or does not.
func (g *gen) limitsExist(t *table, q *query) *query {
	outer := &source{table: t, named: true}
	key := &node{t: t.cols[0].t, col: t.cols[0], from: outer}
	if len(q.group) == 0 && len(q.having) == 0 && q.limit == nil && g.chance(40) {
		q.offset = g.constant(typ{kind: int4}, "0", false)
		q.offset.lit.param = false
	}
	exists := op(typ{kind: boolean}, pick(g.r, "EXISTS @", "NOT EXISTS @"), &node{t: typ{kind: boolean}, sub: q})
	return &query{from: []*source{outer}, out: []output{{n: key}}, where: []*node{exists}}
}
