package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInspect: what is whole is printed and gives status 0; damage is said on standard
// error and gives status 1, and the other files are printed all the same.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../internal/inspect/testdata/format1")); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (out, errs string, status int) {
		t.Helper()
		cmd := exec.Command(os.Args[0], append([]string{"inspect"}, args...)...)
		cmd.Env = append(os.Environ(), "PGACCEL_TEST_MAIN=1")
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
	s1, s2 := filepath.Join(dir, "s1"), filepath.Join(dir, "s2")
	if out, errs, status := run(dir, s1); status != 0 || errs != "" || !strings.Contains(out, "7301234567890123456") || !strings.Contains(out, "1024 rows") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if err := os.Truncate(s1, 100); err != nil {
		t.Fatal(err)
	}
	out, errs, status := run(s1, s2)
	if status != 1 || !strings.Contains(errs, "pgaccel: "+s1+": offset 96: checksum") || !strings.Contains(out, "76 rows") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if _, errs, status := run(); status != 1 || !strings.Contains(errs, "requires at least 1 arg") {
		t.Errorf("without a path: status %d, %s", status, errs)
	}
}
