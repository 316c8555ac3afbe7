package integration

import (
	"strings"
	"testing"
)

// setFunctionSchema has arrays and documents: null, empty, of several dimensions, with nulls, and alike.
const setFunctionSchema = `CREATE TABLE post (id int PRIMARY KEY, g int NOT NULL, tags text[], nums int[] NOT NULL, prices numeric[], days date[], js jsonb[], j jsonb NOT NULL, o jsonb, s jsonb, title text NOT NULL, w varchar(9)[], f float8[], z timestamptz[], u uuid[], r json NOT NULL, ro json);
INSERT INTO post SELECT i, i % 7,
	(ARRAY['{a,b,c}', '{}', NULL, '{b,NULL,b}', '{{x,y},{z,NULL}}', '[0:1]={q,r}', '{"é","a b",""}', '{a}'])[i % 8 + 1]::text[],
	(ARRAY['{1,2,3}', '{}', '{5,NULL,-7}', '{{1,2},{3,4}}', '{9}'])[i % 5 + 1]::int[],
	(ARRAY['{1.5,2.25,NULL}', '{-12.5,1e10,0.000}', NULL, '{7}'])[i % 4 + 1]::numeric[],
	ARRAY[date '2024-01-01' + i % 9, NULL, date '2024-02-01'],
	ARRAY['{"a": 1}'::jsonb, 'null', NULL],
	(ARRAY['[1, "a", null, {"k": [1, 2]}, [3]]', '[]', '["x", "x", "A\tb\u00e9"]', '[1.50, true, "null"]'])[i % 4 + 1]::jsonb,
	(ARRAY['{"a": 1, "bb": "x", "c": null}', NULL, '{}', '{"a": {"d": [1]}, "e\"f": true}'])[i % 4 + 1]::jsonb,
	jsonb_build_object('items', (ARRAY['[{"sku": "p1", "n": 2}, {"sku": "p2", "n": 1}]', '[]', '[{"sku": "p3"}]'])[i % 3 + 1]::jsonb, 'one', i % 2),
	'title ' || i % 11, ARRAY['v' || i % 3, NULL],
	(ARRAY['{0,-0,NaN}', '{Infinity,1.5,1.5}', '{0.1}'])[i % 3 + 1]::float8[], ARRAY[timestamptz '2024-03-31 00:30:00+00' + i % 50 * interval '30 minutes'], ARRAY[md5((i % 20)::text)::uuid, NULL],
	(ARRAY['[1 , "a" ,null, {"k" : [1,2], "k":3} , [ 3]]', ' [ ]', '["x","x", "A\tb\u00e9 \/"]', '[1.50, true ,1e3, "null", "\""]'])[i % 4 + 1]::json,
	(ARRAY['{"b": 1, "a":"x" ,"b" : null,"": [ 1 ]}', NULL, ' { } ', '{"a":  {"d":[1]}, "e\"f" : true, "\u00e9": "\u00e9\n"}'])[i % 4 + 1]::json
	FROM generate_series(1, 3000) i;
CREATE TABLE tag (name text PRIMARY KEY, kind text NOT NULL);
INSERT INTO tag VALUES ('a', 'vowel'), ('b', 'consonant'), ('x', 'other'), ('é', 'vowel');
CREATE VIEW cut AS SELECT id, unnest(tags) AS tag FROM post;
CREATE VIEW tagged AS SELECT p.id, p.g, t.tag FROM post p, unnest(p.tags) AS t(tag);
VACUUM ANALYZE;`

// setFunctionStatements are accelerated.
var setFunctionStatements = []string{
	"SELECT p.id, x FROM post p, unnest(p.tags) AS x ORDER BY 1, 2",
	"SELECT x, count(*), sum(p.id), min(p.title) FROM post p, unnest(p.tags) AS x GROUP BY x ORDER BY 1",
	"SELECT count(*), count(x) FROM post p, unnest(p.tags) AS x",
	"SELECT p.id, t.x, t.n FROM post p CROSS JOIN LATERAL unnest(p.tags) WITH ORDINALITY AS t(x, n) ORDER BY 1, 3",
	"SELECT p.id, t.x, t.ordinality FROM post p CROSS JOIN unnest(p.nums) WITH ORDINALITY t(x) WHERE t.ordinality = 2 ORDER BY 1",
	"SELECT p.id, x FROM post p LEFT JOIN LATERAL unnest(p.tags) x ON true WHERE p.id < 100 ORDER BY 1, 2",
	"SELECT p.id, x FROM post p LEFT JOIN LATERAL unnest(p.tags) x ON x > 'a' WHERE p.g = 3 ORDER BY 1, 2",
	"SELECT p.g, count(x), count(*) FROM post p LEFT JOIN unnest(p.nums) x ON x > 1 GROUP BY p.g ORDER BY 1",
	"SELECT count(*) FROM post p WHERE EXISTS (SELECT 1 FROM unnest(p.tags) x WHERE x = 'b')",
	"SELECT count(*) FROM post p WHERE NOT EXISTS (SELECT 1 FROM unnest(p.tags) x WHERE x LIKE 'a%')",
	"SELECT p.id FROM post p WHERE EXISTS (SELECT 1 FROM unnest(p.tags) x JOIN tag t ON t.name = x WHERE t.kind = 'vowel') ORDER BY 1",
	"SELECT p.g, (SELECT count(*) FROM unnest(p.nums) x WHERE x > 1), (SELECT sum(x) FROM unnest(p.nums) x) FROM post p WHERE p.id < 50 ORDER BY p.id",
	"SELECT p.id, (SELECT max(x) FROM unnest(p.prices) x), (SELECT string_agg(x, ',' ORDER BY n) FROM unnest(p.tags) WITH ORDINALITY u(x, n)) FROM post p WHERE p.id < 50 ORDER BY p.id",
	"SELECT t.kind, count(*) FROM post p, unnest(p.tags) x, tag t WHERE t.name = x GROUP BY t.kind ORDER BY 1",
	"SELECT p.id, x FROM post p, unnest(p.prices) x WHERE p.id < 40 ORDER BY 1, 2",
	"SELECT x, count(*) FROM post p, unnest(p.days) x WHERE x >= '2024-01-05' GROUP BY 1 ORDER BY 1",
	"SELECT p.id, x, x ->> 'a' FROM post p, unnest(p.js) x WHERE p.id < 9 ORDER BY 1, 3",
	"SELECT x, count(*) FROM post p, unnest(p.w) x GROUP BY 1 ORDER BY 1",
	"SELECT p.id, x, y FROM post p, unnest(p.tags) x, unnest(p.nums) y WHERE p.id < 60 ORDER BY 1, 2, 3",
	"SELECT p.id, e FROM post p, jsonb_array_elements(p.j) e WHERE p.id < 30 ORDER BY 1, e::text",
	"SELECT p.id, e.value, e.ordinality FROM post p, jsonb_array_elements_text(p.j) WITH ORDINALITY e ORDER BY 1, 3",
	"SELECT value, count(*) FROM post, jsonb_array_elements_text(j) GROUP BY 1 ORDER BY 1",
	"SELECT i ->> 'sku', sum((i ->> 'n')::int), count(*) FROM post p, jsonb_array_elements(p.s -> 'items') i GROUP BY 1 ORDER BY 1",
	"SELECT i ->> 'sku', count(*) FROM post p, jsonb_array_elements(p.s -> 'items') AS i WHERE (i ->> 'n')::int > 1 GROUP BY 1 ORDER BY 1",
	"SELECT p.id, k.key, k.value FROM post p, jsonb_each(p.o) k WHERE p.id < 40 ORDER BY 1, 2",
	"SELECT key, value, count(*) FROM post p, jsonb_each_text(p.o) GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT p.id, k, v FROM post p, LATERAL jsonb_each_text(p.o) AS x(k, v) WHERE k <> 'a' ORDER BY 1, 2",
	"SELECT k, count(*) FROM post p, jsonb_object_keys(p.o) k GROUP BY k ORDER BY k",
	"SELECT k, count(*) FROM post p, jsonb_object_keys(p.s) WITH ORDINALITY AS t(k, n) WHERE n = 1 GROUP BY k ORDER BY k",
	"SELECT p.id, c FROM post p, jsonb_array_elements(p.j) e, jsonb_array_elements(e -> 'k') c WHERE p.id < 100 AND e @> '{\"k\": [1]}' ORDER BY 1, c::text",
	"SELECT count(*) FROM post p WHERE EXISTS (SELECT 1 FROM jsonb_array_elements_text(p.j) e WHERE e = 'x')",
	"SELECT tag, count(*) FROM tagged GROUP BY tag ORDER BY 1",
	"SELECT q.x, count(*) FROM (SELECT id, unnest(tags) AS x FROM post) q WHERE q.x <> 'a' GROUP BY 1 ORDER BY 1",
	"SELECT word, count(*) FROM post p, unnest(string_to_array(p.title, ' ')) word GROUP BY 1 ORDER BY 1",
	"SELECT p.id, (SELECT e FROM jsonb_array_elements_text(p.j) e LIMIT 1), (SELECT x FROM unnest(p.nums) x OFFSET 1 LIMIT 1) FROM post p WHERE p.id < 50 ORDER BY 1",
	"SELECT p.id, x FROM post p, unnest(p.f) WITH ORDINALITY u(x, n) WHERE p.id < 40 ORDER BY 1, n",
	"SELECT date_trunc('hour', x), count(*) FROM post p, unnest(p.z) x GROUP BY 1 ORDER BY 1",
	"SELECT x, count(*) FROM post p, unnest(p.u) x GROUP BY 1 ORDER BY 1",
	"SELECT q.unnest, count(*) FROM (SELECT unnest(tags) FROM post WHERE g < 4) q GROUP BY 1 ORDER BY 1",
	"SELECT c.tag, count(*) FROM cut c WHERE c.id > 100 GROUP BY 1 ORDER BY 1",
	"SELECT count(*) FROM post p WHERE EXISTS (SELECT unnest(p.tags))",
	"SELECT count(*) FROM post p WHERE jsonb_typeof(p.o) = 'object' AND EXISTS (SELECT 1 FROM jsonb_object_keys(p.o) k WHERE k = 'a')",
	"SELECT p.id, count(e) FROM post p LEFT JOIN LATERAL jsonb_array_elements(p.j) e ON e @> '1' WHERE p.id < 90 GROUP BY p.id ORDER BY 1",
	"SELECT a.id, b.id FROM post a, unnest(a.tags) x, post b, unnest(b.tags) y WHERE x = y AND a.id < 20 AND b.id < 20 AND a.id < b.id ORDER BY 1, 2",
	"SELECT unnest(tags), count(*) FROM post GROUP BY 1 ORDER BY 1",
	"SELECT unnest(tags) AS t, count(*) FROM post GROUP BY t HAVING count(*) > 400 ORDER BY 2, 1",
	"SELECT id, unnest(nums) FROM post WHERE g = 2 ORDER BY id",
	"SELECT id, unnest(tags) AS x FROM post ORDER BY id DESC LIMIT 20",
	"SELECT DISTINCT unnest(tags) FROM post ORDER BY 1",
	"SELECT upper(unnest(tags)) AS u, count(*) FROM post GROUP BY 1 ORDER BY 1",
	"SELECT jsonb_array_elements_text(j) AS e, count(*) FROM post GROUP BY e ORDER BY e",
	"SELECT jsonb_object_keys(o), min(id) FROM post GROUP BY 1 ORDER BY 1",
	"SELECT *, unnest(nums) FROM (SELECT id, nums FROM post) p WHERE id < 20 ORDER BY id",
	"SELECT count(*) FROM post WHERE 'b' IN (SELECT unnest(tags))",
	"SELECT count(*) FROM tag WHERE name IN (SELECT unnest(tags) FROM post WHERE g = 1)",
	"SELECT unnest(tags), unnest(nums), id FROM post WHERE id < 90 ORDER BY id",
	"SELECT id, unnest(tags) AS t, unnest(nums) AS n, unnest(prices) AS p, g FROM post ORDER BY id DESC LIMIT 33",
	"SELECT unnest(tags), unnest(nums), count(*), sum(id) FROM post GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT unnest(nums) AS n, jsonb_array_elements_text(j) AS e, min(title) FROM post GROUP BY 2, 1 HAVING count(*) > 100 ORDER BY 2, 1",
	"SELECT DISTINCT unnest(tags), jsonb_object_keys(o) FROM post ORDER BY 1, 2",
	"SELECT q.t, q.n, count(*), count(q.t) FROM (SELECT id, g, unnest(tags) AS t, unnest(nums) AS n FROM post WHERE g < 4) q WHERE q.n IS NULL OR q.n > 1 GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT q.id, q.t, k.kind FROM (SELECT id, unnest(tags) AS t, unnest(nums) AS n FROM post) q LEFT JOIN tag k ON k.name = q.t WHERE q.n = 2 ORDER BY 1, 2",
	"SELECT g, upper(unnest(tags)) || '-' AS u, unnest(nums) * 2 AS n, unnest(tags) AS again FROM post WHERE id < 60 ORDER BY id",
	"SELECT unnest(tags), unnest(tags), unnest(w), unnest(days) FROM post WHERE id < 60 ORDER BY id",
	"SELECT id, unnest(js) ->> 'a', jsonb_array_elements(j) ->> 'k' FROM post WHERE id < 60 ORDER BY id",
	"SELECT id, unnest(nums) FROM post WHERE id < 60 ORDER BY unnest(nums), unnest(prices), id LIMIT 40",
	"SELECT id FROM post p WHERE EXISTS (SELECT 1 FROM (SELECT unnest(p.tags) AS t, unnest(p.nums) AS n) q WHERE q.t IS NULL AND q.n IS NOT NULL) ORDER BY 1",
	"SELECT p.id, x, y FROM post p, ROWS FROM (unnest(p.tags), unnest(p.nums)) AS t(x, y) WHERE p.id < 90 ORDER BY 1, 2, 3",
	"SELECT p.id, t.* FROM post p CROSS JOIN LATERAL ROWS FROM (unnest(p.tags), jsonb_each_text(p.o), unnest(p.nums)) WITH ORDINALITY t WHERE p.id < 90 ORDER BY 1, t.ordinality",
	"SELECT p.id, t.key, t.value, t.unnest, n FROM post p, ROWS FROM (jsonb_each(p.o), unnest(p.days)) WITH ORDINALITY t(key, value, unnest, n) WHERE n > 1 AND p.id < 90 ORDER BY 1, n",
	"SELECT a, b, count(*) FROM post p, unnest(p.tags, p.nums) AS t(a, b) GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT a, b, c, n, count(*) FROM post p, unnest(p.prices, p.days, p.u) WITH ORDINALITY AS t(a, b, c, n) GROUP BY 1, 2, 3, 4 ORDER BY 4, 1, 2, 3",
	"SELECT p.id, a, b FROM post p LEFT JOIN LATERAL unnest(p.tags, p.nums) AS t(a, b) ON b > 1 WHERE p.id < 90 ORDER BY 1, 2, 3",
	"SELECT p.id, (SELECT count(*) FROM unnest(p.tags, p.nums) t(a, b) WHERE a IS NULL), (SELECT string_agg(a, ',' ORDER BY n) FROM ROWS FROM (unnest(p.tags), unnest(p.nums)) WITH ORDINALITY t(a, b, n) WHERE b > 1) FROM post p WHERE p.id < 60 ORDER BY 1",
	"SELECT count(*), count(value), count(unnest) FROM post p, ROWS FROM (jsonb_array_elements(p.j), unnest(p.tags)) q",
	"SELECT x, count(*) FROM post p, ROWS FROM (unnest(p.tags)) AS x GROUP BY 1 ORDER BY 1",
	"SELECT p.id, x, unnest FROM post p, ROWS FROM (unnest(p.nums), unnest('{a,b}'::text[])) AS t(x) WHERE p.id < 60 ORDER BY 1, 2, 3",
	"SELECT p.id, e, json_typeof(e) FROM post p, json_array_elements(p.r) e WHERE p.id < 30 ORDER BY 1, e::text",
	"SELECT p.id, e.value, e.ordinality FROM post p, json_array_elements(p.r) WITH ORDINALITY e WHERE p.id < 30 ORDER BY 1, 3",
	"SELECT value, count(*) FROM post, json_array_elements_text(r) GROUP BY 1 ORDER BY 1",
	"SELECT p.id, k.key, k.value, n FROM post p, json_each(p.ro) WITH ORDINALITY k(key, value, n) WHERE p.id < 40 ORDER BY 1, n",
	"SELECT key, value, count(*) FROM post p, json_each_text(p.ro) GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT k, n, count(*) FROM post p, json_object_keys(p.ro) WITH ORDINALITY t(k, n) GROUP BY k, n ORDER BY n, k",
	"SELECT id, json_object_keys(ro), json_array_elements_text(r), unnest(nums) FROM post WHERE id < 60 ORDER BY id",
	"SELECT p.id, c FROM post p, json_array_elements(p.r) e, json_each_text(e) c(c, v) WHERE json_typeof(e) = 'object' AND p.id % 4 = 0 ORDER BY 1, 2, v",
	"SELECT count(*) FROM post p WHERE EXISTS (SELECT 1 FROM json_each_text(p.ro) e WHERE e.value = 'x')",
	"SELECT count(*) FROM post p, unnest('{a,b,NULL,t}'::text[]) WITH ORDINALITY u(x, n) WHERE n = p.g AND p.title > x",
}

// setFunctionsLeft are the server's.
var setFunctionsLeft = []string{
	"SELECT count(*) FROM post p, jsonb_array_elements(p.s) e",
	"SELECT count(*) FROM post p, jsonb_each(p.j) e",
	"SELECT jsonb_object_keys(j) FROM post",
	"SELECT p.id, e FROM post p, jsonb_each(p.o) e WHERE p.id < 9 ORDER BY 1, e::text",
	"SELECT count(*) FROM post p, json_array_elements(p.ro) e",
	"SELECT count(*) FROM post p, json_each(p.r) e",
	"SELECT count(*) FROM post p, ROWS FROM (unnest(p.tags), generate_series(1, p.g)) AS t(x, y)",
	"SELECT unnest(tags), unnest(nums), count(*) FROM post GROUP BY 1, nums ORDER BY 1, 2",
	"SELECT unnest(tags), jsonb_array_elements(jsonb_array_elements(s -> 'items')) FROM post WHERE g > 9",
	"SELECT unnest(tags), count(*) FROM post GROUP BY tags ORDER BY tags",
	"SELECT unnest(array_agg(id ORDER BY id)) FROM post WHERE id < 9",
}

// setFunctionsFinished have a part that PostgreSQL computes over rows from here.
var setFunctionsFinished = []string{
	"SELECT unnest(tags) AS x, exp(sum(id) / 1e5) FROM post GROUP BY 1 ORDER BY 1",
	"SELECT id, unnest(nums), to_tsvector('simple', title)::text FROM post WHERE id < 40 ORDER BY id",
	"SELECT id, unnest(nums), exp(g) FROM post ORDER BY id LIMIT 7",
	"SELECT x, exp(count(*) / 1e3), n FROM post p, unnest(p.tags) WITH ORDINALITY t(x, n) GROUP BY x, n ORDER BY 1, 3",
	"SELECT unnest(tags), unnest(nums), exp(g), id FROM post WHERE id < 9 ORDER BY id",
	"SELECT id, generate_series(1, 2), unnest(nums) FROM post WHERE id < 9 ORDER BY id",
	"SELECT unnest(tags), row_number() OVER (ORDER BY id) FROM post WHERE id < 9 ORDER BY 2",
	"SELECT exp(unnest(nums)) FROM post WHERE id < 9 ORDER BY 1",
}

// setFunctionsFail are errors for a row for which the function returns none.
var setFunctionsFail = []string{
	"SELECT id, unnest(tags), 10 / (id - 2) FROM post",
	"SELECT count(*) FROM (SELECT DISTINCT id, unnest(tags) AS x, 10 / (id - 2) AS y FROM post) s",
	"SELECT x, count(*) FROM (SELECT unnest(tags) AS x, 10 / (id - 2) AS y FROM post) s WHERE y > 0 GROUP BY x",
	"SELECT unnest(tags), 10 / (id - 2), count(*) FROM post GROUP BY 1, 2",
	"SELECT unnest(tags) FROM post ORDER BY 10 / (id - 2)",
}

// TestSetFunctions asks for the rows that arrays and documents are expanded to.
func TestSetFunctions(t *testing.T) {
	s := privateStack(t, setFunctionSchema)
	for _, sql := range setFunctionStatements {
		t.Run(sql, func(t *testing.T) { s.everyAnswer(t, true, sql) })
	}
	for _, sql := range setFunctionsFinished {
		t.Run(sql, func(t *testing.T) { s.everyAnswer(t, false, sql) })
	}
	for _, sql := range setFunctionsFail {
		if a := ask(t, connect(t, s.direct.url("postgres")), sql, nil).String(); !strings.Contains(a, "22012") {
			t.Errorf("%s: no error: %.100s", sql, a)
		}
		t.Run(sql, func(t *testing.T) { s.everyAnswer(t, false, sql) })
	}
	for _, sql := range setFunctionsLeft {
		t.Run(sql, func(t *testing.T) { s.forwardsAll(t, func() { s.everyAnswer(t, false, sql) }) })
	}
}
