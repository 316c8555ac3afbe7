package ssb

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/pgserver"
)

func TestLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	pg, err := pgserver.Start(ctx, pgserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Stop()
	const scale = 0.05
	var mu sync.Mutex
	seen := map[string]int64{}
	err = Source.Load(ctx, pg.URL("postgres", "postgres"), scale, func(table, step string, rows, total int64) {
		mu.Lock()
		defer mu.Unlock()
		seen[table+" "+step] = rows
		if rows > total {
			t.Errorf("%s: %s: row %d of %d", table, step, rows, total)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, pg.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, table := range Source.Tables {
		rows, _ := Source.Rows(table, scale)
		if seen[table+" copy"] != rows || seen[table+" done"] != rows {
			t.Errorf("%s: progress ends at %d (copy) and %d (done) of %d rows", table, seen[table+" copy"], seen[table+" done"], rows)
		}
		// What is stored, in the order it is stored in, is what was generated.
		want, got := sha256.New(), sha256.New()
		if err := Source.Generate(table, scale, 0, 1, want); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().CopyTo(ctx, got, "COPY "+table+" TO STDOUT"); err != nil {
			t.Fatal(err)
		}
		if w, g := fmt.Sprintf("%x", want.Sum(nil)), fmt.Sprintf("%x", got.Sum(nil)); w != g {
			t.Errorf("%s: the stored rows are not the generated ones", table)
		}
		var keyed, analyzed, visible bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary),
			reltuples = $2, relallvisible = relpages FROM pg_class c WHERE oid = $1::text::regclass`, table, float32(rows)).Scan(&keyed, &analyzed, &visible); err != nil || !keyed || !analyzed || !visible {
			t.Errorf("%s: primary key %v, analyzed %v, all visible %v (%v)", table, keyed, analyzed, visible, err)
		}
	}
	for _, q := range Queries() {
		if _, err := conn.Exec(ctx, q.SQL, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
	}
	if err := Source.Load(ctx, pg.URL("postgres", "postgres"), scale, nil); err == nil {
		t.Error("a second load over existing tables succeeded")
	}
}
