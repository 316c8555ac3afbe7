package advise_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/advise"
	"pgaccel/internal/server"
	"pgaccel/plan"
)

// TestRoutesAreTaken: a pgaccel over the same tables answers statements by the routes that are said.
func TestRoutesAreTaken(t *testing.T) {
	url := advise.RoutesDatabase(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := server.Start(ctx, server.Config{Upstream: url, Accelerate: []string{"*"}, Listen: []string{"127.0.0.1:0"}, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Host, cfg.Port = "127.0.0.1", uint16(s.Addr().(*net.TCPAddr).Port)
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	advise.StatementRoutes(func(sql, wantRoute string, wantReason plan.Reason) {
		if wantReason == plan.ReasonNotSelect { // those are not in pgaccel.queries
			return
		}
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
			return
		}
		var said, reason string
		if err := conn.QueryRow(ctx, "SELECT route, coalesce(reason, '') FROM pgaccel.queries ORDER BY last_used DESC LIMIT 1").Scan(&said, &reason); err != nil {
			t.Fatal(err)
		}
		if said != wantRoute || wantReason != "" && reason != string(wantReason) {
			t.Errorf("%s: %s (%s), want %s (%s)", sql, said, reason, wantRoute, wantReason)
		}
	})
}
