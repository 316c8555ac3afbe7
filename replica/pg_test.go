package replica

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/pgserver"
)

var server *pgserver.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var err error
		if server, err = pgserver.Start(ctx, pgserver.Options{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Stop()
		return m.Run()
	}())
}

// database makes an empty database for one test and returns its URL.
func database(t testing.TB, options ...string) string {
	t.Helper()
	name := fmt.Sprintf("t%d", time.Now().UnixNano())
	admin := connectTo(t, server.URL("postgres", "postgres"))
	mustExec(t, admin, "CREATE DATABASE "+name+" "+strings.Join(options, " "))
	return server.URL("postgres", name)
}

func connectTo(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func mustExec(t testing.TB, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func queryText(t testing.TB, c *pgx.Conn, sql string) string {
	t.Helper()
	var s string
	if err := c.QueryRow(context.Background(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func queryRows(t testing.TB, c *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := c.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}
