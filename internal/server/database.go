package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/colstore"
	"pgaccel/engine"
	"pgaccel/proxy"
	"pgaccel/replica"
	"pgaccel/upstream"
)

// Database is one that clients ask for by name, beside the one of Config.Upstream.
type Database struct {
	Name       string // as clients give it
	Upstream   string // as Config.Upstream; its database may have another name
	Accelerate []string
	DataDir    string // "" is databases/<name> in Config.DataDir, where there is that
}

// database is what the process has of one database that it serves: where it is, its copies, and what answers from them. The rest
// (listeners, memory, cores, temporary files, devices) is the process's.
type database struct {
	name       string // as clients give it; "" has all other names
	cfg        Database
	log        *slog.Logger
	own        *pgconn.Config // of pgaccel's own sessions
	sessions   *proxy.Database
	store      *colstore.Store
	replicator *replica.Replicator // nil where nothing is copied
	engine     *engine.Engine      // likewise
	ready      readiness
	auto       *auto // nil where nothing is copied
	prewarmer  *prewarmer
}

// databases are those that cfg names, the default one first. Nothing is begun yet.
func (cfg *Config) databases() ([]*database, error) {
	var list []*database
	add := func(one Database, flag string) error {
		up, err := upstream.ParseConfig(one.Upstream)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		own, err := pgconn.ParseConfig(one.Upstream)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		switch {
		case own.Database == "" && one.Name != "":
			return fmt.Errorf("%s: its upstream names no database", flag)
		case own.Database == "":
			own.Database = own.User
		}
		d := &database{name: one.Name, cfg: one, log: cfg.Logger, own: own, sessions: &proxy.Database{Upstream: up}}
		if one.Name != "" {
			d.log, d.sessions.Name = cfg.Logger.With("database", one.Name), own.Database
			if d.cfg.DataDir == "" && cfg.DataDir != "" {
				d.cfg.DataDir = filepath.Join(cfg.DataDir, "databases", url.PathEscape(one.Name))
			}
		}
		for _, other := range list {
			switch {
			case other.name == d.name:
				return fmt.Errorf("%s: there are two of that name", flag)
			case d.copied() && other.copied() && d.sameServer(other) && d.own.Database == other.own.Database:
				return fmt.Errorf("%s: it is the database of %s, which would be copied twice", flag, other.flag())
			case d.cfg.DataDir != "" && d.cfg.DataDir == other.cfg.DataDir:
				return fmt.Errorf("%s: its data-dir is that of %s", flag, other.flag())
			}
		}
		list = append(list, d)
		return nil
	}
	if cfg.Upstream != "" {
		if err := add(Database{Upstream: cfg.Upstream, Accelerate: cfg.Accelerate, DataDir: cfg.DataDir}, "--upstream"); err != nil {
			return nil, err
		}
	}
	for _, one := range cfg.Databases {
		if one.Name == "" || one.Name == "." || one.Name == ".." {
			return nil, fmt.Errorf("databases: %q is not the name of one", one.Name)
		}
		if err := add(one, "databases: "+one.Name); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, errors.New("--upstream is missing, and there are no databases")
	}
	return list, nil
}

// flag is where the configuration has the database.
func (d *database) flag() string {
	if d.name == "" {
		return "--upstream"
	}
	return d.name
}

// accelerate is where it has the patterns.
func (d *database) accelerate() string {
	if d.name == "" {
		return "--accelerate"
	}
	return "databases: " + d.name + ": accelerate"
}

// copied reports whether tables are copied.
func (d *database) copied() bool { return len(d.cfg.Accelerate) > 0 }

// sameServer reports whether the addresses of both are the same.
func (d *database) sameServer(o *database) bool {
	return d.sessions.Upstream.Endpoints[0].Address == o.sessions.Upstream.Endpoints[0].Address
}

// startDatabase begins to copy.
func (s *Server) startDatabase(d *database) (err error) {
	cfg := &s.cfg
	d.store = colstore.New(colstore.Options{Memory: s.memory, SegmentRows: cfg.SegmentRows, IndexAll: cfg.Eager})
	if !d.copied() {
		d.log.Info("everything is forwarded: --accelerate names no tables")
		return nil
	}
	var others []string
	for _, o := range s.databases {
		if o != d && o.copied() && o.sameServer(d) {
			others = append(others, o.own.Database)
		}
	}
	d.replicator, err = replica.Start(s.ctx, replica.Config{Upstream: d.cfg.Upstream, Accelerate: d.cfg.Accelerate, OtherDatabases: others,
		Store: d.store, Workers: cfg.CopySessions, MaxRetainedWAL: cfg.MaxRetainedWAL, DataDir: d.cfg.DataDir, AwaitDataDir: cfg.ReusePort,
		CheckpointInterval: cfg.CheckpointInterval, Logger: d.log, Progress: d.progress(cfg.Progress)})
	if err != nil {
		return err
	}
	o := engine.Options{Store: d.store, Shared: s.shared, Temp: s.temp, Workers: cfg.Workers, WaitLimit: cfg.WaitLimit,
		CheckDefinition: d.replicator.Recheck, CheckServer: d.replicator.RecheckServer, Waited: s.observer.waited, Passed: s.observer.passed,
		Look: d.replicator.Look, Logger: d.log, Eager: cfg.Eager, Trials: cfg.Trials, TrialFloor: cfg.TrialFloor,
		Status: func() engine.Status { return s.status(d) }, Sessions: func() []engine.SessionInfo { return s.proxy.SessionInfos(d.sessions) }}
	if dev := s.device; dev != nil {
		o.Device, o.DeviceKind, o.Resident, o.Devices = dev.manager, string(dev.kind), dev.resident, dev.status
	}
	d.auto = newAuto(d.cfg.Accelerate)
	o.Choices = d.auto.list
	d.engine = engine.New(o)
	d.sessions.Engine = d.engine
	d.auto.start(s.ctx, d, cmp.Or(cfg.ChooseInterval, chooseEvery))
	d.prewarmer = startPrewarmer(s.ctx, d, s.device)
	return nil
}

// progress has the tables of a database that clients name told apart from others'.
func (d *database) progress(tell func(replica.Progress)) func(replica.Progress) {
	if tell == nil || d.name == "" {
		return tell
	}
	return func(p replica.Progress) {
		p.Table = d.name + ": " + p.Table
		tell(p)
	}
}

// close gives up what start has begun. Nobody may be served any more.
func (d *database) close() {
	if d.auto != nil {
		d.auto.close()
	}
	d.prewarmer.close()
	if d.replicator != nil {
		d.replicator.Close()
	}
}

// waitReady returns when every chosen table is copied or refused.
func (d *database) waitReady(ctx context.Context) error {
	if d.replicator == nil {
		return nil
	}
	return d.replicator.WaitReady(ctx)
}
