package main

import (
	"errors"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pgaccel/internal/flags"
	"pgaccel/internal/processors"
	"pgaccel/internal/server"
)

// serveFlags are the values of serve's flags.
type serveFlags struct {
	cfg                                                           server.Config
	logFormat, logLevel, passwordFile                             string
	memory, queryMemory, reuse, tempLimit, retained, deviceMemory flags.ByteSize
	shadow                                                        share
	trials                                                        toggle
	drain                                                         time.Duration
	slow                                                          optionalDuration
}

func serveCommand() *cobra.Command {
	var v serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the accelerator",
		Args:  cobra.NoArgs,
		Long: `serve runs until SIGTERM or SIGINT. SIGTERM takes no new connections and ends each session once it is at rest,
outside of a transaction; after --drain-timeout, or at a second one, or at SIGINT, all are ended, and what they have
running on the server is cancelled. SIGHUP reads the configuration file and the certificates anew.

The file may have several databases, of one server or of several: clients choose by name.`,
		Example: `  pgaccel serve --upstream postgres://postgres@127.0.0.1:5432/shop --accelerate 'public.*'
  pgaccel serve --upstream postgres://postgres@127.0.0.1:5432/shop --accelerate auto
  psql -h 127.0.0.1 -p 6432 shop`,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, &v) },
	}
	v.define(cmd.Flags())
	return cmd
}

func serve(cmd *cobra.Command, v *serveFlags) error {
	c, warnings, err := configure(cmd)
	if err != nil {
		return err
	}
	if v.cfg.Upstream == "" {
		switch {
		case len(c.databases) == 0:
			return errors.New("--upstream is missing: the URL of the PostgreSQL server, such as postgres://user@host:5432/db")
		case len(v.cfg.Accelerate) > 0:
			return errors.New("--accelerate is of --upstream, which is missing: each of the databases has its own")
		}
	}
	r := &running{c: c, flags: cmd.Flags(), values: texts(cmd.Flags()), signals: make(chan os.Signal, 8), hangUps: make(chan os.Signal, 1)}
	if r.log, err = newLogger(cmd.ErrOrStderr(), v.logFormat, v.logLevel, &r.level); err != nil {
		return err
	}
	for _, text := range warnings {
		r.log.Warn(text)
	}
	warn := func(text string) { r.log.Warn(text) }
	if v.cfg.Upstream != "" {
		if v.cfg.Upstream, err = withPassword(v.cfg.Upstream, v.passwordFile, warn); err != nil {
			return err
		}
	}
	if v.cfg.Databases, err = c.withPasswords(warn); err != nil {
		return err
	}
	r.cfg, r.drain = v.config(), v.drain
	r.cfg.Logger, r.cfg.Progress = r.log, progress(r.log)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(r.cfg.GoMemoryLimit())
	}
	r.cfg.CollectRarely(processors.Count())
	processors.ShortSlices()
	processors.Spare()
	return r.run(cmd.Context())
}

// config is what the server is told.
func (v *serveFlags) config() server.Config {
	cfg := v.cfg
	cfg.Memory, cfg.QueryMemory, cfg.Shadow, cfg.Trials = int64(v.memory), int64(v.queryMemory), float64(v.shadow), bool(v.trials)
	cfg.MaxRetainedWAL, cfg.DeviceMemory, cfg.TempLimit, cfg.ReuseMemory = int64(v.retained), int64(v.deviceMemory), int64(v.tempLimit), int64(v.reuse)
	cfg.SlowQueryLog = v.slow.value
	if cfg.WaitLimit == 0 {
		cfg.WaitLimit = time.Nanosecond // 0 would be the default
	}
	return cfg
}

func (v *serveFlags) define(f *pflag.FlagSet) {
	v.trials, v.reuse = true, 64<<20
	f.StringVar(&v.cfg.Upstream, "upstream", "", "URL of the PostgreSQL server; its user copies tables and streams changes")
	passwordFileFlag(f, &v.passwordFile)
	f.StringSliceVar(&v.cfg.Listen, "listen", []string{"127.0.0.1:6432"}, "addresses for clients: host:port, or the path of a Unix socket")
	f.BoolVar(&v.cfg.ReusePort, "reuse-port", false, "take over the listening sockets of a pgaccel that runs with this flag, and hand them to the next, to exchange the program; Linux")
	f.DurationVar(&v.drain, "drain-timeout", 30*time.Second, "how long SIGTERM waits for sessions to be at rest, outside of a transaction, before it ends them; 0 ends them at once, as SIGINT does")
	f.StringVar(&v.cfg.HTTP, "http", "127.0.0.1:8432", "address of /metrics, /livez, /readyz and the console; empty for none")
	f.BoolVar(&v.cfg.Pprof, "pprof", false, "profiles of the process at /debug/pprof of --http, for Go's tools: to whoever reaches that address")
	f.StringSliceVar(&v.cfg.Accelerate, "accelerate", nil, "tables to copy: public.*, sales, !public.secret; or auto: those that the statements which come need, as far as they fit in --memory")
	f.StringVar(&v.cfg.Device, "device", "auto", "where queries run: auto (a GPU where there is one and it is faster), cpu, cuda, cuda:N[,M...] or emu")
	f.Var(&v.deviceMemory, "device-memory", "most memory of each device to use, such as 16GiB (default: 85 % of what is free)")
	f.StringVar(&v.cfg.DeviceWorker, "device-worker", "", "program that has CUDA (default pgaccel-gpu, or pgaccel-gpu-emu with --device emu, beside pgaccel or on PATH)")
	f.Var(&v.memory, "memory", "limit of column memory, such as 8GiB (default 8GiB, or half of the memory where that is less); tables that do not fit are forwarded")
	f.Var(&v.queryMemory, "query-memory", "limit of what queries hold while they run, and their results until clients have read them (default as --memory, at least 1GiB, at most a quarter of the memory); a query that does not fit is forwarded")
	f.Var(&v.reuse, "reuse-memory", "limit of results that are kept, 256KiB each at most, for queries that ask the same again before its tables have changed, and of what groups are over segments; 0 keeps none")
	f.StringVar(&v.cfg.TempDir, "temp-dir", "", "folder for what --query-memory does not hold: large sorts, groups and results, in files without a name; off for none (default tmp in --data-dir, else the system's folder unless that is memory)")
	f.Var(&v.tempLimit, "temp-limit", "most bytes of files in --temp-dir, such as 20GiB (default: a quarter of what is free there); a query that needs more is forwarded")
	f.IntVar(&v.cfg.Workers, "workers", 0, "goroutines of one query; 0 is one a core")
	f.IntVar(&v.cfg.CopySessions, "copy-sessions", 0, "most sessions that copy tables at once; 0 is one a core, 32 at most; never more than a quarter of the connections that are free on the server")
	f.StringVar(&v.cfg.TLSCert, "tls-cert", "", "certificate file for TLS with clients (best the server's own, see docs/security.md)")
	f.StringVar(&v.cfg.TLSKey, "tls-key", "", "key file for --tls-cert")
	f.StringVar(&v.cfg.TLSRequire, "tls-require", "", "refuse clients that come over TCP without TLS: on or off (default on where there is a --tls-cert and the connection to the server has TLS)")
	f.Lookup("tls-require").NoOptDefVal = "on"
	f.DurationVar(&v.cfg.WaitLimit, "wait-limit", 50*time.Millisecond, "longest wait for the replication stream before a query is forwarded")
	f.StringVar(&v.cfg.DataDir, "data-dir", "", "folder where the columns are kept, so that a restart need not copy again; the replication slot is permanent then and retains write-ahead log while pgaccel is away")
	f.DurationVar(&v.cfg.CheckpointInterval, "checkpoint-interval", time.Minute, "how often the columns are saved in --data-dir")
	f.Var(&v.retained, "max-retained-wal", "most write-ahead log that the replication slot may keep the server from removing (default 4GiB); beyond it the slot is dropped and everything is forwarded for a while")
	f.Var(&v.shadow, "shadow", "share of the queries that could be accelerated which PostgreSQL answers instead, to compare both: 1% or 0.01")
	f.Var(&v.trials, "trials", "have PostgreSQL answer one in a while of the queries that take more than 5 ms and that it may answer faster; where it does, it answers those like it: on or off")
	f.Lookup("trials").NoOptDefVal = "on"
	f.IntVar(&v.cfg.MaxClients, "max-clients", 10000, "most client connections at a time")
	f.BoolVar(&v.cfg.LogConnections, "log-connections", false, "log each client that the server lets in, the end of each session and why it ended, and clients that get no session")
	f.Var(&v.slow, "slow-query-log", "log each statement that takes at least so long, such as 500ms, accelerated or forwarded, without its constants; 0 logs all")
	f.StringVar(&v.logFormat, "log-format", "text", "text or json")
	f.StringVar(&v.logLevel, "log-level", "info", "debug, info, warn or error")
}
