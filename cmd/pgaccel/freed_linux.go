package main

import (
	"os"
	"strings"
	"syscall"
)

// freeLazily has Go's runtime give memory back to the kernel as free to take (MADV_FREE) instead of at once
// (MADV_DONTNEED). A query's hash tables and intermediate columns are tens of megabytes, which the next query
// wants again: faulting pages in anew is a tenth to a quarter of the processor time of TPC-H's queries, and all
// threads wait for one lock meanwhile. The price is that the resident size stays near its peak until the kernel
// needs memory; LazyFree in /proc/PID/smaps_rollup is the part that it may take.
//
// The runtime reads the setting when it starts, and only from the environment, so that the process executes itself
// anew. Where that cannot be done it goes on as it is.
func freeLazily() {
	const name, setting = "GODEBUG", "madvdontneed"
	old := os.Getenv(name)
	if strings.Contains(old, setting) {
		return
	}
	program, err := os.Executable()
	if err != nil {
		return
	}
	os.Setenv(name, strings.TrimPrefix(old+","+setting+"=0", ","))
	_ = syscall.Exec(program, os.Args, os.Environ())
	os.Setenv(name, old)
}
