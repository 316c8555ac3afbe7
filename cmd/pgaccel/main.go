// Command pgaccel accelerates analytic queries in front of a PostgreSQL server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pgaccel:", err)
		os.Exit(1)
	}
}
