package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pgaccel/internal/bench"
	"pgaccel/internal/flags"
	"pgaccel/internal/ssb"
)

func demoCommand() *cobra.Command {
	var o bench.DemoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A private PostgreSQL, star-schema data, pgaccel in front: 13 queries both ways",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGHUP) // the terminal has gone
			defer stop()
			return bench.Demo(ctx, o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Scale, "scale", 1, "scale factor: 1 is 6 million rows")
	f.BoolVar(&o.Keep, "keep", false, "keep running until interrupted, to connect to it")
	f.StringVar(&o.Listen, "listen", "", "address for clients (default 127.0.0.1:6432, or a free port)")
	f.StringVar(&o.HTTP, "http", "", "address of metrics and console (default 127.0.0.1:8432, or a free port)")
	return cmd
}

func ssbCommand() *cobra.Command {
	var o bench.SSBOptions
	cmd := &cobra.Command{
		Use:   "ssb",
		Short: "The Star Schema Benchmark: PostgreSQL directly, and through pgaccel",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.SSB(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Scale, "scale", 0, "scale factor (default 1, or 0.1 with --quick)")
	runFlags(f, &o.RunOptions)
	return cmd
}

func biCommand() *cobra.Command {
	var o bench.BIOptions
	cmd := &cobra.Command{
		Use:   "bi",
		Short: "20 queries of business intelligence tools over one wide table of events",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.BI(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Int64Var(&o.Rows, "rows", 0, "rows of the table (default 10000000, or 1000000 with --quick)")
	runFlags(f, &o.RunOptions)
	return cmd
}

func repeatCommand() *cobra.Command {
	var o bench.RepeatOptions
	cmd := &cobra.Command{
		Use:   "repeat",
		Short: "The queries of bi again and again while rows come, with what pgaccel keeps of earlier ones and without",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Repeat(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Quick, "quick", false, "small sizes")
	f.Int64Var(&o.Rows, "rows", 0, "rows of the table (default 10000000, or 1000000 with --quick)")
	f.IntVar(&o.Rounds, "rounds", 0, "how often each query is asked, with reuse and without (default 20, or 4 with --quick)")
	f.IntVar(&o.Appends, "appends", 0, "rows a second that are appended (default 500)")
	f.IntVar(&o.Updates, "updates", 0, "rows a second that are updated (default 50)")
	f.StringVar(&o.Binary, "binary", "", "the pgaccel to measure (default the one beside this program, or on PATH)")
	f.StringVar(&o.PGBinDir, "pg-bindir", "", "folder of postgres")
	return cmd
}

func tpchCommand() *cobra.Command {
	var o bench.TPCHOptions
	cmd := &cobra.Command{
		Use:   "tpch",
		Short: "TPC-H's 22 queries, each round with other parameters: PostgreSQL directly, and through pgaccel",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.TPCH(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Scale, "scale", 0, "scale factor (default 1, or 0.05 with --quick)")
	runFlags(f, &o.RunOptions)
	return cmd
}

func tpcdsCommand() *cobra.Command {
	var o bench.TPCDSOptions
	cmd := &cobra.Command{
		Use:   "tpcds",
		Short: "99 statements of TPC-DS' shapes, each round with other parameters: PostgreSQL directly, and through pgaccel",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.TPCDS(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.Scale, "scale", 0, "scale factor (default 1, or 0.05 with --quick)")
	f.DurationVar(&o.Limit, "limit", 0, "longest run of a statement in PostgreSQL, after which its time is a lower bound (default 1m)")
	runFlags(f, &o.RunOptions)
	return cmd
}

func clickbenchCommand() *cobra.Command {
	var o bench.ClickBenchOptions
	cmd := &cobra.Command{
		Use:   "clickbench",
		Short: "43 statements of ClickBench's meanings over its table: PostgreSQL directly, and through pgaccel",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.ClickBench(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.Int64Var(&o.Rows, "rows", 0, "rows of the table (default 10000000, or 200000 with --quick)")
	f.DurationVar(&o.Limit, "limit", 0, "longest run of a statement in PostgreSQL, after which its time is a lower bound (default 1m)")
	runFlags(f, &o.RunOptions)
	return cmd
}

// runFlags are what the comparisons have in common.
func runFlags(f *pflag.FlagSet, o *bench.RunOptions) {
	f.BoolVar(&o.Quick, "quick", false, "fewer runs over less data")
	f.IntVar(&o.Rounds, "rounds", 0, "rounds over all queries (default 3, or 1 with --quick)")
	f.IntVar(&o.Runs, "runs", 0, "measured runs a query, side and round (default 5, or 3 with --quick)")
	f.StringSliceVar(&o.Queries, "queries", nil, "names of the queries to run (default all)")
	f.StringVar(&o.DuckDB, "duckdb", "", "program built from bench/duckdb, to show DuckDB beside")
	f.StringVar(&o.Base, "base", "", "another pgaccel, an older one, to show beside; Postgres runs once then")
	f.BoolVar(&o.Bytes, "bytes", false, "also print the columns' bytes, with --duckdb beside DuckDB's")
	f.StringSliceVar(&o.ServeArgs, "serve-arg", nil, "more flags for `pgaccel serve`")
}

func passthroughCommand() *cobra.Command {
	var o bench.PassthroughOptions
	cmd := &cobra.Command{
		Use:   "passthrough",
		Short: "What pgaccel adds to statements that it forwards, beside PgBouncer",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Passthrough(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&o.Quick, "quick", false, "about a minute")
	return cmd
}

func fairnessCommand() *cobra.Command {
	var o bench.FairnessOptions
	cmd := &cobra.Command{
		Use:   "fairness",
		Short: "What forwarded statements wait for beside accelerated ones, and directly",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Fairness(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Quick, "quick", false, "about a minute")
	f.IntVar(&o.Rounds, "rounds", 0, "rounds over all settings and both sides (default 5, or 1 with --quick)")
	f.DurationVar(&o.Duration, "duration", 0, "of each measurement (default 8s, or 3s with --quick)")
	f.IntVar(&o.Rows, "rows", 0, "rows of the table (default 4000000, or 1000000 with --quick)")
	f.IntVar(&o.Heavy, "heavy", 0, "clients with heavy queries (default 8)")
	f.IntVar(&o.Clients, "clients", 0, "clients that mix all statements (default 100)")
	f.StringSliceVar(&o.ServeArgs, "serve-arg", nil, "more flags for `pgaccel serve`")
	return cmd
}

func freshnessCommand() *cobra.Command {
	var o bench.FreshnessOptions
	cmd := &cobra.Command{
		Use:   "freshness",
		Short: "What it costs to be never stale: waits, rate of applying, memory of history",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Freshness(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Quick, "quick", false, "about a minute")
	f.StringSliceVar(&o.Loads, "load", nil, "loads to wait beside: idle, own, limited, full (default all)")
	f.DurationVar(&o.Duration, "duration", 0, "of each load (default 12s, or 2s with --quick)")
	f.IntVar(&o.Rate, "rate", 0, "transactions a second of the limited load (default 2000)")
	f.IntVar(&o.Rows, "rows", 0, "rows changed by one statement (default 1000000, or 100000 with --quick)")
	f.StringSliceVar(&o.ServeArgs, "serve-arg", nil, "more flags for `pgaccel serve`")
	return cmd
}

func memoryCommand() *cobra.Command {
	var o bench.MemoryOptions
	var memory, queryMemory flags.ByteSize
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "That memory is bounded: statements and clients that hold much, under small limits",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Memory, o.QueryMemory = int64(memory), int64(queryMemory)
			return bench.Memory(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Rows, "rows", 0, "rows of the table (default 12000000)")
	f.Var(&memory, "memory", "--memory of pgaccel (default 2GiB)")
	f.Var(&queryMemory, "query-memory", "--query-memory of pgaccel (default 1GiB)")
	f.DurationVar(&o.Hold, "hold", 0, "how long results are left unread, and SELECT 1 is measured alone (default 10s)")
	f.StringSliceVar(&o.Only, "only", nil, "scenarios: "+strings.Join(bench.MemoryScenarios(), ", ")+" (default all)")
	f.StringSliceVar(&o.ServeArgs, "serve-arg", nil, "more flags for `pgaccel serve`")
	return cmd
}

func papersCommand() *cobra.Command {
	var o bench.PapersOptions
	cmd := &cobra.Command{
		Use:   "papers",
		Short: "The comparisons of the papers behind pgaccel: compression, WAH bitmaps, cubes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Papers(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Quick, "quick", false, "small inputs: about half a minute")
	f.StringVar(&o.Only, "only", "", "one section: "+strings.Join(bench.PapersSections(), ", "))
	f.StringVar(&o.Roaring, "roaring", "", "program built from bench/roaring, to show RoaringBitmap beside")
	return cmd
}

func gpuCommand() *cobra.Command {
	var o bench.GPUOptions
	var memory flags.ByteSize
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "The device: kernels, bytes, bandwidth, and what a client sees; answers checked against the CPU",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.DeviceMemory = int64(memory)
			return bench.GPU(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Quick, "quick", false, "tiny inputs, for the emulator: answers are checked, times mean little")
	f.StringSliceVar(&o.Only, "only", nil, "parts to run: "+strings.Join(bench.GPUParts(), ", ")+" (default all)")
	f.Float64Var(&o.Scale, "scale", 0, "scale factor of the Star Schema Benchmark (default 20, or 0.02 with --quick)")
	f.StringVar(&o.SSBFiles, "ssb-files", "", "folder with ssb-dbgen's tables of that scale factor: customer.tbl, supplier.tbl, part.tbl, date.tbl, and lineorder.tbl or its pieces .1, .2 ...; named pipes, too (default: generate them)")
	f.Int64Var(&o.Rows, "clickbench-rows", 0, "rows of ClickBench's table (default 10000000, or 20000 with --quick)")
	f.Float64Var(&o.TPCH, "tpch-scale", 0, "scale factor of TPC-H (default 10, or 0.01 with --quick)")
	f.Int64Var(&o.IndexRows, "index-rows", 0, "rows of each of the four tables of the part index (default 120000000, or 200000 with --quick)")
	f.StringVar(&o.WireOf, "wire-of", "ssb", "whose statements the part wire asks: ssb, clickbench or tpch")
	f.StringSliceVar(&o.Queries, "queries", nil, "names of the statements of the parts clickbench, tpch and wire (default all)")
	f.StringVar(&o.DuckDB, "duckdb", "", "program built from bench/duckdb, to show DuckDB beside ClickBench and TPC-H")
	f.IntVar(&o.Runs, "runs", 0, "measured runs of each query (default 12, or 2 with --quick; of the part wire 50, or 3)")
	f.StringVar(&o.Device, "device", "cuda", "cuda, cuda:N[,M...] or emu")
	f.Var(&memory, "device-memory", "most memory of each device to use (default: 85 % of what is free)")
	f.StringVar(&o.DeviceWorker, "device-worker", "", "program that has CUDA (default pgaccel-gpu, or pgaccel-gpu-emu with --device emu, beside pgaccel or on PATH)")
	f.StringVar(&o.Out, "out", "", "FILE: writes the results to FILE.json and FILE.md")
	return cmd
}

func ssbgenCommand() *cobra.Command {
	var scale float64
	var dir, table string
	var part, parts int
	cmd := &cobra.Command{
		Use:   "ssbgen",
		Short: "Generate the Star Schema Benchmark's tables as COPY text",
		Long: `Generates the tables of the Star Schema Benchmark as text that COPY ... FROM reads: one file a table in
--dir, or one table on standard output. The same arguments always give the same bytes.`,
		Example: `  pgaccel-bench ssbgen --scale 1 --dir /tmp/ssb
  pgaccel-bench ssbgen --scale 0.1 --table lineorder | psql -c 'COPY lineorder FROM STDIN'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case (dir == "") == (table == ""):
				return fmt.Errorf("give either --dir, for all tables, or --table, for one on standard output")
			case table != "" && !slices.Contains(ssb.Source.Tables, table):
				return fmt.Errorf("--table %s: use one of %s", table, strings.Join(ssb.Source.Tables, ", "))
			case part < 1 || parts < 1 || part > parts:
				return fmt.Errorf("--part %d of --parts %d: parts count from 1", part, parts)
			}
			if table != "" {
				out := bufio.NewWriterSize(cmd.OutOrStdout(), 1<<20)
				if err := ssb.Source.Generate(table, scale, part-1, parts, out); err != nil {
					return err
				}
				return out.Flush()
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for _, name := range ssb.Source.Tables {
				if err := generateFile(filepath.Join(dir, name+".tbl"), name, scale, part-1, parts); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.Float64Var(&scale, "scale", 1, "scale factor: 1 is 6 million rows of lineorder")
	f.StringVar(&dir, "dir", "", "folder for one file a table")
	f.StringVar(&table, "table", "", "one table, to standard output")
	f.IntVar(&part, "part", 1, "which of --parts to generate, from 1")
	f.IntVar(&parts, "parts", 1, "number of parts that together make the table")
	return cmd
}

// generateFile writes one table; a file that could not be finished is removed.
func generateFile(path, table string, scale float64, part, parts int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			os.Remove(path)
		}
	}()
	out := bufio.NewWriterSize(f, 1<<20)
	if err := ssb.Source.Generate(table, scale, part, parts, out); err != nil {
		return err
	}
	return out.Flush()
}
