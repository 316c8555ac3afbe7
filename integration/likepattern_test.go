package integration

import "testing"

// TestLikePatterns: LIKE with ESCAPE, SIMILAR TO, and both with patterns put together of literals and parameters.
func TestLikePatterns(t *testing.T) {
	s := privateStack(t, `CREATE TABLE texts (id int PRIMARY KEY, t text, v varchar(20));
INSERT INTO texts SELECT i, (ARRAY['50%','5\0%','a_b','aXb','','%','\','käse','日本',NULL,'x!y','!%'])[i % 12 + 1], 'v' || i FROM generate_series(1, 600) i;
ANALYZE`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, c := range []struct {
		sql, typ string
		values   []string
		here     bool
	}{
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE '%\\%' ESCAPE ''", "", []string{""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE '%!%' ESCAPE '!'", "", []string{""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t NOT LIKE 'a@_b' ESCAPE '@'", "", []string{""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE '%ä%' ESCAPE 'ä'", "", []string{""}, true}, // a literal % at the end
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE 'a' ESCAPE 'xy'", "", []string{""}, false},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE NULL ESCAPE 'x'", "", []string{""}, false},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE $1 ESCAPE ''", "unknown", []string{"%\\%", "50%", "%ä%", ""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE lower(v) LIKE $1 ESCAPE '\\'", "varchar", []string{"v1%", "v_"}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE '%' || $1 || '%'", "unknown", []string{"a", "_", "\\%", "本", ""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE v ILIKE $1 || '%'", "text", []string{"V1", "v_"}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE '%' || $1", "unknown", []string{"\\"}, false}, // ends with the escape
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE '%' || $1", "int4", []string{"1"}, false},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE 'a' || '%'", "", []string{""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t LIKE v || '%'", "", []string{""}, false},
		{"SELECT count(*), min(id) FROM texts WHERE t SIMILAR TO '%a(\\_|X)b'", "", []string{""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t NOT SIMILAR TO '[5!]%'", "", []string{""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE v SIMILAR TO 'v[0-9]{2}' AND t SIMILAR TO '(a|5)%@%' ESCAPE '@'", "", []string{""}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t SIMILAR TO $1", "unknown", []string{"a_b", "%x%", "(a|k)%", "", "\\%", "%.%"}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t SIMILAR TO $1 || '%' ESCAPE ''", "text", []string{"a", "5"}, true},
		{"SELECT count(*), min(id) FROM texts WHERE t SIMILAR TO 'a**'", "", []string{""}, false},
		{"SELECT count(*), min(id) FROM texts WHERE t SIMILAR TO 'a' ESCAPE 'xy'", "", []string{""}, false},
		{"SELECT count(*), min(id) FROM texts WHERE t SIMILAR TO v", "", []string{""}, false},
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
						t.Errorf("%s with %q of %s (%s): %s%s", c.sql, v, c.typ, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
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
