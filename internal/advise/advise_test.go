package advise

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"pgaccel/plan"
)

const shop = `
CREATE TABLE sales (id bigserial PRIMARY KEY, at timestamptz NOT NULL, day date, customer int, kind text, amount numeric(12,2), quantity int);
INSERT INTO sales (at, day, customer, kind, amount, quantity) SELECT '2024-01-01'::timestamptz + i * interval '1 min', '2024-01-01'::date + i / 1440, i % 1000,
 (ARRAY['click','view','buy'])[1 + i % 3], i % 500, i % 17 FROM generate_series(1, 60000) i;
CREATE TABLE customers (id int PRIMARY KEY, name text, region text, pos point, twice int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO customers SELECT i, 'name ' || i, 'region ' || i % 7, point(i, i) FROM generate_series(0, 999) i;
CREATE TABLE nokey (a int, b text); INSERT INTO nokey SELECT i, 'x' FROM generate_series(1, 10000) i;
CREATE UNLOGGED TABLE scratch (id int PRIMARY KEY, v int);
CREATE TABLE secret (id int PRIMARY KEY, v text); INSERT INTO secret SELECT i, md5(i::text) FROM generate_series(1, 20000) i;
CREATE TABLE policy (id int PRIMARY KEY, v text); ALTER TABLE policy ENABLE ROW LEVEL SECURITY; INSERT INTO policy SELECT i, 'v' FROM generate_series(1, 1000) i;
CREATE TABLE "odd, name.*" (id int PRIMARY KEY);
CREATE TABLE empty (id int PRIMARY KEY, v text);
CREATE TABLE parts (at date, id int, v text, PRIMARY KEY (at, id)) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
INSERT INTO parts SELECT '2024-01-01'::date + i % 60, i, 'v' || i % 50 FROM generate_series(1, 20000) i;
CREATE VIEW buys AS SELECT day, amount FROM sales WHERE kind = 'buy';
CREATE VIEW one AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW kept AS SELECT day, sum(amount) FROM sales GROUP BY day;
CREATE FOREIGN DATA WRAPPER files; CREATE SERVER files FOREIGN DATA WRAPPER files; CREATE FOREIGN TABLE remote (a int) SERVER files;
`

// available skips a test where the server lacks pg_stat_statements, which is in a package of its own.
func available(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), postgres.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var there bool
	if err := conn.QueryRow(context.Background(), "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_stat_statements')").Scan(&there); err != nil {
		t.Fatal(err)
	}
	if !there {
		t.Skip("the server has no pg_stat_statements")
	}
}

// role makes a role that may read some tables, and returns the URL by which it logs in.
func role(t *testing.T, url, grants string) string {
	t.Helper()
	name := "r" + url[strings.LastIndexByte(url, '/')+1:]
	name, _, _ = strings.Cut(name, "?")
	exec(t, url, "CREATE ROLE "+name+" LOGIN; "+strings.ReplaceAll(grants, "ROLE", name))
	return strings.Replace(url, "postgres://postgres@", "postgres://"+name+"@", 1)
}

func run(t *testing.T, o Options) *Report {
	t.Helper()
	if o.Accelerate == nil {
		o.Accelerate = []string{"*"}
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(line) > width && !strings.HasPrefix(line, "  pgaccel serve") {
			t.Errorf("a line of %d characters: %s", utf8.RuneCountInString(line), line)
		}
	}
	return b.String()
}

func named(t *testing.T, r *Report, name string) *table {
	t.Helper()
	i := slices.IndexFunc(r.Tables, func(one *table) bool { return one.Name == name })
	if i < 0 {
		t.Fatalf("no table %s", name)
	}
	return r.Tables[i]
}

// TestTables: tables of all kinds, as a role sees them that may do nothing but read some of them.
func TestTables(t *testing.T) {
	url := database(t, postgres, shop)
	as := role(t, url, "GRANT SELECT ON sales, nokey, scratch, empty, policy, parts, parts_1, parts_2 TO ROLE; GRANT SELECT (id, name) ON customers TO ROLE")
	exec(t, as, "SELECT sum(amount) FROM sales")
	r := run(t, Options{Upstream: as})
	out := text(t, r)
	for name, want := range map[string]struct {
		method string
		take   bool
		why    string
		needs  string
	}{
		"public.sales":       {bySample, true, "read 2 times over", "not owned"},
		"public.customers":   {byTypes, false, "never read", "no SELECT"},
		"public.nokey":       {byAll, false, "never read", "no replica identity"},
		"public.scratch":     {byAll, false, "empty", "unlogged"},
		"public.secret":      {byTypes, false, "never read", "no SELECT"},
		"public.policy":      {byTypes, false, "never read", "not owned"},
		"public.odd, name.*": {byTypes, false, "empty", "no SELECT"},
		"public.empty":       {byAll, false, "never read", "not owned"},
		"public.parts":       {byAll, false, "never read", "partition public.parts_2: not owned"},
	} {
		one := named(t, r, name)
		if one.Memory.Method != want.method || one.Take != want.take || !strings.HasPrefix(one.Why, want.why) {
			t.Errorf("%s: %+v", name, one)
		}
		if !slices.ContainsFunc(one.Needs, func(n need) bool { return strings.HasPrefix(n.Reason, want.needs) }) {
			t.Errorf("%s: %+v, want %s", name, one.Needs, want.needs)
		}
	}
	if len(r.Tables) != 9 {
		t.Errorf("%d tables", len(r.Tables))
	}
	if n := named(t, r, "public.nokey").Memory; n.Rows != 10000 {
		t.Errorf("%+v", n)
	}
	if left := named(t, r, "public.customers").Left; len(left) != 1 || left[0].Column != "twice" {
		t.Errorf("%+v", left)
	}
	for _, want := range []string{"public.kept: materialized view", "public.remote: foreign table", "--accelerate public.sales", "policy", "ALTER TABLE public.sales OWNER TO " + r.Role} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !slices.Equal(r.Accelerate, []string{"public.sales"}) || !strings.HasSuffix(r.Command, " --accelerate 'public.sales' --memory 64MiB") {
		t.Errorf("%v %s", r.Accelerate, r.Command)
	}
	var again struct {
		Tables []struct{ Name string }
		Memory int64 `json:"memory_bytes"`
	}
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil || json.Unmarshal(b.Bytes(), &again) != nil || len(again.Tables) != 9 || again.Memory != 64<<20 {
		t.Errorf("%v %s", err, b.String())
	}
	// Less memory than that takes nothing.
	if r := run(t, Options{Upstream: as, Memory: 1000}); r.Command != "" || !strings.Contains(text(t, r), "No table is recommended") {
		t.Errorf("%+v", r)
	}
	// Nobody has left anything behind, and a pattern that matches nothing is said.
	if r := run(t, Options{Upstream: as, Accelerate: []string{"nothing"}}); !slices.Equal(r.Missing, []string{"nothing"}) || len(r.Tables) > 0 {
		t.Errorf("%+v", r)
	}
	bytes, tables, guessed, err := Memory(context.Background(), as, []string{"sales", "secret"})
	if err != nil || tables != 2 || guessed != 1 || bytes < 100<<10 {
		t.Error(bytes, tables, guessed, err)
	}
}

// TestLockedTable: a table that somebody holds is not waited for long; what is known of it is used.
func TestLockedTable(t *testing.T) {
	url := database(t, postgres, "CREATE TABLE held (id int PRIMARY KEY, v int); INSERT INTO held SELECT i, i FROM generate_series(1, 100000) i; ANALYZE held")
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), "BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	one := named(t, run(t, Options{Upstream: url}), "public.held")
	if one.Memory.Method != byTypes || one.Memory.Rows != 100000 || one.Server == 0 {
		t.Errorf("%+v", one)
	}
}

// TestPatterns: what is recommended matches the tables that are meant.
func TestPatterns(t *testing.T) {
	url := database(t, postgres, `CREATE TABLE "odd, name.*" (id int PRIMARY KEY); CREATE SCHEMA "a.b"; CREATE TABLE "a.b"." x" (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)`)
	s := survey(t, url)
	for _, meta := range s.Catalog.Tables {
		found := survey(t, url, pattern(meta.Schema, meta.Name)).Catalog.Tables
		if len(found) != 1 || found[0].OID != meta.OID {
			t.Errorf("%s: %v", pattern(meta.Schema, meta.Name), found)
		}
	}
}

func TestStatements(t *testing.T) {
	available(t)
	on, err := start(map[string]string{"shared_preload_libraries": "pg_stat_statements", "shared_buffers": "64MB"})
	if err != nil {
		t.Fatal(err)
	}
	defer on.Stop()
	url := database(t, on, shop+"CREATE SCHEMA ext; CREATE EXTENSION pg_stat_statements SCHEMA ext; ANALYZE sales, customers, secret, parts; SELECT ext.pg_stat_statements_reset()")
	for sql := range statementRoutes {
		exec(t, url, sql)
	}
	exec(t, url, "SELECT sum(quantity) FROM sales; SELECT sum(quantity) FROM sales")
	r := run(t, Options{Upstream: url, Statements: true, Top: 100})
	out := text(t, r)
	var share float64
	for _, st := range r.Statements {
		share += st.Share
	}
	if share < 0.999 || share > 1.001 {
		t.Errorf("shares are %g in all", share)
	}
	for sql, want := range statementRoutes {
		i := slices.IndexFunc(r.Statements, func(st *statement) bool { return like(st.Query, sql) })
		if i < 0 {
			t.Errorf("%s is not there", sql)
			continue
		}
		st := r.Statements[i]
		if st.Route != want.route || !strings.Contains(st.Note, want.note) {
			t.Errorf("%s: %+v", sql, st)
		}
		if want.reason != "" && !slices.ContainsFunc(st.Reasons, func(r reason) bool { return r.Reason == want.reason }) {
			t.Errorf("%s: %+v", sql, st)
		}
		if (st.Route == accelerated || st.Route == partial) != (st.EstimatedMS > 0 && len(st.Tables) > 0) {
			t.Errorf("%s: %+v", sql, st)
		}
	}
	if r.Command == "" || !slices.Contains(r.Accelerate, "public.sales") || r.ShareAccelerated <= 0 || !strings.Contains(out, "of the time would be accelerated") {
		t.Errorf("%s", out)
	}
	if t.Failed() {
		t.Log("\n" + out)
	}

	// With no memory nothing is taken.
	if r := run(t, Options{Upstream: url, Statements: true, Top: 100, Memory: 1000}); r.Command != "" || r.ShareAccelerated != 0 || !strings.HasPrefix(named(t, r, "public.sales").Why, "does not fit") {
		t.Errorf("%+v", r)
	}

	// Another role's texts are hidden from one that has no right to them.
	as := role(t, url, "GRANT SELECT ON sales TO ROLE")
	if _, err := Run(context.Background(), Options{Upstream: as, Accelerate: []string{"*"}, Statements: true, Top: 1}); err == nil || !strings.Contains(err.Error(), "GRANT USAGE ON SCHEMA ext") {
		t.Error(err)
	}
	exec(t, url, "GRANT USAGE ON SCHEMA ext TO PUBLIC")
	exec(t, as, "SELECT max(quantity) FROM sales")
	r = run(t, Options{Upstream: as, Statements: true, Top: 100})
	if i := slices.IndexFunc(r.Statements, func(st *statement) bool { return st.Query == hiddenText }); i < 0 || r.Statements[i].Route != unknown || r.Statements[i].Share < 0.5 {
		t.Errorf("%+v", r.Statements)
	}
	if i := slices.IndexFunc(r.Statements, func(st *statement) bool { return st.Query == "SELECT max(quantity) FROM sales" }); i < 0 || r.Statements[i].Route != accelerated {
		t.Errorf("%+v", r.Statements)
	}

	// Texts that are cut off, or that the server no longer takes.
	s := survey(t, url)
	for sql, note := range map[string]string{
		"SELECT sum(amount) FROM sales WHERE (kind = $1 AND": "cut off",
		"SELECT sum(amount) FROM sales WHERE (kind = ":       "may be cut off",
		"SELECT sum(amount) FROM gone WHERE a = $1":          `relation "gone" does not exist`,
		"": "lost the text",
	} {
		all := statements{list: []*statement{{Query: sql}}}
		if err := all.decide(context.Background(), s, s.Catalog); err != nil {
			t.Fatal(err)
		}
		if st := all.list[0]; st.Route != unknown || !strings.Contains(st.Note, note) {
			t.Errorf("%q: %+v", sql, st)
		}
	}
}

type wantedRoute struct {
	route  route
	reason plan.Reason
	note   string
}

const constantsNote = "with constants"

var statementRoutes = map[string]wantedRoute{
	"SELECT sum(amount) FROM sales": {route: accelerated},
	"SELECT kind, count(*) FROM sales WHERE at >= timestamptz '2024-01-10 00:00:00+00' AND day > date '2024-01-05' GROUP BY kind":                                 {route: accelerated},
	"SELECT date_trunc('month', day::timestamp), sum(quantity) FROM sales GROUP BY date_trunc('month', day::timestamp)":                                           {route: accelerated},
	"SELECT date_trunc('week', day::timestamp) > '2024-01-01', sum(quantity) FROM sales GROUP BY 1":                                                               {route: accelerated, note: constantsNote},
	"SELECT extract(year FROM day), count(*) FROM sales GROUP BY extract(year FROM day)":                                                                          {route: accelerated},
	"SELECT quantity / 5, count(*) FROM sales GROUP BY quantity / 5":                                                                                              {route: accelerated},
	"SELECT c.region, sum(s.amount) FROM sales s JOIN customers c ON c.id = s.customer WHERE s.kind IN ('buy', 'view') GROUP BY c.region ORDER BY 2 DESC LIMIT 5": {route: accelerated},
	"SELECT sum(amount) FROM sales WHERE at < now() - interval '7 days'":                                                                                          {route: accelerated},
	"SELECT * FROM sales WHERE id = 17":                                                                   {route: forwarded, reason: plan.ReasonSmall},
	"SELECT day, sum(amount) FROM buys GROUP BY day ORDER BY 1":                                           {route: accelerated},
	"SELECT random(), count(*) FROM sales GROUP BY 1 LIMIT 1":                                             {route: forwarded, reason: plan.ReasonVolatile},
	"SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), count(*) FROM sales GROUP BY kind": {route: accelerated, note: constantsNote},
	"SELECT quantity, ln(sum(amount) + 1) FROM sales GROUP BY quantity":                                   {route: partial},
	"SELECT sum(twice) FROM customers c JOIN sales s ON s.customer = c.id":                                {route: forwarded, reason: plan.ReasonType},
	"UPDATE customers SET name = 'n' WHERE id = 5":                                                        {route: forwarded, reason: plan.ReasonNotSelect},
	"SELECT v, count(*) FROM parts WHERE at BETWEEN '2024-01-03' AND '2024-02-03' GROUP BY v":             {route: accelerated},
	"COPY (SELECT kind, count(*) FROM sales GROUP BY kind) TO STDOUT":                                     {route: accelerated},
}

// like reports whether a normalised text may be of sql.
func like(normalised, sql string) bool {
	var b strings.Builder
	b.WriteString("^")
	for i, part := range param.Split(normalised, -1) {
		if i > 0 {
			b.WriteString(".+?")
		}
		b.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(b.String() + "$").MatchString(sql)
}

var param = regexp.MustCompile(`\$\d+( /\*, \.\.\. \*/)?`)

// TestWithoutTheExtension: the error says what to do.
func TestWithoutTheExtension(t *testing.T) {
	url := database(t, postgres, "")
	try := func() string {
		_, err := Run(context.Background(), Options{Upstream: url, Accelerate: []string{"*"}, Statements: true, Top: 10})
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error()
	}
	if err := try(); !strings.Contains(err, "is not in database") || !strings.Contains(err, "shared_preload_libraries") {
		t.Error(err)
	}
	available(t)
	exec(t, url, "CREATE EXTENSION pg_stat_statements")
	if err := try(); !strings.Contains(err, "must be loaded via") || !strings.Contains(err, "CREATE EXTENSION") {
		t.Error(err)
	}
}
