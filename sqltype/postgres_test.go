package sqltype

import (
	"context"
	"log"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

var (
	serverOnce sync.Once
	server     *pgserver.Server
)

func TestMain(m *testing.M) {
	code := m.Run()
	if server != nil {
		server.Stop()
	}
	os.Exit(code)
}

// realPostgres connects to a private server that all tests share.
func realPostgres(t testing.TB) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	serverOnce.Do(func() {
		var err error
		if server, err = pgserver.Start(ctx, pgserver.Options{}); err != nil {
			log.Fatal(err)
		}
	})
	conn, err := pgconn.Connect(ctx, server.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// query runs statements and returns the last one's rows as text.
func query(t testing.TB, conn *pgconn.PgConn, sql string) [][]string {
	t.Helper()
	results, err := conn.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatal(sql, err)
	}
	var rows [][]string
	for _, values := range results[len(results)-1].Rows {
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	return rows
}
