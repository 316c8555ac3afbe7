package server

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGroupMemory(t *testing.T) {
	f := func(want int64, files ...string) {
		t.Helper()
		root := t.TempDir()
		for i := 0; i < len(files); i += 2 {
			path := filepath.Join(root, files[i])
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(files[i+1]+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := groupMemory(root); got != want {
			t.Errorf("%q: %d, want %d", files, got, want)
		}
	}
	f(math.MaxInt64)
	f(math.MaxInt64, "proc/self/cgroup", "0::/", "sys/fs/cgroup/memory.max", "max")
	f(5<<30, "proc/self/cgroup", "0::/", "sys/fs/cgroup/memory.max", "5368709120") // a container
	f(5<<30, "sys/fs/cgroup/memory/memory.limit_in_bytes", "5368709120")           // likewise, of version 1
	f(1000, "proc/self/cgroup", "0::/system.slice/pgaccel.service", "sys/fs/cgroup/system.slice/pgaccel.service/memory.max", "1000")
	f(900, "proc/self/cgroup", "0::/a/b/c", "sys/fs/cgroup/a/b/c/memory.max", "1000", "sys/fs/cgroup/a/memory.max", "900", "sys/fs/cgroup/b/memory.max", "1")
	f(800, "proc/self/cgroup", "5:cpu:/x\n4:blkio,memory:/x\n0::/", "sys/fs/cgroup/memory/x/memory.limit_in_bytes", "800", "sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1")
}

func TestMemoryWarning(t *testing.T) {
	f := func(memory, queries, available int64, warns bool) {
		t.Helper()
		var log bytes.Buffer
		cfg := Config{Memory: memory, QueryMemory: queries, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		cfg.setMemory()
		cfg.warnOfMemory(available)
		if got := strings.Contains(log.String(), "level=WARN"); got != warns {
			t.Errorf("%d and %d of %d: %q", memory, queries, available, log.String())
		}
	}
	f(0, 0, availableMemory(), false) // the defaults
	f(3<<30, 1<<30, 4<<30, false)
	f(3<<30, 1<<30+1, 4<<30, true)
	f(1<<50, 0, availableMemory(), true)
}
