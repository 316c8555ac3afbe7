package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"pgaccel/internal/ssb"
)

// DemoOptions are those of `pgaccel-bench demo`. The zero value takes about a minute on two
// cores.
type DemoOptions struct {
	Scale     float64   // scale factor; 0 is 1: 6 million rows, about 1 GB of disk
	Keep      bool      // keep running until ctx ends
	Binary    string    // the pgaccel to show; "" is the one beside this program
	Listen    string    // pgaccel's address; "" is 127.0.0.1:6432, or a free port where that is taken
	HTTP      string    // of its metrics and console; "" is 127.0.0.1:8432, or a free port
	ServeArgs []string  // more flags for `pgaccel serve`
	PGBinDir  string    // folder of initdb and postgres; "" looks for one
	Progress  io.Writer // nil is standard error
}

// Demo shows what pgaccel does, on a private Postgres server with a generated data set:
// it runs 13 queries both ways, compares the answers, prints one table to out, and says
// how to try it by hand. Like SSB it returns an error where a query was not accelerated or
// an answer is wrong. Interrupted, it prints what it has. Everything is gone when it returns.
func Demo(ctx context.Context, d DemoOptions, out io.Writer) (err error) {
	defer interrupted(ctx, &err)
	o := SSBOptions{Scale: d.Scale, RunOptions: RunOptions{Rounds: 1, Runs: 3, Binary: d.Binary, ServeArgs: d.ServeArgs, PGBinDir: d.PGBinDir, Progress: d.Progress}}
	if err := o.fill(); err != nil {
		return err
	}
	if d.Listen == "" {
		d.Listen = "127.0.0.1:6432"
	}
	if d.HTTP == "" {
		d.HTTP = "127.0.0.1:8432"
	}
	rows, err := ssb.Source.Rows("lineorder", o.Scale)
	if err != nil {
		return err
	}
	newProgress(o.Progress).say("A private Postgres server, a sales table of %d rows with four others around it, and pgaccel in front. About a minute.", rows)
	load, err := ssbWorkload(o.Scale)
	if err != nil {
		return err
	}
	return d.run(ctx, load, o.RunOptions, out)
}

// run shows the queries of a workload.
func (d DemoOptions) run(ctx context.Context, load workload, o RunOptions, out io.Writer) error {
	start := time.Now()
	s, err := startSession(ctx, load, o, d.Listen, d.HTTP)
	if err != nil {
		return err
	}
	defer s.close()
	err = s.run(ctx, o.Rounds, o.Runs)
	if err != nil && (ctx.Err() == nil || !s.untilInterrupted(out)) {
		return err
	}
	fmt.Fprintf(out, "\n%d queries of the Star Schema Benchmark, straight to PostgreSQL %s and through pgaccel (%d cores, medians of %d runs):\n\n",
		len(load.queries), s.version, runtime.NumCPU(), o.Runs)
	if err != nil {
		s.printInterrupted(out, o)
		s.printJudgement(out)
		return err
	}
	printResults(out, s.results, false)
	fmt.Fprintf(out, "\npgaccel copied the tables (%s in Postgres) into %s of columns in %s. The demo took %.0f s.\n",
		size(s.heapBytes), size(s.storeBytes), seconds(s.child.FirstCopy), time.Since(start).Seconds())
	if err := s.judge(); err != nil {
		return err
	}
	if !d.Keep {
		fmt.Fprintf(out, "To try queries of your own, run it with --keep and connect with psql; to put pgaccel in front of your server:\n\n"+
			"  %s serve --upstream postgres://user@host:5432/db --accelerate 'public.*'\n", o.Binary)
		return nil
	}
	fmt.Fprintf(out, "\nConnect yourself:     %s\nWithout pgaccel:      %s\nWhat it is doing:     http://%s/\nCtrl-C ends both and removes the data.\n",
		psql(s.child.Addr), psql(fmt.Sprintf("127.0.0.1:%d", s.server.Port)), s.child.HTTP)
	select {
	case <-ctx.Done():
		return nil
	case <-s.child.exited:
		return s.ended()
	}
}

func psql(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "psql " + address
	}
	return fmt.Sprintf("psql -h %s -p %s -U postgres postgres", host, port)
}
