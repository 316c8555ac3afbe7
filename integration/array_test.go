package integration

import (
	"strings"
	"testing"
)

// arraySchema has values of all kinds of elements, some of them null.
const arraySchema = `CREATE TABLE item (id int PRIMARY KEY, g int NOT NULL, s smallint, i int, b bigint, n numeric(10,2), f float8, r real, d date, t timestamp, z timestamptz, c time, x text, v varchar(9), w char(3), u uuid, m macaddr, j jsonb, ok boolean);
INSERT INTO item SELECT i, i % 5, i % 7, nullif(i % 11, 3), i * 4294967297, nullif(i % 13, 4) / 4.0, i % 9 / 3.0, i % 8 / 7.0, date '2024-01-01' + i % 400, timestamp '2024-02-29 12:00:00.25' + i * interval '1 hour', timestamptz '2024-03-31 00:30:00+00' + i * interval '30 minutes', time '00:00' + i * interval '61 seconds',
	(ARRAY['a', 'a b', '', 'NULL', 'null', E'q"\\', '{x}', 'é,', NULL, E'\n'])[i % 10 + 1], nullif('v' || i % 4, 'v2'), 'c' || i % 3, md5(i::text)::uuid, ('08002b0000' || lpad(to_hex(i % 200), 2, '0'))::macaddr, jsonb_build_object('a', i % 6), nullif(i % 3, 1) = 0 FROM generate_series(1, 150) i;
VACUUM ANALYZE;`

// arrayStatements are accelerated.
var arrayStatements = []string{
	"SELECT g, array_agg(id ORDER BY id), array_agg(s ORDER BY id DESC), array_agg(i ORDER BY id), array_agg(b ORDER BY id), array_agg(n ORDER BY id), array_agg(x ORDER BY id), array_agg(v ORDER BY id), array_agg(u ORDER BY id) FROM item GROUP BY g ORDER BY g",
	"SELECT g, array_agg(f ORDER BY id), array_agg(r ORDER BY id), array_agg(d ORDER BY id), array_agg(t ORDER BY id), array_agg(z ORDER BY id), array_agg(c ORDER BY id), array_agg(m ORDER BY id), array_agg(j ORDER BY id), array_agg(ok ORDER BY id) FROM item GROUP BY g ORDER BY g",
	"SELECT g, array_agg(DISTINCT i), array_agg(DISTINCT x), array_agg(DISTINCT n), array_agg(DISTINCT v ORDER BY v DESC), array_agg(DISTINCT i ORDER BY i NULLS FIRST), array_agg(DISTINCT ok), array_agg(DISTINCT f), array_agg(DISTINCT u) FROM item GROUP BY g ORDER BY g",
	"SELECT g, array_agg(id ORDER BY id) FILTER (WHERE id > 140), array_agg(i ORDER BY id) FILTER (WHERE i IS NULL), array_agg(DISTINCT i) FILTER (WHERE i > 99) FROM item GROUP BY g ORDER BY g",
	"SELECT array_agg(id ORDER BY id), count(*), max(x) FROM item WHERE id < 0",
	"SELECT array_agg(n / 3 ORDER BY id), array_agg(avg ORDER BY g) FROM (SELECT g, id, n, avg(n) OVER (PARTITION BY g) FROM item) q",
	"SELECT coalesce(array_agg(id ORDER BY id), '{}'), coalesce(array_agg(x ORDER BY id), '{none, \"a b\"}') FROM item WHERE id < 0",
	"SELECT g, percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY i), percentile_disc(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY n DESC), percentile_disc('{0.1,0.9}'::float8[]) WITHIN GROUP (ORDER BY x), percentile_cont(ARRAY[1, 0]) WITHIN GROUP (ORDER BY f) FILTER (WHERE id > 140) FROM item GROUP BY g ORDER BY g",
	"SELECT percentile_cont(ARRAY[0.9, 0.1, 0.9]) WITHIN GROUP (ORDER BY n), percentile_disc(ARRAY[0.3, 0.6]) WITHIN GROUP (ORDER BY z), percentile_disc(ARRAY[0.5]::float8[]) WITHIN GROUP (ORDER BY u), percentile_cont(0.5) WITHIN GROUP (ORDER BY n), count(*) FROM item",
	"SELECT percentile_cont(ARRAY[0.9, 0.1]) WITHIN GROUP (ORDER BY b), percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY x) FROM item WHERE id < 0",
	"SELECT g, percentile_disc(ARRAY[0.1, 0.5]) WITHIN GROUP (ORDER BY i) FROM item GROUP BY ROLLUP (g) ORDER BY g",
	"SELECT g, a IS NULL, a IS NOT NULL FROM (SELECT g, array_agg(i ORDER BY id) a FROM item GROUP BY g) q ORDER BY g",
	"SELECT array_agg(id ORDER BY id) IS DISTINCT FROM NULL FROM item",
	"SELECT array_agg(id ORDER BY id) || 1, (array_agg(id ORDER BY id))[2], (array_agg(n ORDER BY id))[2:3] FROM item",
	"SELECT a.g, b.l FROM item a JOIN (SELECT g, array_agg(id ORDER BY id) l FROM item GROUP BY g) b ON b.g = a.g WHERE a.id < 20 ORDER BY a.id",
	"SELECT g, array_agg(lower(x) ORDER BY id), array_agg(id * 2 ORDER BY x, id), array_agg(x || id ORDER BY x DESC, id), array_agg(nullif(id % 2, 0) ORDER BY id) FROM item GROUP BY g HAVING count(*) > 2 ORDER BY g LIMIT 3",
	"SELECT g, array_agg(x ORDER BY id) FROM item GROUP BY g UNION ALL SELECT 9, array_agg(x ORDER BY id DESC) FROM item ORDER BY 1",
}

// arraysLeft are the server's.
var arraysLeft = []string{
	"SELECT percentile_cont(ARRAY[0.5, NULL]) WITHIN GROUP (ORDER BY i) FROM item", "SELECT percentile_cont(ARRAY[]::float8[]) WITHIN GROUP (ORDER BY i) FROM item", "SELECT percentile_cont(ARRAY[[0.5], [0.1]]) WITHIN GROUP (ORDER BY i) FROM item",
	"SELECT percentile_cont(ARRAY[0.5, 2]) WITHIN GROUP (ORDER BY i) FROM item", "SELECT percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY w) FROM item",
	"SELECT array_agg(id) FROM item WHERE id < 3", "SELECT array_agg(x ORDER BY g) FROM item", "SELECT array_agg(w ORDER BY id) FROM item", "SELECT array_agg(DISTINCT j) FROM item",
	"SELECT array_agg(a ORDER BY g) FROM (SELECT g, array_agg(id ORDER BY id) a FROM item WHERE g < 0 GROUP BY g) q", "SELECT array_agg(t - timestamp '2024-01-01' ORDER BY id) FROM item",
	"SELECT DISTINCT array_agg(id ORDER BY id) FROM item GROUP BY g ORDER BY 1", "SELECT g, array_agg(id ORDER BY id) a FROM item GROUP BY g ORDER BY a", "SELECT max(a) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q",
	"SELECT count(*) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q WHERE a < '{1}'", "SELECT a, count(*) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q GROUP BY a ORDER BY 1",
	"SELECT array_agg(id ORDER BY id)::text FROM item", "SELECT concat(array_agg(id ORDER BY id)) FROM item", "SELECT g, array_agg(id ORDER BY id) FROM item GROUP BY ROLLUP (g) ORDER BY g",
	"SELECT array_agg(id ORDER BY id) FROM item GROUP BY g EXCEPT SELECT array_agg(id ORDER BY id) FROM item WHERE g = 1 GROUP BY g ORDER BY 1",
	"SELECT count(DISTINCT a) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q", "SELECT greatest(array_agg(id ORDER BY id), '{1}') FROM item",
	"SELECT array_agg(id ORDER BY id) FROM item GROUP BY g UNION SELECT array_agg(id ORDER BY id) FROM item ORDER BY 1",
	"SELECT p.g FROM (SELECT g, array_agg(id ORDER BY id) a FROM item GROUP BY g) p JOIN (SELECT g, array_agg(id ORDER BY id) a FROM item GROUP BY g) q ON p.a = q.a ORDER BY 1",
	"SELECT count(*) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q WHERE a IN ('{1}', '{2}')", "SELECT count(*) OVER (PARTITION BY a) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q",
	"SELECT 3 = ANY (array_agg(id ORDER BY id)) FROM item", "SELECT mode() WITHIN GROUP (ORDER BY a) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q",
	"SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY a) FROM (SELECT array_agg(id ORDER BY id) a FROM item GROUP BY g) q",
}

// arraySettings decide how elements are written; the first ones are followed.
var arraySettings = []string{"SET DateStyle = 'SQL, DMY'; SET TimeZone = 'UTC'", "SET DateStyle = 'German'; SET TimeZone = 'UTC'", "SET DateStyle = 'ISO'; SET TimeZone = 'Europe/Berlin'", "SET extra_float_digits = 0", "SET client_encoding = 'LATIN1'"}

// TestArrays asks for arrays under each protocol, and in each setting that their elements are written by.
func TestArrays(t *testing.T) {
	s := privateStack(t, arraySchema)
	for _, sql := range arrayStatements {
		s.everyAnswer(t, true, sql)
	}
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxied, "SET pgaccel.mode = 'force'")
	for i, set := range arraySettings {
		must(t, direct, "RESET ALL; "+set)
		must(t, proxied, "RESET ALL; SET pgaccel.mode = 'force'; "+set)
		for _, sql := range append([]string{"COPY (" + arrayStatements[1] + ") TO STDOUT", "COPY (" + arrayStatements[1] + ") TO STDOUT (FORMAT csv)"}, arrayStatements[:3]...) {
			check := func() {
				for _, p := range protocols {
					if strings.HasPrefix(sql, "COPY") && p.format != nil {
						continue
					}
					if got, want := ask(t, proxied, sql, p.format), ask(t, direct, sql, p.format); got.String() != want.String() || want.err != "" {
						t.Errorf("%s: %s (%s): %s", set, sql, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				}
			}
			if i < 3 {
				s.accelerates(t, 1, check)
			} else {
				check()
			}
		}
	}
	for _, sql := range arraysLeft {
		s.forwardsAll(t, func() { s.everyAnswer(t, false, sql) })
		if t.Failed() {
			t.Fatal(sql)
		}
	}
}

// arrayColumns has arrays of all forms; half of the rows are there when pgaccel starts.
const arrayColumns = `CREATE TABLE doc (id int PRIMARY KEY, g int NOT NULL, tags text[], names varchar(9)[], i int[], b bigint[], n numeric[], f float8[], d date[], z timestamptz[], u uuid[], ok boolean[], w char(3)[], ci text[] COLLATE "C");
INSERT INTO doc SELECT k, k % 4, (ARRAY[NULL, '{}', '{vip}', '{a,NULL,vip}', '{"a b","","NULL",null}', '[0:1]={x,y}', '{{a,b},{c,d}}', '{"q\"","\\","{","é,"}', '{vip,vip,new}', '{new}'])[k % 10 + 1]::text[], ARRAY['v' || k % 3, NULL, 'é'],
	(ARRAY['{}', '{1,2,3}', '{3,NULL}', '[5:6]={1,7}', '{{1,2},{3,4}}', NULL, '{7}'])[k % 7 + 1]::int[], ARRAY[k, 4294967296], ARRAY[k / 4.0, NULL, 1.50], ARRAY[k / 3.0, 'NaN', '-0'],
	ARRAY[date '2024-01-01' + k, 'infinity'], ARRAY[timestamptz '2024-03-31 00:30:00+00' + k * interval '30 minutes'], ARRAY[md5(k::text)::uuid], ARRAY[k % 2 = 0, NULL], ARRAY['a'], ARRAY['é', 'e'] FROM generate_series(1, 120) k;
UPDATE doc SET i[1] = 4 WHERE id % 7 = 2;
UPDATE doc SET i[2] = 4 WHERE id % 7 = 2;
VACUUM ANALYZE;`

// columnStatements are accelerated.
var columnStatements = []string{
	"SELECT w FROM doc ORDER BY id",
	"SELECT id, tags, names, i, b, n, f, d, z, u, ok, ci FROM doc ORDER BY id",
	"SELECT id, tags IS NULL, coalesce(tags, '{none}'), CASE WHEN g = 1 THEN i END, cardinality(tags), array_length(i, 1), array_length(i, 2), array_length(tags, 0), cardinality(i) FROM doc ORDER BY id",
	"SELECT count(*) FROM doc WHERE 'vip' = ANY(tags)", "SELECT id FROM doc WHERE 'vip' <> ALL(tags) ORDER BY id", "SELECT id FROM doc WHERE NOT ('a' = ANY(tags)) OR 3 = ANY(i) ORDER BY id",
	"SELECT id, 'vip' = ANY(tags), 'v1' = ANY(names), 1 = ANY(b), 4294967296 = ANY(i), 4294967296 = ANY(b), '2024-01-09' = ANY(d), true = ANY(ok), 'é' = ANY(ci), g = ANY(i), NULL = ANY(tags) FROM doc ORDER BY id",
	"SELECT count(*) FROM doc WHERE tags @> ARRAY['vip']", "SELECT count(*) FROM doc WHERE tags @> (ARRAY['vip'])::text[]", "SELECT id, tags @> '{}', tags @> '{vip,new}', tags @> '{a,NULL}', tags && ARRAY['a', 'new'], tags && '{}', tags && '{NULL}', i && ARRAY[1, 2], i @> '{4,3}', names @> ARRAY['v1']::varchar[] FROM doc ORDER BY id",
	"SELECT g, count(tags), sum(cardinality(tags)), count(*) FILTER (WHERE 'vip' = ANY(tags)) FROM doc GROUP BY g ORDER BY g",
	"SELECT a.id, b.tags FROM doc a LEFT JOIN doc b ON b.id = a.g WHERE a.id < 50 ORDER BY a.id", "SELECT id, lag(tags) OVER (ORDER BY id), first_value(i) OVER (PARTITION BY g ORDER BY id) FROM doc ORDER BY id",
	"SELECT id, tags @> '{a,vip}', tags && '{a,vip}' FROM doc ORDER BY id",
	"SELECT count(*) FROM doc WHERE tags = '{vip}'", "SELECT count(*) FROM doc WHERE NOT tags <> ARRAY['new']", "SELECT count(*) FROM doc WHERE tags <@ ARRAY['a']",
	"SELECT id, tags = '{}', tags = '[0:1]={x,y}', tags = '{x,y}', tags <> '{a,NULL,vip}', tags = '{{a,b},{c,d}}', tags = '{a,b,c,d}', i = '[5:6]={1,7}', i <> '{1,7}', b = '{1,4294967296}', ok = ARRAY[true, NULL], d = '{2024-01-02,infinity}', names <> ARRAY['v1', NULL, 'é']::varchar[] FROM doc ORDER BY id",
	"SELECT id, i = '{1,4,3}', i = '{3,4}', i <> '{4,2,3}' FROM doc ORDER BY id", // of which one element was null once
	"SELECT id, tags <@ '{}', tags <@ '{vip,new,a}', tags <@ '{a,NULL,vip}', i <@ '{1,2,3,4,7}', ok <@ ARRAY[true, false] FROM doc ORDER BY id",
	"SELECT id, array_positions(tags, 'vip'), array_positions(tags, NULL), array_remove(tags, 'vip'), array_remove(tags, NULL), array_remove(names, 'é'), array_remove(b, id::bigint), array_remove(ok, true), array_positions(u, NULL) FROM doc WHERE id % 10 <> 6 ORDER BY id",
	"SELECT id, array_remove(i, 1), array_remove(i, 7), array_positions(i, 7), array_remove(i, NULL), array_remove(i, 99) FROM doc WHERE coalesce(array_ndims(i), 1) = 1 ORDER BY id",
	"SELECT id, tags[1], tags[0], tags[-1], tags[id % 4], names[1::smallint], i[1], i[5], i[NULL], b[2], n[1], n[2], f[1], f[2], f[3], d[1], d[2], z[1], u[1], ok[1], i[2147483647], i[-2147483648] FROM doc ORDER BY id",
	"SELECT id, tags[1:2], tags[2:], tags[:1], tags[:], tags[0:0], tags[3:1], tags[id % 3:id % 5], names[2:3], i[2:3], i[6:], i[:5], i[NULL:2], i[5:6], n[1:2], ok[2:2], d[-5:1], names[1] = 'v1' FROM doc ORDER BY id",
	"SELECT tags[1], count(*) FROM doc GROUP BY 1 ORDER BY 1", "SELECT id FROM doc WHERE tags[1] = 'vip' OR i[2] > 2 ORDER BY id", "SELECT sum(n[1]), min(tags[2]), max(names[1]), max(f[1]), count(DISTINCT i[1]) FROM doc WHERE f[1] <> 0", "SELECT id, tags[1] < tags[2], upper(tags[1]) || names[1], tags[1] LIKE '%v%' FROM doc ORDER BY tags[1], id",
	"SELECT id, n || n, n || 1.5, n[1] || n, b || id::bigint, names || names, array_append(n, NULL), array_prepend(0.25, n), array_append(ok, g = 1), array_cat(ok, ok), d || d[2:], array_append(names, NULL), array_prepend('', names), u || u, array_append(f, 0.5::float8), array_prepend(z[1], z) FROM doc ORDER BY id",
	"SELECT id, array_append(i, 9), array_prepend(9, i), array_cat(i, i[9:]), array_cat(i[9:], i), i || i, i || id, id || i, i[2:] || i[:1], array_append(tags, 'é'), array_prepend(NULL, tags), tags || tags, array_append(i, NULL), i || NULL::int FROM doc WHERE coalesce(array_ndims(i), 1) = 1 AND coalesce(array_ndims(tags), 1) = 1 ORDER BY id",
	"SELECT id, array_replace(tags, 'vip', 'x y'), array_replace(tags, NULL, 'new'), array_replace(tags, 'a', NULL), array_replace(i, 7, NULL), array_replace(i, 1, 99), array_replace(names, 'é', 'e'), array_replace(b, id::bigint, 1::bigint), trim_array(names, 0), trim_array(names, 3), trim_array(b, 1), trim_array(n, 2) FROM doc ORDER BY id",
	"SELECT id, array_to_string(tags, ',') FROM doc ORDER BY 2, id",
	"SELECT unnest(tags) FROM doc ORDER BY 1", "SELECT cardinality(tags), count(*) FROM doc GROUP BY 1 ORDER BY 1", "SELECT id, tags FROM doc UNION ALL SELECT -id, tags FROM doc ORDER BY 1 LIMIT 9",
}

// columnsLeft are the server's.
var columnsLeft = []string{
	"SELECT tags, count(*) FROM doc GROUP BY tags ORDER BY 2, 1", "SELECT DISTINCT tags FROM doc ORDER BY 1", "SELECT id FROM doc ORDER BY tags, id", "SELECT id FROM doc WHERE tags < '{vip}' ORDER BY id", "SELECT id FROM doc WHERE n = '{1}' ORDER BY id", "SELECT id, array_remove(i, 1) FROM doc ORDER BY id", "SELECT id, array_positions(f, 1) FROM doc WHERE id < 9 ORDER BY id", "SELECT max(tags) FROM doc", "SELECT count(DISTINCT i) FROM doc",
	"SELECT id, tags::text FROM doc ORDER BY id", "SELECT id, i[1][2], i[1:1][1:2] FROM doc ORDER BY id", "SELECT id, ci[1] FROM doc ORDER BY 2, 1", "SELECT array_append(i, 1) FROM doc ORDER BY id", "SELECT trim_array(i, 1) FROM doc ORDER BY id", "SELECT trim_array(b, 3) FROM doc ORDER BY id", "SELECT array_replace(n, 1.5, 2) FROM doc ORDER BY id", "SELECT i || 1::bigint FROM doc ORDER BY id", "SELECT names || 'x'::text FROM doc ORDER BY id", "SELECT i[1::bigint] FROM doc ORDER BY id", "SELECT array_to_string(ci, ',') FROM doc ORDER BY 1",
	"SELECT count(*) FROM doc WHERE 1.5 = ANY(n)", "SELECT count(*) FROM doc WHERE 0 = ANY(f)",
	"SELECT count(*) FROM doc WHERE 'vip' COLLATE \"und-x-icu\" > ANY(tags)", "SELECT count(*) FROM doc WHERE b @> ARRAY[1]", "SELECT count(*) FROM doc WHERE names @> ARRAY['v1']", "SELECT coalesce(z, '{2024-01-01}') FROM doc ORDER BY id", "SELECT count(*) FROM doc WHERE z && '{2024-03-31 02:00}'",
	"SELECT count(*) FROM doc a JOIN doc b ON a.tags = b.tags", "SELECT tags || 'x' FROM doc ORDER BY id", "SELECT tags FROM doc INTERSECT SELECT tags FROM doc ORDER BY 1", "SELECT array_agg(tags ORDER BY id) FROM doc WHERE tags = '{vip}'",
	"SELECT count(*) FROM doc WHERE tags IS DISTINCT FROM '{vip}'", "SELECT nullif(tags, '{}') FROM doc ORDER BY id", "SELECT count(*) FROM doc WHERE tags IN ('{vip}', '{new}')",
}

// TestArrayColumns takes arrays through the copy, the stream, plans and results.
func TestArrayColumns(t *testing.T) {
	s := privateStack(t, arrayColumns)
	direct := connect(t, s.direct.url("postgres"))
	compare := func(t *testing.T) {
		for _, sql := range columnStatements {
			s.everyAnswer(t, true, sql)
		}
		s.everyAnswer(t, true, "SELECT id FROM doc WHERE $1 = ANY(tags) OR $2 = ANY(i) ORDER BY id", "new", "7")
		for _, sql := range columnsLeft {
			s.forwardsAll(t, func() { s.everyAnswer(t, false, sql) })
			if t.Failed() {
				t.Fatal(sql)
			}
		}
	}
	t.Run("copied", compare)
	for _, sql := range []string{
		"INSERT INTO doc SELECT id + 1000, g, tags || tags, names, i || i, b, n, f, d, z, u, ok, w, ci FROM doc WHERE id % 2 = 0", "UPDATE doc SET g = g + 1 WHERE id % 3 = 0",
		"UPDATE doc SET tags = ARRAY['vip', NULL, 'a b'] WHERE id % 7 = 0", "UPDATE doc SET tags = NULL, i = NULL WHERE id % 11 = 0", "UPDATE doc SET i[1] = 5 WHERE id % 11 = 0", "DELETE FROM doc WHERE id % 13 = 0",
	} {
		must(t, direct, sql)
	}
	t.Run("streamed", compare)
}
