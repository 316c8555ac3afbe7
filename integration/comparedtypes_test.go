package integration

import "testing"

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
