//go:build !packaging

// Command pgaccel accelerates analytic queries in front of a PostgreSQL server.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "pgaccel:", err)
		os.Exit(1)
	}
}
