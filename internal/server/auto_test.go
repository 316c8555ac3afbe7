package server

import (
	"strings"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
)

// workload runs statements of a client, round after round, until the condition is an answer of pgaccel's own.
func (m *several) workload(condition string, statements ...string) {
	m.t.Helper()
	plain := strings.Replace(m.url("postgres"), "&options=-c%20pgaccel.mode%3Dforce", "", 1)
	for until := time.Now().Add(2 * time.Minute); ; {
		for _, sql := range statements {
			statement(m.t, plain, sql)
		}
		if statement(m.t, plain, condition) == "t" {
			return
		}
		if time.Now().After(until) {
			m.t.Fatalf("not within two minutes: %s\n%s\n%s", condition, statement(m.t, plain, "SELECT name, state, choice FROM pgaccel.tables"), m.log.text())
		}
	}
}

// answers asserts that a statement is answered here, as the server answers it.
func (m *several) answers(direct, sql string) {
	m.t.Helper()
	e := m.database("").engine
	before := executions(e, "accelerated", "")
	if got, want := statement(m.t, m.url("postgres"), sql), statement(m.t, direct, sql); got != want {
		m.t.Errorf("%s: %q, want %q", sql, got, want)
	}
	if n := executions(e, "accelerated", "") - before; n != 1 {
		m.t.Errorf("%s: %d executions were accelerated: %v", sql, n, e.Counts())
	}
}

func autoServer(t *testing.T) (direct string) {
	t.Helper()
	pg, err := pgserver.Start(t.Context(), pgserver.Options{Settings: map[string]string{"autovacuum": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	direct = pg.URL("postgres", "postgres")
	statement(t, direct, `CREATE TABLE fact (id int PRIMARY KEY, k int, v bigint); INSERT INTO fact SELECT i, i % 9, hashint8(i) FROM generate_series(1, 200000) i;
		CREATE TABLE other (LIKE fact INCLUDING ALL); INSERT INTO other SELECT * FROM fact;
		CREATE TABLE nokey (k int, v bigint); INSERT INTO nokey SELECT k, v FROM fact; CREATE TABLE idle (LIKE fact INCLUDING ALL); INSERT INTO idle SELECT * FROM fact`)
	return direct
}

func sumOf(table string) string {
	return "SELECT k, count(*), sum(v) FROM " + table + " GROUP BY k ORDER BY k"
}

const published = "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_publication_tables"

// TestAuto: a table that statements need is copied, and they are answered from it; one that cannot be copied is left, with the reason; one
// that nothing reads is, too. After a restart the choice is what it was, without another copy.
func TestAuto(t *testing.T) {
	direct := autoServer(t)
	cfg := Config{Upstream: direct, Accelerate: []string{"auto"}, DataDir: t.TempDir(), ChooseInterval: 50 * time.Millisecond}
	m := startSeveral(t, cfg)
	if got := statement(t, direct, published); got != "" {
		t.Errorf("%s is published before there is a statement", got)
	}
	m.workload(`SELECT count(*) FILTER (WHERE name = 'public.fact' AND state = 'ready' AND choice LIKE 'read by statements that gain (PostgreSQL takes %)') = 1
		AND count(*) FILTER (WHERE name = 'public.nokey' AND state = 'left' AND choice LIKE 'no replica identity%; ALTER TABLE % (PostgreSQL takes %') = 1
		AND count(*) = 2 FROM pgaccel.tables`, sumOf("fact"), sumOf("nokey"))
	if got := statement(t, direct, published); got != "fact" {
		t.Errorf("%s is published", got)
	}
	statement(t, direct, "CREATE ROLE guest LOGIN; GRANT SELECT ON nokey TO guest")
	if got := statement(t, strings.Replace(m.url("postgres"), "postgres@", "guest@", 1), "SELECT name, state FROM pgaccel.tables"); got != "public.nokey|left" {
		t.Errorf("who may read one table sees %s", got)
	}
	m.answers(direct, sumOf("fact"))
	statement(t, direct, "UPDATE fact SET v = v + 1 WHERE k = 3")
	m.answers(direct, sumOf("fact"))
	for _, want := range []string{`msg="auto takes a table" table=public.fact`, `msg="auto leaves a table" table=public.nokey why="no replica identity`} {
		if !strings.Contains(m.log.text(), want) {
			t.Errorf("%s is not in the log:\n%s", want, m.log.text())
		}
	}
	m.s.Close()

	again := startSeveral(t, cfg)
	again.answers(direct, sumOf("fact"))
	again.workload("SELECT count(*) = 1 FROM pgaccel.tables WHERE name = 'public.fact' AND state = 'ready' AND choice IS NOT NULL")
	again.workload("SELECT copies = 0 FROM pgaccel.status")
	if log := again.log.text(); !strings.Contains(log, `msg="saved columns loaded" tables=1 rows=200000`) {
		t.Errorf("the columns were not loaded:\n%s", log)
	}

	// What the patterns name is copied whatever is needed, and SIGHUP may take auto away.
	to := again.s.cfg
	to.Accelerate = []string{"auto", "idle"}
	if err := again.s.Reload(to); err != nil {
		t.Fatal(err)
	}
	again.workload("SELECT string_agg(name || ' ' || state || ' ' || (choice IS NULL), ',' ORDER BY name) = 'public.fact ready false,public.idle ready true' FROM pgaccel.tables")
	again.answers(direct, sumOf("idle"))
	to.Accelerate = []string{"idle"}
	if err := again.s.Reload(to); err != nil {
		t.Fatal(err)
	}
	again.workload("SELECT string_agg(name, ',') = 'public.idle' FROM pgaccel.tables")
	copies := statement(t, again.url("postgres"), "SELECT copies FROM pgaccel.status")
	to.Accelerate = []string{"auto"} // what is copied stays
	if err := again.s.Reload(to); err != nil {
		t.Fatal(err)
	}
	again.workload("SELECT bool_and(state = 'ready' AND choice IS NOT NULL) FROM pgaccel.tables WHERE name = 'public.idle'", "SELECT id FROM idle WHERE id = 1")
	if now := statement(t, again.url("postgres"), "SELECT copies FROM pgaccel.status"); now != copies {
		t.Errorf("%s copies, then %s", copies, now)
	}
}

// TestAutoWithinMemory: what does not fit beside what is copied is left; which is copied of several is TestChooser's.
func TestAutoWithinMemory(t *testing.T) {
	direct := autoServer(t)
	m := startSeveral(t, Config{Upstream: direct, Accelerate: []string{"auto"}, Memory: 2 << 20, ChooseInterval: 50 * time.Millisecond})
	m.workload("SELECT count(*) = 1 FROM pgaccel.tables WHERE name = 'public.fact' AND state = 'ready'", sumOf("fact"))
	m.workload(`SELECT count(*) FILTER (WHERE name = 'public.fact' AND state = 'ready') = 1
		AND count(*) FILTER (WHERE name = 'public.other' AND state = 'left' AND choice LIKE 'does not fit beside the others%') = 1 FROM pgaccel.tables`,
		sumOf("fact"), sumOf("other"))
	if got := statement(t, direct, published); got != "fact" {
		t.Errorf("%s is published", got)
	}
	m.answers(direct, sumOf("fact"))
}
