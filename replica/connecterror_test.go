package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgaccel/internal/pgserver"
)

// TestConnectErrors: what check says of a server that it cannot log in to has each
// attempt once, whatever sslmode makes of it.
func TestConnectErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := pgserver.Start(ctx, pgserver.Options{Settings: map[string]string{"shared_buffers": "16MB"},
		HBA: "host all secret 127.0.0.1/32 scram-sha-256\nhost all nobody 127.0.0.1/32 reject\nhost all all 127.0.0.1/32 trust\nlocal all all trust\n"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c, err := pgconn.Connect(ctx, s.URL("postgres", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "CREATE ROLE secret LOGIN PASSWORD 'right'; CREATE ROLE nobody LOGIN").ReadAll(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	here := fmt.Sprintf("127.0.0.1:%d", s.Port)
	nowhere := filepath.Join(t.TempDir(), "none")
	for _, f := range []struct{ dsn, want, code string }{
		{"postgres://x@" + closed + "/db%s", `as user "x" to database "db": ` + closed + ": connection refused", ""},
		{"postgres://x@" + closed + "," + closed + "/db%s", `as user "x" to database "db": ` + closed + ": connection refused", ""},
		{"postgres://x@localhost" + strings.TrimPrefix(closed, "127.0.0.1") + "/db%s", closed + " (localhost): connection refused", ""},
		{"postgres://x@pgaccel.invalid/db%s", "pgaccel.invalid", ""},
		{"host=" + nowhere + " user=x dbname=db%s", "none/.s.PGSQL.5432: no such file or directory", ""},
		{"postgres://secret:wrong@" + here + "/postgres%s", here + `: failed SASL auth: FATAL: password authentication failed for user "secret" (SQLSTATE 28P01)`, "28P01"},
		{"postgres://secret@" + here + "/postgres%s", `(SQLSTATE 28P01): no password is given, by --upstream-password-file`, "28P01"},
		{"postgres://postgres@" + here + "/missing%s", here + `: server error: FATAL: database "missing" does not exist (SQLSTATE 3D000)`, "3D000"},
		{"postgres://nobody@" + here + "/postgres%s", here + `: server error: FATAL: pg_hba.conf rejects connection for host "127.0.0.1", user "nobody", database "postgres", no encryption (SQLSTATE 28000)`, "28000"},
		{"postgres://postgres@" + here + "/postgres?sslmode=require%.0s", here + ": tls error: server refused TLS connection", ""},
	} {
		for _, mode := range []string{"", "prefer", "disable"} {
			parameter := ""
			if mode != "" {
				if parameter = "?sslmode=" + mode; strings.HasPrefix(f.dsn, "host=") {
					parameter = " sslmode=" + mode
				}
			}
			dsn := fmt.Sprintf(f.dsn, parameter)
			_, err := Check(ctx, dsn, []string{"*"}, nil)
			if err == nil {
				t.Errorf("%s: no error", dsn)
				continue
			}
			text := err.Error()
			attempt := strings.TrimPrefix(f.want, `as user "x" to database "db": `)
			if strings.Contains(text, "\n") || !strings.Contains(text, f.want) || strings.Count(text, attempt) != 1 || strings.Contains(text, ";") {
				t.Errorf("%s: %s\nwant %s, once", dsn, text, f.want)
			}
			var pg *pgconn.PgError
			if errors.As(err, &pg) != (f.code != "") || pg != nil && pg.Code != f.code {
				t.Errorf("%s: the server's error is %v, want %s", dsn, pg, f.code)
			}
		}
	}
	// Attempts that failed otherwise are all named.
	_, err = Check(ctx, "postgres://x@"+closed+",[::1]:1/db?sslmode=prefer", []string{"*"}, nil)
	if err == nil || strings.Count(err.Error(), "; ") != 1 || !strings.Contains(err.Error(), closed+": connection refused; [::1]:1") {
		t.Error(err)
	}
}
