package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"pgaccel/wire"
)

// Dial connects to the first endpoint that accepts and returns it with the
// connection, TLS done where the endpoint wants it. No byte after the handshake has
// been read or written.
func (c *Config) Dial(ctx context.Context) (net.Conn, Endpoint, error) {
	var errs []error
	for _, e := range c.Endpoints {
		conn, err := c.dial(ctx, e)
		if err == nil {
			return conn, e, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", e, err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("no server configured"))
	}
	return nil, Endpoint{}, errors.Join(errs...)
}

func (c *Config) dial(ctx context.Context, e Endpoint) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, e.Network, e.Address)
	if err != nil || e.TLS == nil {
		return conn, err
	}
	secured, err := startTLS(ctx, conn, e.TLS)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
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
		conn, _, err = c.Dial(ctx)
	} else {
		conn, err = c.dial(ctx, e)
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
