package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/engine"
	"pgaccel/internal/pgserver"
	"pgaccel/plan"
)

// several is a pgaccel in front of several databases.
type several struct {
	t   *testing.T
	s   *Server
	log *logBuffer
}

// databaseServer starts a server with the databases, each a copy of the first, so that its tables have the same OIDs, in files
// of the same numbers.
func databaseServer(t *testing.T, names ...string) *pgserver.Server {
	t.Helper()
	pg, err := pgserver.Start(t.Context(), pgserver.Options{Settings: map[string]string{"autovacuum": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	statement(t, pg.URL("postgres", "postgres"), "CREATE DATABASE "+names[0])
	statement(t, pg.URL("postgres", names[0]), `CREATE TABLE sale (id int PRIMARY KEY, store int NOT NULL, amount int NOT NULL);
		CREATE TYPE pair AS (x text, y int); CREATE TABLE place (u pair PRIMARY KEY, name text)`) // u is not copied, but hashed
	for _, name := range names[1:] {
		statement(t, pg.URL("postgres", "postgres"), "CREATE DATABASE "+name+" TEMPLATE "+names[0])
	}
	for i, name := range names {
		fill(t, pg.URL("postgres", name), i+1)
	}
	return pg
}

// fill gives a database rows that no other has.
func fill(t *testing.T, url string, factor int) {
	t.Helper()
	statement(t, url, fmt.Sprintf("INSERT INTO sale SELECT i, i %% 7, i * %d FROM generate_series(1, 3000) i; INSERT INTO place SELECT ROW(i, i)::pair, 'place ' || i * %d FROM generate_series(1, 50) i", factor, factor))
}

// statement runs some SQL on a session of its own.
func statement(t *testing.T, url, sql string) string {
	t.Helper()
	rows, err := ask(url, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// ask returns the rows of the last statement of some SQL.
func ask(url, sql string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	list, err := c.Exec(ctx, sql).ReadAll()
	if err != nil || len(list) == 0 {
		return "", err
	}
	var lines []string
	for _, r := range list[len(list)-1].Rows {
		lines = append(lines, string(bytes.Join(r, []byte("|"))))
	}
	return strings.Join(lines, "\n"), nil
}

func startSeveral(t *testing.T, cfg Config) *several {
	t.Helper()
	m := &several{t: t, log: &logBuffer{}}
	cfg.Listen, cfg.HTTP, cfg.Logger, cfg.WaitLimit = []string{"127.0.0.1:0"}, "127.0.0.1:0", slog.New(slog.NewTextHandler(m.log, nil)), 10*time.Second
	var err error
	if m.s, err = Start(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.s.Close)
	m.ready()
	return m
}

func (m *several) ready() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.s.WaitReady(ctx); err != nil {
		m.t.Fatal(err)
	}
}

// url is that of a database through pgaccel, in force mode.
func (m *several) url(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&options=-c%%20pgaccel.mode%%3Dforce", m.s.Addr(), url.PathEscape(database))
}

func (m *several) database(name string) *database {
	m.t.Helper()
	for _, d := range m.s.databases {
		if d.name == name {
			return d
		}
	}
	m.t.Fatalf("no database %q", name)
	return nil
}

func executions(e *engine.Engine, route string, reason plan.Reason) (n int64) {
	for _, c := range e.Counts() {
		if c.Route == route && (route == "accelerated" || c.Reason == reason) {
			n += c.N
		}
	}
	return n
}

const saleQuery = "SELECT store, count(*), sum(amount) FROM sale GROUP BY store ORDER BY store"

// same asserts that a client of one name gets the answer of a database, from its own copies and from no other's.
func (m *several) same(name, direct string) {
	m.t.Helper()
	before := map[string]int64{}
	for _, d := range m.s.databases {
		before[d.name] = executions(d.engine, "accelerated", "")
	}
	for _, sql := range []string{saleQuery, "SELECT count(*), min(name), max(name) FROM place"} {
		if got, want := statement(m.t, m.url(name), sql), statement(m.t, direct, sql); got != want {
			m.t.Errorf("%s: %s: %q, want %q", name, sql, got, want)
		}
	}
	for _, d := range m.s.databases {
		want := int64(0)
		if d.name == name {
			want = 2
		}
		if n := executions(d.engine, "accelerated", "") - before[d.name]; n != want {
			m.t.Errorf("%s: %d executions were accelerated by %q, want %d: %v", name, n, d.name, want, d.engine.Counts())
		}
	}
}

// get asks the HTTP side.
func (m *several) get(path string) (int, string) {
	m.t.Helper()
	r, err := http.Get("http://" + m.s.HTTPAddr().String() + path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// TestDatabases: of two databases of one server, whose tables have the same OIDs, and one of another server, each client sees its
// own; and when one server ends the others go on.
func TestDatabases(t *testing.T) {
	first, second := databaseServer(t, "base", "shop", "twin", "other"), databaseServer(t, "far")
	statement(t, second.URL("postgres", "far"), "UPDATE sale SET amount = -amount")
	m := startSeveral(t, Config{Upstream: first.URL("postgres", "base"), Accelerate: []string{"public.*"}, Databases: []Database{
		{Name: "shop", Upstream: first.URL("postgres", "shop"), Accelerate: []string{"public.*"}},
		{Name: "Twin 2", Upstream: first.URL("postgres", "twin"), Accelerate: []string{"sale", "place"}},
		{Name: "far", Upstream: second.URL("postgres", "far"), Accelerate: []string{"*"}}}})
	all := map[string]string{"shop": first.URL("postgres", "shop"), "Twin 2": first.URL("postgres", "twin"), "far": second.URL("postgres", "far")}
	if a, b := statement(t, all["shop"], "SELECT 'sale'::regclass::oid"), statement(t, all["Twin 2"], "SELECT 'sale'::regclass::oid"); a != b {
		t.Fatalf("tables %s and %s", a, b)
	}
	agree := func() {
		t.Helper()
		for name, direct := range all {
			m.same(name, direct)
		}
	}
	agree()
	// The one without a name has the clients that ask for its database, and those that ask for one that is not copied.
	before := executions(m.database("").engine, "accelerated", "")
	if got, want := statement(t, m.url("base"), saleQuery), statement(t, first.URL("postgres", "base"), saleQuery); got != want {
		t.Errorf("base: %q, want %q", got, want)
	}
	if n := executions(m.database("").engine, "accelerated", "") - before; n != 1 {
		t.Errorf("base: %d executions were accelerated", n)
	}
	if got, want := statement(t, m.url("other"), saleQuery), statement(t, first.URL("postgres", "other"), saleQuery); got != want {
		t.Errorf("other: %q, want %q", got, want)
	}
	if n := executions(m.database("").engine, "accelerated", "") - before; n != 1 {
		t.Errorf("a database that is not copied: %d executions were accelerated", n)
	}
	if _, err := ask(m.url("nobody"), "SELECT 1"); !isCode(err, "3D000") {
		t.Errorf("a database that is not there: %v", err)
	}
	// Each stream brings its own changes.
	for name := range all {
		statement(t, m.url(name), "UPDATE sale SET amount = amount + 1 WHERE id < 1000; DELETE FROM place WHERE name LIKE '%7'")
	}
	agree()
	m.views(all)
	m.logins()
	m.cancels("far", second.URL("postgres", "postgres"))
	if code, text := m.get("/readyz?tables"); code != 200 {
		t.Errorf("not ready: %s", text)
	}
	_, metrics := m.get("/metrics")
	for _, want := range []string{`pgaccel_table_rows{database="shop",table="public.sale"} 3000`, `pgaccel_table_rows{database="",table="public.sale"} 3000`,
		`pgaccel_stream_connected{database="far"} 1`, "\npgaccel_store_bytes ", `pgaccel_refused_connections_total{reason="database"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	// A server that is gone takes its own clients along, and no others.
	second.Stop()
	delete(all, "far")
	if _, err := ask(m.url("far"), "SELECT 1"); !isCode(err, "57P03") {
		t.Errorf("the server that is gone: %v", err)
	}
	agree()
	if code, text := m.get("/readyz"); code != 200 {
		t.Errorf("not ready: %s", text)
	}
	eventually(t, "a stream that is gone", func() bool { return !m.database("far").replicator.Connected() })
	if code, text := m.get("/readyz?tables"); code != 503 || !strings.Contains(text, "copying far") {
		t.Errorf("ready though tables are not copied: %d %s", code, text)
	}
	if list := m.log.errors(); len(list) > 0 {
		t.Errorf("errors: %v", list)
	}
}

func isCode(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}

// views: the schema pgaccel is the session's database's.
func (m *several) views(all map[string]string) {
	m.t.Helper()
	for name := range all {
		if got := statement(m.t, m.url(name), "SELECT string_agg(DISTINCT datname, ',') FROM pgaccel.sessions"); got != name {
			m.t.Errorf("%s: sessions of %s", name, got)
		}
		if got := statement(m.t, m.url(name), "SELECT sum(updated) FROM pgaccel.tables"); got != "999" {
			m.t.Errorf("%s: %s rows were updated", name, got)
		}
		if got := statement(m.t, m.url(name), "SELECT count(*) FROM pgaccel.queries WHERE query LIKE '%FROM sale GROUP%'"); got != "1" {
			m.t.Errorf("%s: %s shapes of the query", name, got)
		}
	}
	// The tables of the default database are not those of another one of its server, though they have their OIDs.
	statement(m.t, m.url("other"), "CREATE ROLE reader LOGIN; GRANT SELECT ON sale TO reader")
	if got := statement(m.t, strings.Replace(m.url("other"), "postgres@", "reader@", 1), "SELECT count(*) FROM pgaccel.tables"); got != "0" {
		m.t.Errorf("who may read another database's table sees %s of the default one's", got)
	}
}

// logins: the console's names the database, and is one of the first without a name.
func (m *several) logins() {
	m.t.Helper()
	w := &browser{t: m.t, base: "http://" + m.s.HTTPAddr().String() + "/console/"}
	w.want("GET", "api/state", "", 200, `"several":true,"databases":["base","shop","Twin 2","far"]`)
	for _, name := range []string{"far", "Twin 2", ""} {
		w.want("POST", "api/login", `{"user":"postgres","password":"","database":"`+name+`"}`, 200, `"user":"postgres"`)
		if name == "" {
			name = "base"
		}
		w.want("GET", "api/state", "", 200, `"user":"postgres","database":"`+name+`"`)
		w.want("GET", "api/rows/sessions", "", 200, `"datname":"`+name+`"`)
	}
	w.want("POST", "api/login", `{"user":"postgres","password":"","database":"nobody"}`, 503, "does not exist")
	w.want("POST", "api/logout", "{}", 200, "")
}

// cancels: a cancel request goes to the server that the session is on.
func (m *several) cancels(name, watch string) {
	m.t.Helper()
	c, err := pgconn.Connect(m.t.Context(), m.url(name))
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), "SELECT pg_sleep(600)").ReadAll()
		ended <- err
	}()
	eventually(m.t, "the statement", func() bool {
		n, err := ask(watch, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
		return err == nil && n == "1"
	})
	if err := c.CancelRequest(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	if err := <-ended; !isCode(err, "57014") {
		m.t.Errorf("%s: cancelled: %v", name, err)
	}
}

// TestTemplateIsAnotherDatabase: CREATE DATABASE ... TEMPLATE copies the tables with their OIDs, files and publications. Who is in
// the copy is not answered from the columns of the other.
func TestTemplateIsAnotherDatabase(t *testing.T) {
	pg := databaseServer(t, "base")
	cfg := Config{Upstream: pg.URL("postgres", "base"), Accelerate: []string{"public.*"}, DataDir: filepath.Join(t.TempDir(), "data")}
	m := startSeveral(t, cfg)
	m.s.Close()
	statement(t, pg.URL("postgres", "postgres"), "CREATE DATABASE later TEMPLATE base")
	statement(t, pg.URL("postgres", "later"), "UPDATE sale SET amount = 0")
	m = startSeveral(t, cfg)
	if n := m.s.databases[0].replicator.Health().Copies; n != 0 {
		t.Errorf("%d tables were copied", n)
	}
	m.sameOfDefault("base", pg, true)
	m.sameOfDefault("later", pg, false)
	if n := executions(m.s.databases[0].engine, "forwarded", plan.ReasonServer); n == 0 {
		t.Errorf("%v", m.s.databases[0].engine.Counts())
	}
}

func (m *several) sameOfDefault(name string, pg *pgserver.Server, accelerated bool) {
	m.t.Helper()
	e := m.s.databases[0].engine
	before := executions(e, "accelerated", "")
	if got, want := statement(m.t, m.url(name), saleQuery), statement(m.t, pg.URL("postgres", name), saleQuery); got != want {
		m.t.Errorf("%s: %q, want %q", name, got, want)
	}
	if n := executions(e, "accelerated", ""); (n > before) != accelerated {
		m.t.Errorf("%s: accelerated should be %v: %v", name, accelerated, e.Counts())
	}
}

// TestDatabasesOnly: without a default, who asks for no database that there is gets none.
func TestDatabasesOnly(t *testing.T) {
	pg := databaseServer(t, "base")
	m := startSeveral(t, Config{Databases: []Database{{Name: "shop", Upstream: pg.URL("postgres", "base"), Accelerate: []string{"public.*"}}}})
	m.same("shop", pg.URL("postgres", "base"))
	for _, name := range []string{"base", "postgres", "Shop"} {
		if _, err := ask(m.url(name), "SELECT 1"); !isCode(err, "3D000") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, metrics := m.get("/metrics"); !strings.Contains(metrics, `pgaccel_refused_connections_total{reason="database"} 3`) {
		t.Error("they are not counted")
	}
}

// TestDatabasesKept: each database has a data directory and a slot of its own, and goes on from them after a restart; also where
// another process has made it, whose hashes of what identifies rows are under another key.
func TestDatabasesKept(t *testing.T) {
	pg := databaseServer(t, "shop", "twin")
	dir := t.TempDir()
	shop := Database{Name: "shop", Upstream: pg.URL("postgres", "shop"), Accelerate: []string{"public.*"}}
	twin := Database{Name: "a/twin", Upstream: pg.URL("postgres", "twin"), Accelerate: []string{"public.*"}, DataDir: filepath.Join(dir, "elsewhere")}
	startSeveral(t, Config{DataDir: dir, Databases: []Database{shop}}).s.Close()
	startSeveral(t, Config{Databases: []Database{twin}}).s.Close()
	if _, err := os.Stat(filepath.Join(dir, "databases", "shop")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"shop", "twin"} {
		statement(t, pg.URL("postgres", name), "UPDATE sale SET amount = amount + 1; DELETE FROM place WHERE name LIKE '%6'")
	}
	for range 2 {
		m := startSeveral(t, Config{DataDir: dir, Databases: []Database{shop, twin}})
		m.same("shop", shop.Upstream)
		m.same("a/twin", twin.Upstream)
		for _, d := range m.s.databases {
			if n := d.replicator.Health().Copies; n != 0 {
				t.Errorf("%s: %d tables were copied", d.name, n)
			}
			if n := statement(t, pg.URL("postgres", "postgres"), "SELECT count(*) FROM pg_replication_slots WHERE active AND NOT temporary AND database = '"+d.own.Database+"'"); n != "1" {
				t.Errorf("%s: %s slots", d.name, n)
			}
		}
		m.s.Close()
		if text := m.log.text(); strings.Contains(text, "is not running") {
			t.Errorf("the slot of the other database is taken for one that nobody uses: %s", text)
		}
	}
}

// TestDatabasesReload: patterns of one change alone, and what takes a restart is refused, or waits for it.
func TestDatabasesReload(t *testing.T) {
	pg := databaseServer(t, "shop", "twin")
	cfg := Config{MaxClients: 10, Databases: []Database{
		{Name: "shop", Upstream: pg.URL("postgres", "shop"), Accelerate: []string{"public.*"}},
		{Name: "twin", Upstream: pg.URL("postgres", "twin"), Accelerate: []string{"sale"}},
		{Name: "plain", Upstream: pg.URL("postgres", "postgres")}}}
	m := startSeveral(t, cfg)
	names := func(name string) string {
		return statement(t, m.url(name), "SELECT string_agg(name, ',' ORDER BY name) FROM pgaccel.tables")
	}
	if names("shop") != "public.place,public.sale" || names("twin") != "public.sale" {
		t.Errorf("%s; %s", names("shop"), names("twin"))
	}
	now := cfg
	change := func(i int, patterns ...string) error {
		now.Databases = append([]Database(nil), now.Databases...)
		now.Databases[i].Accelerate = patterns
		return m.s.Reload(now)
	}
	if err := change(1, "public.*"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new table", func() bool { return names("twin") == "public.place,public.sale" && m.s.databases[1].replicator.Ready() })
	m.sameOf("twin", pg)
	if err := change(1, "a.b.c"); err == nil || !strings.Contains(err.Error(), "databases: twin: accelerate") {
		t.Errorf("a pattern that is none: %v", err)
	}
	now = cfg
	if err := change(2, "public.*"); err == nil || !strings.Contains(err.Error(), "databases: plain: accelerate: from no pattern to some") {
		t.Errorf("from none to some: %v", err)
	}
	if names("shop") != "public.place,public.sale" {
		t.Errorf("%s", names("shop"))
	}
}

func (m *several) sameOf(name string, pg *pgserver.Server) {
	m.t.Helper()
	e := m.database(name).engine
	before := executions(e, "accelerated", "")
	if got, want := statement(m.t, m.url(name), saleQuery), statement(m.t, pg.URL("postgres", name), saleQuery); got != want {
		m.t.Errorf("%s: %q, want %q", name, got, want)
	}
	if executions(e, "accelerated", "") != before+1 {
		m.t.Errorf("%s: %v", name, e.Counts())
	}
}

// TestDatabasesRefused: what cannot be meant is said before anything begins.
func TestDatabasesRefused(t *testing.T) {
	one := Database{Name: "shop", Upstream: "postgres://u@127.0.0.1:1/shop", Accelerate: []string{"*"}, DataDir: "/a"}
	with := func(change func(*Database)) Database {
		d := one
		d.Name = "second"
		change(&d)
		return d
	}
	for want, list := range map[string][]Database{
		"--upstream is missing":                      nil,
		`databases: "" is not the name of one`:       {{Upstream: one.Upstream}},
		"there are two of that name":                 {one, one},
		"it is the database of shop":                 {one, with(func(d *Database) { d.DataDir = "/b" })},
		"its data-dir is that of shop":               {one, with(func(d *Database) { d.Upstream = "postgres://u@127.0.0.1:1/other" })},
		"databases: second: its upstream names no":   {with(func(d *Database) { d.Upstream = "postgres://u@127.0.0.1:1" })},
		"databases: second: cannot parse `postgres:": {with(func(d *Database) { d.Upstream = "postgres://u@h:port/x" })},
	} {
		if _, err := Start(t.Context(), Config{Databases: list, Listen: []string{"127.0.0.1:0"}, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}
