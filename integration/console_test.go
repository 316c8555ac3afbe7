package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var screenshots = flag.String("screenshots", "", "the folder, by its whole path, that TestConsole leaves pictures in, and TestPagesRun the one of docs")

// Its longest names must not be cut off either.
const consoleSchema = `
CREATE TABLE sale (id int PRIMARY KEY, region text NOT NULL, amount numeric(12,2), at timestamptz);
INSERT INTO sale SELECT i, 'region ' || i % 7, i / 8.0, timestamptz '2024-01-01' + i * interval '1 minute' FROM generate_series(1, 100000) i;
CREATE TABLE product (id int PRIMARY KEY, name text);
INSERT INTO product SELECT i, 'product ' || i FROM generate_series(1, 500) i;
CREATE TABLE bare_${long} (a int);
CREATE TABLE full_${long} (id int PRIMARY KEY, column_${long} text);
CREATE ROLE w_${long} LOGIN IN ROLE pg_monitor, pg_read_all_data`

// named puts in what fills names up to about the most that there are.
func named(sql string) string { return strings.ReplaceAll(sql, "${long}", strings.Repeat("w", 50)) }

// chromium is a browser, and what scripts drive it.
type chromium struct{ path, node, modules string }

func consoleBrowser(t *testing.T) (b chromium) {
	t.Helper()
	b.node = need(t, "node", "apt-get install -y nodejs npm")
	var err error
	if b.path, err = exec.LookPath("google-chrome"); err != nil {
		b.path = need(t, "chromium", "apt-get install -y chromium")
	}
	if b.modules, err = filepath.Abs("../build/node/node_modules"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(b.modules, name)); err != nil {
			t.Fatalf("%v: integration/install-clients.sh", err)
		}
	}
	return b
}

// TestConsole looks at each page of the console with a browser, wide and narrow, light and dark: it has its data, nothing is
// cut off or reported, and axe finds no serious barrier. With -screenshots FOLDER pictures are left there.
func TestConsole(t *testing.T) {
	browser := consoleBrowser(t)
	s := privateStack(t, named(consoleSchema))
	conn := connect(t, s.proxy.url("postgres"))
	ask(t, conn, "SET application_name = '"+strings.Repeat("a", 63)+"'", nil)
	for _, sql := range []string{
		named("SELECT count(column_${long}) FROM full_${long}"),
		"SELECT region, sum(amount) FROM sale GROUP BY region ORDER BY region",
		"SELECT count(*), avg(amount) FROM sale WHERE at >= '2024-02-01' AND region <> 'region 3'",
		"SELECT json_agg(amount) OVER (ORDER BY id) FROM sale WHERE id < 4",
		"SELECT name FROM product WHERE id = 7",
	} {
		for _, mode := range []string{"off", "force", "force"} {
			ask(t, conn, "SET pgaccel.mode = '"+mode+"'", nil)
			if a := ask(t, conn, sql, nil); a.err != "" {
				t.Fatal(sql, a.err)
			}
		}
	}
	if s.queries(t, "accelerated") < 4 {
		t.Fatal("nothing was accelerated")
	}
	args := []string{"clients/console.js", s.http, browser.path}
	if *screenshots != "" {
		args = append(args, *screenshots)
	}
	out := run(t, []string{"NODE_PATH=" + browser.modules, "HOME=" + t.TempDir()}, nil, browser.node, args...)
	seen := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var look struct {
			Page                              string
			Width, Overflow                   int
			Scheme                            string
			Cut, Errors, Troubles, Violations []string
		}
		if err := json.Unmarshal(lines.Bytes(), &look); err != nil {
			t.Fatal(err, lines.Text())
		}
		seen[look.Page]++
		if look.Overflow > 0 || len(look.Cut) > 0 {
			t.Errorf("%s at %d: %d pixels are beyond the page's width: %q", look.Page, look.Width, look.Overflow, look.Cut)
		}
		if look.Page != "login" && len(look.Errors) > 0 || len(look.Troubles) > 0 {
			t.Errorf("%s at %d: %q %q", look.Page, look.Width, look.Errors, look.Troubles)
		}
		if len(look.Violations) > 0 {
			t.Errorf("%s at %d, %s: %s", look.Page, look.Width, look.Scheme, strings.Join(look.Violations, "\n"))
		}
	}
	for _, page := range []string{"strangers", "login", "overview", "queries", "tables", "columns", "replication", "sessions", "warnings", "compare", "statement", "empty", "compared"} {
		if seen[page] != 4 {
			t.Errorf("%s was looked at %d times, want twice at two widths", page, seen[page])
		}
	}
}

// TestConsoleOverTLS: where clients must use TLS, so does the console.
func TestConsoleOverTLS(t *testing.T) {
	certificate, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	writeCertificate(t, 1, certificate, key)
	s := privateStack(t, "CREATE TABLE t (id int PRIMARY KEY)", "--tls-cert", certificate, "--tls-key", key, "--tls-require=on")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	r, err := browser.Post(s.http+"/console/api/login", "application/json", strings.NewReader(`{"user":"postgres","password":""}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r, err = browser.Get(s.http + "/console/api/rows/tables"); err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != 200 || !strings.Contains(string(text), "public.t") {
		t.Errorf("%s %s", r.Status, text)
	}
}
