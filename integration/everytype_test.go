package integration

import (
	"fmt"
	"strings"
	"testing"

	"pgaccel/sqltype"
)

// everyTypeSchema makes a table with a column of each type that a table may have: those of pg_type, among them some that
// were made, and of the extensions that the server has. Arrays and rows of a type that has no binary form are left out,
// which the server could not send.
const everyTypeSchema = `CREATE TYPE pair AS (x text, y int); CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN word AS text; CREATE DOMAIN span AS interval; CREATE TYPE spread AS RANGE (subtype = text);
DO $$ DECLARE e text; BEGIN
	FOR e IN SELECT name FROM pg_available_extensions WHERE name IN ('hstore', 'citext', 'ltree', 'cube', 'seg', 'isn') LOOP EXECUTE 'CREATE EXTENSION ' || e; END LOOP; END $$;
CREATE TABLE every_type (id int PRIMARY KEY);
DO $$ DECLARE y record; BEGIN
	FOR y IN SELECT t.oid, format('%I.%I', n.nspname, t.typname) AS name FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_type e ON e.oid = t.typelem
		WHERE t.typtype <> 'p' AND n.nspname IN ('pg_catalog', 'public') AND t.typrelid IN (0, 'pair'::regclass) AND (t.typelem = 0 OR e.typsend <> 0 AND e.typrelid IN (0, 'pair'::regclass)) ORDER BY t.oid
	LOOP
		BEGIN
			EXECUTE format('ALTER TABLE every_type ADD %I %s', 'c' || y.oid, y.name); EXCEPTION WHEN others THEN NULL; -- what a column cannot be of
		END; END LOOP; END $$;
INSERT INTO every_type SELECT i FROM generate_series(1, 100) i;
VACUUM ANALYZE;`

// TestEachColumnType: a table is copied whatever types its columns have. What is not held is left out alone, and who reads
// it is told why.
func TestEachColumnType(t *testing.T) {
	s := privateStack(t, everyTypeSchema)
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	s.everyAnswer(t, true, "SELECT count(*), sum(id) FROM every_type")
	columns := ask(t, direct, "SELECT a.attname || ' ' || a.atttypid || ' ' || a.atttypid::regtype FROM pg_attribute a WHERE a.attrelid = 'every_type'::regclass AND a.attnum > 1 ORDER BY a.attnum", nil)
	if len(columns.rows) < 130 {
		t.Fatalf("%d columns", len(columns.rows))
	}
	for _, row := range columns.rows {
		var name, of string
		var oid uint32
		if _, err := fmt.Sscan(strings.Trim(row, `"|`), &name, &oid, &of); err != nil {
			t.Fatal(err)
		}
		t.Run(of, func(t *testing.T) {
			sql := fmt.Sprintf("SELECT id, %s FROM every_type WHERE %[1]s IS NULL ORDER BY id", name)
			if of == "mood" || of == "word" || of == "span" || sqltype.OpaqueOf(oid) != nil || of == "citext" || of == "hstore" || sqltype.HeldKind(oid).Valid() && oid != sqltype.OIDBPChar {
				s.everyAnswer(t, true, sql)
				return
			}
			s.everyAnswer(t, false, sql)
			reason := ask(t, proxied, "SELECT detail FROM pgaccel.queries WHERE query LIKE '%id, "+name+" FROM every_type%' LIMIT 1", nil).String()
			if !strings.Contains(reason, "column "+name+": type ") && oid != sqltype.OIDBPChar {
				t.Errorf("%s of type %s: %s", name, of, reason)
			}
		})
	}
}
