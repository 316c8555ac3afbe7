package integration

import (
	"strings"
	"testing"
)

const citextSchema = `CREATE SCHEMA x; CREATE EXTENSION citext SCHEMA x; CREATE ROLE reader; GRANT USAGE ON SCHEMA x TO reader; SET search_path = public, x;
CREATE TABLE person (id int PRIMARY KEY, email x.citext, one x.citext, fr x.citext COLLATE "C", name text, boss x.citext);
INSERT INTO person SELECT i, CASE WHEN i % 11 > 0 THEN (ARRAY['User', 'uSER', 'user'])[i % 3 + 1] || i % 50 || '@Example.org' END, (ARRAY['Größe', 'a', 'Ab', 'aC', 'É', 'z', ''])[i % 7 + 1], 'V' || i % 4, 'User' || i % 50, 'USER' || i % 40 || '@example.ORG'
 FROM generate_series(1, 3000) i;
INSERT INTO person VALUES (10001, 'ÄRGER@example.org', 'a', 'x', 'Ä', NULL), (10002, 'ärger@Example.org', 'É', 'X', 'ä', NULL), (10003, E'back\\\\slash_%', 'a', NULL, NULL, NULL);
GRANT SELECT ON person TO reader;
VACUUM ANALYZE`

// ofCitext are statements over citext. Those of the column "one" show values, of which equal ones are spelled alike.
var ofCitext = []string{
	"SELECT id FROM person WHERE email = 'user7@EXAMPLE.org' ORDER BY id", "SELECT id FROM person WHERE 'ärGER@example.org' = email OR email = 'user1@example.org'::citext ORDER BY id",
	"SELECT count(*) FROM person WHERE email <> 'USER1@example.org'", "SELECT id FROM person WHERE email < 'user10@b' OR email >= 'USER49@example.org' ORDER BY id",
	"SELECT count(*) FROM person WHERE email IN ('USER1@example.org', 'user2@EXAMPLE.org', 'ÄRGER@EXAMPLE.ORG', NULL)", "SELECT count(*) FROM person WHERE email NOT IN ('USER1@example.org', 'user2@EXAMPLE.org')",
	"SELECT count(*) FROM person WHERE email BETWEEN 'USER1' AND 'user3'", "SELECT count(*) FROM person WHERE email IS DISTINCT FROM 'USER4@example.org' OR email IS NOT DISTINCT FROM boss",
	"SELECT count(*) FROM person WHERE email LIKE 'USER1%@EXAMPLE.ORG'", "SELECT count(*) FROM person WHERE email NOT LIKE '%r2%' AND email ILIKE '%EXAMPLE%'", "SELECT count(*) FROM person WHERE email ~ '^USER[1-3]@' OR email ~* 'R44' OR email !~ 'EXAMPLE'",
	`SELECT id FROM person WHERE email LIKE 'BACK\\\\slash\\_\\%'`, "SELECT id, email FROM person ORDER BY email DESC NULLS LAST, id", "SELECT id FROM person ORDER BY one, email, id LIMIT 100",
	"SELECT one, count(*), min(id) FROM person GROUP BY one ORDER BY one", "SELECT DISTINCT one FROM person ORDER BY one", "SELECT one, name, count(*) FROM person GROUP BY one, name ORDER BY 1, 2", "SELECT lower(one), length(one), count(*) FROM person GROUP BY one ORDER BY 1",
	"SELECT count(DISTINCT email), count(email), count(DISTINCT one) FILTER (WHERE id > 9) FROM person", "SELECT count(*) FROM person GROUP BY email ORDER BY email",
	"SELECT a.id, b.id FROM person a JOIN person b ON a.email = b.boss WHERE a.id < 9 ORDER BY 1, 2", "SELECT count(*) FROM person a WHERE EXISTS (SELECT 1 FROM person b WHERE b.boss = a.email AND b.id < 20)", "SELECT count(*) FROM person WHERE boss IN (SELECT email FROM person WHERE id < 30)",
	"SELECT id, email::text, upper(email), coalesce(email, 'none'), CASE email WHEN 'user3@example.org' THEN one ELSE 'Else' END FROM person ORDER BY id", "SELECT coalesce(one, 'none') AS c, count(*) FROM person GROUP BY 1 HAVING coalesce(one, 'none') > 'A' ORDER BY 1",
	"SELECT g.one, g.n, p.id FROM (SELECT one, count(*) AS n FROM person GROUP BY one) g JOIN person p ON p.one = g.one WHERE p.id < 40 ORDER BY p.id", "SELECT count(*) FROM person WHERE fr IS NULL",
	"SELECT DISTINCT ON (email) id FROM person ORDER BY email, id",
}

// TestCitext compares statements over citext in two locales, of which one knows letters outside of ASCII.
func TestCitext(t *testing.T) {
	for _, locale := range []string{"C", "en_US.utf8"} {
		t.Run(locale, func(t *testing.T) {
			s, err := startStackIn(locale, pgaccelProgram(t), citextSchema)
			if err != nil {
				t.Fatal(err)
			}
			s.stopAtEnd(t)
			citextIn(t, s, locale == "C")
		})
	}
}

func citextIn(t *testing.T, s *stack, bytewise bool) {
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	both := func(sql string) {
		must(t, direct, sql)
		must(t, proxy, sql)
	}
	compare := func(t *testing.T, accelerated bool, sql string, params ...string) {
		t.Helper()
		same := func() {
			t.Helper()
			if got, want := ask(t, proxy, sql, []int16{0}, params...), ask(t, direct, sql, []int16{0}, params...); got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
		if accelerated {
			s.accelerates(t, 1, same)
		} else {
			s.forwardsAll(t, same)
		}
		if t.Failed() {
			t.Fatal(sql, reasons(t, s))
		}
	}
	both("SET search_path = public, x")
	if !bytewise { // the first asks for the letters' cases
		s.untilAccelerated(t, proxy, "SELECT count(*) FROM person WHERE email = 'ärger'")
	}
	for _, sql := range ofCitext { // joins are by functions that never fail, as lower() in ASCII
		t.Run("", func(t *testing.T) {
			compare(t, !strings.Contains(sql, "::citext") && (bytewise || !strings.Contains(sql, " JOIN ")), sql)
		})
	}
	if bytewise {
		compare(t, true, "SELECT min(one), max(one) FROM person")
	}
	compare(t, true, "SELECT count(*) FROM person WHERE email = $1 AND name = $2", "USER7@example.org", "User7")
	compare(t, true, "SELECT count(*) FROM person WHERE email LIKE $1", "USER7@%")
	for _, sql := range []string{
		"SELECT email, count(*) FROM person GROUP BY email ORDER BY email", "SELECT DISTINCT email FROM person ORDER BY lower(email)", "SELECT max(email) FROM person WHERE id < 2900", // equal ones are spelled apart
		"SELECT id FROM person WHERE fr = 'v1' ORDER BY id", "SELECT id FROM person ORDER BY fr, id", "SELECT min(fr) FROM person", // under another collation
		"SELECT count(*) FROM person WHERE email = name", "SELECT count(*) FROM person WHERE name = $1 AND email = $1", "SELECT one FROM person UNION SELECT email FROM person ORDER BY 1",
		"SELECT one, count(*) FROM person GROUP BY ROLLUP (one) ORDER BY 1", "SELECT replace(email, 'USER', 'x') FROM person ORDER BY id", "SELECT id, row_number() OVER (PARTITION BY one ORDER BY id) FROM person ORDER BY id",
	} {
		var params []string
		if strings.Contains(sql, "$1") {
			params = []string{"User7"}
		}
		compare(t, false, sql, params...)
	}
	// By OPERATOR(pg_catalog. ...) citext is text.
	for _, sql := range []string{"email OPERATOR(pg_catalog.=) 'USER7@example.org'", "email OPERATOR(pg_catalog.<) one", "email OPERATOR(pg_catalog.~~) 'USER%'", "email OPERATOR(pg_catalog.~) '^U'",
		"email OPERATOR(pg_catalog.=) ANY (SELECT boss FROM person)", "id OPERATOR(pg_catalog.<) 9 AND email = 'user7@example.org'"} {
		compare(t, false, "SELECT count(*), min(id) FROM person WHERE "+sql)
	}
	compare(t, false, "SELECT id FROM person ORDER BY email USING OPERATOR(pg_catalog.<), id")
	// In REPEATABLE READ the server calls what the operator's function is now.
	both("BEGIN ISOLATION LEVEL REPEATABLE READ")
	compare(t, false, "SELECT count(*) FROM person WHERE email = 'user7@example.org'")
	compare(t, true, "SELECT count(*) FROM person WHERE name = 'User7'")
	both("COMMIT")
	// Where the schema is not in the path, = is that of text; so it is where the role may not call the function.
	both("SET search_path = public")
	compare(t, false, "SELECT count(*) FROM person WHERE email = 'user7@example.org'")
	compare(t, false, "SELECT count(*) FROM person WHERE email LIKE 'user7%'")
	both("SET search_path = public, x")
	must(t, direct, "REVOKE EXECUTE ON FUNCTION x.citext_eq FROM PUBLIC")
	both("SET ROLE reader")
	compare(t, false, "SELECT count(*) FROM person WHERE email = 'user7@example.org'")
	compare(t, true, "SELECT count(*) FROM person WHERE email LIKE 'user7%'")
	both("RESET ROLE")
	must(t, direct, "CREATE SCHEMA y; ALTER OPERATOR x.= (x.citext, x.citext) SET SCHEMA y")
	compare(t, false, "SELECT count(*) FROM person WHERE email = 'user7@example.org'")
}
