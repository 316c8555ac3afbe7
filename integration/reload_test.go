package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// certificate returns the serial number of the certificate that pgaccel shows a client.
func (s *stack) certificate(t *testing.T) int64 {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.proxy.port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	answer := make([]byte, 1)
	if _, err := conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil { // SSLRequest
		t.Fatal(err)
	}
	if _, err := conn.Read(answer); err != nil || answer[0] != 'S' {
		return 0 // no TLS
	}
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := secure.Handshake(); err != nil {
		t.Fatal(err)
	}
	return secure.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// writeCertificate makes a certificate with a serial number and its key.
func writeCertificate(t *testing.T, serial int64, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// logged waits until the log has a text so many times.
func (s *stack) logged(t *testing.T, text string, times int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d times %q in the log", times, text), func() bool {
		log, _ := os.ReadFile(s.log)
		return strings.Count(string(log), text) >= times
	})
}

func waitFor(t *testing.T, what string, there func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !there(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

// TestReload: SIGHUP reads the certificates anew, or takes TLS away, changes the limits of memory,
// and changes nothing at all where anything is wrong: the file is missing, or a certificate is not one.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	file, cert, key := filepath.Join(dir, "serve.yml"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tlsOf := fmt.Sprintf("tls-cert: %s\ntls-key: %s\n", cert, key)
	writeCertificate(t, 1, cert, key)
	write(file, tlsOf+"memory: 1MiB\n")
	s := privateStack(t, `CREATE TABLE rl (id int PRIMARY KEY, t text);
INSERT INTO rl SELECT g, repeat(md5(g::text), 8) FROM generate_series(1, 20000) g`, "--config", file)
	good, bad := 0, 0
	reload := func(works bool) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if works {
			good++
			s.logged(t, "is read anew", good)
		} else {
			bad++
			s.logged(t, "nothing was changed", bad)
		}
	}
	check := func(what string, serial int64, mib float64) {
		t.Helper()
		if got := s.certificate(t); got != serial {
			t.Errorf("%s: certificate %d, want %d", what, got, serial)
		}
		if limit := fmt.Sprintf("pgaccel_store_limit_bytes %g", mib*(1<<20)); !slices.Contains(s.scrape(t), limit) {
			t.Errorf("%s: not %s", what, limit)
		}
	}
	old := connect(t, s.proxy.url("postgres"))
	const sql = "SELECT count(*), max(t) FROM rl"
	s.takes(t, "forwarded", 1, func() { ask(t, old, sql, nil) })
	check("at the start", 1, 1)

	writeCertificate(t, 2, cert, key)
	write(file, tlsOf+"memory: 512MiB\n")
	reload(true)
	check("another certificate", 2, 512)
	s.logged(t, `msg="table copied" table=public.rl`, 1)
	s.accelerates(t, 1, func() { ask(t, old, sql, nil) }) // of before, and without TLS

	write(cert, "no certificate")
	write(file, tlsOf+"memory: 256MiB\n")
	reload(false)
	check("a bad certificate", 2, 512)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, 3, cert, key)
	reload(false)
	check("no file", 2, 512)
	write(file, tlsOf+"memory: 256MiB\ntls-require: on\n")
	reload(true)
	check("a file again", 3, 256)
	if c, err := pgconn.Connect(t.Context(), s.proxy.url("postgres")); err == nil {
		c.Close(t.Context())
		t.Error("a client without TLS is let in")
	}
	write(file, "memory: 2MiB\n")
	reload(true)
	check("no certificate any more, and less memory than is used", 0, 2)
	s.accelerates(t, 1, func() { ask(t, connect(t, s.proxy.url("postgres")), sql, nil) })
}

// TestReadiness: /readyz says no while the server is down, and yes again once it is up; /livez always says yes.
func TestReadiness(t *testing.T) {
	start := func(dir string) *pgserver.Server {
		t.Helper()
		pg, err := pgserver.Start(t.Context(), pgserver.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return pg
	}
	pg := start("")
	s := &stack{pg: pg, direct: target{"direct", pg.Port, "postgres"}}
	s.stopAtEnd(t)
	between := newForsaker(t)
	between.target.Store(int64(pg.Port))
	if a := ask(t, connect(t, s.direct.url("postgres")), "CREATE TABLE rd (id int PRIMARY KEY)", nil); a.err != "" {
		t.Fatal(a)
	}
	if err := s.serve(t.Context(), pgaccelProgram(t), "--upstream", fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", between.port)); err != nil {
		t.Fatal(err)
	}
	wait := func(path string, want int) {
		t.Helper()
		waitFor(t, fmt.Sprintf("%s to be %d", path, want), func() bool { return get(t, s.http+path) == want })
	}
	wait("/readyz", http.StatusOK)
	pg.Shutdown()
	wait("/readyz", http.StatusServiceUnavailable)
	wait("/readyz?tables", http.StatusServiceUnavailable)
	if status := get(t, s.http+"/livez"); status != http.StatusOK {
		t.Errorf("/livez without the server: %d", status)
	}
	again := start(pg.Dir)
	t.Cleanup(again.Stop)
	between.target.Store(int64(again.Port))
	wait("/readyz", http.StatusOK)
	wait("/readyz?tables", http.StatusOK)
}
