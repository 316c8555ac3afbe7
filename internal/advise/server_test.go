package advise

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/colstore"
	"pgaccel/internal/pgserver"
	"pgaccel/replica"
)

var postgres *pgserver.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		postgres, err = start(map[string]string{"shared_buffers": "128MB", "max_replication_slots": "8", "max_wal_senders": "8"})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer postgres.Stop()
		return m.Run()
	}())
}

func start(settings map[string]string) (*pgserver.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return pgserver.Start(ctx, pgserver.Options{Settings: settings})
}

// database makes a database with these tables, and returns its URL.
func database(t *testing.T, on *pgserver.Server, sql string) string {
	t.Helper()
	name := fmt.Sprintf("t%d", time.Now().UnixNano())
	exec(t, on.URL("postgres", "postgres"), "CREATE DATABASE "+name)
	url := on.URL("postgres", name)
	exec(t, url, sql)
	return url
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	// A session that ends writes its statistics down after its client has gone.
	if _, err := conn.Exec(context.Background(), "SELECT pg_catalog.pg_stat_force_next_flush()", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func survey(t *testing.T, url string, patterns ...string) *replica.Survey {
	t.Helper()
	if patterns == nil {
		patterns = []string{"*"}
	}
	s, err := replica.NewSurvey(context.Background(), url, patterns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// copied copies all tables, and returns the memory that each one's columns take.
func copied(t *testing.T, url string) map[string]int64 {
	t.Helper()
	store := colstore.New(colstore.Options{})
	t.Cleanup(store.Close)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := replica.Start(ctx, replica.Config{Upstream: url, Accelerate: []string{"*"}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	bytes := map[string]int64{}
	for _, st := range store.Statuses() {
		if st.State != colstore.StateReady {
			t.Fatalf("%+v", st)
		}
		bytes[st.Name] = st.Bytes
	}
	return bytes
}
