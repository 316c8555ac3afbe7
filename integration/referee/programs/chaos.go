package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

const chaosSchema = `
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b text COLLATE "C", m mood);
INSERT INTO t SELECT i, i % 10, 'b' || i % 3, 'ok' FROM generate_series(1, 500) i;
CREATE TABLE p (id int NOT NULL, part int NOT NULL, a int NOT NULL, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE p_0 PARTITION OF p FOR VALUES IN (0);
CREATE TABLE p_1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p_2 PARTITION OF p FOR VALUES IN (2);
INSERT INTO p SELECT i, i % 3, i % 10 FROM generate_series(1, 300) i;
CREATE TABLE s1 (id int PRIMARY KEY, a int NOT NULL);
CREATE TABLE s2 (id int PRIMARY KEY, a int NOT NULL);
INSERT INTO s1 SELECT i, 1 FROM generate_series(1, 100) i;
INSERT INTO s2 SELECT i, 2 FROM generate_series(1, 200) i;
CREATE TABLE d (id int PRIMARY KEY, a int NOT NULL);
INSERT INTO d SELECT i, i FROM generate_series(1, 100) i;
CREATE SCHEMA other;
CREATE ROLE app LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO app;
CREATE POLICY few ON t FOR SELECT TO app USING (id <= 10);
VACUUM ANALYZE;
`

// chaosQueries are what all sessions ask. The columns are named, so that a changed
// definition fails them as well as it changes their answers.
var chaosQueries = []string{
	"SELECT count(*), sum(a), min(a), max(a), max(id) FROM t WHERE id > 0{}",
	"SELECT a, count(*), max(id) FROM t WHERE id > 0{} GROUP BY a ORDER BY a",
	"SELECT id, a, b FROM t WHERE id < 20{} ORDER BY id, a, b",
	"SELECT b, count(*) FROM t WHERE a = a{} GROUP BY b ORDER BY b",
	"SELECT part, count(*), sum(a), max(id) FROM p WHERE id > 0{} GROUP BY part ORDER BY part",
	"SELECT count(*), sum(a), max(id) FROM s1 WHERE id > 0{}",
	"SELECT count(*), sum(a), max(id) FROM s2 WHERE id > 0{}",
	"SELECT count(*), sum(a), max(id) FROM d WHERE id > 0{}",
	"SELECT s1.a, count(*), sum(t.a) FROM t JOIN s1 ON t.id = s1.id WHERE t.id > 0{} GROUP BY s1.a ORDER BY s1.a",
	"SELECT sum(mod(a, 7)), count(*) FROM t WHERE abs(a) >= 0{}",
}

// chaosMoods concerns an enum, whose labels are not in the columns.
const chaosMoods = "SELECT m, count(*) FROM t GROUP BY m ORDER BY m"

// chaos changes the schema in every way while others write and read, and compares
// after each step: the stream says nothing of most of them.
type chaos struct {
	w *world
	// Held for reading by each operation of writers and readers. The steps are taken
	// under load; for the comparison behind them all others are held up.
	traffic sync.RWMutex
}

func newChaos(w *world) *chaos { return &chaos{w: w} }

func (c *chaos) queries() []string {
	var all []string
	for _, q := range chaosQueries {
		all = append(all, strings.Replace(q, "{}", "", 1))
	}
	return all
}

func (c *chaos) recovered(*session) {}

func (c *chaos) run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { c.writer(ctx, i) })
		wg.Go(func() { c.reader(ctx, i) })
	}
	c.changer(ctx)
	wg.Wait()
	s := c.w.session("chaos-restore", direct)
	defer s.close()
	for _, sql := range chaosRestore {
		if _, err := s.do(sql); err != nil {
			s.rollback()
		}
	}
}

// chaosRestore undoes what a step may have left of which a part failed, except
// contents: others hold locks, and deadlocks end somebody.
var chaosRestore = []string{
	"ALTER TABLE t DISABLE ROW LEVEL SECURITY", "DROP TABLE IF EXISTS t_child", "ANALYZE t", "ALTER TABLE p ATTACH PARTITION p_2 FOR VALUES IN (2)", "ALTER TABLE other.t SET SCHEMA public",
	"ALTER TABLE t DROP COLUMN IF EXISTS extra", "DROP OPERATOR IF EXISTS public.= (int, int)", "DROP FUNCTION IF EXISTS public.mod(int, int)", "DROP AGGREGATE IF EXISTS public.sum(int)",
	"BEGIN; DROP VIEW d; COMMIT", "CREATE TABLE IF NOT EXISTS d (id int PRIMARY KEY, a int NOT NULL)",
	"DELETE FROM d a USING d b WHERE a.id = b.id AND a.ctid < b.ctid", "ALTER TABLE d ADD PRIMARY KEY (id)", "ALTER TABLE t REPLICA IDENTITY DEFAULT",
	"ALTER TABLE t RENAME COLUMN bb TO b", "ALTER TABLE t RENAME COLUMN aa TO a", "ALTER TYPE mood RENAME VALUE 'fine' TO 'ok'", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO app",
}

// writer changes rows; that schema changes make statements fail is no matter.
func (c *chaos) writer(ctx context.Context, number int) {
	name := fmt.Sprint("chaos-w", number)
	r := c.w.random(name)
	sessions := []*session{c.w.session(name, direct), c.w.session(name, through)}
	defer sessions[0].close()
	defer sessions[1].close()
	for n := 0; ctx.Err() == nil; n++ {
		s := sessions[r.IntN(2)]
		sql := []string{
			fmt.Sprintf("UPDATE t SET a = a + 1 WHERE id = %d", 1+r.IntN(500)),
			fmt.Sprintf("INSERT INTO t (id, a, b, m) VALUES (%d, 3, 'new', 'sad') ON CONFLICT DO NOTHING", 1+r.IntN(600)),
			fmt.Sprintf("DELETE FROM t WHERE id = %d", 1+r.IntN(600)),
			fmt.Sprintf("INSERT INTO p VALUES (%d, %d, 5) ON CONFLICT DO NOTHING", 1+r.IntN(500), r.IntN(3)),
			fmt.Sprintf("UPDATE p SET part = (part + 1) %% 3 WHERE id = %d", 1+r.IntN(500)),
			fmt.Sprintf("UPDATE s1 SET a = a + 1 WHERE id = %d", 1+r.IntN(100)),
			fmt.Sprintf("UPDATE s2 SET a = a + 1 WHERE id = %d", 1+r.IntN(200)),
			fmt.Sprintf("UPDATE d SET a = -a WHERE id = %d", 1+r.IntN(100)),
			fmt.Sprintf("BEGIN; UPDATE t SET a = a - 1, b = 'w' WHERE id = %d; INSERT INTO d VALUES (%d, 1) ON CONFLICT DO NOTHING; COMMIT", 1+r.IntN(500), 1+r.IntN(300)),
		}[r.IntN(9)]
		c.traffic.RLock()
		if _, err := s.do(sql); err != nil {
			s.rollback()
			if sqlState(err) == "55000" {
				c.w.violate("%s cannot write: %v", s.name, err)
			}
		}
		c.traffic.RUnlock()
		if r.IntN(20) == 0 {
			time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
		}
	}
}

// reader asks both ways within one transaction. Whichever comes first locks the
// table, so that no change comes between.
func (c *chaos) reader(ctx context.Context, number int) {
	name := fmt.Sprint("chaos-r", number)
	r := c.w.random(name)
	s := c.w.session(name, through)
	defer s.close()
	for ctx.Err() == nil {
		c.traffic.RLock()
		err := c.compare(s, r)
		c.traffic.RUnlock()
		if err != nil {
			s.rollback()
		}
	}
}

func (c *chaos) compare(s *session, r *rand.Rand) error {
	if err := s.all("BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		return err
	}
	q := chaosQueries[r.IntN(len(chaosQueries))]
	const forwarded = " AND pg_backend_pid() > 0"
	order := [][]string{{"", forwarded}, {forwarded, ""}}[r.IntN(2)]
	if strings.Contains(q, "FROM p ") {
		// ATTACH and DETACH CONCURRENTLY do not wait for readers, and show at once in
		// every snapshot: what is asked between must be the one or the other.
		order = []string{forwarded, "", forwarded}
	}
	answers := map[string][]string{}
	for _, more := range order {
		if more == "" {
			c.w.reads.Add(1)
		}
		a, err := s.do(strings.Replace(q, "{}", more, 1))
		if err != nil {
			return err
		}
		answers[more] = append(answers[more], a.String())
	}
	if got := answers[""][0]; !slices.Contains(answers[forwarded], got) {
		c.w.violate("%s: accelerated and forwarded in one transaction: %s\naccelerated: %s\nforwarded: %s", s.name, q, got, answers[forwarded])
	}
	return s.all("COMMIT")
}

// changer takes step after step, and compares after each.
func (c *chaos) changer(ctx context.Context) {
	r := c.w.random("chaos")
	way := []*session{c.w.session("chaos-ddl", direct), c.w.session("chaos-ddl", through)}
	// Sessions of the owner, of a role with rights, and of one whose search_path asks
	// for trouble; pairs of direct and through pgaccel.
	var pairs [][2]*session
	for _, settings := range [][]string{nil, {"SET ROLE app"}, {"SET search_path = public, pg_catalog"}, {"SET search_path = other, public"}} {
		pairs = append(pairs, [2]*session{c.w.session("chaos-plain", direct, settings...), c.w.session("chaos-fast", through, settings...)})
	}
	defer func() {
		for _, p := range append(pairs, [2]*session{way[0], way[1]}) {
			p[0].close()
			p[1].close()
		}
	}()
	steps := r.Perm(len(chaosSteps))
	for n := 0; ctx.Err() == nil; n++ {
		step := chaosSteps[steps[n%len(steps)]]
		s := way[r.IntN(2)]
		for _, part := range step(c, r) {
			quiet := r.IntN(3) == 0 // the change itself under load or not
			if quiet {
				c.traffic.Lock()
			}
			c.change(s, part, r)
			if !quiet {
				c.traffic.Lock()
			}
			err := c.compareAll(pairs, r)
			if err == nil && r.IntN(30) == 0 {
				err = c.w.accelerates(pairs[0][1], "SELECT count(*), min(a), max(id) FROM s1 WHERE id > 0") // nothing that a step shadows
			}
			c.traffic.Unlock()
			if err != nil {
				c.w.violate("after %s: %v", part, err)
				return
			}
			if r.IntN(4) == 0 { // time for a new copy
				time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
			}
		}
	}
}

// change takes one step: alone, in a transaction, or in one that is rolled back
// first. It may fail: others hold locks, or an earlier step did not happen.
func (c *chaos) change(s *session, sql string, r *rand.Rand) {
	if sql == "" {
		return
	}
	alone := strings.HasPrefix(sql, "VACUUM") || strings.HasPrefix(sql, "CLUSTER") || strings.Contains(sql, "CONCURRENTLY") || strings.HasPrefix(sql, "BEGIN")
	var err error
	switch {
	case alone || r.IntN(2) == 0:
		_, err = s.do(sql)
	case r.IntN(3) == 0:
		if s.all("BEGIN", sql, "ROLLBACK") != nil {
			s.rollback()
		}
		_, err = s.do(sql)
	default:
		err = s.all("BEGIN", sql, "COMMIT")
	}
	if err != nil {
		s.rollback()
	}
}

func (c *chaos) compareAll(pairs [][2]*session, r *rand.Rand) error {
	var asked []string
	for _, q := range append(chaosQueries, chaosMoods) {
		asked = append(asked, strings.Replace(q, "{}", "", 1))
	}
	for _, pair := range pairs {
		for _, q := range asked {
			if r.IntN(3) == 0 {
				continue
			}
			c.w.reads.Add(1)
			if err := c.w.same(pair[0], pair[1], q); err != nil {
				return err
			}
		}
	}
	return nil
}

// chaosSteps are the changes: each gives statements, after each of which answers are
// compared.
var chaosSteps = []func(c *chaos, r *rand.Rand) []string{
	func(*chaos, *rand.Rand) []string {
		return []string{"ALTER TABLE t ALTER a TYPE int USING a + 100", "UPDATE t SET a = a - 100"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"ALTER TABLE t ADD COLUMN extra timestamptz DEFAULT clock_timestamp()", "INSERT INTO t (id, a) VALUES (601, 1) ON CONFLICT DO NOTHING", "ALTER TABLE t DROP COLUMN extra"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"ALTER TABLE t ADD COLUMN extra int DEFAULT 7", "ALTER TABLE t DROP COLUMN extra"}
	},
	func(_ *chaos, r *rand.Rand) []string {
		return []string{"ALTER TABLE p DETACH PARTITION p_2" + []string{"", " CONCURRENTLY"}[r.IntN(2)],
			fmt.Sprintf("INSERT INTO p_2 VALUES (%d, 2, 9) ON CONFLICT DO NOTHING", 1000+r.IntN(100)), "ALTER TABLE p ATTACH PARTITION p_2 FOR VALUES IN (2)"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"TRUNCATE p_1", "INSERT INTO p SELECT i, 1, i FROM generate_series(1, 50) i ON CONFLICT DO NOTHING"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"BEGIN; TRUNCATE t; INSERT INTO t (id, a, b, m) SELECT i, i % 10, 'again', 'happy' FROM generate_series(1, 400) i; COMMIT"}
	},
	func(c *chaos, r *rand.Rand) []string {
		s := c.w.session("chaos-publication", direct)
		defer s.close()
		a, err := s.do("SELECT pubname FROM pg_publication WHERE pubname LIKE 'pgaccel%'")
		if err != nil || len(a.rows) == 0 {
			return nil
		}
		alter := "ALTER PUBLICATION " + a.rows[0][0]
		return []string{alter + " DROP TABLE t", "UPDATE t SET a = a + 1 WHERE id < 100", alter + " ADD TABLE t"}
	},
	func(*chaos, *rand.Rand) []string { return []string{"VACUUM FULL t"} },
	func(*chaos, *rand.Rand) []string { return []string{"CLUSTER t USING t_pkey", "REINDEX TABLE t"} },
	func(*chaos, *rand.Rand) []string {
		return []string{"BEGIN; ALTER TABLE s1 RENAME TO s3; ALTER TABLE s2 RENAME TO s1; ALTER TABLE s3 RENAME TO s2; COMMIT"}
	},
	func(_ *chaos, r *rand.Rand) []string {
		return []string{fmt.Sprintf("BEGIN; DROP TABLE d; CREATE TABLE d (id int PRIMARY KEY, a int NOT NULL); INSERT INTO d SELECT i, %d FROM generate_series(1, 100) i; GRANT SELECT ON d TO app; COMMIT", r.IntN(100)),
			"DROP TABLE d", fmt.Sprintf("CREATE TABLE d AS SELECT i AS id, %d AS a FROM generate_series(1, 50) i", r.IntN(100)), "ALTER TABLE d ADD PRIMARY KEY (id), ALTER a SET NOT NULL"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"BEGIN; DROP TABLE d; CREATE VIEW d AS SELECT id, a FROM s1; COMMIT", "BEGIN; DROP VIEW d; CREATE TABLE d (id int PRIMARY KEY, a int NOT NULL); INSERT INTO d VALUES (1, 1); COMMIT"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'", "ALTER TYPE mood RENAME VALUE 'fine' TO 'ok'"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"CREATE FUNCTION public.mod(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1000'", "DROP FUNCTION public.mod(int, int)"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"CREATE AGGREGATE public.sum(int) (SFUNC = int4larger, STYPE = int)", "DROP AGGREGATE public.sum(int)"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"CREATE OPERATOR public.= (FUNCTION = int4ne, LEFTARG = int, RIGHTARG = int)", "DROP OPERATOR public.= (int, int)"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"REVOKE SELECT ON t FROM app", "GRANT SELECT (id, a) ON t TO app", "GRANT SELECT ON t TO app"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"ALTER TABLE t ENABLE ROW LEVEL SECURITY", "ALTER TABLE t DISABLE ROW LEVEL SECURITY"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"ALTER TABLE t RENAME COLUMN b TO bb", "ALTER TABLE t RENAME COLUMN bb TO b"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"BEGIN; ALTER TABLE t RENAME COLUMN a TO aa; ALTER TABLE t RENAME COLUMN id TO a; ALTER TABLE t RENAME COLUMN aa TO id; COMMIT",
			"BEGIN; ALTER TABLE t RENAME COLUMN a TO aa; ALTER TABLE t RENAME COLUMN id TO a; ALTER TABLE t RENAME COLUMN aa TO id; COMMIT"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"BEGIN; ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD CONSTRAINT t_pkey PRIMARY KEY (id); COMMIT", "ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET a = 5 WHERE id < 10", "ALTER TABLE t REPLICA IDENTITY DEFAULT"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"ALTER TABLE t SET SCHEMA other", "ALTER TABLE other.t SET SCHEMA public"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"BEGIN; CREATE TABLE other.t (id int PRIMARY KEY, a int, b text); INSERT INTO other.t VALUES (1, 2, 'other'); GRANT USAGE ON SCHEMA other TO app; COMMIT", "DROP TABLE other.t"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"CREATE TABLE t_child (PRIMARY KEY (id)) INHERITS (t)", "INSERT INTO t_child (id, a, b) VALUES (9999, 9999, 'child')", "DROP TABLE t_child", "ANALYZE t"}
	},
	func(*chaos, *rand.Rand) []string {
		return []string{"CREATE INDEX CONCURRENTLY t_a ON t (a)", "DROP INDEX t_a", "ANALYZE t", "COMMENT ON TABLE t IS 'chaos'", "ALTER TABLE t ALTER a SET STATISTICS 10", "ALTER TABLE t ALTER a SET DEFAULT 3", "ALTER TABLE t ALTER a DROP DEFAULT"}
	},
}
