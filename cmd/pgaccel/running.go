package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"pgaccel/internal/server"
)

// running is serve while it runs, and what signals do to it.
type running struct {
	c       *configuration
	flags   *pflag.FlagSet    // those of the command line are in it
	values  map[string]string // of flags, as they hold now
	cfg     server.Config     // likewise
	drain   time.Duration
	log     *slog.Logger
	level   slog.LevelVar
	signals chan os.Signal // that end it
	hangUps chan os.Signal // SIGHUP, beside the others: many of them hide none that ends it
}

// texts are the values of flags.
func texts(f *pflag.FlagSet) map[string]string {
	list := map[string]string{}
	f.VisitAll(func(one *pflag.Flag) { list[one.Name] = strings.Clone(one.Value.String()) })
	return list
}

// run serves until a signal or an error ends it.
func (r *running) run(parent context.Context) error {
	signal.Notify(r.signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(r.hangUps, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	s, err := server.Start(ctx, r.cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	defer cancel() // before Close, which then does not wait for clients
	web := "none"
	if address := s.HTTPAddr(); address != nil {
		web = address.String()
	}
	r.log.Info("pgaccel is listening", "clients", s.Addr().String(), "http", web, "version", server.Version(), "pid", os.Getpid())
	if err := notifyReady(); err != nil {
		r.log.Warn("the service manager is not told that pgaccel is ready", "error", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	err = r.wait(s, ended)
	signal.Reset(syscall.SIGTERM, syscall.SIGINT) // one more ends the process as it is
	return err
}

// wait deals with signals until the server is to end.
func (r *running) wait(s *server.Server, ended chan error) error {
	var drained chan error
	for {
		select {
		case err := <-ended:
			return err
		case err := <-drained:
			if err != nil {
				r.log.Warn("sessions are left after --drain-timeout, and are ended", "sessions", s.Sessions())
			}
			return nil
		case <-r.hangUps:
			r.reload(s)
		case sig := <-r.signals:
			if sig != syscall.SIGTERM || r.drain == 0 || drained != nil {
				r.log.Info("ending", "signal", sig.String(), "sessions", s.Sessions())
				return nil
			}
			r.log.Info("SIGTERM: no new connections; sessions end when they are at rest", "drain_timeout", r.drain, "sessions", s.Sessions())
			ctx, cancel := context.WithTimeout(context.Background(), r.drain)
			defer cancel()
			drained = make(chan error, 1)
			go func() { drained <- s.Drain(ctx) }()
		}
	}
}

// reloadable are the flags that may change while serve runs.
var reloadable = []string{"accelerate", "drain-timeout", "log-connections", "log-level", "max-clients", "memory", "query-memory", "shadow", "slow-query-log", "tls-cert", "tls-key", "tls-require", "wait-limit"}

// reload reads the file and the certificates anew. What is wrong in them changes nothing.
func (r *running) reload(s *server.Server) {
	changed, later, err := r.tryReload(s)
	if err != nil {
		r.log.Warn("SIGHUP: nothing was changed", "error", err)
		return
	}
	if len(later) > 0 {
		r.log.Warn("SIGHUP: these change with a restart only", "flags", strings.Join(later, ", "))
	}
	r.log.Info("SIGHUP: the configuration is read anew", "changed", strings.Join(changed, ", "))
}

func (r *running) tryReload(s *server.Server) (changed, later []string, err error) {
	var v serveFlags
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	v.define(set)
	r.flags.Visit(func(f *pflag.Flag) {
		if one := set.Lookup(f.Name); one != nil && err == nil {
			one.Changed = true
			if list, ok := f.Value.(pflag.SliceValue); ok {
				err = one.Value.(pflag.SliceValue).Replace(list.GetSlice())
			} else {
				err = one.Value.Set(f.Value.String())
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	c := &configuration{file: r.c.file, known: r.c.known}
	if err := c.read(); err != nil {
		return nil, nil, err
	}
	if err := c.apply(set); err != nil {
		return nil, nil, err
	}
	now := texts(set)
	set.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Changed || now[f.Name] == r.values[f.Name]:
		case slices.Contains(reloadable, f.Name):
			changed = append(changed, f.Name)
		default:
			later = append(later, f.Name)
		}
	})
	to, from := r.cfg, v.config()
	databases, patterns, restart := c.databasesAfter(r.c, r.cfg.Databases)
	if to.Databases = databases; patterns {
		changed = append(changed, databasesKey)
	}
	if restart {
		later = append(later, databasesKey)
	}
	to.Accelerate, to.Memory, to.QueryMemory, to.WaitLimit, to.MaxClients, to.Shadow = from.Accelerate, from.Memory, from.QueryMemory, from.WaitLimit, from.MaxClients, from.Shadow
	to.LogConnections, to.SlowQueryLog = from.LogConnections, from.SlowQueryLog
	to.TLSCert, to.TLSKey, to.TLSRequire = from.TLSCert, from.TLSKey, from.TLSRequire
	var level slog.Level
	if err := level.UnmarshalText([]byte(v.logLevel)); err != nil {
		return nil, nil, err
	}
	if err := s.Reload(to); err != nil {
		return nil, nil, err
	}
	r.level.Set(level)
	r.cfg, r.drain = to, v.drain
	for _, name := range changed { // of databases to has them
		r.values[name] = now[name]
	}
	return changed, later, nil
}
