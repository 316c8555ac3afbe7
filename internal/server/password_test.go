package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestPasswordFile(t *testing.T) {
	t.Setenv("PGPASSWORD", "of the environment")
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	const odd = ` +'a\b"%20&?#@:/ü= `
	write(odd+"\n", 0o600)
	for _, upstream := range []string{"postgres://me@db:5433/x", "postgres://me@db:5433/x?sslmode=require", "postgresql://db", "postgres://me@a:1,b:2/x",
		"host=db user=me dbname=x", "host=/run/postgresql", "host = db  user = 'me' "} {
		got, err := WithPassword(upstream, file)
		if err != nil {
			t.Errorf("%s: %v", upstream, err)
			continue
		}
		with, err := pgconn.ParseConfig(got)
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		without, err := pgconn.ParseConfig(upstream)
		if err != nil {
			t.Fatal(err)
		}
		if with.Password != odd || with.Host != without.Host || with.Port != without.Port || with.User != without.User || with.Database != without.Database {
			t.Errorf("%s: %+v", upstream, with)
		}
	}
	refused := func(upstream, want string) {
		t.Helper()
		if got, err := WithPassword(upstream, file); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q, %v; want %s", got, err, want)
		}
	}
	refused("postgres://me:other@db/x", "has a password, too")
	for _, mode := range []os.FileMode{0o640, 0o604, 0o666} {
		write("geheim", mode)
		refused("postgres://me@db/x", "group or world access; permissions should be u=rw (0600) or less")
	}
	for _, text := range []string{"", "\n", "geheim\nanother\n"} {
		write(text, 0o600)
		refused("postgres://me@db/x", "in one line")
	}
	write("geheim", 0o400)
	refused("postgres://me@db:port/x", "--upstream: cannot parse `postgres://me@db:port/x`: invalid port")
	refused("127.0.0.1:5432", "want a URL such as postgres://")
	os.Remove(file)
	refused("postgres://me@db/x", "no such file")
	if got, err := WithPassword("host=db", ""); got != "host=db" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestGivenPassword: what is found to be a password is what pgx takes for one.
func TestGivenPassword(t *testing.T) {
	t.Setenv("PGPASSWORD", "")
	for _, upstream := range []string{"postgres://me:geheim@db/x", "postgres://me:geheim@db", "postgresql://:geheim@db/x?a=b", "postgres://me@db/x?password=geheim&sslmode=disable",
		"postgres://me@db/x?sslmode=disable&password=geheim", "host=db password=geheim", "password = 'geheim' host=db", "password='geheim'", "postgres://me:geheim@a:1,b:2/x",
		"postgres://me@db/x", "host=db user=password", "postgres://password@db/x", "postgres://me:@db/x", "postgres://db/password=1", "host=db user='my password=no'"} {
		c, err := pgconn.ParseConfig(strings.Replace(upstream, "?a=b", "", 1))
		if err != nil {
			t.Fatalf("%s: %v", upstream, err)
		}
		at, got := givenPassword(upstream), ""
		if at != nil {
			got = strings.Trim(upstream[at[0]:at[1]], "'")
		}
		if got != c.Password {
			t.Errorf("%s: %q, pgx has %q", upstream, got, c.Password)
		}
	}
}

func TestLoosePasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pgpass")
	t.Setenv("PGPASSFILE", file)
	if text := LoosePasswordFile(); text != "" {
		t.Errorf("of no file: %s", text)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := LoosePasswordFile(); text != "" {
		t.Error(text)
	}
	os.Chmod(file, 0o644)
	if text := LoosePasswordFile(); !strings.Contains(text, "group or world access") {
		t.Error(text)
	}
}
