package proxy

import (
	"crypto/tls"
	"errors"
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
}

// Reload changes the settings.
func (s *Server) Reload(now Settings) error {
	if now.RequireTLS != nil && *now.RequireTLS && now.TLS == nil {
		return errors.New("clients are to use TLS, but there is no certificate")
	}
	s.settings.Store(&now)
	return nil
}
