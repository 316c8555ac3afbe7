package integration

import "testing"

// visitSchema has what statements of a device's group by and add up: identities of 64 bits, texts, moments,
// doubles of many magnitudes.
const visitSchema = `
CREATE TABLE sites (id int PRIMARY KEY, name text NOT NULL, region int NOT NULL);
INSERT INTO sites SELECT i, 'site ' || i, i % 6 FROM generate_series(1, 60) i;
CREATE TABLE visits (id bigint PRIMARY KEY, person bigint NOT NULL, site int NOT NULL, phrase text, at timestamptz NOT NULL, local timestamp, bytes int, price numeric(10,2),
  seconds double precision NOT NULL, score double precision, robot boolean);
INSERT INTO visits SELECT i, (hashint8extended(i % 700, 5)), 1 + i % 63, CASE WHEN i % 11 > 0 THEN 'phrase ' || i % 37 END, timestamptz '2022-12-31 20:17+00' + i * interval '97 minutes 1.5 seconds',
  CASE WHEN i % 9 > 0 THEN timestamp '2023-01-01' + i * interval '61 minutes' END, CASE WHEN i % 5 > 0 THEN (i * 7919::bigint % 100000)::int END, (i * 104729::bigint % 90000) / 100.0,
  (i % 997) / 7.0 + i, CASE WHEN i % 6 > 0 THEN (i % 41 - 20) * 1.1 END, CASE WHEN i % 13 > 0 THEN i % 4 = 0 END FROM generate_series(1, 9000) i;
VACUUM ANALYZE;
DELETE FROM visits WHERE id % 101 = 0;
`

// TestDeviceStatements: what a device answers of a statement, whole, is byte for byte what PostgreSQL does, but
// for the last digits of doubles that were added up.
func TestDeviceStatements(t *testing.T) {
	s := deviceStack(t, visitSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres", demandDevice))
	for _, sql := range []string{
		// Distinct values.
		"SELECT count(DISTINCT person), count(DISTINCT phrase), count(*) FROM visits",
		"SELECT site, count(DISTINCT person) AS people, count(*) FROM visits GROUP BY site ORDER BY people DESC, site LIMIT 10",
		"SELECT phrase, count(DISTINCT person) FILTER (WHERE robot), sum(DISTINCT bytes), avg(DISTINCT price) FROM visits GROUP BY phrase ORDER BY phrase",
		"SELECT s.region, count(DISTINCT v.phrase) FROM visits v JOIN sites s ON s.id = v.site GROUP BY ROLLUP (s.region) ORDER BY 1",
		"SELECT person, count(DISTINCT site) FROM visits GROUP BY person ORDER BY 2 DESC, 1 LIMIT 5",
		// Keys that 64 bits do not hold.
		"SELECT person, phrase, count(*) FROM visits GROUP BY person, phrase ORDER BY count(*) DESC, person, phrase LIMIT 10",
		"SELECT person, bytes, site, sum(price) FROM visits WHERE bytes > 90000 GROUP BY person, bytes, site ORDER BY 4 DESC, 1, 2, 3 LIMIT 20",
		// Power sums, truths.
		"SELECT site, variance(bytes), stddev(price), var_pop(bytes), stddev_pop(price) FROM visits GROUP BY site ORDER BY site",
		"SELECT bool_and(bytes > 5), bool_or(robot), every(price >= 0) FROM visits",
		"SELECT robot, percentile_cont(0.5) WITHIN GROUP (ORDER BY site), percentile_disc(0.9) WITHIN GROUP (ORDER BY phrase) FROM visits GROUP BY robot ORDER BY robot",
		"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), percentile_disc(0.9) WITHIN GROUP (ORDER BY price), percentile_cont(0.01) WITHIN GROUP (ORDER BY score DESC) FROM visits",
		"SELECT robot, percentile_cont(0.25) WITHIN GROUP (ORDER BY bytes), percentile_disc(0.75) WITHIN GROUP (ORDER BY at) FROM visits WHERE bytes > 5000 GROUP BY robot ORDER BY robot",
		"SELECT site, percentile_disc(0.5) WITHIN GROUP (ORDER BY person) FROM visits GROUP BY site ORDER BY site",
		// Doubles, rounded so far that the order of the rows does not show.
		"SELECT site, round(sum(seconds)::numeric, 3), round(avg(score)::numeric, 6), count(score) FROM visits GROUP BY site ORDER BY site",
		"SELECT round(avg(seconds)::numeric, 6), round(sum(score)::numeric, 3) FROM visits WHERE robot",
		// Doubles that are computed, and those of which least and greatest are asked, or groups made.
		"SELECT site, round(sum(seconds * 2.5 - bytes)::numeric, 2), round(avg(price::float8 / 3)::numeric, 6) FROM visits GROUP BY site ORDER BY site",
		"SELECT count(*), min(score * 3 + bytes), max(price::double precision * seconds) FROM visits WHERE seconds / 4 > bytes::float8 - 50000 AND robot IS NOT NULL",
		"SELECT score, count(*), max(score - 0.5) FROM visits GROUP BY score ORDER BY score",
		"SELECT site::float8 * 0.25 AS quarter, count(*) FROM visits GROUP BY 1 ORDER BY 1",
		// Joins with what another SELECT gives, and for existence.
		"SELECT count(*), sum(v.bytes) FROM visits v JOIN (SELECT region, max(id) AS last FROM sites GROUP BY region) r ON r.last = v.site WHERE v.bytes > 7",
		"SELECT v.phrase, count(*) FROM visits v WHERE v.site IN (SELECT id FROM sites WHERE region > 2) GROUP BY v.phrase ORDER BY v.phrase",
		"SELECT count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM sites s WHERE s.id = v.site) AND v.price > 10",
		"SELECT count(*) FROM sites s WHERE EXISTS (SELECT 1 FROM visits v WHERE v.site = s.id AND v.bytes > 99000)",
		// Joins by keys that come more than once.
		"SELECT s.region, count(*), sum(v.bytes) FROM sites s JOIN visits v ON v.site = s.id WHERE s.id > 3 GROUP BY s.region ORDER BY s.region",
		"SELECT s.name, count(v.id), max(v.price) FROM sites s LEFT JOIN visits v ON v.site = s.id AND v.bytes > 99500 GROUP BY s.name ORDER BY 2 DESC, s.name",
		"SELECT a.region, count(*), count(DISTINCT b.name), min(b.name) FROM sites a JOIN sites b ON b.region = a.region AND b.id > 7 GROUP BY a.region ORDER BY a.region",
		"SELECT count(*), sum(a.price * b.id) FROM visits a JOIN sites b ON b.region = a.site WHERE a.bytes > 500 AND b.id + a.site > 20",
		"SELECT a.id, b.name FROM visits a JOIN sites b ON b.region = a.site WHERE a.bytes > 98000 ORDER BY a.id, b.id",
		// The first rows of an order, and those that tie with the last.
		"SELECT id, price, at FROM visits ORDER BY price DESC, id LIMIT 10",
		"SELECT id, phrase, bytes FROM visits WHERE bytes > 100 ORDER BY phrase COLLATE \"C\" DESC NULLS LAST, bytes, id LIMIT 7 OFFSET 3",
		"SELECT local, id FROM visits ORDER BY local DESC, id LIMIT 5",
		"SELECT score, id FROM visits ORDER BY score NULLS FIRST, id DESC LIMIT 1600",
		"SELECT v.id, s.name, v.seconds FROM visits v JOIN sites s ON s.id = v.site WHERE s.region < 4 ORDER BY v.seconds * 2 - v.bytes, v.id LIMIT 12",
		"SELECT s.region, v.id FROM visits v JOIN sites s ON s.id = v.site ORDER BY s.region DESC, v.person, v.id LIMIT 20",
		// What another SELECT gives is scanned.
		"SELECT n, count(*), sum(bytes) FROM (SELECT site, count(*) AS n, sum(bytes) AS bytes FROM visits GROUP BY site) s GROUP BY n ORDER BY n",
		"SELECT max(b), avg(n) FROM (SELECT phrase, person, count(*) AS n, sum(bytes) AS b FROM visits GROUP BY phrase, person) s WHERE phrase > 'phrase 2'",
		"WITH d AS (SELECT DISTINCT person, site FROM visits) SELECT site, count(*) FROM d WHERE person > 0 GROUP BY site HAVING count(*) > 2 ORDER BY site",
		"SELECT rank, count(*) FROM (SELECT rank() OVER (PARTITION BY site ORDER BY price DESC) FROM visits) w WHERE rank < 5 GROUP BY rank ORDER BY rank",
		"SELECT k, sum(n) FROM (SELECT site AS k, bytes AS n FROM visits WHERE robot UNION ALL SELECT id, region FROM sites WHERE region > 2) u GROUP BY k ORDER BY k",
		// Time in zones.
		"SELECT date_trunc('month', at AT TIME ZONE 'Europe/Berlin') AS m, count(*) FROM visits GROUP BY m ORDER BY m",
		"SELECT extract(hour FROM at AT TIME ZONE 'America/New_York') AS h, count(*) FROM visits WHERE at AT TIME ZONE 'America/New_York' >= '2023-02-03' GROUP BY h ORDER BY h",
		"SELECT to_char(local, 'YYYY Month') AS m, sum(bytes) FROM visits GROUP BY m ORDER BY m",
		"SELECT date_trunc('week', local + interval '1 day') AS w, count(*), max(bytes) FROM visits GROUP BY w ORDER BY w",
		"SELECT extract(hour FROM at AT TIME ZONE 'Etc/UTC' - interval '0 second') AS h, count(*) FROM visits GROUP BY h ORDER BY h",
		"SELECT extract(hour FROM at AT TIME ZONE 'Europe/Berlin' - interval '2 days 30 minutes') AS h, count(*) FROM visits GROUP BY h ORDER BY h",
		"SELECT count(*) FROM visits WHERE local + interval '1 month' < '2023-11-30 01:00'",
		"SELECT max(at AT TIME ZONE 'Asia/Kolkata'), min(local - interval '3 months 2 days') FROM visits",
	} {
		t.Run(sql, func(t *testing.T) {
			for _, p := range protocols {
				want := ask(t, direct, sql, p.format)
				if want.err != "" || len(want.rows) == 0 {
					t.Fatalf("the server itself: %d rows, %s", len(want.rows), want.err)
				}
				s.runsOnDevice(t, 1, func() {
					s.accelerates(t, 1, func() {
						if got := ask(t, proxy, sql, p.format); got.String() != want.String() {
							t.Errorf("%s: %s", p.name, firstDifference([]byte(got.String()), []byte(want.String())))
						}
					})
				})
			}
		})
	}
}
