package replica

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/catalog"
	"pgaccel/colstore"
)

// served compares, once, what the store has for a table with what the server shows in
// the same statement, as the engine would: where the fingerprint is the server's, the
// rows must be. It reports whether the store would have answered.
func served(t testing.TB, c *pgx.Conn, store *colstore.Store, table, rows string) bool {
	t.Helper()
	ctx := context.Background()
	var text, lsn, fingerprint string
	var oid uint32
	var want []string
	err := c.QueryRow(ctx, "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text, t.oid, coalesce("+catalog.FingerprintSQL("t.oid")+
		", ''), ARRAY(SELECT "+rows+" FROM "+table+") FROM (SELECT $1::text::regclass::oid) t(oid)", table).Scan(&text, &lsn, &oid, &fingerprint, &want)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := colstore.ParseSnapshot(text)
	if err != nil {
		t.Fatal(err)
	}
	var hi, lo uint64
	fmt.Sscanf(lsn, "%X/%X", &hi, &lo)
	cat := store.Catalog()
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if store.Wait(wait, catalog.NormalizeLSN(hi<<32|lo, cat.WALSegmentSize, cat.WALBlockSize)) != nil {
		return false
	}
	v, err := store.View(oid, snapshot)
	if err != nil {
		return false
	}
	defer v.Release()
	meta := cat.ByOID(oid)
	if meta == nil || string(meta.Fingerprint) != fingerprint || v.Meta.Fingerprint != meta.Fingerprint {
		return false
	}
	got := contents(v)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %s", table, difference(got, want))
	}
	return true
}

// comesBack waits until the store answers for a table, rightly at each step.
func comesBack(t testing.TB, c *pgx.Conn, r *Replicator, table, rows string) {
	t.Helper()
	eventually(t, table+" is served", func() bool {
		r.forgive(0)
		r.Recheck(0) // as a gate does that sees another definition
		return served(t, c, r.cfg.Store, table, rows)
	})
}

// copies returns how many copies of a table were begun, and forgets none while it
// keeps its partitions and qualifies.
func copies(r *Replicator, oid uint32) int {
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	if e == nil {
		return -1
	}
	e.reg.mu.Lock()
	defer e.reg.mu.Unlock()
	if t := e.reg.tables[oid]; t != nil {
		return t.copies
	}
	return -1
}

// changes makes changes of each kind to a table with the columns id and n.
func changes(t testing.TB, c *pgx.Conn, table string, i int) {
	mustExec(t, c, fmt.Sprintf("INSERT INTO %s (id, n) VALUES (%d, %d), (%d, 0); UPDATE %s SET n = n + 1 WHERE id %% 2 = 0; DELETE FROM %s WHERE id = %d", table, 2*i, i, 2*i+1, table, table, 2*i-3))
}

func TestDefinitionsThatChangeNoRowsNeedNoCopy(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TABLE a (id int PRIMARY KEY, n int, t text); INSERT INTO a SELECT g, g, g FROM generate_series(-3000, -1) g; CREATE SCHEMA other;
		CREATE TABLE p (id int PRIMARY KEY, n int, t text) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (-10000) TO (0); CREATE TABLE p2 PARTITION OF p DEFAULT;
		INSERT INTO p SELECT g, g, g FROM generate_series(-3000, -1) g`)
	r := start(t, url, Config{Accelerate: []string{"*.*"}})
	ready(t, r)
	for _, root := range []string{"a", "p"} {
		oid := tableOID(t, c, root)
		name, columns := root, "id|n|t"
		steps := []string{"GRANT SELECT ON % TO public", "GRANT SELECT (n) ON % TO public", "ALTER TABLE % ALTER n SET STATISTICS 10", "ALTER TABLE % ALTER n SET DEFAULT 7", "ALTER TABLE % ADD CHECK (n < 100000000)",
			"TRUNCATE %", "CREATE INDEX ON % (n)", "COMMENT ON TABLE % IS 'x'", "ANALYZE %", "ALTER TABLE % RENAME TO renamed", "ALTER TABLE % SET SCHEMA other", "ALTER TABLE % RENAME COLUMN t TO tt",
			"ALTER TABLE % ENABLE ROW LEVEL SECURITY", "ALTER TABLE % DISABLE ROW LEVEL SECURITY", "VACUUM FULL %", "BEGIN; TRUNCATE %; INSERT INTO % (id, n) VALUES (-7, 1); ROLLBACK", "BEGIN; INSERT INTO % (id, n) VALUES (-8, 1); TRUNCATE %; INSERT INTO % (id, n) VALUES (-8, 1); COMMIT",
			"ALTER TABLE % ADD CONSTRAINT fk FOREIGN KEY (n) REFERENCES pg_temp.none", "REVOKE ALL ON % FROM public"}
		if root == "a" {
			steps = append(steps, "CLUSTER % USING a_pkey", "ALTER TABLE % SET (fillfactor = 50)", "ALTER TABLE % SET WITHOUT CLUSTER", "REINDEX TABLE %", "ALTER TABLE % ALTER n SET NOT NULL", "CREATE RULE nothing AS ON INSERT TO % WHERE NEW.id IS NULL DO INSTEAD NOTHING")
		} else {
			steps = append(steps, "TRUNCATE p1", "VACUUM FULL p1", "CLUSTER p1 USING p1_pkey", "ALTER TABLE p1 RENAME TO p1b", "GRANT SELECT ON p2 TO public", "ALTER TABLE p2 SET (fillfactor = 50)", "TRUNCATE p1b, p2")
		}
		rows := func() string {
			return "concat('|', id, '|', coalesce(n::text, '~'), '|', coalesce(" + strings.Split(columns, "|")[2] + ", '~'))"
		}
		for i, step := range steps {
			comesBack(t, c, r, name, rows())
			sql := strings.ReplaceAll(step, "%", name)
			if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil && !strings.Contains(sql, "fk") {
				t.Fatalf("%s: %v", sql, err)
			}
			switch {
			case strings.Contains(step, "RENAME TO renamed"):
				name = "renamed"
			case strings.Contains(step, "SET SCHEMA"):
				name = "other." + name
			case strings.Contains(step, "RENAME COLUMN"):
				columns = "id|n|tt"
				comesBack(t, c, r, name, rows()) // a change now would not fit
			}
			changes(t, c, name, i+2)
			comesBack(t, c, r, name, rows())
			if n := copies(r, oid); n != 1 {
				t.Fatalf("%s: %d copies", step, n)
			}
		}
		for _, st := range r.cfg.Store.Statuses() {
			if st.OID == oid && st.Name != "other.renamed" {
				t.Errorf("the store calls it %s", st.Name)
			}
		}
		mustExec(t, c, "ALTER TABLE "+name+" SET SCHEMA public")
		mustExec(t, c, "ALTER TABLE renamed RENAME TO "+root)
	}
}

func TestDefinitionsThatChangeRowsAreCopied(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	for _, partitioned := range []string{"", " PARTITION BY RANGE (id)"} {
		mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, n int)"+partitioned)
		if partitioned != "" {
			mustExec(t, c, "CREATE TABLE a1 PARTITION OF a FOR VALUES FROM (-10000) TO (0); CREATE TABLE a2 PARTITION OF a DEFAULT")
		}
		mustExec(t, c, "INSERT INTO a SELECT g, g FROM generate_series(-300, -1) g")
		r := start(t, url, Config{RecopyQuiet: time.Millisecond})
		ready(t, r)
		rows := "concat('|', id, '|', coalesce(n::text, '~')"
		for i, step := range []struct{ sql, rows string }{
			{"SELECT", ")"},
			{"ALTER TABLE a ALTER n TYPE int USING n + 100", ")"},
			{"ALTER TABLE a ALTER n TYPE bigint; ALTER TABLE a ALTER n TYPE int USING n - 1", ")"},
			{"ALTER TABLE a ADD x int DEFAULT 5", ", '|', x)"},
			{"ALTER TABLE a ADD y int DEFAULT (random() * 1000)::int", ", '|', x, '|', y)"},
			{"BEGIN; ALTER TABLE a DROP x; ALTER TABLE a ADD x int DEFAULT 6; COMMIT", ", '|', y, '|', x)"},
			{"ALTER TABLE a DROP y", ", '|', x)"},
			{"ALTER TABLE a ADD g int GENERATED ALWAYS AS (n + 1) STORED", ", '|', x, '|-')"},
			{"ALTER TABLE a DROP g, ALTER n TYPE numeric(10,1)", ""},
			{"ALTER TABLE a ALTER n TYPE int", ", '|', x)"},
		} {
			mustExec(t, c, step.sql)
			suffix := step.rows
			if suffix == "" {
				continue
			}
			changes(t, c, "a", i+2)
			comesBack(t, c, r, "a", rows+suffix)
		}
		if partitioned == "" {
			mustExec(t, c, "ALTER TABLE a REPLICA IDENTITY FULL")
			changes(t, c, "a", 50)
			comesBack(t, c, r, "a", rows+", '|', x)")
		}
		before := tableOID(t, c, "a")
		if partitioned == "" {
			mustExec(t, c, "BEGIN; CREATE TABLE b (LIKE a INCLUDING ALL); INSERT INTO b SELECT id + 100000, n, x FROM a; DROP TABLE a; ALTER TABLE b RENAME TO a; COMMIT")
			changes(t, c, "a", 60)
			comesBack(t, c, r, "a", rows+", '|', x)")
			eventually(t, "the old table is forgotten", func() bool {
				return !slices.ContainsFunc(r.cfg.Store.Statuses(), func(s colstore.Status) bool { return s.OID == before })
			})
		}
		r.Close()
		mustExec(t, c, "DROP TABLE a")
	}
}

func TestPartitionsComeAndGo(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TABLE p (id int, n int, t text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000); INSERT INTO p SELECT g, g FROM generate_series(1, 500) g;
		CREATE TABLE loose (t text, n int, id int PRIMARY KEY); INSERT INTO loose SELECT 'l', g, g FROM generate_series(2000, 2100) g`)
	r := start(t, url, Config{RecopyQuiet: time.Millisecond})
	ready(t, r)
	rows := "concat('|', id, '|', coalesce(n::text, '~'), '|', coalesce(t, '~'))"
	known := func() string {
		var names []string
		for _, st := range r.cfg.Store.Statuses() {
			names = append(names, strings.TrimPrefix(st.Name, "public.")+"="+st.State.String())
		}
		return strings.Join(names, " ")
	}
	if got := known(); got != "loose=ready p=ready" {
		t.Fatalf("tables: %s", got)
	}
	for i, step := range []struct{ sql, tables string }{
		{"ALTER TABLE p ATTACH PARTITION loose FOR VALUES FROM (2000) TO (3000)", "p=ready"},
		{"UPDATE p SET id = id + 2000 WHERE id = 400; UPDATE p SET n = -n WHERE id > 2050; UPDATE p SET id = id - 2000 WHERE id BETWEEN 2001 AND 2010 AND NOT EXISTS (SELECT FROM p o WHERE o.id = p.id - 2000)", "p=ready"},
		{"CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (3000) TO (4000) PARTITION BY RANGE (id); INSERT INTO loose VALUES ('x', 1, 2999)", "p=ready"},
		{"CREATE TABLE p3a PARTITION OF p3 FOR VALUES FROM (3000) TO (3500); INSERT INTO p VALUES (3001, 1, 'new')", "p=ready"},
		{"BEGIN; ALTER TABLE p DETACH PARTITION loose; UPDATE loose SET n = n + 1000; INSERT INTO loose VALUES ('between', 1, 2500); ALTER TABLE p ATTACH PARTITION loose FOR VALUES FROM (2000) TO (3000); COMMIT", "p=ready"},
		{"ALTER TABLE p DETACH PARTITION loose", "loose=ready p=ready"},
		{"ALTER TABLE p DETACH PARTITION p3 CONCURRENTLY", "loose=ready p=ready p3=ready"},
		{"DROP TABLE p3", "loose=ready p=ready"},
		{"CREATE TABLE p4 (id int NOT NULL, n int, t text)", "loose=ready p=ready p4=refused"},
		{"TRUNCATE p1; DELETE FROM p", "loose=ready p=ready p4=refused"},
		{"ALTER TABLE p4 REPLICA IDENTITY FULL; ALTER TABLE p4 ADD PRIMARY KEY (id); ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (4000) TO (5000)", "loose=ready p=refused p1=ready p4=ready"},
		{"ALTER TABLE p4 REPLICA IDENTITY DEFAULT", "loose=ready p=ready"},
		{"UPDATE p SET n = 0; INSERT INTO p VALUES (4001, 1, 'four')", "loose=ready p=ready"},
		{"ALTER TABLE p DETACH PARTITION p1; ALTER TABLE p DETACH PARTITION p4", "loose=ready p=ready p1=ready p4=ready"},
		{"DROP TABLE p", "loose=ready p1=ready p4=ready"},
	} {
		mustExec(t, c, step.sql)
		if i > 0 && i < 6 {
			changes(t, c, "p", 300+2*i)
		}
		if strings.Contains(step.tables, "p=ready") {
			comesBack(t, c, r, "p", rows)
		}
		eventually(t, fmt.Sprintf("%s: %s, want %s", step.sql, known(), step.tables), func() bool { r.forgive(0); r.Recheck(0); return known() == step.tables })
	}
}

// TestRefusedPartitions: all leaves must qualify.
func TestRefusedPartitions(t *testing.T) {
	c := connectTo(t, database(t))
	mustExec(t, c, `CREATE EXTENSION IF NOT EXISTS plpgsql;
		CREATE TABLE nokey (id int) PARTITION BY RANGE (id); CREATE TABLE nokey1 PARTITION OF nokey DEFAULT;
		CREATE TABLE mixed (id int) PARTITION BY RANGE (id); CREATE TABLE mixed1 PARTITION OF mixed FOR VALUES FROM (0) TO (1); CREATE TABLE mixed2 PARTITION OF mixed DEFAULT;
		ALTER TABLE mixed1 REPLICA IDENTITY FULL; ALTER TABLE mixed2 ADD PRIMARY KEY (id);
		CREATE TABLE empty (id int) PARTITION BY RANGE (id);
		CREATE TABLE ok (id int, v int) PARTITION BY RANGE (id); CREATE TABLE ok1 PARTITION OF ok DEFAULT; ALTER TABLE ok1 REPLICA IDENTITY FULL`)
	cat, refused, err := readCatalogOf(context.Background(), c, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range cat.Tables {
		got = append(got, fmt.Sprintf("%s %d", m.Name, len(m.Parts)))
	}
	for _, f := range refused {
		got = append(got, f.Table.Name+": "+f.Reason)
	}
	slices.Sort(got)
	want := []string{"empty 0", "mixed1 0", "mixed2 0", "mixed: its partitions have different replica identities", "nokey1: no replica identity", "nokey: partition public.nokey1: no replica identity", "ok 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if cat.Lookup("public", "empty")[0].Parts == nil {
		t.Error("a partitioned table without partitions looks like a plain one")
	}
}
