package integration

import "testing"

const uuidSchema = `
CREATE TABLE accounts (id uuid PRIMARY KEY, owner text, parent uuid);
CREATE TABLE entries (n int PRIMARY KEY, account uuid, amount int NOT NULL);
CREATE VIEW owned AS SELECT a.id, a.owner, e.amount FROM accounts a JOIN entries e ON e.account = a.id;
INSERT INTO accounts SELECT md5(i::text)::uuid, 'owner ' || i % 7, CASE WHEN i % 3 > 0 THEN md5((i / 2)::text)::uuid END FROM generate_series(0, 400) i;
INSERT INTO entries SELECT i, CASE WHEN i % 11 > 0 THEN md5((i % 500)::text)::uuid END, i % 97 FROM generate_series(1, 3000) i;`

// TestUUID asks what a uuid takes part in beside what TestEveryType asks of every type. Rows are
// found by a key of uuid when they change.
func TestUUID(t *testing.T) {
	s := privateStack(t, uuidSchema)
	direct := connect(t, s.direct.url("postgres"))
	for _, sql := range []string{"UPDATE accounts SET owner = 'changed' WHERE owner = 'owner 3'", "UPDATE accounts SET id = md5(id::text)::uuid WHERE owner = 'owner 4'", "DELETE FROM accounts WHERE owner = 'owner 5'",
		"UPDATE entries SET account = NULL WHERE n % 17 = 0", "INSERT INTO entries SELECT 5000 + i, md5(i::text)::uuid, i FROM generate_series(1, 50) i"} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	const some = "c4ca4238-a0b9-2382-0dcc-509a6f75849b" // md5('1')
	for _, sql := range []string{
		"SELECT * FROM accounts ORDER BY id",
		"SELECT a.id, count(*), sum(e.amount) FROM accounts a JOIN entries e ON e.account = a.id GROUP BY a.id ORDER BY a.id",
		"SELECT a.owner, count(DISTINCT e.account) FROM accounts a LEFT JOIN entries e ON e.account = a.id GROUP BY a.owner ORDER BY 1",
		"SELECT count(*) FROM accounts a JOIN accounts b ON a.parent = b.id WHERE a.id < b.id",
		"SELECT count(*) FROM entries WHERE account IN ('" + some + "', '{C4CA4238-A0B923820DCC-509A6F75849C}')",
		"SELECT count(*) FROM entries WHERE account = ANY ('{" + some + ",\"c81e728d9d4c2f636f067f89cc14862c\"}'::uuid[])",
		"SELECT count(*) FROM entries WHERE account <> ALL (ARRAY['" + some + "'::uuid])",
		"SELECT n, coalesce(account, '" + some + "') FROM entries ORDER BY 2, 1",
		"SELECT n, CASE WHEN amount > 50 THEN account END FROM entries ORDER BY 2 DESC, 1 LIMIT 40",
		"SELECT account::text, count(*) FROM entries GROUP BY 1 ORDER BY 1",
		"SELECT left(account::text, 2), count(*) FROM entries GROUP BY 1 ORDER BY 1",
		"SELECT 'a/' || account, account || owner FROM entries JOIN accounts ON account = id ORDER BY n LIMIT 30",
		"SELECT count(*) FROM entries WHERE account::text LIKE 'c4%'",
		"SELECT DISTINCT ON (account) account, n FROM entries ORDER BY account NULLS FIRST, n DESC",
		"SELECT account, row_number() OVER (PARTITION BY account ORDER BY n) FROM entries ORDER BY 1, 2 LIMIT 100",
		"SELECT account FROM entries EXCEPT SELECT id FROM accounts ORDER BY 1",
		"SELECT count(*) FROM entries e WHERE EXISTS (SELECT 1 FROM accounts a WHERE a.id = e.account AND a.owner = 'changed')",
		"SELECT owner, sum(amount) FROM owned WHERE id > '80000000-0000-0000-0000-000000000000' GROUP BY owner ORDER BY 1",
	} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT count(*), sum(amount) FROM entries WHERE account = $1", some)
	s.everyAnswer(t, true, "SELECT count(*), sum(amount) FROM entries WHERE account = $1::uuid OR account > $2", "{"+some+"}", "f0000000000000000000000000000000")
	s.everyAnswer(t, true, "SELECT count(*), sum(amount) FROM entries WHERE account = ANY ($1::uuid[])", "{"+some+",c81e728d9d4c2f636f067f89cc14862c}")
	for _, sql := range []string{ // errors are the server's
		"SELECT count(*) FROM entries WHERE account = ' " + some + "'", "SELECT count(*) FROM entries WHERE account = 'c4ca'", "SELECT count(*) FROM entries WHERE account = '" + some + "'::text",
		"SELECT count(*) FROM entries WHERE account LIKE 'c4%'", "SELECT min(account) FROM entries", "SELECT sum(account) FROM entries", "SELECT account::int FROM entries", "SELECT length(account) FROM entries",
		"SELECT (owner || '')::uuid FROM accounts"} {
		s.everyAnswer(t, false, sql)
	}
	s.everyAnswer(t, false, "SELECT count(*) FROM entries WHERE account = $1", "c4ca")
}
