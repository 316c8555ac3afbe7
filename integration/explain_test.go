package integration

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const explainSchema = `
CREATE TABLE part (id int PRIMARY KEY, brand text COLLATE "C", size int);
CREATE TABLE sale (id int PRIMARY KEY, part_id int, day date, price numeric(12,2), note text COLLATE "C");
INSERT INTO part SELECT i, 'brand ' || i % 10, i % 50 FROM generate_series(1, 200) i;
INSERT INTO sale SELECT i, i % 200 + 1, date '2024-01-01' + i % 365, i * 0.25, 'a"<&>\' || i % 3 FROM generate_series(1, 5000) i;
CREATE ROLE clerk LOGIN;
GRANT SELECT ON part TO clerk;
ANALYZE;
`

// explaining is a session that hears notices.
type explaining struct {
	*pgconn.PgConn
	notices []*pgconn.Notice
}

func explainer(t *testing.T, url string) *explaining {
	t.Helper()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	x := &explaining{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { x.notices = append(x.notices, n) }
	if x.PgConn, err = pgconn.ConnectConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close(context.Background()) })
	return x
}

// lines asks for an EXPLAIN: with parameters in the extended protocol, as with a type of the column that is
// expected. It returns the rows that came, or the error, and the notice, if there was one.
func (x *explaining) lines(t *testing.T, sql string, oid uint32, params ...string) (rows string, notice *pgconn.Notice) {
	t.Helper()
	x.notices = nil
	var got []*pgconn.Result
	var err error
	if params == nil {
		got, err = x.Exec(t.Context(), sql).ReadAll()
	} else {
		values := make([][]byte, len(params))
		for i, p := range params {
			values[i] = []byte(p)
		}
		r := x.ExecParams(t.Context(), sql, values, nil, nil, nil).Read()
		got, err = []*pgconn.Result{r}, r.Err
	}
	if len(x.notices) > 1 {
		t.Errorf("%s: %d notices", sql, len(x.notices))
	}
	if len(x.notices) > 0 {
		notice = x.notices[0]
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code + " " + refused.Message, notice
	} else if err != nil {
		t.Fatal(sql, err)
	}
	r := got[len(got)-1]
	if f := r.FieldDescriptions; len(f) != 1 || f[0].Name != "QUERY PLAN" || f[0].DataTypeOID != oid || f[0].TypeModifier != -1 {
		t.Errorf("%s: described as %+v", sql, f)
	}
	if tag := r.CommandTag.String(); tag != "EXPLAIN" {
		t.Errorf("%s: %q", sql, tag)
	}
	for _, row := range r.Rows {
		rows += string(row[0]) + "\n"
	}
	return rows, notice
}

const ours = "Custom Scan (pgaccel)"

const explainedSQL = "SELECT brand, sum(price) FROM sale s JOIN part p ON p.id = s.part_id WHERE day >= '2024-05-01' AND size < 10 GROUP BY brand HAVING count(*) > 2 ORDER BY 2 DESC LIMIT 3"

// TestExplain: what is answered here is explained here, in both protocols and all formats, and is not counted.
func TestExplain(t *testing.T) {
	s := privateStack(t, explainSchema)
	c := explainer(t, s.proxy.url("postgres"))
	has := func(rows string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(rows, w) {
				t.Errorf("no %q in\n%s", w, rows)
			}
		}
	}
	before := s.metrics(t)
	for _, params := range [][]string{nil, {}} {
		rows, notice := c.lines(t, "/* x */ EXPLAIN -- (\n"+explainedSQL+";", 25, params...)
		has(rows, ours+"  (cost=", "HashAggregate", "Group Key: p", "Filter: (count(*) > 2)", "Hash Cond: (sale.part_id = part.id)", "Seq Scan on sale  (cost=", "Filter: (sale.day >= '2024-05-01'::date)", "Sort Key: (sum(sale.price)) DESC")
		if strings.Contains(rows, "actual") || strings.Contains(rows, "Device") || notice != nil {
			t.Error(rows, notice)
		}
		rows, _ = c.lines(t, "EXPLAIN ANALYZE VERBOSE "+explainedSQL, 25, params...)
		has(rows, " rows=3 width=64) (actual time=", " rows=3 loops=1)\n", "  Output: part.brand, sum(sale.price)\n", "  Device: cpu\n", "  Rows Scanned: 5200\n", "Planning Time: ", "Execution Time: ", "on public.sale")
		rows, _ = c.lines(t, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS) ("+explainedSQL+")", 25, params...)
		has(rows, ours+"  (actual rows=3 loops=1)\n")
		if strings.Contains(rows, "cost=") || strings.Contains(rows, "Time") {
			t.Error(rows)
		}
		text := `SELECT note, count(*) FROM sale WHERE note = E'a"<&>\\1' GROUP BY 1`
		rows, _ = c.lines(t, "EXPLAIN (ANALYZE, FORMAT JSON) "+text, 114, params...)
		var all []struct {
			Plan map[string]any
			Time float64 `json:"Execution Time"`
		}
		if err := json.Unmarshal([]byte(rows), &all); err != nil || len(all) != 1 || all[0].Plan["Custom Plan Provider"] != "pgaccel" || all[0].Plan["Actual Rows"] != 1.0 || all[0].Time <= 0 {
			t.Errorf("%v\n%s", err, rows)
		}
		rows, _ = c.lines(t, "EXPLAIN (ANALYZE, FORMAT XML) "+text, 142, params...)
		has(rows, "<Custom-Plan-Provider>pgaccel</Custom-Plan-Provider>", "<Filter>(note = E'a\"&lt;&amp;&gt;")
		for d := xml.NewDecoder(strings.NewReader(rows)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err, rows)
			}
		}
		rows, _ = c.lines(t, "EXPLAIN (FORMAT YAML) "+text, 25, params...)
		has(rows, "- Plan: \n    Node Type: \"Custom Scan\"\n", "    Plans: \n      - Node Type: \"Aggregate\"\n", "        Group Key: \n          - \"note\"\n")
	}
	rows, _ := c.lines(t, "EXPLAIN ANALYZE SELECT count(*) FROM sale WHERE part_id = $1 AND day > $2", 25, "7", "2024-02-01")
	has(rows, ours, "(part_id = 7)", "(day > '2024-02-01'::date)")
	for _, sql := range []string{"EXPLAIN TABLE part UNION ALL TABLE part", "EXPLAIN WITH x AS (SELECT part_id, sum(price) AS total FROM sale GROUP BY 1) SELECT a.part_id, row_number() OVER (ORDER BY b.total) FROM x a JOIN x b USING (part_id) WHERE a.total > (SELECT avg(total) FROM x) UNION ALL SELECT id, size FROM part"} {
		rows, _ = c.lines(t, sql, 25)
		has(rows, ours, "Append")
	}
	must(t, c.PgConn, "BEGIN")
	rows, _ = c.lines(t, "EXPLAIN "+explainedSQL, 25)
	has(rows, ours)
	must(t, c.PgConn, "COMMIT")
	for line := range s.metrics(t) {
		if !before[line] && !strings.Contains(line, "not a plain SELECT") {
			t.Errorf("counted: %s", line)
		}
	}
}

// TestExplainForwarded: what is not answered here has PostgreSQL's plan, and a notice says why.
func TestExplainForwarded(t *testing.T) {
	s := privateStack(t, explainSchema)
	c, direct := explainer(t, s.proxy.url("postgres")), explainer(t, s.direct.url("postgres"))
	for _, params := range [][]string{nil, {}} {
		f := func(sql, detail string, position int32, set ...string) {
			t.Helper()
			for _, conn := range []*explaining{c, direct} {
				for _, x := range set {
					must(t, conn.PgConn, x)
				}
			}
			want, _ := direct.lines(t, sql, 25, params...)
			got, n := c.lines(t, sql, 25, params...)
			if got != want {
				t.Errorf("%s: %s\nPostgreSQL has\n%s", sql, got, want)
			}
			if detail == "" {
				if n != nil {
					t.Errorf("%s: %+v", sql, n)
				}
			} else if n == nil || n.Severity != "INFO" || !strings.Contains(n.Detail, detail) || n.Position != position {
				t.Errorf("%s: %+v", sql, n)
			}
		}
		f("EXPLAIN SELECT count(*), random() FROM sale", "(at 26)", 26)
		f("EXPLAIN (COSTS OFF) SELECT note, price FROM sale WHERE random() < ctid::text::float", "volatile: random() (at 56)", 56)
		f("EXPLAIN SELECT exp(sum(price) / 1000000) FROM sale", "computed here:\n"+ours, 16)
		f("EXPLAIN SELECT count(*) FROM sale JOIN pg_class ON true", "no accelerated table", 40)
		f("EXPLAIN SELECT count(*) FROM pg_class", "", 0)
		f("EXPLAIN SELECT nothing FROM sale", "", 0)
		f("EXPLAIN (NONE) SELECT count(*) FROM sale", "", 0)
		f("EXPLAIN (TIMING) SELECT count(*) FROM sale", "", 0)
		f("EXPLAIN (FORMAT 'JSON') SELECT count(*) FROM sale", "", 0)
		f("EXPLAIN UPDATE sale SET note = ''", "", 0)
		f("EXPLAIN CREATE TABLE x AS SELECT count(*) FROM sale", "", 0)
		f("EXPLAIN SELECT count(*) FROM sale", "", 0, "SET pgaccel.mode = 'off'")
		f("EXPLAIN SELECT random() FROM sale", "", 0)
		f("EXPLAIN SELECT count(*) FROM sale WHERE id = 5", "cheap anyway", 0, "RESET pgaccel.mode", "SET pgaccel.mode = 'auto'")
		f("EXPLAIN SELECT count(*) FROM sale", "own writes", 0, "SET pgaccel.mode = 'force'", "BEGIN", "UPDATE part SET size = 0 WHERE id = 0", "CREATE TEMP TABLE own ()")
		f("EXPLAIN SELECT 1", "", 0, "ROLLBACK")
	}
	clerk := explainer(t, s.proxy.url("clerk"))
	for _, sql := range []string{"EXPLAIN SELECT count(*) FROM sale", "EXPLAIN ANALYZE SELECT count(*), random() FROM sale"} {
		for _, params := range [][]string{nil, {}} {
			if got, n := clerk.lines(t, sql, 25, params...); got != "42501 permission denied for table sale" || n != nil {
				t.Error(sql, got, n)
			}
		}
	}
	if got, _ := clerk.lines(t, "EXPLAIN SELECT count(*) FROM part", 25); !strings.Contains(got, ours) {
		t.Error(got)
	}
}

// TestExplainPortals: the rows of an EXPLAIN are fetched in pieces, as the server's are.
func TestExplainPortals(t *testing.T) {
	s := privateStack(t, explainSchema)
	direct, proxy := hijacked(t, s.direct, "postgres"), hijacked(t, s.proxy, "postgres")
	// Of both the plans have four lines.
	sql := "EXPLAIN (COSTS OFF) SELECT note, count(*) FROM sale GROUP BY note"
	forms := map[string]func(c *portalClient, name string){
		"pieces": func(c *portalClient, name string) {
			c.parse("", sql)
			c.f.Send(&pgproto3.Bind{DestinationPortal: name})
			c.f.Send(&pgproto3.Describe{ObjectType: 'P', Name: name})
			c.execute(name, 1)
			c.execute(name, 0)
			c.execute(name, 0)
			c.sync()
		},
		"statement": func(c *portalClient, name string) {
			c.parse("", sql)
			c.f.Send(&pgproto3.Describe{ObjectType: 'S'})
			c.f.Send(&pgproto3.Bind{DestinationPortal: name, ResultFormatCodes: []int16{1}})
			c.execute(name, 0)
			c.sync()
		},
	}
	rows := regexp.MustCompile(`Values:\[.*\]`)
	for what, f := range forms {
		for _, name := range []string{"", "p"} {
			got, want := proxy.copies(func() { f(proxy, name) }), direct.copies(func() { f(direct, name) })
			if !strings.Contains(got, strings.Trim(fmt.Sprint([]byte(ours)), "[]")) {
				t.Errorf("%s %q: not answered here: %s", what, name, got)
			}
			message := func(s string) (kinds []string) {
				for _, line := range strings.Split(rows.ReplaceAllString(s, ""), "\n") {
					if !strings.Contains(line, "DataRow") {
						kinds = append(kinds, line)
					}
				}
				return kinds
			}
			if !slices.Equal(message(got), message(want)) {
				t.Errorf("%s %q:\n%s\nthe server has\n%s", what, name, got, want)
			}
		}
	}
}

// TestExplainForeign: postgres_fdw with use_remote_estimate asks pgaccel for its estimates, and takes them.
func TestExplainForeign(t *testing.T) {
	s := privateStack(t, explainSchema)
	conn := connect(t, s.direct.url("postgres"))
	must(t, conn, fmt.Sprintf(`CREATE EXTENSION postgres_fdw; CREATE SCHEMA far;
CREATE SERVER pgaccel FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '%d', dbname '%s', options '-c pgaccel.mode=force', use_remote_estimate 'true');
CREATE USER MAPPING FOR postgres SERVER pgaccel OPTIONS (user 'postgres');
IMPORT FOREIGN SCHEMA public LIMIT TO (sale, part) FROM SERVER pgaccel INTO far`, s.proxy.port, s.proxy.db))
	a := ask(t, conn, "EXPLAIN SELECT brand, count(*) FROM far.part GROUP BY brand", nil)
	if a.err != "" || !strings.Contains(a.String(), "rows=200 ") { // the server would expect 10
		t.Error(a)
	}
	if a := ask(t, conn, "SELECT brand, count(*) FROM far.part GROUP BY brand ORDER BY 1 LIMIT 1", nil); a.err != "" || len(a.rows) != 1 {
		t.Error(a)
	}
}
