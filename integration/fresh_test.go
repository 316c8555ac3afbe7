package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const changingSchema = `
CREATE TABLE changing (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL);
INSERT INTO changing SELECT i, i % 10, i FROM generate_series(1, 5000) i;
CREATE TABLE quiet (g int PRIMARY KEY, name text NOT NULL);
INSERT INTO quiet SELECT i, 'group ' || i FROM generate_series(0, 9) i;
CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL);
INSERT INTO accounts SELECT i, 1000 FROM generate_series(1, 200) i;
VACUUM ANALYZE;
`

const (
	sumChanging  = "SELECT g, count(*), sum(v), max(id) FROM changing GROUP BY g ORDER BY g"
	joinChanging = "SELECT name, sum(v) FROM changing JOIN quiet ON changing.g = quiet.g GROUP BY name ORDER BY name"
)

// TestNeverStale writes on a direct connection and reads through pgaccel at once:
// every answer contains the write. After the last one the table is accelerated
// again.
func TestNeverStale(t *testing.T) {
	s := privateStack(t, changingSchema, reuse)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	s.accelerates(t, 6, func() {
		same(t, direct, proxy, sumChanging)
		same(t, direct, proxy, joinChanging)
	})
	r := rand.New(rand.NewPCG(1, 1))
	for round := range 3 {
		for i := range 50 {
			id := 10000 + round*1000 + i
			var sql string
			switch r.IntN(7) {
			case 0:
				sql = fmt.Sprintf("INSERT INTO changing VALUES (%d, %d, 7)", id, r.IntN(10))
			case 1:
				sql = fmt.Sprintf("UPDATE changing SET v = v + 1 WHERE id = %d", 1+r.IntN(5000))
			case 2:
				sql = fmt.Sprintf("DELETE FROM changing WHERE id = %d", 1+r.IntN(5000))
			case 3:
				sql = fmt.Sprintf("BEGIN; UPDATE changing SET v = -v WHERE g = %d; INSERT INTO changing VALUES (%d, 3, 3); COMMIT", r.IntN(10), id)
			case 4:
				sql = fmt.Sprintf("SET synchronous_commit = off; UPDATE changing SET g = (g + 1) %% 10 WHERE id %% 100 = %d", r.IntN(100))
			case 5:
				sql = fmt.Sprintf("BEGIN; UPDATE changing SET v = 0 WHERE g = %d; ROLLBACK", r.IntN(10))
			case 6:
				sql = fmt.Sprintf("UPDATE quiet SET name = name || '.' WHERE g = %d", r.IntN(10))
			}
			if a := ask(t, direct, sql, nil); a.err != "" {
				t.Fatal(sql, a.err)
			}
			p := protocols[i%3]
			for _, q := range []string{sumChanging, joinChanging} {
				got := ask(t, proxy, q, p.format)
				if want := ask(t, direct, q, p.format); got.String() != want.String() {
					t.Fatalf("stale after %s: %s%s", sql, q, firstDifference([]byte(got.String()), []byte(want.String())))
				}
			}
		}
		s.eventually(t, proxy, sumChanging)
		s.eventually(t, proxy, joinChanging)
		same(t, direct, proxy, sumChanging)
		same(t, direct, proxy, joinChanging)
	}
}

// TestDefinitionChanges alters the table on a direct connection; the next query
// through pgaccel sees the new definition.
func TestDefinitionChanges(t *testing.T) {
	s := privateStack(t, changingSchema, reuse)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	for _, ddl := range []string{
		"ALTER TABLE changing ADD COLUMN extra int DEFAULT 5", "ALTER TABLE changing DROP COLUMN extra", "ALTER TABLE changing ALTER COLUMN v TYPE numeric(15,2)",
		"TRUNCATE changing", "INSERT INTO changing SELECT i, i % 10, i FROM generate_series(1, 3000) i", "ALTER TABLE changing RENAME COLUMN v TO w", "ALTER TABLE changing RENAME COLUMN w TO v",
		"BEGIN; ALTER TABLE changing RENAME TO old; CREATE TABLE changing (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL); INSERT INTO changing VALUES (1, 2, 3); COMMIT",
		"DROP TABLE changing", "ALTER TABLE old RENAME TO changing", "CREATE SCHEMA other; CREATE TABLE other.changing (id int, g int, v int)", "VACUUM FULL changing", "CLUSTER changing USING changing_pkey",
	} {
		if a := ask(t, direct, ddl, nil); a.err != "" {
			t.Fatal(ddl, a.err)
		}
		for _, q := range []string{sumChanging, "SELECT * FROM changing ORDER BY id LIMIT 3", "SELECT count(*) FROM changing", "SELECT g, min(v) FROM other.changing GROUP BY g"} {
			same(t, direct, proxy, q)
		}
	}
	for _, c := range []*pgconn.PgConn{direct, proxy} {
		ask(t, c, "SET search_path = other, public", nil)
	}
	same(t, direct, proxy, sumChanging)
	for _, c := range []*pgconn.PgConn{direct, proxy} {
		ask(t, c, "RESET search_path", nil)
	}
	s.eventually(t, proxy, sumChanging)
	same(t, direct, proxy, sumChanging)
}

// TestOwnTransaction reads inside of transactions: own writes, and REPEATABLE READ's
// one snapshot while others write.
func TestOwnTransaction(t *testing.T) {
	s := privateStack(t, changingSchema, reuse)
	direct, proxy, writer := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres")), connect(t, s.direct.url("postgres"))
	both := func(sql string) {
		t.Helper()
		if a, b := ask(t, direct, sql, nil), ask(t, proxy, sql, nil); a.String() != b.String() {
			t.Errorf("%s: %s, direct %s", sql, b, a)
		}
	}
	for _, sql := range []string{"BEGIN", sumChanging, "CREATE TEMP TABLE own AS SELECT 1 AS g", "SELECT count(*) FROM changing JOIN own USING (g)", sumChanging, "ROLLBACK", sumChanging} {
		both(sql)
	}
	// One session at a time: the same rows cannot be written by both at once.
	seen := map[string]string{}
	for _, c := range []*pgconn.PgConn{direct, proxy} {
		all := ""
		for _, sql := range []string{"BEGIN", "INSERT INTO changing VALUES (99999, 1, 1)", sumChanging, "SAVEPOINT a", "UPDATE changing SET v = 0", sumChanging, "ROLLBACK TO a", sumChanging, "ROLLBACK", sumChanging} {
			all += ask(t, c, sql, nil).String()
		}
		seen[all] = ""
	}
	if len(seen) != 1 {
		t.Error("own writes are seen otherwise through pgaccel")
	}
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE", "REPEATABLE READ READ ONLY", "SERIALIZABLE READ ONLY DEFERRABLE"} {
		for _, c := range []*pgconn.PgConn{direct, proxy} {
			ask(t, c, "BEGIN ISOLATION LEVEL "+level, nil)
		}
		before := same(t, direct, proxy, sumChanging)
		if a := ask(t, writer, "UPDATE changing SET v = v + 1 WHERE g = 4", nil); a.err != "" {
			t.Fatal(a.err)
		}
		time.Sleep(20 * time.Millisecond)
		if after := same(t, direct, proxy, sumChanging); after.String() != before.String() {
			t.Errorf("%s: two snapshots in one transaction", level)
		}
		for _, c := range []*pgconn.PgConn{direct, proxy} {
			ask(t, c, "COMMIT", nil)
		}
		same(t, direct, proxy, sumChanging)
	}
}

// TestSumsNeverTear moves money between accounts on direct connections while
// readers ask for the total through pgaccel. Pauses let the copy become valid again.
func TestSumsNeverTear(t *testing.T) {
	s := privateStack(t, changingSchema, reuse)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for w := range 2 {
		conn := connect(t, s.direct.url("postgres"))
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 9))
			for ctx.Err() == nil {
				for range 5 {
					a, b := 1+r.IntN(200), 1+r.IntN(200)
					if _, err := conn.Exec(context.Background(), fmt.Sprintf("BEGIN; UPDATE accounts SET balance = balance - 5 WHERE id = %d; UPDATE accounts SET balance = balance + 5 WHERE id = %d; COMMIT",
						min(a, b), max(a, b))).ReadAll(); err != nil {
						t.Error(err)
						return
					}
				}
				time.Sleep(time.Duration(r.IntN(700)) * time.Millisecond)
			}
		})
	}
	before := s.queries(t, "accelerated")
	asked := 0
	conns := [2]*pgconn.PgConn{connect(t, s.proxy.url("postgres")), connect(t, s.proxy.url("postgres"))}
	for ctx.Err() == nil {
		for i, c := range conns {
			a := ask(t, c, "SELECT sum(balance), count(*) FROM accounts", protocols[(asked+i)%2].format)
			if asked++; len(a.rows) != 1 || a.rows[0] != `"200000"|"200"|` {
				t.Errorf("torn: %s", a)
				cancel()
			}
		}
	}
	wg.Wait()
	t.Logf("%d of %d answers were accelerated", s.queries(t, "accelerated")-before, asked)
	s.eventually(t, conns[0], "SELECT sum(balance), count(*) FROM accounts")
}

// TestMode switches acceleration off and on with pgaccel.mode, as any setting.
func TestMode(t *testing.T) {
	s := privateStack(t, changingSchema, reuse)
	direct, proxy := connect(t, s.direct.url("postgres")), connect(t, s.proxy.url("postgres"))
	on := func(what string) {
		t.Helper()
		t.Log(what)
		s.accelerates(t, 3, func() { same(t, direct, proxy, sumChanging) })
		// So small that only force takes it.
		s.accelerates(t, 3, func() { same(t, direct, proxy, "SELECT count(*) FROM quiet") })
	}
	off := func(what string) {
		t.Helper()
		t.Log(what)
		s.forwardsAll(t, func() { same(t, direct, proxy, sumChanging) })
	}
	set := func(sql string) {
		t.Helper()
		if a, b := ask(t, direct, sql, nil), ask(t, proxy, sql, nil); a.String() != b.String() || a.err != "" {
			t.Fatalf("%s: %s, direct %s", sql, b, a)
		}
	}
	on("startup options")
	set("SET pgaccel.mode = 'off'")
	off("SET")
	set("SET pgaccel.mode = 'force'")
	on("SET")
	set("BEGIN; SET LOCAL pgaccel.mode = 'off'")
	off("SET LOCAL")
	set("COMMIT")
	on("after SET LOCAL")
	set("SELECT set_config('pgaccel.mode', 'off', false)")
	off("set_config")
	set("RESET ALL")
	on("RESET ALL")
	set("SET pgaccel.mode = 'off'")
	set("DISCARD ALL")
	on("DISCARD ALL")
	set("SET pgaccel.mode = 'auto'")
	same(t, direct, proxy, sumChanging) // the cost model's business
	set("RESET pgaccel.mode")
	direct, proxy = connect(t, s.direct.url("postgres", "&options=-c%20pgaccel.mode%3Doff")), connect(t, s.proxy.url("postgres", "&options=-c%20pgaccel.mode%3Doff"))
	off("other startup options")
	set("ALTER ROLE postgres SET pgaccel.mode = 'off'")
	none := "&options=-c%20geqo%3Don"
	direct, proxy = connect(t, s.direct.url("postgres", none)), connect(t, s.proxy.url("postgres", none))
	off("ALTER ROLE off")
	set("ALTER ROLE postgres SET pgaccel.mode = 'force'")
	direct, proxy = connect(t, s.direct.url("postgres", none)), connect(t, s.proxy.url("postgres", none))
	// That the server sets the mode is noticed when the catalog is read again.
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		before := s.queries(t, "accelerated")
		same(t, direct, proxy, "SELECT count(*) FROM quiet")
		if s.queries(t, "accelerated") > before {
			break
		}
	}
	on("ALTER ROLE force")
}
