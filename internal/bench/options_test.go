package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPgaccelOnPath: a program that has no pgaccel beside it takes the one on PATH, or says what
// is missing.
func TestPgaccelOnPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	var o RunOptions
	if err := orPgaccel(&o.Progress, &o.Binary); err == nil || !strings.Contains(err.Error(), "no program pgaccel beside") {
		t.Errorf("none there: %v", err)
	}
	path := filepath.Join(dir, "pgaccel")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.Binary = ""
	if err := orPgaccel(&o.Progress, &o.Binary); err != nil || o.Binary != path {
		t.Errorf("one on PATH: %q, %v", o.Binary, err)
	}
	o.Binary = "/elsewhere/pgaccel"
	if err := orPgaccel(&o.Progress, &o.Binary); err != nil || o.Binary != "/elsewhere/pgaccel" {
		t.Errorf("one that was named: %q, %v", o.Binary, err)
	}
}
