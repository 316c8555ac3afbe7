package integration

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/engine"
)

// builtinSchema has a table with columns of every type, and a function that says which
// functions a statement calls, as the server's parser has it.
const builtinSchema = `
CREATE ROLE reader LOGIN;
CREATE TABLE kinds (id int PRIMARY KEY, s smallint, b bigint, n numeric(12,2), r real, f float8, p bool, d date, ts timestamp, tz timestamptz, tm time, t text, v varchar(9), c char(4));
INSERT INTO kinds SELECT i, i % 7, i * 3, i / 4.0, i / 8.0, i / 16.0, i % 2 = 0, date '2020-01-01' + i % 400, timestamp '2020-01-01' + i * interval '1 hour',
 timestamptz '2020-01-01 00:00+00' + i * interval '1 hour', time '00:00' + i * interval '1 second', 'text ' || i % 5, 'v' || i % 11, 'c' || i % 3 FROM generate_series(1, 900) i;
CREATE TABLE names (id bigint PRIMARY KEY, name text NOT NULL);
INSERT INTO names SELECT i, 'name ' || i FROM generate_series(0, 20) i;
GRANT SELECT ON kinds, names TO reader;
CREATE FUNCTION calls(statement text, columns text DEFAULT '') RETURNS oid[] LANGUAGE plpgsql AS $$ DECLARE tree text; BEGIN EXECUTE 'CREATE TEMP VIEW asked ' || columns || ' AS ' || statement; SELECT ev_action::text INTO tree FROM pg_rewrite WHERE ev_class = 'asked'::regclass; DROP VIEW asked; RETURN ARRAY(SELECT m[1]::oid FROM regexp_matches(tree, ':(?:opfuncid|funcid|aggfnoid|winfnoid) ([0-9]+)', 'g') m UNION SELECT p.oprcode::oid FROM regexp_matches(tree, ':eqop ([0-9]+)', 'g') m JOIN pg_operator p ON p.oid = m[1]::oid); END $$;
VACUUM ANALYZE;
`

var builtinQueries = []string{
	"SELECT count(*) AS a, count(t) AS b, sum(s) AS c, sum(id) AS d, sum(b) AS e, sum(n) AS f FROM kinds",
	"SELECT avg(s) AS a, avg(id) AS b, avg(b) AS c, avg(n) AS d, avg(f) AS e FROM kinds",
	"SELECT min(s) AS a, min(id) AS b, min(b) AS c, min(n) AS d, min(r) AS e, min(f) AS f, min(d) AS g FROM kinds",
	"SELECT max(ts) AS a, max(tz) AS b, max(tm) AS c, max(d) AS d, max(id) AS e FROM kinds",
	"SELECT bool_and(p) AS a, bool_or(p) AS b, every(p) AS c FROM kinds",
	"SELECT stddev(id) AS a, variance(n) AS b, stddev_pop(f) AS c, var_pop(b) AS d, var_samp(s) AS e, stddev_samp(r) AS f FROM kinds",
	"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) AS a, percentile_disc(0.25) WITHIN GROUP (ORDER BY b) AS b FROM kinds",
	"SELECT count(*) AS a FROM kinds WHERE id = 7 OR s > 3 AND b <= 90 OR s::int8 <> 2",
	"SELECT count(*) AS a FROM kinds WHERE id < 7 AND s >= 3 OR b > 2000 OR b < id",
	"SELECT count(*) AS a FROM kinds WHERE n > 25.5 AND n < 90 OR n = 100.25 OR n <> 3 AND id >= 5.5",
	"SELECT count(*) AS a FROM kinds WHERE r > 3.5 AND f <= 9 OR r = f OR f <> 1.5::float8",
	"SELECT count(*) AS a FROM kinds WHERE d >= '2020-02-01' AND d < date '2020-03-01' OR d = '2020-05-05' OR d <> '2020-01-01' AND d <= '2020-01-03'",
	"SELECT count(*) AS a FROM kinds WHERE ts >= '2020-02-01' AND ts < '2020-02-03 12:00' OR tz = '2020-01-03 00:00Z' OR tz > timestamptz '2020-02-01 00:00Z'",
	"SELECT count(*) AS a FROM kinds WHERE tm > '00:05' OR tm <= '00:01'",
	"SELECT count(*) AS a FROM kinds WHERE t = 'text 1' OR v <> 'v2' AND t <> 'text 3'",
	"SELECT count(*) AS a FROM kinds WHERE c = 'c1' OR c <> 'c2'",
	"SELECT count(*) AS a FROM kinds WHERE t LIKE 'text%' AND v NOT LIKE '%1' OR c LIKE 'c1%'",
	"SELECT count(*) AS a FROM kinds WHERE NOT (id < 100) AND NOT (t = 'text 1')",
	"SELECT count(*) AS a FROM kinds WHERE id IN (1, 2, 3) OR t IN ('text 1', 'text 4') OR id NOT IN (5, 6, 7)",
	"SELECT count(*) AS a FROM kinds WHERE id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)",
	"SELECT count(*) AS a FROM kinds WHERE id = ANY (ARRAY[1, 2, 3]) OR b <> ALL (ARRAY[5, 6])",
	"SELECT count(*) AS a FROM kinds WHERE id BETWEEN 5 AND 50 OR b NOT BETWEEN 5 AND 50",
	"SELECT count(*) AS a FROM kinds WHERE s IS DISTINCT FROM 3 OR nullif(s, 4) IS NULL",
	"SELECT sum(id + s) AS a, sum(b - id) AS b, sum(id * 2) AS c, sum(n * 2) AS d, sum(n + n) AS e FROM kinds",
	"SELECT sum(id / 2) AS a, sum(id % 7) AS b, sum(-id) AS c, sum(abs(id)) AS d, sum(abs(n)) AS e, sum(mod(b, 5)) AS f FROM kinds",
	"SELECT sum(n - 1.5) AS a, sum(-n) AS b, max(f * 2) AS c, max(r + f) AS d, max(d + 1) AS e, max(d - date '2020-01-01') AS f FROM kinds",
	"SELECT sum(id::bigint) AS a, sum(n::int) AS b, sum(id::numeric) AS c, max(ts::date) AS d, max(d::timestamp) AS e, max(p::int) AS f FROM kinds",
	"SELECT max(s::int) AS a, min(b::int) AS b, max(id::float8) AS c, max(n::float8) AS d, max(r::float8) AS e FROM kinds",
	"SELECT extract(year FROM d) AS a, count(*) AS b FROM kinds GROUP BY 1 ORDER BY 1",
	"SELECT date_trunc('month', ts) AS a, count(*) AS b FROM kinds GROUP BY 1 ORDER BY 1",
	"SELECT date_part('month', d) AS a, extract(hour FROM ts) AS b, count(*) AS c FROM kinds GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT s, count(*) AS a FROM kinds GROUP BY s ORDER BY s",
	"SELECT t, v, count(*) AS a FROM kinds GROUP BY t, v ORDER BY t, v",
	"SELECT p, d, count(*) AS a FROM kinds GROUP BY p, d ORDER BY d, p",
	"SELECT DISTINCT c FROM kinds ORDER BY c",
	"SELECT count(DISTINCT t) AS a, count(DISTINCT id) AS b, count(DISTINCT n) AS c FROM kinds",
	"SELECT CASE s WHEN 1 THEN 'one' ELSE t END AS a, count(*) AS b FROM kinds GROUP BY 1 ORDER BY 1",
	"SELECT sum(CASE WHEN s = 1 THEN b ELSE 0 END) AS a, sum(coalesce(n, 0)) AS b, sum(coalesce(s, id)) AS c FROM kinds",
	"SELECT name, sum(kinds.b) AS a FROM kinds JOIN names ON kinds.s = names.id GROUP BY name ORDER BY name",
	"SELECT id, t FROM kinds WHERE id < 9 ORDER BY id LIMIT 3",
	"SELECT s, count(*) AS a FROM kinds GROUP BY s HAVING count(*) > 100 ORDER BY s",
	"SELECT sum(id) FILTER (WHERE p = true) AS a FROM kinds",
	"SELECT row_number() OVER (ORDER BY id) AS a, rank() OVER (ORDER BY s) AS b, dense_rank() OVER (PARTITION BY p ORDER BY d) AS c FROM kinds",
	"SELECT lag(t) OVER (ORDER BY id) AS a, lag(s, 2) OVER (ORDER BY id) AS b, lag(b, 1, 0) OVER (ORDER BY id) AS c, lead(n) OVER (ORDER BY id) AS d, lead(d, 2) OVER (ORDER BY id) AS e, lead(id, 1, 0) OVER (ORDER BY id) AS f FROM kinds",
	"SELECT first_value(t) OVER (ORDER BY id) AS a, last_value(t) OVER (ORDER BY id) AS b, ntile(3) OVER (ORDER BY id) AS c, percent_rank() OVER (ORDER BY s) AS d, cume_dist() OVER (ORDER BY t) AS e FROM kinds",
	"SELECT sum(n) OVER (PARTITION BY s ORDER BY id) AS a, count(*) OVER (PARTITION BY t) AS b, avg(b) FILTER (WHERE id > 3) OVER (ORDER BY d) AS c FROM kinds ORDER BY id",
	"SELECT count(*) AS a FROM kinds WHERE id IN (SELECT id FROM names WHERE name <> 'name 3') OR t = 'text 2'",
	"SELECT count(*) AS a FROM kinds WHERE b NOT IN (SELECT id FROM names) AND n > (SELECT avg(n) FROM kinds WHERE s < 5)",
	"SELECT count(*) AS a FROM kinds k WHERE EXISTS (SELECT 1 FROM names m WHERE m.id = k.id AND m.name > 'name 1') AND NOT EXISTS (SELECT 1 FROM kinds i WHERE i.s = k.s AND i.id < k.id)",
	"SELECT count(*) AS a FROM kinds k WHERE k.b > (SELECT max(i.b) - 100 FROM kinds i WHERE i.t = k.t)",
	"SELECT count(*) AS a FROM kinds k WHERE k.b <> ALL (SELECT id FROM names)",
	"SELECT s AS a, t AS b FROM kinds UNION SELECT s, v FROM kinds ORDER BY 1, 2",
	"SELECT n AS a, d AS b FROM kinds INTERSECT SELECT n, d FROM kinds WHERE id < 50 ORDER BY 1, 2",
	"SELECT f AS a FROM kinds EXCEPT SELECT f FROM kinds WHERE id < 50 ORDER BY 1",
	"SELECT count(*) AS a, sum(c) AS b FROM (SELECT s, count(DISTINCT t) AS c FROM kinds GROUP BY s) q",
	"SELECT count(*) AS a FROM kinds k FULL JOIN names m ON m.id = k.s",
	"SELECT count(*) AS a FROM kinds WHERE ts > date '2020-03-01' - interval '10' day AND ts < timestamp '2020-03-01' + interval '1 month'",
	"SELECT count(*) AS a FROM kinds WHERE ts > interval '10 days' + date '2020-01-03' AND ts < timestamp '2020-03-01' - interval '1' hour",
	"SELECT round(n) AS a, round(n, 1) AS b, trunc(n) AS c, ceil(n) AS d, floor(avg(n)) AS e, count(*) AS f FROM kinds GROUP BY n ORDER BY n",
	"SELECT max(round(f)) AS a, max(round(id / 7.0, 2)) AS b, max(trunc(n, 1)) AS c, max(ceiling(f)) AS d, max(floor(id)) AS e FROM kinds",
	"SELECT t || '-' || v AS a, c || t AS b, concat(t, id, v) AS c, lower(t) || upper(v) AS d FROM kinds WHERE id < 9 ORDER BY id",
	"SELECT concat_ws(t, v, id) AS a, concat_ws('-', t, id) AS b, format('%s %s', t, id) AS c, num_nulls(t, v) AS d FROM kinds WHERE id < 9 ORDER BY id",
	"SELECT id FROM kinds WHERE t SIMILAR TO 'a%' OR (t, v) IN (('a', 'b'), ('c', 'd')) OR (id, t) < (3, 'a') OR t ^@ 'b' OR id BETWEEN SYMMETRIC 9 AND 7 ORDER BY id",
	"SELECT t || id AS a, n || v AS b, replace(t, 'text', v) AS c, left(t, 3) AS d, right(t, -2) AS e FROM kinds WHERE id < 9 ORDER BY id",
	"SELECT trim(t) AS a, btrim(t, 't') AS b, ltrim(t) AS c, ltrim(t, 'e') AS d, rtrim(c) AS e, rtrim(t, '1') AS f, strpos(t, '1') AS g, position('x' IN t) AS h FROM kinds WHERE id < 9 ORDER BY id",
	"SELECT substring(t FROM 1 FOR 3) AS a, substr(v, 2) AS b, count(*) AS c FROM kinds GROUP BY 1, 2 ORDER BY 1, 2",
}

// TestRightsOnBuiltins takes EXECUTE on each function that some query calls from PUBLIC,
// and asks as a role that has lost it and as a superuser, with both protocols, outside and
// inside of a transaction block: the server's rows, or its error and status. What the role
// may still ask is accelerated, what it may not is not.
func TestRightsOnBuiltins(t *testing.T) {
	s := privateStack(t, builtinSchema)
	admin, err := pgx.Connect(context.Background(), s.direct.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	queries := map[uint32][]string{} // by function
	direct, proxy := connect(t, s.direct.url("reader")), connect(t, s.proxy.url("reader"))
	ofGate := gateFunctions(t, admin)
	super := connect(t, s.proxy.url("postgres"))
	for _, q := range builtinQueries {
		var oids []uint32
		if err := admin.QueryRow(context.Background(), "SELECT calls($1)", q).Scan(&oids); err != nil {
			t.Fatal(q, err)
		}
		for _, o := range oids {
			queries[o] = append(queries[o], q)
		}
		s.accelerates(t, 3, func() { same(t, direct, proxy, q) })
	}
	top, cases, refused := t, 0, 0
	compare := func(q string) (failed bool) {
		for i, p := range protocols[:2] {
			for _, block := range []bool{false, true} {
				var said [2]string
				for k, c := range []*pgconn.PgConn{direct, proxy} {
					if block {
						must(t, c, "BEGIN")
					}
					a := ask(t, c, q, p.format)
					failed = failed || a.err != ""
					said[k] = fmt.Sprintf("%s %c", a, c.TxStatus())
					if block {
						must(t, c, []string{"COMMIT", "ROLLBACK"}[i])
					}
				}
				cases++
				if said[1] != said[0] {
					t.Errorf("%s (%s, block %v)%s", q, p.name, block, firstDifference([]byte(said[1]), []byte(said[0])))
				}
			}
		}
		return failed
	}
	for _, oid := range slices.Sorted(maps.Keys(queries)) {
		var name string
		if err := admin.QueryRow(context.Background(), "SELECT $1::oid::regprocedure", oid).Scan(&name); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			must(t, admin.PgConn(), "REVOKE EXECUTE ON FUNCTION "+name+" FROM PUBLIC")
			for _, q := range queries[oid] {
				before := s.queries(t, "accelerated")
				if compare(q) {
					refused++
					if n := s.queries(t, "accelerated") - before; n > 0 {
						t.Errorf("%s: %d were accelerated", q, n)
					}
				}
			}
			if ofGate[oid] { // a session whose gate was refused does without for a while
				proxy.Close(context.Background())
				proxy = connect(top, s.proxy.url("reader"))
			} else {
				i := slices.IndexFunc(builtinQueries, func(q string) bool { return !slices.Contains(queries[oid], q) })
				s.accelerates(t, 1, func() { compare(builtinQueries[i]) })
			}
			if a := ask(t, super, queries[oid][0], nil); a.err != "" {
				t.Error(a.err)
			}
			must(t, admin.PgConn(), "GRANT EXECUTE ON FUNCTION "+name+" TO reader")
			compare(queries[oid][0])
			must(t, admin.PgConn(), "REVOKE EXECUTE ON FUNCTION "+name+" FROM reader; GRANT EXECUTE ON FUNCTION "+name+" TO PUBLIC")
		})
	}
	t.Logf("%d functions, %d cases, %d queries refused", len(queries), cases, refused)
	if cases < 500 || refused < 100 {
		t.Errorf("%d cases, %d queries refused", cases, refused)
	}
	for _, q := range builtinQueries {
		s.accelerates(t, 1, func() { same(t, direct, proxy, q) })
	}
}

// gateFunctions are the OIDs of the functions that the gate calls, those of operators, casts
// and aggregates included.
func gateFunctions(t *testing.T, admin *pgx.Conn) map[uint32]bool {
	all := map[uint32]bool{}
	for _, form := range []engine.GateForm{engine.GateFull, engine.GatePlain} {
		desc, err := admin.PgConn().Prepare(context.Background(), "", form.SQL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var columns []string
		for i := range desc.Fields {
			columns = append(columns, fmt.Sprintf("c%d", i))
		}
		text := regexp.MustCompile(`\$\d`).ReplaceAllString(form.SQL(), "(SELECT NULL::text)")
		var oids []uint32
		if err := admin.QueryRow(context.Background(), "SELECT calls($1, $2)", text, "("+strings.Join(columns, ",")+")").Scan(&oids); err != nil {
			t.Fatal(err)
		}
		for _, o := range oids {
			all[o] = true
		}
	}
	return all
}

// gateObjects are what the gate needs, as REVOKE and GRANT name it.
func gateObjects(t *testing.T, admin *pgx.Conn) []string {
	text := engine.GateFull.SQL() + engine.GatePlain.SQL()
	rows, _ := admin.Query(context.Background(), "SELECT 'EXECUTE ON FUNCTION ' || f.oid::regprocedure FROM pg_proc f WHERE f.oid = ANY ($1) ORDER BY 1", slices.Collect(maps.Keys(gateFunctions(t, admin))))
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 22 {
		t.Fatal(list)
	}
	catalogs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?:FROM|JOIN|,) pg_catalog\.(pg_[a-z_]+) [a-z]`).FindAllStringSubmatch(text, -1) {
		catalogs[m[1]] = true
	}
	for c := range catalogs {
		list = append(list, "SELECT ON pg_catalog."+c)
	}
	if len(catalogs) < 7 {
		t.Fatal(catalogs)
	}
	return append(list, "USAGE ON SCHEMA pg_catalog")
}

// TestGateWithoutRights takes from PUBLIC each right that the gate needs. A role without it
// is forwarded, with its transaction intact, from the first statement on.
func TestGateWithoutRights(t *testing.T) {
	s := privateStack(t, builtinSchema)
	admin, err := pgx.Connect(context.Background(), s.direct.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	const q = "SELECT p, count(*) AS a FROM kinds WHERE id < 100 GROUP BY p ORDER BY p"
	const two = "SELECT name, count(*) AS a FROM kinds JOIN names ON s = names.id GROUP BY name ORDER BY name" // the gate's other form
	super := connect(t, s.proxy.url("postgres"))
	s.eventually(t, super, q)
	cases := 0
	// conversation is a session of its own: one whose gate was refused does without for a while.
	conversation := func(tg target, block bool) (said string) {
		for _, p := range protocols[:2] {
			for _, sql := range []string{q, two} {
				c, err := pgconn.Connect(context.Background(), tg.url("reader"))
				if err != nil {
					t.Fatal(err)
				}
				if block {
					said += ask(t, c, "BEGIN", nil).String() + ask(t, c, "SET LOCAL lock_timeout = '7s'", nil).String()
				}
				for range 2 {
					said += fmt.Sprintf("%s %c\n", ask(t, c, sql, p.format), c.TxStatus())
				}
				if block {
					said += ask(t, c, "COMMIT", nil).String()
				}
				c.Close(context.Background())
			}
		}
		return said
	}
	ask1 := func(what string, block bool) {
		t.Helper()
		cases++
		if got, want := conversation(s.proxy, block), conversation(s.direct, block); got != want {
			t.Errorf("%s, block %v:%s", what, block, firstDifference([]byte(got), []byte(want)))
		}
	}
	// refused asks, and asserts that at least one form of the gate let nothing pass.
	refused := func(what string, block bool) {
		t.Helper()
		before := s.queries(t, "accelerated")
		ask1(what, block)
		if n := s.queries(t, "accelerated") - before; n > 4 { // with both protocols
			t.Errorf("%s, block %v: %d executions were accelerated", what, block, n)
		}
	}
	objects := gateObjects(t, admin)
	must(t, admin.PgConn(), "REVOKE EXECUTE ON FUNCTION pg_catalog.float4eq(real, real) FROM PUBLIC")
	for _, block := range []bool{false, true} {
		s.accelerates(t, 4, func() { ask1("what it does not need", block) })
	}
	for _, o := range objects {
		must(t, admin.PgConn(), "REVOKE "+o+" FROM PUBLIC")
		refused(o, false)
		refused(o, true)
		must(t, super, "BEGIN")
		s.accelerates(t, 1, func() { ask(t, super, q, nil) })
		must(t, super, "COMMIT")
		must(t, admin.PgConn(), "GRANT "+o+" TO PUBLIC")
	}
	t.Logf("%d rights, %d cases", len(objects), cases)
}
