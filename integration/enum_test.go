package integration

import (
	"fmt"
	"testing"
)

const enumSchema = `
CREATE TYPE mood AS ENUM ('new', 'paid', 'on hold', 'größer €', 'Cancelled', 'a');
CREATE TYPE other AS ENUM ('paid', 'new');
CREATE TABLE orders (id int PRIMARY KEY, status mood NOT NULL, was mood, kind other, note text);
CREATE TABLE names (status mood PRIMARY KEY, name text);
CREATE VIEW open AS SELECT id, status, note FROM orders WHERE status < 'Cancelled';
INSERT INTO orders SELECT i, (enum_range(NULL::mood))[i * 7 % 5 + 1], (enum_range(NULL::mood))[i % 7], (enum_range(NULL::other))[i % 3], (ARRAY['paid', 'x', 'on hold'])[i % 4] FROM generate_series(1, 3000) i;
INSERT INTO names SELECT s, 'name of ' || s FROM unnest(enum_range(NULL::mood)) s;`

// enumAnswered are statements over enumSchema that are accelerated.
var enumAnswered = []string{
	"SELECT * FROM orders ORDER BY id",
	"SELECT status, count(*) FROM orders GROUP BY status ORDER BY status",
	"SELECT was, count(*), min(status), max(status), min(was) FROM orders GROUP BY 1 ORDER BY 1 DESC NULLS LAST",
	"SELECT min(status), max(status), count(was), count(DISTINCT was) FROM orders",
	"SELECT DISTINCT status FROM orders ORDER BY 1 DESC",
	"SELECT count(*) FROM orders WHERE status = 'paid'",
	"SELECT count(*) FROM orders WHERE status = 'a'",
	"SELECT count(*) FROM orders WHERE status <> 'größer €' AND 'on hold' <= was",
	"SELECT count(*) FROM orders WHERE status < 'a' AND was > 'paid'",
	"SELECT count(*) FROM orders WHERE status BETWEEN 'paid' AND 'größer €'",
	"SELECT count(*) FROM orders WHERE was < status",
	"SELECT count(*) FROM orders WHERE was IS DISTINCT FROM status",
	"SELECT count(*) FROM orders WHERE status IN ('new', 'Cancelled')",
	"SELECT count(*) FROM orders WHERE was NOT IN ('new', 'a')",
	"SELECT count(*) FROM orders WHERE status = ANY ('{new,\"on hold\"}')",
	"SELECT count(*) FROM orders WHERE status = ANY (ARRAY['new', 'a']::mood[])",
	"SELECT count(*) FROM orders WHERE status = 'paid'::mood",
	"SELECT count(*) FROM orders WHERE status >= 'on hold'::public.mood",
	"SELECT count(*) FROM orders WHERE status = CAST('paid'::text AS mood)",
	"SELECT id, coalesce(was, status) FROM orders ORDER BY 2, 1 LIMIT 50",
	"SELECT id, coalesce(was, 'a') FROM orders ORDER BY 2 DESC, 1 LIMIT 50",
	"SELECT id, CASE WHEN id % 2 = 0 THEN status END, nullif(was, 'paid') FROM orders ORDER BY 2, 3, 1 LIMIT 50",
	"SELECT id, CASE status WHEN 'paid' THEN 1 WHEN 'new' THEN 2 ELSE 0 END FROM orders ORDER BY 2, 1 LIMIT 50",
	"SELECT greatest(status, was, 'on hold'), least(status, was), id FROM orders ORDER BY 1, 2, 3 LIMIT 100",
	"SELECT status::text, count(*) FROM orders GROUP BY 1 ORDER BY 1",
	"SELECT upper(status::text), length(was::varchar) FROM orders ORDER BY id",
	"SELECT status || '!', '<' || was, concat(status, '/', was), note || kind FROM orders ORDER BY id",
	"SELECT count(*) FROM orders WHERE status::text = note",
	"SELECT count(*) FROM orders WHERE status::text < note",
	"SELECT count(*) FROM orders WHERE status::text LIKE '%a%'",
	"SELECT string_agg(status::text, ',' ORDER BY status, id) FROM orders WHERE id < 40",
	"SELECT n.name, count(*) FROM orders o JOIN names n ON n.status = o.status GROUP BY 1 ORDER BY 1",
	"SELECT n.status, count(o.id) FROM names n LEFT JOIN orders o ON o.was = n.status GROUP BY 1 ORDER BY 1",
	"SELECT count(*) FROM orders o JOIN names n ON n.status < o.status",
	"SELECT count(*) FROM names n WHERE EXISTS (SELECT 1 FROM orders o WHERE o.was = n.status AND o.id > 2990)",
	"SELECT count(*) FROM orders WHERE was = (SELECT max(status) FROM orders)",
	"SELECT was FROM orders EXCEPT SELECT status FROM orders ORDER BY 1",
	"SELECT status FROM orders UNION ALL SELECT was FROM orders ORDER BY 1 LIMIT 30 OFFSET 2990",
	"SELECT DISTINCT ON (status) status, id FROM orders ORDER BY status DESC, id DESC",
	"SELECT id, row_number() OVER (PARTITION BY status ORDER BY was, id), lag(was) OVER (ORDER BY id), max(was) OVER (PARTITION BY kind) FROM orders ORDER BY id LIMIT 100",
	"SELECT kind, status, count(*) FROM orders GROUP BY GROUPING SETS ((kind), (status), ()) ORDER BY 1, 2, 3",
	"SELECT status, count(*) FROM open GROUP BY 1 ORDER BY 1",
	"SELECT count(*) FROM orders WHERE was IS NULL",
	"SELECT kind FROM orders WHERE kind > 'paid' ORDER BY id LIMIT 3",
}

// enumForwarded are those that are the server's: errors, and what is not known.
var enumForwarded = []string{
	"SELECT count(*) FROM orders WHERE status = 'none'", "SELECT count(*) FROM orders WHERE status = kind", "SELECT count(*) FROM orders WHERE status = 'paid'::other", "SELECT count(*) FROM orders WHERE status = 'none'::mood",
	"SELECT count(*) FROM orders WHERE status = note", "SELECT count(*) FROM orders WHERE status = 'paid'::text", "SELECT count(*) FROM orders WHERE status LIKE 'p%'", "SELECT length(status) FROM orders", "SELECT sum(status) FROM orders",
	"SELECT count(*) FROM orders WHERE note::mood = 'paid'", "SELECT coalesce(status, kind) FROM orders", "SELECT count(*) FROM orders WHERE status = ANY ('{new,none}')", "SELECT status::int FROM orders", "SELECT status FROM orders UNION SELECT kind FROM orders",
	"SELECT count(*) FROM names WHERE 'paid'::other = 'new'", "SELECT count(*) FROM orders WHERE status = 'paid '", "SELECT count(*) FROM orders JOIN names USING (status) WHERE kind = 'Cancelled'",
}

// TestEnum asks what enums take part in, with rows that change and labels in an order of their own.
func TestEnum(t *testing.T) {
	s := privateStack(t, enumSchema)
	direct := connect(t, s.direct.url("postgres"))
	for _, sql := range []string{"UPDATE orders SET status = 'a' WHERE id % 13 = 0", "DELETE FROM orders WHERE status = 'paid' AND id % 2 = 0", "UPDATE names SET status = 'Cancelled', name = 'again' WHERE status = 'Cancelled'",
		"INSERT INTO orders SELECT 5000 + i, 'on hold', 'größer €', NULL, 'later' FROM generate_series(1, 50) i"} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
	}
	for _, sql := range enumAnswered {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT count(*), min(id) FROM orders WHERE status = $1", "größer €")
	s.everyAnswer(t, true, "SELECT count(*), min(id) FROM orders WHERE status > $1 OR was IN ($1, $2)", "paid", "a")
	s.everyAnswer(t, true, "SELECT count(*), min(id) FROM orders WHERE status = $1::mood", "paid")
	s.everyAnswer(t, true, "SELECT count(*), min(id) FROM orders WHERE status = CAST($1::text AS public.mood)", "on hold")
	s.everyAnswer(t, true, "SELECT count(*), min(id) FROM orders WHERE status::text = $1", "on hold")
	for _, sql := range enumForwarded {
		s.everyAnswer(t, false, sql)
	}
	s.everyAnswer(t, false, "SELECT count(*) FROM orders WHERE status = $1", "none")
	s.everyAnswer(t, false, "SELECT count(*) FROM orders WHERE status = $1::mood", "none")
}

// TestEnumBesideWriter changes labels while transactions write: the stream brings what one wrote before with
// the labels of then.
func TestEnumBesideWriter(t *testing.T) {
	s := privateStack(t, enumSchema)
	admin, writer := connect(t, s.direct.url("postgres")), connect(t, s.direct.url("postgres"))
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	queries := []string{"SELECT status, count(*), min(id), max(was) FROM orders GROUP BY status ORDER BY status", "SELECT id, status, was FROM orders ORDER BY was DESC, status, id LIMIT 300", "SELECT id, status, was FROM orders WHERE id > 9000 ORDER BY id"}
	compare := func() {
		t.Helper()
		for _, sql := range queries {
			same(t, direct, proxied, sql)
		}
	}
	for i, sql := range []string{
		"ALTER TYPE mood RENAME VALUE 'new' TO 'fresh'",
		"BEGIN; ALTER TYPE mood RENAME VALUE 'fresh' TO 'x'; ALTER TYPE mood RENAME VALUE 'paid' TO 'fresh'; ALTER TYPE mood RENAME VALUE 'x' TO 'paid'; COMMIT",
		"ALTER TYPE mood ADD VALUE 'zero' BEFORE 'on hold'",
		"ALTER TYPE mood RENAME VALUE 'zero' TO 'null'",
	} {
		s.eventually(t, proxied, queries[0])
		must(t, writer, "BEGIN")
		must(t, writer, fmt.Sprintf("INSERT INTO orders SELECT 10000 + 100 * %d + i, (enum_range(NULL::mood))[1 + i %% 3], (enum_range(NULL::mood))[2], 'new', 'w' FROM generate_series(0, 50) i", i))
		must(t, admin, sql)
		compare()
		must(t, writer, "UPDATE orders SET was = (enum_range(NULL::mood))[1] WHERE id % 50 = 0")
		must(t, writer, "COMMIT")
		compare()
		s.eventually(t, proxied, queries[0])
		compare()
		must(t, admin, "UPDATE orders SET was = status WHERE id % 40 = 7")
		compare()
		s.eventually(t, proxied, queries[0])
		s.accelerates(t, 1, compare)
	}
	// A writer that goes on while labels come.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			ask(t, writer, "INSERT INTO orders SELECT max(id) + 1, (enum_range(NULL::mood))[(SELECT count(*) FROM unnest(enum_range(NULL::mood)))], NULL, NULL, 'w' FROM orders", nil)
			if i%20 == 0 {
				ask(t, writer, "ALTER TYPE mood ADD VALUE 'label "+string(rune('a'+i/20))+"' BEFORE 'a'", nil)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			if a := ask(t, proxied, queries[0], nil); a.err != "" {
				t.Fatal(a)
			}
		}
	}
	compare()
	s.eventually(t, proxied, queries[0])
	compare()
}
