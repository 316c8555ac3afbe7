package server

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"pgaccel/internal/temp"
)

// tempOff is the --temp-dir of who wants none.
const tempOff = "off"

// tempShare of the free bytes of a file system is what temporary files may take there where no limit
// is given: the folder may be the server's, too.
const tempShare = 4

// openTemp returns where queries put what memory does not hold; nil for nowhere. A folder that was
// chosen has to do; without one, where it does not is only said.
func openTemp(cfg *Config) (*temp.Space, error) {
	dir, chosen := cfg.TempDir, cfg.TempDir != ""
	switch {
	case dir == tempOff:
		return nil, nil
	case chosen:
	case cfg.DataDir != "":
		dir = filepath.Join(cfg.DataDir, "tmp")
	default:
		if dir = os.TempDir(); inMemory(dir) {
			cfg.Logger.Info("no temporary files: the folder is memory, --temp-dir names another", "folder", dir)
			return nil, nil
		}
	}
	limit := cfg.TempLimit
	s, err := temp.Open(dir, max(limit, 1))
	if err == nil && limit == 0 {
		if limit, err = freeBytes(dir); err == nil {
			s, err = temp.Open(dir, limit/tempShare)
		}
	}
	if err != nil {
		err = fmt.Errorf("--temp-dir: %w", err)
		if chosen {
			return nil, err
		}
		cfg.Logger.Warn("no temporary files", "error", err)
		return nil, nil
	}
	return s, nil
}

func inMemory(dir string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return false
	}
	return fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC
}

func freeBytes(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}
