package server

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultMemory is the limit of column memory where none is given: 8 GiB, but no
// more than half of what this process may use. Past physical memory a page fault
// would end the process instead of refusing a table.
func defaultMemory() int64 {
	limit := int64(16 << 30)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		limit = min(limit, int64(info.Totalram)*int64(info.Unit))
	}
	// A container's own limit, control groups version 2 and 1.
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := os.ReadFile(name); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				limit = min(limit, n)
			}
		}
	}
	return limit / 2
}
