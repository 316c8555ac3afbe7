package integration

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"pgaccel/internal/pgserver"
)

// TestAdviseAndCheck: both commands say the memory, one as text and as JSON; errors are on standard error, with status 1.
func TestAdviseAndCheck(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"shared_buffers": "16MB"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	url := s.URL("postgres", "postgres")
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 100000) i", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	program := pgaccelProgram(t)
	run := func(args ...string) (out, errs string, status int) {
		t.Helper()
		cmd := exec.Command(program, args...)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
	out, errs, status := run("advise", "--upstream", url)
	if status != 0 || errs != "" || !strings.Contains(out, "public.t") || !strings.Contains(out, "all tables: ") {
		t.Errorf("%d %s %s", status, out, errs)
	}
	var report struct {
		Tables []struct {
			Memory struct{ Rows, Bytes int64 }
		}
	}
	out, _, status = run("advise", "--upstream", url, "--format", "json", "--accelerate", "t")
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 || len(report.Tables) != 1 || report.Tables[0].Memory.Bytes < 1<<20 {
		t.Errorf("%v %d %s", err, status, out)
	}
	for want, args := range map[string][]string{
		"--upstream is missing":    {"advise"},
		"none of text, json":       {"advise", "--upstream", url, "--format", "xml"},
		"less than 1":              {"advise", "--upstream", url, "--top", "0"},
		"shared_preload_libraries": {"advise", "--upstream", url, "--pg-stat-statements"},
		"table pattern":            {"advise", "--upstream", url, "--accelerate", "a.b.c"},
	} {
		if out, errs, status := run(args...); status != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %s %s, want %s", args, status, out, errs, want)
		}
	}
	if out, _, status := run("check", "--upstream", url, "--memory", "64MiB"); status != 0 || !strings.Contains(out, "ok     memory: the columns of 1 tables take about ") || !strings.Contains(out, "; --memory is 64MiB\n") {
		t.Errorf("%d %s", status, out)
	}
	if out, _, status := run("check", "--upstream", url, "--memory", "1MiB"); status != 0 || !strings.Contains(out, "warn   memory: ") || !strings.Contains(out, "choose fewer tables") {
		t.Errorf("%d %s", status, out)
	}
	if out, _, status := run("check", "--upstream", url, "--memory", "1MiB", "--accelerate", "auto"); status != 0 || !strings.Contains(out, "ok     memory: the columns of 1 tables take about ") || !strings.Contains(out, ": auto takes what statements need") {
		t.Errorf("%d %s", status, out)
	}
	if out, _, status := run("advise", "--upstream", url, "--accelerate", "auto"); status != 0 || !strings.Contains(out, "public.t") {
		t.Errorf("%d %s", status, out)
	}
	var left int
	if err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots)").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d slots and publications are left: %v", left, err)
	}
}
