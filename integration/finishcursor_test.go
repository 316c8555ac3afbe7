package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// cursorSteps runs steps on one connection. Columns that are a table's are none's in a cursor over parameters.
func cursorSteps(t *testing.T, tg target, steps []string) (answers []string) {
	client := hijacked(t, tg, "postgres")
	for _, sql := range steps {
		said := ofTable.ReplaceAllString(client.copies(func() { client.cursorStep(sql) }), "")
		answers = append(answers, fmt.Sprintf("%s:\n%s", sql, said))
	}
	return answers
}

// TestPostgresFinishesCursors has cursors over statements of which a part is refused: the server's own from the first FETCH on, over what is
// computed here.
func TestPostgresFinishesCursors(t *testing.T) {
	s := privateStack(t, finishSchema)
	const ordered = "SELECT s, exp(sum(n) / 10000) AS x, max(tz) AS last, min(e) AS e, quote_literal(max(v)) FROM every GROUP BY s ORDER BY s"
	const one = "SELECT ln(count(*)), sum(n) FROM every"
	block := func(sql string, steps ...string) []string {
		return append(append([]string{"BEGIN", "DECLARE c CURSOR FOR " + sql}, steps...), "COMMIT", "SELECT 1")
	}
	for i, c := range []struct {
		want  int
		steps []string
	}{
		{1, block(ordered, "FETCH 3 FROM c", "FETCH NEXT FROM c", "FETCH ALL FROM c", "FETCH 1 FROM c", "CLOSE c")},
		{1, block(ordered, "FETCH ALL FROM c", "FETCH PRIOR FROM c", "MOVE BACKWARD 2 IN c", "FETCH 2 FROM c")},
		{1, block(ordered, "FETCH 3 FROM c", "FETCH ABSOLUTE 2 FROM c", "FETCH FIRST FROM c", "FETCH LAST FROM c")},
		{1, block(one, "FETCH 3 FROM c", "FETCH PRIOR FROM c")},
		{1, block(ordered, "FETCH 1 FROM c", "SELECT name, is_holdable, is_binary, is_scrollable FROM pg_cursors")},
		{1, block(one, "FETCH 1 FROM c", "SELECT name, is_holdable, is_binary, is_scrollable FROM pg_cursors")},
		{1, block(ordered, "FETCH 1 FROM c", "UPDATE every SET v = 'x' WHERE CURRENT OF c", "ROLLBACK")},
		{1, block(ordered, "FETCH 1 FROM c", "SAVEPOINT a", "FETCH 1 FROM c", "ROLLBACK TO a", "FETCH 1 FROM c", "DELETE FROM every", "FETCH ALL FROM c", "ROLLBACK")},
		{1, block(ordered, "FETCH 1 FROM c", "extended: FETCH 2 FROM c", "portal: c", "SET DateStyle = 'German'", "FETCH ALL FROM c", "RESET DateStyle")},
		{1, block("SELECT s, ln(count(*) - 428) FROM every GROUP BY s ORDER BY s", "FETCH 1 FROM c", "FETCH ALL FROM c", "SELECT 2", "ROLLBACK")},
		{1, []string{"BEGIN", "DECLARE c NO SCROLL CURSOR FOR " + ordered, "FETCH 2 FROM c", "FETCH PRIOR FROM c", "ROLLBACK"}},
		{1, []string{"BEGIN", "DECLARE c CURSOR WITH HOLD FOR " + ordered, "FETCH 2 FROM c", "COMMIT", "FETCH ALL FROM c", "CLOSE c"}},
		{1, []string{"BEGIN; DECLARE \"Ä c\" CURSOR FOR " + ordered + "; FETCH 2 FROM \"Ä c\"", "FETCH 100 FROM \"Ä c\"", "CLOSE \"Ä c\"", "COMMIT"}},
		{1, []string{"BEGIN", "extended: DECLARE c CURSOR FOR " + ordered, "FETCH 4 FROM c", "extended: SELECT 3", "FETCH ALL FROM c", "COMMIT"}},
		{1, []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "DECLARE c CURSOR FOR " + ordered, "FETCH 4 FROM c", "FETCH ALL FROM c", "COMMIT"}},
		{2, block(ordered, "FETCH 3 FROM c", "DECLARE d CURSOR FOR "+one, "FETCH 4 FROM d", "FETCH ALL FROM c", "CLOSE ALL")},
		// The server's from the start: another message comes before the first FETCH, or a row may be one of a table.
		{0, block(ordered, "MOVE 1 IN c", "FETCH 3 FROM c")},
		{0, block(ordered, "SAVEPOINT a", "FETCH 3 FROM c", "ROLLBACK TO a", "FETCH 3 FROM c")},
		{0, block("SELECT id, exp(s) FROM every WHERE id < 20 ORDER BY id", "FETCH 3 FROM c", "UPDATE every SET v = 'x' WHERE CURRENT OF c", "ROLLBACK")},
		{0, []string{"BEGIN", "DECLARE c SCROLL CURSOR FOR " + ordered, "FETCH 4 FROM c", "COMMIT"}},
		{0, block("SELECT s, twice(sum(n)) FROM every GROUP BY s ORDER BY s", "FETCH 3 FROM c")},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			want := cursorSteps(t, s.direct, c.steps)
			before := s.queries(t, "partial")
			if got := cursorSteps(t, s.proxy, c.steps); !slices.Equal(got, want) {
				t.Errorf("%s", firstDifference([]byte(strings.Join(got, "")), []byte(strings.Join(want, ""))))
			}
			if n := int(s.queries(t, "partial") - before); n != c.want {
				t.Errorf("%q: %d in part, want %d: %s", c.steps, n, c.want, reasons(t, s))
			}
		})
	}
}

// TestPostgresFinishesCursorsUnread has cursors that are never read, and one whose rest the role may not run.
func TestPostgresFinishesCursorsUnread(t *testing.T) {
	s := privateStack(t, finishSchema+`;
CREATE ROLE poor LOGIN;
GRANT SELECT ON every TO poor;
REVOKE SELECT ON pg_cursors FROM PUBLIC`)
	run := func(tg target, role string, steps []string) (answers []string) {
		client := hijacked(t, tg, role)
		for _, sql := range steps {
			answers = append(answers, ofTable.ReplaceAllString(client.copies(func() { client.cursorStep(sql) }), ""))
		}
		return answers
	}
	const sql = "SELECT s, exp(sum(n) / 10000) FROM every GROUP BY s ORDER BY s"
	for role, steps := range map[string][]string{
		"postgres": {"BEGIN", "DECLARE c CURSOR FOR " + sql, "SELECT name, is_scrollable FROM pg_cursors", "CLOSE c", "COMMIT"},
		"poor":     {"BEGIN", "DECLARE c CURSOR FOR " + sql, "FETCH 2 FROM c", "FETCH ALL FROM c", "COMMIT", "SELECT 1"},
	} {
		before := s.queries(t, "partial")
		if want, got := run(s.direct, role, steps), run(s.proxy, role, steps); !slices.Equal(got, want) {
			t.Errorf("%s: %s", role, firstDifference([]byte(strings.Join(got, "")), []byte(strings.Join(want, ""))))
		}
		if s.queries(t, "partial") != before {
			t.Errorf("%s: in part", role)
		}
	}
}
