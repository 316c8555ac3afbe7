package integration

import "testing"

// jsonbSchema has documents of all forms; half of the rows are there when pgaccel starts.
const jsonbSchema = `CREATE TABLE docs (id int PRIMARY KEY, g int, k text, j jsonb, big jsonb); ALTER TABLE docs ALTER big SET STORAGE EXTERNAL;
INSERT INTO docs SELECT i, i % 3, (ARRAY['a','b','é','a"b',''])[i % 5 + 1], (ARRAY[NULL, 'null', 'true', '1', '1.0', '-0.50', '"a"', '"é\"\\\n\u0001"', '[]', '{}', '[1, "a", null, [2, {"a": 1}]]',
	'{"a": 1, "b": {"c": "x", "d": [true, 2.50]}, "é": "ö"}', '{"a": "1", "b": null, "a\"b": 7, "": "empty"}', '{"a": " 12 ", "n": 1e3, "browser": "Firefox"}', '{"a": 1.000, "b": [], "browser": "chrome"}',
	'{"a": [1, 2], "browser": "Éa"}'])[i % 16 + 1]::jsonb, jsonb_build_object('a', repeat('x', i % 4 * 3000), 'b', i) FROM generate_series(1, 400) i;
VACUUM ANALYZE;`

// jsonbStatements are accelerated.
var jsonbStatements = []string{
	"SELECT id, j, j -> 'a', j ->> 'a', j -> 0, j ->> -1, j #> '{b,c}', j #>> '{b,d,1}', j['b']['d'], j[0], j ['b']['d'][-1], j::text FROM docs ORDER BY id",
	"SELECT id, jsonb_typeof(j), jsonb_typeof(j -> 'b'), j ? 'a', j ?| ARRAY['b', 'browser'], j ?& '{a,b}', j ->> k, j -> g FROM docs ORDER BY id",
	"SELECT id, jsonb_extract_path(j, 'b', 'c'), jsonb_extract_path_text(j, 'b', 'd', '0'), jsonb_object_field_text(j, 'é') FROM docs ORDER BY id",
	"SELECT j ->> 'browser', count(*) FROM docs GROUP BY 1 ORDER BY 1",
	"SELECT j ->> 'browser' AS b, count(*), max(j ->> 'a'), min(j -> 'b' ->> 'c') FROM docs GROUP BY 1 ORDER BY 2 DESC, 1 DESC",
	"SELECT j ->> 'a' COLLATE \"C\", count(*) FROM docs GROUP BY 1 ORDER BY 1 NULLS FIRST",
	"SELECT count(*), count(j), count(j ->> 'a'), count(DISTINCT j ->> 'a') FROM docs WHERE j IS NOT NULL",
	`SELECT id FROM docs WHERE j @> '{"a": 1}' ORDER BY id`,
	`SELECT id FROM docs WHERE j @> '"a"' OR j @> '[[{"a": 1.00}]]' OR j <@ '{"a": 1, "b": [], "browser": "chrome", "z": 0}' ORDER BY id`,
	`SELECT id FROM docs WHERE j = '1.00' OR j = '{"b": [ ], "a": 1, "browser": "chrome"}' OR j -> 'b' <> 'null'::jsonb ORDER BY id`,
	`SELECT id FROM docs WHERE NOT (j -> 'a' = '1') AND j IN ('{}', '[]', 'true', '{"a": "1", "b": null, "a\"b": 7, "": "empty"}') ORDER BY id`,
	"SELECT sum((j ->> 'a')::int), avg((j ->> 'a')::bigint) FROM docs WHERE j ->> 'a' IN ('1', ' 12 ')",
	"SELECT sum((big ->> 'b')::numeric), avg((big ->> 'b')::float8), max((big ->> 'b')::numeric(8,2)), sum((big ->> 'b')::bigint) FROM docs",
	"SELECT id, (j ->> 'a')::numeric, (j ->> 'a')::float8, (j ->> 'a')::real, (j ->> 'a')::numeric(6,1) FROM docs WHERE j ->> 'a' IN ('1', ' 12 ', '1.000') ORDER BY id",
	"SELECT id, ('2024-02-' || (10 + g))::date, ('2024-02-10T12:00:0' || g || 'Z')::timestamptz, (' 2024-02-10 12:00:0' || g)::timestamp, ('12:0' || g)::time, (CASE g WHEN 1 THEN 'yes' ELSE 'f' END)::boolean FROM docs ORDER BY id",
	"SELECT g, sum(jsonb_array_length(j)) FROM docs WHERE jsonb_typeof(j) = 'array' GROUP BY g ORDER BY g",
	"SELECT id, coalesce(j, '{\"none\": true}'), CASE WHEN g = 1 THEN j END, upper(j ->> 'a'), length(big ->> 'a'), big ->> 'b' FROM docs WHERE id < 200 ORDER BY id",
	"SELECT length(big ->> 'a'), count(*) FROM docs GROUP BY 1 ORDER BY 1",
	"SELECT id, j FROM docs UNION ALL SELECT id, j -> 'b' FROM docs ORDER BY id, 1 LIMIT 0",
	"SELECT d.id, e.j ->> 'a' FROM docs d LEFT JOIN docs e ON e.id = d.g AND e.j ->> 'a' > ' ' ORDER BY d.id",
	"SELECT id, first_value(j) OVER (PARTITION BY g ORDER BY id), lag(j ->> 'a') OVER (ORDER BY id) FROM docs ORDER BY id",
	"SELECT id, j || '{\"z\": 1, \"a\": null}', j || j, j || big - 'a', '[1]' || j, j || '\"s\"', jsonb_pretty(j), jsonb_pretty(j || '[[], {}]') FROM docs WHERE id < 200 ORDER BY id",
	"SELECT id, j - 'a', j - k, j - 0, j - -1, j - 9, j - id FROM docs WHERE jsonb_typeof(j) = 'array' ORDER BY id",
	"SELECT id, j - 'a', j - k, j - 'a' - 'b', j - '' FROM docs WHERE jsonb_typeof(j) = 'object' ORDER BY id",
	"SELECT sum((big -> 'b')::numeric), max((big -> 'b')::int), avg((big -> 'b')::bigint), min((big['b'])::smallint), max((big -> 'b')::float8), max((big -> 'b')::int + 0.5) FROM docs",
	"SELECT id, to_jsonb(id), to_jsonb(k), to_jsonb(j), to_jsonb(g = 1), to_jsonb(g / 2.0), to_jsonb(date '2024-01-01' + g), to_jsonb(timestamp '2024-02-29 12:00:00.5' + id * interval '1 hour'), to_jsonb(E'\\b\\x7f\\x1f' || k), to_jsonb(nullif(g, 1)::bigint) FROM docs ORDER BY id",
	"SELECT id, jsonb_build_array(id, k, j, NULL, 'x', 1.50, true), jsonb_build_object('k', k, 'j', j, k, id, 'k', g, 'long', jsonb_build_array(g)) FROM docs ORDER BY id",
	"SELECT g, jsonb_agg(j ORDER BY id), jsonb_agg(k ORDER BY id DESC) FILTER (WHERE id < 30), jsonb_agg(nullif(id % 4, 2) ORDER BY id), jsonb_agg(jsonb_build_object('id', id, 'k', k) ORDER BY id), jsonb_agg(id ORDER BY id) FILTER (WHERE id < 0) FROM docs GROUP BY g ORDER BY g NULLS LAST",
	"SELECT jsonb_agg(id ORDER BY id), jsonb_build_object('n', count(*), 'max', max(k)) FROM docs WHERE id < 0",
	"SELECT count(*) FROM docs WHERE j ->> 'browser' LIKE '%o%' OR j ->> 'a' > j ->> 'browser'",
}

// TestJSONB takes documents through the copy, the stream, plans and results.
func TestJSONB(t *testing.T) {
	s := privateStack(t, jsonbSchema)
	direct := connect(t, s.direct.url("postgres"))
	compare := func(t *testing.T) {
		for _, sql := range jsonbStatements {
			s.everyAnswer(t, true, sql)
		}
		s.everyAnswer(t, true, "SELECT id FROM docs WHERE j @> $1 ORDER BY id", `{"a" : 1}`)
		s.everyAnswer(t, true, "SELECT id, j ->> $1 FROM docs WHERE j ? $2 ORDER BY id", "a", "browser")
		s.everyAnswer(t, true, "SELECT count(*) FROM docs WHERE j -> 'a' = $1", "1.0")
		// What is left to the server.
		for _, sql := range []string{"SELECT j, count(*) FROM docs GROUP BY j ORDER BY 2, j", "SELECT DISTINCT j FROM docs ORDER BY 1", "SELECT count(DISTINCT j) FROM docs", "SELECT id FROM docs WHERE j > '1' ORDER BY j, id",
			"SELECT jsonb_array_length(j) FROM docs", "SELECT j - 'a' FROM docs", "SELECT j::int FROM docs", "SELECT jsonb_build_object(nullif(k, 'a'), 1) FROM docs", "SELECT j - '{a,b}'::text[] FROM docs WHERE j ? 'a' ORDER BY id", "SELECT to_jsonb(id::float8) FROM docs ORDER BY id", "SELECT jsonb_agg(id) FROM docs WHERE id = 1", "SELECT jsonb_build_array(now()) IS NULL FROM docs", "SELECT jsonb_build_object(id, 1) FROM docs ORDER BY id",
			"SELECT (j ->> 'a')::int FROM docs", "SELECT (j ->> 'a')::numeric FROM docs", "SELECT (j ->> 'browser')::date FROM docs", "SELECT count(*) FROM docs WHERE j IS DISTINCT FROM '1'", "SELECT j FROM docs UNION SELECT big FROM docs ORDER BY 1",
			"SELECT id FROM docs WHERE j = '1e0' ORDER BY id", `SELECT '{"a":' || '1}'::jsonb FROM docs`, "SELECT j #>> '{}' FROM docs ORDER BY id", "SELECT a.id FROM docs a JOIN docs b ON a.j = b.j ORDER BY 1 LIMIT 9"} {
			s.everyAnswer(t, false, sql)
		}
	}
	t.Run("copied", compare)
	for _, sql := range []string{
		"INSERT INTO docs SELECT id + 1000, g, k, jsonb_build_object('a', id, 'c', j), big FROM docs WHERE id % 2 = 0",
		"UPDATE docs SET g = g + 1 WHERE id % 3 = 0", // big is out of line, and unchanged
		"UPDATE docs SET j = '{\"a\": 1.00, \"browser\": \"Safari\"}' WHERE id % 7 = 0", "UPDATE docs SET j = NULL WHERE id % 11 = 0", "DELETE FROM docs WHERE id % 13 = 0",
	} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	t.Run("streamed", compare)
}
