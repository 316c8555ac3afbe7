package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"pgaccel/internal/flags"
	"pgaccel/internal/inspect"
	"pgaccel/internal/processors"
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
file that --config names.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return configure(cmd)
		},
	}
	cmd.PersistentFlags().String("config", "", "YAML file with flags' values (env PGACCEL_CONFIG)")
	cmd.AddCommand(serveCommand(), checkCommand(), inspectCommand(), versionCommand())
	return cmd
}

func serveCommand() *cobra.Command {
	var cfg server.Config
	var logFormat, logLevel, passwordFile string
	var memory, queryMemory, tempLimit, retained, deviceMemory flags.ByteSize
	var shadow share
	trials := toggle(true)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the accelerator",
		Args:  cobra.NoArgs,
		Example: `  pgaccel serve --upstream postgres://postgres@127.0.0.1:5432/shop --accelerate 'public.*'
  psql -h 127.0.0.1 -p 6432 shop`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Upstream == "" {
				return errors.New("--upstream is missing: the URL of the PostgreSQL server, such as postgres://user@host:5432/db")
			}
			log, err := newLogger(cmd.ErrOrStderr(), logFormat, logLevel)
			if err != nil {
				return err
			}
			if cfg.Upstream, err = withPassword(cfg.Upstream, passwordFile, func(text string) { log.Warn(text) }); err != nil {
				return err
			}
			cfg.Logger, cfg.Memory, cfg.QueryMemory, cfg.Shadow = log, int64(memory), int64(queryMemory), float64(shadow)
			cfg.Trials = bool(trials)
			cfg.MaxRetainedWAL, cfg.DeviceMemory, cfg.TempLimit = int64(retained), int64(deviceMemory), int64(tempLimit)
			cfg.Progress = progress(log)
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			go func() {
				for range hangup {
					log.Warn("SIGHUP: pgaccel cannot read its configuration anew yet, restart it for that; nothing was changed")
				}
			}()
			if os.Getenv("GOMEMLIMIT") == "" {
				debug.SetMemoryLimit(cfg.GoMemoryLimit())
			}
			server.CollectRarely()
			processors.ShortSlices()
			processors.Spare()
			s, err := server.Start(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			defer s.Close()
			log.Info("pgaccel is listening", "clients", s.Addr().String(), "http", fmt.Sprint(s.HTTPAddr()), "version", server.Version())
			return s.Wait()
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Upstream, "upstream", "", "URL of the PostgreSQL server; its user copies tables and streams changes")
	passwordFileFlag(f, &passwordFile)
	f.StringSliceVar(&cfg.Listen, "listen", []string{"127.0.0.1:6432"}, "addresses for clients: host:port, or the path of a Unix socket")
	f.StringVar(&cfg.HTTP, "http", "127.0.0.1:8432", "address of /metrics, /healthz, /readyz and the console; empty for none")
	f.StringSliceVar(&cfg.Accelerate, "accelerate", nil, "tables to copy: public.*, sales, !public.secret")
	f.StringVar(&cfg.Device, "device", "auto", "where queries run: auto (a GPU where there is one), cpu, cuda, cuda:N[,M...] or emu")
	f.Var(&deviceMemory, "device-memory", "most memory of each device to use, such as 16GiB (default: 85 % of what is free)")
	f.StringVar(&cfg.DeviceWorker, "device-worker", "", "program that has CUDA (default pgaccel-gpu, or pgaccel-gpu-emu with --device emu, beside pgaccel or on PATH)")
	f.Var(&memory, "memory", "limit of column memory, such as 8GiB (default 8GiB, or half of the memory where that is less); tables that do not fit are forwarded")
	f.Var(&queryMemory, "query-memory", "limit of what queries hold while they run, and their results until clients have read them (default as --memory, at least 1GiB, at most a quarter of the memory); a query that does not fit is forwarded")
	f.StringVar(&cfg.TempDir, "temp-dir", "", "folder for what --query-memory does not hold: large sorts, groups and results, in files without a name; off for none (default tmp in --data-dir, else the system's folder unless that is memory)")
	f.Var(&tempLimit, "temp-limit", "most bytes of files in --temp-dir, such as 20GiB (default: a quarter of what is free there); a query that needs more is forwarded")
	f.IntVar(&cfg.Workers, "workers", 0, "goroutines of one query; 0 is one a core")
	f.IntVar(&cfg.CopySessions, "copy-sessions", 0, "most sessions that copy tables at once; 0 is one a core, 32 at most; never more than a quarter of the connections that are free on the server")
	f.StringVar(&cfg.TLSCert, "tls-cert", "", "certificate file for TLS with clients (best the server's own, see README)")
	f.StringVar(&cfg.TLSKey, "tls-key", "", "key file for --tls-cert")
	f.StringVar(&cfg.TLSRequire, "tls-require", "", "refuse clients without TLS: on or off (default on where there is a --tls-cert and the connection to the server has TLS)")
	f.Lookup("tls-require").NoOptDefVal = "on"
	f.DurationVar(&cfg.WaitLimit, "wait-limit", 50*time.Millisecond, "longest wait for the replication stream before a query is forwarded")
	f.StringVar(&cfg.DataDir, "data-dir", "", "folder where the columns are kept, so that a restart need not copy again; the replication slot is permanent then and retains write-ahead log while pgaccel is away")
	f.DurationVar(&cfg.CheckpointInterval, "checkpoint-interval", time.Minute, "how often the columns are saved in --data-dir")
	f.Var(&retained, "max-retained-wal", "most write-ahead log that the replication slot may keep the server from removing (default 4GiB); beyond it the slot is dropped and everything is forwarded for a while")
	f.Var(&shadow, "shadow", "share of the queries that could be accelerated which PostgreSQL answers instead, to compare both: 1% or 0.01")
	f.Var(&trials, "trials", "have PostgreSQL answer one in a while of the queries that take more than 5 ms and that it may answer faster; where it does, it answers those like it: on or off")
	f.Lookup("trials").NoOptDefVal = "on"
	f.IntVar(&cfg.MaxClients, "max-clients", 10000, "most client connections at a time")
	f.StringVar(&logFormat, "log-format", "text", "text or json")
	f.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
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

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
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
			if p.Done || time.Since(last) > 5*time.Second {
				last = time.Now()
				log.Info("copying", "table", p.Table, "rows", p.Rows, "of_about", p.EstimatedRows, "done", p.Done)
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
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what the server and the role still need, with the SQL to fix it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dsn == "" {
				return errors.New("--upstream is missing: the URL of the PostgreSQL server")
			}
			dsn, err := withPassword(dsn, passwordFile, func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "pgaccel: warning:", text) })
			if err != nil {
				return err
			}
			shown, err := server.Certificate(certificate)
			if err != nil {
				return err
			}
			findings, err := replica.Check(cmd.Context(), dsn, patterns, shown)
			if err != nil {
				return err
			}
			bad := 0
			for _, f := range findings {
				fmt.Fprintf(cmd.OutOrStdout(), "%-5s  %s: %s\n", f.Level, f.Subject, f.Text)
				if f.SQL != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "       %s\n", strings.ReplaceAll(f.SQL, "\n", "\n       "))
				}
				if f.Level == replica.LevelError {
					bad++
				}
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
	cmd.Flags().StringVar(&certificate, "tls-cert", "", "the certificate file that serve is given, if any: what logins it allows")
	return cmd
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
