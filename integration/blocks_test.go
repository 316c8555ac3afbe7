package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const blocksSchema = `
CREATE TABLE here (id int PRIMARY KEY, g int, v bigint NOT NULL);
CREATE TABLE there (id int PRIMARY KEY, g int, v bigint NOT NULL);
INSERT INTO here SELECT i, nullif(i % 40, 7), 1000 FROM generate_series(1, 4000) i;
INSERT INTO there SELECT i, nullif(i % 50, 9), 1000 FROM generate_series(1, 4000) i;
ANALYZE;
`

// TestParametersInBlocks: parameters of sub-selects and derived tables, of several types for one text.
func TestParametersInBlocks(t *testing.T) {
	s := privateStack(t, blocksSchema)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	for _, c := range []struct {
		sql    string
		values [][]string
	}{
		{"SELECT count(*) FROM here WHERE g IN (SELECT g FROM there WHERE id < $1)", [][]string{{"5"}, {"0"}, {"4000"}}},
		{"SELECT count(*), sum(c) FROM (SELECT g, count(*) c FROM here WHERE id > $1 GROUP BY g HAVING count(*) > $2) s", [][]string{{"5", "3"}, {"3000", "25"}, {"4000", "1"}}},
		{"SELECT count(*) FROM here h WHERE v > (SELECT max(v) - $1 FROM there t WHERE t.g = h.g AND t.id < $2)", [][]string{{"5", "1000"}, {"0", "1000"}, {"-3", "0"}}},
		{"SELECT id FROM here WHERE id < $1 UNION SELECT id FROM there WHERE id = $2 ORDER BY 1", [][]string{{"4", "9"}, {"0", "0"}}},
		{"SELECT count(*) FROM here WHERE g NOT IN (SELECT g FROM there WHERE g IS NOT NULL AND id BETWEEN $1 AND $2)", [][]string{{"1", "20"}, {"9", "1"}}},
		{"SELECT x FROM (SELECT id AS x, row_number() OVER (ORDER BY id DESC) r FROM here) s WHERE r <= $1 ORDER BY x", [][]string{{"3"}, {"0"}}},
	} {
		for _, values := range c.values {
			for _, p := range protocols[1:] {
				s.accelerates(t, 1, func() {
					want := ask(t, direct, c.sql, p.format, values...)
					if got := ask(t, proxy, c.sql, p.format, values...); want.err != "" || got.String() != want.String() {
						t.Errorf("%s %v (%s): %s%s", c.sql, values, p.name, want.err, firstDifference([]byte(got.String()), []byte(want.String())))
					}
				})
			}
		}
	}
}

// TestBlocksShareAMoment: all blocks of a statement see one snapshot, while transactions move amounts
// from one table to the other.
func TestBlocksShareAMoment(t *testing.T) {
	s := privateStack(t, blocksSchema)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	for w := range 2 {
		conn := connect(t, s.direct.url("postgres"))
		writers.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				id := 1 + (i*7+w*2000)%4000
				sql := fmt.Sprintf("BEGIN; UPDATE here SET v = v - %d WHERE id = %d; UPDATE there SET v = v + %d WHERE id = %d; COMMIT", i%9, id, i%9, 4001-id)
				if _, err := conn.Exec(context.Background(), sql).ReadAll(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	proxy := connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	questions := []string{
		"SELECT (SELECT sum(v) FROM here) + (SELECT sum(v) FROM there)",
		"SELECT sum(v) FROM (SELECT v FROM here UNION ALL SELECT v FROM there) s",
		"WITH h AS (SELECT sum(v) a FROM here), t AS (SELECT sum(v) b FROM there) SELECT a + b FROM h, t",
		"SELECT sum(h.v) + sum((SELECT t.v FROM there t WHERE t.id = 4001 - h.id)) FROM here h",
	}
	s.accelerates(t, 20, func() {
		for i := range 36 {
			sql := questions[i%len(questions)]
			if i%3 == 0 {
				must(t, proxy, "BEGIN ISOLATION LEVEL REPEATABLE READ")
			}
			for range 1 + i%2 {
				if a := ask(t, proxy, sql, nil); a.err != "" || !strings.Contains(a.String(), "8000000") {
					t.Errorf("%s: %s", sql, a)
				}
			}
			if i%3 == 0 {
				must(t, proxy, "COMMIT")
			}
		}
	})
	cancel()
	writers.Wait()
}

// TestBlocksWithinQueryMemory: relations that --query-memory does not hold are left to the server, and
// what they took is given back.
func TestBlocksWithinQueryMemory(t *testing.T) {
	s := privateStack(t, blocksSchema, "--query-memory", "4MiB")
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	must(t, proxy, "SET pgaccel.mode = 'force'")
	compare := func(sql string) func() {
		return func() {
			if got, want := ask(t, proxy, sql, nil), ask(t, direct, sql, nil); got.String() != want.String() {
				t.Errorf("%s: %s", sql, firstDifference([]byte(got.String()), []byte(want.String())))
			}
		}
	}
	for _, sql := range []string{
		"SELECT count(*), sum(n) FROM (SELECT a.id, b.id AS n, row_number() OVER (ORDER BY a.id, b.id) r FROM here a JOIN there b ON a.g = b.g) s WHERE r > 3",
		"SELECT count(*) FROM (SELECT a.id, b.id AS n FROM here a JOIN there b ON a.g = b.g LIMIT 1000000) s",
		"SELECT count(*) FROM (SELECT a.id, b.id AS n FROM here a JOIN there b ON a.g = b.g UNION SELECT b.id, a.id FROM here a JOIN there b ON a.g = b.g) s",
	} {
		s.forwardsAll(t, compare(sql))
	}
	s.accelerates(t, 1, compare("SELECT count(*), sum(v) FROM (SELECT g, sum(v) v FROM here GROUP BY g) s"))
}
