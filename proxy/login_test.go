package proxy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgaccel/upstream"
)

// logIn runs psql through p and returns who it is, the TLS of the server's leg, and
// what it printed.
func logIn(p *Server, options string) (string, error) {
	address := p.Addr().String()
	host, port := "127.0.0.1", address[strings.LastIndexByte(address, ':')+1:]
	if p.Addr().Network() == "unix" {
		host, port = filepath.Dir(address), strings.TrimPrefix(filepath.Ext(address), ".")
	}
	cmd := exec.Command("psql", "dbname=postgres host="+host+" port="+port+" "+options, "-Atc",
		"select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()")
	cmd.Env = append(os.Environ(), "PGPASSWORD=geheim", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestRulesForTLSHold: what pg_hba.conf says of clients with TLS and without holds
// for clients of pgaccel.
func TestRulesForTLSHold(t *testing.T) {
	s, same := authServer(t)
	other, _, _ := certificate(t)
	hba := "local all postgres trust\nhost all admin 127.0.0.1/32 trust\nhostnossl all all 127.0.0.1/32 reject\nhostssl all postgres 127.0.0.1/32 trust\nhostssl all scramuser 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(filepath.Join(s.DataDir, "pg_hba.conf"), []byte(hba), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustConnect(t, fmt.Sprintf("127.0.0.1:%d", s.Port), "")
	c.exchange(query("select pg_reload_conf()"))
	c.Close()
	refusedByServer := func() bool {
		up, err := upstream.ParseConfig(fmt.Sprintf("host=127.0.0.1 port=%d user=postgres sslmode=disable", s.Port))
		if err != nil {
			t.Fatal(err)
		}
		p := startProxy(t, nil, func(c *Config) { c.Default.Upstream = up })
		out, err := logIn(p, "user=postgres sslmode=disable")
		return err != nil && strings.Contains(out, "rejects connection")
	}
	waitFor(t, "the rules", refusedByServer)
	on, off := true, false
	const rejects = `pgaccel rejects connection for host "127.0.0.1", user "postgres", database "postgres", no encryption`
	for _, c := range []struct {
		name, sslmode string
		change        func(*Config)
		plain, secure string // what psql prints
	}{
		{"no certificate, require", "require", nil, "postgres|t", ""}, // there is nothing that a client could do
		{"no certificate, prefer", "prefer", nil, `pg_hba.conf rejects connection for host "127.0.0.1", user "postgres", database "postgres", no encryption`, ""},
		{"the server's certificate, require", "require", withTLS(same), rejects, "postgres|t"},
		{"the server's certificate, prefer", "prefer", withTLS(same), "pg_hba.conf rejects connection", "postgres|t"},
		{"another certificate, require", "require", withTLS(other), rejects, "postgres|t"},
		{"another certificate, prefer", "prefer", withTLS(other), "pg_hba.conf rejects connection", "HINT:  pgaccel's connection to the server is not encrypted"},
		{"--tls-require=off", "require", func(c *Config) { withTLS(same)(c); c.RequireTLS = &off }, "postgres|t", "postgres|t"},
		{"--tls-require", "prefer", func(c *Config) { withTLS(same)(c); c.RequireTLS = &on }, rejects, "postgres|t"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up, err := upstream.ParseConfig(fmt.Sprintf("host=127.0.0.1 port=%d user=postgres sslmode=%s", s.Port, c.sslmode))
			if err != nil {
				t.Fatal(err)
			}
			p := startProxy(t, nil, func(cfg *Config) {
				cfg.Default.Upstream = up
				if c.change != nil {
					c.change(cfg)
				}
			})
			if out, _ := logIn(p, "user=postgres sslmode=disable"); !strings.Contains(out, c.plain) {
				t.Errorf("without TLS: %s, want %s", out, c.plain)
			}
			if c.secure == "" {
				return
			}
			if out, _ := logIn(p, "user=postgres sslmode=require"); !strings.Contains(out, c.secure) {
				t.Errorf("with TLS: %s, want %s", out, c.secure)
			}
		})
	}
	t.Run("Unix sockets have no TLS", func(t *testing.T) {
		up, err := upstream.ParseConfig(fmt.Sprintf("host=127.0.0.1 port=%d user=postgres sslmode=require", s.Port))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "pgaccel-login-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		p := startProxy(t, nil, withTLS(same), func(c *Config) {
			c.Default.Upstream, c.RequireTLS, c.Listen = up, &on, []string{filepath.Join(dir, ".s.PGSQL.6432")}
		})
		if out, err := logIn(p, "user=postgres"); out != "postgres|t" {
			t.Errorf("%s, %v", out, err)
		}
	})
	if _, err := Listen(context.Background(), Config{Listen: []string{"127.0.0.1:0"}, RequireTLS: &on}); err == nil {
		t.Error("clients are to use TLS without a certificate")
	}
}
