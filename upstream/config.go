package upstream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Config says where the server is. ParseConfig makes one; it is not changed
// afterwards and may be shared.
type Config struct {
	// Endpoints are tried in order until one accepts a connection. A mode such as
	// sslmode=prefer makes two of one address: first with TLS, then without. Dial says
	// when the order is another one.
	Endpoints []Endpoint
	// ConnectTimeout bounds what is tried at one address, with TLS and without; 0 is 10 s.
	ConnectTimeout time.Duration

	foreign  *foreign
	answered *answered
	silent   *silentHosts
}

// RequiresTLS reports that no server is reached without TLS.
func (c *Config) RequiresTLS() bool { return plainWay(c.Endpoints) == nil }

// OffersTLS reports that some server may be reached with TLS.
func (c *Config) OffersTLS() bool {
	return slices.ContainsFunc(c.Endpoints, func(e Endpoint) bool { return e.TLS != nil })
}

// Endpoint is one way to reach a server.
type Endpoint struct {
	Network string // "tcp" or "unix"
	Address string
	// TLS is nil for a plaintext connection. The server must agree to TLS otherwise.
	TLS *tls.Config
}

const defaultConnectTimeout = 10 * time.Second

// ParseConfig reads a postgres:// URL or libpq's keywords, with libpq's meaning of
// host, port, sslmode, sslrootcert, sslcert, sslkey, connect_timeout and the PG*
// environment variables. User, password and database in it are for pgaccel's own
// connections: sessions bring theirs.
func ParseConfig(url string) (Config, error) {
	c, err := pgconn.ParseConfig(url)
	if err != nil {
		return Config{}, err
	}
	out := Config{ConnectTimeout: c.ConnectTimeout, foreign: &foreign{}, answered: &answered{}, silent: &silentHosts{addresses: map[string]bool{}, probing: map[string]bool{}}}
	add := func(host string, port uint16, t *tls.Config) {
		e := Endpoint{TLS: t}
		e.Network, e.Address = pgconn.NetworkAddress(host, port)
		if e.TLS != nil {
			e.TLS = e.TLS.Clone()
			e.TLS.NextProtos = []string{"postgresql"}
		}
		out.Endpoints = append(out.Endpoints, e)
	}
	add(c.Host, c.Port, c.TLSConfig)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port, f.TLSConfig)
	}
	return out, nil
}

func (c *Config) timeout() time.Duration {
	if c.ConnectTimeout > 0 {
		return c.ConnectTimeout
	}
	return defaultConnectTimeout
}

// errRefusedTLS says that a server answered N to SSLRequest.
var errRefusedTLS = errors.New("server does not support SSL, but SSL was required")

func (e Endpoint) String() string {
	if e.TLS != nil {
		return fmt.Sprintf("%s (TLS)", e.Address)
	}
	return e.Address
}
