package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// ddlCase is a change of definitions. In its texts T is the name of a table of its
// own, ddlTable's, so that each change meets a table that is accelerated.
type ddlCase struct {
	name  string
	setup string // run before pgaccel starts; statements end with ";\n"
	// steps are run one by one on a direct connection. A step may hold several
	// statements (a simple Query): those are one transaction.
	steps   []string
	queries []string // beside ddlQueries
	// alone: not in a transaction block, and may wait for old snapshots.
	alone   bool
	refused bool // T is not accelerated before, or only as a part of T_p
	parent  bool // T_p is partitioned and accelerated, before and in the end
	// fails: the last step is an error of the server's.
	fails string
	// stays: T is not accelerated afterwards, for the reason given.
	stays string
	// since and until are the majors of the server that the case is for; 0 for all.
	since, until int
}

const ddlTable = `CREATE TABLE T (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, t text, n numeric(12,2), d date, w varchar(20), s smallint);
INSERT INTO T SELECT i, i % 7, i * 3, 'text ' || i % 5, i / 4.0, date '2020-01-01' + i % 400, 'w' || i % 11, i % 13 FROM generate_series(1, 700) i;
`

// ddlQueries are asked after each step.
var ddlQueries = []string{
	"SELECT g, count(*), sum(v), min(id), max(t), sum(n) FROM T GROUP BY g ORDER BY g",
	"SELECT count(*) FROM T",
	"SELECT sum(v) FROM T WHERE w = 'w3' AND d < '2020-06-01'",
	"SELECT * FROM T WHERE id < 4 ORDER BY id, g, v",
}

const ofParent = "SELECT g, count(*), sum(v) FROM T_p GROUP BY g ORDER BY g"

const enumColumn = `CREATE TYPE T_mood AS ENUM ('paid', 'new', 'lost');
ALTER TABLE T ADD e T_mood;
UPDATE T SET e = CASE WHEN id % 2 = 0 THEN 'new' WHEN id % 7 > 0 THEN 'paid' END::T_mood;
`

var enumQueries = []string{"SELECT e, count(*), sum(v) FROM T GROUP BY e ORDER BY e", "SELECT id, e FROM T ORDER BY e DESC, id LIMIT 20", "SELECT count(*) FROM T WHERE e = 'new'", "SELECT count(*) FROM T WHERE e > 'paid'::T_mood",
	"SELECT e::text, min(e), max(e) FROM T GROUP BY 1 ORDER BY 1", "SELECT count(*) FROM T WHERE e = 'old' OR e < 'old'"}

const otherTable = `CREATE TABLE T_b (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, t text, n numeric(12,2), d date, w varchar(20), s smallint);
INSERT INTO T_b SELECT i, i % 3, i * 5, 'other ' || i % 5, i / 8.0, date '2020-03-01' + i % 40, 'w' || i % 4, i % 5 FROM generate_series(1, 300) i;
`

// one is the case of a single statement.
func one(sql string) ddlCase { return ddlCase{steps: []string{sql}} }

// ddlCases are the forms of ALTER TABLE in the order of its documentation, then what
// else gives a name or its rows another meaning.
var ddlCases = []ddlCase{
	// Columns.
	one("ALTER TABLE T ADD COLUMN x int"),
	one("ALTER TABLE T ADD COLUMN x int DEFAULT 5"),
	one("ALTER TABLE T ADD COLUMN x timestamptz DEFAULT clock_timestamp()"),
	one("ALTER TABLE T ADD COLUMN x bigserial"),
	one("ALTER TABLE T ADD COLUMN IF NOT EXISTS v int"),
	one("ALTER TABLE T ADD COLUMN x int CHECK (x > 0), ADD COLUMN y text UNIQUE, DROP COLUMN d"),
	one("ALTER TABLE T ADD COLUMN x int GENERATED ALWAYS AS (g * 2) STORED"),
	{steps: []string{"ALTER TABLE T ADD COLUMN x int GENERATED ALWAYS AS (g * 2) VIRTUAL"}, queries: []string{"SELECT g, sum(x) FROM T GROUP BY g ORDER BY g"}, since: 18},
	{steps: []string{"ALTER TABLE T ADD COLUMN x int GENERATED ALWAYS AS (g * 2)", "ALTER TABLE T ALTER COLUMN x SET EXPRESSION AS (g * 3)"}, queries: []string{"SELECT g, sum(x) FROM T GROUP BY g ORDER BY g"},
		fails: "not supported for virtual generated columns in tables that are part of a publication", since: 18},
	one("ALTER TABLE T DROP COLUMN s"),

	// Labels of an enum.
	{name: "ALTER TYPE ADD VALUE", setup: enumColumn, steps: []string{"ALTER TYPE T_mood ADD VALUE 'last'", "ALTER TYPE T_mood ADD VALUE 'first' BEFORE 'paid'", "UPDATE T SET e = 'first' WHERE id % 3 = 0", "ALTER TYPE T_mood ADD VALUE 'middle' AFTER 'new'", "INSERT INTO T SELECT i, 1, 1, 'x', 1, NULL, 'w3', 1, 'middle' FROM generate_series(1001, 1050) i"}, queries: enumQueries},
	{name: "ALTER TYPE RENAME VALUE", setup: enumColumn, steps: []string{"ALTER TYPE T_mood RENAME VALUE 'new' TO 'old'", "UPDATE T SET e = 'old' WHERE id % 5 = 0", "BEGIN; ALTER TYPE T_mood RENAME VALUE 'old' TO 'x'; ALTER TYPE T_mood RENAME VALUE 'paid' TO 'old'; ALTER TYPE T_mood RENAME VALUE 'x' TO 'paid'; COMMIT"}, queries: enumQueries},
	{name: "ALTER TYPE RENAME VALUE and back", setup: enumColumn, steps: []string{"ALTER TYPE T_mood RENAME VALUE 'new' TO 'old'", "INSERT INTO T SELECT i, 1, 1, 'x', 1, NULL, 'w3', 1, 'old' FROM generate_series(1001, 1050) i; ALTER TYPE T_mood RENAME VALUE 'old' TO 'new'"}, queries: enumQueries},
	{name: "ALTER TYPE RENAME", setup: enumColumn, steps: []string{"ALTER TYPE T_mood RENAME TO T_other", "CREATE TYPE T_mood AS ENUM ('new', 'paid')", "ALTER TABLE T ALTER e TYPE T_mood USING 'new'", "DROP TYPE T_other"}, queries: enumQueries},
	{name: "DROP TYPE", setup: enumColumn, steps: []string{"BEGIN; DROP TYPE T_mood CASCADE; CREATE TYPE T_mood AS ENUM ('new', 'paid'); ALTER TABLE T ADD e T_mood DEFAULT 'new'; COMMIT"}, queries: enumQueries},
	{name: "CREATE CAST of an enum", setup: enumColumn + "CREATE FUNCTION T_shown(T_mood) RETURNS text LANGUAGE sql AS $$SELECT 'shown'$$;\n", steps: []string{"CREATE CAST (T_mood AS text) WITH FUNCTION T_shown(T_mood)"}, queries: enumQueries},
	{name: "CREATE OPERATOR of an enum", setup: enumColumn + "CREATE FUNCTION T_never(T_mood, T_mood) RETURNS bool LANGUAGE sql AS $$SELECT false$$;\n", steps: []string{"CREATE OPERATOR public.~~~ (FUNCTION = T_never, LEFTARG = T_mood, RIGHTARG = T_mood)"}, queries: enumQueries},
	{name: "CREATE FUNCTION of an enum", setup: enumColumn, steps: []string{"CREATE AGGREGATE min(T_mood) (SFUNC = enum_larger, STYPE = T_mood)", "DROP AGGREGATE min(T_mood)"}, queries: enumQueries},
	one("ALTER TABLE T DROP COLUMN v"),
	{steps: []string{"ALTER TABLE T DROP COLUMN v CASCADE"}, setup: "CREATE VIEW T_view AS SELECT g, sum(v) FROM T GROUP BY g", queries: []string{"SELECT * FROM T_view ORDER BY g"}},
	{steps: []string{"ALTER TABLE T DROP COLUMN v", "ALTER TABLE T ADD COLUMN v bigint NOT NULL DEFAULT 7"}},
	{steps: []string{"ALTER TABLE T DROP COLUMN v, ADD COLUMN v bigint NOT NULL DEFAULT 7"}},
	one("ALTER TABLE T ALTER COLUMN v TYPE numeric(15,2)"),
	one("ALTER TABLE T ALTER COLUMN v TYPE bigint USING v + 100"),
	one("ALTER TABLE T ALTER COLUMN v TYPE int"),
	one("ALTER TABLE T ALTER COLUMN w TYPE varchar(50)"),
	one("ALTER TABLE T ALTER COLUMN w TYPE text"),
	one("ALTER TABLE T ALTER COLUMN w TYPE char(5)"),
	one(`ALTER TABLE T ALTER COLUMN t TYPE text COLLATE "POSIX"`),
	one("ALTER TABLE T ALTER COLUMN n TYPE numeric(8,1)"),
	one("ALTER TABLE T ALTER COLUMN n TYPE numeric"),
	one("ALTER TABLE T ALTER COLUMN d TYPE timestamp USING d + time '12:00'"),
	one("ALTER TABLE T ALTER COLUMN v TYPE jsonb USING to_jsonb(v)"),
	{steps: []string{"ALTER TABLE T ALTER COLUMN g SET DEFAULT 5", "INSERT INTO T (id, v) VALUES (9000, 1)", "ALTER TABLE T ALTER COLUMN g DROP DEFAULT"}},
	{steps: []string{"ALTER TABLE T ALTER COLUMN t SET NOT NULL", "ALTER TABLE T ALTER COLUMN t DROP NOT NULL", "INSERT INTO T VALUES (9000, 1, 1)"}},
	{steps: []string{"ALTER TABLE T ALTER COLUMN g DROP NOT NULL", "UPDATE T SET g = NULL WHERE id % 3 = 0"}},
	{steps: []string{"ALTER TABLE T ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (START 5000)", "INSERT INTO T (g, v) VALUES (1, 2)", "ALTER TABLE T ALTER COLUMN id SET GENERATED ALWAYS",
		"ALTER TABLE T ALTER COLUMN id RESTART WITH 7000", "INSERT INTO T (g, v) VALUES (1, 2)", "ALTER TABLE T ALTER COLUMN id DROP IDENTITY"}},
	{setup: "ALTER TABLE T ADD COLUMN e int GENERATED ALWAYS AS (g * 2) STORED", steps: []string{"ALTER TABLE T ALTER COLUMN e SET EXPRESSION AS (g * 3)"},
		queries: []string{"SELECT g, sum(e) FROM T GROUP BY g ORDER BY g"}, since: 17},
	{setup: "ALTER TABLE T ADD COLUMN e int GENERATED ALWAYS AS (g * 2) STORED", steps: []string{"ALTER TABLE T ALTER COLUMN e DROP EXPRESSION", "UPDATE T SET e = 1 WHERE g = 2"},
		queries: []string{"SELECT g, sum(e) FROM T GROUP BY g ORDER BY g"}},
	{steps: []string{"ALTER TABLE T ALTER COLUMN g SET STATISTICS 500", "ALTER TABLE T ALTER COLUMN g SET (n_distinct = 5)", "ALTER TABLE T ALTER COLUMN g RESET (n_distinct)"}},
	{steps: []string{"ALTER TABLE T ALTER COLUMN t SET STORAGE EXTERNAL", "UPDATE T SET t = repeat('long ', 2000) WHERE id % 50 = 0", "ALTER TABLE T ALTER COLUMN t SET STORAGE PLAIN"}},
	one("ALTER TABLE T ALTER COLUMN t SET COMPRESSION pglz"),
	{steps: []string{"ALTER TABLE T RENAME COLUMN v TO x", "ALTER TABLE T RENAME COLUMN x TO v"}},
	{name: "columns change names", steps: []string{"ALTER TABLE T RENAME COLUMN g TO x; ALTER TABLE T RENAME COLUMN id TO g; ALTER TABLE T RENAME COLUMN x TO id"}},

	// Constraints.
	{steps: []string{"ALTER TABLE T ADD CONSTRAINT c CHECK (v > 0) NOT VALID", "ALTER TABLE T VALIDATE CONSTRAINT c", "ALTER TABLE T RENAME CONSTRAINT c TO c2", "ALTER TABLE T DROP CONSTRAINT c2"}},
	{steps: []string{"ALTER TABLE T ADD CONSTRAINT T_u UNIQUE (g, id)", "ALTER TABLE T DROP CONSTRAINT T_u"}},
	{steps: []string{"CREATE UNIQUE INDEX T_i ON T (id, g)", "ALTER TABLE T ADD CONSTRAINT T_u UNIQUE USING INDEX T_i"}},
	{setup: otherTable, steps: []string{"ALTER TABLE T ADD CONSTRAINT c FOREIGN KEY (g) REFERENCES T_b (id) NOT VALID", "ALTER TABLE T ALTER CONSTRAINT c DEFERRABLE INITIALLY DEFERRED"}},
	{steps: []string{"ALTER TABLE T ADD CONSTRAINT T_x EXCLUDE USING btree (id WITH =)"}},
	{steps: []string{"ALTER TABLE T ADD CONSTRAINT c NOT NULL t NOT VALID", "ALTER TABLE T VALIDATE CONSTRAINT c", "ALTER TABLE T ALTER CONSTRAINT c NO INHERIT"}, since: 18},
	{steps: []string{"ALTER TABLE T DROP CONSTRAINT T_pkey"}, stays: "no replica identity"},
	{steps: []string{"ALTER TABLE T DROP CONSTRAINT T_pkey", "ALTER TABLE T ADD PRIMARY KEY (id)"}},
	{name: "a join's key is unique no more", setup: otherTable, steps: []string{"ALTER TABLE T_b DROP CONSTRAINT T_b_pkey, REPLICA IDENTITY FULL", "INSERT INTO T_b SELECT * FROM T_b"},
		queries: []string{"SELECT count(*), sum(T_b.v) FROM T JOIN T_b ON T.g = T_b.id", "SELECT count(*), sum(v) FROM T_b"}},

	// Triggers, rules, row security.
	{setup: "CREATE FUNCTION T_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v := -1; RETURN NEW; END';\nCREATE TRIGGER tr BEFORE UPDATE ON T FOR EACH ROW EXECUTE FUNCTION T_f()",
		steps: []string{"ALTER TABLE T DISABLE TRIGGER tr", "UPDATE T SET g = 1 WHERE id = 1", "ALTER TABLE T ENABLE TRIGGER tr", "UPDATE T SET g = 1 WHERE id = 2", "ALTER TABLE T ENABLE REPLICA TRIGGER tr",
			"ALTER TABLE T ENABLE ALWAYS TRIGGER tr", "ALTER TABLE T DISABLE TRIGGER USER", "ALTER TABLE T DISABLE TRIGGER ALL", "ALTER TABLE T ENABLE TRIGGER ALL"}},
	{steps: []string{"CREATE RULE r AS ON UPDATE TO T DO INSTEAD NOTHING", "UPDATE T SET v = 0", "ALTER TABLE T DISABLE RULE r", "ALTER TABLE T ENABLE REPLICA RULE r", "ALTER TABLE T ENABLE ALWAYS RULE r", "ALTER TABLE T ENABLE RULE r", "DROP RULE r ON T"}},
	{steps: []string{"ALTER TABLE T ENABLE ROW LEVEL SECURITY", "ALTER TABLE T FORCE ROW LEVEL SECURITY", "ALTER TABLE T NO FORCE ROW LEVEL SECURITY", "ALTER TABLE T DISABLE ROW LEVEL SECURITY"}},
	{name: "a rule makes the table a view", setup: otherTable, steps: []string{"TRUNCATE T; ALTER TABLE T DROP CONSTRAINT T_pkey; ALTER TABLE T ALTER COLUMN g DROP NOT NULL; ALTER TABLE T ALTER COLUMN v DROP NOT NULL; ALTER TABLE T ALTER COLUMN id DROP NOT NULL",
		"VACUUM T", `CREATE RULE "_RETURN" AS ON SELECT TO T DO INSTEAD SELECT * FROM T_b`}, alone: true, until: 15},

	// Storage.
	{steps: []string{"ALTER TABLE T CLUSTER ON T_pkey", "CLUSTER T", "ALTER TABLE T SET WITHOUT CLUSTER", "ALTER TABLE T SET WITHOUT OIDS"}, alone: true},
	one("ALTER TABLE T SET ACCESS METHOD heap"),
	one("ALTER TABLE T SET TABLESPACE elsewhere"),
	{name: "SET UNLOGGED", steps: []string{"ALTER TABLE T SET UNLOGGED"}, fails: "it is part of a publication"},
	{name: "SET LOGGED", refused: true, setup: "ALTER TABLE T SET UNLOGGED", steps: []string{"ALTER TABLE T SET LOGGED"}},
	{steps: []string{"ALTER TABLE T SET (fillfactor = 50, autovacuum_enabled = false, toast.autovacuum_enabled = false)", "ALTER TABLE T RESET (fillfactor)"}},

	// Inheritance, types, owners.
	{setup: "CREATE TABLE T_p (LIKE T)", steps: []string{"ALTER TABLE T INHERIT T_p", "ALTER TABLE T NO INHERIT T_p"}, queries: []string{"SELECT count(*) FROM T_p"}},
	{setup: otherTable, steps: []string{"ALTER TABLE T_b INHERIT T"}, queries: []string{"SELECT count(*) FROM ONLY T", "SELECT count(*) FROM T_b"}, stays: "inheritance"},
	{setup: otherTable, steps: []string{"ALTER TABLE T_b INHERIT T", "ALTER TABLE T_b NO INHERIT T", "ANALYZE T"}},
	{steps: []string{"CREATE TABLE T_c () INHERITS (T)", "INSERT INTO T_c SELECT id + 10000, g, v FROM T", "DROP TABLE T_c"}, stays: "inheritance"},
	{setup: "CREATE TYPE T_type AS (id int, g int, v bigint, t text, n numeric(12,2), d date, w varchar(20), s smallint)", steps: []string{"ALTER TABLE T OF T_type", "ALTER TABLE T NOT OF"}},
	{setup: "CREATE ROLE T_owner", steps: []string{"ALTER TABLE T OWNER TO T_owner", "ALTER TABLE T OWNER TO CURRENT_USER"}},
	{steps: []string{"ALTER TABLE T REPLICA IDENTITY FULL", "UPDATE T SET v = v + 1 WHERE g = 1", "ALTER TABLE T REPLICA IDENTITY DEFAULT", "DELETE FROM T WHERE g = 2"}},
	{setup: "CREATE UNIQUE INDEX T_i ON T (g, id)", steps: []string{"ALTER TABLE T REPLICA IDENTITY USING INDEX T_i", "UPDATE T SET v = v + 1 WHERE g = 1"}},
	{steps: []string{"ALTER TABLE T REPLICA IDENTITY NOTHING"}, stays: "no replica identity"},

	// Names.
	{steps: []string{"ALTER TABLE T RENAME TO T_x", "ALTER TABLE T_x RENAME TO T"}},
	{name: "two tables change names", setup: otherTable, steps: []string{"ALTER TABLE T RENAME TO T_x; ALTER TABLE T_b RENAME TO T; ALTER TABLE T_x RENAME TO T_b"}, queries: []string{"SELECT count(*), sum(v) FROM T_b"}},
	{name: "another takes the name", setup: otherTable, steps: []string{"BEGIN; ALTER TABLE T RENAME TO T_old; CREATE TABLE T (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL); INSERT INTO T VALUES (1, 2, 3); COMMIT", "DROP TABLE T", "ALTER TABLE T_old RENAME TO T"}},
	{steps: []string{"ALTER TABLE T SET SCHEMA other", "ALTER TABLE other.T SET SCHEMA public"}, queries: []string{"SELECT count(*) FROM other.T"}},
	{name: "schema renamed", setup: "CREATE SCHEMA T_s;\nCREATE TABLE T_s.T (id int PRIMARY KEY, v int)", steps: []string{"ALTER SCHEMA T_s RENAME TO T_z", "DROP SCHEMA T_z CASCADE"}, queries: []string{"SELECT count(*) FROM T_s.T"}},
	{name: "same name in another schema", steps: []string{"CREATE TABLE other.T (id int PRIMARY KEY, g int, v int)", "INSERT INTO other.T VALUES (1, 1, 1)"}, queries: []string{"SELECT g, sum(v) FROM other.T GROUP BY g"}},
	{steps: []string{"DROP TABLE T", "CREATE TABLE T (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, t text, n numeric(12,2), d date, w varchar(20), s smallint)", "INSERT INTO T SELECT i, i % 2, i FROM generate_series(1, 50) i"}},
	{name: "DROP and CREATE at once", steps: []string{"DROP TABLE T; CREATE TABLE T (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, t text); INSERT INTO T SELECT i, i % 2, i FROM generate_series(1, 50) i"}},
	{name: "CREATE TABLE AS over it", steps: []string{"DROP TABLE T; CREATE TABLE T AS SELECT i AS id, i % 3 AS g, i::bigint AS v FROM generate_series(1, 60) i", "ALTER TABLE T ADD PRIMARY KEY (id)"}},
	{name: "a view takes the name", setup: otherTable, steps: []string{"ALTER TABLE T RENAME TO T_x; CREATE VIEW T AS SELECT * FROM T_b", "DROP VIEW T; CREATE MATERIALIZED VIEW T AS SELECT * FROM T_x", "REFRESH MATERIALIZED VIEW T"}, stays: "a view"},
	{setup: "CREATE VIEW T_view AS SELECT g, sum(v) AS x FROM T GROUP BY g", steps: []string{"ALTER VIEW T_view RENAME COLUMN x TO y", "ALTER VIEW T_view SET (security_barrier)", "ALTER VIEW T_view RENAME TO T_w", "ALTER VIEW T_w SET SCHEMA other"},
		queries: []string{"SELECT * FROM T_view ORDER BY g"}},
	{setup: otherTable + "CREATE VIEW T_view AS SELECT g, v FROM T", steps: []string{"CREATE OR REPLACE VIEW T_view AS SELECT g, v FROM T_b"}, queries: []string{"SELECT g, sum(v) FROM T_view GROUP BY g ORDER BY g"}},

	// Partitions.
	{setup: "CREATE TABLE T_p (LIKE T) PARTITION BY RANGE (id)", steps: []string{"ALTER TABLE T_p ATTACH PARTITION T FOR VALUES FROM (0) TO (100000)", "INSERT INTO T_p VALUES (9000, 1, 1)", "ALTER TABLE T_p DETACH PARTITION T", "INSERT INTO T VALUES (9001, 1, 1)"},
		queries: []string{"SELECT count(*) FROM T_p"}},
	{setup: "CREATE TABLE T_p (LIKE T) PARTITION BY RANGE (id);\nALTER TABLE T_p ATTACH PARTITION T FOR VALUES FROM (0) TO (100000)", steps: []string{"ALTER TABLE T_p DETACH PARTITION T CONCURRENTLY"}, queries: []string{"SELECT count(*) FROM T_p"}, alone: true, refused: true},
	{name: "partitions of a parent", parent: true, setup: otherTable + `CREATE TABLE T_p (id int, g int NOT NULL, v bigint NOT NULL, PRIMARY KEY (id, g)) PARTITION BY LIST (g);
CREATE TABLE T_p0 PARTITION OF T_p FOR VALUES IN (0);
CREATE TABLE T_p1 PARTITION OF T_p FOR VALUES IN (1, 2);
CREATE TABLE T_p3 (id int, g int NOT NULL, v bigint NOT NULL, PRIMARY KEY (id, g));
INSERT INTO T_p SELECT id, g, v FROM T WHERE g < 3;
INSERT INTO T_p3 SELECT id, g, v FROM T WHERE g = 3`,
		steps: []string{"ALTER TABLE T_p ATTACH PARTITION T_p3 FOR VALUES IN (3)", "ALTER TABLE T_p DETACH PARTITION T_p0", "ALTER TABLE T_p ATTACH PARTITION T_p0 FOR VALUES IN (0)", "TRUNCATE T_p1", "INSERT INTO T_p VALUES (5, 1, 9), (6, 3, 9)",
			"UPDATE T_p SET g = 0 WHERE id = 5", "CREATE TABLE T_p4 PARTITION OF T_p DEFAULT", "INSERT INTO T_p VALUES (7, 8, 9)", "DROP TABLE T_p3", "ALTER TABLE T_p RENAME COLUMN v TO x; ALTER TABLE T_p RENAME COLUMN x TO v",
			"ALTER TABLE T_p ALTER COLUMN v TYPE bigint USING v + 100", "TRUNCATE T_p"},
		queries: []string{ofParent, "SELECT count(*), sum(v) FROM T_p0", "SELECT count(*) FROM T_p1"}},

	// Rows by other ways than writes.
	{steps: []string{"TRUNCATE T", "INSERT INTO T SELECT i, i % 10, i FROM generate_series(1, 300) i"}},
	{setup: "CREATE SEQUENCE T_seq OWNED BY T.id;\nALTER TABLE T ALTER COLUMN id SET DEFAULT nextval('T_seq')", steps: []string{"TRUNCATE T RESTART IDENTITY", "INSERT INTO T (g, v) VALUES (1, 1), (2, 2)"}},
	{setup: "CREATE TABLE T_b (id int PRIMARY KEY, r int REFERENCES T);\nINSERT INTO T_b SELECT i, i FROM generate_series(1, 100) i", steps: []string{"TRUNCATE T CASCADE"}, queries: []string{"SELECT count(*) FROM T_b"}},
	{name: "COPY FREEZE", steps: []string{`BEGIN; TRUNCATE T; COPY T (id, g, v) FROM PROGRAM 'printf "1\t2\t3\n4\t5\t6\n"' WITH (FREEZE); COMMIT`}},
	{steps: []string{"VACUUM FULL T", "VACUUM FREEZE T", "VACUUM ANALYZE T"}, alone: true},
	{steps: []string{"DELETE FROM T WHERE id > 100", "VACUUM T"}, alone: true},
	{steps: []string{"CLUSTER T USING T_pkey"}, alone: true},
	{steps: []string{"REINDEX TABLE T", "REINDEX TABLE CONCURRENTLY T", "CREATE INDEX CONCURRENTLY T_i ON T (g)", "REINDEX INDEX T_i", "DROP INDEX CONCURRENTLY T_i"}, alone: true},
	{steps: []string{"CREATE STATISTICS T_stat ON g, v FROM T", "ANALYZE T", "COMMENT ON TABLE T IS 'x'", "COMMENT ON COLUMN T.v IS 'x'"}},
	{steps: []string{"GRANT SELECT ON T TO PUBLIC", "GRANT SELECT (v) ON T TO PUBLIC", "REVOKE ALL ON T FROM PUBLIC"}},
}

// ddlName is the table of a case.
func ddlName(i int) string { return fmt.Sprintf("ddl_%02d", i) }

// fill puts the case's table into its text: T alone, and T_ before more of a name.
func fill(sql string, i int) string {
	var b strings.Builder
	word := func(c byte) bool {
		return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for p := 0; p < len(sql); p++ {
		if sql[p] == 'T' && (p == 0 || !word(sql[p-1])) && (p+1 == len(sql) || sql[p+1] == '_' || !word(sql[p+1])) {
			b.WriteString(ddlName(i))
		} else {
			b.WriteByte(sql[p])
		}
	}
	return b.String()
}

// bareServer is a server with nothing in it and no pgaccel yet (stack.serve).
func bareServer(t *testing.T) *stack {
	t.Helper()
	pg, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{pg: pg, direct: target{"direct", pg.Port, "postgres"}}
	t.Cleanup(func() {
		if bad := s.stop(); bad != "" {
			t.Errorf("pgaccel's log:\n%s", bad)
		}
	})
	return s
}

// serverMajor asks the server.
func serverMajor(t *testing.T, conn *pgconn.PgConn) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(strings.Trim(ask(t, conn, "SHOW server_version_num", nil).rows[0], `"|`), &n); err != nil {
		t.Fatal(err)
	}
	return n / 10000
}

// TestDefinitions changes definitions on a direct connection, each over a table of
// its own that is accelerated, and compares at once, after every step: two sessions
// with all protocols, statements prepared before, a REPEATABLE READ transaction begun
// before; and the same inside a transaction that is rolled back. In the end all that
// can be is accelerated again.
func TestDefinitions(t *testing.T) {
	bin := pgaccelProgram(t)
	s := bareServer(t)
	admin := connect(t, s.direct.url("postgres"))
	major := serverMajor(t, admin)
	// Autovacuum would forget after a minute that a table had children.
	for _, sql := range []string{"ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()", "SET lock_timeout = '10s'", "CREATE SCHEMA other", "SET allow_in_place_tablespaces = on", "CREATE TABLESPACE elsewhere LOCATION ''"} {
		must(t, admin, sql)
	}
	var cases []int
	for i, c := range ddlCases {
		if c.since > major || c.until != 0 && c.until < major {
			continue
		}
		cases = append(cases, i)
		for stmt := range strings.SplitSeq(strings.TrimSuffix(ddlTable+c.setup, ";\n"), ";\n") {
			must(t, admin, fill(stmt, i))
		}
	}
	must(t, admin, "VACUUM ANALYZE")
	if err := s.serve(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	d := ddlSessions{s: s, direct: connect(t, s.direct.url("postgres")), proxy: connect(t, s.proxy.url("postgres")), admin: admin,
		oldDirect: connect(t, s.direct.url("postgres")), oldProxy: connect(t, s.proxy.url("postgres"))}
	var ran []int // -run may choose
	for _, i := range cases {
		c := ddlCases[i]
		if c.name == "" {
			c.name = strings.Join(c.steps, "; ")
		}
		t.Run(c.name, func(t *testing.T) {
			ran = append(ran, i)
			d.run(t, i, c)
		})
	}
	for _, i := range ran {
		if ddlCases[i].parent {
			s.eventually(t, d.proxy, fill(ofParent, i))
		}
		switch c := ddlCases[i]; {
		case c.stays == "":
			s.eventually(t, d.proxy, fill("SELECT count(*) FROM T", i))
		default:
			s.forwardsAll(t, func() { ask(t, d.proxy, fill("SELECT count(*) FROM T", i), nil) })
		}
		for _, q := range slices.Concat(ddlQueries, ddlCases[i].queries) {
			same(t, d.direct, d.proxy, fill(q, i))
		}
	}
}

// ddlSessions are the connections of TestDefinitions.
type ddlSessions struct {
	s                   *stack
	admin               *pgconn.PgConn // makes the changes
	direct, proxy       *pgconn.PgConn
	oldDirect, oldProxy *pgconn.PgConn // in REPEATABLE READ, begun before
}

func (d *ddlSessions) run(t *testing.T, i int, c ddlCase) {
	var queries []string
	for _, q := range slices.Concat(ddlQueries, c.queries) {
		queries = append(queries, fill(q, i))
	}
	compare := func(t *testing.T) {
		t.Helper()
		for _, q := range queries {
			same(t, d.direct, d.proxy, q)
		}
	}
	eventually := func() {
		t.Helper()
		if !c.refused {
			d.s.eventually(t, d.proxy, queries[0])
		}
		if c.parent {
			d.s.eventually(t, d.proxy, fill(ofParent, i))
		}
	}
	eventually()
	compare(t)

	if !c.alone {
		var transcripts [2]string
		for k, conn := range []*pgconn.PgConn{d.direct, d.proxy} {
			for _, step := range slices.Concat([]string{"BEGIN", "SET LOCAL lock_timeout = '10s'"}, c.steps, []string{"ROLLBACK"}) {
				if strings.HasPrefix(step, "BEGIN; ") {
					continue // one that ends its own transaction
				}
				a := ask(t, conn, fill(step, i), nil)
				transcripts[k] += fmt.Sprintln(step, a.rows, a.err)
				if step == "BEGIN" || a.err != "" || step == "ROLLBACK" {
					continue
				}
				for n, q := range queries {
					a := ask(t, conn, "SAVEPOINT q; "+q, nil)
					if a.err != "" {
						ask(t, conn, "ROLLBACK TO q", nil)
					}
					b := ask(t, conn, q, protocols[n%len(protocols)].format)
					if b.err != "" {
						ask(t, conn, "ROLLBACK TO q", nil)
					}
					transcripts[k] += fmt.Sprintln(q, a.rows, a.err, b.rows, b.err)
				}
			}
		}
		if strings.Contains(fmt.Sprint(c.steps), "clock_timestamp") || strings.Contains(fmt.Sprint(c.steps), "RESTART") {
			transcripts[0], transcripts[1] = "", "" // not the same twice
		}
		if transcripts[0] != transcripts[1] {
			t.Errorf("inside a transaction%s", firstDifference([]byte(transcripts[1]), []byte(transcripts[0])))
		}
		// What was rolled back leaves nothing.
		eventually()
		compare(t)
	}

	prepared := fmt.Sprintf("p%d", i)
	for _, conn := range []*pgconn.PgConn{d.direct, d.proxy} {
		for n, q := range queries {
			if _, err := conn.Prepare(t.Context(), fmt.Sprint(prepared, "_", n), q, nil); err != nil && c.since == 0 && c.name != "schema renamed" {
				t.Log(q, err) // a column that the change will bring
			}
		}
	}
	executed := func(conn *pgconn.PgConn) (text string) {
		for n, q := range queries {
			for _, format := range []int16{0, 1} {
				r := conn.ExecPrepared(t.Context(), fmt.Sprint(prepared, "_", n), nil, nil, []int16{format}).Read()
				var a answer
				a.note(r.Err)
				text += fmt.Sprintf("%s: %q %s\n", q, r.Rows, a.err)
			}
		}
		return text
	}
	least := 1
	if c.refused {
		least = 0
	}
	d.s.accelerates(t, least, func() {
		if a, b := executed(d.direct), executed(d.proxy); a != b {
			t.Errorf("prepared, before: %s", firstDifference([]byte(b), []byte(a)))
		}
	})
	for k, step := range c.steps {
		step = fill(step, i)
		if !c.alone {
			for _, conn := range []*pgconn.PgConn{d.oldDirect, d.oldProxy} {
				must(t, conn, "BEGIN ISOLATION LEVEL REPEATABLE READ")
				must(t, conn, "SELECT txid_current_snapshot()") // fixes it, and locks no table
			}
		}
		a := ask(t, d.admin, step, nil)
		if last := k == len(c.steps)-1; (a.err != "") != (last && c.fails != "") || !strings.Contains(a.err, c.fails) && last {
			t.Fatalf("%s: %s", step, a.err)
		}
		if a, b := executed(d.direct), executed(d.proxy); a != b {
			t.Errorf("prepared, after %s: %s", step, firstDifference([]byte(b), []byte(a)))
		}
		for _, q := range queries {
			same(t, d.direct, d.proxy, q)
			if !c.alone {
				for n := range protocols {
					var answers [2]answer
					for k, conn := range []*pgconn.PgConn{d.oldDirect, d.oldProxy} {
						must(t, conn, "SAVEPOINT q")
						answers[k] = ask(t, conn, q, protocols[n].format)
						must(t, conn, "ROLLBACK TO q")
					}
					if answers[0].String() != answers[1].String() {
						t.Errorf("REPEATABLE READ begun before %s: %s (%s): %s", step, q, protocols[n].name, firstDifference([]byte(answers[1].String()), []byte(answers[0].String())))
					}
				}
			}
		}
		if !c.alone {
			for _, conn := range []*pgconn.PgConn{d.oldDirect, d.oldProxy} {
				must(t, conn, "COMMIT")
			}
		}
	}
}

// must runs a statement that must not fail.
func must(t testing.TB, conn *pgconn.PgConn, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
