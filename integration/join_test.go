package integration

import (
	"slices"
	"strings"
	"testing"
)

const joinSchema = `
CREATE TABLE cust (id int PRIMARY KEY, name varchar(20), region text, credit numeric(10,2), since date);
CREATE TABLE ord (id int PRIMARY KEY, cust int, at date NOT NULL, amount numeric(10,2), qty int, note text);
CREATE TABLE band (no int PRIMARY KEY, lo numeric(10,2), hi numeric(10,2), label text);
CREATE TABLE price (no int PRIMARY KEY, item int, since date, until date, cost numeric(8,3));
INSERT INTO cust SELECT i, CASE WHEN i % 13 > 0 THEN 'Name' || i % 70 END, (ARRAY['north', 'South', 'east', NULL])[i % 4 + 1], CASE WHEN i % 9 > 0 THEN (i * 37 % 1000) / 10.0 END, date '2020-01-01' + i % 300 FROM generate_series(1, 300) i;
INSERT INTO ord SELECT i, nullif(i * 7 % 340, 5), date '2020-01-01' + i % 400, CASE WHEN i % 11 > 0 THEN (i * 53 % 2000) / 10.0 END, i % 17, CASE i % 5 WHEN 0 THEN 'NAME' || i % 70 WHEN 1 THEN 'name' || i % 70 END FROM generate_series(1, 3000) i;
INSERT INTO band VALUES (1, 0, 20, 'low'), (2, 20, 100, 'mid'), (3, 100, 1000, 'high'), (4, 50, 60, 'odd'), (5, NULL, 10, 'none');
INSERT INTO price SELECT i, i % 17, date '2020-01-01' + i / 17 * 30, date '2020-01-01' + i / 17 * 30 + 29, i / 8.0 FROM generate_series(0, 160) i;
ANALYZE;
`

// joined are statements with joins of all forms.
var joined = []string{
	// Conditions of either side, or of both.
	"SELECT count(*), sum(o.amount), count(o.id) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND c.region = 'north'",
	"SELECT count(*), sum(c.credit), count(c.id) FROM ord o LEFT JOIN cust c ON o.cust = c.id AND o.qty > 5",
	"SELECT count(*), sum(c.credit), count(c.id) FROM ord o LEFT JOIN cust c ON o.cust = c.id AND o.amount > c.credit",
	"SELECT c.id, count(o.id), max(o.at) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND o.amount > c.credit GROUP BY c.id ORDER BY c.id",
	"SELECT c.id, o.id, o.amount, o.note FROM cust c LEFT JOIN ord o ON o.cust = c.id AND o.at > c.since + 200 WHERE c.id < 60 ORDER BY c.id, o.id",
	"SELECT c.region, count(o.id) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND (o.qty > 10 OR c.credit > 50) GROUP BY c.region ORDER BY 1",
	"SELECT c.name, o.note FROM ord o RIGHT JOIN cust c ON o.cust = c.id AND o.amount >= c.credit ORDER BY c.id, o.id",
	"SELECT count(*), count(c.id), count(o.id), sum(o.amount) FROM cust c FULL JOIN ord o ON o.cust = c.id AND o.amount > c.credit",
	"SELECT c.id, o.id FROM cust c FULL JOIN ord o ON o.cust = c.id AND o.qty = 3 AND c.id % 2 = 0 WHERE coalesce(c.id, o.id) < 50 ORDER BY 1, 2",
	"SELECT c.region, b.label, count(*) FROM ord o JOIN cust c ON c.id = o.cust LEFT JOIN band b ON o.amount >= b.lo AND o.amount < b.hi AND c.region <> 'east' GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT count(*), sum(p.cost * o.qty) FROM ord o LEFT JOIN price p ON p.item = o.qty AND o.at BETWEEN p.since AND p.until",
	"SELECT count(*), count(o.id) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND o.cust = c.id % 100",
	"SELECT count(*), count(c.id) FROM ord o LEFT JOIN cust c ON o.cust = c.id AND c.id = o.qty * 7 AND c.since = o.at",
	"SELECT count(*), count(x.no) FROM ord o JOIN price p ON p.no = o.qty LEFT JOIN price x ON x.item = o.qty AND x.since = p.since",
	// By the names that both sides have, and what USING merges under a name of its own.
	"SELECT * FROM (SELECT id AS cust, region FROM cust) c NATURAL JOIN ord ORDER BY id",
	"SELECT * FROM (SELECT id, qty AS no, at FROM ord) o NATURAL LEFT JOIN price NATURAL JOIN band ORDER BY id",
	"SELECT * FROM (SELECT id AS cust, since AS at, region FROM cust) c NATURAL FULL JOIN (SELECT at, amount, cust FROM ord) o ORDER BY 1, 2, 3, 4",
	"SELECT cust, c.cust, o.cust, count(*) FROM (SELECT id AS cust FROM cust) c NATURAL RIGHT JOIN ord o GROUP BY 1, 2, 3 ORDER BY 1",
	"SELECT count(*), sum(c.id), sum(hi) FROM cust c NATURAL JOIN band",
	"SELECT count(*), count(label) FROM cust c NATURAL LEFT JOIN band",
	"SELECT * FROM (SELECT 7, qty FROM ord) a NATURAL JOIN (SELECT 7, label FROM band) b ORDER BY 1, 2, 3",
	"SELECT * FROM (SELECT count(*), qty FROM ord GROUP BY qty) a NATURAL JOIN (SELECT count(*), item FROM price GROUP BY item) b ORDER BY 1, 2, 3",
	"SELECT x.no, count(*), count(b.no) FROM (SELECT qty AS no FROM ord) o LEFT JOIN band b USING (no) AS x GROUP BY x.no ORDER BY 1",
	"SELECT x.* , b.label FROM (SELECT qty AS no, id FROM ord) o FULL JOIN band b USING (no) AS x ORDER BY x.no, id",
	"SELECT y.id, y.no FROM ((SELECT qty AS no, id FROM ord) o JOIN band b USING (no) AS x) y WHERE y.id < 50 ORDER BY 1",
	// No equality.
	"SELECT o.id, b.label FROM ord o LEFT JOIN band b ON o.amount BETWEEN b.lo AND b.hi WHERE o.id < 200 ORDER BY 1, 2",
	"SELECT b.label, count(o.id), sum(o.amount) FROM band b LEFT JOIN ord o ON o.amount >= b.lo AND o.amount < b.hi GROUP BY b.label ORDER BY 1",
	"SELECT b.label, c.name FROM band b RIGHT JOIN cust c ON c.credit > b.lo AND c.credit < b.hi ORDER BY 2, 1",
	"SELECT count(*), count(b.label), count(c.id) FROM band b LEFT JOIN cust c ON c.credit <> b.lo",
	"SELECT count(*), count(b.label), count(c.id) FROM band b LEFT JOIN cust c ON true",
	"SELECT count(*), count(b.label), count(c.id) FROM cust c LEFT JOIN band b ON 1 = 1",
	"SELECT count(*), count(b.label), count(c.id) FROM cust c LEFT JOIN band b ON false",
	"SELECT count(*), count(b.label), count(c.id) FROM cust c LEFT JOIN band b ON c.region = 'north'",
	"SELECT count(*), count(b.label), count(c.id) FROM cust c LEFT JOIN band b ON b.label = 'low'",
	"SELECT count(*), sum(o.n) FROM cust c LEFT JOIN (SELECT count(*) AS n FROM ord) o ON true",
	"SELECT count(*), sum(o.n) FROM cust c LEFT JOIN (SELECT max(qty) AS n FROM ord) o ON c.id > o.n",
	// Computed keys.
	"SELECT count(*), count(c.id) FROM ord o LEFT JOIN cust c ON lower(o.note) = lower(c.name)",
	"SELECT count(*), count(c.id) FROM ord o LEFT JOIN cust c ON lower(c.name) = o.note",
	"SELECT o.id, c.name FROM ord o LEFT JOIN cust c ON c.id + 1 = o.cust WHERE o.id < 100 ORDER BY 1",
	"SELECT count(*), count(c.id) FROM ord o LEFT JOIN cust c ON c.id = o.cust + 1",
	"SELECT count(*), count(c.id) FROM ord o LEFT JOIN cust c ON coalesce(c.region, '-') = coalesce(o.note, '-')",
	"SELECT extract(month FROM o.at), count(c.id) FROM ord o LEFT JOIN cust c ON extract(month FROM c.since) = extract(month FROM o.at) AND c.region = 'north' GROUP BY 1 ORDER BY 1",
	"SELECT count(*), count(c.id) FROM ord o JOIN cust c ON lower(o.note) = lower(c.name) AND o.qty > 3",
	// Sub-selects and constants in ON.
	"SELECT count(*), count(o.id) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND o.amount > (SELECT avg(amount) FROM ord)",
	"SELECT count(*), count(o.id) FROM cust c JOIN ord o ON o.cust = c.id AND o.qty IN (SELECT item FROM price WHERE cost > 3)",
	"SELECT count(*), count(o.id) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND o.qty IN (SELECT item FROM price WHERE cost > 3)",
	"SELECT count(*), count(o.id) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND EXISTS (SELECT 1 FROM price p WHERE p.item = o.qty AND p.since > o.at)",
	"SELECT count(*), count(o.id) FROM cust c LEFT JOIN ord o ON o.cust = c.id AND o.at = (SELECT max(at) FROM ord x WHERE x.cust = c.id)",
	"SELECT count(*), count(o.id) FROM cust c JOIN ord o ON o.cust = c.id AND o.at = (SELECT max(at) FROM ord x WHERE x.cust = c.id)",
	// Outer joins of joins.
	"SELECT count(*), count(x.id) FROM cust c LEFT JOIN (ord o JOIN cust x ON x.id = o.cust + 1) ON o.cust = c.id",
	"SELECT count(*), count(b.label), count(c.id) FROM ord o LEFT JOIN cust c ON c.id = o.cust LEFT JOIN band b ON b.lo <= c.credit AND c.credit < b.hi",
	"SELECT count(*), count(b.label), count(c.id) FROM ord o LEFT JOIN cust c ON c.id = o.cust AND c.credit > 20 LEFT JOIN price p ON p.item = c.id AND p.since <= o.at LEFT JOIN band b ON b.lo = c.credit",
	"SELECT count(*), count(c2.id) FROM cust c1 LEFT JOIN cust c2 ON c1.region = c2.region AND c1.id < c2.id",
	"SELECT c1.id FROM cust c1 LEFT JOIN cust c2 ON c1.region = c2.region AND c1.credit < c2.credit WHERE c2.id IS NULL ORDER BY 1",
	"SELECT count(*) FROM ord o LEFT JOIN cust c ON o.cust = c.id AND o.amount > c.credit WHERE c.id IS NULL AND o.qty < 9",
	// LATERAL.
	"SELECT c.id, s.n, s.m FROM cust c LEFT JOIN LATERAL (SELECT count(*) AS n, max(amount) AS m FROM ord o WHERE o.cust = c.id) s ON true ORDER BY c.id",
	"SELECT c.id, s.n, s.m FROM cust c CROSS JOIN LATERAL (SELECT count(*) AS n, max(amount) AS m FROM ord o WHERE o.cust = c.id) s ORDER BY c.id",
	"SELECT c.id, s.n, s.m FROM cust c, LATERAL (SELECT sum(qty) AS n, max(amount) AS m FROM ord o WHERE o.cust = c.id AND o.amount > c.credit) s WHERE s.n > 10 ORDER BY c.id",
	"SELECT c.id, s.id, s.amount FROM cust c CROSS JOIN LATERAL (SELECT o.id, o.amount FROM ord o WHERE o.cust = c.id ORDER BY o.amount DESC NULLS LAST, o.id LIMIT 3) s ORDER BY 1, 2",
	"SELECT c.id, s.id, s.amount FROM cust c LEFT JOIN LATERAL (SELECT o.id, o.amount FROM ord o WHERE o.cust = c.id ORDER BY o.at DESC, o.id LIMIT 1) s ON true ORDER BY 1, 2",
	"SELECT c.id, s.id FROM cust c LEFT JOIN LATERAL (SELECT o.id FROM ord o WHERE o.cust = c.id ORDER BY o.at DESC, o.id LIMIT 2 OFFSET 1) s ON s.id % 2 = 0 ORDER BY 1, 2",
	"SELECT c.id, s.y FROM cust c CROSS JOIN LATERAL (SELECT c.credit + 1 AS y) s ORDER BY 1",
	"SELECT c.id, v.k, v.x FROM cust c CROSS JOIN LATERAL (VALUES ('id', c.id), ('twice', c.id * 2)) v (k, x) ORDER BY 1, 2",
	"SELECT k, count(*), sum(x) FROM ord o CROSS JOIN LATERAL (VALUES ('amount', o.amount), ('qty', o.qty::numeric(10,2))) v (k, x) GROUP BY k ORDER BY k",
	"SELECT c.id, s.label FROM cust c CROSS JOIN LATERAL (SELECT b.label FROM band b WHERE c.credit BETWEEN b.lo AND b.hi) s ORDER BY 1, 2",
	"SELECT c.id, s.label FROM cust c LEFT JOIN LATERAL (SELECT b.label FROM band b WHERE c.credit BETWEEN b.lo AND b.hi ORDER BY b.lo DESC LIMIT 1) s ON true ORDER BY 1",
	"SELECT o.id, p.cost FROM ord o LEFT JOIN LATERAL (SELECT cost FROM price WHERE item = o.qty AND since <= o.at ORDER BY since DESC LIMIT 1) p ON true WHERE o.id < 500 ORDER BY 1",
	"SELECT c.region, s.d, s.n FROM cust c JOIN LATERAL (SELECT o.qty AS d, count(*) AS n FROM ord o WHERE o.cust = c.id GROUP BY o.qty HAVING count(*) > 1) s ON s.d > 3 ORDER BY c.id, 2, 3",
	"SELECT c.id, s.id, s.r FROM cust c CROSS JOIN LATERAL (SELECT o.id, row_number() OVER (ORDER BY o.at, o.id) AS r FROM ord o WHERE o.cust = c.id) s WHERE s.r <= 2 ORDER BY 1, 2",
	"SELECT c.id, s.n, t.m FROM cust c CROSS JOIN LATERAL (SELECT count(*) AS n FROM ord o WHERE o.cust = c.id) s LEFT JOIN LATERAL (SELECT max(p.cost) AS m FROM price p WHERE p.item = s.n) t ON true ORDER BY 1",
	"SELECT c.id, s.x FROM cust c CROSS JOIN LATERAL (SELECT o.qty AS x FROM ord o WHERE o.cust = c.id UNION SELECT p.item FROM price p WHERE p.item = c.id) s ORDER BY 1, 2",
	"SELECT c.id, s.x FROM cust c CROSS JOIN LATERAL (SELECT DISTINCT o.qty AS x FROM ord o WHERE o.cust = c.id) s ORDER BY 1, 2",
	"SELECT c.id, s.n FROM cust c CROSS JOIN LATERAL (SELECT count(*) AS n FROM band b WHERE b.lo > c.credit ORDER BY 1) s ORDER BY 1",
	"SELECT c.id, s.n, s.m FROM cust c CROSS JOIN LATERAL (SELECT count(*) AS n, max(b.label) AS m FROM band b WHERE b.lo > c.credit HAVING count(*) < 3) s WHERE s.n > 0 OR s.m IS NULL ORDER BY 1",
	"SELECT c.id, s.n FROM cust c LEFT JOIN LATERAL (SELECT 1 + coalesce(sum(o.qty), c.id) AS n FROM ord o WHERE o.cust = c.id LIMIT 1) s ON c.credit > 50 ORDER BY 1",
	"SELECT c.id, (SELECT max(s.n) FROM (SELECT count(*) AS n FROM ord o WHERE o.cust = c.id) s) FROM cust c ORDER BY 1",
	// Correlated sub-selects.
	"SELECT c.id, (SELECT o.amount FROM ord o WHERE o.cust = c.id ORDER BY o.at DESC, o.id LIMIT 1) FROM cust c ORDER BY 1",
	"SELECT c.id, (SELECT count(*) FROM ord o WHERE o.cust = c.id AND o.amount > c.credit) FROM cust c ORDER BY 1",
	"SELECT c.id, (SELECT count(*) FROM cust x WHERE x.credit > c.credit) + 1 AS rank FROM cust c ORDER BY 1",
	"SELECT c.id, (SELECT sum(o.amount) FROM ord o WHERE o.cust = c.id AND o.at >= c.since AND o.at < c.since + 90) FROM cust c ORDER BY 1",
	"SELECT c.region, (SELECT count(*) FROM ord o WHERE o.note = c.region) FROM cust c GROUP BY c.region ORDER BY 1",
	"SELECT c.region, sum(c.credit), (SELECT count(*) FROM cust x WHERE x.region = c.region AND x.credit > 50) FROM cust c GROUP BY c.region ORDER BY 1",
	"SELECT c.region, count(*) FROM cust c GROUP BY c.region HAVING count(*) > (SELECT count(*) FROM band b WHERE b.label < c.region) ORDER BY 1",
	"SELECT c.region, count(*) FROM cust c GROUP BY c.region HAVING EXISTS (SELECT 1 FROM ord o WHERE o.note > c.region) ORDER BY 1",
	"SELECT c.id FROM cust c WHERE c.credit > 90 OR EXISTS (SELECT 1 FROM ord o WHERE o.cust = c.id AND o.amount > c.credit + 150 AND o.at > c.since) ORDER BY 1",
	"SELECT c.id FROM cust c WHERE NOT EXISTS (SELECT 1 FROM ord o WHERE o.cust = c.id AND o.amount > c.credit AND o.at > c.since) ORDER BY 1",
	"SELECT c.id FROM cust c WHERE c.id IN (SELECT o.cust FROM ord o WHERE o.amount > c.credit AND o.qty < c.id) ORDER BY 1",
	"SELECT c.id FROM cust c WHERE c.credit NOT IN (SELECT o.amount FROM ord o WHERE o.cust = c.id) ORDER BY 1",
	"SELECT c.id FROM cust c WHERE c.credit > ALL (SELECT o.amount FROM ord o WHERE o.cust = c.id) ORDER BY 1",
	"SELECT c.id, CASE WHEN c.credit > 50 THEN (SELECT max(o.amount) FROM ord o WHERE o.cust = c.id) ELSE (SELECT min(o.amount) FROM ord o WHERE o.cust = c.id) END FROM cust c ORDER BY 1",
	"SELECT c.id, c.credit IN (SELECT o.amount FROM ord o WHERE o.cust = c.id) FROM cust c ORDER BY 1",
	"SELECT c.id, (SELECT b.label FROM band b WHERE c.credit > b.lo AND c.credit < b.hi ORDER BY b.lo DESC LIMIT 1) FROM cust c ORDER BY 1",
	"SELECT c.id, (SELECT x.name FROM cust x WHERE x.id = c.id + 1) FROM cust c ORDER BY 1",
	"SELECT o.id, (SELECT c.name || '!' FROM cust c WHERE c.id = o.cust AND c.credit > o.amount) FROM ord o WHERE o.id < 300 ORDER BY 1",
	"SELECT count(*) FILTER (WHERE c.id IN (SELECT cust FROM ord)) FROM band b RIGHT JOIN cust c ON b.lo = c.credit",
	"SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM ord o WHERE o.amount = b.lo)) FROM band b RIGHT JOIN cust c ON b.lo = c.credit",
	// Conditions that go to what a join equates them with.
	"SELECT c.id, s.n, s.m FROM cust c LEFT JOIN (SELECT cust, count(*) AS n, max(amount) AS m FROM ord GROUP BY cust) s ON s.cust = c.id WHERE c.id BETWEEN 20 AND 40 ORDER BY 1",
	"SELECT c.id, s.n FROM cust c LEFT JOIN (SELECT cust, count(*) AS n FROM ord GROUP BY cust) s ON s.cust = c.id WHERE c.id IN (3, 5, 7) OR c.id = 9 ORDER BY 1",
	"SELECT c.id, s.n FROM cust c JOIN (SELECT cust, count(*) AS n FROM ord GROUP BY cust) s ON s.cust = c.id WHERE c.id < 9 AND c.region IS NOT NULL ORDER BY 1",
	"SELECT c.region, s.n FROM cust c LEFT JOIN (SELECT note, count(*) AS n FROM ord GROUP BY note) s ON s.note = c.region WHERE c.region IS NULL OR c.region > 'f' ORDER BY c.id",
	"SELECT c.id, s.n FROM cust c LEFT JOIN (SELECT note, count(*) AS n FROM ord GROUP BY note) s ON s.note = c.name WHERE lower(c.name) = 'name5' ORDER BY 1",
	"SELECT c.id, o.id FROM cust c LEFT JOIN ord o ON o.cust = c.id AND o.qty > 12 WHERE c.id % 50 = 1 AND c.id > 100 ORDER BY 1, 2",
	"SELECT a.cust, a.n, b.n FROM (SELECT cust, at, count(*) AS n FROM ord GROUP BY cust, at) a LEFT JOIN (SELECT cust, at, count(*) AS n FROM ord WHERE qty > 5 GROUP BY cust, at) b ON a.cust = b.cust AND a.at = b.at WHERE a.at < date '2020-02-01' AND a.cust > 30 ORDER BY 1, 2, 3",
	"SELECT c.id, s.n, coalesce(s.m, 0) + coalesce(t.m, 0) FROM cust c LEFT JOIN (SELECT cust, count(*) AS n, sum(amount) AS m FROM ord WHERE qty < 9 GROUP BY cust) s ON s.cust = c.id LEFT JOIN (SELECT cust, sum(amount) AS m FROM ord GROUP BY cust) t ON t.cust = c.id WHERE c.id > 250 ORDER BY coalesce(s.m, 0) DESC, 1 LIMIT 20",
	// Full joins of what is computed once; the sides of a UNION.
	"SELECT a.k, b.k, a.n, b.n FROM (SELECT cust AS k, count(*) AS n FROM ord WHERE qty > 5 GROUP BY cust) a FULL JOIN (SELECT id AS k, sum(credit) AS n FROM cust WHERE id % 2 = 0 GROUP BY id) b ON a.k = b.k ORDER BY a.k, b.k",
	"SELECT a.k, b.k, a.r, b.r FROM (SELECT cust AS k, at, row_number() OVER (PARTITION BY cust ORDER BY id) AS r FROM ord) a FULL JOIN (SELECT id AS k, since AS at, rank() OVER (ORDER BY since, id) AS r FROM cust) b ON a.k = b.k AND a.at = b.at ORDER BY 1, 2, 3, 4",
	"SELECT a.k, b.k, a.s, b.s FROM (SELECT cust AS k, at, sum(sum(amount)) OVER (PARTITION BY cust ORDER BY at) AS s FROM ord WHERE cust < 20 GROUP BY cust, at) a FULL JOIN (SELECT cust AS k, at, sum(sum(qty)) OVER (PARTITION BY cust ORDER BY at) AS s FROM ord WHERE cust > 10 GROUP BY cust, at) b ON a.k = b.k AND a.at = b.at ORDER BY 1, 2, 3, 4",
	"SELECT * FROM (SELECT cust AS k, at FROM ord UNION SELECT id, since FROM cust UNION SELECT item, since FROM price) u ORDER BY 1, 2",
	"SELECT * FROM (SELECT cust AS k, qty - coalesce(qty, 0) AS n, amount - coalesce(amount, 0.0) AS m FROM ord UNION ALL SELECT id, 1, 2.51 FROM cust UNION SELECT item, 0, cost FROM price WHERE cost BETWEEN 0.1 AND 0.2) u ORDER BY 1, 2, 3",
	"SELECT cust, sum(amount - coalesce(amount, 0)), max(coalesce(amount, 1.5) + amount), min(CASE WHEN qty > 3 THEN amount WHEN qty > 2 THEN 7 END - amount) FROM ord GROUP BY cust ORDER BY 1",
	"SELECT id, amount - coalesce(amount, 1.234), coalesce(amount, 0) - amount, amount + CASE WHEN qty > 5 THEN NULL WHEN qty > 2 THEN 1 ELSE 2.5 END FROM ord WHERE id < 100 ORDER BY 1",
}

// TestJoins: outer joins on any condition, LATERAL, correlated sub-selects.
func TestJoins(t *testing.T) {
	s := privateStack(t, joinSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	sorted := func(a answer, sql string) string {
		if !strings.Contains(sql, "ORDER BY") {
			slices.Sort(a.rows)
		}
		return a.String()
	}
	for _, sql := range joined {
		for _, p := range protocols {
			before := s.queries(t, "accelerated")
			want, got := sorted(ask(t, direct, sql, p.format), sql), sorted(ask(t, proxy, sql, p.format), sql)
			if got != want {
				t.Errorf("%s (%s):%s", sql, p.name, firstDifference([]byte(got), []byte(want)))
			}
			if s.queries(t, "accelerated") == before {
				why := ask(t, proxy, "SELECT reason || ': ' || detail FROM pgaccel.queries ORDER BY last_used DESC LIMIT 1", nil)
				t.Errorf("%s (%s) is forwarded: %s", sql, p.name, why)
				break
			}
		}
	}
}
