package integration

import (
	"strings"
	"testing"
)

// TestArrayParameters: = ANY and <> ALL of arrays that are parameters, declared and not, in text and binary, and of
// literals. What is read is answered here.
func TestArrayParameters(t *testing.T) {
	s := privateStack(t, `CREATE TABLE members (id bigint PRIMARY KEY, n int, s smallint, t text, v varchar(20), c char(3), x numeric(8,2));
INSERT INTO members SELECT i, nullif(i % 50, 7), i % 9, (ARRAY['a','b c','','NULL','q"uo\te','ü,{}','D''A',NULL])[i % 8 + 1], 'v' || i % 13, 'c' || i % 4, i / 4.0 FROM generate_series(1, 3000) i;
ANALYZE`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	many := "{" + strings.Repeat("5,6,", 500) + "44}"
	for _, c := range []struct {
		sql, typ string
		values   []string
		here     bool
	}{
		{"SELECT count(*), sum(id) FROM members WHERE n = ANY($1)", "unknown", []string{"{1,2,3}", "{7}", "{1,NULL}", "{NULL}", many}, true},
		{"SELECT count(*), sum(id) FROM members WHERE n = ANY($1)", "int4[]", []string{"{1,2,3}", "{-1,NULL,48}"}, true},
		{"SELECT count(*), sum(id) FROM members WHERE n = ANY($1)", "int8[]", []string{"{1,2,3,9223372036854775807}"}, true},
		{"SELECT count(*), sum(id) FROM members WHERE s = ANY($1::bigint[])", "unknown", []string{"{1,2,3}"}, true},
		{"SELECT count(*), sum(id) FROM members WHERE id <> ALL($1)", "unknown", []string{"{1,2,3}", "{1,NULL}", many}, true},
		{"SELECT count(*), sum(id) FROM members WHERE NOT n = ANY($1) AND id < 2000", "unknown", []string{"{1,2,3}", "{1,NULL}"}, true},
		{"SELECT t, count(*) FROM members WHERE t = ANY($1) GROUP BY t ORDER BY t COLLATE \"C\"", "unknown", []string{`{a,"b c"}`, `{"","NULL"}`, `{NULL,a}`, `{"q\"uo\\te","ü,{}",D'A}`}, true},
		{"SELECT count(*) FROM members WHERE t = ANY($1)", "varchar[]", []string{`{a,"b c"}`}, true},
		{"SELECT count(*) FROM members WHERE v = ANY($1)", "text[]", []string{`{v1,v2,v99}`}, true},
		{"SELECT count(*) FROM members WHERE v = ANY($1)", "unknown", []string{`{v1,v2,v99}`}, true},
		{"SELECT t, n = ANY($1) AS isin, count(*) FROM members GROUP BY t, 2 ORDER BY 3, t COLLATE \"C\", 2", "unknown", []string{"{1,2}", "{1,NULL}"}, true},
		{"SELECT count(*) FROM members a JOIN members b ON a.id = b.id AND b.n = ANY($1) WHERE a.n = ANY($1)", "int4[]", []string{"{1,2}"}, true},
		{"SELECT count(*) FROM members WHERE id IN (SELECT id FROM members WHERE n = ANY($1))", "unknown", []string{"{3,4}"}, true},
		{"SELECT count(*) FROM members WHERE n = ANY('{1,2,3}') AND t <> ALL('{a,\"b c\"}'::text[]) AND id = ANY('{ 1,52 ,3}'::bigint[])", "", []string{""}, true},
		{"SELECT count(*) FROM members WHERE n = ANY($1)", "unknown", []string{"{}", "{{1,2},{3,4}}", "[0:1]={1,2}", "{1,x}", "1", "{1"}, false},
		{"SELECT count(*) FROM members WHERE n = ANY($1)", "text", []string{"{1}"}, false},
		{"SELECT count(*) FROM members WHERE c = ANY($1)", "unknown", []string{"{c1}"}, false},
		{"SELECT count(*) FROM members WHERE x = ANY($1)", "int8[]", []string{"{1,2}"}, false},
		{"SELECT count(*) FROM members WHERE n = ANY($1) AND s = $1", "unknown", []string{"{1}"}, false},
		{"SELECT count(*) FROM members WHERE n = ANY('{1,NULL}')", "", []string{""}, false},
		{"SELECT count(*) FROM members WHERE n = ANY('{1,,2}')", "", []string{""}, false},
	} {
		for _, v := range c.values {
			for _, p := range protocols[1:] {
				st := corpusStatement{name: c.sql, sql: c.sql}
				if c.typ != "" {
					st.types, st.values = []string{c.typ}, []string{v}
				}
				values, oids, formats := corpusParams(t, direct, st, p.format)
				var want, got answer
				want.read(direct.ExecParams(t.Context(), c.sql, values, oids, formats, p.format))
				check := func() {
					got.read(proxy.ExecParams(t.Context(), c.sql, values, oids, formats, p.format))
					if got.String() != want.String() || c.here && want.err != "" {
						t.Errorf("%s with %.40q of %s (%s): %s%s", c.sql, v, c.typ, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				}
				if c.here {
					s.accelerates(t, 1, check)
				} else {
					s.forwardsAll(t, check)
				}
			}
		}
	}
	if t.Failed() {
		t.Log(reasons(t, s))
	}
}
