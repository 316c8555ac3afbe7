package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"pgaccel/upstream"
	"pgaccel/wire"
)

// handshake reads the packets that precede a session, exactly, so that nothing sent
// in the clear can be taken for something that came encrypted (CVE-2021-23214), and
// runs the session.
func (s *Server) handshake(conn net.Conn) {
	tracked := &rawConn{conn}
	s.track(tracked)
	defer s.untrack(tracked)
	conn.SetDeadline(time.Now().Add(cmp.Or(s.cfg.startup, startupTimeout)))
	now := s.settings.Load() // one certificate for all of a connection
	var sslDone, gssDone bool
	for {
		packet, err := readFirst(conn)
		if err != nil {
			conn.Close() // as Postgres: no answer to what is no packet
			return
		}
		if packet[0] == wire.TLSHandshake {
			if _, already := conn.(*tls.Conn); already || now.TLS == nil {
				conn.Close()
				return
			}
			secured, err := s.acceptTLS(&prefixConn{Conn: conn, prefix: packet}, now.TLS, true)
			if err != nil {
				s.log.Debug("direct TLS handshake failed", "client", conn.RemoteAddr(), "error", err)
				conn.Close()
				return
			}
			conn, sslDone, gssDone = secured, true, true
			continue
		}
		switch code := wire.StartupCode(packet); {
		case code == wire.SSLRequestCode && !sslDone:
			if now.TLS == nil {
				if _, err := conn.Write([]byte{'N'}); err != nil {
					conn.Close()
					return
				}
				sslDone, gssDone = true, false
				continue
			}
			_, err := conn.Write([]byte{'S'})
			if err == nil {
				var secured *tls.Conn
				if secured, err = s.acceptTLS(conn, now.TLS, false); err == nil {
					conn, sslDone, gssDone = secured, true, true
					continue
				}
			}
			s.log.Debug("TLS handshake failed", "client", conn.RemoteAddr(), "error", err)
			conn.Close()
			return
		case code == wire.GSSENCRequestCode && !gssDone:
			if _, err := conn.Write([]byte{'N'}); err != nil {
				conn.Close()
				return
			}
			sslDone, gssDone = false, true
		case code == wire.CancelRequestCode:
			s.cancelRequest(conn, packet)
			return
		case code == wire.SSLRequestCode || code == wire.GSSENCRequestCode:
			// A second one. It must not travel on: the server would take it for a first.
			fatal(conn, "0A000", "unsupported frontend protocol 1234."+map[bool]string{true: "5679", false: "5680"}[code == wire.SSLRequestCode])
			conn.Close()
			return
		default:
			conn.SetDeadline(time.Time{})
			s.session(conn, tracked, now, packet)
			return
		}
	}
}

// readFirst reads one packet without type byte, or the first 8 bytes of a TLS
// handshake.
func readFirst(conn net.Conn) ([]byte, error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	if head[0] == wire.TLSHandshake {
		return head, nil
	}
	n, err := wire.StartupLength(head)
	if err != nil {
		return nil, err
	}
	packet := make([]byte, n)
	copy(packet, head)
	_, err = io.ReadFull(conn, packet[8:])
	return packet, err
}

func (s *Server) acceptTLS(conn net.Conn, config *tls.Config, direct bool) (*tls.Conn, error) {
	config = config.Clone()
	config.NextProtos = []string{"postgresql"}
	secured := tls.Server(conn, config)
	if err := secured.HandshakeContext(s.ctx); err != nil {
		return nil, err
	}
	// Without it, a browser could be made to speak to us (ALPACA attack): Postgres
	// asks for ALPN with direct TLS only, where no SSLRequest stood before.
	if direct && secured.ConnectionState().NegotiatedProtocol == "" {
		secured.Close()
		return nil, errors.New("no ALPN protocol")
	}
	return secured, nil
}

// cancelRequest delivers a cancel request to whoever runs the session's query, and
// closes the client's connection only after the server has closed its own: then the
// client knows that the signal cannot hit its next query.
func (s *Server) cancelRequest(conn net.Conn, packet []byte) {
	defer conn.Close()
	key, err := wire.CancelKey(packet)
	if err != nil {
		return
	}
	s.mu.Lock()
	d := s.sessions[string(key)]
	s.mu.Unlock()
	// What is not known may be the key of a session of the process before (Config.ReusePort), on any server.
	servers := s.servers
	if d.driver != nil {
		if d.cancelExecution() {
			s.observer.CancelRequested(true)
			return
		}
		servers = func() []*upstream.Config { return []*upstream.Config{&d.database.Upstream} }
	}
	s.observer.CancelRequested(false)
	ctx, cancel := context.WithTimeout(s.ctx, cancelTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, server := range servers() {
		wg.Go(func() {
			if err := server.Cancel(ctx, d.endpoint, packet); err != nil {
				s.log.Warn("cancel request not delivered", "error", err)
			}
		})
	}
	wg.Wait()
}

// session connects a client that has sent its startup packet.
func (s *Server) session(conn net.Conn, tracked closer, now *Settings, packet []byte) {
	client := leg(conn, now.TLS)
	log := s.connectionLog(conn, now, client.TLS)
	refuse := func(why Refusal) {
		s.observer.Refused(why)
		log.refused(why)
	}
	if code, message := s.admit(); code != "" {
		why := RefusedShutdown
		if code == tooManyConnections {
			why = RefusedLimit
		}
		refuse(why)
		fatal(conn, code, message)
		conn.Close()
		return
	}
	database, sent := s.databaseOf(packet)
	if now.refused(conn, client, database != nil && database.Upstream.RequiresTLS(), packet) {
		refuse(RefusedTLS)
		conn.Close()
		s.leave()
		return
	}
	if database == nil {
		refuse(RefusedDatabase)
		noDatabase(conn, packet)
		conn.Close()
		s.leave()
		return
	}
	server, endpoint, err := database.Upstream.Dial(s.ctx, client)
	if err != nil {
		s.log.Warn("cannot connect to the server", "error", err)
		refuse(RefusedServer)
		fatal(conn, "57P03", "pgaccel cannot connect to the PostgreSQL server")
		conn.Close()
		s.leave()
		return
	}
	if now.refused(conn, client, endpoint.TLS != nil, packet) {
		refuse(RefusedTLS)
		conn.Close()
		server.Close()
		s.leave()
		return
	}
	clamped := clampVersion(sent)
	if _, err := server.Write(sent); err != nil {
		refuse(RefusedServer)
		fatal(conn, "08006", "pgaccel lost the connection to the PostgreSQL server")
		conn.Close()
		server.Close()
		s.leave()
		return
	}
	s.observer.SessionOpened()
	sess := newSession(s.ctx, database.Engine, s.observer)
	sess.database = database
	sess.clamped = clamped
	sess.log = log
	sess.slow = &s.slow
	sess.held = &s.held
	sess.login = s.loginOf(database, client, server)
	if share := now.Shadow; share > 0 {
		sess.share = func() bool { return rand.Float64() < share }
	}
	if list, err := wire.StartupParameters(packet); err == nil {
		sess.startup(list)
	} else {
		sess.opaque = true
	}
	noDelay(conn)
	noDelay(server)
	s.wg.Add(1)
	ended := func() {
		log.closed(sess)
		s.leave()
		s.wg.Done()
	}
	if !s.driveEvents(sess, conn, server, endpoint, ended) {
		defer ended()
		s.untrack(tracked) // the session ends by itself
		s.drive(sess, conn, server, endpoint)
	}
}

// leg describes a client's connection to whoever opens the server's.
func leg(conn net.Conn, config *tls.Config) upstream.Client {
	if _, ok := conn.(*tls.Conn); !ok {
		return upstream.Client{}
	}
	c := upstream.Client{TLS: true}
	if list := config.Certificates; len(list) > 0 && len(list[0].Certificate) > 0 {
		c.Certificate = list[0].Certificate[0]
	}
	return c
}

// clampVersion keeps a server from agreeing to a protocol newer than the one whose
// messages are known here: minor versions above 3.2 are asked for as 3.2.
func clampVersion(packet []byte) bool {
	v := wire.StartupCode(packet)
	if v>>16 != 3 || v <= wire.Version32 {
		return false
	}
	binary.BigEndian.PutUint32(packet[4:], wire.Version32)
	return true
}

func noDelay(conn net.Conn) {
	if t, ok := conn.(*net.TCPConn); ok {
		t.SetNoDelay(true) // Go's default; said because it matters
	}
}

// isReplication reads the startup parameter replication as Postgres' parse_bool
// does, with everything unknown taken for a replication connection.
func isReplication(value string) bool {
	switch strings.ToLower(value) {
	case "", "false", "off", "no", "0", "f", "n", "fa", "fal", "fals", "of":
		return false
	}
	return true
}

type rawConn struct{ net.Conn }

func (c *rawConn) close() { c.Conn.Close() }

// prefixConn gives back bytes that were read to find out what a connection speaks.
type prefixConn struct {
	net.Conn
	prefix []byte
}

func (c *prefixConn) Read(p []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(p, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}
