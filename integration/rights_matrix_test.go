package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

const vaultSchema = `
CREATE ROLE chief LOGIN;
CREATE ROLE grp;
CREATE ROLE inner_grp;
CREATE ROLE vault_readers;
CREATE ROLE member LOGIN INHERIT;
CREATE ROLE silent LOGIN NOINHERIT;
CREATE ROLE outsider LOGIN;
CREATE ROLE bypasser LOGIN BYPASSRLS;
CREATE ROLE all_reader LOGIN;
GRANT inner_grp TO grp;
GRANT grp TO member, silent;
CREATE TABLE vault (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, owner name NOT NULL);
INSERT INTO vault SELECT i, i % 5, i * 3, (ARRAY['chief', 'member', 'outsider', 'silent'])[1 + i % 4] FROM generate_series(1, 1000) i;
CREATE TABLE names (g int PRIMARY KEY, name text NOT NULL);
INSERT INTO names SELECT i, 'group ' || i FROM generate_series(0, 4) i;
CREATE VIEW owned_view AS SELECT g, sum(v) AS s FROM vault GROUP BY g;
CREATE VIEW invoker_view WITH (security_invoker) AS SELECT g, sum(v) AS s FROM vault GROUP BY g;
CREATE VIEW barrier_view WITH (security_barrier) AS SELECT g, v FROM vault WHERE owner = current_user;
CREATE VIEW over_owned AS SELECT s FROM owned_view WHERE g < 3;
CREATE VIEW over_invoker AS SELECT s, g FROM invoker_view;
CREATE VIEW invoker_over_owned WITH (security_invoker = 1) AS SELECT s FROM over_owned;
CREATE VIEW wide AS SELECT v.*, n.name FROM vault v JOIN names n USING (g);
CREATE FUNCTION definer_sum() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN (SELECT sum(v) FROM vault); END';
CREATE FUNCTION invoker_sum() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT sum(v)::bigint FROM vault';
CREATE FUNCTION as_member() RETURNS bigint LANGUAGE plpgsql SET role = member AS 'BEGIN RETURN (SELECT sum(v) FROM vault); END';
GRANT SELECT ON owned_view, over_owned, over_invoker, invoker_view, barrier_view, names TO PUBLIC;
VACUUM ANALYZE;
`

var vaultRoles = []string{"postgres", "chief", "member", "silent", "outsider", "bypasser", "all_reader"}

var vaultQueries = []string{
	"SELECT g, count(*), sum(v) FROM vault GROUP BY g ORDER BY g",
	"SELECT count(*) FROM vault",
	"SELECT count(*) FROM vault WHERE id < 100",
	"SELECT g, count(*) FROM vault GROUP BY g ORDER BY g",
	"SELECT id, v FROM vault WHERE id < 4 ORDER BY id",
	"SELECT name, sum(v) FROM vault JOIN names USING (g) GROUP BY name ORDER BY name",
	"SELECT max(v) FROM public.vault WHERE owner = 'member'",
	"SELECT * FROM owned_view ORDER BY g",
	"SELECT * FROM invoker_view ORDER BY g",
	"SELECT g, sum(v) FROM barrier_view GROUP BY g ORDER BY g",
	"SELECT sum(s) FROM over_owned",
	"SELECT max(s), count(g) FROM over_invoker",
	"SELECT count(*) FROM invoker_over_owned",
	"SELECT sum(v) FROM wide",
	"SELECT count(*) FROM public.wide",
	"SELECT name, count(*) FROM wide GROUP BY name ORDER BY name",
	"SELECT (SELECT sum(v) FROM wide), (SELECT count(*) FROM over_owned)",
	"SELECT n.g, count(w.v) FROM names n LEFT JOIN (vault w JOIN (SELECT g + 0 AS k FROM names) d ON d.k = w.g) ON w.g = n.g GROUP BY n.g ORDER BY n.g",
	"SELECT n.name, s.m FROM names n LEFT JOIN LATERAL (SELECT max(w.v) AS m FROM vault w WHERE w.g = n.g AND w.id > n.g) s ON true ORDER BY 1",
	"SELECT count(*), count(v.g) FROM names n LEFT JOIN vault v ON v.id < n.g * 100.5",
	"SELECT g, (SELECT count(*) FROM names n WHERE n.g < v.g) FROM vault v GROUP BY g ORDER BY g",
	"SELECT definer_sum()",
	"SELECT invoker_sum()",
	"SELECT as_member()",
	"SELECT definer_sum(), count(*) FROM vault",
	"SELECT count(vault) FROM vault",
	"SELECT 1 FROM vault WHERE false",
	"SELECT sum(v) FROM (SELECT v FROM vault WHERE g = 1) x",
}

// TestRightsMatrix changes grants, owners, roles, policies and views on a direct
// connection, and after each step asks as every role, in sessions that go on: the
// server's rows, or its error. The table is accelerated again after each step.
func TestRightsMatrix(t *testing.T) {
	s := privateStack(t, vaultSchema, reuse)
	admin := connect(t, s.direct.url("postgres"))
	major := serverMajor(t, admin)
	direct, proxy := map[string]*pgconn.PgConn{}, map[string]*pgconn.PgConn{}
	for _, role := range vaultRoles {
		direct[role], proxy[role] = connect(t, s.direct.url(role)), connect(t, s.proxy.url(role))
		for _, c := range []*pgconn.PgConn{direct[role], proxy[role]} {
			must(t, c, "PREPARE p AS "+vaultQueries[0])
			must(t, c, "SET lock_timeout = '10s'")
		}
	}
	compare := func(t *testing.T) {
		t.Helper()
		for _, role := range vaultRoles {
			for i, q := range append(vaultQueries, "EXECUTE p") {
				p := protocols[i%len(protocols)]
				if i < 2 { // every protocol
					same(t, direct[role], proxy[role], q)
				} else if want, got := ask(t, direct[role], q, p.format), ask(t, proxy[role], q, p.format); got.String() != want.String() {
					t.Errorf("%s: %s (%s)%s", role, q, p.name, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			}
		}
	}
	// fresh asks each query in a session of its own: one whose gate was refused just now does not
	// ask again at once.
	fresh := func(t *testing.T) {
		t.Helper()
		for _, role := range []string{"outsider", "member"} {
			d, err := pgconn.Connect(context.Background(), s.direct.url(role))
			if err != nil {
				continue // it has another name by now
			}
			for _, q := range vaultQueries {
				p := connect(t, s.proxy.url(role))
				if want, got := ask(t, d, q, nil), ask(t, p, q, nil); got.String() != want.String() {
					t.Errorf("%s, in a session of its own: %s%s", role, q, firstDifference([]byte(got.String()), []byte(want.String())))
				}
				p.Close(context.Background())
			}
			d.Close(context.Background())
		}
	}
	both := func(role, sql string) {
		t.Helper()
		if a, b := ask(t, direct[role], sql, nil), ask(t, proxy[role], sql, nil); a.String() != b.String() || a.err != "" {
			t.Fatalf("%s: %s: %s, direct %s", role, sql, b, a)
		}
	}
	compare(t)
	for _, step := range []struct {
		sql   string
		may   string // roles that can sum, as the server has it: so that the steps do what they say
		since int
	}{
		{"GRANT SELECT ON vault TO grp", "postgres member", 0},
		{"GRANT SELECT (g, v) ON vault TO outsider", "postgres member outsider", 0},
		{"REVOKE SELECT (v) ON vault FROM outsider", "postgres member", 0},
		{"GRANT SELECT (id, g, v, owner) ON vault TO outsider", "postgres member outsider", 0},
		{"REVOKE ALL ON vault FROM grp; REVOKE SELECT ON vault FROM outsider", "postgres", 0},
		{"GRANT SELECT ON vault TO inner_grp", "postgres member", 0},
		{"REVOKE inner_grp FROM grp", "postgres", 0},
		{"GRANT inner_grp TO grp", "postgres member", 0},
		{"REVOKE grp FROM member", "postgres", 0},
		{"GRANT grp TO member", "postgres member", 0},
		{"GRANT grp TO silent WITH INHERIT TRUE", "postgres member silent", 16},
		{"GRANT grp TO silent WITH INHERIT FALSE", "postgres member", 16},
		{"@silent SET ROLE grp", "postgres member silent", 0},
		{"REVOKE SELECT ON vault FROM inner_grp", "postgres", 0},
		{"GRANT SELECT ON vault TO PUBLIC", "postgres chief member silent outsider bypasser all_reader", 0},
		{"@silent RESET ROLE", "postgres chief member silent outsider bypasser all_reader", 0},
		{"REVOKE SELECT ON vault FROM PUBLIC", "postgres", 0},
		{"GRANT pg_read_all_data TO all_reader", "postgres all_reader", 0},
		{"REVOKE USAGE ON SCHEMA public FROM PUBLIC", "postgres all_reader", 0},
		{"GRANT SELECT ON vault TO outsider, member", "postgres all_reader", 0},
		{"GRANT USAGE ON SCHEMA public TO outsider", "postgres outsider all_reader", 0},
		{"GRANT USAGE ON SCHEMA public TO PUBLIC", "postgres member outsider all_reader", 0},
		{"REVOKE pg_read_all_data FROM all_reader; REVOKE SELECT ON vault FROM outsider, member", "postgres", 0},
		{"ALTER TABLE vault OWNER TO chief", "postgres chief", 0},
		{"REVOKE ALL ON vault FROM chief", "postgres", 0}, // an owner without the right
		{"GRANT SELECT ON vault TO chief", "postgres chief", 0},
		{"GRANT chief TO outsider", "postgres chief outsider", 0},
		{"REVOKE chief FROM outsider", "postgres chief", 0},
		{"ALTER VIEW owned_view OWNER TO member", "postgres chief", 0},
		{"ALTER FUNCTION definer_sum() OWNER TO member", "postgres chief", 0},
		{"ALTER VIEW invoker_view SET (security_invoker = false)", "postgres chief", 0},
		{"ALTER VIEW invoker_view SET (security_invoker = true); ALTER VIEW owned_view OWNER TO postgres; ALTER FUNCTION definer_sum() OWNER TO postgres", "postgres chief", 0},
		{"ALTER VIEW over_owned OWNER TO member; ALTER VIEW over_invoker OWNER TO chief; GRANT SELECT ON wide TO member", "postgres chief", 0},
		{"REVOKE SELECT ON owned_view FROM PUBLIC", "postgres chief", 0},
		{"GRANT SELECT (s) ON owned_view TO member", "postgres chief", 0},
		{"GRANT SELECT (g) ON owned_view TO member; GRANT SELECT (g, v) ON wide TO outsider", "postgres chief", 0},
		{"GRANT SELECT ON invoker_over_owned TO outsider, chief; REVOKE SELECT ON over_owned FROM PUBLIC", "postgres chief", 0},
		{"GRANT SELECT ON over_owned TO chief; ALTER VIEW wide SET (security_invoker)", "postgres chief", 0},
		{"ALTER VIEW wide SET (security_invoker = off); ALTER VIEW wide OWNER TO silent", "postgres chief", 0},
		{"GRANT SELECT (id, g, v) ON vault TO silent", "postgres chief silent", 0},
		{"GRANT SELECT (owner) ON vault TO silent", "postgres chief silent", 0},
		{"REVOKE SELECT (g) ON names FROM PUBLIC; REVOKE SELECT ON names FROM PUBLIC; GRANT SELECT (name) ON names TO silent", "postgres chief silent", 0},
		{"GRANT SELECT ON names, owned_view, over_owned TO PUBLIC; REVOKE SELECT (id, g, v, owner) ON vault FROM silent", "postgres chief", 0},
		{"ALTER VIEW wide OWNER TO postgres", "postgres chief", 0},
		{"ALTER FUNCTION definer_sum() SECURITY INVOKER", "postgres chief", 0},
		{"ALTER FUNCTION definer_sum() SECURITY DEFINER", "postgres chief", 0},
		{"GRANT SELECT ON vault TO PUBLIC; CREATE POLICY own ON vault FOR SELECT USING (owner = current_user)", "postgres chief member silent outsider bypasser all_reader", 0},
		{"ALTER TABLE vault ENABLE ROW LEVEL SECURITY", "postgres chief member silent outsider bypasser all_reader", 0},
		{"ALTER TABLE vault FORCE ROW LEVEL SECURITY", "postgres chief member silent outsider bypasser all_reader", 0},
		{"ALTER POLICY own ON vault USING (g = 3)", "postgres chief member silent outsider bypasser all_reader", 0},
		{"CREATE POLICY strict ON vault AS RESTRICTIVE TO member USING (id < 500)", "postgres chief member silent outsider bypasser all_reader", 0},
		{"@outsider SET row_security = off", "postgres chief member silent bypasser all_reader", 0},
		{"@bypasser SET row_security = off", "postgres chief member silent bypasser all_reader", 0},
		{"ALTER ROLE bypasser NOBYPASSRLS", "postgres chief member silent all_reader", 0},
		{"ALTER ROLE outsider BYPASSRLS", "postgres chief member silent outsider all_reader", 0},
		{"DROP POLICY own ON vault", "postgres chief member silent outsider all_reader", 0},
		{"ALTER TABLE vault NO FORCE ROW LEVEL SECURITY", "postgres chief member silent outsider all_reader", 0},
		{"ALTER TABLE vault DISABLE ROW LEVEL SECURITY", "postgres chief member silent outsider bypasser all_reader", 0},
		{"REVOKE SELECT ON vault FROM PUBLIC", "postgres chief", 0},
		{"ALTER ROLE member SUPERUSER", "postgres chief member", 0},
		{"ALTER ROLE member NOSUPERUSER", "postgres chief", 0},
		{"GRANT SELECT ON vault TO outsider", "postgres chief outsider", 0},
		{"ALTER ROLE outsider RENAME TO insider", "postgres chief outsider", 0},
		{"DROP OWNED BY insider", "postgres chief", 0},
		{"GRANT SELECT ON vault TO insider WITH GRANT OPTION; SET ROLE insider; GRANT SELECT ON vault TO member; RESET ROLE", "postgres chief member outsider", 0},
		{"REVOKE SELECT ON vault FROM insider CASCADE", "postgres chief", 0},
		{"REASSIGN OWNED BY chief TO postgres", "postgres", 0},
		{"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO member; ALTER TABLE vault RENAME TO old_vault; CREATE TABLE vault (LIKE old_vault INCLUDING ALL); INSERT INTO vault SELECT * FROM old_vault WHERE g < 3", "postgres member", 0},
		{"GRANT SELECT ON ALL TABLES IN SCHEMA public TO silent", "postgres member silent", 0},
		{"DROP TABLE vault CASCADE; ALTER TABLE old_vault RENAME TO vault", "postgres silent", 0},
		{"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM silent", "postgres", 0},
	} {
		if step.since > major {
			continue
		}
		t.Run(step.sql, func(t *testing.T) {
			if role, sql, of := strings.Cut(strings.TrimPrefix(step.sql, "@"), " "); of && step.sql[0] == '@' {
				both(role, sql)
			} else {
				must(t, admin, step.sql)
			}
			compare(t)
			s.eventually(t, proxy["postgres"], vaultQueries[0])
			may := ""
			for _, role := range vaultRoles {
				if a := ask(t, direct[role], vaultQueries[0], nil); a.err == "" {
					may += " " + role
				}
			}
			if may != " "+step.may {
				t.Errorf("can read:%s, want %s", may, step.may)
			}
			compare(t)
			fresh(t)
		})
	}
	for _, q := range vaultQueries {
		if strings.Contains(q, "over_") || strings.Contains(q, "wide") || strings.Contains(q, "w.v") {
			s.eventually(t, proxy["postgres"], q)
		}
	}
	for _, q := range []string{"SELECT * FROM owned_view ORDER BY g"} {
		s.eventually(t, proxy["postgres"], q)
	}
	// A role that is dropped in mid-session.
	must(t, admin, "GRANT SELECT ON vault TO bypasser")
	s.eventually(t, proxy["bypasser"], vaultQueries[0])
	must(t, admin, "DROP OWNED BY bypasser; DROP ROLE bypasser")
	compare(t)
	s.eventually(t, proxy["postgres"], vaultQueries[0])
}

// TestRightsInTransaction gives and takes rights while transactions are open, at
// both levels, and while a cursor is half read.
func TestRightsInTransaction(t *testing.T) {
	s := privateStack(t, vaultSchema+"GRANT SELECT ON vault TO member, outsider", reuse)
	admin := connect(t, s.direct.url("postgres"))
	const sum, rows = "SELECT g, count(*), sum(v) FROM vault GROUP BY g ORDER BY g", "SELECT id, v FROM vault WHERE id <= 20 ORDER BY id"
	for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		t.Run(level, func(t *testing.T) {
			direct, proxy := connect(t, s.direct.url("outsider")), connect(t, s.proxy.url("outsider"))
			both := func(sql string) answer {
				t.Helper()
				a, b := ask(t, direct, sql, nil), ask(t, proxy, sql, nil)
				if a.String() != b.String() {
					t.Errorf("%s: %s, direct %s", sql, b, a)
				}
				return a
			}
			attempt := func(may bool) {
				t.Helper()
				for _, p := range protocols {
					both("SAVEPOINT a")
					a, b := ask(t, direct, sum, p.format), ask(t, proxy, sum, p.format)
					if a.String() != b.String() || (a.err == "") != may {
						t.Errorf("%s: %s, direct %s", p.name, b, a)
					}
					both("ROLLBACK TO a")
				}
				both("SAVEPOINT a")
				if a := both("EXECUTE p"); (a.err == "") != may {
					t.Errorf("prepared: %s", a)
				}
				both("ROLLBACK TO a")
			}
			s.eventually(t, proxy, sum)
			both("PREPARE p AS " + sum)
			both("BEGIN ISOLATION LEVEL " + level)
			attempt(true)
			for range 2 {
				must(t, admin, "REVOKE SELECT ON vault FROM outsider")
				attempt(false)
				must(t, admin, "GRANT SELECT (g) ON vault TO outsider")
				attempt(false)
				must(t, admin, "GRANT SELECT (v) ON vault TO outsider")
				attempt(true)
				must(t, admin, "REVOKE SELECT (v, g) ON vault FROM outsider; GRANT vault_readers TO outsider")
				attempt(false)
				must(t, admin, "GRANT SELECT ON vault TO vault_readers")
				attempt(true)
				must(t, admin, "REVOKE vault_readers FROM outsider; REVOKE ALL ON vault FROM vault_readers")
				attempt(false)
				must(t, admin, "GRANT SELECT ON vault TO outsider")
				attempt(true)
			}
			// The right is asked for when a cursor is opened.
			both("DECLARE c CURSOR FOR " + rows)
			both("FETCH 3 FROM c")
			must(t, admin, "REVOKE SELECT ON vault FROM outsider")
			both("FETCH 3 FROM c")
			attempt(false)
			both("FETCH ALL FROM c")
			both("SAVEPOINT a")
			if a := both("DECLARE d CURSOR FOR " + rows); a.err == "" {
				a = both("FETCH 1 FROM d")
				if a.err == "" {
					t.Error("a cursor was opened without the right")
				}
			}
			both("ROLLBACK TO a")
			both("COMMIT")
			both("BEGIN ISOLATION LEVEL " + level)
			attempt(false)
			both("COMMIT")
			must(t, admin, "GRANT SELECT ON vault TO outsider")

			// Roles in transactions, and back by savepoints.
			direct, proxy = connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
			both("PREPARE p AS " + sum)
			both("BEGIN ISOLATION LEVEL " + level)
			attempt(true)
			both("SAVEPOINT b")
			both("SET LOCAL ROLE silent")
			attempt(false)
			both("ROLLBACK TO b")
			attempt(true)
			both("SET LOCAL SESSION AUTHORIZATION bypasser")
			attempt(false)
			both("SET LOCAL SESSION AUTHORIZATION outsider")
			attempt(true)
			both("ROLLBACK")
			both("BEGIN ISOLATION LEVEL " + level)
			attempt(true)
			both("COMMIT")
			s.eventually(t, proxy, sum)
		})
	}
}

// TestOpenPortalKeepsItsRight reads a portal with a row limit, bound and half read
// before the right is taken away.
func TestOpenPortalKeepsItsRight(t *testing.T) {
	s := privateStack(t, vaultSchema+"GRANT SELECT ON vault TO outsider", reuse)
	admin := connect(t, s.direct.url("postgres"))
	transcript := func(tg target) (text string) {
		must(t, admin, "GRANT SELECT ON vault TO outsider")
		conn := connect(t, tg.url("outsider"))
		if tg.port == s.proxy.port {
			s.eventually(t, conn, "SELECT count(*) FROM vault")
		}
		if err := conn.SyncConn(t.Context()); err != nil {
			t.Fatal(err)
		}
		h, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Conn.Close()
		f := newPortalClient(t, h)
		text += f.round("begin", func() { f.query("BEGIN") })
		text += f.round("open", func() {
			f.parse("s", "SELECT id, v FROM vault WHERE id <= 20 ORDER BY id")
			f.bind("c", "s")
			f.execute("c", 4)
			f.sync()
		})
		must(t, admin, "REVOKE SELECT ON vault FROM outsider")
		text += f.round("more", func() { f.execute("c", 4); f.sync() })
		text += f.round("all", func() { f.execute("c", 0); f.sync() })
		text += f.round("again", func() { f.bind("d", "s"); f.execute("d", 0); f.sync() })
		text += f.round("end", func() { f.query("ROLLBACK") })
		text += f.round("after", func() { f.bind("", "s"); f.execute("", 0); f.sync() })
		must(t, admin, "GRANT SELECT ON vault TO outsider")
		text += f.round("granted", func() { f.bind("", "s"); f.execute("", 0); f.sync() })
		return text
	}
	want := transcript(s.direct)
	if !strings.Contains(want, "permission denied") || !strings.Contains(want, "PortalSuspended") {
		t.Errorf("the server: %s", want)
	}
	if got := transcript(s.proxy); got != want {
		t.Error(firstDifference([]byte(got), []byte(want)))
	}
}
