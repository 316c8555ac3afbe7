// Command referee asks random questions of PostgreSQL and of pgaccel and compares
// the answers: `make referee N=200000 SEED=7`.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"pgaccel/integration/referee"
)

func main() {
	o := referee.Options{Out: os.Stdout}
	n := flag.Int("n", 20000, "queries; 0 asks without end")
	flag.Uint64Var(&o.Seed, "seed", 0, "seed; 0 takes one from the clock")
	flag.IntVar(&o.Sessions, "sessions", 4, "sessions in parallel")
	flag.IntVar(&o.Changes, "changes", 10, "of 100 queries, how many are preceded by a change of the data")
	flag.IntVar(&o.Repeat, "repeat", 0, "ask each query so often again, after changes of the data, with results and segments kept (--reuse-memory)")
	flag.IntVar(&o.Outside, "outside", 2, "of 100 queries, how many are outside of what is accelerated")
	flag.IntVar(&o.Rows, "rows", 0, "rows of fact tables, about; 0 is few, beyond 131072 their segments are as large as in service")
	flag.BoolVar(&o.Eager, "eager", false, "larger tables, which take the paths of tables much larger still; two questions at a time")
	flag.IntVar(&o.Literals, "literals", 10, "of 100 queries, how many have constants that are read in ways of their own")
	flag.IntVar(&o.Limits, "limits", 10, "of 100 queries, how many are about the limits of types")
	flag.IntVar(&o.Blocks, "blocks", 40, "of 100 other queries, how many are trees of blocks: sub-selects, derived tables, set operations")
	flag.IntVar(&o.Finish, "finish", 0, "of 100 queries, how many have parts that PostgreSQL finishes")
	collations := flag.String("collation", "C", "collations to run under, n queries each: of "+strings.Join(referee.Collations, ", ")+", or all")
	flag.IntVar(&o.Differences, "differences", 3, "end after so many differences")
	flag.StringVar(&o.Dir, "dir", ".", "where found cases are written")
	flag.IntVar(&o.Samples, "samples", 0, "print so many forwarded shapes for each reason")
	flag.StringVar(&o.Device, "device", "cpu", "where pgaccel computes: cpu, or cuda, cuda:N[,M...] or emu, which sessions then demand")
	flag.StringVar(&o.DeviceWorker, "device-worker", "", "program that has the device")
	flag.Int64Var(&o.DeviceMemory, "device-memory", 0, "bytes of each device to use; 0 is 85 % of what is free")
	flag.Int64Var(&o.QueryMemory, "query-memory", 0, "bytes that queries may hold, so that they go on in files or are forwarded; 0 is plenty")
	expressions := flag.Bool("expressions", false, "ask for n random expressions of what is answered, over a table of hard values")
	verbose := flag.Bool("v", false, "print pgaccel's log")
	flag.Parse()
	if o.Queries = *n; o.Queries == 0 {
		o.Queries = 1 << 60
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano()) % 1000000
	}
	if *verbose {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	list := strings.Split(*collations, ",")
	if *collations == "all" {
		list = referee.Collations
	}
	failed := false
	for _, o.Collation = range list {
		ask := referee.Run
		if *expressions {
			ask = referee.RunExpressions
		}
		r, err := ask(ctx, o)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "referee:", err)
			failed = true
		case len(r.Differences) > 0:
			failed = true
		case !*expressions && r.Share() < o.LeastShare() && ctx.Err() == nil:
			fmt.Fprintf(os.Stderr, "referee: only %.1f %% were accelerated, want %.0f %%\n", 100*r.Share(), 100*o.LeastShare())
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
