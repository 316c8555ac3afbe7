package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestEmptyPublication: statements that may still look the publication up are known; a transaction that rests is none.
func TestEmptyPublication(t *testing.T) {
	ctx := t.Context()
	url := database(t)
	c, watcher := connectTo(t, url), connectTo(t, url)
	mustExec(t, c, `CREATE TABLE a (id int PRIMARY KEY, n int); CREATE TABLE b (id int PRIMARY KEY, n int); CREATE TABLE "C"" c" (id int PRIMARY KEY); INSERT INTO a VALUES (1, 1); INSERT INTO b VALUES (1, 1)`)
	resting := connectTo(t, url)
	mustExec(t, resting, "BEGIN; INSERT INTO a VALUES (2, 2)")
	for _, sql := range []string{"CREATE PUBLICATION p", `CREATE PUBLICATION p FOR TABLE b, "C"" c"`, "CREATE PUBLICATION p FOR ALL TABLES"} {
		mustExec(t, c, sql)
		if err := dropPublication(ctx, c, "p"); err != nil {
			t.Fatal(sql, err)
		}
	}
	if err := dropPublication(ctx, c, "p"); err != nil { // there is none
		t.Fatal(err)
	}
	mustExec(t, c, `CREATE PUBLICATION p FOR TABLE a, "C"" c"`)
	lock := connectTo(t, url)
	mustExec(t, lock, "SELECT pg_advisory_lock(1)")
	writing := make(chan error, 1)
	writer := connectTo(t, url)
	go func() {
		_, err := writer.Exec(ctx, "UPDATE a SET n = 2 WHERE id = 1 AND pg_advisory_lock(1) IS NOT NULL", pgx.QueryExecModeSimpleProtocol)
		writing <- err
	}()
	const waiting = "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
	eventually(t, "the writer to wait", func() bool { return queryText(t, watcher, waiting) == "1" })
	tables, err := emptyPublication(ctx, c, "p")
	if err != nil || len(tables) != 2 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	writers, err := activeWriters(ctx, c, tables)
	if err != nil || len(writers) != 1 {
		t.Fatalf("%d writers, %v", len(writers), err)
	}
	if n := queryText(t, watcher, "SELECT concat((SELECT count(*) FROM pg_publication_rel), ' ', (SELECT count(*) FROM pg_publication))"); n != "0 1" {
		t.Error(n)
	}
	mustExec(t, lock, "SELECT pg_advisory_unlock(1)")
	if err := <-writing; err != nil {
		t.Error(err)
	}
	awaitWriters(ctx, c, tables)
	if err := dropPublication(ctx, c, "p"); err != nil {
		t.Error(err)
	}
	if n := queryText(t, watcher, "SELECT count(*)::text FROM pg_publication"); n != "0" {
		t.Error(n, "publications are left")
	}
}

// TestDropPublicationFailsNoUpdate makes and drops one while new sessions, which know nothing of the table yet, write.
func TestDropPublicationFailsNoUpdate(t *testing.T) {
	url := database(t)
	c := connectTo(t, url)
	mustExec(t, c, "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT g, 0 FROM generate_series(1, 100) g")
	var stop atomic.Bool
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for !stop.Load() {
				conn, err := pgx.Connect(context.Background(), url)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := conn.Exec(context.Background(), "UPDATE a SET n = n + 1 WHERE id = $1", i); err != nil {
					t.Error(err)
				}
				conn.Close(context.Background())
			}
		})
	}
	for range 200 {
		mustExec(t, c, "CREATE PUBLICATION p FOR TABLE a")
		if err := dropPublication(t.Context(), c, "p"); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	writers.Wait()
}
