package replica

import (
	"testing"

	"pgaccel/colstore"
)

// TestSomebodyPublishesARefusedTable: a table that is in our publication, but not by
// us, is taken as any other once it can be.
func TestSomebodyPublishesARefusedTable(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int, n int)")
	r := start(t, url, Config{})
	ready(t, r)
	mustExec(t, c, "ALTER PUBLICATION "+r.name+" ADD TABLE a; INSERT INTO a VALUES (1, 1); ALTER TABLE a ADD PRIMARY KEY (id); INSERT INTO a VALUES (2, 2)")
	comesBack(t, c, r, "a", "concat('|', id, '|', n)")
	mustExec(t, c, "INSERT INTO a VALUES (3, 3)")
	comesBack(t, c, r, "a", "concat('|', id, '|', n)")
}

// TestATableGoesWhileNoStreamWatches: what the last stream knew and the next does not
// is forgotten.
func TestATableGoesWhileNoStreamWatches(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, n int); CREATE TABLE b (id int PRIMARY KEY)")
	store := colstore.New(colstore.Options{})
	defer store.Close()
	r := start(t, url, Config{Store: store})
	defer r.Close()
	ready(t, r)
	mustExec(t, c, `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = current_database();
		DROP TABLE a, b; CREATE TABLE a (id int PRIMARY KEY, n int)`)
	comesBack(t, c, r, "a", "concat('|', id, '|', n)")
	eventually(t, "only the new table is listed", func() bool { return len(store.Statuses()) == 1 })
}
