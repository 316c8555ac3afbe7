package replica

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// exactTables are tables of every kind of identity, and how the server is asked for
// their rows in the form of contents.
var exactTables = []struct{ name, create, rows string }{
	{"acc", "CREATE TABLE acc (id int PRIMARY KEY, v bigint, t text, d date); ALTER TABLE acc ALTER t SET STORAGE EXTERNAL",
		"concat('|', id, '|', coalesce(v::text, '~'), '|', coalesce(t, '~'), '|', coalesce((d - '2000-01-01')::text, '~'))"},
	{"dup", "CREATE TABLE dup (a int, j json, b text, n numeric); ALTER TABLE dup REPLICA IDENTITY FULL",
		"concat('|', coalesce(a::text, '~'), '|', coalesce(j::text, '~'), '|', coalesce(b, '~'), '|', coalesce(n::text, '~'))"},
	{"uid", "CREATE TYPE pair AS (x text, y int); CREATE TABLE uid (u pair, k int, v int, PRIMARY KEY (u, k))", "concat('|-|', k, '|', coalesce(v::text, '~'))"},
	{"idx", "CREATE TABLE idx (a text NOT NULL, b int NOT NULL, c int); CREATE UNIQUE INDEX idx_key ON idx (b, a); ALTER TABLE idx REPLICA IDENTITY USING INDEX idx_key",
		"concat('|', a, '|', b, '|', coalesce(c::text, '~'))"},
	{"par", `CREATE TABLE par (id int, k int, t text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
		CREATE TABLE par1 PARTITION OF par FOR VALUES FROM (0) TO (10);
		CREATE TABLE par2 (k int NOT NULL, gone int, t text, id int NOT NULL); ALTER TABLE par2 DROP COLUMN gone; ALTER TABLE par ATTACH PARTITION par2 FOR VALUES FROM (10) TO (20);
		CREATE TABLE par3 PARTITION OF par FOR VALUES FROM (20) TO (30) PARTITION BY LIST (k); CREATE TABLE par3a PARTITION OF par3 FOR VALUES IN (20, 21, 22); CREATE TABLE par3b PARTITION OF par3 DEFAULT`,
		"concat('|', id, '|', k, '|', coalesce(t, '~'))"},
	{"log", "CREATE TABLE log (id bigserial PRIMARY KEY, x int)", "concat('|', id, '|', coalesce(x::text, '~'))"},
}

// randomStatement returns a statement that changes one of the tables.
func randomStatement(rng *rand.Rand) string {
	text := func() string {
		switch rng.Intn(6) {
		case 0:
			return "NULL"
		case 1:
			return fmt.Sprintf("repeat('%c', %d)", 'a'+rng.Intn(26), 2000+rng.Intn(6000)) // out of line
		case 2:
			return "''"
		}
		return fmt.Sprintf("'%c%d'", 'a'+rng.Intn(26), rng.Intn(50))
	}
	id := rng.Intn(200)
	between := func(column string) string {
		from := rng.Intn(200)
		return fmt.Sprintf("%s BETWEEN %d AND %d", column, from, from+rng.Intn(12))
	}
	switch rng.Intn(24) {
	case 0, 1, 2:
		return fmt.Sprintf("INSERT INTO acc SELECT g, g * %d, %s, '1990-01-01'::date + g FROM generate_series(%d, %d) g ON CONFLICT (id) DO UPDATE SET v = acc.v + 1", rng.Intn(99), text(), id, id+rng.Intn(10))
	case 3:
		return "UPDATE acc SET v = v + 1 WHERE " + between("id")
	case 4:
		return "UPDATE acc SET t = " + text() + " WHERE " + between("id")
	case 5: // the key of rows whose text lies out of line
		return fmt.Sprintf("UPDATE acc SET id = id + 1000 * (1 - 2 * (id / 1000)) WHERE id IN (%d, %d) AND NOT EXISTS (SELECT FROM acc o WHERE o.id = acc.id + 1000 * (1 - 2 * (acc.id / 1000)))", id, id+1000)
	case 6:
		return "DELETE FROM acc WHERE " + between("id")
	case 7, 8:
		return fmt.Sprintf("INSERT INTO dup SELECT %d, '{\"g\": 1}', %s, %d.25 * 10.0 ^ (g %% 3) FROM generate_series(1, %d) g", rng.Intn(4), text(), rng.Intn(3), 1+rng.Intn(4))
	case 9:
		return fmt.Sprintf("UPDATE dup SET n = n + 1, j = '2' WHERE ctid IN (SELECT ctid FROM dup WHERE a = %d LIMIT %d)", rng.Intn(4), rng.Intn(4))
	case 10:
		return fmt.Sprintf("DELETE FROM dup WHERE ctid IN (SELECT ctid FROM dup WHERE a = %d LIMIT %d)", rng.Intn(4), rng.Intn(8))
	case 11:
		return fmt.Sprintf("UPDATE dup SET a = NULL, b = %s WHERE ctid IN (SELECT ctid FROM dup WHERE b IS NULL LIMIT 2)", text())
	case 12:
		return fmt.Sprintf("INSERT INTO uid VALUES (ROW(md5('%d'), 1)::pair, %d, 0) ON CONFLICT (u, k) DO UPDATE SET v = uid.v + 1", id, id%7)
	case 13:
		return fmt.Sprintf("UPDATE uid SET v = v * 2, k = k + %d WHERE u = ROW(md5('%d'), 1)::pair AND NOT EXISTS (SELECT FROM uid o WHERE o.u = uid.u AND o.k > uid.k)", rng.Intn(2), id)
	case 14:
		return fmt.Sprintf("DELETE FROM uid WHERE u = ROW(md5('%d'), 1)::pair", id)
	case 15:
		return fmt.Sprintf("INSERT INTO idx VALUES ('%c', %d, 1) ON CONFLICT (b, a) DO UPDATE SET c = idx.c + 1", 'a'+rng.Intn(5), rng.Intn(40))
	case 16:
		return fmt.Sprintf("UPDATE idx SET a = a || 'x' WHERE b = %d AND length(a) < 4 AND NOT EXISTS (SELECT FROM idx o WHERE o.b = idx.b AND o.a = idx.a || 'x')", rng.Intn(40))
	case 17:
		return fmt.Sprintf("DELETE FROM idx WHERE b = %d", rng.Intn(40))
	case 18, 19:
		return fmt.Sprintf("INSERT INTO par VALUES (%d, %d, %s) ON CONFLICT (id, k) DO UPDATE SET t = EXCLUDED.t", id, rng.Intn(30), text())
	case 20: // from one partition to another
		return fmt.Sprintf("UPDATE par SET k = (k + 11) %% 30 WHERE id = %d AND NOT EXISTS (SELECT FROM par o WHERE o.id = par.id AND o.k = (par.k + 11) %% 30)", id)
	case 21:
		return "DELETE FROM par WHERE " + between("id")
	case 22:
		return fmt.Sprintf("INSERT INTO log (x) SELECT g FROM generate_series(1, %d) g", 1+rng.Intn(30))
	}
	return []string{"DELETE FROM log WHERE id % 3 = 0", "UPDATE log SET x = x + 1 WHERE id % 5 = 0", "INSERT INTO log (x) VALUES (NULL)", "TRUNCATE log", "TRUNCATE par2", "TRUNCATE par3a, log"}[rng.Intn(6)]
}

// randomWriter runs random transactions until stop.
func randomWriter(url string, seed int64, stop chan struct{}) {
	ctx := context.Background()
	rng := rand.New(rand.NewSource(seed))
	var c *pgx.Conn
	exec := func(sql string) error {
		_, err := c.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	for n := 0; ; n++ {
		select {
		case <-stop:
			if c != nil {
				c.Close(ctx)
			}
			return
		default:
		}
		if c == nil || c.IsClosed() {
			var err error
			if c, err = pgx.Connect(ctx, url); err != nil {
				c = nil
				time.Sleep(10 * time.Millisecond)
				continue
			}
		}
		exec([]string{"SET synchronous_commit = off", "SET synchronous_commit = on"}[rng.Intn(2)])
		exec("BEGIN")
		depth := 0
		for range 1 + rng.Intn(4) {
			switch rng.Intn(5) {
			case 0:
				depth++
				exec(fmt.Sprintf("SAVEPOINT s%d", depth))
			case 1:
				if depth > 0 {
					exec(fmt.Sprintf("%s s%d", []string{"ROLLBACK TO", "RELEASE"}[rng.Intn(2)], depth))
					depth--
				}
			}
			if exec(randomStatement(rng)) != nil { // a deadlock, a duplicate
				if depth == 0 {
					break
				}
				exec(fmt.Sprintf("ROLLBACK TO s%d", depth))
			}
		}
		switch gid := fmt.Sprintf("exact-%d-%d", seed, n); rng.Intn(8) {
		case 0:
			exec("ROLLBACK")
		case 1:
			if exec("PREPARE TRANSACTION '"+gid+"'") == nil {
				time.Sleep(time.Duration(rng.Intn(3)) * time.Millisecond)
				exec([]string{"COMMIT PREPARED '", "ROLLBACK PREPARED '"}[rng.Intn(2)] + gid + "'")
			} else {
				exec("ROLLBACK")
			}
		default:
			exec("COMMIT")
		}
	}
}

// compareAt reads all tables in one transaction on the server and from the store at
// that transaction's snapshot, and returns how many could be read here.
func compareAt(t *testing.T, c *pgx.Conn, store *colstore.Store) (compared int) {
	t.Helper()
	ctx := context.Background()
	tx, err := c.BeginTx(ctx, txRepeatable)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer tx.Rollback(ctx)
	var names []string
	for _, x := range exactTables {
		names = append(names, x.name)
	}
	// A TRUNCATE after the position was read would empty, in the server, older
	// snapshots, too.
	if _, err := tx.Exec(ctx, "LOCK TABLE "+strings.Join(names, ", ")+" IN ACCESS SHARE MODE"); err != nil {
		return 0
	}
	var text, lsn string
	if err := tx.QueryRow(ctx, "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text").Scan(&text, &lsn); err != nil {
		t.Error(err)
		return 0
	}
	snapshot, err := colstore.ParseSnapshot(text)
	if err != nil {
		t.Error(err)
		return 0
	}
	var hi, lo uint64
	fmt.Sscanf(lsn, "%X/%X", &hi, &lo)
	cat := store.Catalog()
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	err = store.Wait(wait, catalog.NormalizeLSN(hi<<32|lo, cat.WALSegmentSize, cat.WALBlockSize))
	cancel()
	if err != nil {
		return 0
	}
	for _, x := range exactTables {
		meta := cat.Lookup("public", x.name)
		if len(meta) != 1 {
			continue
		}
		v, err := store.View(meta[0].OID, snapshot)
		if err != nil {
			continue
		}
		got := contents(v)
		v.Release()
		rows, err := tx.Query(ctx, "SELECT "+x.rows+" FROM "+x.name, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Error(err)
			return compared
		}
		want, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Error(err)
			return compared
		}
		slices.Sort(got)
		slices.Sort(want)
		if compared++; !slices.Equal(got, want) {
			t.Errorf("%s at %s: %s", x.name, text, difference(got, want))
		}
	}
	return compared
}

// difference lists rows that only one side has.
func difference(got, want []string) string {
	count := map[string]int{}
	for _, r := range got {
		count[r]++
	}
	for _, r := range want {
		count[r]--
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows, want %d:", len(got), len(want))
	shown := 0
	for _, r := range slices.Concat(got, want) {
		if n := count[r]; n != 0 && shown < 12 {
			shown++
			count[r] = 0
			fmt.Fprintf(&b, " %+d %.60s", n, r)
		}
	}
	return b.String()
}

// TestExactUnderLoad: at every snapshot the store shows the rows that the server
// shows, while random transactions go on, tables are copied again and the stream
// breaks.
func TestExactUnderLoad(t *testing.T) {
	for _, faults := range []bool{false, true} {
		t.Run(fmt.Sprintf("faults=%v", faults), func(t *testing.T) {
			url := database(t)
			c := connectTo(t, url)
			for _, x := range exactTables {
				mustExec(t, c, x.create)
			}
			mustExec(t, c, "ALTER DATABASE "+queryText(t, c, "SELECT current_database()")+" SET logical_decoding_work_mem = '64kB'")
			rng := rand.New(rand.NewSource(7))
			for range 200 {
				c.Exec(context.Background(), randomStatement(rng), pgx.QueryExecModeSimpleProtocol)
			}
			stop := make(chan struct{})
			var done sync.WaitGroup
			for seed := range int64(3) {
				done.Go(func() { randomWriter(url, seed, stop) })
			}
			store := colstore.New(colstore.Options{SegmentRows: 1024, FoldLag: time.Millisecond})
			defer store.Close()
			r := start(t, url, Config{Store: store, RecopyQuiet: time.Millisecond})
			defer r.Close()
			var compared atomic.Int64
			for range 2 {
				reader := connectTo(t, url)
				done.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							compared.Add(int64(compareAt(t, reader, store)))
						}
					}
				})
			}
			target := int64(1000)
			if testing.Short() {
				target = 300
			}
			for n := 0; compared.Load() < target && !t.Failed(); n++ {
				time.Sleep(20 * time.Millisecond)
				if n > 3000 {
					t.Errorf("only %d comparisons: %+v", compared.Load(), store.Statuses())
				}
				if !faults {
					continue
				}
				r.forgive(0)
				switch n % 160 {
				case 10, 50, 90, 130: // a table that has to be copied again
					r.mu.Lock()
					e := r.current
					r.mu.Unlock()
					if e != nil {
						e.reg.mu.Lock()
						for _, tab := range e.reg.tables {
							if tab.phase == phaseReady && rng.Intn(2) == 0 {
								e.reg.lapse(tab, colstore.StateChanged, "test")
							}
						}
						e.reg.mu.Unlock()
					}
				case 20, 100:
					c.Exec(context.Background(), "GRANT SELECT ON acc, dup, par TO public; VACUUM FULL uid", pgx.QueryExecModeSimpleProtocol)
				case 30:
					c.Exec(context.Background(), "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = current_database()")
				}
			}
			close(stop)
			done.Wait()
			if !t.Failed() {
				// The last comparison may have been the last before the stream was cut.
				eventually(t, "the stream is back", func() bool { return store.Wait(context.Background(), 0) == nil })
				waitInsert(t, c, store)
			}
			t.Logf("%d comparisons", compared.Load())
		})
	}
}
