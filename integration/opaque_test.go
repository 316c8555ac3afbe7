package integration

import (
	"fmt"
	"strings"
	"testing"

	"pgaccel/sqltype"
)

// opaqueTable has a column of each opaque type, named as it; the rows hold the types' samples.
func opaqueTable() (columns []string, schema, later string) {
	var samples [][]string
	var defined []string
	for _, typ := range sqltype.Opaques() {
		columns, samples = append(columns, "c_"+typ.Name), append(samples, typ.Samples)
		defined = append(defined, "c_"+typ.Name+" "+typ.SQL())
	}
	for _, typ := range sqltype.OpaqueExtensions() {
		columns, samples = append(columns, "c_"+typ.Name), append(samples, typ.Samples)
		defined = append(defined, "c_"+typ.Name+" "+typ.Name)
	}
	insert := func(from int) string {
		return insertSamples("held", samples, from, 60, func(i int) string { return fmt.Sprintf("%d, %d", i, i%4) })
	}
	schema = "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE TABLE held (id int PRIMARY KEY, g int, " + strings.Join(defined, ", ") + "); CREATE TABLE spans (span interval PRIMARY KEY, n int, short interval(1));\n" +
		"INSERT INTO spans SELECT i * interval '25 hours', i, i * interval '1.11 seconds' FROM generate_series(1, 50) i; " + insert(0) + "VACUUM ANALYZE;"
	return columns, schema, insert(1)
}

// TestOpaque takes opaque types through the copy, the stream and results. What compares them is forwarded, but for intervals and citext.
func TestOpaque(t *testing.T) {
	columns, schema, later := opaqueTable()
	s := privateStack(t, schema)
	direct := connect(t, s.direct.url("postgres"))
	for _, sql := range []string{later, "UPDATE held SET id = id + 1000 WHERE id % 5 = 0", "DELETE FROM held WHERE id % 7 = 0", "UPDATE spans SET n = -n WHERE n % 3 = 0", "UPDATE spans SET span = '1 day 01:00' WHERE n = 1", "DELETE FROM spans WHERE n = 2"} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	s.everyAnswer(t, true, "SELECT span, n, short FROM spans ORDER BY n")
	s.everyAnswer(t, true, "SELECT * FROM held ORDER BY id")
	for _, c := range columns {
		t.Run(c, func(t *testing.T) { opaqueColumn(t, s, c) })
	}
	t.Run("forwarded", func(t *testing.T) { opaqueForwarded(t, s) })
	t.Run("finished", func(t *testing.T) { opaqueFinished(t, s, columns) })
	t.Run("settings", func(t *testing.T) { opaqueSettings(t, s) })
}

// opaqueColumn asks for all that is done with a column, of an array for what shows the most.
func opaqueColumn(t *testing.T, s *stack, c string) {
	if strings.HasPrefix(c, "c__") {
		s.everyAnswer(t, true, strings.ReplaceAll("SELECT g, count(@), count(*) FILTER (WHERE @ IS NULL) FROM held GROUP BY g ORDER BY g", "@", c))
		s.everyAnswer(t, true, strings.ReplaceAll("SELECT id, @, CASE WHEN g > 1 THEN @ END FROM held WHERE @ IS NOT NULL ORDER BY id", "@", c))
		for _, sql := range []string{"SELECT count(*) FROM held WHERE @ = @", "SELECT @[1] FROM held ORDER BY id", "SELECT id, unnest(@) FROM held", "SELECT cardinality(@) FROM held ORDER BY id", "SELECT @ || @ FROM held ORDER BY id"} {
			s.everyAnswer(t, false, strings.ReplaceAll(sql, "@", c))
		}
		return
	}
	for _, sql := range []string{"SELECT id, @ FROM held WHERE @ IS NOT NULL ORDER BY id", "SELECT g, count(@), count(*) FROM held GROUP BY g ORDER BY g", "SELECT a.id, b.@ FROM held a LEFT JOIN held b ON b.id = a.g ORDER BY a.id",
		"SELECT id, CASE WHEN g > 1 THEN @ END, coalesce(@, NULL) FROM held ORDER BY id", "SELECT x, id FROM (SELECT id, @ AS x FROM held WHERE g = 1 UNION ALL SELECT id, @ FROM held WHERE g = 2) u ORDER BY id",
		"SELECT id, lag(@) OVER (PARTITION BY g ORDER BY id) FROM held ORDER BY id", "SELECT DISTINCT ON (g) g, @ FROM held ORDER BY g, id"} {
		s.everyAnswer(t, true, strings.ReplaceAll(sql, "@", c))
	}
	for _, sql := range []string{"SELECT @, count(*) FROM held GROUP BY @ ORDER BY min(id)", "SELECT count(*) FROM (SELECT DISTINCT @ FROM held) d", "SELECT id FROM held ORDER BY @, id", "SELECT count(DISTINCT @) FROM held", "SELECT id FROM held WHERE @ = @ ORDER BY id", "SELECT max(@) FROM held",
		"SELECT id FROM held a WHERE @ IS DISTINCT FROM NULL ORDER BY id", "SELECT @ FROM held UNION SELECT @ FROM held", "SELECT @::text FROM held ORDER BY id", "SELECT count(*) FROM held WHERE @ IN (SELECT @ FROM held)",
		"SELECT array_agg(@ ORDER BY id) FROM held", "SELECT id, nullif(@, @) FROM held ORDER BY id", "SELECT greatest(@, @) FROM held ORDER BY id", "SELECT concat(@) FROM held ORDER BY id"} {
		s.everyAnswer(t, false, strings.ReplaceAll(sql, "@", c))
	}
}

// opaqueForwarded asks for what computes with values, which is PostgreSQL's, some of it over rows from here.
func opaqueForwarded(t *testing.T, s *stack) {
	for _, sql := range []string{"SELECT CASE WHEN g = 1 THEN c_interval ELSE '1 day' END FROM held ORDER BY id", "SELECT coalesce(c_interval, now() - now()) FROM held ORDER BY id", "SELECT date '2020-01-01' + c_interval FROM held WHERE id < 10 ORDER BY id",
		"SELECT c_interval + '1 day' FROM held WHERE id < 10 ORDER BY id", "SELECT sum(c_interval) FROM held WHERE id < 10", "SELECT count(*) FROM held WHERE c_interval > '1 day'", "SELECT count(*) FROM held WHERE c_int4range @> 5",
		"SELECT coalesce(c_box, c_point) FROM held ORDER BY id", "SELECT c_point FROM held UNION ALL SELECT c_box FROM held", "SELECT extract(epoch FROM c_interval) FROM held ORDER BY id", "SELECT c_point[0] FROM held ORDER BY id", "SELECT lower(c_int4range) FROM held ORDER BY id",
		"SELECT justify_hours(c_interval) FROM held WHERE id < 10 ORDER BY id", "SELECT -c_interval FROM held WHERE id < 5 ORDER BY id",
		"SELECT c_hstore->'a' FROM held ORDER BY id", "SELECT c_citext || 'x' FROM held ORDER BY id", "SELECT id FROM held WHERE c_citext = 'gröSSe' ORDER BY id", "SELECT upper(c_citext) FROM held ORDER BY id", "SELECT id FROM held WHERE c_citext LIKE 'g%' ORDER BY id",
		"SELECT coalesce(c_citext, c_name::text) FROM held ORDER BY id", "SELECT CASE WHEN g = 1 THEN c_citext ELSE 'x' END FROM held ORDER BY id", "SELECT length(c_citext) FROM held ORDER BY id", "SELECT count(c_citext) FROM (SELECT c_citext FROM held UNION ALL SELECT 'a' FROM held) u"} {
		s.everyAnswer(t, false, sql)
	}
}

// opaqueFinished asks for what the server finishes over values.
func opaqueFinished(t *testing.T, s *stack, columns []string) {
	for _, c := range columns[:20] {
		for _, sql := range []string{"SELECT id, @, quote_nullable(@), to_json(@) FROM held ORDER BY id", "SELECT id, exp(g), @ FROM held ORDER BY id"} {
			s.everyAnswer(t, false, strings.ReplaceAll(sql, "@", c))
		}
	}
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, sql := range []string{"BEGIN", "DECLARE c CURSOR FOR SELECT a.id, b.c_interval, b.c_point FROM held a JOIN held b USING (g) WHERE a.id < 9", "FETCH 3 FROM c", "SELECT 1", "FETCH ALL FROM c", "COMMIT"} {
		if want, got := ask(t, direct, sql, nil), ask(t, proxied, sql, nil); got.String() != want.String() {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
}

// opaqueSettings asks under settings that have values written otherwise.
func opaqueSettings(t *testing.T, s *stack) {
	for _, set := range []string{"SET IntervalStyle = iso_8601", "SET DateStyle = German", "SET extra_float_digits = 0", "SET TimeZone = 'Asia/Tokyo'", "SET bytea_output = escape", "SET client_encoding = LATIN1",
		"SET lc_monetary = 'en_US.utf8'", "SET xmloption = document"} {
		proxied := connect(t, s.proxy.url("postgres"))
		plain := connect(t, s.direct.url("postgres"))
		for _, sql := range []string{set, "SELECT * FROM held ORDER BY id"} {
			if want, got := ask(t, plain, sql, nil), ask(t, proxied, sql, nil); got.String() != want.String() {
				t.Errorf("%s, %s: got %.1000s\nwant %.1000s", set, sql, got, want)
			}
		}
	}
}

// TestBesideHstore: hstore's operators do not stand in the way of the built-in ones of their names.
func TestBesideHstore(t *testing.T) {
	s := privateStack(t, "CREATE EXTENSION hstore;\nCREATE TABLE bag (id int PRIMARY KEY, v numeric(9,2), at date, j jsonb, h hstore);\n"+
		`INSERT INTO bag SELECT i, i / 4.0, date '2024-01-01' + i, jsonb_build_object('a', i % 5, 'k' || i % 3, 'x'), hstore('a', i::text) FROM generate_series(1, 3000) i`+";\nVACUUM ANALYZE;\n")
	for _, sql := range []string{"SELECT sum(v - 1), max(at - 7), count(at - date '2024-02-02') FROM bag", "SELECT id - 1, j -> 'a', j ->> 'k1', j - 'a' FROM bag WHERE j -> 'a' = '2' ORDER BY id", "SELECT count(*) FROM bag WHERE j ?| ARRAY['k0', 'z']",
		"SELECT count(*) FROM bag WHERE j ?& '{a,k1}'"} {
		s.everyAnswer(t, true, sql)
	}
	for _, sql := range []string{"SELECT h - ARRAY['a'], h -> 'a', h ?| ARRAY['a'] FROM bag ORDER BY id", `SELECT '{"a": 1}' - ARRAY['a', j::text] FROM bag ORDER BY id`, "SELECT count(*) FROM bag WHERE '{}' ?| ARRAY[j::text]", "SELECT j - ARRAY['a', 'k1'] FROM bag ORDER BY id", "SELECT h - j::text FROM bag ORDER BY id"} {
		s.everyAnswer(t, false, sql)
	}
}
