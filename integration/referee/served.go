package referee

import (
	"strconv"
	"strings"
)

// served are constants that pgaccel leaves to the server to compute, most of them. The two sessions ask
// one after the other: of the present moment no more is used than the day. D, T and Z are values of
// date, timestamp and timestamptz, N a small number.
var served = map[kind][]string{
	date: {"current_date", "now()::date", "(now() AT TIME ZONE 'Asia/Tokyo')::date", "(current_date - N)", "(current_date - (current_date - date 'D'))",
		"make_date(2024, 2, N)", "to_date('2024-0N', 'YYYY-MM')", "(date 'D' + interval 'N days')::date", "date_trunc('month', date 'D')::date",
		"(timestamp 'T' AT TIME ZONE 'Europe/Berlin')::date", "(timestamptz 'Z' AT TIME ZONE 'America/New_York')::date"},
	timestamp: {"date_trunc('month', timestamp 'T') - interval 'N months'", "(timestamptz 'Z' AT TIME ZONE 'America/New_York')", "(timestamp 'T' - N * interval '1 day 02:00')",
		"(date_trunc('day', localtimestamp) - interval 'N days')", "date_bin(interval '15 minutes', timestamp 'T', timestamp '2001-01-01')", "(date 'D' + time '10:30')",
		"(date_trunc('day', localtimestamp) - (date_trunc('day', localtimestamp) - timestamp 'T'))", "(date 'D' - interval '1 month')", "(date 'D' + make_interval(days => N, hours => 5))",
		"make_timestamp(2024, 2, 29, N, 30, 1.5)", "(timestamp 'T' + (timestamp 'T' - timestamp '2020-01-01 00:00:00') / N)", "(date_trunc('year', now()) AT TIME ZONE 'UTC')"},
	timestamptz: {"(timestamp 'T' AT TIME ZONE 'Europe/Berlin')", "date_trunc('month', now())", "date_trunc('week', timestamptz 'Z', 'Asia/Kathmandu')", "to_timestamp(1700000000 + N)",
		"(date_trunc('day', now()) - interval 'N days')", "(date_trunc('day', now()) - (date_trunc('day', now()) - timestamptz 'Z'))", "(timestamptz 'Z' + interval '1 month' * N)",
		"make_timestamptz(2024, 2, N, 1, 2, 3.5, 'Europe/Berlin')", "date_trunc('day', current_date)", "(timestamptz 'Z' - age(timestamp 'T', timestamp '2020-01-01 00:00:00'))"},
	int4:    {"extract(day from date 'D')::int", "(current_date - current_date + N)", "date_part('month', timestamp 'T')::int", "length(to_char(timestamp 'T', 'FMMonth'))", "(date 'D' - date_trunc('month', date 'D')::date)"},
	numeric: {"extract(month from timestamp 'T' + interval 'N days')", "extract(year from now())", "extract(doy from current_date)"},
	text:    {"to_char(date 'D', 'YYYY-MM')", "to_char(date_trunc('day', now()), 'YYYY')", "to_char(timestamp 'T', 'Dy, DD Mon')", "split_part(to_char(date 'D', 'DD.MM.YYYY'), '.', N)"},
}

// served makes such a constant, nil where there is none of the kind.
func (g *gen) served(k kind) *node {
	forms := served[k]
	if len(forms) == 0 {
		return nil
	}
	t := typ{kind: k, coll: "*"}
	f := pick(g.r, forms...)
	for _, v := range []struct {
		name string
		kind kind
	}{{"'D'", date}, {"'T'", timestamp}, {"'Z'", timestamptz}} {
		if strings.Contains(f, v.name) {
			f = strings.ReplaceAll(f, v.name, quote(g.valueOf(typ{kind: v.kind})))
		}
	}
	f = replaceNumber(f, strconv.Itoa(1+g.r.IntN(9)))
	n := op(t, f)
	switch k {
	case numeric:
		n.t.prec, n.t.scale = 4, 0
		n.within(-9999, 9999)
	case int4:
		n.within(-400, 400)
	}
	return n
}

// moments makes a constant of the server's to be compared with a.
func (g *gen) moments(a *node) *node {
	k := a.t.kind
	if k.isMoment() && g.chance(40) {
		k = pick(g.r, date, timestamp, timestamptz)
	}
	if k == numeric || k.isText() && !g.bytewise(a.t) {
		return nil
	}
	return g.served(k)
}

// replaceNumber puts a number in the place of each N that is no part of a word.
func replaceNumber(f, number string) string {
	letter := func(i int) bool {
		return i >= 0 && i < len(f) && (f[i] >= 'A' && f[i] <= 'Z' || f[i] >= 'a' && f[i] <= 'z' || f[i] == '_')
	}
	var b strings.Builder
	for i := range len(f) {
		if f[i] == 'N' && !letter(i-1) && !letter(i+1) {
			b.WriteString(number)
		} else {
			b.WriteByte(f[i])
		}
	}
	return b.String()
}
