package integration

import (
	"fmt"
	"strings"
	"testing"

	"pgaccel/internal/pgserver"
)

// TestForeignTables has a third server read two others' halves of a table, each through its pgaccel, by
// postgres_fdw: cursors in REPEATABLE READ, with the search_path and settings of its own. Its answers are compared
// with those of a table of its own that has all rows.
func TestForeignTables(t *testing.T) {
	const rows = `SELECT i AS id, i % 97 AS customer, ((i * 7919 % 100000) / 100.0)::numeric(10,2) AS amount, date '2024-01-01' + i % 366 AS day,
		(ARRAY['north','east','south','west'])[1 + i % 4] AS region, timestamptz '2024-03-31 00:30+00' + i * interval '7 minutes' AS at,
		CASE WHEN i % 11 > 0 THEN i / 3.0 END::float8 AS weight FROM generate_series(1, 20000) i`
	const columns = `(id int NOT NULL, customer int NOT NULL, amount numeric(10,2), day date, region text, at timestamptz, weight float8`
	halves := []*stack{}
	for n := range 2 {
		schema := fmt.Sprintf(`CREATE TABLE whole (customer int) PARTITION BY HASH (customer);
CREATE TABLE sales %s, PRIMARY KEY (id, customer));
INSERT INTO sales SELECT * FROM (%s) s WHERE satisfies_hash_partition('whole'::regclass, 2, %d, customer);
DROP TABLE whole;
CREATE TABLE customers AS SELECT i AS customer, 'customer ' || i AS name FROM generate_series(0, 96) i;
ALTER TABLE customers ADD PRIMARY KEY (customer);
ANALYZE`, columns, rows, n)
		halves = append(halves, privateStack(t, schema))
	}
	front, err := pgserver.Start(t.Context(), pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.Stop)
	set := connect(t, front.URL("postgres", "postgres"))
	script := fmt.Sprintf(`CREATE EXTENSION postgres_fdw;
CREATE TABLE sales %s) PARTITION BY HASH (customer);
CREATE TABLE all_sales AS %s;
CREATE SCHEMA first_half`, columns, rows)
	for n, s := range halves {
		script += fmt.Sprintf(`;
CREATE SERVER half%[1]d FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '%[2]d', dbname 'postgres', options '-c pgaccel.mode=force',
	use_remote_estimate '%[3]t', fetch_size '1000');
CREATE USER MAPPING FOR PUBLIC SERVER half%[1]d OPTIONS (user 'postgres', password_required 'false');
CREATE FOREIGN TABLE sales%[1]d PARTITION OF sales FOR VALUES WITH (MODULUS 2, REMAINDER %[1]d) SERVER half%[1]d OPTIONS (table_name 'sales')`,
			n, s.proxy.port, n == 1)
	}
	script += `;
IMPORT FOREIGN SCHEMA public LIMIT TO (sales, customers) FROM SERVER half1 INTO first_half;
SET enable_partitionwise_aggregate = on;
SET enable_partitionwise_join = on;
SET TimeZone = 'America/New_York'`
	for stmt := range strings.SplitSeq(script, ";\n") {
		if a := ask(t, set, stmt, nil); a.code != "" {
			t.Fatal(stmt, a)
		}
	}

	same := func(sql string, got, want answer) {
		t.Helper()
		if got.err != "" || len(want.rows) == 0 {
			t.Errorf("%s: %s, of %d rows", sql, got.err, len(want.rows))
		}
		if d := firstDifference([]byte(strings.Join(got.rows, "\n")), []byte(strings.Join(want.rows, "\n"))); d != "" {
			t.Errorf("%s%s", sql, d)
		}
	}
	for _, sql := range []string{
		"SELECT count(*), sum(amount), min(day), max(at) FROM %s",
		"SELECT customer, count(*), sum(amount), max(amount) FROM %s GROUP BY customer ORDER BY customer",
		"SELECT customer, sum(amount) FROM %s WHERE day BETWEEN '2024-02-01' AND '2024-04-30' AND region IN ('north','west') GROUP BY customer HAVING count(*) > 10 ORDER BY 2 DESC, 1 LIMIT 10",
		"SELECT region, count(*) FROM %s WHERE at >= '2024-04-01 00:00' AND at < '2024-05-01 00:00' GROUP BY region ORDER BY region",
		"SELECT id, customer, amount, at, weight FROM %s WHERE amount > 990 ORDER BY id, customer",
		"SELECT customer, count(*) FILTER (WHERE weight IS NULL), min(weight) FROM %s GROUP BY customer ORDER BY customer",
		"SELECT customer, date_trunc('month', day::timestamp), sum(amount) FROM %s GROUP BY 1, 2 ORDER BY 1, 2",
	} {
		want := ask(t, set, fmt.Sprintf(sql, "all_sales"), nil)
		halves[0].accelerates(t, 1, func() {
			halves[1].accelerates(t, 1, func() {
				same(sql, ask(t, set, fmt.Sprintf(sql, "sales"), nil), want)
			})
		})
	}

	// What IMPORT FOREIGN SCHEMA has made: a join that runs on the other server.
	join := "SELECT c.name, count(*), sum(s.amount) FROM %s s JOIN first_half.customers c USING (customer) WHERE c.name < 'customer 3' AND s.customer IN (SELECT customer FROM first_half.sales) GROUP BY c.name ORDER BY c.name"
	want := ask(t, set, fmt.Sprintf(join, "all_sales"), nil)
	halves[1].accelerates(t, 1, func() {
		same(join, ask(t, set, fmt.Sprintf(join, "first_half.sales"), nil), want)
	})

	// Writes go through pgaccel, and are seen by the statement after them.
	for _, sql := range []string{"INSERT INTO %s VALUES (20001, 5, 12.34, '2025-01-01', 'east', '2025-01-01', 1.5)", "UPDATE %s SET amount = amount + 1 WHERE customer = 5",
		"DELETE FROM %s WHERE day = '2024-05-05'"} {
		for _, table := range []string{"all_sales", "sales"} {
			if a := ask(t, set, fmt.Sprintf(sql, table), nil); a.code != "" {
				t.Fatal(sql, a)
			}
		}
		check := "SELECT customer, count(*), sum(amount), max(day) FROM %s GROUP BY customer ORDER BY customer"
		same(sql, ask(t, set, fmt.Sprintf(check, "sales"), nil), ask(t, set, fmt.Sprintf(check, "all_sales"), nil))
	}
}
