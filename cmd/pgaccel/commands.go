package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"pgaccel/internal/advise"
	"pgaccel/internal/flags"
	"pgaccel/internal/inspect"
	"pgaccel/internal/server"
	"pgaccel/replica"
)

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pgaccel",
		Short: "An accelerator in front of PostgreSQL",
		Long: `pgaccel speaks the PostgreSQL protocol, copies chosen tables into compressed columns, keeps watch over
their changes, and answers analytic queries from the columns. Everything else goes to PostgreSQL untouched.

Every flag is also an environment variable (--max-clients is PGACCEL_MAX_CLIENTS) and a key of the YAML
file that --config names, which may have the keys of all commands.`,
		Version:       server.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetVersionTemplate("pgaccel {{.Version}}\n")
	cmd.PersistentFlags().String("config", "", "YAML file with flags' values (env PGACCEL_CONFIG)")
	cmd.AddCommand(serveCommand(), checkCommand(), adviseCommand(), inspectCommand(), versionCommand())
	return cmd
}

func passwordFileFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "upstream-password-file", "", "file with the password for --upstream, which only its owner may read; PGPASSFILE, ~/.pgpass and service files work, too")
}

// withPassword returns upstream with the password of a file, and takes one that is on
// the command line out of the process list.
func withPassword(upstream, file string, warn func(string)) (string, error) {
	upstream = strings.Clone(upstream) // it may be part of the arguments
	if server.HidePassword(os.Args) {
		warn("the password in --upstream was to be seen in the process list: use --upstream-password-file, PGPASSFILE or a service file")
	}
	if text := server.LoosePasswordFile(); text != "" {
		warn(text)
	}
	return server.WithPassword(upstream, file)
}

// durations writes a duration with its unit, in JSON as in text, where it would be a
// number of nanoseconds.
func durations(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// missing says how many findings of check stand in the way.
func missing(n int) error {
	if n == 1 {
		return errors.New("1 requirement is not met")
	}
	return fmt.Errorf("%d requirements are not met", n)
}

func newLogger(w io.Writer, format, level string, l *slog.LevelVar) (*slog.Logger, error) {
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %s: use debug, info, warn or error", level)
	}
	opt := &slog.HandlerOptions{Level: l, ReplaceAttr: durations}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opt)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opt)), nil
	}
	return nil, fmt.Errorf("--log-format %s: use text or json", format)
}

// progress shows the first copy: a bar a table on a terminal, log lines elsewhere.
// Tables are copied side by side, so that calls come from several goroutines.
func progress(log *slog.Logger) func(replica.Progress) {
	var mu sync.Mutex
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		var last time.Time
		return func(p replica.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if !p.Done && time.Since(last) > 5*time.Second { // the end has a line of the copy's own
				last = time.Now()
				log.Info("copying", "table", p.Table, "rows", p.Rows, "of_about", p.EstimatedRows)
			}
		}
	}
	bars := map[string]*progressbar.ProgressBar{}
	return func(p replica.Progress) {
		mu.Lock()
		defer mu.Unlock()
		bar := bars[p.Table]
		if bar == nil {
			bar = progressbar.NewOptions64(max(p.EstimatedRows, p.Rows, 1), progressbar.OptionSetWriter(os.Stderr),
				progressbar.OptionSetDescription("copying "+p.Table), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond))
			bars[p.Table] = bar
		}
		if p.Rows > bar.GetMax64() {
			bar.ChangeMax64(p.Rows)
		}
		bar.Set64(p.Rows)
		if p.Done {
			bar.Finish()
			fmt.Fprintln(os.Stderr)
			delete(bars, p.Table)
		}
	}
}

func checkCommand() *cobra.Command {
	var dsn, passwordFile, certificate string
	var patterns []string
	var memory flags.ByteSize
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what the server and the role still need, with the SQL to fix it",
		Long: `check looks at the database of --upstream, and at all databases of the configuration file, and says what each still needs, with
the SQL that mends it. It changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := configuredDatabases(cmd, &dsn, &passwordFile, &patterns)
			if err != nil {
				return err
			}
			shown, err := server.Certificate(certificate)
			if err != nil {
				return err
			}
			bad, needed := 0, int64(0)
			for i, d := range all {
				if len(all) > 1 {
					heading(cmd, i, d)
				}
				n, err := checkDatabase(cmd, d, shown)
				switch {
				case err != nil && len(all) == 1:
					return err
				case err != nil: // the others are looked at all the same
					fmt.Fprintf(cmd.OutOrStdout(), "%-5s  server: %v\n", replica.LevelError, err)
					n++
				case len(d.Accelerate) > 0:
					needed += checkMemory(cmd, d.Upstream, d.Accelerate, memoryLimit(memory))
				}
				bad += n
			}
			if limit := memoryLimit(memory); len(all) > 1 && needed > limit {
				fmt.Fprintf(cmd.OutOrStdout(), "\n%-5s  memory: the columns of all databases take about %s, and share %s\n", "warn", advise.Size(needed), advise.Size(limit))
			}
			if bad > 0 {
				return missing(bad)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dsn, "upstream", "", "URL of the PostgreSQL server")
	passwordFileFlag(cmd.Flags(), &passwordFile)
	cmd.Flags().StringSliceVar(&patterns, "accelerate", []string{"public.*"}, "tables to copy")
	cmd.Flags().Var(&memory, "memory", "the limit that serve is given, beside which the tables' memory is said (default as serve's)")
	cmd.Flags().StringVar(&certificate, "tls-cert", "", "the certificate file that serve is given, if any: what logins it allows")
	return cmd
}

// checkDatabase prints what stands in the way of one database, and returns how much of it is an error. One that nothing is copied of
// needs nothing.
func checkDatabase(cmd *cobra.Command, d server.Database, certificate []byte) (bad int, err error) {
	if len(d.Accelerate) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%-5s  tables: accelerate names none: everything is forwarded\n", "ok")
		return 0, nil
	}
	findings, err := replica.Check(cmd.Context(), d.Upstream, d.Accelerate, certificate)
	for _, f := range findings {
		fmt.Fprintf(cmd.OutOrStdout(), "%-5s  %s: %s\n", f.Level, f.Subject, f.Text)
		if f.SQL != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "       %s\n", strings.ReplaceAll(f.SQL, "\n", "\n       "))
		}
		if f.Level == replica.LevelError {
			bad++
		}
	}
	return bad, err
}

func inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect PATH...",
		Short: "Say what a data directory or one of its files holds; nothing is changed",
		Long: `inspect reads a folder of --data-dir, or files of it (s<n> segments, d<n> dictionaries, l<n> live rows), and
prints what is in them. It needs no server, takes no lock and writes nothing: a pgaccel may be using the folder.
Damage is said with file and offset, and the exit status is 1. Of a folder the files' sizes are checked; a file
that is named is read in full, its checksum included.`,
		Args: cobra.MinimumNArgs(1),
		Example: `  pgaccel inspect /var/lib/pgaccel
  pgaccel inspect /var/lib/pgaccel/s1
  pgaccel inspect /var/lib/pgaccel/[sdl][0-9]*`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			var damage []error
			for i, path := range paths {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				damage = append(damage, inspect.Path(cmd.OutOrStdout(), path))
			}
			return errors.Join(damage...)
		},
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "pgaccel", server.Version())
		},
	}
}
