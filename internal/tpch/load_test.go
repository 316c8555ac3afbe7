package tpch

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
	const scale = 0.02
	var mu sync.Mutex
	seen := map[string]int64{}
	err = Source.Load(ctx, pg.URL("postgres", "postgres"), scale, func(table, step string, rows, _ int64) {
		mu.Lock()
		defer mu.Unlock()
		seen[table+" "+step] = rows
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
		if seen[table+" done"] != rows {
			t.Errorf("%s: progress ends at %d of %d rows", table, seen[table+" done"], rows)
		}
		// What is stored, in the order it is stored in, is what was generated, but for the
		// blanks that char(n) has at its end.
		var columns string
		if err := conn.QueryRow(ctx, `SELECT string_agg(attname || CASE WHEN atttypid = 'bpchar'::regtype THEN '::text' ELSE '' END, ', ' ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0`, table).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		want, got := sha256.New(), sha256.New()
		if err := Source.Generate(table, scale, 0, 1, want); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().CopyTo(ctx, got, "COPY (SELECT "+columns+" FROM "+table+") TO STDOUT"); err != nil {
			t.Fatal(err)
		}
		if w, g := fmt.Sprintf("%x", want.Sum(nil)), fmt.Sprintf("%x", got.Sum(nil)); w != g {
			t.Errorf("%s: the stored rows are not the generated ones", table)
		}
		var keyed bool
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_index WHERE indrelid = $1::text::regclass AND indisprimary)", table).Scan(&keyed); err != nil || !keyed {
			t.Errorf("%s: primary key %v (%v)", table, keyed, err)
		}
	}
	for _, q := range Queries() {
		for _, text := range []string{q.Published(), q.Draw(0, scale), q.Draw(1, scale)} {
			tag, err := conn.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Errorf("%s: %v", q.Name, err)
			}
			t.Logf("%s: %d rows", q.Name, tag.RowsAffected())
		}
	}
	if err := Source.Load(ctx, pg.URL("postgres", "postgres"), scale, nil); err == nil {
		t.Error("a second load over existing tables succeeded")
	}
}
