package integration

import (
	"strings"
	"testing"
)

// TestOIDs compares numbers of objects with each other and with integers, whose bits they take.
func TestOIDs(t *testing.T) {
	s := privateStack(t, "CREATE TABLE objects (id int PRIMARY KEY, o oid, p oid, i int, l bigint, list oid[]); "+
		"INSERT INTO objects SELECT i, (i * 104857601::bigint)::oid, nullif(i % 7, 3)::oid, i - 3, i * 104857601::bigint, ARRAY[i::oid, 4294967295] FROM generate_series(0, 40) i;\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, o, p, list FROM objects ORDER BY o DESC, id", "SELECT p, count(*), min(o), max(o), count(DISTINCT o) FROM objects GROUP BY p ORDER BY p", "SELECT count(*) FROM objects WHERE o > 2147483647",
		"SELECT count(*) FROM objects WHERE o < -1", "SELECT count(*) FROM objects WHERE o >= 4294967296 - 4000000000", "SELECT id FROM objects WHERE p IN (1, 2, 5) OR o = 104857601 ORDER BY id", "SELECT id FROM objects WHERE p <> ALL (ARRAY[1, 2]::oid[]) ORDER BY id", "SELECT count(*) FROM objects WHERE o BETWEEN 5::smallint AND '3000000000'",
		"SELECT id, o::bigint + 1, l::oid, o::text, o || 'x', concat(p, o) FROM objects ORDER BY id", "SELECT a.id, b.id FROM objects a JOIN objects b ON a.p = b.o ORDER BY 1, 2", "SELECT id, rank() OVER (ORDER BY p, o), lag(o) OVER (ORDER BY id) FROM objects ORDER BY id",
		"SELECT id, coalesce(p, 7), CASE WHEN id > 3 THEN o ELSE 4294967295 END, nullif(p, 1), greatest(o, p) FROM objects ORDER BY id", "SELECT DISTINCT p FROM objects WHERE o IS DISTINCT FROM p ORDER BY 1", "SELECT o FROM objects WHERE id < 5 UNION SELECT p FROM objects ORDER BY 1"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM objects WHERE o >= $1 ORDER BY id", "3000000000")
	for _, sql := range []string{"SELECT count(*) FROM objects WHERE o = i", "SELECT count(*) FROM objects WHERE o > 4294967296", "SELECT count(*) FROM objects WHERE o = '-1'", "SELECT count(*) FROM objects WHERE o = '010'", "SELECT o + 1 FROM objects", "SELECT id, i::oid FROM objects ORDER BY id",
		"SELECT sum(o) FROM objects", "SELECT count(*) FROM objects WHERE o < 2.5", "SELECT id, o::int FROM objects WHERE id < 5 ORDER BY id", "SELECT id, (l * -1)::oid FROM objects ORDER BY id", "SELECT to_jsonb(o) FROM objects ORDER BY id"} {
		s.everyAnswer(t, false, sql)
	}
}

// TestNames compares names, whose order is that of C, with each other, with constants and with text of that collation.
func TestNames(t *testing.T) {
	s := privateStack(t, "CREATE TABLE named (id int PRIMARY KEY, n name, m name, c text COLLATE \"C\", d text, v varchar(20) COLLATE \"C\", b char(5) COLLATE \"C\", list name[]); "+
		"INSERT INTO named SELECT i, (ARRAY['a','B','Größe','pg_class','a b','_x','','Zz'])[1 + i % 8], nullif((ARRAY['a','b','pg_type'])[1 + i % 3], 'b'), (ARRAY['a','B','pg_class',repeat('x', 70)])[1 + i % 4], 'a', 'B', 'a', ARRAY['a', 'é']::name[] FROM generate_series(0, 40) i; "+
		"CREATE TABLE other (id int PRIMARY KEY, n name COLLATE \"POSIX\"); INSERT INTO other VALUES (1, 'a');\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, n, m, list FROM named ORDER BY n DESC, id", "SELECT m, count(*), count(DISTINCT n), min(n), max(n) FROM named GROUP BY m ORDER BY m", "SELECT count(*) FROM named WHERE n > 'a' OR n = '_x'", "SELECT id FROM named WHERE n IN ('a', 'B', 'é') ORDER BY id",
		"SELECT id FROM named WHERE n LIKE 'pg%' OR n ILIKE 'b%' OR n NOT LIKE '%ö%' ORDER BY id", "SELECT id FROM named WHERE n ~ '^pg_' OR n !~* 'A' ORDER BY id", "SELECT id, n = c, n < c, c >= n, n <> v, n = m FROM named ORDER BY id", "SELECT id, n::text, n::varchar, n || '.' || m, upper(n), length(n), left(n, 2), concat(n, m), md5(n), replace(n, 'a', 'b') FROM named ORDER BY id",
		"SELECT a.id, b.id FROM named a JOIN named b ON a.n = b.m ORDER BY 1, 2", "SELECT a.id, b.id FROM named a JOIN named b ON a.n = b.c ORDER BY 1, 2", "SELECT id, rank() OVER (ORDER BY n), lag(n) OVER (ORDER BY id) FROM named ORDER BY id", "SELECT DISTINCT n FROM named WHERE n IS DISTINCT FROM m ORDER BY 1", "SELECT upper(n) AS u, count(*) FROM named GROUP BY 1 ORDER BY 1",
		"SELECT id, coalesce(m, 'none'), CASE WHEN id > 3 THEN n ELSE 'x' END, nullif(n, 'a'), greatest(n, m) FROM named ORDER BY id", "SELECT n FROM named WHERE id < 5 UNION SELECT m FROM named ORDER BY 1", "SELECT id, starts_with(n, 'pg'), n BETWEEN 'a' AND 'b' FROM named ORDER BY id", "SELECT count(*) FROM named WHERE n = 'pg_class'::text"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM named WHERE n >= $1 AND m = $2 ORDER BY id", "a", "a")
	for _, sql := range []string{"SELECT count(*) FROM named WHERE n = '" + strings.Repeat("a", 64) + "'", "SELECT count(*) FROM named WHERE n = d", "SELECT id, n < d FROM named ORDER BY id", "SELECT id, c::name FROM named ORDER BY id", "SELECT id, coalesce(n, c) FROM named ORDER BY id", "SELECT id, coalesce(c, n) FROM named ORDER BY id",
		"SELECT id, n = b FROM named ORDER BY id", "SELECT n COLLATE \"POSIX\" FROM named ORDER BY 1", "SELECT id FROM named WHERE n = current_user ORDER BY id", "SELECT string_agg(n, ',' ORDER BY id) FROM named", "SELECT n FROM named UNION SELECT c FROM named ORDER BY 1", "SELECT c FROM named UNION SELECT n FROM named ORDER BY 1", "SELECT n FROM other ORDER BY 1",
		"SELECT id, quote_ident(n) FROM named ORDER BY id", "SELECT id, n, quote_nullable(id) FROM named ORDER BY id", "SELECT array_agg(n ORDER BY id) FROM named", "SELECT id FROM named WHERE n = ANY (ARRAY['a', 'b']) ORDER BY id", "SELECT id FROM named WHERE n = ANY (list) ORDER BY id", "SELECT to_jsonb(n) FROM named ORDER BY id"} {
		s.everyAnswer(t, false, sql)
	}
	s.everyAnswer(t, false, "SELECT id FROM named WHERE n = $1 ORDER BY id", strings.Repeat("a", 70))
}

// TestIntervalColumns computes with intervals of columns that are held in 64 bits, which others are not: months, more hours than a day
// has, two signs.
func TestIntervalColumns(t *testing.T) {
	s := privateStack(t, "CREATE TABLE took (id int PRIMARY KEY, g int, span interval, short interval(1), at timestamp, mixed interval, d date, months interval); "+
		"INSERT INTO took SELECT i, i % 3, CASE WHEN i % 7 > 0 THEN justify_hours((i % 5 - 2) * interval '7 hours 30 minutes') END, i * interval '1.27 seconds', timestamp '2024-02-28 12:00' + i * interval '1 hour', CASE WHEN i = 20 THEN interval '1 mon' ELSE interval '1 day' END, date '2024-02-28', i * interval '1 mon' FROM generate_series(0, 40) i;\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, span, short, mixed, months FROM took ORDER BY span DESC, id", "SELECT span, count(*), min(short), max(short) FROM took GROUP BY span ORDER BY span", "SELECT count(DISTINCT span), min(span), max(span) FROM took", "SELECT id FROM took WHERE span > '5 hours' OR short = interval '1.27 seconds' * 1 ORDER BY id",
		"SELECT id FROM took WHERE span < interval '1 month' AND span >= '-1 day' ORDER BY id", "SELECT id FROM took WHERE span IN ('7:30', '-7:30:00', '15 hours') ORDER BY id", "SELECT id FROM took WHERE span BETWEEN '-10 hours' AND '36:00:00' ORDER BY id", "SELECT id, extract(epoch FROM span), extract(hour FROM span), date_part('minute', short), date_trunc('hour', span) FROM took ORDER BY id",
		"SELECT id, at + span, at - short, d + span, span::text FROM took ORDER BY id", "SELECT sum(extract(epoch FROM span)), avg(extract(epoch FROM short)) FROM took", "SELECT id FROM took WHERE at - timestamp '2024-02-28 12:00' = span OR (at - timestamp '2024-02-28 12:00') < span ORDER BY id", "SELECT a.id, b.id FROM took a JOIN took b ON a.span = b.span AND a.g = b.g ORDER BY 1, 2",
		"SELECT id, rank() OVER (ORDER BY span), lag(span) OVER (ORDER BY id), coalesce(span, '1 hour'), nullif(span, '7:30'), greatest(span, short) FROM took ORDER BY id", "SELECT span FROM took UNION SELECT short FROM took WHERE id < 3 ORDER BY 1", "SELECT DISTINCT ON (g) g, span FROM took ORDER BY g, span, id", "SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY span) FROM took GROUP BY g ORDER BY g"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM took WHERE span >= $1 ORDER BY id", "7:30:00")
	for _, sql := range []string{"SELECT sum(span), avg(span), sum(mixed), avg(mixed), sum(at - timestamp '2024-01-01'), avg(at - d) FROM took", "SELECT g, sum(span) FILTER (WHERE id > 3), avg(short), sum(mixed) FROM took WHERE id <> 7 GROUP BY g ORDER BY g", "SELECT avg(span), sum(mixed) FROM took WHERE id > 1000", "SELECT count(DISTINCT mixed), count(DISTINCT span * 2), count(DISTINCT span) FROM took",
		"SELECT id, span + short, span - short, -span, span * 2, span / 2, 2.5 * short, mixed / 7 * -1.5::real, -mixed FROM took ORDER BY id", "SELECT id, span + '1 hour', '1 day' - mixed, mixed * '2', span + interval '1 mon', interval '1 year 1 day' - short FROM took ORDER BY id",
		"SELECT id, at + mixed, mixed + d, d - mixed, at - span * 3, at + (short + interval '2 mons') FROM took ORDER BY id", "SELECT id FROM took WHERE span = mixed OR short > mixed ORDER BY id", "SELECT id FROM took WHERE mixed > '1 day' OR span + short BETWEEN '1 hour' AND interval '10 hours' ORDER BY id", "SELECT id FROM took WHERE span * 2 < short ORDER BY id",
		"SELECT id FROM took ORDER BY mixed DESC, span - short, id LIMIT 9", "SELECT g, extract(epoch FROM avg(span)), date_part('hour', sum(short)) FROM took GROUP BY g HAVING sum(short) > '1 second' ORDER BY avg(span) DESC, g", "SELECT id, extract(month FROM mixed), extract(day FROM span + mixed), date_part('epoch', mixed) FROM took ORDER BY id"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id, span * $1::float8 FROM took WHERE mixed >= $2 ORDER BY id", "0.3", "1 day")
	s.everyAnswer(t, false, "SELECT id FROM took WHERE mixed >= $1 ORDER BY id", "24:00:00")
	for _, sql := range []string{"SELECT sum(DISTINCT span), avg(DISTINCT mixed) FROM took", "SELECT id, sum(span) OVER (ORDER BY id), avg(mixed) OVER (PARTITION BY g) FROM took ORDER BY id", "SELECT id, span / g FROM took ORDER BY id", "SELECT sum(span + interval '178956970 years') FROM took", "SELECT id, at + mixed * 1e9 FROM took ORDER BY id", "SELECT mixed, count(*) FROM took GROUP BY mixed ORDER BY mixed", "SELECT id, coalesce(span, '1 mon') FROM took ORDER BY id", "SELECT id, greatest(span, '1 mon') FROM took ORDER BY id",
		"SELECT id, coalesce(span, mixed) FROM took ORDER BY id", "SELECT justify_days(span) FROM took ORDER BY 1", "SELECT to_char(span, 'HH24:MI'), span || '' FROM took ORDER BY id", "SELECT id, span::interval(0), span::time FROM took ORDER BY id", "SELECT id, make_interval(hours => g) = span FROM took ORDER BY id", "SELECT array_agg(span ORDER BY id) FROM took"} {
		s.everyAnswer(t, false, sql)
	}
	s.everyAnswer(t, false, "SELECT id FROM took WHERE coalesce(span, $1) > '1 hour' ORDER BY id", "1 mon")
	direct := connect(t, s.direct.url("postgres"))
	for _, sql := range []string{"UPDATE took SET span = '25:00:00' WHERE id = 3", "INSERT INTO took VALUES (100, 1, '1 day -01:00'), (101, 1, '23:00')"} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
		s.everyAnswer(t, false, "SELECT span, count(*) FROM took GROUP BY span ORDER BY span")
		s.everyAnswer(t, false, "SELECT id, span FROM took ORDER BY id")
	}
}

// TestMoney compares and adds amounts, and asks under a lc_monetary that writes them otherwise.
func TestMoney(t *testing.T) {
	s := privateStack(t, "CREATE TABLE paid (id int PRIMARY KEY, g int, m money, n money, list money[]); "+
		"INSERT INTO paid SELECT i, i % 3, ((i % 9 - 4) * 1234.56)::numeric::money, nullif(i % 5, 2)::money, ARRAY[i::money, NULL] FROM generate_series(0, 40) i;\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, m, n, list FROM paid ORDER BY m DESC, id", "SELECT n, count(*), min(m), max(m), count(DISTINCT m) FROM paid GROUP BY n ORDER BY n", "SELECT id FROM paid WHERE m > '1,234.55' OR n = '3' ORDER BY id", "SELECT id FROM paid WHERE m IN ('-1234.56', '2469.12', '1') ORDER BY id", "SELECT id FROM paid WHERE m BETWEEN '-1' AND money '1300' ORDER BY id",
		"SELECT id, m + n, m - n, m + '1' FROM paid ORDER BY id", "SELECT a.id, b.id FROM paid a JOIN paid b ON a.m = b.m AND a.g = b.g ORDER BY 1, 2", "SELECT id, rank() OVER (ORDER BY m), lag(m) OVER (ORDER BY id), coalesce(n, '7'), nullif(n, '1'), greatest(m, n) FROM paid ORDER BY id", "SELECT DISTINCT m FROM paid ORDER BY 1", "SELECT m FROM paid UNION SELECT n FROM paid ORDER BY 1"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM paid WHERE m >= $1 ORDER BY id", "1234.56")
	for _, sql := range []string{"SELECT sum(m), sum(n) FILTER (WHERE g = 1) FROM paid", "SELECT g, sum(m), sum(m * 2) / sum(n) FROM paid GROUP BY g HAVING sum(m) < '2000' ORDER BY sum(n) DESC, g", "SELECT sum(m) FROM paid WHERE id > 1000", "SELECT id, m * 2, m / 2, m / n, 1.5 * m, m / 3.3, m * 0.07::real, g::bigint * n, m * '2', m / '3' FROM paid WHERE n <> '0' ORDER BY id", "SELECT id, m::numeric, n::numeric + 1 FROM paid ORDER BY id",
		"SELECT id, g::money, (g + 0.125)::money, (m::numeric * 3)::money, m + 1::money FROM paid ORDER BY id", "SELECT sum(m::numeric), avg(m::numeric) FROM paid"} {
		s.everyAnswer(t, true, sql)
	}
	for _, sql := range []string{"SELECT id, m::text FROM paid ORDER BY id", "SELECT id, m || '' FROM paid ORDER BY id", "SELECT sum(m) OVER (ORDER BY id), sum(m) FROM paid GROUP BY id, m", "SELECT sum(DISTINCT m) FROM paid", "SELECT id, m / g FROM paid ORDER BY id", "SELECT m * 9e18::bigint FROM paid WHERE id = 1", "SELECT sum(m + CASE id WHEN 3 THEN money '92233720368547758.07' WHEN 4 THEN '-92233720368547758.08' ELSE '0' END) FROM paid WHERE id IN (3, 4)", "SELECT count(*) FROM paid WHERE m = '(1)'", "SELECT count(*) FROM paid WHERE m > '1.005'",
		"SELECT max(m + '92233720368547758.07') FROM paid"} {
		s.everyAnswer(t, false, sql)
	}
	direct, proxied := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	alike := func(sql string) {
		t.Helper()
		if want, got := ask(t, direct, sql, nil), ask(t, proxied, sql, nil); got.String() != want.String() {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
	for _, locale := range []string{"de_DE.UTF-8", "ja_JP.UTF-8", "C"} { // the error is the same where the machine lacks it
		alike("SET lc_monetary = '" + locale + "'")
		alike("SELECT id, m FROM paid ORDER BY id")
		alike("SELECT id, m::numeric FROM paid ORDER BY id")
		alike("SELECT count(*) FROM paid WHERE m > g::money")
		alike("SELECT sum(m) / sum(n) FROM paid")
		alike("SELECT id FROM paid WHERE m > '12,34' ORDER BY id")
		alike("SELECT count(*) FROM paid WHERE m > '1,234.55'")
	}
}

// TestBitStrings compares, groups, orders and computes with strings of bits of columns and constants.
func TestBitStrings(t *testing.T) {
	s := privateStack(t, "CREATE TABLE flags (id int PRIMARY KEY, g int, b bit(8), one bit, v bit varying, short varbit(5), list bit(8)[]); "+
		"INSERT INTO flags SELECT i, i % 3, (i * 37 % 256)::bit(8), (i % 2)::bit, nullif(repeat('1', i % 9) || repeat('0', i % 4), '11')::varbit, (i % 32)::bit(5)::varbit(5), ARRAY[i::bit(8), NULL] FROM generate_series(0, 60) i;\nVACUUM ANALYZE;")
	for _, sql := range []string{"SELECT id, b, one, v, short, list FROM flags ORDER BY v DESC, b, id", "SELECT v, count(*), count(DISTINCT b) FROM flags GROUP BY v ORDER BY v", "SELECT DISTINCT one, short FROM flags ORDER BY 1, 2", "SELECT id FROM flags WHERE b = B'00100101' OR v > '110' OR b = '11111111' ORDER BY id",
		"SELECT id FROM flags WHERE v IN ('1', B'111', '') ORDER BY id", "SELECT id FROM flags WHERE b BETWEEN X'10' AND X'3F' AND one = '1' ORDER BY id", "SELECT id FROM flags WHERE b & B'00000100' <> B'00000000' ORDER BY id", "SELECT id FROM flags WHERE b = v OR short < b ORDER BY id", "SELECT a.id, c.id FROM flags a JOIN flags c ON a.v = c.v AND a.g = c.g ORDER BY 1, 2",
		"SELECT id, b & X'0F', b | B'10000000', b # B'11111111', ~b, ~v, b << 2, b >> 3, b || v, one || '0' FROM flags ORDER BY id", "SELECT id, length(v), bit_count(b), bit_length(short), octet_length(v), get_bit(b, 7), b::int, v::bit(12)::bigint, b::text, v::varchar || '!' FROM flags ORDER BY id", "SELECT id, g::bit(4), (id + 1)::bigint::bit(10) AS c, b::bit(4), v::bit(3), b::varbit(2), short::bit(8) FROM flags ORDER BY id",
		"SELECT g, sum(bit_count(b)), count(*) FILTER (WHERE get_bit(b, 0) = 1) FROM flags GROUP BY g ORDER BY g", "SELECT id, rank() OVER (ORDER BY v), lag(b) OVER (ORDER BY id), coalesce(v, '1'), nullif(b, X'25') FROM flags ORDER BY id", "SELECT v FROM flags UNION SELECT short FROM flags ORDER BY 1", "SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM flags GROUP BY g ORDER BY g"} {
		s.everyAnswer(t, true, sql)
	}
	s.everyAnswer(t, true, "SELECT id FROM flags WHERE v >= $1 AND b <> $2 ORDER BY id", "101", "00000001")
	for _, sql := range []string{"SELECT id, b & B'1' FROM flags ORDER BY id", "SELECT id, b & v FROM flags ORDER BY id", "SELECT bit_and(b), bit_or(b) FROM flags", "SELECT id, substring(b FROM 2 FOR 3), position(B'1' IN v) FROM flags ORDER BY id", "SELECT id, get_bit(v, 3) FROM flags ORDER BY id", "SELECT max(b) FROM flags", "SELECT (b || b || b || b || B'1')::int FROM flags", "SELECT id, '101'::text::varbit = v FROM flags ORDER BY id",
		"SELECT pg_typeof(b), b, format_type(pg_typeof(v), NULL) FROM flags ORDER BY id", "SELECT count(*) FROM flags WHERE v = 'x1F'"} {
		s.everyAnswer(t, false, sql)
	}
	direct := connect(t, s.direct.url("postgres"))
	for _, sql := range []string{"UPDATE flags SET v = B'0101', b = ~b WHERE id % 5 = 3", "INSERT INTO flags VALUES (100, 1, X'FF', B'0', B'', NULL)", "DELETE FROM flags WHERE id = 7"} {
		if a := ask(t, direct, sql, nil); a.err != "" {
			t.Fatal(a)
		}
		s.everyAnswer(t, true, "SELECT v, count(*), count(DISTINCT b) FROM flags GROUP BY v ORDER BY v")
	}
}
