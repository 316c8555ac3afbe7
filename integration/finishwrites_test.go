package integration

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestPostgresWritesExtended is TestPostgresWrites by the extended protocol: with parameters of known types, prepared, in and outside of
// blocks.
func TestPostgresWritesExtended(t *testing.T) {
	s := privateStack(t, finishSchema+";\nCREATE TABLE kept (s int, total numeric(20,1), note text)")
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, c := range []struct {
		sql    string
		types  []uint32
		params []string
	}{
		{sql: "CREATE TABLE made AS SELECT v, c, e, max(n) AS n, exp(sum(n) / 90000), min(tz) AS tz FROM every GROUP BY 1, 2, 3"},
		{sql: "CREATE TABLE made AS SELECT v, sum(n) AS total, $1::text AS a FROM every WHERE id > $2 GROUP BY v", types: []uint32{25, 23}, params: []string{"x", "70"}},
		{sql: "INSERT INTO kept SELECT s, sum(n) FROM every GROUP BY s"},
		{sql: "INSERT INTO kept (total) SELECT ln(count(*)) FROM every GROUP BY s"},
		{sql: "INSERT INTO kept SELECT s, sum(n), max(v) || $1 FROM every WHERE id > $2 AND e = 'ok' GROUP BY s", types: []uint32{25, 23}, params: []string{"ö", "100"}},
		{sql: "INSERT INTO kept SELECT s, sum(n) / $1, quote_literal(v) FROM every GROUP BY s, v", types: []uint32{1700}, params: []string{"3"}},
	} {
		var values [][]byte
		for _, p := range c.params {
			values = append(values, []byte(p))
		}
		image := func(conn *pgconn.PgConn, block, prepared bool) string {
			if block {
				must(t, conn, "BEGIN")
			}
			var a answer
			if prepared {
				if _, err := conn.Prepare(t.Context(), "w", c.sql, nil); err != nil {
					t.Fatal(err)
				}
				a.read(conn.ExecPrepared(t.Context(), "w", values, nil, nil))
				if c.sql[0] == 'I' {
					a.read(conn.ExecPrepared(t.Context(), "w", values, nil, []int16{1}))
				}
				must(t, conn, "DEALLOCATE w")
			} else {
				a.read(conn.ExecParams(t.Context(), c.sql, values, c.types, nil, nil))
			}
			rows := ask(t, conn, "SELECT m::text FROM kept m ORDER BY 1", nil)
			if c.sql[0] == 'C' {
				rows = ask(t, conn, "SELECT m::text FROM made m ORDER BY 1", nil)
				columns := ask(t, conn, "SELECT attname, format_type(atttypid, atttypmod), attcollation FROM pg_attribute WHERE attrelid = 'made'::regclass AND attnum > 0 ORDER BY attnum", nil)
				rows.rows = append(rows.rows, columns.String())
			}
			if block {
				must(t, conn, "ROLLBACK")
			}
			must(t, conn, "DROP TABLE IF EXISTS made; DELETE FROM kept")
			return a.String() + rows.String()
		}
		for _, block := range []bool{false, true} {
			for _, prepared := range []bool{false, true} {
				want := image(direct, block, prepared)
				s.inPart(t, 1, func() {
					if got := image(proxy, block, prepared); got != want {
						t.Errorf("%s (block %t, prepared %t): %s", c.sql, block, prepared, firstDifference([]byte(got), []byte(want)))
					}
				})
			}
		}
	}
}

// TestPostgresWritesAmidBatch has it amid other statements of a batch, which is one transaction: a later error undoes all, nothing is
// done twice.
func TestPostgresWritesAmidBatch(t *testing.T) {
	s := privateStack(t, finishSchema+";\nCREATE TABLE kept (s int, total numeric, number serial);\nCREATE TABLE log (n int)")
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	const write, read = "INSERT INTO kept SELECT s, sum(n) FROM every GROUP BY s ORDER BY s", "SELECT s, exp(sum(n) / 10000) FROM every GROUP BY s ORDER BY s"
	for _, list := range [][]string{
		{write, "SELECT count(*), sum(total) FROM kept"},
		{write, read, "SELECT count(*), max(number) - min(number) FROM kept"},
		{write, read, write, "SELECT 1 / 0", read},
		{write, "SELECT count(*) FROM every", "SELECT nosuch FROM every", read},
		{read, write, read},
		{"INSERT INTO log VALUES (1)", write, read},
		{write, write},
		{"INSERT INTO kept SELECT s, ln(count(*) - count(*)) FROM every GROUP BY s", read},
		{"INSERT INTO kept SELECT v, count(*) FROM every GROUP BY v", read},
	} {
		image := func(conn *pgconn.PgConn) (out string) {
			var b pgconn.Batch
			for _, sql := range list {
				b.ExecParams(sql, nil, nil, nil, nil)
			}
			m := conn.ExecBatch(t.Context(), &b)
			for m.NextResult() {
				var a answer
				a.read(m.ResultReader())
				out += a.String()
			}
			var end answer
			end.note(m.Close())
			out += end.String() + ask(t, conn, "SELECT s, total FROM kept ORDER BY number", nil).String() + ask(t, conn, "SELECT count(*) FROM log", nil).String()
			must(t, conn, "TRUNCATE kept, log")
			return out
		}
		var numbers [3]string
		number := func() string {
			return ask(t, direct, "SELECT setval('kept_number_seq', last_value) - 1 FROM kept_number_seq", nil).rows[0]
		}
		must(t, direct, "SELECT setval('kept_number_seq', 1)")
		want := image(direct)
		numbers[0] = number()
		must(t, direct, "SELECT setval('kept_number_seq', 1)")
		got := image(proxy)
		if numbers[1] = number(); got != want || numbers[0] != numbers[1] {
			t.Errorf("%q: numbers to %s, want %s: %s", list, numbers[1], numbers[0], firstDifference([]byte(got), []byte(want)))
		}
	}
	s.inPart(t, 1, func() { ask(t, proxy, write, []int16{0}) })
}

// TestPostgresWritesAtCommit has an error of a constraint that is checked at the end of the transaction: it is the statement's, which is not
// run again.
func TestPostgresWritesAtCommit(t *testing.T) {
	s := privateStack(t, finishSchema+";\nCREATE TABLE kept (s int UNIQUE DEFERRABLE INITIALLY DEFERRED, number serial)")
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, sql := range []string{"INSERT INTO kept (s) SELECT ln(count(*))::int * 0 FROM every GROUP BY s", "INSERT INTO kept (s) SELECT ln(s + 1)::int * 0 FROM every WHERE id < 9"} {
		for _, p := range protocols {
			number := func() string { return ask(t, direct, "SELECT last_value FROM kept_number_seq", nil).rows[0] }
			must(t, direct, "SELECT setval('kept_number_seq', 100)")
			want := ask(t, direct, sql, p.format)
			wanted := number()
			must(t, direct, "SELECT setval('kept_number_seq', 100)")
			got := ask(t, proxy, sql, p.format)
			if taken := number(); want.err == "" || got.String() != want.String() || taken != wanted {
				t.Errorf("%s (%s): to %s, want %s: %s, want %s", sql, p.name, taken, wanted, got, want)
			}
		}
	}
}
