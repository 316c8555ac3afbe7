package referee

import (
	"fmt"
	"strings"
)

// outsideQuery asks what the generators do not make, much of which pgaccel leaves to PostgreSQL,
// errors among it.
func (g *gen) outsideQuery(s *schema) *query {
	t := pick(g.r, s.tables...)
	var names []string
	for _, c := range t.cols {
		names = append(names, c.name)
	}
	c := pick(g.r, names...)
	d := pick(g.r, names...)
	k := t.cols[0].name
	from := t.name
	number := k
	for _, x := range t.cols {
		if x.other == "" && x.t.kind.isNumber() && g.chance(60) {
			number = x.name
		}
	}
	forms := []string{
		"SELECT %c, row_number() OVER (ORDER BY %k, %c::text COLLATE \"C\") FROM %t ORDER BY %k",
		"SELECT %k, lag(%c) OVER (ORDER BY %k), lead(%c, 2) OVER (PARTITION BY %d ORDER BY %k DESC) FROM %t",
		"SELECT %k, lag(%n, 1, %n) OVER (ORDER BY %c, %k), lag(%k, -1, 7) OVER (ORDER BY %k DESC) FROM %t",
		"SELECT %k, first_value(%c) OVER (PARTITION BY %d ORDER BY %k), last_value(%c) OVER (ORDER BY %d, %k), last_value(%c) OVER (PARTITION BY %d) FROM %t",
		"SELECT %k, ntile(5) OVER (PARTITION BY %d ORDER BY %k), percent_rank() OVER (ORDER BY %c), cume_dist() OVER (PARTITION BY %d ORDER BY %c) FROM %t",
		"WITH w AS (SELECT * FROM %t) SELECT count(*), count(%c) FROM w",
		"SELECT count(DISTINCT %c) FROM %t",
		"SELECT %k FROM %t UNION ALL SELECT %k FROM %t",
		"SELECT %c, count(*) FROM %t GROUP BY ROLLUP (%c)",
		"SELECT count(*) FROM %t WHERE %k IN (SELECT %k FROM %t)",
		"SELECT count(*) FROM %t a FULL JOIN %t b ON a.%k = b.%k",
		"SELECT lower(%c::text), upper(%c::text), length(%c::text) FROM %t",
		"SELECT string_agg(%c::text, ',' ORDER BY %k) FROM %t",
		"SELECT DISTINCT ON (%k) %k, %c FROM %t ORDER BY %k, %c::text COLLATE \"C\"",
		"SELECT min(%n), max(%n), count(%c) FROM (SELECT * FROM %t ORDER BY %k) x",
		"SELECT %n / 0 FROM %t",
		"SELECT nonsense FROM %t",
		"SELECT %c FROM %t GROUP BY %d",
		"SELECT sum(%c::text) FROM %t",
		"SELECT * FROM %t WHERE %c = %d",
		"SELECT %c::int FROM %t",
		"SELECT count(*) FROM %t WHERE",
		"SELECT greatest(%n, 0), least(%n, 5) FROM %t",
		"SELECT count(*) FROM %t WHERE %c::text ~ '^a'",
		"SELECT count(*) FROM %t WHERE (%k, %c) IS NOT NULL",
		"SELECT max(%c), min(%c) FROM %t",
		"SELECT array_agg(%c ORDER BY %k) FROM %t",
		"SELECT * FROM %t LIMIT 0",
		"SELECT count(*) FROM %t WHERE %c IS NULL OFFSET 0",
		"SELECT %c, %d, count(*) FROM %t GROUP BY 1, 2",
		"SELECT count(*) FROM %t a, %t b WHERE a.%k < b.%k",
		"SELECT %k FROM %t ORDER BY %k FETCH FIRST 3 ROWS WITH TIES",
		"SELECT exists(SELECT 1 FROM %t WHERE %c IS NULL)",
		"SELECT t.* FROM %t t ORDER BY 1",
		"SELECT count(*), now() - now() FROM %t",
		"SELECT to_char(%n, '999.99') FROM %t",
		"SELECT round(%n::numeric, 1) FROM %t",
		"SELECT %k FROM %t WHERE %c BETWEEN SYMMETRIC %c AND %c",
		"SELECT count(*) FILTER (WHERE %c IS NOT NULL) FROM %t HAVING count(*) >= 0",
		"EXPLAIN (COSTS OFF) DELETE FROM %t", // that of a SELECT is answered here
		"TABLE %t",
		"SELECT count(*) FROM ONLY %t",
		"SELECT count(*) FROM %t t WHERE t IS NULL",
		"SELECT count(*) FROM %t WHERE NOT EXISTS (SELECT FROM %t x WHERE x.%k = %t.%k)",
		"SELECT pg_typeof(%c) FROM %t LIMIT 1",
		"SELECT length(%c) FROM %t", "SELECT -%c FROM %t", "SELECT %c || %d FROM %t",
	}
	f := pick(g.r, forms...)
	f = strings.NewReplacer("%c", c, "%d", d, "%k", k, "%t", from, "%n", number).Replace(f)
	return &query{raw: f, from: []*source{{table: t}}}
}

// settings are what a session may set before it asks, with the share of 100 of each.
// Most leave queries accelerated.
func randomSettings(g *gen, schema string) (list []string, utc bool) {
	list = append(list, fmt.Sprintf("SET search_path = %s", pick(g.r, schema, schema+", public", "public, "+schema, "pg_catalog, "+schema)))
	utc = true
	switch n := g.r.IntN(100); {
	case n < 60:
		list = append(list, "SET TimeZone = "+quote(pick(g.r, "UTC", "UTC", "Etc/UTC", "GMT")))
	default:
		list = append(list, "SET TimeZone = "+quote(pick(g.r, "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "<+03>-03", "UTC+5")))
		utc = false
	}
	if g.chance(50) {
		list = append(list, "SET DateStyle = "+quote(pick(g.r, "ISO, MDY", "ISO, DMY", "SQL, MDY", "SQL, DMY", "German", "Postgres, MDY", "Postgres, DMY")))
	}
	if g.chance(20) {
		list = append(list, "SET extra_float_digits = "+pick(g.r, "1", "1", "1", "1", "1", "1", "2", "2", "3", "3", "3", "3", "3", "3", pick(g.r, "0", "-4")))
	}
	switch n := g.r.IntN(100); {
	case n < 50: // what few rows make cheap is not left to the server
		list = append(list, "SET pgaccel.mode = 'force'")
	case n < 53:
		list = append(list, "SET pgaccel.mode = "+quote(pick(g.r, "auto", "off")))
	}
	if g.chance(10) {
		list = append(list, "SET IntervalStyle = "+pick(g.r, "iso_8601", "sql_standard"))
	}
	return list, utc
}
