package syntax

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"
)

func TestNormalize(t *testing.T) {
	f := func(sql, want string) {
		t.Helper()
		if got, _ := Parse(sql).Normalize(-1); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	f("SELECT sum(qty) FROM orders WHERE day > '2024-01-01' AND kind IN ('a', 'b')", "SELECT sum(qty) FROM orders WHERE day > $1 AND kind IN ($2, $3)")
	f("SELECT FROM (", "<unparsable>")
	f("SELECT 1; SELECT 'a", "<unparsable>")
	f("SELECT qty + 1, a + 1 FROM t GROUP BY a + 1, a + 2", "SELECT qty + $1, a + $2 FROM t GROUP BY a + $2, a + $3")
	f("COMMENT ON TABLE t IS 'a'; COPY t FROM PROGRAM 'b'; ALTER TYPE e ADD VALUE 'c'", "COMMENT ON TABLE t IS $1; COPY t FROM PROGRAM $2; ALTER TYPE e ADD VALUE $3")
	f("CREATE ROLE r PASSWORD 'a'; DO $$ BEGIN END $$; PREPARE TRANSACTION 'x'; SELECT U&'a', b'1'", "CREATE ROLE r PASSWORD $1; DO $2; PREPARE TRANSACTION $5; SELECT $3, $4")
	f("/*a='1'*/ SELECT 1 /*controller='é',traceparent='00-1'*/", " SELECT $1")
	f("SELECT /*+ hint(a) */ 'é' /* x = 'y' */  /*a='1'*/, 2", "SELECT /*+ hint(a) */ $1 /* x = 'y' */, $2")
}

// TestNormalizedPosition: the place in a text whose constants are $n, in characters.
func TestNormalizedPosition(t *testing.T) {
	for marked, want := range map[string]string{
		"SELECT 'ä/**/ö', 10000, ^rank() OVER () FROM t WHERE x = 'long enough'": "SELECT $1, $2, ^rank() OVER () FROM t WHERE x = $3",
		"SELECT 'é' AS ä, a /^b, /**/ 5 FROM t":                                  "SELECT $1 AS ä, a /^b, /**/ $2 FROM t",
		"SELECT 1, 'x' > ^-5.25 FROM t":                                          "SELECT $1, $2 > ^$3 FROM t",
		"^SELECT 1":                                                              "^SELECT $1",
	} {
		text, positions := Parse(strings.Replace(marked, "^", "", 1)).Normalize(strings.Index(marked, "^"))
		got, position := []rune(text), positions[0]
		if shown := string(got[:position-1]) + "^" + string(got[position-1:]); shown != want {
			t.Errorf("%s: %s, want %s", marked, shown, want)
		}
	}
	if text, positions := Parse("SELECT 1, 'é', now()").Normalize(15, -1, 7, 15, 99); text != "SELECT $1, $2, now()" || !slices.Equal(positions, []int{15, 0, 8, 15, 0}) {
		t.Errorf("%s %d", text, positions)
	}
}

func TestSplit(t *testing.T) {
	f := func(sql, prefix, last string) {
		t.Helper()
		before, begins, text := Parse(sql).Split()
		if begins != (last != "" && regexp.MustCompile(`^(/.*/ )?(BEGIN|START)`).MatchString(sql)) {
			t.Errorf("%q: begins %v", sql, begins)
		}
		if (text != nil) != (last != "") || before != prefix || text != nil && text.SQL != last {
			t.Errorf("%q: %q + %v", sql, before, text)
		}
		if text == nil {
			return
		}
		// What is read of the last statement is what is read of its text.
		alone := Parse(last)
		at := strings.Index(last, "SELECT")
		a, p := text.Normalize(at)
		b, q := alone.Normalize(at)
		if a != b || !slices.Equal(p, q) {
			t.Errorf("%q: %s %d, alone %s %d", sql, a, p, b, q)
		}
		target := func(t *Text) int {
			sel, _ := t.Select()
			return t.Location(sel.TargetList[0])
		}
		if target(text) != target(alone) || text.Location(text.Keyword(pg.Token_SELECT)) != at {
			t.Errorf("%q: the output is at %d, alone %d", sql, target(text), target(alone))
		}
	}
	f("BEGIN;SELECT 1", "BEGIN;", "SELECT 1")
	f("BEGIN; SELECT 1;", "BEGIN;", " SELECT 1;")
	f("SAVEPOINT _EXEC_SVP_1;SELECT 'é;x' FROM t", "SAVEPOINT _EXEC_SVP_1;", "SELECT 'é;x' FROM t")
	f("START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL x.y = 1; SELECT 1", "START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL x.y = 1;", " SELECT 1")
	f("/* é */ SET DateStyle = 'ISO';show transaction_isolation; SELECT 1", "/* é */ SET DateStyle = 'ISO';show transaction_isolation;", " SELECT 1")
	f("/* é */ BEGIN; SELECT 1", "/* é */ BEGIN;", " SELECT 1")
	f("RELEASE a;;SELECT 1", "RELEASE a;;", "SELECT 1")
	f("SELECT 1", "", "")
	f("SELECT 1; SELECT 2", "", "")
	f("BEGIN; INSERT INTO t VALUES (1); SELECT 1", "", "")
	f("BEGIN; UPDATE t SET a = 1", "", "")
	f("COMMIT; SELECT 1", "", "")
	f("ROLLBACK TO a; SELECT 1", "", "")
	f("SET LOCAL x.y = 1; SELECT 1", "", "")
	f("BEGIN; SELEC 1", "", "")
	f("", "", "")
}

func TestRewriteVirtual(t *testing.T) {
	relation := func(name string, param int) (string, bool) {
		switch name {
		case "tables":
			return fmt.Sprintf("SELECT * FROM jsonb_to_recordset($%d::jsonb) AS r(\"name\" text)", param), true
		}
		return "", false
	}
	f := func(sql string, declared int, want string, param int) {
		t.Helper()
		got, at := Parse(sql).RewriteVirtual(declared, relation)
		if at != param {
			t.Errorf("%s: parameter %d, want %d", sql, at, param)
		}
		if got = strings.ReplaceAll(got, fmt.Sprintf("(SELECT * FROM jsonb_to_recordset($%d::jsonb) r (name text))", param), "<body>"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", sql, got, want)
		}
	}
	f("SELECT * FROM pgaccel.tables", 0, "SELECT * FROM <body> tables", 1)
	f("SELECT * FROM pgaccel.tables", 2, "SELECT * FROM <body> tables", 3)
	f("SELECT pgaccel.tables.name, t.x FROM pgaccel.tables JOIN (SELECT 1 AS x FROM pgaccel.tables q) t ON true WHERE $1 = 'a'", 0,
		"SELECT tables.name, t.x FROM <body> tables JOIN (SELECT 1 AS x FROM <body> q) t ON true WHERE $1 = 'a'", 2)
	f("SELECT count(*) FROM pgaccel.tables AS t (n) WHERE n IN (SELECT name FROM pgaccel.tables WHERE name = $7)", 3,
		"SELECT count(*) FROM <body> t(n) WHERE n IN (SELECT name FROM <body> tables WHERE name = $7)", 8)
	f("SELECT 1 UNION ALL SELECT 2 FROM pgaccel.tables", 0, "SELECT 1 UNION ALL SELECT 2 FROM <body> tables", 1)
	f("WITH a AS (SELECT * FROM pgaccel.tables) SELECT * FROM a LIMIT $1", 0, "WITH a AS (SELECT * FROM <body> tables) SELECT * FROM a LIMIT $1", 2)
	f("SELECT * FROM pgaccel.nothing", 0, "", 0)
	f("SELECT * FROM tables", 0, "", 0)
	f("INSERT INTO x SELECT * FROM pgaccel.tables", 0, "", 0)
	f("SELECT 1; SELECT * FROM pgaccel.tables", 0, "", 0)
	f("SELECT * FROM (", 0, "", 0)
}

// TestNormalizeAsTheLibrary: what is made of a tree is what pg_query's own function makes of the
// text, which parses it.
func TestNormalizeAsTheLibrary(t *testing.T) {
	texts := []string{
		"SELECT -1, - 2, 1.5e-3, .5, 0x1F, 1_000, 'a''b', E'a\\'b', U&'\\0041' , $$a$$, $x$b$x$, B'01', X'1f', N'n', true, NULL",
		"SELECT 'a'\n'b', 'c' -- '\n'd'",
		"SELECT a BETWEEN SYMMETRIC 1 AND 2, extract(year FROM b), extract(\"year\" FROM b), b::numeric(10, 2), interval '1' day, date '2024-01-01'",
		"SELECT a + 1, count(*) FROM t WHERE b > $3 AND c = 2 GROUP BY a + 1, 2, c + 3 HAVING count(*) > 4 ORDER BY 1, a + 5 LIMIT 6 OFFSET 7",
		"SELECT a, sum(b) FILTER (WHERE c = 1) OVER (PARTITION BY d + 2 ORDER BY e + 3 ROWS 4 PRECEDING) FROM t WINDOW w AS (ORDER BY 5)",
		"WITH w AS (SELECT 1), v AS (VALUES (2, 'x')) SELECT 3 FROM w, v UNION SELECT 4 EXCEPT (SELECT 5 ORDER BY 1 LIMIT 6)",
		"WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) CYCLE n SET c TO true DEFAULT false USING p SELECT n FROM t LIMIT ALL",
		"WITH x AS (INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 2 RETURNING 3) SELECT 4 FROM x",
		"WITH x AS (DELETE FROM t USING u WHERE a = 1 RETURNING 2), y AS (UPDATE t SET a = 3 FROM u WHERE b = 4) SELECT 5",
		"SELECT CASE a WHEN 1 THEN 2 ELSE 3 END, ARRAY[4, 5], ROW(6), a[7:8], coalesce(9, 10), (SELECT 11), EXISTS (SELECT 12 GROUP BY 13 + 1)",
		"SELECT * FROM generate_series(1, 2) g(x), t TABLESAMPLE bernoulli (3) REPEATABLE (4), LATERAL (SELECT 5) l, ROWS FROM (f(6)) JOIN u ON u.a = 7",
		"SELECT GROUPING(a), a FROM t GROUP BY GROUPING SETS ((a, 1), ROLLUP (b + 2)), CUBE (a)", "SELECT DISTINCT ON (a + 1) 2 FROM t FETCH FIRST 3 ROWS WITH TIES",
		"SET x.y = 1; SHOW a; SET TIME ZONE 'UTC'; SET a TO on, 2", "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1", "SAVEPOINT a; SELECT 1; SELECT 2",
		"BEGIN; CREATE ROLE r PASSWORD 'secret'; ALTER ROLE r PASSWORD 'secret'; NOTIFY n, 'secret'; DO 'secret'; CREATE USER MAPPING FOR u SERVER s OPTIONS (password 'secret')",
		"BEGIN; CREATE SUBSCRIPTION s CONNECTION 'secret' PUBLICATION p; ALTER SUBSCRIPTION s CONNECTION 'secret'",
		"SELECT 'é', 'ä' || a -- 'x'", "TABLE t", "VALUES (1), (2)", "", ";",
	}
	for _, pattern := range []string{"../pushdown/testdata/*.txt", "../pushdown/testdata/trees/*.txt", "../pushdown/testdata/*.sql"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			blocks := strings.Split(string(data), "\n\n")
			if strings.HasSuffix(name, ".sql") {
				blocks = strings.Split(string(data), "\n")
			}
			for _, block := range blocks {
				sql, _, _ := strings.Cut(block, "\n----")
				texts = append(texts, sql, "SELECT "+sql+" FROM orders WHERE ("+sql+") IS NOT NULL GROUP BY 1, "+sql+" HAVING ("+sql+") = 1")
			}
		}
	}
	parsed := 0
	for _, sql := range texts {
		text := Parse(sql)
		got, _ := text.Normalize()
		want, err := pg.Normalize(sql)
		if err != nil || text.refused != "" {
			continue
		}
		parsed++
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", sql, got, want)
		}
	}
	if parsed < 1000 {
		t.Errorf("%d texts", parsed)
	}
}
