package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"pgaccel/proxy"
	"pgaccel/replica"
)

// clientSettings reads what Reload may change for clients. The certificate's files are read.
func clientSettings(cfg *Config) (now proxy.Settings, err error) {
	now = proxy.Settings{MaxConnections: cfg.MaxClients, Shadow: cfg.Shadow, LogConnections: cfg.LogConnections, SlowQueryLog: cfg.SlowQueryLog}
	if now.TLS, err = loadTLS(cfg.TLSCert, cfg.TLSKey); err != nil {
		return now, err
	}
	switch cfg.TLSRequire {
	case "":
	case "on", "off", "true", "false": // a YAML file's
		on := cfg.TLSRequire == "on" || cfg.TLSRequire == "true"
		if now.RequireTLS = &on; on && now.TLS == nil {
			return now, errors.New("--tls-require needs --tls-cert and --tls-key")
		}
	default:
		return now, fmt.Errorf("--tls-require %s: use on or off", cfg.TLSRequire)
	}
	return now, nil
}

func loadTLS(cert, key string) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("--tls-cert and --tls-key go together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"postgresql"}}, nil
}

// Reload takes over of cfg what may change while the server runs: Memory, QueryMemory, WaitLimit, MaxClients, Shadow,
// LogConnections, SlowQueryLog and TLS, whose files are read anew, and each database's Accelerate. Databases that come or go, or are elsewhere, take
// a restart. With an error nothing has changed.
func (s *Server) Reload(cfg Config) error {
	clients, err := clientSettings(&cfg)
	if err != nil {
		return err
	}
	patterns := cfg.patterns()
	for _, d := range s.databases {
		texts, there := patterns[d.name]
		switch {
		case !there: // it goes with a restart
		case d.copied() != (len(texts) > 0):
			return errors.New(d.accelerate() + ": from no pattern to some, or back, takes a restart")
		case d.copied():
			if err := replica.CheckPatterns(texts); err != nil {
				return fmt.Errorf("%s: %w", d.accelerate(), err)
			}
		}
	}
	cfg.setMemory()
	if s.copies() {
		cfg.warnOfMemory(availableMemory())
	}
	_, before := s.memory.Usage()
	s.memory.SetLimit(cfg.Memory)
	s.shared.SetQueryMemory(cfg.QueryMemory)
	for _, d := range s.databases {
		if !d.copied() {
			continue
		}
		if texts, there := patterns[d.name]; there {
			if err := d.auto.reload(d.replicator, texts); err != nil {
				return err
			}
		}
		if cfg.Memory > before {
			d.replicator.MemoryRaised()
		}
		d.engine.SetWaitLimit(cfg.WaitLimit)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.GoMemoryLimit())
	}
	return s.proxy.Reload(clients)
}

// patterns are what each database copies, by name.
func (cfg *Config) patterns() map[string][]string {
	all := map[string][]string{}
	if cfg.Upstream != "" {
		all[""] = cfg.Accelerate
	}
	for _, d := range cfg.Databases {
		all[d.Name] = d.Accelerate
	}
	return all
}

// Drain takes no more clients and waits until those that are there have left, or ctx ends,
// whose error it returns then. See proxy.Server.Drain.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	if s.cfg.ReusePort && s.http != nil {
		// The next process answers there. Requests that are under way may take their time:
		// clients' sessions do not wait for them.
		go s.http.Shutdown(ctx)
	}
	return s.proxy.Drain(ctx)
}

// Sessions is the number of clients.
func (s *Server) Sessions() int { return s.proxy.Sessions() }
