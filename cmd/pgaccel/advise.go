package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"pgaccel/internal/advise"
	"pgaccel/internal/flags"
	"pgaccel/internal/server"
	"pgaccel/replica"
)

func adviseCommand() *cobra.Command {
	var o advise.Options
	var passwordFile, format string
	var memory flags.ByteSize
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Say which tables to take, what memory they need, and which statements would gain",
		Long: `advise reads the catalog, the statistics and a sample of each table, as a role that need not be able to do more than
that. It copies nothing, makes no slot, and changes nothing. With --pg-stat-statements it plans the statements that
took most time as pgaccel would, were all tables copied, and chooses the tables by what these would gain.
Where the configuration file has several databases, each is advised as if it had all of --memory; JSON is one document after the other.`,
		Example: `  pgaccel advise --upstream postgres://reader@127.0.0.1:5432/shop --pg-stat-statements
  pgaccel advise --upstream postgres://reader@127.0.0.1:5432/shop --accelerate 'public.*' --memory 16GiB --format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := configuredDatabases(cmd, &o.Upstream, &passwordFile, &o.Accelerate)
			if err != nil {
				return err
			}
			for i, d := range all {
				one := o
				one.Upstream, one.Accelerate, one.Memory = d.Upstream, d.Accelerate, memoryLimit(memory)
				if len(one.Accelerate) == 0 {
					one.Accelerate = []string{"*"}
				}
				r, err := advise.Run(cmd.Context(), one)
				switch {
				case err != nil && len(all) > 1:
					return fmt.Errorf("%s: %w", cmp.Or(d.Name, "--upstream"), err)
				case err != nil:
					return err
				case format == "json":
					err = r.JSON(cmd.OutOrStdout())
				default:
					if len(all) > 1 {
						heading(cmd, i, d)
					}
					err = r.Text(cmd.OutOrStdout())
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Upstream, "upstream", "", "URL of the PostgreSQL server; its user need only read")
	passwordFileFlag(f, &passwordFile)
	f.StringSliceVar(&o.Accelerate, "accelerate", []string{"*"}, "tables to look at")
	f.Var(&memory, "memory", "what columns may take, such as 8GiB (default as serve's)")
	f.BoolVar(&o.Statements, "pg-stat-statements", false, "plan the statements of that extension's view, and choose tables by them")
	f.IntVar(&o.Top, "top", 50, "how many statements, by their total time")
	f.StringVar(&format, "format", "text", "text or json")
	return cmd
}

// memoryLimit is --memory, or what serve takes where it is not given.
func memoryLimit(given flags.ByteSize) int64 {
	if given == 0 {
		return server.DefaultMemory()
	}
	return int64(given)
}

// checkMemory says what memory the tables need that check looks at, beside the limit, and returns it in bytes; 0 where auto bounds it.
func checkMemory(cmd *cobra.Command, dsn string, patterns []string, limit int64) int64 {
	bytes, tables, guessed, err := advise.Memory(cmd.Context(), dsn, patterns)
	if err != nil {
		fmt.Fprintf(cmd.OutOrStdout(), "%-5s  %s: %s\n", "warn", "memory", "not estimated: "+err.Error())
		return 0
	}
	level, text := "ok", fmt.Sprintf("the columns of %d tables take about %s, by samples; --memory is %s", tables, advise.Size(bytes), advise.Size(limit))
	if guessed > 0 {
		text += fmt.Sprintf(" (%d of them guessed by types: pgaccel advise says why)", guessed)
	}
	switch {
	case replica.HasAuto(patterns):
		text += ": auto takes what statements need, as far as it fits"
		bytes = 0
	case bytes > limit:
		level = "warn"
		text += ": what does not fit is forwarded; raise it, or choose fewer tables (pgaccel advise)"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%-5s  %s: %s\n", level, "memory", text)
	return bytes
}
