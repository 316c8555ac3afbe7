package server

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DefaultMemory is the limit of column memory where none is given: 8 GiB, but no
// more than half of what this process may use. Past physical memory a page fault
// would end the process instead of refusing a table.
func DefaultMemory() int64 { return min(8<<30, availableMemory()/2) }

// defaultQueryMemory is the limit of query memory where none is given: as much as columns
// may have, but at least 1 GiB, and at most a quarter of what this process may use.
func defaultQueryMemory(columns int64) int64 {
	return min(max(columns, 1<<30), availableMemory()/4)
}

// garbageShare is the part of the memory of queries, one to so many, that is for what is not collected yet.
const garbageShare = 8

// GoMemoryLimit is what Go's runtime is to keep its memory below (debug.SetMemoryLimit):
// from there on it collects garbage as often as it has to. Column memory is none of Go's.
func (cfg *Config) GoMemoryLimit() int64 {
	cfg.setMemory()
	const (
		// What is there without any query, of each database: the stream's transactions, the loader's
		// buffers, decisions, the catalog.
		base = 512 << 20
		// sessionMemory is what a session holds of its two sides when it is stuck.
		sessionMemory = 128 << 10
	)
	// An execution's intermediate results are garbage before its result is written out.
	return int64(max(len(cfg.patterns()), 1))*base + cfg.QueryMemory + cfg.QueryMemory/garbageShare + cfg.ReuseMemory + min(int64(cfg.MaxClients)*sessionMemory, base)
}

// setMemory sets the limits that were left out.
func (cfg *Config) setMemory() {
	if cfg.Memory == 0 {
		cfg.Memory = DefaultMemory()
	}
	if cfg.QueryMemory == 0 {
		cfg.QueryMemory = defaultQueryMemory(cfg.Memory)
	}
}

// availableMemory is what this process may use: the machine's memory, or that of its control groups.
func availableMemory() int64 {
	limit := int64(math.MaxInt64)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		limit = min(limit, int64(info.Totalram)*int64(info.Unit))
	}
	limit = min(limit, groupMemory("/"))
	if limit == math.MaxInt64 {
		return 4 << 30 // it cannot be known
	}
	return limit
}

// groupMemory is the least limit of the process's control groups, which a container or a service (MemoryMax=) has, of versions 2
// and 1. root is where /proc and /sys are.
func groupMemory(root string) int64 {
	limit := int64(math.MaxInt64)
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	groups := []string{"0::/", ":memory:/"} // in a container with no name of its own for them
	for _, one := range append(groups, strings.Split(string(text), "\n")...) {
		_, one, _ = strings.Cut(one, ":")
		controllers, path, _ := strings.Cut(one, ":")
		folder, file := "sys/fs/cgroup", "memory.max"
		if controllers != "" {
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		if controllers != "" && !slices.Contains(strings.Split(controllers, ","), "memory") {
			continue
		}
		for ; ; path = filepath.Dir(path) { // those that it is in limit it as well
			if text, err := os.ReadFile(filepath.Join(root, folder, path, file)); err == nil {
				if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
					limit = min(limit, n)
				}
			}
			if path == "/" || path == "." || path == "" {
				break
			}
		}
	}
	return limit
}

// warnOfMemory tells of limits that there is not the memory for: past it the kernel ends the process.
func (cfg *Config) warnOfMemory(available int64) {
	if cfg.Memory > available-cfg.QueryMemory {
		cfg.Logger.Warn("--memory and --query-memory are more than the memory of this machine, container or service",
			"memory", cfg.Memory, "query_memory", cfg.QueryMemory, "available", available)
	}
}
