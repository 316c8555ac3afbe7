package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/catalog"
	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
	"pgaccel/plan"
	"pgaccel/sqltype"
	"pgaccel/vector"
)

// gateBench is a server with two tables, and a plan over them made by hand.
type gateBench struct {
	t         *testing.T
	server    *pgserver.Server
	admin     *pgx.Conn
	query     *plan.Deps
	star      *plan.Star
	engine    *Engine
	operators string // that the plan knows of: catalog.OperatorsSQL
}

func newGateBench(t *testing.T) *gateBench {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b := &gateBench{t: t, server: server}
	b.admin = b.connect("postgres")
	b.exec(b.admin, `CREATE SCHEMA s; CREATE TABLE fact (k int PRIMARY KEY, v int, w int); CREATE TABLE s.dim (id int PRIMARY KEY, "Name" text);
		CREATE ROLE reader LOGIN; GRANT SELECT ON fact TO reader; GRANT USAGE ON SCHEMA s TO reader; GRANT SELECT ON s.dim TO reader`)
	b.query, b.star = b.plan(), &plan.Star{}
	b.lookAtFunctions()
	store := colstore.New(colstore.Options{MemoryLimit: 64 << 20})
	t.Cleanup(store.Close)
	b.engine = New(Options{Store: store})
	var start string
	if err := b.admin.QueryRow(ctx, "SELECT "+catalog.DatabaseSQL).Scan(&start); err != nil {
		t.Fatal(err)
	}
	store.Restart(start, 0)
	return b
}

func (b *gateBench) lookAtFunctions() {
	b.t.Helper()
	if err := b.admin.QueryRow(context.Background(), "SELECT "+catalog.OperatorsSQL).Scan(&b.operators); err != nil {
		b.t.Fatal(err)
	}
}

// plan describes the tables as they are now.
func (b *gateBench) plan() *plan.Deps {
	b.t.Helper()
	table := func(schema, name string, columns ...string) *catalog.Table {
		m := &catalog.Table{Schema: schema, Name: name}
		err := b.admin.QueryRow(context.Background(), "SELECT c.oid, "+catalog.FingerprintSQL("c.oid")+
			" FROM pg_class c WHERE c.oid = ($1::text||'.'||$2::text)::regclass", schema, name).Scan(&m.OID, &m.Fingerprint)
		if err != nil {
			b.t.Fatal(err)
		}
		for i, c := range columns {
			m.Columns = append(m.Columns, catalog.Column{Name: c, AttNum: int16(i + 1), Type: vector.TypeOf(vector.Int4)})
		}
		return m
	}
	return &plan.Deps{Tables: []plan.Table{
		{Meta: table("public", "fact", "k", "v", "w"), Ref: `"fact"`, Columns: []int{0, 1}},
		{Meta: table("s", "dim", "id", "Name"), Ref: `"s"."dim"`, Columns: []int{0, 1}},
	}}
}

func (b *gateBench) connect(user string) *pgx.Conn {
	b.t.Helper()
	c, err := pgx.Connect(context.Background(), b.server.URL(user, "postgres"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func (b *gateBench) exec(c *pgx.Conn, sql string) {
	b.t.Helper()
	if _, err := c.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// gate runs the gate on c as the proxy does.
func (b *gateBench) gate(c *pgx.Conn, q *plan.Deps) Gate {
	b.t.Helper()
	sent := time.Now()
	var params [][]byte
	call := b.engine.call(GateFull, gateParams(q), q)
	for _, p := range call.Params {
		params = append(params, []byte(p))
	}
	oids := []uint32{25, 25, 25, 25, 25, 25}
	res := c.PgConn().ExecParams(context.Background(), gateSQL, params, oids, nil, nil).Read()
	if res.Err != nil {
		b.t.Fatalf("the gate failed: %v", res.Err)
	}
	return Gate{Rows: texts(res), Sent: sent, Asked: call}
}

// ask runs the gate on c and returns the verdict.
func (b *gateBench) ask(c *pgx.Conn, q *plan.Deps) *plan.Forward {
	b.t.Helper()
	g, err := parseGate(b.gate(c, q), len(q.Tables))
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { b.engine.learn(g, gateParams(q)[gateFunctions]) }()
	return b.engine.checkGate(&decision{deps: q, query: b.star, catalog: &catalog.Catalog{Operators: b.operators}}, g)
}

func texts(res *pgconn.Result) [][]*string {
	var rows [][]*string
	for _, r := range res.Rows {
		row := make([]*string, len(r))
		for i, v := range r {
			if v != nil {
				s := string(v)
				row[i] = &s
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (b *gateBench) want(c *pgx.Conn, what string, reason plan.Reason) {
	b.t.Helper()
	got := plan.Reason("")
	if f := b.ask(c, b.query); f != nil {
		got = f.Reason
	}
	if got != reason {
		b.t.Errorf("%s: the gate says %q, want %q", what, got, reason)
	}
}

func TestGateRights(t *testing.T) {
	b := newGateBench(t)
	reader := b.connect("reader")
	b.want(b.admin, "superuser", "")
	b.want(reader, "reader with grants", "")
	step := func(what, sql string, reason plan.Reason) {
		t.Helper()
		b.exec(b.admin, sql)
		b.query = b.plan() // grants change the fingerprint
		b.want(reader, what, reason)
		b.want(b.admin, "superuser after: "+what, "")
	}
	step("table revoked", "REVOKE SELECT ON fact FROM reader", plan.ReasonPrivilege)
	step("one column of two", "GRANT SELECT (k) ON fact TO reader", plan.ReasonPrivilege)
	step("both columns", "GRANT SELECT (v) ON fact TO reader", "")
	step("row-level security", "CREATE POLICY p ON fact USING (v > 0); ALTER TABLE fact ENABLE ROW LEVEL SECURITY", plan.ReasonRLS)
	step("row-level security off again", "ALTER TABLE fact DISABLE ROW LEVEL SECURITY", "")
	step("schema revoked", "REVOKE USAGE ON SCHEMA s FROM reader", plan.ReasonPrivilege)
	step("schema granted", "GRANT USAGE ON SCHEMA s TO reader", "")
	b.exec(b.admin, "SET ROLE reader; SET SESSION AUTHORIZATION DEFAULT; CREATE ROLE nobody2; SET ROLE nobody2")
	b.want(b.admin, "SET ROLE to one without grants", plan.ReasonPrivilege)
}

// TestGateServer: all sessions of a database name the server alike, in whatever way they write times, and
// in a transaction of before, too. Those of another database of it do not.
func TestGateServer(t *testing.T) {
	b := newGateBench(t)
	var want string
	if err := b.admin.QueryRow(context.Background(), "SELECT "+catalog.DatabaseSQL).Scan(&want); err != nil || want == "" {
		t.Fatalf("%q, %v", want, err)
	}
	for _, c := range []*pgx.Conn{b.admin, b.connect("reader")} {
		for _, sql := range []string{"SELECT 1", "SET TimeZone = 'Asia/Tokyo'", "SET DateStyle = 'German'", "SET bytea_output = 'escape'", "BEGIN ISOLATION LEVEL REPEATABLE READ"} {
			b.exec(c, sql)
			g, err := parseGate(b.gate(c, b.query), len(b.query.Tables))
			if err != nil || g.server != want {
				t.Errorf("%s: %q, want %q, %v", sql, g.server, want, err)
			}
		}
	}
	b.exec(b.admin, "ROLLBACK")
	b.exec(b.admin, "CREATE DATABASE elsewhere")
	c, err := pgx.Connect(context.Background(), b.server.URL("reader", "elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	g, err := parseGate(b.gate(c, b.query), len(b.query.Tables))
	if err != nil || g.server == want || !catalog.SameServer(g.server, want) {
		t.Errorf("another database: %q beside %q, %v", g.server, want, err)
	}
	if f := b.engine.otherServer(g.server); f.Reason != plan.ReasonServer || !strings.Contains(f.Detail, "another database") {
		t.Errorf("%v", f)
	}
}

// TestGateBuiltins takes EXECUTE on built-in functions from roles.
func TestGateBuiltins(t *testing.T) {
	b := newGateBench(t)
	b.query.Calls = []uint32{65, 147, 2108} // int4eq, int4gt, sum(int4)
	reader := b.connect("reader")
	step := func(sql string, reason plan.Reason) {
		t.Helper()
		b.exec(b.admin, sql)
		b.want(reader, sql, reason)
		b.want(b.admin, "superuser after: "+sql, "")
	}
	step("SELECT 1", "")
	step("REVOKE EXECUTE ON FUNCTION pg_catalog.sum(bigint), pg_catalog.int4lt(int, int) FROM PUBLIC", "") // not called
	step("REVOKE EXECUTE ON FUNCTION pg_catalog.sum(int) FROM PUBLIC", plan.ReasonPrivilege)
	step("GRANT EXECUTE ON FUNCTION pg_catalog.sum(int) TO reader", "")
	step("REVOKE EXECUTE ON FUNCTION pg_catalog.int4eq(int, int) FROM PUBLIC", plan.ReasonPrivilege)
	b.exec(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
	b.want(reader, "in an old snapshot", plan.ReasonPrivilege)
	step("GRANT EXECUTE ON FUNCTION pg_catalog.int4eq(int, int) TO reader", "")
	step("REVOKE EXECUTE ON FUNCTION pg_catalog.int4eq(int, int) FROM reader", plan.ReasonPrivilege)
	b.query.Calls = []uint32{4294967295}
	b.want(b.admin, "a function that is not there, and so is not called", "")
}

func TestGateNames(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	b.exec(c, "CREATE TEMP TABLE fact (k int, v int)")
	b.want(c, "temporary table of the name", plan.ReasonResolved)
	b.exec(c, "DROP TABLE pg_temp.fact")
	b.want(c, "temporary table gone", "")
	b.exec(c, "CREATE SCHEMA other; CREATE TABLE other.fact (k int, v int); SET search_path = other, public")
	b.want(c, "search_path", plan.ReasonResolved)
	b.exec(c, "SET search_path = public, pg_catalog")
	b.want(c, "pg_catalog not first", plan.ReasonShadowed)
	b.exec(c, "SET search_path = pg_catalog, public")
	b.want(c, "pg_catalog first by name", "")
	b.exec(c, "SET search_path = ''")
	b.want(c, "empty search_path", plan.ReasonResolved)
}

func TestGateSeesNewFunctions(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	b.query.Functions = []string{"abs", "date_trunc", "sum"}
	b.exec(b.admin, "CREATE DOMAIN word AS text; CREATE TYPE mixed AS (a int)")
	for _, step := range []struct{ sql, undo string }{
		{"CREATE FUNCTION public.abs(smallint) RETURNS int LANGUAGE sql AS 'SELECT 7'", "ALTER FUNCTION public.abs(smallint) RENAME TO other"},
		{"ALTER FUNCTION public.other(smallint) RENAME TO abs", "DROP FUNCTION public.abs(smallint)"},
		{"CREATE FUNCTION s.sum(varchar, word) RETURNS int LANGUAGE sql AS 'SELECT 7'", "DROP FUNCTION s.sum(varchar, word)"},
		{"CREATE AGGREGATE s.sum(*) (SFUNC = int8inc, STYPE = int8, INITCOND = '7')", "DROP AGGREGATE s.sum(*)"},
		{"CREATE OPERATOR public.= (FUNCTION = pg_catalog.int42eq, LEFTARG = int, RIGHTARG = smallint)", ""},
		{"CREATE CAST (smallint AS money) WITH INOUT AS IMPLICIT", ""},
		{"CREATE CAST (bigint AS text) WITH INOUT", ""},
	} {
		b.want(c, "before "+step.sql, "")
		b.exec(b.admin, step.sql)
		b.want(c, step.sql, plan.ReasonShadowed)
		if step.undo != "" {
			b.exec(b.admin, step.undo)
			b.want(c, step.undo, "")
		}
		b.lookAtFunctions()
	}
	b.want(c, "known", "")
	b.exec(b.admin, "CREATE FUNCTION public.ceil(smallint) RETURNS int LANGUAGE sql AS 'SELECT 7'")
	b.want(c, "a function that the query does not call", "")
	b.exec(b.admin, "CREATE FUNCTION public.sum(mixed, text) RETURNS int LANGUAGE sql AS 'SELECT 7'")
	b.want(c, "a function of types that no column has", "")

	b.exec(c, "CREATE TEMP TABLE something (a int)")
	b.want(c, "a temporary table", "")
	b.exec(c, "CREATE DOMAIN pg_temp.date AS int")
	b.want(c, "a temporary type with a built-in's name", plan.ReasonShadowed)
	b.want(b.connect("postgres"), "it is another session's", "")
	b.exec(c, "DISCARD TEMP")
	for _, k := range vector.Kinds() {
		name := "pg_temp." + sqltype.Of(k).Name
		b.exec(c, "CREATE DOMAIN "+name+" AS pg_catalog.int4")
		b.want(c, "a temporary type "+name, plan.ReasonShadowed)
		b.exec(c, "DROP DOMAIN "+name)
	}
	b.want(c, "without temporary objects", "")
}

// TestGateSeesOverlappingCreation: an operator or cast that is committed after another of a
// higher OID is one that the plan does not know.
func TestGateSeesOverlappingCreation(t *testing.T) {
	b := newGateBench(t)
	c, first, second := b.connect("postgres"), b.connect("postgres"), b.connect("postgres")
	b.exec(b.admin, "CREATE FUNCTION never(int, numeric) RETURNS bool LANGUAGE sql AS 'SELECT false'; CREATE FUNCTION seven(bigint) RETURNS text LANGUAGE sql AS 'SELECT 7::text'; CREATE SCHEMA away")
	for _, step := range []struct{ low, high, undo, harmless string }{
		{"CREATE OPERATOR = (FUNCTION = never, LEFTARG = int, RIGHTARG = numeric)", "CREATE OPERATOR ### (FUNCTION = never, LEFTARG = int, RIGHTARG = numeric)",
			"DROP OPERATOR = (int, numeric)", "ALTER OPERATOR ### (int, numeric) SET SCHEMA away"},
		{"CREATE CAST (bigint AS text) WITH FUNCTION seven(bigint)", "CREATE CAST (bigint AS box) WITH INOUT", "DROP CAST (bigint AS text)", "COMMENT ON CAST (bigint AS box) IS 'none'"},
	} {
		b.exec(first, "BEGIN; "+step.low)
		b.exec(second, step.high)
		b.lookAtFunctions()
		b.want(c, "before it is committed", "")
		b.exec(first, "COMMIT")
		b.want(c, step.low+" committed after another", plan.ReasonShadowed)
		b.lookAtFunctions()
		b.exec(b.admin, step.harmless)
		b.want(c, step.harmless, "")
		b.exec(b.admin, "BEGIN; "+step.undo+"; "+step.low+"; COMMIT")
		b.want(c, step.low+" again, another", plan.ReasonShadowed)
		b.lookAtFunctions()
	}
}

func TestGateDefinition(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	f := func(sql string, reason plan.Reason) {
		t.Helper()
		b.exec(b.admin, sql)
		b.want(c, sql, reason)
		if reason != "" && reason != plan.ReasonResolved && reason != plan.ReasonPrivilege {
			b.query = b.plan()
			b.want(c, "looked at again after "+sql, "")
		}
	}
	f("ANALYZE fact", "")
	f("VACUUM fact", "")
	f("CREATE INDEX ON fact (v)", "")
	f("ALTER TABLE fact ALTER v TYPE int USING v + 1", plan.ReasonDDL)
	f("TRUNCATE fact", plan.ReasonDDL)
	f("ALTER TABLE fact ADD extra int DEFAULT 7", plan.ReasonDDL)
	f("ALTER TABLE fact DROP extra", plan.ReasonDDL)
	f(`ALTER TABLE s.dim RENAME "Name" TO n2`, plan.ReasonDDL)
	f(`ALTER TABLE s.dim RENAME n2 TO "Name"`, plan.ReasonDDL)
	f("VACUUM FULL fact", plan.ReasonDDL)
	f("ALTER TABLE fact DROP v", plan.ReasonPrivilege)
	f("DROP TABLE fact", plan.ReasonResolved)
}

func TestGateTransaction(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	f := func(sql string, reason plan.Reason) {
		t.Helper()
		b.exec(c, sql)
		b.want(c, sql, reason)
	}
	f("BEGIN", "")
	f("SAVEPOINT a", "")
	f("UPDATE fact SET v = 1 WHERE false", "")
	f("INSERT INTO fact VALUES (1, 1, 1)", plan.ReasonOwnWrites)
	f("ROLLBACK TO a", plan.ReasonOwnWrites)
	f("ROLLBACK", "")
	f("BEGIN ISOLATION LEVEL SERIALIZABLE", plan.ReasonIsolation)
	f("ROLLBACK; SET pgaccel.mode = 'off'", plan.ReasonMode)
	f("RESET pgaccel.mode", "")
	for _, setting := range []string{"standard_conforming_strings = off", "transform_null_equals = on", "array_nulls = off"} {
		f("SET "+setting, plan.ReasonSettings)
		f("RESET ALL", "")
	}
	f("BEGIN; SET LOCAL pgaccel.mode = 'off'", plan.ReasonMode)
	f("ROLLBACK", "")
	f("BEGIN ISOLATION LEVEL REPEATABLE READ", "")
	// Another session swaps what the columns mean while this one's catalog snapshot
	// is held: Postgres would resolve names by the newest catalog.
	b.exec(b.admin, "ALTER TABLE fact RENAME v TO x; ALTER TABLE fact RENAME w TO v; ALTER TABLE fact RENAME x TO w")
	b.want(c, "columns renamed under REPEATABLE READ", plan.ReasonDDL)
	f("ROLLBACK", plan.ReasonDDL)
}

// TestGateTimeouts: the gate tells of the timeout by which the server would end the
// statement. transaction_timeout is one of PostgreSQL 17 and later.
func TestGateTimeouts(t *testing.T) {
	b := newGateBench(t)
	c := b.connect("postgres")
	var newer bool
	if err := c.QueryRow(context.Background(), "SELECT current_setting('transaction_timeout', true) IS NOT NULL").Scan(&newer); err != nil {
		t.Fatal(err)
	}
	f := func(sql string, want time.Duration) {
		t.Helper()
		b.exec(c, sql)
		g, err := parseGate(b.gate(c, b.query), len(b.query.Tables))
		if err != nil || g.timeout != want {
			t.Errorf("%s: timeout %v, %v; want %v", sql, g.timeout, err, want)
		}
	}
	f("RESET ALL", 0)
	f("SET statement_timeout = '90s'", 90*time.Second)
	if newer {
		f("SET transaction_timeout = '100s'", 90*time.Second)
		f("SET transaction_timeout = '80s'", 80*time.Second)
		f("RESET statement_timeout", 80*time.Second)
	}
}

// The gate must not fail whatever becomes of the tables, since an error would end the
// client's transaction.
func TestGateCannotFail(t *testing.T) {
	b := newGateBench(t)
	reader := b.connect("reader")
	b.exec(reader, "BEGIN")
	b.exec(b.admin, "DROP TABLE fact; DROP SCHEMA s CASCADE")
	b.want(reader, "dropped", plan.ReasonResolved)
	b.exec(reader, "SELECT 1")
	if s := reader.PgConn().TxStatus(); s != 'T' {
		t.Errorf("transaction status %c after the gate, want T", s)
	}
}

func TestNormalizedSchemas(t *testing.T) {
	f := func(schemas string, want bool) {
		t.Helper()
		if got := systemSchemaFirst(schemas); got != want {
			t.Errorf("%s: %v, want %v", schemas, got, want)
		}
	}
	f("{pg_catalog,public}", true)
	f("{pg_temp_3,pg_catalog,public}", true)
	f("{public,pg_catalog}", false)
	f("{pg_temp_3}", false)
	f("{}", false)
	f("{pg_temp_3,public,pg_catalog}", false)
}

// TestGateForms: the plain form says of a table what the full one says.
func TestGateForms(t *testing.T) {
	b := newGateBench(t)
	ask := func(c *pgx.Conn, sql string, params []string) []*string {
		t.Helper()
		var values [][]byte
		for _, p := range params {
			values = append(values, []byte(p))
		}
		if _, err := c.PgConn().Prepare(context.Background(), "", sql, nil); err != nil {
			t.Fatal(err)
		}
		res := c.PgConn().ExecPrepared(context.Background(), "", values, nil, nil).Read()
		if res.Err != nil || len(res.Rows) != 1 {
			t.Fatalf("%d rows, %v", len(res.Rows), res.Err)
		}
		return texts(res)[0]
	}
	b.exec(b.admin, "CREATE PUBLICATION p FOR TABLE fact; ALTER TABLE s.dim ENABLE ROW LEVEL SECURITY")
	b.exec(b.admin, "CREATE ROLE nobody LOGIN; CREATE TABLE parted (k int) PARTITION BY LIST (k)")
	q := b.plan()
	for _, user := range []string{"postgres", "reader", "nobody"} {
		c := b.connect(user)
		for _, setting := range []string{"SET search_path = public", "SET search_path = s", "SET search_path = s, public, pg_catalog", "BEGIN ISOLATION LEVEL REPEATABLE READ"} {
			b.exec(c, setting)
			for i := range q.Tables {
				for _, columns := range [][]int{q.Tables[i].Columns, nil} {
					for _, gone := range []uint32{0, 99999} {
						meta := *q.Tables[i].Meta
						meta.OID += gone
						one := &plan.Deps{Tables: []plan.Table{{Meta: &meta, Ref: q.Tables[i].Ref, Columns: columns}}, Functions: []string{"sum", "count"}}
						form, params := gateFor(one)
						if form != GatePlain {
							t.Fatal("not the plain form")
						}
						full, plain := ask(c, gateSQL, append(gateParams(one), "")), ask(c, form.SQL(), append(params, ""))
						for k := range full {
							if k == gateInsertLSN || k == gateSnapshot {
								continue
							}
							if (full[k] == nil) != (plain[k] == nil) || full[k] != nil && *full[k] != *plain[k] {
								t.Errorf("%s, %s, %s: column %d differs", user, setting, one.Tables[0].Ref, k)
							}
						}
					}
				}
			}
		}
	}
	var fingerprint catalog.Fingerprint
	if err := b.admin.QueryRow(context.Background(), "SELECT "+catalog.FingerprintSQL("'parted'::regclass")).Scan(&fingerprint); err != nil {
		t.Fatal(err)
	}
	parted := &plan.Deps{Tables: []plan.Table{{Meta: &catalog.Table{Fingerprint: fingerprint}, Ref: `"parted"`}}}
	if form, _ := gateFor(parted); form != GateFull {
		t.Error("the plain form for a partitioned table")
	}
	if form, _ := gateFor(q); form != GateFull {
		t.Error("the plain form for two tables")
	}
}

// TestKnownAtSnapshot: what is read of the catalogs is not asked for again at a snapshot that shows the same, and is after any commit.
func TestKnownAtSnapshot(t *testing.T) {
	b := newGateBench(t)
	reader := b.connect("reader")
	q := b.plan()
	q.Functions = []string{"sum"}
	asked := func() bool { // for the catalogs
		t.Helper()
		gate := b.gate(reader, q)
		g, err := parseGate(gate, len(q.Tables))
		if err != nil {
			t.Fatal(err)
		}
		all := gate.Rows[0][gateOperators] != nil
		for i := range g.tables {
			if g.tables[i].fingerprint != q.Tables[i].Meta.Fingerprint || (gate.Rows[i][gateFingerprint] != nil) != all || (g.known == nil) != all {
				t.Errorf("table %d: fingerprint %q, want %q, asked for %v", i, g.tables[i].fingerprint, q.Tables[i].Meta.Fingerprint, all)
			}
		}
		if g.operators != b.operators || g.shadowed {
			t.Errorf("operators %q, want %q, shadowed %v", g.operators, b.operators, g.shadowed)
		}
		return all
	}
	for asked() { // others may commit at first
		if f := b.ask(reader, q); f != nil {
			t.Fatal(f)
		}
	}
	if asked() {
		t.Error("asked again at the same snapshot")
	}
	other := *q
	other.Functions = []string{"max"}
	if f := b.ask(reader, &other); f != nil || b.engine.known.Load() == nil {
		t.Error(f)
	}
	if asked() || !b.engine.known.Load().functions[gateParams(&other)[gateFunctions]] {
		t.Error("what another statement has learned takes the place of the first one's")
	}
	b.exec(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	if !asked() {
		t.Error("not asked in REPEATABLE READ")
	}
	b.exec(reader, "ROLLBACK")
	if asked() {
		t.Error("asked again behind a transaction that wrote nothing")
	}
	b.exec(b.admin, "CREATE TABLE unrelated (k int)")
	if !asked() {
		t.Error("not asked behind a commit")
	}
	b.ask(reader, q)
	b.exec(b.admin, "BEGIN; CREATE FUNCTION sum(int, int) RETURNS int LANGUAGE sql AS 'SELECT 7'")
	b.ask(reader, q) // while it is not committed
	b.exec(b.admin, "COMMIT")
	if f := b.ask(reader, q); f == nil {
		t.Error("a function that shadows one of the statement's is not seen")
	}
}
