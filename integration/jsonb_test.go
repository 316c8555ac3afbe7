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
			"SELECT jsonb_array_length(j) FROM docs", "SELECT (j ->> 'a')::int FROM docs", "SELECT (j ->> 'a')::numeric FROM docs", "SELECT (j ->> 'browser')::date FROM docs", "SELECT count(*) FROM docs WHERE j IS DISTINCT FROM '1'", "SELECT j FROM docs UNION SELECT big FROM docs ORDER BY 1",
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
