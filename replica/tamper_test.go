package replica

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgaccel/colstore"
)

// TestSomebodyAltersThePublication: changes that the stream does not bring from then
// on must not be missing from an answer, from the next statement on.
func TestSomebodyAltersThePublication(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TABLE a (id int PRIMARY KEY, n int); CREATE TABLE p (id int PRIMARY KEY, n int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT`)
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	rows := "concat('|', id, '|', n)"
	for i, tamper := range []string{
		"ALTER PUBLICATION %[1]s DROP TABLE %[2]s", "ALTER PUBLICATION %[1]s DROP TABLE %[2]s; INSERT INTO %[2]s VALUES (-1, 1); ALTER PUBLICATION %[1]s ADD TABLE %[2]s",
		"ALTER PUBLICATION %[1]s SET TABLE %[2]s WHERE (id < 0)", "ALTER PUBLICATION %[1]s SET (publish = 'insert')", "DROP PUBLICATION %[1]s", "ALTER PUBLICATION %[1]s RENAME TO other",
	} {
		for _, table := range []string{"a", "p"} {
			if i > 2 && table == "p" {
				continue // not the table's own
			}
			leaf := strings.Replace(table, "p", "p1", 1)
			comesBack(t, c, r, table, rows)
			mustExec(t, c, "DELETE FROM a; DELETE FROM p; "+fmt.Sprintf(tamper, r.name, leaf))
			for range 20 { // right, or not at all
				mustExec(t, c, "INSERT INTO "+table+" SELECT count(*), 1 FROM "+table+" WHERE id >= 0")
				served(t, c, store, table, rows)
			}
			comesBack(t, c, r, table, rows)
			mustExec(t, c, "DROP PUBLICATION IF EXISTS other")
		}
	}
}

// TestAForeignPublicationCostsNoCopy: others publish the same tables.
func TestAForeignPublicationCostsNoCopy(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, n int)")
	r := start(t, url, Config{})
	ready(t, r)
	a := tableOID(t, c, "a")
	for i, sql := range []string{"CREATE PUBLICATION mine FOR TABLE a", "ALTER PUBLICATION mine SET (publish = 'insert')", "ALTER PUBLICATION mine SET TABLE a (id, n)", "CREATE PUBLICATION every FOR ALL TABLES", "DROP PUBLICATION mine"} {
		mustExec(t, c, sql)
		mustExec(t, c, fmt.Sprintf("INSERT INTO a VALUES (%d, 1)", i))
		comesBack(t, c, r, "a", "concat('|', id, '|', n)")
		if n := copies(r, a); n != 1 {
			t.Fatalf("%s: %d copies", sql, n)
		}
	}
}

// TestLostIdentityIsNoticedSoon: a published table without replica identity cannot be
// updated. Nobody needs to query it for that to be noticed.
func TestLostIdentityIsNoticedSoon(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a VALUES (1, 1);
		CREATE TABLE p (id int, n int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p DEFAULT; ALTER TABLE p1 ADD PRIMARY KEY (id); INSERT INTO p VALUES (1, 1)`)
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	for table, sql := range map[string]string{"a": "ALTER TABLE a DROP CONSTRAINT a_pkey", "p": "ALTER TABLE p1 REPLICA IDENTITY NOTHING"} {
		mustExec(t, c, sql)
		start := time.Now()
		eventually(t, table+" can be updated", func() bool {
			_, err := c.Exec(context.Background(), "UPDATE "+table+" SET n = n + 1")
			return err == nil
		})
		t.Logf("%s: %v", table, time.Since(start).Round(time.Millisecond))
		oid := tableOID(t, c, table)
		waitState(t, store, oid, colstore.StateRefused)
	}
	mustExec(t, c, "ALTER TABLE a ADD PRIMARY KEY (id); ALTER TABLE p1 REPLICA IDENTITY DEFAULT")
	for _, table := range []string{"a", "p"} {
		comesBack(t, c, r, table, "concat('|', id, '|', n)")
	}
}

// TestNewTextsAreOrdered: strings that come after the copy get their place in the
// collation's order from the server.
func TestNewTextsAreOrdered(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE COLLATION de (provider = icu, locale = 'de'); CREATE TABLE a (id int PRIMARY KEY, t text COLLATE de, u text); INSERT INTO a VALUES (1, 'b', 'b')")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	mustExec(t, c, "INSERT INTO a SELECT i, s, s FROM unnest(ARRAY['ä', 'Z', 'a', 'B', 'aa', '-x', '']) WITH ORDINALITY x(s, i) ON CONFLICT (id) DO UPDATE SET t = EXCLUDED.t")
	waitInsert(t, c, store)
	want := queryRows(t, c, "SELECT DISTINCT t FROM a ORDER BY 1")
	eventually(t, "the new texts are ordered", func() bool {
		v, _ := store.Get(tableOID(t, c, "a"))
		if v == nil {
			return false
		}
		defer v.Release()
		ranks := v.Dicts[1].Ranks()
		if ranks == nil {
			return false
		}
		place := map[string]int32{}
		for code, rank := range ranks {
			place[v.Dicts[1].At(int64(code))] = rank
		}
		for i := 1; i < len(want); i++ {
			if place[want[i-1]] >= place[want[i]] {
				t.Fatalf("%q is not before %q: %v", want[i-1], want[i], place)
			}
		}
		return true
	})
}
