package server

import (
	"log/slog"
	"path/filepath"
	"testing"
)

func TestTempFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, c := range []struct {
		cfg   Config
		none  bool
		limit int64 // 0: some
	}{
		{cfg: Config{TempDir: tempOff, TempLimit: 5}, none: true},
		{cfg: Config{TempDir: filepath.Join(dir, "a", "b"), TempLimit: 5}, limit: 5},
		{cfg: Config{DataDir: filepath.Join(dir, "data")}},
		{cfg: Config{}, none: inMemory(dir)},
		{cfg: Config{TempDir: "/dev/shm/pgaccel-test"}, limit: 0},
	} {
		if c.cfg.TempDir == "/dev/shm/pgaccel-test" {
			if !inMemory("/dev/shm") {
				continue
			}
			t.Setenv("TMPDIR", "/dev/shm")
			c.cfg.TempDir, c.none = "", true
		}
		c.cfg.Logger = slog.New(slog.DiscardHandler)
		s, err := openTemp(&c.cfg)
		switch {
		case err != nil:
			t.Error(err)
		case (s == nil) != c.none:
			t.Errorf("%+v: %v", c.cfg, s)
		case s != nil && (s.Limit() < 1 || c.limit != 0 && s.Limit() != c.limit):
			t.Errorf("%+v: %d", c.cfg, s.Limit())
		}
	}
	if _, err := openTemp(&Config{TempDir: "/proc/none", Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a folder that cannot be")
	}
}
