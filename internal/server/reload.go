package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"pgaccel/proxy"
)

// clientSettings reads what Reload may change for clients. The certificate's files are read.
func clientSettings(cfg *Config) (now proxy.Settings, err error) {
	now = proxy.Settings{MaxConnections: cfg.MaxClients, Shadow: cfg.Shadow, LogConnections: cfg.LogConnections}
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

// Reload takes over of cfg what may change while the server runs: Accelerate, Memory,
// QueryMemory, WaitLimit, MaxClients, Shadow, LogConnections and TLS, whose files are read anew. With an
// error nothing has changed.
func (s *Server) Reload(cfg Config) error {
	clients, err := clientSettings(&cfg)
	if err != nil {
		return err
	}
	if (s.replicator == nil) != (len(cfg.Accelerate) == 0) {
		return errors.New("--accelerate: from no pattern to some, or back, takes a restart")
	}
	if s.replicator != nil {
		if err := s.replicator.SetPatterns(cfg.Accelerate); err != nil {
			return err
		}
		cfg.setMemory()
		_, before := s.store.Usage()
		s.store.Memory().SetLimit(cfg.Memory)
		if cfg.Memory > before {
			s.replicator.MemoryRaised()
		}
		s.engine.SetQueryMemory(cfg.QueryMemory)
		s.engine.SetWaitLimit(cfg.WaitLimit)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.GoMemoryLimit())
	}
	return s.proxy.Reload(clients)
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
