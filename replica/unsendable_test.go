package replica

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgaccel/colstore"
)

// TestTablesThatCannotBeSent: a table with a column whose values have no binary form is refused for that, its rows may be changed, and
// those of others come. Where one becomes such a table with a row, all in one transaction, the stream ends there; it
// must not begin there again.
func TestTablesThatCannotBeSent(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "data")} {
		url := database(t)
		c := connectTo(t, url)
		mustExec(t, c, `CREATE TABLE others (id int PRIMARY KEY, n int); CREATE TABLE late (id int PRIMARY KEY, n int);
			CREATE TABLE keyed (id int PRIMARY KEY, n int, x aclitem[]); CREATE TABLE whole (id int, n int, x aclitem[]); ALTER TABLE whole REPLICA IDENTITY FULL;
			CREATE TYPE pair AS (a int, b aclitem); CREATE DOMAIN pairs AS pair[]; CREATE TABLE within (id int PRIMARY KEY, n int, x pairs);
			CREATE TABLE single (id int PRIMARY KEY, n int, x aclitem)`)
		store := colstore.New(colstore.Options{})
		r := start(t, url, Config{Store: store, DataDir: dir, CheckpointInterval: 20 * time.Millisecond})
		ready(t, r)
		for _, table := range []string{"keyed", "whole", "within"} {
			_, state := store.Get(tableOID(t, c, table))
			if state != colstore.StateRefused {
				t.Errorf("%s is %s", table, state)
			}
		}
		for _, st := range store.Statuses() {
			if st.State == colstore.StateRefused && !strings.Contains(st.Detail, "column x of type") {
				t.Errorf("%s: %s", st.Name, st.Detail)
			}
		}
		for table, value := range map[string]string{"keyed": "'{=r/postgres}'", "whole": "'{=r/postgres}'", "within": `'{"(1,=r/postgres)"}'`, "single": "'=r/postgres'", "others": ""} {
			if value != "" {
				value = ", " + value
			}
			mustExec(t, c, "INSERT INTO "+table+" SELECT g, g"+value+" FROM generate_series(1, 100) g; UPDATE "+table+" SET n = n + 1; UPDATE "+table+" SET id = id + 1000; DELETE FROM "+table+" WHERE n > 51")
		}
		holds := func(table string, rows int) {
			t.Helper()
			eventually(t, table, func() bool {
				v, _ := store.Get(tableOID(t, c, table))
				if v == nil {
					return false
				}
				defer v.Release()
				return len(contents(v)) == rows
			})
		}
		waitInsert(t, c, store)
		holds("others", 50)
		holds("single", 50)
		mustExec(t, c, "BEGIN; ALTER TABLE late ADD x aclitem[]; INSERT INTO late VALUES (1, 1, '{=r/postgres}'); INSERT INTO others VALUES (1, 1); COMMIT")
		waitState(t, store, tableOID(t, c, "late"), colstore.StateRefused)
		holds("others", 51)
		mustExec(t, c, "UPDATE late SET n = 2; DELETE FROM late; DELETE FROM others WHERE id = 1")
		waitInsert(t, c, store)
		holds("others", 50)
		r.Close()
		store.Close()
	}
}
