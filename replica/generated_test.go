package replica

import (
	"context"
	"strings"
	"testing"
)

// TestGeneratedColumns: they are not copied, and publishing a table that has them must
// not make its UPDATEs fail, which PostgreSQL 18 does where they are in the replica
// identity and not published.
func TestGeneratedColumns(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, `CREATE TABLE keyed (id int PRIMARY KEY, n int, g int GENERATED ALWAYS AS (n + 1) STORED);
		CREATE TABLE whole (id int, n int, g int GENERATED ALWAYS AS (n + 1) STORED); ALTER TABLE whole REPLICA IDENTITY FULL;
		CREATE TABLE ofkey (id int, n int, g int GENERATED ALWAYS AS (id + 1) STORED PRIMARY KEY)`)
	tables := []string{"keyed", "whole"}
	if !strings.HasPrefix(queryText(t, c, "SHOW server_version_num"), "1") || queryText(t, c, "SHOW server_version_num") >= "180000" {
		mustExec(t, c, "CREATE TABLE virtual (id int PRIMARY KEY, n int, g int GENERATED ALWAYS AS (n + 1) VIRTUAL); CREATE TABLE vwhole (id int, n int, g int GENERATED ALWAYS AS (n + 1) VIRTUAL); ALTER TABLE vwhole REPLICA IDENTITY FULL")
		tables = append(tables, "virtual")
	}
	r := start(t, url, Config{})
	ready(t, r)
	for i, table := range tables {
		changes(t, c, table, i+2)
		if _, err := c.Exec(context.Background(), "UPDATE "+table+" SET n = n + 1"); err != nil {
			t.Errorf("%s: %v", table, err)
			continue
		}
		comesBack(t, c, r, table, "concat('|', id, '|', n, '|-')")
		if n := copies(r, tableOID(t, c, table)); n != 1 {
			t.Errorf("%s: %d copies", table, n)
		}
	}
	mustExec(t, c, "INSERT INTO ofkey (id, n) VALUES (1, 1); UPDATE ofkey SET id = 2")
	if len(tables) > 2 {
		mustExec(t, c, "INSERT INTO vwhole VALUES (1, 1); UPDATE vwhole SET n = 2; DELETE FROM vwhole")
	}
	for _, st := range r.cfg.Store.Statuses() {
		if (st.Name == "public.ofkey" || st.Name == "public.vwhole") && (st.State.String() != "refused" || !strings.Contains(st.Detail, "generated column g")) {
			t.Errorf("%+v", st)
		}
	}
}
