package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// runCursors compares the answers to what a client sends.
func runCursors(t *testing.T, s *stack, want int, sets []string, script ...string) {
	t.Helper()
	direct, proxy := hijacked(t, s.direct, "postgres", sets...), hijacked(t, s.proxy, "postgres", sets...)
	ask := func(c *portalClient) (answers []string) {
		for _, sql := range script {
			answers = append(answers, c.copies(func() { c.cursorStep(sql) }))
		}
		c.f.Send(&pgproto3.Terminate{})
		c.f.Flush()
		return answers
	}
	all := ask(direct) // of one before the other: they may write
	who := func(f func()) { s.accelerates(t, want, f) }
	if want == 0 {
		who = func(f func()) { s.forwardsAll(t, f) }
	}
	who(func() {
		t.Helper()
		for i, got := range ask(proxy) {
			if got != all[i] {
				t.Errorf("%s, of\n%s\n%s", script[i], strings.Join(script, "\n"), firstDifference([]byte(got), []byte(all[i])))
				return
			}
		}
	})
}

// cursorStep sends a Query; "extended: " a statement in the extended protocol, "portal: " Describe and Execute
// of a portal, "call: " a FunctionCall, "sync: " nothing but Sync.
func (c *portalClient) cursorStep(step string) {
	kind, rest, _ := strings.Cut(step, ": ")
	switch kind {
	case "extended":
		c.parse("", rest)
		c.bind("", "")
		c.f.Send(&pgproto3.Describe{ObjectType: 'P'})
		c.execute("", 0)
		c.sync()
	case "portal":
		c.f.Send(&pgproto3.Describe{ObjectType: 'P', Name: rest})
		c.execute(rest, 2)
		c.sync()
	case "call":
		c.f.Send(&pgproto3.FunctionCall{Function: 89}) // version()
	case "sync":
		c.sync()
	default:
		c.query(step)
	}
}

const ordered9 = "SELECT id, note, day, at, price, ok FROM sales WHERE id < 9 ORDER BY id"

// TestCursors: a cursor sends what the server's sends, byte for byte, and is the server's where anything but
// FETCH comes.
func TestCursors(t *testing.T) {
	s := privateStack(t, copySchema)
	declare := "DECLARE c CURSOR FOR " + ordered9
	block := func(steps ...string) []string {
		return append(append([]string{"BEGIN", declare}, steps...), "COMMIT", "SELECT 1")
	}
	for i, c := range []struct {
		want  int
		steps []string
	}{
		{1, block("FETCH 3 FROM c", "FETCH NEXT FROM c", "FETCH c", "FETCH FORWARD 2 IN c", "FETCH FORWARD ALL FROM c", "FETCH 1 FROM c", "FETCH ALL FROM c", "CLOSE c")},
		{1, block("FETCH 9 FROM c", "FETCH 1 FROM c", "FETCH BACKWARD 2 FROM c")},
		{1, block("FETCH 9 FROM c", "FETCH PRIOR FROM c")},
		{1, block("FETCH 10 FROM c", "FETCH PRIOR FROM c")},
		{1, block("FETCH ALL FROM c", "MOVE 1 IN c", "FETCH LAST FROM c")},
		{1, block("FETCH 3 FROM c", "MOVE 2 IN c", "FETCH 2 FROM c", "CLOSE c", "FETCH c")},
		{1, block("FETCH 3 FROM c", "FETCH 0 FROM c", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "FETCH -1 FROM c", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "FETCH RELATIVE 2 FROM c", "FETCH 2 FROM c")},
		{0, block("FETCH FIRST FROM c", "FETCH 2 FROM c")},
		{0, block("FETCH 0 FROM c", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "extended: FETCH 2 FROM c", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "portal: c", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "call: ", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "sync: ", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "FETCH 3 FROM unknown", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "CLOSE unknown", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", declare, "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "SAVEPOINT a", "FETCH 2 FROM c", "ROLLBACK TO a", "FETCH 2 FROM c")},
		{1, block("SAVEPOINT a", "DECLARE d CURSOR FOR "+ordered9, "FETCH 2 FROM d", "ROLLBACK TO a", "FETCH 2 FROM c", "FETCH 2 FROM d")},
		{1, block("FETCH 3 FROM c", "SELECT name, statement, is_holdable, is_binary FROM pg_cursors", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "SELECT cursor_to_xml('c', 2, false, false, '')", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "SET DateStyle = 'German'", "FETCH 2 FROM c", "RESET DateStyle")},
		{1, block("FETCH 3 FROM c", "SET TimeZone = 'Asia/Kolkata'", "FETCH 2 FROM c", "SET TimeZone = 'UTC'")},
		{0, block("SET TimeZone = 'Asia/Kolkata'", "FETCH 2 FROM c", "SET TimeZone = 'UTC'")},
		{1, block("FETCH 3 FROM c", "UPDATE sales SET note = 'x' WHERE CURRENT OF c", "FETCH 2 FROM c", "ROLLBACK")},
		{1, block("FETCH 3 FROM c", "DELETE FROM sales WHERE id < 7", "FETCH 2 FROM c", "ROLLBACK")},
		{0, block("DELETE FROM sales WHERE id < 7", "FETCH 2 FROM c", "ROLLBACK")},
		{0, []string{"BEGIN", "DELETE FROM sales WHERE id < 7", declare, "FETCH 2 FROM c", "FETCH 2 FROM c", "ROLLBACK"}},
		{1, []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", declare, "FETCH 2 FROM c", "FETCH 4 FROM c", "END"}},
		{0, []string{"BEGIN ISOLATION LEVEL SERIALIZABLE", declare, "FETCH 2 FROM c", "FETCH 4 FROM c", "END"}},
		{2, block("FETCH 3 FROM c", "DECLARE d CURSOR FOR "+ordered9, "FETCH 2 FROM d", "FETCH 1 FROM c", "FETCH 4 FROM d")},
		{2, block("FETCH 3 FROM c", "SELECT count(*) FROM sales", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "ROLLBACK", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "COMMIT AND CHAIN", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "CLOSE c;COMMIT", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "CLOSE ALL", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "FETCH 2 FROM c; FETCH 2 FROM c", "FETCH c")},
		{1, block("FETCH 3 FROM c", "SELECT 1/0", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM c", "syntax error", "FETCH 2 FROM c")},
		{1, block("FETCH 3 FROM C", `FETCH 3 FROM "c"`, `FETCH 3 FROM "C"`)},
		{1, []string{"BEGIN", `DECLARE "a ""b" INSENSITIVE NO SCROLL CURSOR WITHOUT HOLD FOR (` + ordered9 + ")  -- x", `/* y */ fetch 4 in "a ""b";`, "MOVE 1 IN \"a \"\"b\"", `fetch 4 in "a ""b"`, "ABORT"}},
		{1, []string{"BEGIN", "DECLARE h CURSOR WITH HOLD FOR " + ordered9, "FETCH 4 FROM h", "COMMIT", "FETCH 3 FROM h", "FETCH ALL FROM h", "CLOSE h"}},
		{1, []string{"BEGIN", "DECLARE h CURSOR WITH HOLD FOR " + ordered9, "FETCH ALL FROM h", "COMMIT", "FETCH BACKWARD 3 FROM h", "CLOSE ALL"}},
		{1, []string{"BEGIN", "DECLARE h CURSOR WITH HOLD FOR " + ordered9, "FETCH 4 FROM h", "ROLLBACK", "FETCH 3 FROM h"}},
		{1, []string{"BEGIN", "DECLARE h CURSOR WITH HOLD FOR " + ordered9, "FETCH 4 FROM h", "CLOSE h;COMMIT", "FETCH 3 FROM h"}},
		{0, []string{"BEGIN", "DECLARE h CURSOR WITH HOLD FOR " + ordered9, "COMMIT", "FETCH 3 FROM h", "CLOSE h"}},
		{0, []string{declare, "DECLARE h CURSOR WITH HOLD FOR " + ordered9, "FETCH 3 FROM h", "CLOSE h"}},
		{0, []string{"BEGIN", "DECLARE s SCROLL CURSOR FOR " + ordered9, "FETCH 2 FROM s", "COMMIT"}},
		{0, []string{"BEGIN", "DECLARE s BINARY CURSOR FOR " + ordered9, "FETCH 2 FROM s", "COMMIT"}},
		{1, []string{"BEGIN", "extended: " + declare, "FETCH 2 FROM c", "FETCH 2 FROM c", "MOVE 1 IN c", "FETCH ALL FROM c", "COMMIT"}},
		{0, []string{"extended: " + declare, "FETCH 2 FROM c"}},
		{1, []string{"BEGIN", "extended: " + declare, "extended: DECLARE d CURSOR FOR SELECT nosuch", "FETCH 2 FROM c", "ROLLBACK", "BEGIN", "extended: " + declare, "FETCH 3 FROM c", "COMMIT"}},
		{0, []string{"BEGIN", "DECLARE c CURSOR FOR SELECT nosuch FROM sales ORDER BY id", "FETCH 2 FROM c", "COMMIT"}},
		{0, []string{"BEGIN", "DECLARE c CURSOR FOR SELECT day, sum(rate) FROM sales GROUP BY day ORDER BY 2, 1", "FETCH 2 FROM c", "COMMIT"}},
		{1, []string{"BEGIN", "DECLARE c CURSOR FOR SELECT day, sum(price), current_date FROM sales GROUP BY day ORDER BY 2 DESC, 1", "FETCH 2 FROM c", "MOVE 3 IN c", "FETCH ALL FROM c", "COMMIT"}},
		// What psqlODBC sends.
		{1, []string{`BEGIN;declare "SQL_CUR1" cursor with hold for ` + ordered9 + `;fetch 4 in "SQL_CUR1"`, `fetch 4 in "SQL_CUR1"`, `fetch 4 in "SQL_CUR1"`, `close "SQL_CUR1"`, "COMMIT"}},
		{1, []string{"BEGIN", `SAVEPOINT x;declare "SQL_CUR1" cursor with hold for ` + ordered9 + `;fetch 4 in "SQL_CUR1"`, `fetch 4 in "SQL_CUR1"`, `SAVEPOINT y;fetch 4 in "SQL_CUR1"`, "COMMIT", `close "SQL_CUR1"`}},
		{1, []string{"BEGIN", `declare "SQL_CUR1" cursor for ` + ordered9 + `;fetch 4 in "SQL_CUR1"`, `fetch 4 in "SQL_CUR1"`, "ROLLBACK"}},
		{0, []string{`BEGIN;declare "SQL_CUR1" cursor for SELECT é FROM sales ORDER BY id;fetch 4 in "SQL_CUR1"`, `fetch 4 in "SQL_CUR1"`, "ROLLBACK"}},
		{0, []string{`BEGIN;declare "SQL_CUR1" cursor for ` + ordered9 + `;fetch 4 in "SQL_CUR2"`, "ROLLBACK"}},
		{0, []string{`declare "SQL_CUR1" cursor for ` + ordered9 + `;fetch 4 in "SQL_CUR1"`, `fetch 4 in "SQL_CUR1"`}},
		{1, []string{"BEGIN", "declare a cursor for " + ordered9, "FETCH 2 FROM a", "declare b cursor for " + ordered9 + ";fetch 2 in b", "ROLLBACK"}[:3]},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { runCursors(t, s, c.want, nil, c.steps...) })
	}
}

// TestCursorsAmidCommits: what others commit between DECLARE and FETCH is in no answer, and what they commit
// behind the first FETCH neither.
func TestCursorsAmidCommits(t *testing.T) {
	s := privateStack(t, copySchema)
	admin := connect(t, s.direct.url("postgres"))
	count := func(c *portalClient, sql string) string { return c.copies(func() { c.query(sql) }) }
	for _, isolation := range []string{"READ COMMITTED", "REPEATABLE READ"} {
		c := hijacked(t, s.proxy, "postgres")
		count(c, "BEGIN ISOLATION LEVEL "+isolation)
		count(c, "DECLARE c CURSOR FOR SELECT id FROM empty ORDER BY id")
		must(t, admin, "INSERT INTO empty VALUES (1), (2)")
		f := func() {
			if got := count(c, "FETCH 5 FROM c"); strings.Contains(got, "DataRow") {
				t.Errorf("%s: %s", isolation, got)
			}
		}
		if isolation == "READ COMMITTED" {
			s.forwardsAll(t, f)
		} else {
			s.accelerates(t, 1, f)
		}
		count(c, "COMMIT")
		must(t, admin, "DELETE FROM empty")
		count(c, "BEGIN ISOLATION LEVEL "+isolation)
		count(c, "DECLARE c CURSOR FOR SELECT id FROM sales WHERE id < 5 ORDER BY id")
		s.accelerates(t, 1, func() { count(c, "FETCH 2 FROM c") })
		must(t, admin, "DELETE FROM sales WHERE id IN (1, 2, 3)")
		if got := count(c, "FETCH 1 FROM c"); !strings.Contains(got, "[50]") {
			t.Errorf("%s: %s", isolation, got)
		}
		count(c, "SELECT 1")
		if got := count(c, "FETCH ALL FROM c"); !strings.Contains(got, "[51]") || strings.Count(got, "DataRow") != 2 {
			t.Errorf("%s: %s", isolation, got)
		}
		count(c, "COMMIT")
		must(t, admin, "INSERT INTO sales (id) VALUES (1), (2), (3)")
	}
}

// TestCursorCancelled: a cursor is cancelled amid its rows, and the block fails.
func TestCursorCancelled(t *testing.T) {
	s := privateStack(t, "CREATE TABLE wide (id int PRIMARY KEY, v text);\nINSERT INTO wide SELECT i, repeat('x', 200) FROM generate_series(1, 200000) i;\nANALYZE wide;\n")
	conn := connect(t, s.proxy.url("postgres"))
	must(t, conn, "SET pgaccel.mode = 'force'")
	for range 3 {
		must(t, conn, "BEGIN; DECLARE c CURSOR FOR SELECT id, v FROM wide ORDER BY id")
		s.accelerates(t, 1, func() { must(t, conn, "FETCH 100 FROM c") })
		r := conn.Exec(t.Context(), "FETCH ALL FROM c")
		for n := 0; r.NextResult(); {
			for r.ResultReader().NextRow() {
				if n++; n == 1 {
					if err := conn.CancelRequest(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if e, ok := r.Close().(*pgconn.PgError); !ok || e.Code != "57014" {
			t.Errorf("%v", e)
		}
		if a := ask(t, conn, "FETCH 1 FROM c", nil); !strings.Contains(a.err, "25P02") {
			t.Error(a.err)
		}
		must(t, conn, "ROLLBACK")
	}
}

// TestCursorsPsql: psql's FETCH_COUNT.
func TestCursorsPsql(t *testing.T) {
	s := privateStack(t, copySchema)
	psql := need(t, "psql", "apt-get install postgresql-client")
	s.accelerates(t, 2, func() {
		s.both(t, func(tg target) []byte {
			return run(t, nil, nil, psql, "-X", "-v", "FETCH_COUNT=100", tg.url("postgres"), "-c", "SELECT id, note FROM sales ORDER BY id",
				"-c", "SELECT day, sum(price) FROM sales GROUP BY day ORDER BY day", "-c", "SELECT note FROM sales WHERE id < 30 ORDER BY day, id")
		})
	})
}

// TestCursorsUnderShadow: what a cursor sends is not compared, and answered as ever.
func TestCursorsUnderShadow(t *testing.T) {
	s := privateStack(t, copySchema, "--shadow", "100%")
	runCursors(t, s, 2, nil, "BEGIN", "DECLARE c CURSOR FOR "+ordered9, "FETCH 2 FROM c", "FETCH 2 FROM c", "MOVE 1 IN c", "FETCH ALL FROM c", "COMMIT",
		"BEGIN;declare h cursor with hold for "+ordered9+";fetch 4 in h", "fetch 2 in h", "COMMIT", "FETCH 2 IN h", "CLOSE h", "SELECT count(*) FROM sales")
}

// TestCursorRights: the gate behind a DECLARE or before it says no, or is gone.
func TestCursorRights(t *testing.T) {
	s := privateStack(t, copySchema)
	admin := connect(t, s.direct.url("postgres"))
	const declare = "DECLARE c CURSOR FOR SELECT id, note FROM public.sales WHERE id < 9 ORDER BY id"
	each := func() {
		for _, script := range [][]string{{"BEGIN", "DEALLOCATE ALL", declare, "FETCH 2 FROM c", "FETCH 3 FROM c", "CLOSE c;COMMIT"},
			{"BEGIN;" + declare + ";FETCH 3 IN c", "FETCH 2 IN c", "SELECT 1", "FETCH 2 IN c", "COMMIT"}, {"BEGIN", declare, "DEALLOCATE ALL", "FETCH 2 FROM c", "COMMIT"}} {
			direct, proxy := hijacked(t, s.direct, "clerk"), hijacked(t, s.proxy, "clerk")
			for _, sql := range script {
				want := direct.copies(func() { direct.query(sql) })
				if got := proxy.copies(func() { proxy.query(sql) }); got != want {
					t.Errorf("%s of %q: %s", sql, script, firstDifference([]byte(got), []byte(want)))
				}
			}
		}
	}
	s.accelerates(t, 2, each)
	must(t, admin, "REVOKE EXECUTE ON FUNCTION pg_catalog.pg_current_snapshot() FROM PUBLIC")
	s.forwardsAll(t, each)
	must(t, admin, "GRANT EXECUTE ON FUNCTION pg_catalog.pg_current_snapshot() TO PUBLIC; REVOKE SELECT ON sales FROM clerk")
	s.forwardsAll(t, each)
}

var ofTable = regexp.MustCompile(`TableOID:\d+ TableAttributeNumber:\d+ `)

// TestUnorderedCursors: of rows in no order any order is right; each comes once, whatever else is sent amid them, and what
// else a cursor answers is the server's.
func TestUnorderedCursors(t *testing.T) {
	s := privateStack(t, copySchema)
	const groups = "SELECT day, note AS \"the note\", ok, count(*), sum(price), avg(rate::numeric) FROM sales GROUP BY day, note, ok"
	declare := "DECLARE c CURSOR FOR " + groups
	block := func(steps ...string) []string {
		return append(append([]string{"BEGIN", declare}, steps...), "COMMIT", "SELECT 1")
	}
	for i, c := range []struct {
		want  int
		name  string // application_name
		steps []string
	}{
		{1, "", block("FETCH 3 FROM c", "FETCH NEXT FROM c", "FETCH ALL FROM c", "FETCH 1 FROM c", "CLOSE c")},
		{1, "", block("FETCH 3 FROM c", "SAVEPOINT a", "FETCH 2 FROM c", "FETCH ALL FROM c", "FETCH 1 FROM c")},
		{1, "", block("FETCH 3 FROM c", "MOVE 2 IN c", "FETCH ALL FROM c")},
		{1, "", block("FETCH 3 FROM c", "extended: FETCH 2 FROM c", "portal: c", "FETCH ALL FROM c")},
		{1, "", block("FETCH 3 FROM c", "FETCH PRIOR FROM c")},
		{1, "", block("FETCH 3 FROM c", "FETCH FIRST FROM c")},
		{1, "", block("FETCH ALL FROM c", "FETCH PRIOR FROM c")},
		{1, "", block("FETCH ALL FROM c", "MOVE BACKWARD ALL IN c")},
		{1, "", block("FETCH ALL FROM c", "SELECT 2", "FETCH 1 FROM c")},
		{1, "", block("FETCH 3 FROM c", "FETCH ABSOLUTE 5 FROM c", "FETCH ALL FROM c")},
		{1, "", block("FETCH 3 FROM c", "UPDATE sales SET note = 'x' WHERE CURRENT OF c", "ROLLBACK")},
		{1, "", block("FETCH 3 FROM c", "DELETE FROM sales", "FETCH ALL FROM c", "ROLLBACK")},
		{1, "", block("FETCH 3 FROM c", "SET DateStyle = 'German'", "FETCH ALL FROM c", "RESET DateStyle")},
		{1, "", block("FETCH 3 FROM c", "SELECT name, is_holdable, is_binary, is_scrollable FROM pg_cursors", "FETCH ALL FROM c")},
		{2, "", block("FETCH 3 FROM c", "DECLARE d CURSOR FOR "+groups, "FETCH 4 FROM d", "FETCH ALL FROM c", "FETCH ALL FROM d")},
		{1, "", []string{"BEGIN", "DECLARE c CURSOR WITH HOLD FOR " + groups, "FETCH 4 FROM c", "COMMIT", "FETCH ALL FROM c", "CLOSE c"}},
		{1, "", []string{"BEGIN", "extended: " + declare, "FETCH 4 FROM c", "extended: SELECT 3", "FETCH ALL FROM c", "COMMIT"}},
		{0, "", []string{"BEGIN", "DECLARE c SCROLL CURSOR FOR " + groups, "FETCH 4 FROM c", "COMMIT"}},
		{0, "", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT id FROM sales", "FETCH 4 FROM c", "FETCH ALL FROM c", "COMMIT"}},
		{1, "postgres_fdw", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT id, day, price FROM sales", "FETCH 4 FROM c", "SELECT 1", "FETCH ALL FROM c", "COMMIT"}},
		{1, "postgres_fdw", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT id, day, price FROM sales", "FETCH 4 FROM c", "MOVE BACKWARD ALL IN c", "FETCH ALL FROM c", "COMMIT"}},
		{0, "", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT day, id, price FROM sales ORDER BY day", "FETCH 4 FROM c", "FETCH ALL FROM c", "COMMIT"}},
		{1, "postgres_fdw", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT day, id, price FROM sales ORDER BY day", "FETCH 4 FROM c", "SELECT 1", "FETCH ALL FROM c", "COMMIT"}},
		{1, "postgres_fdw", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT day, sum(rate) FROM sales GROUP BY day ORDER BY day", "FETCH 4 FROM c", "MOVE BACKWARD ALL IN c", "FETCH 4 FROM c", "COMMIT"}},
		{0, "postgres_fdw", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT day FROM sales ORDER BY day OFFSET 1", "FETCH 4 FROM c", "FETCH ALL FROM c", "COMMIT"}},
		{1, "postgres_fdw", []string{"BEGIN", "DECLARE c NO SCROLL CURSOR FOR SELECT id, day, price FROM sales", "FETCH 4 FROM c", "FETCH PRIOR FROM c", "ROLLBACK"}},
		{1, "postgres_fdw", []string{"BEGIN", "DECLARE c CURSOR FOR SELECT id, day, price FROM sales", "FETCH ALL FROM c", "MOVE BACKWARD ALL IN c", "FETCH ALL FROM c", "COMMIT"}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			run := func(tg target) (answers, rows []string) {
				client := hijacked(t, tg, "postgres")
				client.copies(func() { client.query("SET application_name = '" + c.name + "'") })
				for _, sql := range c.steps {
					said, n := "", 0
					for line := range strings.Lines(client.copies(func() { client.cursorStep(sql) })) {
						if strings.Contains(line, "DataRow") {
							rows = append(rows, line)
							n++
						} else { // a cursor over parameters is of no table
							said += ofTable.ReplaceAllString(line, "")
						}
					}
					answers = append(answers, fmt.Sprintf("%s: %d rows\n%s", sql, n, said))
				}
				slices.Sort(rows)
				return answers, rows
			}
			answers, rows := run(s.direct)
			who := func(f func()) { s.accelerates(t, c.want, f) }
			if c.want == 0 {
				who = func(f func()) { s.forwardsAll(t, f) }
			}
			who(func() {
				got, gotRows := run(s.proxy)
				for i := range got {
					if got[i] != answers[i] {
						t.Errorf("%s\nwant %s", got[i], answers[i])
					}
				}
				// Where a part is asked for, which rows these are is open.
				if slices.ContainsFunc(c.steps, func(s string) bool { return strings.Contains(s, "FETCH ALL") }) && !slices.ContainsFunc(c.steps, func(s string) bool {
					return strings.HasPrefix(s, "MOVE 2") || strings.Contains(s, "ABSOLUTE") || strings.Contains(s, "BACKWARD") || strings.Contains(s, "German")
				}) && !slices.Equal(gotRows, rows) {
					t.Errorf("rows%s", firstDifference([]byte(strings.Join(gotRows, "")), []byte(strings.Join(rows, ""))))
				}
			})
		})
	}
}

// TestCursorsLeftToServer: rows that could not become parameters, should anything but a FETCH come, are the server's
// from the start: those that memory does not hold, and those of an enum that the role may not name.
func TestCursorsLeftToServer(t *testing.T) {
	s := privateStack(t, `
CREATE TABLE wide AS SELECT i AS id, repeat(md5(i::text), 30) AS v FROM generate_series(1, 20000) i;
ALTER TABLE wide ADD PRIMARY KEY (id);
CREATE SCHEMA private;
CREATE TYPE private.color AS ENUM ('red', 'blue');
CREATE TABLE colored AS SELECT i AS id, (ARRAY['red', 'blue']::private.color[])[i % 2 + 1] AS c FROM generate_series(1, 5000) i;
ALTER TABLE colored ADD PRIMARY KEY (id);
CREATE ROLE clerk LOGIN;
GRANT SELECT ON wide, colored TO clerk;
ANALYZE`, "--query-memory", "8MiB", "--temp-dir", t.TempDir())
	for sql, fetch := range map[string]string{
		"SELECT v, id, count(*) FROM wide GROUP BY v, id":    "FETCH 15000 FROM c",
		"SELECT c, id, count(*) FROM colored GROUP BY c, id": "FETCH 3 FROM c",
	} {
		run := func(tg target) (answers, rows []string) {
			client := hijacked(t, tg, "clerk")
			for _, step := range []string{"BEGIN", "DECLARE c CURSOR FOR " + sql, fetch, "SELECT 1", "FETCH 3 FROM c", "FETCH ALL FROM c", "COMMIT"} {
				for line := range strings.Lines(client.copies(func() { client.query(step) })) {
					if strings.Contains(line, "DataRow") {
						rows = append(rows, line)
					} else {
						answers = append(answers, line)
					}
				}
			}
			slices.Sort(rows)
			return answers, rows
		}
		wantAnswers, wantRows := run(s.direct)
		s.forwardsAll(t, func() {
			answers, rows := run(s.proxy)
			if !slices.Equal(answers, wantAnswers) {
				t.Errorf("%s: %v\nwant %v", sql, answers, wantAnswers)
			}
			if d := firstDifference([]byte(strings.Join(rows, "")), []byte(strings.Join(wantRows, ""))); d != "" {
				t.Error(sql, d)
			}
		})
	}
}

// TestCursorIsNotIdle: a client that fetches rows that are here is not idle in its transaction.
func TestCursorIsNotIdle(t *testing.T) {
	s := privateStack(t, copySchema)
	conn := connect(t, s.proxy.url("postgres"))
	s.accelerates(t, 1, func() {
		for _, sql := range []string{"SET idle_in_transaction_session_timeout = '2s'", "BEGIN", "DECLARE c CURSOR FOR SELECT id FROM sales ORDER BY id"} {
			must(t, conn, sql)
		}
		for range 8 {
			if a := ask(t, conn, "FETCH 3 FROM c", nil); a.err != "" || len(a.rows) != 3 {
				t.Fatal(a)
			}
			time.Sleep(400 * time.Millisecond)
		}
		must(t, conn, "COMMIT")
	})
}
