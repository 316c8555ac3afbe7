package replica

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgaccel/colstore"
	"pgaccel/vector"
)

// rowsNow is what the server shows of a table, as contents does.
func rowsNow(t *testing.T, url, table, columns string) []string {
	t.Helper()
	c := connectTo(t, url)
	rows, err := c.Query(context.Background(), "SELECT concat("+columns+") FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// resumes waits until the tables are ready and hold what the server shows, and returns
// how many copies were made.
func resumes(t *testing.T, url string, r *Replicator, what string, copies int) {
	t.Helper()
	ready(t, r)
	c := connectTo(t, url)
	for _, table := range []string{"a", "b", "p"} {
		oid := tableOID(t, c, table)
		first := ""
		if hashed := rowsNow(t, url, "pg_attribute WHERE attname = 'u' AND attrelid = '"+table+"'::regclass", "attname"); len(hashed) > 0 {
			first = "'|-',"
		}
		want := rowsNow(t, url, table, first+"'|', id, '|', coalesce(x, '~'), '|', coalesce(n::text, '~')")
		var got []string
		eventually(t, what+": "+table, func() bool {
			v, _ := r.cfg.Store.Get(oid)
			if v == nil {
				return false
			}
			defer v.Release()
			got = contents(v)
			slices.Sort(got)
			return slices.Equal(got, want)
		})
	}
	r.mu.Lock()
	e := r.current
	r.mu.Unlock()
	made := 0
	e.reg.mu.Lock()
	for _, tb := range e.reg.tables {
		made += tb.copies
	}
	e.reg.mu.Unlock()
	if made != copies {
		t.Errorf("%s: %d copies, want %d", what, made, copies)
	}
}

// TestResume: a restart goes on from the saved columns, whatever was done to the tables
// meanwhile, and copies only what it must.
func TestResume(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TYPE pair AS (x text, y int); CREATE TABLE a (id int PRIMARY KEY, x text, n int); INSERT INTO a SELECT g, 'text ' || g % 10, g FROM generate_series(1, 3000) g;
		CREATE TABLE b (u pair PRIMARY KEY DEFAULT ROW(md5(random()::text), 1)::pair, id int, x text, n int); INSERT INTO b SELECT ROW(md5(random()::text), 1)::pair, g, NULL, g FROM generate_series(1, 300) g;
		CREATE TABLE p (id int PRIMARY KEY, x text, n int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100); CREATE TABLE p2 PARTITION OF p DEFAULT;
		INSERT INTO p SELECT g, g, g FROM generate_series(1, 300) g`)
	dir := filepath.Join(t.TempDir(), "data")
	cfg := func() Config {
		return Config{DataDir: dir, CheckpointInterval: 20 * time.Millisecond, RecopyQuiet: time.Millisecond}
	}
	r := start(t, url, cfg())
	resumes(t, url, r, "at first", 3)
	name := r.name
	slots := func() (n int) {
		t.Helper()
		if err := c.QueryRow(context.Background(), "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1", name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	change := func(round int) {
		mustExec(t, c, fmt.Sprintf(`INSERT INTO a SELECT g, 'new %d', g FROM generate_series(%d, %d) g; UPDATE a SET n = n + 1 WHERE id %% 7 = 0; DELETE FROM a WHERE id %% 11 = %d;
			UPDATE b SET n = n + 1 WHERE n %% 3 = 0; DELETE FROM b WHERE n %% 50 = 1; INSERT INTO b SELECT ROW(md5(random()::text), 1)::pair, g, 'x', g FROM generate_series(1, 10) g;
			UPDATE p SET id = id + 5000, n = -n WHERE n %% 9 = 1; BEGIN; DELETE FROM p WHERE n %% 4 = 0; ROLLBACK`, round, 10000+100*round, 10050+100*round, round%11))
	}
	for round, step := range []struct {
		what, sql string
		copies    int
	}{
		{"nothing happened", "", 0},
		{"changes", "change", 0},
		{"truncated", "TRUNCATE p1; INSERT INTO p VALUES (5, 'after', 1)", 0},
		{"granted and vacuumed", "GRANT SELECT ON a TO public; VACUUM FULL b", 0},
		{"type changed", "ALTER TABLE a ALTER n TYPE bigint USING n + 1; UPDATE a SET n = n + 2 WHERE id = 3", 1},
		{"column added", "ALTER TABLE b ADD extra int DEFAULT 5; ALTER TABLE b DROP extra; change", 0},
		{"partition attached", "CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (100000) TO (200000); INSERT INTO p VALUES (100001, 'p3', 3)", 1},
		{"taken out of the publication and put in again", "ALTER PUBLICATION % DROP TABLE a; UPDATE a SET n = -1 WHERE id = 5; ALTER PUBLICATION % ADD TABLE a", 1},
		{"publication altered", "ALTER PUBLICATION % SET (publish = 'insert'); change; ALTER PUBLICATION % SET (publish = 'insert, update, delete, truncate')", 3},
		{"publication dropped", "DROP PUBLICATION %; change", 3},
		{"slot dropped", "SELECT pg_drop_replication_slot('%'); change", 3},
		{"slot advanced", "change; SELECT pg_switch_wal(); SELECT pg_replication_slot_advance('%', pg_current_wal_lsn())", 3},
		{"a file is damaged", "damage", 1},
		{"the manifest is lost", "forget", 3},
	} {
		r.Close()
		slotsAreFree(t, c)
		if slots() != 1 {
			t.Fatalf("%s: %d slots are left while pgaccel is away", step.what, slots())
		}
		for sql := range strings.SplitSeq(step.sql, "; ") {
			switch sql {
			case "change":
				change(round)
			case "damage":
				damageTable(t, dir, "a")
			case "forget":
				if err := os.Remove(filepath.Join(dir, "manifest")); err != nil {
					t.Fatal(err)
				}
				mustExec(t, c, "SELECT pg_drop_replication_slot('"+name+"')") // as the documentation says
			case "":
			default:
				mustExec(t, c, strings.ReplaceAll(sql, "%", name))
			}
		}
		r = start(t, url, cfg())
		resumes(t, url, r, step.what, step.copies)
		change(100 + round)
		resumes(t, url, r, step.what+", then changes", step.copies)
		name = r.name
	}
	r.Close()
}

// TestResumeDocuments: columns of uuid and a domain over jsonb are restored; a table of which a column was not copied yet
// when it was saved is copied.
func TestResumeDocuments(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	// The bytes of these uuids are digits, as contents shows them.
	const id = "encode(lpad(%s::text, 16, '0')::bytea, 'hex')::uuid"
	row := func(g string) string {
		return fmt.Sprintf(id, g) + ", CASE WHEN " + g + " % 9 > 0 THEN jsonb_build_object('b', " + g + ", 'a', ARRAY['é\"', " + g + "::text]) END, " + g
	}
	mustExec(t, c, "CREATE DOMAIN doc AS jsonb; CREATE TABLE a (id uuid PRIMARY KEY, j doc, n int); INSERT INTO a SELECT "+row("g")+" FROM generate_series(1, 3000) g")
	oid := tableOID(t, c, "a")
	dir := t.TempDir()
	open := func(what, dir string, want int) *Replicator {
		t.Helper()
		store := colstore.New(colstore.Options{})
		t.Cleanup(store.Close)
		r := start(t, url, Config{Store: store, DataDir: dir, CheckpointInterval: 20 * time.Millisecond, RecopyQuiet: time.Millisecond})
		shows := func() bool {
			return served(t, c, store, "a", "concat('|', convert_from(decode(replace(id::text, '-', ''), 'hex'), 'UTF8'), '|', coalesce(j::text, '~'), '|', n)")
		}
		ready(t, r)
		eventually(t, what+": copies", func() bool { return copies(r, oid) == want })
		eventually(t, what, shows)
		mustExec(t, c, `UPDATE a SET j = j || '{"c": 1.50}' WHERE n % 7 = 0; DELETE FROM a WHERE n % 11 = 1; INSERT INTO a SELECT `+row("g")+" FROM (SELECT max(abs(n)) + 1 FROM a) m(g)")
		eventually(t, what+", then changes", shows)
		if n := copies(r, oid); n != want {
			t.Errorf("%s: %d copies, want %d", what, n, want)
		}
		return r
	}
	for i, what := range []string{"at first", "restored", "restored again"} {
		r := open(what, dir, max(1-i, 0))
		r.Close()
		slotsAreFree(t, c)
		mustExec(t, c, "INSERT INTO a SELECT "+row("g")+" FROM (SELECT max(abs(n)) + 1 FROM a) m(g); UPDATE a SET n = -n WHERE n % 13 = 0")
	}
	open("of an older pgaccel", withoutColumn(t, dir, 1, "type jsonb"), 1).Close()
	slotsAreFree(t, c)
}

// TestResumeNumerics: columns of numerics that 64 bits need not hold are restored, and copied where they were not yet
// when the table was saved.
func TestResumeNumerics(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	const row = "g * 1.50, (g / 7.0)::numeric(30,9), g"
	mustExec(t, c, "CREATE TABLE a (k numeric PRIMARY KEY, w numeric(30,9), n int); INSERT INTO a SELECT "+row+" FROM generate_series(1, 3000) g")
	oid := tableOID(t, c, "a")
	open := func(dir string, want int) {
		t.Helper()
		store := colstore.New(colstore.Options{})
		t.Cleanup(store.Close)
		r := start(t, url, Config{Store: store, DataDir: dir, CheckpointInterval: 20 * time.Millisecond, RecopyQuiet: time.Millisecond})
		shows := func() bool { return served(t, c, store, "a", "concat('|', k, '|', w, '|', n)") }
		ready(t, r)
		eventually(t, "copies", func() bool { return copies(r, oid) == want })
		eventually(t, "rows", shows)
		mustExec(t, c, "UPDATE a SET w = w + 1 WHERE n % 7 = 0; DELETE FROM a WHERE n % 11 = 1; UPDATE a SET k = k + 0.250 WHERE n % 5 = 0; INSERT INTO a SELECT "+row+" FROM (SELECT max(n) + 1 FROM a) m(g)")
		eventually(t, "changed rows", shows)
		r.Close()
		slotsAreFree(t, c)
	}
	dir := t.TempDir()
	open(dir, 1)
	open(dir, 0)
	open(withoutColumn(t, dir, 0, "numeric without declared precision"), 1)
	open(withoutColumn(t, dir, 1, "numeric(30,9) exceeds 18 digits"), 1)
}

// withoutColumn returns a folder with the checkpoint of another one as it is where a column is of a type that is not
// copied.
func withoutColumn(t *testing.T, dir string, column int, unsupported string) string {
	t.Helper()
	store := colstore.New(colstore.Options{})
	defer store.Close()
	from, err := colstore.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	other := t.TempDir()
	to, err := colstore.OpenDisk(other)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	var tables []*colstore.Table
	for i := range from.Last().Tables {
		v, err := from.LoadTable(store, &from.Last().Tables[i])
		if err != nil {
			t.Fatal(err)
		}
		meta := *v.Meta
		meta.Columns = slices.Clone(meta.Columns)
		meta.Columns[column].Type, meta.Columns[column].Unsupported = vector.Type{}, unsupported
		v.Meta, v.Dicts[column] = &meta, nil
		for _, seg := range v.Segments {
			seg.Columns[column] = colstore.Column{}
		}
		tables = append(tables, v)
	}
	saved := *from.Last()
	if err := to.Save(&saved, tables); err != nil {
		t.Fatal(err)
	}
	return other
}

// damageTable flips a bit in a file of the table.
func damageTable(t *testing.T, dir, name string) {
	t.Helper()
	d, err := colstore.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, saved := range d.Last().Tables {
		if saved.Meta.Name != name {
			continue
		}
		path := filepath.Join(dir, fmt.Sprintf("s%d", saved.Segments[0].File.Number))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 4
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s is not saved", name)
}

// TestResumeAfterInterruption: a stream that is cut goes on from the last checkpoint,
// under load, and with transactions open across it.
func TestResumeAfterInterruption(t *testing.T) {
	url := database(t)
	c, other := connectTo(t, url), connectTo(t, url)
	mustExec(t, c, `CREATE TABLE a (id int PRIMARY KEY, x text, n int); INSERT INTO a SELECT g, 'text ' || g % 10, g FROM generate_series(1, 3000) g;
		CREATE TABLE b (id int PRIMARY KEY, x text, n int); CREATE TABLE p (id int PRIMARY KEY, x text, n int)`)
	r := start(t, url, Config{DataDir: t.TempDir(), CheckpointInterval: 10 * time.Millisecond})
	resumes(t, url, r, "at first", 3)
	for round := range 6 {
		mustExec(t, other, fmt.Sprintf("BEGIN; UPDATE a SET n = n + 1 WHERE id <= 100; SAVEPOINT s; INSERT INTO b VALUES (%d, 'open', 1)", round))
		for i := range 20 {
			mustExec(t, c, fmt.Sprintf("UPDATE a SET x = 'round %d' WHERE id %% 30 = %d AND id > 100; INSERT INTO p VALUES (%d, 'x', 1)", round, i, round*100+i))
			if i == 10 {
				mustExec(t, c, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
			}
		}
		mustExec(t, other, "COMMIT")
		resumes(t, url, r, fmt.Sprint("round ", round), 0)
	}
}

// TestLastCheckpointOnAnotherSession: the server ends the session of checkpoints, which is
// found at the last one: that is saved all the same.
func TestLastCheckpointOnAnotherSession(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	dir := t.TempDir()
	r := start(t, url, Config{Store: store, DataDir: dir}) // one a minute
	ready(t, r)
	stream := r.current.stream
	// The first manifest has no tables. Amid a checkpoint, the end of its session ends the stream.
	eventually(t, "the first checkpoint", func() bool {
		manifest, _ := os.ReadFile(filepath.Join(dir, "manifest"))
		return bytes.Contains(manifest, []byte(`"Tables":[{`))
	})
	eventually(t, "the session's end", func() bool {
		return queryText(t, c, "SELECT count(pg_terminate_backend(pid, 5000))::text FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query LIKE '%pg_logical_emit_message(false, $1::text, $2::text%'") == "1"
	})
	mustExec(t, c, "INSERT INTO a VALUES (2)")
	waitInsert(t, c, store)
	r.Close()
	last := r.disk.Last()
	if last.Tables[0].Rows != 2 {
		t.Errorf("the last checkpoint has %d rows, and ends at %X; the stream came to %X", last.Tables[0].Rows, last.Position, stream.seen.Load())
	}
	slotsAreFree(t, c)
	mustExec(t, c, "SELECT pg_drop_replication_slot('"+r.name+"')")
}
