package proxy

import (
	"crypto/tls"
	"errors"
	"time"
)

// Settings are what of a Config may change while the server runs. They hold for
// connections that come from then on.
type Settings struct {
	TLS            *tls.Config
	RequireTLS     *bool
	MaxConnections int
	Shadow         float64
	// LogConnections has the connections that come from then on logged.
	LogConnections bool
	// SlowQueryLog is how long a statement has to take to be logged; nil logs none. It holds for connections that there are,
	// too.
	SlowQueryLog *time.Duration
}

// Reload changes the settings.
func (s *Server) Reload(now Settings) error {
	if now.RequireTLS != nil && *now.RequireTLS && now.TLS == nil {
		return errors.New("clients are to use TLS, but there is no certificate")
	}
	s.settings.Store(&now)
	least := int64(slowOff)
	if now.SlowQueryLog != nil {
		least = int64(*now.SlowQueryLog)
	}
	s.slow.least.Store(least)
	return nil
}
