package proxy

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgaccel/internal/pgserver"
	"pgaccel/upstream"
	"pgaccel/wire"
)

// certificate makes a self-signed pair for 127.0.0.1 and writes it to a folder.
func certificate(t testing.TB) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	for name, data := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	return pair, certFile, keyFile
}

func withTLS(pair tls.Certificate) func(*Config) {
	return func(c *Config) { c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} }
}

var plainStartup = startupPacket(wire.Version30, "user", "postgres", "database", "postgres")

// ask sends a request without type byte and reads a one-byte answer.
func ask(t *testing.T, conn net.Conn, code uint32) byte {
	t.Helper()
	if _, err := conn.Write(wire.AppendStartup(nil, code, nil)); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		t.Fatal(err)
	}
	return b[0]
}

// session starts a session on a connection that is past its negotiation.
func session1(t *testing.T, conn net.Conn) {
	t.Helper()
	c := &rawClient{Conn: conn, t: t}
	c.send(plainStartup)
	c.start = c.until('Z')
	wantRows(t, c.exchange(query("select 17")), "17")
	c.Close()
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ends fails unless the connection is closed without another byte.
func ends(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(conn)
	if len(b) != 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("before the end came %q, %v", b, err)
	}
}

func TestW01FirstPackets(t *testing.T) {
	pair, _, _ := certificate(t)
	plain, secure := startProxy(t, nil), startProxy(t, nil, withTLS(pair))
	t.Run("GSSENC, SSL, startup on one connection", func(t *testing.T) {
		conn := dial(t, plain)
		for _, code := range []uint32{wire.GSSENCRequestCode, wire.SSLRequestCode, wire.GSSENCRequestCode} {
			if b := ask(t, conn, code); b != 'N' {
				t.Fatalf("answer %q", b)
			}
		}
		session1(t, conn)
	})
	t.Run("GSSENC, then TLS", func(t *testing.T) {
		conn := dial(t, secure)
		if b := ask(t, conn, wire.GSSENCRequestCode); b != 'N' {
			t.Fatalf("answer %q", b)
		}
		if b := ask(t, conn, wire.SSLRequestCode); b != 'S' {
			t.Fatalf("answer %q", b)
		}
		session1(t, tls.Client(conn, &tls.Config{InsecureSkipVerify: true}))
	})
	t.Run("a second SSLRequest", func(t *testing.T) {
		conn := dial(t, plain)
		ask(t, conn, wire.SSLRequestCode)
		c := &rawClient{Conn: conn, t: t}
		c.send(wire.AppendStartup(nil, wire.SSLRequestCode, nil))
		wantTypes(t, c.until(endOfConnection), "EEOF")
	})
	t.Run("startup in pieces, with a Query behind", func(t *testing.T) {
		for _, m := range models {
			s := startProxy(t, everything{}, m.set)
			for _, pieces := range []bool{true, false} {
				c := &rawClient{Conn: dial(t, s), t: t}
				if pieces {
					c.rand = mrand.New(mrand.NewPCG(1, 1))
				}
				c.send(plainStartup, query("select 5"))
				c.until('Z')
				wantRows(t, c.until('Z'), "5")
			}
		}
	})
	for name, b := range map[string][]byte{
		"too long":   binary.BigEndian.AppendUint32(nil, wire.MaxStartupPacket+1),
		"too short":  {0, 0, 0, 7},
		"HTTP":       []byte("GET / HTTP/1.1\r\n\r\n"),
		"TLS hello":  {wire.TLSHandshake, 3, 1, 0, 10, 1, 0, 0, 6},
		"short key":  wire.AppendStartup(nil, wire.CancelRequestCode, []byte{0, 0, 0, 1, 0}),
		"no startup": {},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, plain)
			conn.Write(append(b, make([]byte, 8-min(len(b), 8))...))
			if name == "no startup" {
				conn.(*net.TCPConn).CloseWrite()
			}
			ends(t, conn)
		})
	}
}

// TestW02PlaintextBeforeTLS: what arrives in the clear behind an SSLRequest must not
// be taken for something that came encrypted.
func TestW02PlaintextBeforeTLS(t *testing.T) {
	pair, _, _ := certificate(t)
	s := startProxy(t, nil, withTLS(pair))
	conn := dial(t, s)
	conn.Write(append(wire.AppendStartup(nil, wire.SSLRequestCode, nil), append(plainStartup, query("select 1")...)...))
	conn.SetReadDeadline(time.Now().Add(patience))
	b, _ := io.ReadAll(conn)
	if len(b) == 0 || b[0] != 'S' || bytes.Contains(b[1:], []byte("postgres")) || bytes.IndexByte(b[1:], 'R') >= 0 {
		t.Errorf("answer %q", b)
	}
}

func TestW03DirectTLS(t *testing.T) {
	pair, _, _ := certificate(t)
	s := startProxy(t, nil, withTLS(pair))
	session1(t, tls.Client(dial(t, s), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"postgresql"}}))
	for name, protos := range map[string][]string{"no ALPN": nil, "another protocol": {"http/1.1"}} {
		t.Run(name, func(t *testing.T) {
			conn := tls.Client(dial(t, s), &tls.Config{InsecureSkipVerify: true, NextProtos: protos})
			conn.Write(plainStartup)
			conn.SetReadDeadline(time.Now().Add(patience))
			if b, _ := io.ReadAll(conn); len(b) != 0 {
				t.Errorf("answer %q", b)
			}
		})
	}
	if proto := func() string {
		conn := dial(t, s)
		ask(t, conn, wire.SSLRequestCode)
		c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"postgresql"}})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		return c.ConnectionState().NegotiatedProtocol
	}(); proto != "postgresql" {
		t.Errorf("ALPN after SSLRequest: %q", proto)
	}
}

func TestW04ProtocolVersions(t *testing.T) {
	for _, d := range setups {
		s := startProxy(t, d.engine())
		for _, p := range [][]byte{
			startupPacket(3<<16|1, "user", "postgres", "database", "postgres"),
			startupPacket(3<<16|2, "user", "postgres", "database", "postgres"),
			startupPacket(3<<16|9999, "user", "postgres", "database", "postgres", "_pq_.test_protocol_negotiation", ""),
			startupPacket(4<<16, "user", "postgres"),
			startupPacket(2<<16, "user", "postgres"),
			wire.AppendStartup(nil, 80877105, nil),
			wire.AppendStartup(nil, wire.Version30, []byte("user\x00postgres")),
		} {
			got, want := connectWith(t, s.Addr().String(), bytes.Clone(p)), connectWith(t, postgresAddress(), bytes.Clone(p))
			if g, w := show(mask(got.start)), show(mask(want.start)); g != w {
				t.Errorf("%q: through pgaccel:\n%s\ndirect:\n%s", p, g, w)
			}
			got.Close()
			want.Close()
		}
	}
}

// TestW04Clamp: a server that would agree to a version unknown here is not asked to,
// and the client is told.
func TestW04Clamp(t *testing.T) {
	s := newSession(context.Background(), nil, noObserver{})
	packet := startupPacket(3<<16|7, "user", "x")
	s.clamped = clampVersion(packet)
	if v := wire.StartupCode(packet); v != wire.Version32 {
		t.Errorf("the server is asked for %x", v)
	}
	authentication := raw('R', "\x00\x00\x00\x00")
	s.server(append(authentication, raw('Z', "I")...))
	want := append(raw('v', "\x00\x03\x00\x02\x00\x00\x00\x00"), append(authentication, raw('Z', "I")...)...)
	if got := bytes.Join(s.toClient.parts, nil); !bytes.Equal(got, want) {
		t.Errorf("the client gets %q", got)
	}
}

func TestW25Replication(t *testing.T) {
	startup := startupPacket(wire.Version30, "user", "postgres", "database", "postgres", "replication", "database")
	sc := func(c *rawClient) []message {
		list := c.exchange(query("IDENTIFY_SYSTEM"))
		list = append(list, c.exchange(query("CREATE_REPLICATION_SLOT "+fmt.Sprintf("s%d", c.pid())+" TEMPORARY LOGICAL test_decoding NOEXPORT_SNAPSHOT"))...)
		c.send(query(fmt.Sprintf("START_REPLICATION SLOT s%d LOGICAL 0/0", c.pid())))
		m := c.next(patience)
		c.send(raw('c', ""))
		return append(append(list, m), c.until('Z')...)
	}
	types := func(list []message) (s string) {
		for _, m := range list {
			if m.typ != 'd' && m.typ != 'N' {
				s += string(m.typ)
			}
		}
		return s
	}
	for _, d := range setups {
		s := startProxy(t, d.engine())
		got, want := connectWith(t, s.Addr().String(), startup), connectWith(t, postgresAddress(), startup)
		if g, w := types(sc(got)), types(sc(want)); g != w || !strings.Contains(g, "W") {
			t.Errorf("%s: %s, direct %s", d.name, g, w)
		}
		got.Close()
		want.Close()
	}
}

// TestW31PeerIdentity documents what cannot be transparent: Postgres sees pgaccel's
// socket.
func TestW31PeerIdentity(t *testing.T) {
	s := startProxy(t, nil)
	c := mustConnect(t, s.Addr().String(), "")
	defer c.Close()
	port := rows(c.exchange(query("select inet_client_port()")))[0]
	if port == strconv.Itoa(c.LocalAddr().(*net.TCPAddr).Port) {
		t.Error("Postgres sees the client's port")
	}
}

func TestUpstreamUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	s := startProxy(t, nil, func(c *Config) {
		c.Default.Upstream = upstream.Config{Endpoints: []upstream.Endpoint{{Network: "tcp", Address: address}}}
	})
	got := connectWith(t, s.Addr().String(), plainStartup).start
	wantTypes(t, got, "EEOF")
	if code := string(wire.ErrorField([]byte(got[0].body), 'C')); code != "57P03" {
		t.Errorf("SQLSTATE %s", code)
	}
}

func TestMaxConnections(t *testing.T) {
	s := startProxy(t, nil, func(c *Config) { c.MaxConnections = 2 })
	a, b := mustConnect(t, s.Addr().String(), ""), mustConnect(t, s.Addr().String(), "")
	defer b.Close()
	got := connectWith(t, s.Addr().String(), plainStartup).start
	wantTypes(t, got, "EEOF")
	if code := string(wire.ErrorField([]byte(got[0].body), 'C')); code != "53300" {
		t.Errorf("SQLSTATE %s", code)
	}
	a.send(raw('X', ""))
	waitFor(t, "a free place", func() bool {
		c := connectWith(t, s.Addr().String(), plainStartup)
		defer c.Close()
		return c.start[len(c.start)-1].typ == 'Z'
	})
}

func TestUnixSockets(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".s.PGSQL.6432")
	// A socket file left behind is no obstacle.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	forEachModel(t, func(t *testing.T, change func(*Config)) {
		up, err := upstream.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres", postgres.SocketDir, postgres.Port))
		if err != nil {
			t.Fatal(err)
		}
		s := startProxy(t, nil, change, func(c *Config) { c.Listen, c.Default.Upstream = []string{path}, up })
		session1(t, dial(t, s))
		// Terminate and an immediate close: what came before is still done.
		c := &rawClient{Conn: dial(t, s), t: t}
		c.send(plainStartup)
		c.until('Z')
		name := fmt.Sprintf("left_%d", time.Now().UnixNano())
		c.send(query("create table "+name+" ()"), raw('X', ""))
		c.Close()
		d := mustConnect(t, postgresAddress(), "")
		defer d.Close()
		waitFor(t, "the table", func() bool {
			return rows(d.exchange(query("select to_regclass('" + name + "') is not null")))[0] == "t"
		})
		if _, err := Listener(context.Background(), path, false); err == nil {
			t.Error("took over a socket in use")
		}
	})
}

func TestListenerNeedsAPort(t *testing.T) {
	for _, address := range []string{"6432", "localhost"} {
		if _, err := Listener(t.Context(), address, false); err == nil || !strings.Contains(err.Error(), address+": missing port in address: want host:port") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// authServer is a Postgres that asks for passwords, with and without TLS.
func authServer(t *testing.T) (s *pgserver.Server, pair tls.Certificate) {
	t.Helper()
	pair, cert, key := certificate(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "pgaccel-auth-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	s, err = pgserver.Start(ctx, pgserver.Options{
		HBA: "local all postgres trust\nhost all postgres 127.0.0.1/32 trust\nhost all md5user all md5\nhost all all all scram-sha-256\nlocal all all scram-sha-256\n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	owner, err := os.Stat(s.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{cert: "server.crt", key: "server.key"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(s.DataDir, to)
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
		chownLike(to, owner)
	}
	c := mustConnect(t, fmt.Sprintf("127.0.0.1:%d", s.Port), "")
	defer c.Close()
	for _, sql := range []string{"set password_encryption = 'md5'", "create role md5user login password 'geheim'", "set password_encryption = 'scram-sha-256'",
		"create role scramuser login password 'geheim'", "alter system set ssl = on", "select pg_reload_conf()"} {
		if got := c.exchange(query(sql)); got[0].typ == 'E' {
			t.Fatalf("%s: %v", sql, got)
		}
	}
	waitFor(t, "TLS", func() bool {
		n := mustConnect(t, fmt.Sprintf("127.0.0.1:%d", s.Port), "")
		defer n.Close()
		return rows(n.exchange(query("show ssl")))[0] == "on"
	})
	return s, pair
}

// TestW06AuthenticationMatrix is section 3 of docs/wire.md, with psql.
func TestW06AuthenticationMatrix(t *testing.T) {
	s, same := authServer(t)
	other, _, _ := certificate(t)
	var leg string
	psql := func(p *Server, user, password, options string) error {
		_, port, _ := net.SplitHostPort(p.Addr().String())
		cmd := exec.Command("psql", "host=127.0.0.1 dbname=postgres port="+port+" user="+user+" "+options, "-Atc",
			"select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()")
		cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
		out, err := cmd.CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == user+"|"+leg {
			return nil
		}
		return fmt.Errorf("%s", out)
	}
	tcp := fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=", s.Port)
	unix := fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", s.SocketDir, s.Port)
	for _, c := range []struct {
		name, upstream string
		tls            *tls.Certificate
		scram, md5     bool
		bound          bool   // works with channel_binding=require
		leg            string // of the server: pg_stat_ssl
	}{
		{"plain, plain", tcp + "disable", nil, true, true, false, "f"},
		{"plain, unix", unix, nil, true, false, false, "f"}, // md5user has no line for sockets
		{"TLS, plain", tcp + "disable", &same, true, true, false, "f"},
		{"TLS, unix", unix, &same, true, false, false, "f"},
		{"TLS, TLS with the same certificate", tcp + "require", &same, true, true, true, "t"},
		{"TLS, TLS with another certificate", tcp + "require", &other, false, true, false, "t"},
		{"plain, TLS", tcp + "require", nil, true, true, false, "t"},
		// The leg follows the client's where the URL leaves the choice, as it does by default.
		{"plain, prefer", tcp + "prefer", nil, true, true, false, "f"},
		{"plain, default", strings.TrimSuffix(tcp, " sslmode="), nil, true, true, false, "f"},
		{"plain, allow", tcp + "allow", nil, true, true, false, "f"},
		{"TLS with the same certificate, prefer", tcp + "prefer", &same, true, true, true, "t"},
		{"TLS with the same certificate, allow", tcp + "allow", &same, true, true, true, "t"},
		{"TLS with another certificate, prefer", tcp + "prefer", &other, true, true, false, "f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up, err := upstream.ParseConfig(c.upstream)
			if err != nil {
				t.Fatal(err)
			}
			p := startProxy(t, everything{}, func(cfg *Config) {
				cfg.Default.Upstream = up
				if c.tls != nil {
					withTLS(*c.tls)(cfg)
				}
			})
			mode := "sslmode=disable"
			if c.tls != nil {
				mode = "sslmode=require"
			}
			check := func(what string, err error, works bool) {
				t.Helper()
				if (err == nil) != works {
					t.Errorf("%s: works should be %v: %v", what, works, err)
				}
			}
			leg = c.leg
			check("SCRAM", psql(p, "scramuser", "geheim", mode), c.scram)
			check("SCRAM bound", psql(p, "scramuser", "geheim", mode+" channel_binding=require"), c.bound)
			check("wrong password", psql(p, "scramuser", "falsch", mode), false)
			if c.md5 {
				check("md5", psql(p, "md5user", "geheim", mode), true)
			}
			if err := psql(p, "scramuser", "geheim", mode); !c.scram && (err == nil || !strings.Contains(err.Error(), "HINT:  SCRAM binds the login to the server's certificate")) {
				t.Errorf("the error names no remedy: %v", err)
			}
		})
	}
}
