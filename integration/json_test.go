package integration

import "testing"

// jsonSchema has documents of all forms: with blanks, keys that occur twice, escapes and numbers as they were written.
const jsonSchema = `CREATE TABLE docs (id int PRIMARY KEY, g int, k text, j json, big json, bad json); ALTER TABLE docs ALTER big SET STORAGE EXTERNAL;
INSERT INTO docs SELECT i, i % 3, (ARRAY['a','b','é','a"b',''])[i % 5 + 1], (ARRAY[NULL, 'null', ' true', '1', '1.0', '-0.50e2 ', '"a"', '"é\"\\\n\u0001"', '[ ]', '{}', '[1 , "a",null, [2, {"a" :1}]]',
	'{"b": {"c": "x", "d": [true, 2.50]},"a":1, "é": "ö"}', '{"a": "1", "b": null, "a\"b": 7, "": "empty"}', '{"a": " 12 ", "n": 1e3, "browser": "Firefox"}', '{"a": 1.000, "b": [], "browser": "chrome"}',
	E'{ "a"\t:\n[1, 2],"browser" : "\\u00c9a\\/" }', '{"a":1,"b":2,"\u0061":"last"}'])[i % 17 + 1]::json, json_build_object('a', repeat('x', i % 4 * 3000), 'b', i),
	CASE i WHEN 7 THEN '{"a": {"b": 1}, "a": {"c": 2}}' WHEN 8 THEN '{"a":1,"b":"\u0000"}' WHEN 9 THEN '{"a":1,"b":"\\u0000"}' WHEN 10 THEN '["\ud83d\ude00"]' END::json FROM generate_series(1, 400) i;
VACUUM ANALYZE;`

// jsonStatements are accelerated.
var jsonStatements = []string{
	"SELECT id, j, j -> 'a', j ->> 'a', j -> 0, j ->> -1, j #> '{b,c}', j #>> '{b,d,1}', j::text, j -> 'b' -> 'd' ->> 0 FROM docs WHERE id % 17 <> 16 ORDER BY id",
	"SELECT id, j, j -> 'a', j ->> 'a', j ->> 'b', j -> 0 FROM docs ORDER BY id",
	"SELECT id, json_typeof(j), json_typeof(j -> 'b'), j ->> k, j -> g, j::varchar, 'x' || j::text FROM docs ORDER BY id",
	"SELECT id, json_extract_path(j, 'b', 'c'), json_extract_path_text(j, 'b', 'd', '0'), json_object_field_text(j, 'é'), json_array_element(j, 1) FROM docs ORDER BY id",
	"SELECT j ->> 'browser', count(*), max(j ->> 'a'), min(j -> 'b' ->> 'c') FROM docs GROUP BY 1 ORDER BY 2 DESC, 1 DESC",
	"SELECT count(*), count(j), count(j ->> 'a'), count(DISTINCT j ->> 'a'), count(bad) FROM docs WHERE j IS NOT NULL", "SELECT count(*) FROM docs WHERE bad IS NULL", "SELECT id, bad FROM docs WHERE bad IS NOT NULL ORDER BY id",
	"SELECT bad -> 'a', bad ->> 'a' FROM docs WHERE id IN (7, 9) ORDER BY id", "SELECT json_typeof(bad) FROM docs ORDER BY id", "SELECT json_array_length(bad) FROM docs WHERE id = 10",
	"SELECT sum((j ->> 'a')::int), avg((j ->> 'a')::bigint) FROM docs WHERE j ->> 'a' IN ('1', ' 12 ')", "SELECT sum((big ->> 'b')::numeric), sum((big ->> 'b')::bigint) FROM docs",
	"SELECT g, sum(json_array_length(j)) FROM docs WHERE json_typeof(j) = 'array' GROUP BY g ORDER BY g",
	"SELECT id, coalesce(j, '{\"none\" :true}'), CASE WHEN g = 1 THEN j END, upper(j ->> 'a'), length(big ->> 'a'), big ->> 'b' FROM docs WHERE id < 200 ORDER BY id",
	"SELECT d.id, e.j, e.j ->> 'a' FROM docs d LEFT JOIN docs e ON e.id = d.g AND e.j ->> 'a' > ' ' ORDER BY d.id",
	"SELECT id, first_value(j) OVER (PARTITION BY g ORDER BY id), lag(j ->> 'a') OVER (ORDER BY id) FROM docs ORDER BY id",
	"SELECT id, ('-12'::json -> k) -> '{a,b}'::text FROM docs ORDER BY id",
	"SELECT count(*) FROM docs WHERE j ->> 'browser' LIKE '%o%' OR j ->> 'a' > j ->> 'browser'",
}

// jsonForwarded are left to the server: errors, what it finds in several values of a key, and casts to jsonb.
var jsonForwarded = []string{
	"SELECT j, count(*) FROM docs GROUP BY j", "SELECT DISTINCT j FROM docs", "SELECT count(DISTINCT j) FROM docs", "SELECT id FROM docs WHERE j = '1'", "SELECT id FROM docs ORDER BY j", "SELECT j FROM docs UNION SELECT big FROM docs", "SELECT min(j) FROM docs",
	"SELECT count(*) FROM docs WHERE j IS DISTINCT FROM '1'", "SELECT json_array_length(j) FROM docs", "SELECT bad #> '{a,b}' FROM docs WHERE id = 7", "SELECT bad -> 'a' FROM docs WHERE id = 8", "SELECT bad ->> 'a' FROM docs WHERE id = 8",
	"SELECT bad ->> 0 FROM docs ORDER BY id", "SELECT j ? 'a' FROM docs", "SELECT j @> '1' FROM docs", "SELECT j ?| '{a}' FROM docs", "SELECT j['a'] FROM docs", "SELECT id, j::jsonb FROM docs ORDER BY id", "SELECT id FROM docs WHERE j::jsonb = '1' ORDER BY id", "SELECT (j ->> 'browser')::json FROM docs WHERE id = 1",
	"SELECT array_agg(j ORDER BY id) FROM docs WHERE id < 5", "SELECT ARRAY[j] FROM docs WHERE id < 5 ORDER BY id", "SELECT '[1,]'::json FROM docs", "SELECT j -> 'a' ->> 0 = 'x', a FROM docs, json_array_elements('[1]') a ORDER BY id LIMIT 3",
}

// TestJSON takes documents through the copy, the stream, plans and results.
func TestJSON(t *testing.T) {
	s := privateStack(t, jsonSchema)
	direct := connect(t, s.direct.url("postgres"))
	compare := func(t *testing.T) {
		for _, sql := range jsonStatements {
			s.everyAnswer(t, true, sql)
		}
		s.everyAnswer(t, true, "SELECT id, j ->> $1, coalesce(j, $2) FROM docs ORDER BY id", "a", `{"x" :[ 1]}`)
		for _, sql := range jsonForwarded {
			s.everyAnswer(t, false, sql)
		}
	}
	t.Run("copied", compare)
	for _, sql := range []string{
		"INSERT INTO docs SELECT id + 1000, g, k, json_build_object('a', id, 'c', j), big FROM docs WHERE id % 17 < 9",
		"UPDATE docs SET g = g + 1 WHERE id % 3 = 0", // big is out of line, and unchanged
		"UPDATE docs SET j = '{\"a\" : 1.00,  \"browser\": \"Safari\"}' WHERE id % 17 = 5", "UPDATE docs SET j = NULL WHERE id % 17 = 6", "DELETE FROM docs WHERE id % 17 = 3",
	} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	t.Run("streamed", compare)
}
