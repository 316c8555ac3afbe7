package integration

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const copySchema = `
CREATE TABLE sales (id int PRIMARY KEY, day date, at timestamptz, price numeric(12,2), rate float8, ok bool, note text, "Odd ""name" int);
INSERT INTO sales SELECT i, date '2024-01-01' + i % 9, timestamptz '2024-01-01 00:00Z' + i * interval '1 hour', i * 0.25, i / 3.0::float8, i % 2 = 0,
	(ARRAY['plain', '', NULL, E'tab\there', E'line\nbreak', E'cr\rhere', E'bell\x07\b\f\v', 'back\slash', 'quote"d', 'com,ma', '\.', '\N', 'é|ö', '''', ' x ', 'null'])[i % 16 + 1], i % 5 FROM generate_series(0, 4999) i;
CREATE TABLE empty (id int PRIMARY KEY, v text);
CREATE TABLE computed (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO computed SELECT generate_series(1, 5000);
CREATE TABLE parts (id int, v int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (9000);
INSERT INTO parts SELECT i, i FROM generate_series(1, 5000) i;
CREATE VIEW sold AS SELECT id, price FROM sales;
CREATE ROLE clerk LOGIN;
GRANT SELECT (id, note) ON sales TO clerk;
ANALYZE;
`

// copies speaks the protocol message by message and keeps all of it.
func (c *portalClient) copies(send func()) string {
	c.t.Helper()
	send()
	if err := c.f.Flush(); err != nil {
		c.t.Fatal(err)
	}
	var text strings.Builder
	for {
		m, err := c.f.Receive()
		if err != nil {
			c.t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			fmt.Fprintf(&text, "error %s %s %s %s %d\n", m.Code, m.Message, m.Detail, m.Hint, m.Position)
		case *pgproto3.ReadyForQuery:
			fmt.Fprintf(&text, "ready %c\n", m.TxStatus)
			return text.String()
		case *pgproto3.ParameterStatus, *pgproto3.NoticeResponse:
		case *pgproto3.CopyData:
			fmt.Fprintf(&text, "data %q\n", m.Data)
		default:
			fmt.Fprintf(&text, "%T %+v\n", m, m)
		}
	}
}

func hijacked(t *testing.T, tg target, user string, sets ...string) *portalClient {
	t.Helper()
	conn := connect(t, tg.url(user))
	for _, set := range append([]string{"SET TimeZone = 'UTC'", "SET pgaccel.mode = 'force'"}, sets...) {
		must(t, conn, set)
	}
	if err := conn.SyncConn(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Conn.Close() })
	return newPortalClient(t, h)
}

var copyOptions = []string{"", "WITH (FORMAT text)", "CSV", "CSV HEADER", "(FORMAT csv, HEADER true, DELIMITER '|', NULL 'null', QUOTE '''', ESCAPE '\\')", "BINARY", "(FORMAT binary)",
	"WITH NULL AS 'plain' DELIMITER AS ';'", "(FORMAT csv, FORCE_QUOTE (note, id))", "(FORMAT csv, FORCE_QUOTE *, HEADER)", "CSV FORCE QUOTE note", "(HEADER)", "(DELIMITER E'\\x01', NULL '', ENCODING 'utf-8')",
	"(DELIMITER E'\\x0b')", "(FORMAT csv, DELIMITER E'\\t', HEADER off)", "(FORMAT csv, HEADER 1)", "(FORMAT csv, QUOTE '~', NULL '\\.')", "(ENCODING UTF8, HEADER 'on')"}

// TestCopyOut: COPY ... TO STDOUT sends what the server sends, byte for byte, in all formats and protocols.
func TestCopyOut(t *testing.T) {
	s := privateStack(t, copySchema)
	direct, proxy := hijacked(t, s.direct, "postgres"), hijacked(t, s.proxy, "postgres")
	compare := func(name string, f func(c *portalClient)) {
		t.Helper()
		want := direct.copies(func() { f(direct) })
		if got := proxy.copies(func() { f(proxy) }); got != want {
			t.Errorf("%s: %s", name, firstDifference([]byte(got), []byte(want)))
		}
	}
	simple := func(sql string) func(*portalClient) { return func(c *portalClient) { c.query(sql) } }
	extended := func(sql string) func(*portalClient) {
		return func(c *portalClient) {
			c.parse("", sql)
			c.f.Send(&pgproto3.Describe{ObjectType: 'S'})
			c.f.Send(&pgproto3.Bind{ResultFormatCodes: []int16{1}})
			c.f.Send(&pgproto3.Describe{ObjectType: 'P'})
			c.execute("", 3)
			c.sync()
		}
	}
	for _, source := range []string{"(SELECT id, note, day, at, price, rate, ok FROM sales WHERE id < 100 ORDER BY id)", "(SELECT note FROM sales WHERE id < 40 ORDER BY id)",
		`(SELECT id, note, "Odd ""name", note FROM sales WHERE id < 40 ORDER BY id -- )` + "\n)", "(((SELECT note, count(*) AS id FROM sales GROUP BY note ORDER BY 2, note)))",
		"(SELECT id, note FROM sales WHERE id < 0)", "sales", "public.sales (note, id)", `sales ("Odd ""name", note, id)`, "sales (note)", "empty"} {
		for _, options := range copyOptions {
			sql := "/* x */ COPY " + source + " TO STDOUT " + options
			if strings.Contains(options, "note") && (source == "empty" || !strings.Contains(source, "note, ") && strings.Contains(options, "id")) && source != "sales" {
				compare(sql, simple(sql))
				continue
			}
			s.accelerates(t, 2, func() {
				compare(sql, simple(sql))
				compare(sql+" extended", extended(sql))
			})
		}
	}
	const count = "COPY (SELECT count(*) FROM sales) TO STDOUT"
	for _, f := range []func(){
		func() {
			compare("in a block", simple("BEGIN"))
			compare(count, simple(count))
			compare(count, extended(count))
		},
		func() {
			compare("savepoint", simple("SAVEPOINT a"))
			compare(count, extended(count))
			compare("end", simple("COMMIT"))
		},
		func() {
			compare("with others in the batch", func(c *portalClient) {
				c.parse("a", "SELECT sum(id) FROM sales")
				c.bind("", "a")
				c.execute("", 0)
				c.parse("b", count)
				c.bind("p", "b")
				c.execute("p", 0)
				c.bind("", "a")
				c.execute("", 0)
				c.sync()
			})
		},
		func() {
			compare("begin", simple("BEGIN ISOLATION LEVEL REPEATABLE READ"))
			compare(count, simple(count))
			compare("end", simple("COMMIT"))
		},
		func() {
			compare("twice", func(c *portalClient) {
				c.parse("", count)
				c.bind("", "")
				c.execute("", 0)
				c.execute("", 0)
				c.sync()
			})
		},
		func() {
			compare("twice, in a block", simple("BEGIN"))
			compare("named", func(c *portalClient) { c.parse("", count); c.bind("p", ""); c.execute("p", 0); c.sync() })
			compare("again", func(c *portalClient) { c.execute("p", 0); c.sync() })
			compare("in a failed block", func(c *portalClient) { c.execute("p", 0); c.sync() })
			compare("end", simple("ROLLBACK"))
			compare("without it", func(c *portalClient) { c.execute("p", 0); c.sync() })
		},
	} {
		s.accelerates(t, 1, f)
	}
	s.forwardsAll(t, func() {
		for _, sql := range []string{"COPY computed (twice) TO STDOUT", "COPY parts TO STDOUT", "COPY sold TO STDOUT", "COPY sales (nothing) TO STDOUT", "COPY sales (id, id) TO STDOUT",
			"COPY sales (ctid) TO STDOUT", "COPY (SELECT nothing FROM sales) TO STDOUT", "COPY (SELECT id FROM sales WHERE id = $1) TO STDOUT", "COPY sales TO STDOUT (FORMAT csv, FORCE_QUOTE (nothing))",
			"COPY sales TO STDOUT (DELIMITER 'a')", "COPY sales TO STDOUT (DELIMITER E'\\n')", "COPY sales TO STDOUT (NULL E'a\\tb')", "COPY sales TO STDOUT (FORMAT csv, QUOTE ',')", "COPY sales TO STDOUT (FORMAT csv, QUOTE 'x', NULL 'ax')",
			"COPY sales TO STDOUT (FORMAT binary, HEADER)", "COPY sales TO STDOUT (HEADER match)", "COPY sales TO STDOUT (QUOTE 'x')", "COPY sales TO STDOUT (FORMAT 'CSV')", "COPY sales TO STDOUT (HEADER, HEADER)",
			"COPY sales TO STDOUT (FORCE_NULL (id))", "COPY sales TO STDOUT (FORMAT csv, FORCE_QUOTE (id, id))", "COPY (SELECT id INTO x FROM sales) TO STDOUT", "COPY (SELECT * FROM pgaccel.tables) TO STDOUT",
			"COPY (SELECT count(*) FROM sales) TO STDOUT; SELECT 1", "COPY sold TO STDOUT (HEADER 2)", "COPY sales TO STDOUT (ENCODING 'LATIN1', FORMAT binary)", "COPY (SELECT id FROM sales WHERE id < 0 FOR UPDATE) TO STDOUT"} {
			compare(sql, simple(sql))
			compare(sql+" in a block", simple("BEGIN"))
			compare(sql+" in a block", simple(sql))
			compare(sql+" in a block", simple("ROLLBACK"))
			if strings.Contains(sql, ";") {
				continue
			}
			compare(sql+" extended", func(c *portalClient) { c.parse("", sql); c.bind("", ""); c.execute("", 0); c.sync() })
		}
	})
	s.accelerates(t, 0, func() {
		compare("computed", simple("COPY (SELECT id FROM computed ORDER BY id) TO STDOUT"))
		compare("computed", simple("COPY computed TO STDOUT"))
	})
}

// TestCopyRights: COPY needs the rights that it needs of the server, also under row-level security.
func TestCopyRights(t *testing.T) {
	s := privateStack(t, copySchema)
	direct, proxy := hijacked(t, s.direct, "clerk"), hijacked(t, s.proxy, "clerk")
	admin := connect(t, s.direct.url("postgres"))
	compare := func(sql string) {
		t.Helper()
		want := direct.copies(func() { direct.query(sql) })
		if got := proxy.copies(func() { proxy.query(sql) }); got != want {
			t.Errorf("%s: %s", sql, firstDifference([]byte(got), []byte(want)))
		}
	}
	s.accelerates(t, 2, func() {
		compare("COPY sales (id, note) TO STDOUT CSV")
		compare("COPY (SELECT max(id) FROM sales) TO STDOUT")
	})
	s.forwardsAll(t, func() {
		compare("COPY sales TO STDOUT")
		compare("COPY sales (id, price) TO STDOUT")
		compare("COPY (SELECT sum(price) FROM sales) TO STDOUT")
		must(t, admin, "ALTER TABLE sales ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON sales USING (id < 7)")
		compare("COPY sales (id, note) TO STDOUT CSV")
		compare("COPY (SELECT max(id) FROM sales) TO STDOUT")
	})
}

// TestCopyUndescribed: the server refuses the SELECT of a COPY's rows, or the gate is gone: the COPY has its own
// error, and the block goes on as the server's does.
func TestCopyUndescribed(t *testing.T) {
	s := privateStack(t, copySchema)
	direct, proxy := hijacked(t, s.direct, "clerk"), hijacked(t, s.proxy, "clerk")
	admin := connect(t, s.direct.url("postgres"))
	compare := func(sql string, extended bool) {
		t.Helper()
		f := func(c *portalClient) func() {
			return func() {
				if !extended {
					c.query(sql)
					return
				}
				c.parse("", sql)
				c.bind("", "")
				c.execute("", 0)
				c.sync()
			}
		}
		want := direct.copies(f(direct))
		if got := proxy.copies(f(proxy)); got != want {
			t.Errorf("%s (extended: %v): %s", sql, extended, firstDifference([]byte(got), []byte(want)))
		}
	}
	const table, query = "COPY public.sales (id, note) TO STDOUT CSV", "COPY (SELECT max(id), count(note) FROM public.sales) TO STDOUT"
	each := func(between string) func() {
		return func() {
			for _, sql := range []string{table, query} {
				for _, extended := range []bool{false, true} {
					compare(between, false)
					compare(sql, extended)
					compare("BEGIN", false)
					compare(between, false)
					compare("SAVEPOINT a", false)
					compare(sql, extended)
					compare("ROLLBACK TO a", false)
					compare("SELECT 1", extended)
					compare("COMMIT", false)
				}
			}
		}
	}
	s.accelerates(t, 8, each("DEALLOCATE ALL"))
	must(t, admin, "REVOKE USAGE ON SCHEMA public FROM PUBLIC")
	s.forwardsAll(t, each("SELECT 1"))
	must(t, admin, "GRANT USAGE ON SCHEMA public TO PUBLIC")
	s.accelerates(t, 8, each("DEALLOCATE ALL"))
	must(t, admin, "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_current_snapshot() FROM PUBLIC")
	s.forwardsAll(t, each("SELECT 1"))
}

// TestCopyUnderShadow: what COPY sends is not compared, and answered as ever.
func TestCopyUnderShadow(t *testing.T) {
	s := privateStack(t, copySchema, "--shadow", "100%")
	direct, proxy := hijacked(t, s.direct, "postgres"), hijacked(t, s.proxy, "postgres")
	s.accelerates(t, 2, func() {
		for _, sql := range []string{"COPY (SELECT day, sum(price) FROM sales GROUP BY day ORDER BY day) TO STDOUT", "BEGIN", "COPY (SELECT count(*) FROM sales) TO STDOUT CSV HEADER", "COMMIT"} {
			want := direct.copies(func() { direct.query(sql) })
			if got := proxy.copies(func() { proxy.query(sql) }); got != want {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got), []byte(want)))
			}
		}
	})
}

// TestCopySettings: values are written by the settings of the session; what cannot be is forwarded.
func TestCopySettings(t *testing.T) {
	s := privateStack(t, copySchema)
	const sql = "COPY (SELECT id, day, at, rate, note FROM sales WHERE id < 50 ORDER BY id) TO STDOUT CSV HEADER"
	for set, want := range map[string]int{"SET DateStyle = 'German'": 1, "SET TimeZone = 'Europe/Berlin'": 0, "SET extra_float_digits = 0": 0, "SET client_encoding = 'LATIN1'": 0, "SET bytea_output = 'escape'": 1} {
		direct, proxy := hijacked(t, s.direct, "postgres", set), hijacked(t, s.proxy, "postgres", set)
		s.accelerates(t, want, func() {
			want := direct.copies(func() { direct.query(sql) })
			if got := proxy.copies(func() { proxy.query(sql) }); got != want {
				t.Errorf("%s: %s", set, firstDifference([]byte(got), []byte(want)))
			}
		})
	}
}

// TestCopyCancelled: a COPY is cancelled amid its rows, with a client that does not read meanwhile, and
// the session goes on.
func TestCopyCancelled(t *testing.T) {
	s := privateStack(t, "CREATE TABLE wide (id int PRIMARY KEY, v text);\nINSERT INTO wide SELECT i, repeat('x', 200) FROM generate_series(1, 200000) i;\nANALYZE wide;\n")
	conn := connect(t, s.proxy.url("postgres"))
	must(t, conn, "SET pgaccel.mode = 'force'")
	s.accelerates(t, 1, func() {
		r, w := io.Pipe()
		go func() {
			time.Sleep(time.Second) // nobody reads
			if err := conn.CancelRequest(t.Context()); err != nil {
				t.Error(err)
			}
			io.Copy(io.Discard, r)
		}()
		_, err := conn.CopyTo(t.Context(), w, "COPY wide TO STDOUT")
		if e, ok := err.(*pgconn.PgError); !ok || e.Code != "57014" {
			t.Errorf("%v", err)
		}
	})
	s.accelerates(t, 1, func() { must(t, conn, "SELECT count(*) FROM wide") })
}

// TestCopyPsql: psql's \copy and COPY.
func TestCopyPsql(t *testing.T) {
	s := privateStack(t, copySchema)
	psql := need(t, "psql", "apt-get install postgresql-client")
	file := t.TempDir() + "/out"
	s.accelerates(t, 2, func() {
		s.both(t, func(tg target) []byte {
			out := run(t, nil, nil, psql, "-X", tg.url("postgres"), "-c", "COPY (SELECT id, note FROM sales ORDER BY id) TO STDOUT", "-c", `\copy (SELECT day, sum(price) FROM sales GROUP BY day ORDER BY day) TO '`+file+`' CSV HEADER`)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return append(out, data...)
		})
	})
}
