package advise

import (
	"context"
	"testing"
)

// tables are some whose columns are like those that are met: keys that ascend, times, few and many
// texts, scattered and side by side, numbers of all kinds, nulls, long documents, keys that are kept as hashes.
const tables = `
CREATE TABLE events (id bigserial PRIMARY KEY, at timestamptz NOT NULL, kind text, session text, url text, amount numeric(12,2), score float8, day date, code int, note text, price numeric);
INSERT INTO events (at, kind, session, url, amount, score, day, code, note, price)
 SELECT '2024-01-01'::timestamptz + i * interval '3.7 s', (ARRAY['click','view','buy','leave'])[1 + floor(3.99 * random()^2)::int], md5((i / 40)::text),
  'https://example.org/' || floor(10000 * random()^3)::int || '/page', round((random() * 1000)::numeric, 2), random(), '2024-01-01'::date + (random() * 700)::int,
  floor(random() * 1000000)::int, CASE WHEN i % 7 = 0 THEN 'note ' || md5(i::text) END, round((exp(random() * 8))::numeric, 3)
 FROM generate_series(1, 200000) i;
CREATE TABLE lines (orderkey int, linenumber int, orderdate int, quantity int, discount int, mode char(10), PRIMARY KEY (orderkey, linenumber));
INSERT INTO lines SELECT i / 4, i % 4, 19920101 + (i / 900) % 28 + 100 * ((i / 30000) % 12), 1 + floor(random() * 50)::int, floor(random() * 11)::int, (ARRAY['AIR','RAIL','SHIP','TRUCK'])[1 + i % 4]
 FROM generate_series(0, 299999) i;
CREATE TABLE docs (id int PRIMARY KEY, body text, tags jsonb, attrs text[]);
INSERT INTO docs SELECT i, (SELECT string_agg(md5((i * 50 + j)::text), ' ') FROM generate_series(1, 20) j), jsonb_build_object('a', i % 100, 'b', md5((i % 1000)::text)), ARRAY[(i % 10)::text, (i % 13)::text]
 FROM generate_series(1, 12000) i;
CREATE TABLE parts (at date, id int, v text, PRIMARY KEY (at, id)) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
INSERT INTO parts SELECT '2024-01-01'::date + i % 91, i, 'v' || i % 5000 FROM generate_series(1, 300000) i;
CREATE TABLE small (id int PRIMARY KEY, name text); INSERT INTO small SELECT i, 'name ' || i FROM generate_series(1, 100) i;
CREATE TABLE empty (id int PRIMARY KEY, name text);
CREATE TYPE pair AS (x int, y text); CREATE TABLE hashed (k pair PRIMARY KEY, v int); INSERT INTO hashed SELECT (i, 'y')::pair, i % 100 FROM generate_series(1, 150000) i;
`

// TestMemory: what is estimated is within 30 % of what the copies take, with statistics and without.
func TestMemory(t *testing.T) {
	url := database(t, postgres, tables)
	estimates := map[string][]memory{}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			exec(t, url, "ANALYZE")
		}
		s := survey(t, url)
		for _, table := range s.Catalog.Tables {
			m, err := memoryOf(context.Background(), s, table, true)
			if err != nil {
				t.Fatal(err)
			}
			estimates[table.QualifiedName()] = append(estimates[table.QualifiedName()], m)
		}
	}
	for name, bytes := range copied(t, url) {
		for _, m := range estimates[name] {
			t.Logf("%s: %+v of %d", name, m, bytes)
			if d := float64(m.Bytes - bytes); d > 0.3*float64(bytes) || -d > 0.3*float64(bytes) {
				t.Errorf("%s: %+v, the copy takes %d", name, m, bytes)
			}
		}
		if len(estimates[name]) != 2 {
			t.Errorf("%s: %v", name, estimates[name])
		}
	}
}

// TestMemoryWithoutStatistics: a server that keeps its statistics from a role leaves the sample.
func TestMemoryWithoutStatistics(t *testing.T) {
	url := database(t, postgres, `CREATE TABLE logs (id int PRIMARY KEY, line text); INSERT INTO logs SELECT i, md5((i / 3)::text) FROM generate_series(1, 150000) i;
CREATE TABLE few (id int PRIMARY KEY, line text); INSERT INTO few SELECT i, 'x' FROM generate_series(1, 100) i; REVOKE SELECT ON pg_stats FROM PUBLIC`)
	s := survey(t, role(t, url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO ROLE"))
	for _, table := range s.Catalog.Tables {
		m, err := memoryOf(context.Background(), s, table, true)
		if want := map[string]string{"logs": bySample, "few": byAll}[table.Name]; err != nil || m.Method != want || m.Bytes == 0 {
			t.Errorf("%s: %+v, %v", table.Name, m, err)
		}
	}
}
