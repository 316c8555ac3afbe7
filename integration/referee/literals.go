package referee

import (
	"regexp"
	"slices"
	"strings"
)

// oddTexts are texts that the input function of a kind reads in a way of its own, that mean
// something only on some versions or under some settings, or that it refuses.
var oddTexts = map[kind][]string{
	boolean: {"t", "T", " true ", "tr", "YES", "y", "on", "o", "of", "off", "1", "0", "2", "", "null", "truee"},
	numeric: {"NaN", "nan", " NaN ", "Infinity", "-Infinity", "inf", "+inf", "5.", ".5", "+.5", "1e5", "1E-3", "-1.5e+2", "1e", "1e400", "5e-400", "0x10", "1_000", "- 5", "--5", "", ".", "1e131072", "0.00000000000000000001", "99999999999999999999999999999999999999", "5 5"},
	float8:  {"NaN", "nan", "Infinity", "-infinity", "inf", "-inf", "+5", "5.", ".5", "1e400", "-1e400", "1e-400", "5e-324", "0x1p3", "0x10", "1_000", "", "1e", "-0", "- 5", "1.7976931348623159e308", "infinit"},
	date: {"today", "yesterday", "tomorrow", "Today", "epoch", "infinity", "-infinity", "+infinity", "Infinity ", "now", "J2451187", "20240229", "240229", "2024-2-9", "2024-02-30", "2024-13-01", "2023-02-29", "Feb 29 2024", "29-Feb-2024", "02/03/2024", "29/02/2024", "2/29/2024",
		"2024.060", "2024-060", "0044-03-15 BC", "2024-02-29 BC", "0000-01-01", "5874897-12-31", "5874898-01-01", "4714-11-24 BC", "4714-11-23 BC", "2024-02-29 12:00", "2024-02-29T12:00:00Z", "2024-02-29 25:00", "", "invalid", "allballs", "99-01-08", "2024-02-29x"},
	timestamp: {"today", "yesterday", "tomorrow", "now", "epoch", "infinity", "-infinity", "INFINITY", "2024-02-29", "2024-02-29 24:00:00", "2024-02-29 24:00:01", "2024-02-29 23:59:60", "2024-02-29 23:59:59.9999999", "2024-02-29 12:00 PM", "2024-02-29T12:00", "2024-02-29 12:00:00+05:30",
		"2024-02-29 12:00:00 America/New_York", "2024-02-29 12:00:00 EST", "20240229T120000", "Thu Feb 29 12:00:00 2024", "02/03/2024 10:00", "294276-12-31 23:59:59.999999", "294277-01-01", "4714-11-24 00:00:00 BC", "4714-11-23 23:59:59 BC", "2024-03-10 02:30:00", "today 12:00", "2024-02-29 12", "", "noon", "2024-02-29 12:00:00 ", "2024-02-29  12:00:00"},
	timeOfDay: {"allballs", "00:00", "24:00", "24:00:01", "23:59:60", "23:59:59.9999999", "12:00 PM", "12 PM", "1200", "12", "040506", "04:05:06.789-8", "04:05:06 PST", "12:00:00+05:30", "T12:00", "", "25:00", "-01:00", "12:00:", "2024-01-01 12:00"},
	text:      {"", " ", "  ", "a ", " a", "A", "a", "\t", "a\u0301", "\u00e1", "NULL", "e\u0301 "},
}

// moving are the texts whose value is the moment at which they are read.
var moving = []string{"now"}

func init() {
	for _, k := range []kind{int2, int4, int8} {
		oddTexts[k] = []string{"+5", " 5 ", "\t5\n", "5 ", "- 5", "-5", "", " ", "5.0", "5.", "1e3", "0x10", "0o17", "0b11", "1_000", "007", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "99999999999999999999999", "five", "5x", "NaN", "infinity"}
	}
	oddTexts[float4] = append(slices.Clone(oddTexts[float8]), "3.4028235e38", "3.4028236e38", "1e-45", "1e-46", "1e39")
	oddTexts[timestamptz] = oddTexts[timestamp]
	oddTexts[varchar], oddTexts[char] = oddTexts[text], oddTexts[text]
	for _, k := range others {
		oddTexts[k] = slices.Concat(k.entry().Samples, k.entry().Left, []string{"", " ", "0", "x", "-1", "infinity", "NULL"})
	}
}

// bareNumber is what SQL reads as a number without quotes.
var bareNumber = regexp.MustCompile(`^-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// oddValue returns a text for a constant of a kind that has the value s now.
func (g *gen) oddValue(k kind, s string) string {
	if k.isText() {
		if g.chance(25) {
			return pick(g.r, oddTexts[k]...)
		}
		return pick(g.r, s, s, s+" ", s+" ", s+"  ", " "+s, strings.TrimRight(s, " "), strings.TrimRight(s, " ")+" ", strings.ToUpper(s), strings.ToLower(s), s+"\u0301", s+"\x01", s+"z", strings.TrimSuffix(s, "a"))
	}
	if odd := oddTexts[k]; len(odd) > 0 && g.chance(45) {
		return pick(g.r, odd...)
	}
	return pick(g.r, s+" ", " "+s, "\t"+s+"\n", "+"+s, "-"+s, s+"0", s+"e0", "0"+s, strings.ToUpper(s), s+"\u00a0", s+" BC", s+".0")
}

// oddText gives a constant such a text, in any form.
func (g *gen) oddText(n *node) {
	v := g.oddValue(n.t.kind, *n.lit.value)
	n.lit.value = &v
	n.lit.form = pick(g.r, open, open, typed, casted, spelled)
	if n.t.kind == char { // a cast to it would be one to char(1)
		if n.lit.form = open; g.chance(60) {
			n.t.kind, n.t.n, n.lit.form = text, 0, pick(g.r, typed, casted, spelled)
		}
	}
	if n.t.kind.isExact() && bareNumber.MatchString(v) && g.chance(50) {
		n.lit.form = bare
	}
}

// oddLiterals gives some of the query's constants texts that are read in ways of their own,
// in every form.
func (g *gen) oddLiterals(q *query) {
	condition := map[*node]bool{}
	for _, list := range [][]*node{q.where, q.having} {
		for _, n := range list {
			n.walk(func(x *node) { condition[x] = true })
		}
	}
	shown := map[*node]bool{}
	for _, o := range q.out {
		o.n.walk(func(x *node) { shown[x] = true })
	}
	for _, n := range q.nodes() {
		if n.lit == nil || n.lit.value == nil || g.chance(35) {
			continue
		}
		was, k := *n.lit, n.t.kind
		g.oddText(n)
		// What moves may be compared with what does not, nothing more.
		if slices.Contains(moving, *n.lit.value) && (k == timeOfDay || k.isText() || !condition[n] || shown[n]) {
			*n.lit = was
		}
	}
}

// parameterTypes are what a client may declare a parameter as. 705 is unknown.
var parameterTypes = []uint32{0, 0, 705, 25, 1043, 1042, 16, 21, 23, 20, 1700, 1082, 1083, 1114, 1184, 19, 1186, 26}

// otherTypes returns types that the parameters of the same text might be declared with,
// too. Floats would make a sum depend on the order of rows.
func (g *gen) otherTypes(q *query, n int) []uint32 {
	list := slices.Clone(parameterTypes)
	for _, k := range others {
		list = append(list, k.oid())
	}
	if !slices.ContainsFunc(q.nodes(), func(n *node) bool { return n.agg }) {
		list = append(list, 700, 701)
	}
	var out []uint32
	for range n {
		out = append(out, pick(g.r, list...))
	}
	return out
}
