package integration

import "testing"

// TestPostgresFinishesConditions has conditions that are refused, beside others, over columns of types that are only kept.
func TestPostgresFinishesConditions(t *testing.T) {
	s := privateStack(t, `CREATE TABLE docs (id int PRIMARY KEY, day date, n numeric(10,2), words tsvector, ask tsquery, j jsonb, at point, area box, shape polygon, net inet, sub cidr, r int4range,
  spent money, took interval, o oid, t text, c char(4));
INSERT INTO docs SELECT i, date '2024-01-01' + i % 60, i / 4.0, to_tsvector('simple', 'cat' || i % 5 || ' dog' || i % 3), ('cat' || i % 4 || ' & !dog' || i % 2)::tsquery,
  jsonb_build_object('a', i % 7, 'b', ARRAY[i % 3, i % 5]), point(i % 10, i % 13), box(point(i % 10, i % 11), point(i % 5, 3)), polygon(box(point(0, 0), point(i % 5, 3))),
  '10.0.0.0'::inet + i, set_masklen(('10.' || i % 8 || '.0.0')::cidr, 16), int4range(i % 9, i % 9 + i % 4), (i % 11)::numeric::money, i % 3 * interval '1 month' + i % 61 * interval '1 day',
  i % 5, 't' || i % 20, 'c' || i % 3 FROM generate_series(1, 3000) i;
INSERT INTO docs (id) VALUES (9001), (9002);
INSERT INTO docs (id, j) VALUES (9003, jsonb_build_object('a', (repeat('9', 131072) || '.5')::numeric));
CREATE TABLE unlike (id int PRIMARY KEY, flags bit(4), label name, x xml);
INSERT INTO unlike SELECT i, (i % 16)::bit(4), 'n' || i % 3, '<a>1</a>' FROM generate_series(1, 300) i;
CREATE TABLE days (day date PRIMARY KEY, weight int);
INSERT INTO days SELECT date '2024-01-01' + i, i % 4 FROM generate_series(0, 50) i;
VACUUM ANALYZE`)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	compare := func(sql string, format []int16) {
		t.Helper()
		want := ask(t, direct, sql, format)
		if got := ask(t, proxy, sql, format); want.err != "" || got.String() != want.String() {
			t.Errorf("%s: %s%s", sql, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
		}
	}
	for _, sql := range []string{
		"SELECT count(*) FROM docs WHERE words @@ 'cat1 & dog2'",
		"SELECT count(*), sum(n), min(day) FROM docs WHERE day > '2024-02-01' AND words @@ 'cat1 | dog2'::tsquery AND n > 10",
		"SELECT id, words, ask FROM docs WHERE words @@ 'cat1 & dog2' AND id < 100 ORDER BY id",
		"SELECT * FROM docs WHERE j @? '$.b[*] ? (@ > 3)' AND id < 50 ORDER BY id",
		"SELECT day, count(*) FROM docs WHERE j @@ '$.a == 3' GROUP BY day ORDER BY day",
		"SELECT id FROM docs WHERE NOT (j @? '$.a ? (@ > 3)' OR ask <@ 'cat1 & dog1') ORDER BY id",
		"SELECT id, at, area, shape FROM docs WHERE (at << '(3,3)' OR area && '((1,1),(2,2))') AND id < 200 ORDER BY id",
		"SELECT id, net, sub FROM docs WHERE net << '10.0.1.0/24' AND sub >>= '10.3.0.0/16' ORDER BY id",
		"SELECT count(*) FROM docs WHERE r @> 4 AND r && '[3,6)' AND day < '2024-03-01'",
		"SELECT count(*) FROM docs WHERE o = 3 AND t ~<~ 't15' AND c ~>=~ 'c1'",
		"SELECT d.id, w.weight FROM docs d JOIN days w USING (day) WHERE d.words @@ 'cat1' AND w.weight > 1 ORDER BY d.id",
		"SELECT count(*) FROM docs WHERE words @@ 'nothing'",
		"SELECT DISTINCT spent FROM docs WHERE words @@ 'cat1' ORDER BY spent",
		"SELECT upper(r), lower(r), at[0], quote_literal(spent::text) FROM docs WHERE id < 40 ORDER BY id",
		"SELECT *, quote_literal(t) AS q FROM docs WHERE id < 20 ORDER BY id",
		"SELECT flags, quote_literal(id::text) FROM unlike ORDER BY id",
		"SELECT * FROM (SELECT id, took, words FROM docs WHERE id < 40) q ORDER BY id, quote_literal(id::text)",
	} {
		for _, p := range protocols {
			s.inPart(t, 1, func() { compare(sql, p.format) })
		}
		if t.Failed() {
			t.Fatal(sql, reasons(t, s))
		}
	}
	// What may fail, or has several forms of one value, is PostgreSQL's.
	s.forwardsAll(t, func() {
		before := s.queries(t, "partial")
		for _, sql := range []string{
			"SELECT count(*) FROM docs WHERE j @? '$.a.datetime() ? (@ > 3)'",
			`SELECT count(*) FROM docs WHERE j @? '$ ? ("2024-01-01".DateTime() < "2024-01-01 00:00:00+01".DATETIME())' AND day > '2030-01-01'`,
			"SELECT count(*) FROM docs WHERE j @? '$.a.CEILING()' AND day > '2030-01-01'",
			"SELECT count(*) FROM docs WHERE j @? '(-$.a).floor()' AND day > '2030-01-01'",
			"SELECT count(*) FROM docs WHERE j @? '$.a.decimal(0)' AND day > '2030-01-01'", // since 17
			"SELECT count(*) FROM docs WHERE at <@ '((0,0),9)'::circle AND id < 9",
			// A column of USING is neither table's, whose names stand beside it.
			"SELECT w.day, day, d.id FROM docs d LEFT JOIN days w USING (day) WHERE d.words @@ 'cat1' ORDER BY d.id",
			"SELECT w.day, d.day, quote_literal(day::text) FROM docs d FULL JOIN days w USING (day) ORDER BY d.id, w.day",
			"SELECT day, quote_literal(w.day::text), d.id FROM days w NATURAL RIGHT JOIN docs d ORDER BY d.id",
			"SELECT day, count(w.day) FROM days w FULL JOIN docs d USING (day) WHERE d.words @@ 'cat1' OR w.weight < 0 GROUP BY day ORDER BY day",
			"SELECT w.day AS day, quote_literal(count(*)::text) FROM docs d FULL JOIN days w USING (day) GROUP BY day",
			"SELECT w.day AS day, count(d.id) FROM docs d FULL JOIN days w USING (day) WHERE d.words @@ 'cat1' GROUP BY day",
			"SELECT count(*) FROM docs WHERE words @@ to_tsquery('simple', 'cat1')",
			"SELECT took, count(*) FROM docs WHERE words @@ 'cat1' GROUP BY took ORDER BY took",
			"SELECT id FROM docs WHERE words @@ 'cat1' ORDER BY took LIMIT 3",
			"SELECT id FROM docs WHERE words @@ 'cat1' AND 1 / (id - 4) > 5 - ln(id) ORDER BY id",
			"SELECT label, quote_literal(id::text) FROM unlike ORDER BY id",
			"SELECT x, quote_literal(id::text) FROM unlike ORDER BY id",
		} {
			want := ask(t, direct, sql, nil)
			if got := ask(t, proxy, sql, nil); got.String() != want.String() || got.err != want.err {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
			if n := s.queries(t, "partial"); n != before {
				t.Errorf("%s: PostgreSQL has run a part of it", sql)
				before = n
			}
		}
	})
}
