package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pgaccel/wire"
)

// Client is what the choice of a session's server leg depends on: how the client's
// own leg is encrypted.
type Client struct {
	TLS         bool
	Certificate []byte // DER, the one that the client was shown
}

// Dial connects to the first server that accepts, in one of the ways that are
// configured for it, and returns the connection, TLS done where the endpoint wants
// it. No byte after the handshake has been read or written. The endpoint returned has the
// address that was connected to, where its host's name has several.
//
// Hosts are tried in the order of the URL, but those that did not answer come last until
// they answer again.
//
// Where a server on this machine may be reached with TLS and without, the server leg
// follows the client's: rules of pg_hba.conf that ask for TLS, or for none, then hold
// for clients of pgaccel. A TLS client whose certificate here is not the server's is
// the exception. With TLS on both legs it could not log in by SCRAM, which binds to
// the server's certificate; it gets a server leg in the clear.
func (c *Config) Dial(ctx context.Context, client Client) (net.Conn, Endpoint, error) {
	var errs []error
	hosts := c.endpointsByHost()
	for i, n := 0, len(hosts); i < len(hosts) && ctx.Err() == nil; i++ {
		if n > 1 && i < n && c.silent.contains(hosts[i][0].Address) {
			hosts = append(hosts, hosts[i])
			c.probe(hosts[i], client)
			continue
		}
		conn, e, failed := c.dialHost(ctx, hosts[i], client)
		if conn != nil {
			return conn, e, nil
		}
		errs = append(errs, failed...)
	}
	if len(errs) == 0 {
		if ctx.Err() != nil {
			return nil, Endpoint{}, ctx.Err()
		}
		errs = append(errs, errors.New("no server configured"))
	}
	return nil, Endpoint{}, attempts(errs)
}

// dialHost connects to one host, in the first of its ways that works. That a session goes
// while it waits says nothing of the host.
func (c *Config) dialHost(ctx context.Context, list []Endpoint, client Client) (net.Conn, Endpoint, []error) {
	host := list[0]
	found, err := c.lookUp(ctx, host)
	if err != nil {
		if ctx.Err() == nil {
			c.silent.set(host.Address, timedOut(err))
		}
		return nil, Endpoint{}, []error{err}
	}
	var errs []error
	silent := true
	for _, address := range found {
		ways := slices.Clone(list)
		for i := range ways {
			ways[i].Address = address
		}
		conn, e, err := c.dial(ctx, ways, &client)
		if err == nil {
			c.answered.remember(host, address)
			c.silent.set(host.Address, false)
			return conn, e, nil
		}
		silent = silent && timedOut(err)
		errs = append(errs, err)
	}
	if ctx.Err() == nil {
		c.silent.set(host.Address, silent)
	}
	return nil, Endpoint{}, errs
}

// probe finds out, behind the session's back, whether a silent host answers again.
func (c *Config) probe(list []Endpoint, client Client) {
	host := list[0].Address
	if !c.silent.beginProbe(host) {
		return
	}
	probing := *c
	go func() {
		if conn, _, _ := probing.dialHost(context.Background(), list, client); conn != nil {
			conn.Close()
		}
		probing.silent.endProbe(host)
	}()
}

// endpointsByHost returns the ways to each host, in the order of the URL.
func (c *Config) endpointsByHost() (list [][]Endpoint) {
	for rest := c.Endpoints; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Network == rest[0].Network && rest[n].Address == rest[0].Address {
			n++
		}
		list = append(list, rest[:n])
		rest = rest[n:]
	}
	return list
}

// timedOut reports that an address has not answered: neither agreed nor refused.
func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, syscall.EHOSTUNREACH)
}

// lookUp returns the addresses of an endpoint. As libpq does, they are tried one after the
// other, each for all of ConnectTimeout: one that is silent must not take the others' time.
// Unlike libpq, the one that answered last comes first, so that not every session waits for
// one that is silent.
func (c *Config) lookUp(ctx context.Context, e Endpoint) ([]string, error) {
	host, port, err := net.SplitHostPort(e.Address)
	if e.Network != "tcp" || err != nil || net.ParseIP(host) != nil {
		return []string{e.Address}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	found, err := lookupHost(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Address, err)
	}
	for i := range found {
		found[i] = net.JoinHostPort(found[i], port)
	}
	if i := slices.Index(found, c.answered.last(e)); i > 0 {
		last := found[i]
		copy(found[1:], found[:i])
		found[0] = last
	}
	return found, nil
}

var lookupHost = net.DefaultResolver.LookupHost // another one in tests

// attempts is an error for several servers or ways, in one line, each text once.
type attempts []error

func (a attempts) Error() string {
	var texts []string
	for _, err := range a {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

func (a attempts) Unwrap() []error { return a }

// dial connects to one server in the first of several ways that works. A nil client
// takes the ways as they are.
func (c *Config) dial(ctx context.Context, ways []Endpoint, client *Client) (net.Conn, Endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	conn, err := connect(ctx, ways[0])
	if err != nil {
		return nil, Endpoint{}, fmt.Errorf("%s: %w", ways[0].Address, err) // the other ways go there too
	}
	plain := plainWay(ways)
	follows := client != nil && plain != nil && onThisMachine(conn)
	if follows && (!client.TLS || c.foreign.remembered()) {
		return conn, *plain, nil
	}
	if follows && len(ways) > 1 && ways[0].TLS == nil {
		ways = []Endpoint{ways[1], ways[0]} // sslmode=allow
	}
	var errs []error
	for _, e := range ways {
		if conn == nil {
			if conn, err = connect(ctx, e); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", e, err))
				break
			}
		}
		if e.TLS == nil {
			return conn, e, nil
		}
		secured, err := startTLS(ctx, conn, e.TLS)
		switch {
		case err == nil && follows && !bytes.Equal(ServerCertificate(secured), client.Certificate):
			c.foreign.remember()
		case err == nil:
			return secured, e, nil
		case errors.Is(err, errRefusedTLS):
			// The server waits for the startup packet now, as libpq knows, too.
			errs = append(errs, fmt.Errorf("%s: %w", e, err))
			continue
		default:
			errs = append(errs, fmt.Errorf("%s: %w", e, err))
		}
		conn.Close()
		conn = nil
	}
	if conn != nil {
		conn.Close()
	}
	return nil, Endpoint{}, attempts(errs)
}

// connect returns errors without the address, which dial puts before them.
func connect(ctx context.Context, e Endpoint) (net.Conn, error) {
	var d net.Dialer // its keepalive probes find a server that has gone
	conn, err := d.DialContext(ctx, e.Network, e.Address)
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return conn, err
}

func plainWay(ways []Endpoint) *Endpoint {
	for i := range ways {
		if ways[i].TLS == nil {
			return &ways[i]
		}
	}
	return nil
}

// onThisMachine reports that a connection does not leave the machine.
func onThisMachine(conn net.Conn) bool {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return true
	}
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	return remote.IP.IsLoopback() || ok && local.IP.Equal(remote.IP)
}

// ServerCertificate returns the certificate, DER, that a server has shown, nil where
// the connection is in the clear.
func ServerCertificate(conn net.Conn) []byte {
	if t, ok := conn.(*tls.Conn); ok {
		if list := t.ConnectionState().PeerCertificates; len(list) > 0 {
			return list[0].Raw
		}
	}
	return nil
}

// foreign remembers for a while that the server's certificate is not the one that
// clients are shown, which else would cost each of them a handshake to find out.
type foreign struct{ until atomic.Int64 }

const foreignFor = time.Minute

func (f *foreign) remember() {
	if f != nil {
		f.until.Store(time.Now().Add(foreignFor).UnixNano())
	}
}

func (f *foreign) remembered() bool { return f != nil && time.Now().UnixNano() < f.until.Load() }

// answered remembers for each host the address that answered last.
type answered struct{ addresses sync.Map } // Endpoint.Address: of the host, and what it resolved to

func (a *answered) remember(host Endpoint, address string) {
	if a != nil && host.Address != address {
		a.addresses.Store(host.Address, address)
	}
}

// last returns "" where no address has answered yet.
func (a *answered) last(host Endpoint) string {
	if a == nil {
		return ""
	}
	address, _ := a.addresses.Load(host.Address)
	text, _ := address.(string)
	return text
}

// silentHosts remembers the hosts that did not answer when they were last tried, by
// Endpoint.Address. The others are tried before them, so that not every session waits; each
// session that does so probes them, since the URL's order is the operator's word, by which
// the replication stream goes, too.
type silentHosts struct {
	mu        sync.Mutex
	addresses map[string]bool
	probing   map[string]bool
}

func (s *silentHosts) set(host string, silent bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if silent {
		s.addresses[host] = true
	} else {
		delete(s.addresses, host)
	}
}

func (s *silentHosts) contains(host string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addresses[host]
}

// beginProbe reports that nobody else probes a host.
func (s *silentHosts) beginProbe(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probing[host] {
		return false
	}
	s.probing[host] = true
	return true
}

func (s *silentHosts) endProbe(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.probing, host)
}

// startTLS asks for encryption and performs the handshake. Exactly one byte is read
// before it, so that nothing sent in the clear can pass for something encrypted
// (CVE-2021-23222).
func startTLS(ctx context.Context, conn net.Conn, config *tls.Config) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(wire.AppendStartup(nil, wire.SSLRequestCode, nil)); err != nil {
		return nil, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return nil, err
	}
	switch answer[0] {
	case 'S':
	case 'N':
		if !stop() {
			return nil, ctx.Err()
		}
		return nil, errRefusedTLS
	default:
		return nil, fmt.Errorf("answer %q to SSLRequest", answer[0])
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if !stop() {
		return nil, ctx.Err() // the deadline in the past may be set by now
	}
	return secured, nil
}

// Cancel delivers a whole CancelRequest packet and returns when the server has
// closed the connection: by then the signal has been sent, so that it cannot hit a
// query that the client starts after this. The server never answers. It goes
// to e, the endpoint of the session, or where that is unknown (the zero Endpoint)
// to the first that accepts.
func (c *Config) Cancel(ctx context.Context, e Endpoint, packet []byte) error {
	conn, err := net.Conn(nil), error(nil)
	if e.Address == "" {
		conn, _, err = c.Dial(ctx, Client{})
	} else {
		conn, _, err = c.dial(ctx, []Endpoint{e}, nil)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(packet); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(conn, 1<<10))
	return err
}
