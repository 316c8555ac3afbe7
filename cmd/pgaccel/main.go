//go:build !packaging

// Command pgaccel accelerates analytic queries in front of a PostgreSQL server.
package main

import (
	"fmt"
	"os"
	"slices"
)

func main() {
	if slices.Contains(os.Args, "serve") {
		freeLazily()
	}
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "pgaccel:", err)
		os.Exit(1)
	}
}
