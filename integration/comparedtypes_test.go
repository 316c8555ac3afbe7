package integration

import (
	"strings"
	"testing"
)

// TestOIDs compares numbers of objects with each other and with integers, whose bits they take.
func TestOIDs(t *testing.T) {
	s := privateStack(t, "CREATE TABLE objects (id int PRIMARY KEY, o oid, p oid, i int, l bigint, list oid[]); "+
		"INSERT INTO objects SELECT i, (i * 104857601::bigint)::oid, nullif(i % 7, 3)::oid, i - 3, i * 104857601::bigint, ARRAY[i::oid, 4294967295] FROM generate_series(0, 40) i;\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, o, p, list FROM objects ORDER BY o DESC, id", "SELECT p, count(*), min(o), max(o), count(DISTINCT o) FROM objects GROUP BY p ORDER BY p", "SELECT count(*) FROM objects WHERE o > 2147483647",
		"SELECT count(*) FROM objects WHERE o < -1", "SELECT count(*) FROM objects WHERE o >= 4294967296 - 4000000000", "SELECT id FROM objects WHERE p IN (1, 2, 5) OR o = 104857601 ORDER BY id", "SELECT id FROM objects WHERE p <> ALL (ARRAY[1, 2]::oid[]) ORDER BY id", "SELECT count(*) FROM objects WHERE o BETWEEN 5::smallint AND '3000000000'",
		"SELECT id, o::bigint + 1, l::oid, o::text, o || 'x', concat(p, o) FROM objects ORDER BY id", "SELECT a.id, b.id FROM objects a JOIN objects b ON a.p = b.o ORDER BY 1, 2", "SELECT id, rank() OVER (ORDER BY p, o), lag(o) OVER (ORDER BY id) FROM objects ORDER BY id",
		"SELECT id, coalesce(p, 7), CASE WHEN id > 3 THEN o ELSE 4294967295 END, nullif(p, 1), greatest(o, p) FROM objects ORDER BY id", "SELECT DISTINCT p FROM objects WHERE o IS DISTINCT FROM p ORDER BY 1", "SELECT o FROM objects WHERE id < 5 UNION SELECT p FROM objects ORDER BY 1"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM objects WHERE o >= $1 ORDER BY id", "3000000000")
	for _, sql := range []string{"SELECT count(*) FROM objects WHERE o = i", "SELECT count(*) FROM objects WHERE o > 4294967296", "SELECT count(*) FROM objects WHERE o = '-1'", "SELECT count(*) FROM objects WHERE o = '010'", "SELECT o + 1 FROM objects", "SELECT id, i::oid FROM objects ORDER BY id",
		"SELECT sum(o) FROM objects", "SELECT count(*) FROM objects WHERE o < 2.5", "SELECT id, o::int FROM objects WHERE id < 5 ORDER BY id", "SELECT id, (l * -1)::oid FROM objects ORDER BY id", "SELECT to_jsonb(o) FROM objects ORDER BY id"} {
		s.everyAnswer(t, false, sql)
	}
}

// TestNames compares names, whose order is that of C, with each other, with constants and with text of that collation.
func TestNames(t *testing.T) {
	s := privateStack(t, "CREATE TABLE named (id int PRIMARY KEY, n name, m name, c text COLLATE \"C\", d text, v varchar(20) COLLATE \"C\", b char(5) COLLATE \"C\", list name[]); "+
		"INSERT INTO named SELECT i, (ARRAY['a','B','Größe','pg_class','a b','_x','','Zz'])[1 + i % 8], nullif((ARRAY['a','b','pg_type'])[1 + i % 3], 'b'), (ARRAY['a','B','pg_class',repeat('x', 70)])[1 + i % 4], 'a', 'B', 'a', ARRAY['a', 'é']::name[] FROM generate_series(0, 40) i; "+
		"CREATE TABLE other (id int PRIMARY KEY, n name COLLATE \"POSIX\"); INSERT INTO other VALUES (1, 'a');\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, n, m, list FROM named ORDER BY n DESC, id", "SELECT m, count(*), count(DISTINCT n), min(n), max(n) FROM named GROUP BY m ORDER BY m", "SELECT count(*) FROM named WHERE n > 'a' OR n = '_x'", "SELECT id FROM named WHERE n IN ('a', 'B', 'é') ORDER BY id",
		"SELECT id FROM named WHERE n LIKE 'pg%' OR n ILIKE 'b%' OR n NOT LIKE '%ö%' ORDER BY id", "SELECT id FROM named WHERE n ~ '^pg_' OR n !~* 'A' ORDER BY id", "SELECT id, n = c, n < c, c >= n, n <> v, n = m FROM named ORDER BY id", "SELECT id, n::text, n::varchar, n || '.' || m, upper(n), length(n), left(n, 2), concat(n, m), md5(n), replace(n, 'a', 'b') FROM named ORDER BY id",
		"SELECT a.id, b.id FROM named a JOIN named b ON a.n = b.m ORDER BY 1, 2", "SELECT a.id, b.id FROM named a JOIN named b ON a.n = b.c ORDER BY 1, 2", "SELECT id, rank() OVER (ORDER BY n), lag(n) OVER (ORDER BY id) FROM named ORDER BY id", "SELECT DISTINCT n FROM named WHERE n IS DISTINCT FROM m ORDER BY 1", "SELECT upper(n) AS u, count(*) FROM named GROUP BY 1 ORDER BY 1",
		"SELECT id, coalesce(m, 'none'), CASE WHEN id > 3 THEN n ELSE 'x' END, nullif(n, 'a'), greatest(n, m) FROM named ORDER BY id", "SELECT n FROM named WHERE id < 5 UNION SELECT m FROM named ORDER BY 1", "SELECT id, starts_with(n, 'pg'), n BETWEEN 'a' AND 'b' FROM named ORDER BY id", "SELECT count(*) FROM named WHERE n = 'pg_class'::text"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM named WHERE n >= $1 AND m = $2 ORDER BY id", "a", "a")
	for _, sql := range []string{"SELECT count(*) FROM named WHERE n = '" + strings.Repeat("a", 64) + "'", "SELECT count(*) FROM named WHERE n = d", "SELECT id, n < d FROM named ORDER BY id", "SELECT id, c::name FROM named ORDER BY id", "SELECT id, coalesce(n, c) FROM named ORDER BY id", "SELECT id, coalesce(c, n) FROM named ORDER BY id",
		"SELECT id, n = b FROM named ORDER BY id", "SELECT n COLLATE \"POSIX\" FROM named ORDER BY 1", "SELECT id FROM named WHERE n = current_user ORDER BY id", "SELECT string_agg(n, ',' ORDER BY id) FROM named", "SELECT n FROM named UNION SELECT c FROM named ORDER BY 1", "SELECT c FROM named UNION SELECT n FROM named ORDER BY 1", "SELECT n FROM other ORDER BY 1",
		"SELECT id, quote_ident(n) FROM named ORDER BY id", "SELECT id, n, quote_nullable(id) FROM named ORDER BY id", "SELECT array_agg(n ORDER BY id) FROM named", "SELECT id FROM named WHERE n = ANY (ARRAY['a', 'b']) ORDER BY id", "SELECT id FROM named WHERE n = ANY (list) ORDER BY id", "SELECT to_jsonb(n) FROM named ORDER BY id"} {
		s.everyAnswer(t, false, sql)
	}
	s.everyAnswer(t, false, "SELECT id FROM named WHERE n = $1 ORDER BY id", strings.Repeat("a", 70))
}
