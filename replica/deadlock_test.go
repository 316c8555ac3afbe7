package replica

import (
	"testing"
	"time"
)

// TestDeadlock: a client that has a table which is waited for gets all others meanwhile, and is not ended for a deadlock.
func TestDeadlock(t *testing.T) {
	url := database(t)
	c, watch := connectTo(t, url), connectTo(t, url)
	mustExec(t, c, `CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY);
		CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
		CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20); CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30);
		INSERT INTO a VALUES (1); INSERT INTO p SELECT generate_series(0, 29)`)
	for _, held := range []string{"b", "p2"} {
		mustExec(t, c, "BEGIN; LOCK TABLE "+held)
		r := start(t, url, Config{})
		eventually(t, "the wait for "+held, func() bool {
			return queryText(t, watch, "SELECT (count(*) > 0)::text FROM pg_locks WHERE NOT granted AND relation = '"+held+"'::regclass") == "true"
		})
		time.Sleep(1200 * time.Millisecond) // whoever waits longer than deadlock_timeout has looked for one, and does not again
		mustExec(t, c, "LOCK TABLE a, c, p1, p3; COMMIT")
		ready(t, r)
		r.Close()
	}
}
