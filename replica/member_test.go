package replica

import "testing"

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
