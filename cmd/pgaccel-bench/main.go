// Command pgaccel-bench shows and measures pgaccel on private PostgreSQL servers: a
// demonstration, the benchmarks, and the comparisons of the papers behind it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pgaccel-bench:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pgaccel-bench",
		Short: "Shows and measures pgaccel: both sides in one run, answers compared, medians and ratios",
		Long: `pgaccel-bench starts private PostgreSQL servers and pgaccel, the program beside itself or on PATH, runs
both sides in one run, compares the answers, and prints medians and ratios.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(demoCommand(), ssbCommand(), biCommand(), repeatCommand(), tpchCommand(), tpcdsCommand(), clickbenchCommand(), passthroughCommand(), fairnessCommand(), freshnessCommand(), memoryCommand(),
		papersCommand(), gpuCommand(), ssbgenCommand())
	return cmd
}
